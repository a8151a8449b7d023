"""Stage three: a contract's intakes become ranked workflows and reports.

Each contract is checked and published by itself: a finished one is visible at once, and a failed one does not fail the
others. One step makes all datasets of a contract; where only some of them are selected, only these are reported.
"""

import logging
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import dagster as dg
from pydantic import Field

from assets.checks import FAILED_INTAKES, RESULT_CHECKS, check_key, evaluated, reported, warning
from assets.inputs import INTAKES
from assets.metadata import best_table, page_of
from assets.specs import CONTRACTS, POOL, finished, key, made, reason_first, spec
from opus_pipelines.core.errors import CheckFailed, CheckResult, InputError, OpusError
from opus_pipelines.core.ids import digest
from opus_pipelines.core.schemas import DATASETS, OPTIMIZED
from opus_pipelines.core.versions import versions_of
from opus_pipelines.generation.contracts import needed_for_contracts
from opus_pipelines.generation.results.staleness import failed_intakes, is_current, next_attempt
from opus_pipelines.lake.atomic_files import require_free_space
from opus_pipelines.lake.layout import Lake
from opus_pipelines.lake.results import ResultKey
from opus_pipelines.lake.version import record_inputs
from resources.bulk import bulk_run, contracts_by_key
from resources.encoder import EncoderResource
from resources.lake import LakeRun
from resources.spark import SparkResource

if TYPE_CHECKING:
    from opus_pipelines.generation.bulk.run import BulkRun
    from opus_pipelines.generation.results.contract import ContractResult
    from opus_pipelines.intakes.intake import ContractFolder

logger = logging.getLogger("opus_pipelines.generate")

POINTER = "workflows/current"
UP_TO_DATE = "the result was up to date"
LINEAGE = {
    "generation/intakes": [INTAKES, "wkg/snapshot"],
    "generation/intentions": ["generation/intakes", "wkg/snapshot"],
    "generation/neighbours": ["generation/intentions"],
    "generation/subgraph_tasks": ["generation/intentions"],
    "generation/subgraph_edges": ["generation/subgraph_tasks"],
    "generation/sequences": ["generation/subgraph_tasks", "generation/subgraph_edges", "generation/neighbours"],
    "generation/wfg_nodes": ["generation/sequences"],
    "generation/wfg_edges": ["generation/sequences"],
    "generation/runs": ["wkg/snapshot"],
    "workflows/optimized": ["generation/wfg_nodes", "generation/wfg_edges"],
    "workflows/tasks": ["workflows/optimized"],
    "workflows/edges": ["workflows/optimized"],
    "workflows/expected_flow": ["workflows/optimized", "generation/neighbours"],
    "workflows/changes": ["workflows/optimized", "workflows/tasks", "generation/intakes", "generation/neighbours"],
    "reports/cost": ["workflows/optimized", "workflows/tasks"],
    "reports/reward": ["workflows/optimized"],
    POINTER: [
        "workflows/optimized",
        "workflows/tasks",
        "workflows/edges",
        "workflows/expected_flow",
        "workflows/changes",
        "reports/cost",
        "reports/reward",
        "generation/runs",
    ],
}
SPECS = [
    spec(
        name,
        name.split("/")[0],
        deps,
        about="the pointer that makes a contract's result visible",
        kinds=("json",) if name == POINTER else ("parquet",),
        partitions_def=CONTRACTS,
        code_version=versions_of("result"),
    )
    for name, deps in LINEAGE.items()
]


class GenerateConfig(dg.Config):
    """The options of one run."""

    retry_failed: bool = Field(False, description="do contracts again whose current results have failed intakes")


@dg.multi_asset(
    name="generate_contracts",
    specs=SPECS,
    check_specs=[*RESULT_CHECKS, FAILED_INTAKES],
    backfill_policy=dg.BackfillPolicy.single_run(),
    can_subset=True,
    pool=POOL,
)
@reason_first
def generate(
    context: dg.AssetExecutionContext,
    config: GenerateConfig,
    run: LakeRun,
    encoder: EncoderResource,
    spark: SparkResource,
) -> Iterator[dg.MaterializeResult[None] | dg.AssetCheckResult | dg.AssetMaterialization]:
    """Generates, checks and publishes every contract of the run whose result is not up to date.

    A run is usually of one contract. In a run of several, a contract that fails fails no other: the finished ones are
    recorded one by one, and the run fails at its end.
    """
    from opus_pipelines.generation.bulk.chunks import GenerationSetup
    from opus_pipelines.wkg.snapshot import Snapshot

    record_inputs(run.lake.root, "intakes", run.typed.paths.intakes)
    contracts = contracts_by_key(run.lake, run.typed.paths.intakes)
    needed = needed_for_contracts(contracts.get(partition) for partition in context.partition_keys)
    require_free_space(run.lake.root, needed, run.typed.disk.reserve_mb, "this generation")
    done: dict[str, _Done] = {}
    checks: dict[str, list[CheckResult]] = {}
    failures: list[str] = []
    setup = GenerationSetup(run.lake.root, Snapshot.open(run.lake).id, run.typed)
    with run.lake.staging() as scratch, bulk_run(setup, encoder, spark, logger.info) as bulk:
        for number, partition in enumerate(context.partition_keys):
            publishing = _Publishing(run, bulk, context.run_id, checks.setdefault(partition, []))
            try:
                folder = scratch / str(number)
                contract = _workable(contracts.get(partition), partition, run)
                is_done = _is_done(contract, run, bulk.snapshot, config.retry_failed)
                failed = _still_failed(run.lake, contract) if is_done else publishing.publish(contract, folder).failed
                done[partition] = _Done(contract, failed, not is_done)
            except OpusError as error:
                failures.append(str(error))
            except Exception as error:  # one contract's fault costs only itself: it is logged, the run fails at its end
                logger.exception("%s failed", partition)
                failures.append(f"{partition}: {type(error).__name__}: {error}")
    keys = context.selected_asset_check_keys
    for partition, found in checks.items():
        results = _check_results(found, done.get(partition))
        yield from evaluated(context, partition, [one for one in results if check_key(one) in keys])
    chosen = [name for name in LINEAGE if key(name) in context.selected_asset_keys]
    if failures:
        for partition, one in done.items():
            version = _version(run.lake, [one.contract])
            yield from (finished(name, partition, version, **_metadata(run, name, one)) for name in chosen)
        raise dg.Failure(
            "\n".join([*failures, *(line for one in done.values() if one.is_new for line in one.failed)]),
            allow_retries=False,
        )
    for partition, one in done.items():
        for name in chosen:
            if metadata := _metadata(run, name, one):
                context.add_asset_metadata(metadata, key(name), partition_key=partition)
    version = _version(run.lake, [one.contract for one in done.values()])
    yield from (made(name, version) for name in chosen)


def _version(lake: Lake, contracts: list["ContractFolder"]) -> str:
    """Returns the id of the current result; of several contracts a hash of theirs."""
    pointers = (lake.result_pointer(contract.client, contract.contract) or {} for contract in contracts)
    results = [str(pointer.get("result", "")) for pointer in pointers]
    return results[0] if len(results) == 1 else digest(results)


def _workable(contract: "ContractFolder | None", partition: str, run: LakeRun) -> "ContractFolder":
    if contract is None:
        raise InputError(f"{partition}: no such contract in {run.typed.paths.intakes} any more")
    if contract.problem:
        raise InputError(contract.problem)
    return contract


def _is_done(contract: "ContractFolder", run: LakeRun, snapshot: str, retry_failed: bool) -> bool:
    if not is_current(run.lake, contract, snapshot, run.typed) or (retry_failed and failed_intakes(run.lake, contract)):
        return False
    logger.info("%s / %s: up to date, skipped", contract.client, contract.contract)
    return True


@dataclass(frozen=True)
class _Done:
    """A contract whose result is current now: made by this run (`is_new`) or found. `failed`: a line for each intake
    that failed in it.
    """

    contract: "ContractFolder"
    failed: list[str]
    is_new: bool


@dataclass(frozen=True)
class _Publishing:
    """Publishes the result of a contract, and collects the results of its checks."""

    run: LakeRun
    bulk: "BulkRun"
    run_id: str
    checks: list[CheckResult]

    def publish(self, contract: "ContractFolder", folder: Path) -> "ContractResult":
        """Makes the result of one contract in `folder`, checks it and publishes it. Raises CheckFailed."""
        from opus_pipelines.generation.results.contract import check_result, left_out_lines, publish_contract
        from opus_pipelines.reporting.contract_tables import report_tables
        from opus_pipelines.wkg.upkeep.retention import prune_results

        if not contract.intakes:
            logger.warning(
                "%s / %s: %s has no intakes; its result is empty", contract.client, contract.contract, contract.folder
            )
        now = datetime.now(UTC)
        lake, settings = self.run.lake, self.run.typed
        attempt = next_attempt(lake, contract, self.bulk.snapshot, settings)
        result = self.bulk.generate(contract, folder, self.run_id, now, attempt)
        result.tables.update(report_tables(result))
        found = check_result(result, len(contract.intakes))
        self.checks.extend(found)
        if wrong := [c for c in found if not c.passed]:
            raise CheckFailed(
                f"{contract.key} was not published: " + "; ".join(f"{c.name} ({c.dataset}): {c.detail}" for c in wrong)
            )
        if left := left_out_lines(result):
            logger.warning(
                "%s / %s: parts of documents were left out (%d), such as %s; `opus query left_out` lists them",
                contract.client,
                contract.contract,
                len(left),
                left[0],
            )
        publish_contract(lake, result, now)
        prune_results(lake, contract.client, contract.contract, settings.retention, now)
        return result


def _check_results(found: list[CheckResult], done: _Done | None) -> list[dg.AssetCheckResult]:
    """Returns the results of all checks of a contract; none where it failed before its tables were made."""
    if done is None:
        return list(reported(found, RESULT_CHECKS)) if found else []
    return [*reported(found, RESULT_CHECKS, UP_TO_DATE), warning(FAILED_INTAKES, done.failed)]


def _still_failed(lake: Lake, contract: "ContractFolder") -> list[str]:
    """Returns a line for each intake that failed when the current result was made."""
    failed = failed_intakes(lake, contract)
    return [f"{contract.client}/{contract.contract}/{intake}: {reason}" for intake, reason in failed]


def _metadata(run: LakeRun, name: str, done: _Done) -> dict[str, Any]:
    """Returns what a person reads beside a dataset of a contract: its rows, and the best workflows."""
    lake = run.lake
    pointer = lake.result_pointer(done.contract.client, done.contract.contract)
    if pointer is None or name == POINTER:
        return {}
    result = ResultKey.of(pointer)
    shown: dict[str, Any] = {"dagster/partition_row_count": result.rows(lake, DATASETS[name])}
    if name == OPTIMIZED.name:
        shown["page"] = page_of(result, run.typed.ops.pages_url)
        if (table := best_table(lake, result)) is not None:
            shown["best"] = table
    return shown
