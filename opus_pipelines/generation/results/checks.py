"""Blocking checks on a contract's tables before they are written: what fails here is never visible."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping

import pyarrow as pa
import pyarrow.compute as pc

from opus_pipelines.core.errors import CheckResult
from opus_pipelines.core.schemas import DATASETS, INTAKES, OPTIMIZED, WORKFLOW_EDGES, WORKFLOW_TASKS
from opus_pipelines.generation.results.contract import ContractResult
from opus_pipelines.generation.results.staged import columns_of, schemas_of
from opus_pipelines.wkg.checks import added_checks, run_check

MEANINGS = {  # what must hold, by check
    "schema": "Every table has the columns and types of the data dictionary.",
    "probabilities": "Every probability lies between 0 and 1.",
    "ranks_without_gaps": "The ranks of each Intention are 1, 2, 3 and so on, without a gap and without a repetition.",
    "ends_are_nodes": "Both ends of every edge are nodes of the same workflow.",
    "every_intake_has_a_row": "Every intake of the contract has one row, also where it failed or was refused.",
}


def check_result(result: ContractResult, intakes: int) -> list[CheckResult]:
    """Schemas, keys, probabilities, ranks, ends of edges, and that each of the contract's `intakes` has its row."""
    tables = result.tables
    return [
        *(_schema(name, schemas_of(tables, name)) for name in tables),
        *(_probabilities(name, tables) for name in tables if _probability_columns(name)),
        _ranks(columns_of(tables, OPTIMIZED.name, ["intake_id", "intention_id", "rank"])),
        _ends(*(columns_of(tables, d.name, ends) for d, ends in _ENDS.items())),
        _intakes(result.counts[INTAKES.name], intakes),
        *(run_check(check, columns_of(tables, check.dataset, check.columns)) for check in added_checks(tables)),
    ]


_ENDS = {WORKFLOW_EDGES: ["workflow_id", "src", "dst"], WORKFLOW_TASKS: ["workflow_id", "node"]}


def _schema(name: str, schemas: Iterable[pa.Schema]) -> CheckResult:
    dataset = DATASETS[name]
    wrong = set()
    for schema in schemas:
        wrong |= {f.name for f in dataset.with_dimension_of(schema) if f not in list(schema)}
    return _said("schema", name, sorted(wrong))


def _probability_columns(name: str) -> list[str]:
    return [c.name for c in DATASETS[name].columns if c.type_name == "prob"]


def _probabilities(name: str, tables: Mapping[str, pa.Table]) -> CheckResult:
    columns = _probability_columns(name)
    table = columns_of(tables, name, columns)
    ends = {column: pc.min_max(table[column]).as_py() for column in columns}
    return _said(
        "probabilities",
        name,
        [c for c, e in ends.items() if e["min"] is not None and not 0 <= e["min"] <= e["max"] <= 1],
    )


def _ranks(optimized: pa.Table) -> CheckResult:
    found: dict[tuple[str, str], list[int]] = defaultdict(list)
    for row in optimized.to_pylist():
        found[row["intake_id"], row["intention_id"]].append(row["rank"])
    off = [key for key, ranks in found.items() if sorted(ranks) != list(range(1, len(ranks) + 1))]
    return _said("ranks_without_gaps", OPTIMIZED.name, off)


def _ends(edges: pa.Table, tasks: pa.Table) -> CheckResult:
    nodes = set(_pairs(tasks, "node"))
    off = [end for column in ("src", "dst") for end in _pairs(edges, column) if end not in nodes]
    return _said("ends_are_nodes", WORKFLOW_EDGES.name, off)


def _intakes(found: int, expected: int) -> CheckResult:
    return _said("every_intake_has_a_row", INTAKES.name, [] if found == expected else [f"{found} of {expected}"])


def _pairs(table: pa.Table, column: str) -> Iterator[tuple[str, str]]:
    return zip(table["workflow_id"].to_pylist(), table[column].to_pylist(), strict=True)


def _said(name: str, dataset: str, wrong: Iterable[object]) -> CheckResult:
    off = list(wrong)
    return CheckResult(name, not off, f"{len(off)} wrong: {', '.join(map(str, off[:5]))}" if off else "", dataset)
