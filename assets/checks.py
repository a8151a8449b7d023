"""Declares the blocking checks for Dagster: which dataset, which check.

The tests themselves are in `opus_pipelines`.
"""

import re
import warnings
from collections.abc import Iterable, Iterator, Mapping, Set
from typing import Any

import dagster as dg

from assets.specs import CONTRACTS, key
from opus_pipelines.core.errors import CheckResult
from opus_pipelines.core.schemas import (
    ALIASES,
    CASES,
    CONTEXTS,
    COST_REPORT,
    EDGES,
    EMBEDDINGS,
    IMPLEMENTATION_VECTORS,
    INTAKES,
    NEEDS,
    OPTIMIZED,
    RESULT_TABLES,
    REWARD_REPORT,
    RUNS,
    SOURCES,
    TASK_IMPLEMENTATIONS,
    TASKS,
    VARIANTS,
    WORKFLOW_EDGES,
    Dataset,
)
from opus_pipelines.wkg.checks import (
    ALIKE,
    DATASET_MEANINGS,
    EMBEDDED_DATASETS,
    FIGURE_CHECKS,
    FIGURE_MEANINGS,
    LOSS,
    LOSS_MEANINGS,
    MINED_DATASETS,
    RECALL,
    added_checks,
)
from opus_pipelines.wkg.drift import DRIFT_CHECKS, DRIFT_MEANINGS


def check_name(text: str) -> str:
    """Returns a check's name in the form that Dagster allows."""
    return re.sub(r"\W+", "_", text).strip("_")


def _blocking(
    checks: Mapping[str, Iterable[Dataset]], meanings: Mapping[str, str], **more: Any
) -> list[dg.AssetCheckSpec]:
    return [
        declared(check_name(name), d.name, meanings[name], blocking=True, **more)
        for name, datasets in checks.items()
        for d in datasets
    ]


def declared(name: str, dataset: str, meaning: str, **more: Any) -> dg.AssetCheckSpec:
    """Returns the check of a dataset, as Dagster is told of it."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that a check has partitions is in preview
        return dg.AssetCheckSpec(name, asset=key(dataset), description=meaning, **more)


_RESULT = [*RESULT_TABLES, RUNS, COST_REPORT, REWARD_REPORT]


def _with_probabilities(datasets: Iterable[Dataset]) -> list[Dataset]:
    return [d for d in datasets if any(c.type_name == "prob" for c in d.columns)]


NOT_LOOKED_AT = "not looked at, because of other failed checks"
REJECTED_WHOLE = dg.AssetCheckSpec(
    "no_file_rejected_whole",
    asset=key(SOURCES.name),
    description="No file was rejected as a whole. A rejected file is left out, and the rest of the history is used.",
)
HELD_BACK = dg.AssetCheckSpec(
    "no_source_held_back",
    asset=key(SOURCES.name),
    description="Every source could be read without loss. A source that could not keeps its last good version; the "
    "others are used.",
)
NOT_MINED, NOT_EMBEDDED = (
    dg.AssetCheckSpec(
        f"no_source_failed_{stage}",
        asset=key(name),
        description=f"No changed source made {stage} fail. One that did is put back to its last good version until it "
        "or the program changes; the others are used.",
    )
    for stage, name in (("mining", TASKS.name), ("embedding", EMBEDDINGS.name))
)
DAMAGED = dg.AssetCheckSpec(
    "no_published_file_damaged",
    asset=key(SOURCES.name),
    description="Every published file has the size and the hash with which it was published. Damage of what a rebuild "
    "starts from stops it; other damage is named here.",
)
FAILED_INTAKES = declared(
    "no_intake_failed",
    INTAKES.name,
    "No intake failed. A failed intake has no workflows; the others have.",
    partitions_def=CONTRACTS,
)

HISTORY_CHECKS = _blocking(
    {LOSS: [SOURCES], "records add up": [SOURCES], "implementations as counted": [SOURCES]},
    DATASET_MEANINGS | LOSS_MEANINGS,
)
MINED_CHECKS = _blocking(
    {
        "schema": MINED_DATASETS,
        "keys are unique": MINED_DATASETS,
        "every task exists": (EDGES, TASK_IMPLEMENTATIONS, NEEDS, ALIASES, VARIANTS, CONTEXTS, CASES),
        "every task has a name in history": [TASKS],
        ALIKE: [TASKS],
        "probabilities lie in [0, 1]": _with_probabilities(MINED_DATASETS),
        **FIGURE_CHECKS,
        "task implementations add up to the cases'": [TASKS],
        "ways add up to the cases'": [TASK_IMPLEMENTATIONS],
        "variants add up to the cases": [VARIANTS],
        "no edge has more implementations than transitions": [EDGES],
        "probabilities out of a task add up to 1": [EDGES],
        "successes are among the cases": [NEEDS],
        **{
            name: [dataset] for name, dataset in DRIFT_CHECKS.items()
        },  # a result of severity WARN does not block, whatever the check is
    },
    DATASET_MEANINGS | FIGURE_MEANINGS | DRIFT_MEANINGS,
)
EMBEDDED_CHECKS = _blocking(
    {
        "schema": EMBEDDED_DATASETS,
        "keys are unique": EMBEDDED_DATASETS,
        "every task exists": [EMBEDDINGS],
        "every task has a vector": [EMBEDDINGS],
        RECALL: [EMBEDDINGS, IMPLEMENTATION_VECTORS],
        "the index holds every vector": [EMBEDDINGS],
    },
    DATASET_MEANINGS,
)
RESULT_MEANINGS = {
    "schema": "Every table has the columns and types of the data dictionary.",
    "probabilities": "Every probability lies between 0 and 1.",
    "ranks_without_gaps": "The ranks of each Intention are 1, 2, 3 and so on, without a gap and without a repetition.",
    "ends_are_nodes": "Both ends of every edge are nodes of the same workflow.",
    "every_intake_has_a_row": "Every intake of the contract has one row, also where it failed or was refused.",
}
RESULT_CHECKS = _blocking(
    {
        "schema": _RESULT,
        "probabilities": _with_probabilities(_RESULT),
        "ranks_without_gaps": [OPTIMIZED],
        "ends_are_nodes": [WORKFLOW_EDGES],
        "every_intake_has_a_row": [INTAKES],
    },
    RESULT_MEANINGS,
    partitions_def=CONTRACTS,
)


def _added(datasets: Iterable[Dataset], **more: Any) -> list[dg.AssetCheckSpec]:
    """Returns the checks that installed distributions add; one that is not blocking gives a result of severity WARN."""
    return [
        declared(check_name(c.name), c.dataset, c.meaning, blocking=True, **more)
        for c in added_checks(dataset.name for dataset in datasets)
    ]


MINED_CHECKS += _added(MINED_DATASETS)
EMBEDDED_CHECKS += _added(EMBEDDED_DATASETS)
RESULT_CHECKS += _added(_RESULT, partitions_def=CONTRACTS)


def reported(
    found: Iterable[CheckResult], declared: Iterable[dg.AssetCheckSpec], unseen: str | None = None
) -> Iterator[dg.AssetCheckResult]:
    """Yields a result for every declared check.

    A check without a result fails, unless `unseen` gives the reason for its absence.
    """
    results: dict[tuple[dg.AssetKey, str], list[CheckResult]] = {}
    for check in found:
        results.setdefault((key(check.dataset), check_name(check.name)), []).append(check)
    for spec in declared:
        outcomes = results.pop((spec.asset_key, spec.name), [])
        yield _outcome(spec, outcomes, unseen)
    if results:
        raise dg.Failure(
            f"checks that Dagster was not told of: {sorted(name for _, name in results)}", allow_retries=False
        )


def check_key(result: dg.AssetCheckResult) -> dg.AssetCheckKey:
    """Returns the key of the check that this is a result of."""
    assert result.asset_key is not None
    assert result.check_name is not None
    return dg.AssetCheckKey(result.asset_key, result.check_name)


def selected(
    keys: Set[dg.AssetCheckKey],
    found: Iterable[CheckResult],
    declared: Iterable[dg.AssetCheckSpec],
    unseen: str | None = None,
) -> Iterator[dg.AssetCheckResult]:
    """Yields the results of `reported` for the selected checks, `keys`."""
    yield from (one for one in reported(found, declared, unseen) if check_key(one) in keys)


def evaluated(
    context: dg.AssetExecutionContext, partition: str, results: Iterable[dg.AssetCheckResult]
) -> Iterator[dg.AssetCheckResult]:
    """Yields the results of the partition of the run.

    In a run of several partitions, each result is logged with its partition instead, because Dagster takes the one of
    what is yielded from the run.
    """
    if context.has_partition_key:
        yield from results
        return
    for result in results:
        one = check_key(result)
        evaluation = dg.AssetCheckEvaluation(
            one.asset_key,
            one.name,
            result.passed,
            result.metadata,
            severity=result.severity,
            description=result.description,
            partition=partition,
        )
        context.log_event(evaluation)


def _outcome(spec: dg.AssetCheckSpec, outcomes: list[CheckResult], unseen: str | None) -> dg.AssetCheckResult:
    passed = all(c.passed for c in outcomes) if outcomes else unseen is not None
    details = {c.detail for c in outcomes if c.passed == passed}
    said = "; ".join(sorted(details)) if outcomes else unseen or NOT_LOOKED_AT
    warns = not passed and bool(outcomes) and not any(c.blocking for c in outcomes if not c.passed)
    severity = dg.AssetCheckSeverity.WARN if warns else dg.AssetCheckSeverity.ERROR
    return dg.AssetCheckResult(
        passed=passed, asset_key=spec.asset_key, check_name=spec.name, severity=severity, description=said or None
    )


def warning(
    spec: dg.AssetCheckSpec, lines: list[str], severity: dg.AssetCheckSeverity = dg.AssetCheckSeverity.WARN
) -> dg.AssetCheckResult:
    """Declares a check that never stops a run, with a line for each thing that was left out."""
    return dg.AssetCheckResult(
        passed=not lines,
        asset_key=spec.asset_key,
        check_name=spec.name,
        severity=severity,
        metadata={"lines": lines},
        description="; ".join(lines)[:1_000] or None,
    )
