"""Checks on staged data: each names what it looked at and, where it failed, the first offenders."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from opus_pipelines.core.check_results import CheckResult, equal, result
from opus_pipelines.core.registry import Registry, takes
from opus_pipelines.core.schemas import (
    ALIASES,
    CASES,
    CONTEXTS,
    DATASETS,
    EDGES,
    EMBEDDINGS,
    IMPLEMENTATION_VECTORS,
    NEEDS,
    PROCEDURE_VECTORS,
    PROCEDURES,
    SOURCES,
    TASK_IMPLEMENTATIONS,
    TASKS,
    VARIANTS,
    WAITS,
    Dataset,
)
from opus_pipelines.lake.atomic_files import read_json_value
from opus_pipelines.lake.layout import Lake, dataset_folder, read_table
from opus_pipelines.wkg.checks.figure_checks import check_figures

if TYPE_CHECKING:
    from opus_pipelines.history.ingestion.ingest import HistoryState

MINED_DATASETS = (TASKS, TASK_IMPLEMENTATIONS, EDGES, WAITS, NEEDS, ALIASES, VARIANTS, CONTEXTS, CASES)
EMBEDDED_DATASETS = (EMBEDDINGS, IMPLEMENTATION_VECTORS, PROCEDURES, PROCEDURE_VECTORS)
RECALL = "recall at 10 against exact search"
SNAPSHOT_DATASETS = (*MINED_DATASETS, *EMBEDDED_DATASETS)
DATASET_MEANINGS = {  # what must hold, by check; the reference of the checks and Dagster show it
    "records add up": "In every source file, the records used, the records that are no work and the rejected "
    "records add up to "
    "the records read.",
    "implementations as counted": "The stored history of every source has as many cases as its reader counted.",
    "schema": "Every Parquet file has exactly the columns and types of the data dictionary.",
    "keys are unique": "No two rows have the same key.",
    "every task exists": "Every task id in the dataset is a row of wkg/tasks.",
    "every task has a name in history": "Every task has at least one name that a source uses.",
    "probabilities lie in [0, 1]": "Every probability lies between 0 and 1.",
    "task implementations add up to the cases'": "The occurrences of all tasks add up to the steps of all cases.",
    "ways add up to the cases'": "The occurrences of all execution modes of tasks add up to the steps of all cases.",
    "variants add up to the cases": "The cases of all variants add up to all cases.",
    "no edge has more implementations than transitions": "An edge is in at most as many cases as it has transitions.",
    "probabilities out of a task add up to 1": "The transition probabilities of the edges out of a task add up to 1.",
    "successes are among the cases": "In the statistics of critical tasks, no group has more successes than cases.",
    "every task has a vector": "The number of task vectors equals the number of tasks.",
    RECALL: "The FAISS index finds at least the share `checks.min_recall` of the ten nearest neighbours "
    "that exact search finds.",
    "the index holds every vector": "The ids of the FAISS index are the ids of the task vectors.",
}


@dataclass(frozen=True)
class Check:
    """A check that an installed distribution adds: `offenders` gives a text for each offender among the dataset's rows.

    `dataset`: a dataset of a snapshot or of a result. `meaning`: a sentence that says what must hold. `columns`: those
    of the table that `offenders` gets. A check that is not `blocking` only warns.
    """

    name: str
    dataset: str
    meaning: str
    columns: tuple[str, ...]
    offenders: Callable[[pa.Table], Iterable[str]]
    blocking: bool = True


def _misfit(name: str, added: Any) -> str:
    if not isinstance(added, Check):
        return f"it must be an opus_pipelines.wkg.checks.checks.Check, but is a {type(added).__name__}"
    dataset = DATASETS.get(added.dataset)
    if dataset is None or dataset.name.startswith("history/"):
        return f"{added.dataset!r} is no dataset of a snapshot or of a result"
    if unknown := set(added.columns) - set(dataset.schema.names):
        return f"{added.dataset} has no column {', '.join(sorted(unknown))}"
    if added.name in DATASET_MEANINGS:
        return f"{added.name!r} is the name of a built-in check"
    return takes(added.offenders, "table")


CHECKS: Registry[Check] = Registry("checks", {}, _misfit)


def added_checks(datasets: Iterable[str]) -> list[Check]:
    """Returns the added checks of these datasets, by the names of their entries."""
    wanted = set(datasets)
    return [check for check in CHECKS.entries().values() if check.dataset in wanted]


def run_check(check: Check, table: pa.Table) -> CheckResult:
    """Returns what an added check finds in its dataset's table."""
    offenders = check.offenders(table)
    return result(check.name, DATASETS[check.dataset], offenders, f"{table.num_rows} rows", check.blocking)


def check_snapshot(folder: Path, datasets: tuple[Dataset, ...] = SNAPSHOT_DATASETS) -> list[CheckResult]:
    """The checks of these datasets in a snapshot's folder: schemas first; the others only when every schema holds."""
    schemas = [_schema(dataset, dataset_folder(folder, dataset)) for dataset in datasets]
    if not all(check.passed for check in schemas):
        return schemas
    tables = {
        d: read_table(d, dataset_folder(folder, d), columns=_columns(d))
        for d in SNAPSHOT_DATASETS
        if d in (TASKS, *datasets)
    }
    found = [*_keys(tables), *_references(tables), *_ranges(tables), *check_figures(tables)]
    if set(MINED_DATASETS) <= set(tables):
        found += _sums(tables)
    if EMBEDDINGS in tables:
        found.append(equal("every task has a vector", EMBEDDINGS, tables[EMBEDDINGS].num_rows, tables[TASKS].num_rows))
        found.append(_index(folder, tables[EMBEDDINGS]))
    for added in added_checks(dataset.name for dataset in datasets):
        dataset = DATASETS[added.dataset]
        found.append(
            run_check(added, read_table(dataset, dataset_folder(folder, dataset), columns=list(added.columns)))
        )
    return [*schemas, *(check for check in found if check.dataset in {d.name for d in datasets})]


def check_recall(found: float, least: float) -> CheckResult:
    """Of the k nearest by exact search, the share that the index finds."""
    off = [] if found >= least else [f"{found:.4f}, less than min_recall = {least:g}"]
    return result(RECALL, EMBEDDINGS, off, f"{found:.4f}")


def check_history(lake: Lake, state: "HistoryState") -> list[CheckResult]:
    """Of every source file: records = used + not work + rejected; and every source's folder holds the implementations
    it says.
    """
    off = [f"{row['source']}/{row['path']}" for row in state.files if not _adds_up(row)]
    counts = {source.source: (_rows(source.folder), source.implementations) for source in state.sources}
    wrong = [f"{name}: {found} rows, {said} said" for name, (found, said) in counts.items() if found != said]
    return [
        result("records add up", SOURCES, off, f"{len(state.files)} files"),
        result("implementations as counted", SOURCES, wrong, f"{len(counts)} sources"),
    ]


def _adds_up(row: dict[str, Any]) -> bool:
    parts = [row.get(f"records_{part}") or 0 for part in ("used", "not_work", "rejected")]
    return row.get("records") is None or row["records"] == sum(parts)


def _rows(folder: Path) -> int:
    return sum(pq.ParquetFile(file).metadata.num_rows for file in folder.glob("*.parquet"))


def _schema(dataset: Dataset, folder: Path) -> CheckResult:
    files = sorted(folder.glob("*.parquet"))
    wrong = ["no file"] if not files else []
    for file in files:
        found = pq.ParquetFile(file).schema_arrow
        expected = dataset.with_dimension_of(found)
        wrong += [str(field) for field in found if field not in list(expected)]
        wrong += [f"{name} missing" for name in expected.names if name not in found.names]
    return result("schema", dataset, wrong, f"{len(dataset.columns)} columns")


def _columns(dataset: Dataset) -> list[str]:
    return [name for name in dataset.schema.names if name != "vector"]


def _keys(tables: dict[Dataset, pa.Table]) -> Iterator[CheckResult]:
    for dataset, table in tables.items():
        distinct = table.group_by(list(dataset.key)).aggregate([]).num_rows
        off = [f"{table.num_rows - distinct} rows share a key"] if distinct != table.num_rows else []
        yield result("keys are unique", dataset, off, f"{table.num_rows} rows")


def _references(tables: dict[Dataset, pa.Table]) -> Iterator[CheckResult]:
    tasks = tables[TASKS]["task_id"].combine_chunks()
    columns = {
        EDGES: ("src", "dst"),
        TASK_IMPLEMENTATIONS: ("task_id",),
        NEEDS: ("task_id", "alternatives"),
        ALIASES: ("task_id",),
        VARIANTS: ("tasks",),
        CONTEXTS: ("tasks", "next_task"),
        CASES: ("tasks",),
        EMBEDDINGS: ("task_id",),
    }
    for dataset, names in ((d, columns[d]) for d in tables if d in columns):
        unknown: set[str] = set()
        for name in names:
            column = tables[dataset][name]
            ids = pc.list_flatten(column) if pa.types.is_list(column.type) else column
            ids = pc.unique(ids).drop_null()
            unknown |= {str(task) for task in ids.filter(pc.invert(pc.is_in(ids, tasks))).to_pylist()}
        yield result("every task exists", dataset, sorted(unknown), f"{len(tasks)} tasks")
    if ALIASES not in tables:
        return
    bare = set(tasks.to_pylist()) - set(tables[ALIASES]["task_id"].to_pylist())
    yield result("every task has a name in history", TASKS, sorted(bare), f"{len(tasks)} tasks")


def _ranges(tables: dict[Dataset, pa.Table]) -> Iterator[CheckResult]:
    for dataset, table in tables.items():
        columns = [c.name for c in dataset.columns if c.type_name == "prob"]
        off = [name for name in columns if not _within(table[name])]
        if columns:
            yield result("probabilities lie in [0, 1]", dataset, off, f"{len(columns)} columns")


def _within(column: pa.ChunkedArray) -> bool:
    good = pc.and_(pc.greater_equal(column, 0.0), pc.less_equal(column, 1.0))
    return bool(pc.all(good).as_py() is not False)


def _sums(tables: dict[Dataset, pa.Table]) -> Iterator[CheckResult]:
    cases, edges = tables[CASES], tables[EDGES]
    steps = _total(pc.multiply(pc.fill_null(pc.list_value_length(cases["tasks"]).cast(pa.int64()), 0), cases["weight"]))
    weight = _total(cases["weight"])
    yield equal("task implementations add up to the cases'", TASKS, _total(tables[TASKS]["implementations"]), steps)
    yield equal(
        "ways add up to the cases'",
        TASK_IMPLEMENTATIONS,
        _total(tables[TASK_IMPLEMENTATIONS]["implementations"]),
        steps,
    )
    yield equal("variants add up to the cases", VARIANTS, _total(tables[VARIANTS]["implementations"]), weight)
    fewer = edges.filter(pc.less(edges["transitions"], edges["implementations"]))
    yield result("no edge has more implementations than transitions", EDGES, _names(fewer), f"{edges.num_rows} edges")
    out = edges.group_by("src").aggregate([("probability", "sum")])
    off = out.filter(pc.greater(pc.abs(pc.subtract(out["probability_sum"], 1.0)), 1e-9))["src"].to_pylist()
    yield result("probabilities out of a task add up to 1", EDGES, off, f"{out.num_rows} tasks")
    needs = tables[NEEDS]
    over = pc.or_(
        pc.greater(needs["success_with"], needs["cases_with"]),
        pc.greater(needs["success_without"], needs["cases_without"]),
    )
    yield result(
        "successes are among the cases", NEEDS, needs.filter(over)["task_id"].to_pylist(), f"{needs.num_rows} rows"
    )


def _index(folder: Path, embeddings: pa.Table) -> CheckResult:
    ids: Any = read_json_value(folder / "index" / "ids.json") or []
    off = (
        []
        if sorted(ids) == sorted(embeddings["task_id"].to_pylist())
        else [f"{len(ids)} ids for {embeddings.num_rows} vectors"]
    )
    return result("the index holds every vector", EMBEDDINGS, off, f"{len(ids)} ids")


def _total(column: Any) -> int:
    return pc.sum(column).as_py() or 0


def _names(edges: pa.Table) -> list[str]:
    return [f"{src} -> {dst}" for src, dst in zip(edges["src"].to_pylist(), edges["dst"].to_pylist(), strict=True)]
