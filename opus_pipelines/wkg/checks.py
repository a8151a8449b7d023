"""Checks of a rebuild: the staged datasets of a snapshot, its figures, and cases that history lost.

Each check names what it looked at and, where it failed, the first offenders. A corrupt figure blocks; a figure that is
unknown (NULL with its reason) only warns. A loss of cases is compared with the history behind the current snapshot.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from opus_pipelines.core.errors import CheckFailed, CheckResult, LakeError, equal, result
from opus_pipelines.core.ids import look_alike_form
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
from opus_pipelines.wkg.estimates.figures import NO_INTERVAL, NOT_COMPUTED, ROUNDING

if TYPE_CHECKING:
    from opus_pipelines.history.ingestion.ingest import HistoryState, SourceState


FINITE, ORDERED, RISING, WHOLE, EXPLAINED, TOLD = (
    "figures are finite",
    "intervals hold their figures",
    "quantiles never fall",
    "no figure is missing",
    "missing figures have a reason",
    "every figure could be told",
)
_SHARES = ("p_lower", "p", "p_upper"), ("q_lower", "q", "q_upper")
_QUANTILES = ("duration_ms_p50", "duration_ms_p90"), ("cost_usd_p50", "cost_usd_p90")
ORDER: dict[Dataset, tuple[tuple[str, ...], ...]] = {  # columns whose values never fall from left to right
    TASKS: (*_SHARES, *_QUANTILES),
    TASK_IMPLEMENTATIONS: (*_SHARES, *_QUANTILES),
    EDGES: (
        ("wait_ms_p50", "wait_ms_p90"),
        ("wait_with_work_n", "wait_n"),
        ("dst_p_successes", "dst_p_n", "transitions"),
        ("dst_q_successes", "dst_q_n", "transitions"),
    ),
    WAITS: (("wait_ms_p50", "wait_ms_p90"), ("with_work_n", "wait_n")),
    NEEDS: (("lift_lower", "lift", "lift_upper"), ("adjusted_lower", "adjusted_lift", "adjusted_upper")),
}
QUANTILE_COLUMNS: dict[Dataset, str] = {TASK_IMPLEMENTATIONS: "duration_ms_quantiles", WAITS: "wait_ms_quantiles"}
# A row of these exists because something was counted: none of its figures may be NULL.
COUNTED: dict[Dataset, tuple[str, ...]] = {
    WAITS: ("wait_n", "with_work_n", "wait_ms_mean", "wait_ms_p50", "wait_ms_p90", "wait_ms_quantiles"),
}
# By figure the columns of which none may be NULL without `<figure>_reason`.
REASONS: dict[Dataset, dict[str, tuple[str, ...]]] = {
    TASKS: {
        "p": ("p", "p_lower", "p_upper"),
        "q": ("q", "q_lower", "q_upper"),
        "duration": ("duration_ms_mean", "duration_ms_p50", "duration_ms_p90"),
        "wait": ("wait_ms_mean",),
        "cost": ("cost_usd_mean", "cost_usd_p50", "cost_usd_p90"),
    },
    TASK_IMPLEMENTATIONS: {
        "p": ("p", "p_lower", "p_upper"),
        "q": ("q", "q_lower", "q_upper"),
        "duration": ("duration_ms_mean", "duration_ms_p50", "duration_ms_p90"),
        "cost": ("cost_usd_mean", "cost_usd_p50", "cost_usd_p90"),
    },
    NEEDS: {
        "lift": ("lift", "lift_lower", "lift_upper"),
        "adjusted_lift": ("adjusted_lift", "adjusted_lower", "adjusted_upper"),
    },
}
FIGURE_CHECKS: dict[str, tuple[Dataset, ...]] = {
    FINITE: (TASKS, TASK_IMPLEMENTATIONS, EDGES, WAITS, NEEDS, CASES),
    ORDERED: tuple(ORDER),
    RISING: tuple(QUANTILE_COLUMNS),
    WHOLE: tuple(COUNTED),
    EXPLAINED: tuple(REASONS),
    TOLD: tuple(REASONS),
}
FIGURE_MEANINGS = {  # what must hold, by check
    FINITE: "No figure is infinite or not a number.",
    ORDERED: "A lower bound is at most its estimate, an estimate at most its upper bound, and a median "
    "at most its 90th percentile.",
    RISING: "The quantiles of a distribution never decrease.",
    WHOLE: "A row that was counted has all its figures.",
    EXPLAINED: "A figure that is NULL has its reason in the column beside it.",
    TOLD: "No estimator failed. This check warns and does not block.",
}


def check_figures(tables: Mapping[Dataset, pa.Table]) -> Iterator[CheckResult]:
    """One result for each of FIGURE_CHECKS and dataset among `tables`."""
    for dataset in (d for d in FIGURE_CHECKS[FINITE] if d in tables):
        columns = [c.name for c in dataset.columns if c.type in (pa.float64(), pa.list_(pa.float64()))]
        off = [name for name in columns if not _is_finite(tables[dataset][name])]
        yield result(FINITE, dataset, off, f"{len(columns)} columns")
    for dataset, rows in ((d, r) for d, r in ORDER.items() if d in tables):
        pairs = [pair for columns in rows for pair in pairwise(columns)]
        off = [
            f"{left} > {right}"
            for left, right in pairs
            if not _never_above(tables[dataset][left], tables[dataset][right])
        ]
        yield result(ORDERED, dataset, off, f"{len(rows)} figures")
    for dataset, name in ((d, n) for d, n in QUANTILE_COLUMNS.items() if d in tables):
        falling = _falling(tables[dataset][name])
        yield result(
            RISING, dataset, [f"{name} in {falling} rows"] if falling else [], f"{tables[dataset].num_rows} rows"
        )
    for dataset, names in ((d, n) for d, n in COUNTED.items() if d in tables):
        lacking = [f"{name} in {n} rows" for name in names if (n := tables[dataset][name].null_count)]
        yield result(WHOLE, dataset, lacking, f"{len(names)} columns")
    for dataset, of in ((d, r) for d, r in REASONS.items() if d in tables):
        table = tables[dataset]
        missing = {
            figure: sum(_unexplained(table, name, f"{figure}_reason") for name in columns)
            for figure, columns in of.items()
        }
        yield result(
            EXPLAINED, dataset, [f"{figure} in {n} rows" for figure, n in missing.items() if n], f"{len(of)} figures"
        )
        untold = [f"{figure} in {n} rows" for figure in of if (n := _failed(table[f"{figure}_reason"]))]
        yield result(TOLD, dataset, untold, f"{table.num_rows} rows", blocking=False)


def _is_finite(column: pa.ChunkedArray) -> bool:
    values = pc.list_flatten(column) if pa.types.is_list(column.type) else column
    return pc.all(pc.is_finite(values)).as_py() is not False


def _never_above(left: pa.ChunkedArray, right: pa.ChunkedArray) -> bool:
    most = pc.add(pc.abs(right), 1.0)
    return pc.all(pc.less_equal(left, pc.add(right, pc.multiply(most, ROUNDING)))).as_py() is not False


def _falling(lists: pa.ChunkedArray) -> int:
    """Rows whose list of quantiles falls anywhere."""
    whole = lists.combine_chunks()
    row, values = pc.list_parent_indices(whole), pc.list_flatten(whole)
    if len(values) < 2:
        return 0
    falls = pc.and_(pc.equal(row[1:], row[:-1]), pc.less(values[1:], values[:-1]))
    return len(pc.unique(row[1:].filter(falls)))


def _unexplained(table: pa.Table, column: str, reason: str) -> int:
    return int(pc.sum(pc.and_(pc.is_null(table[column]), pc.is_null(table[reason]))).as_py() or 0)


def _failed(reasons: pa.ChunkedArray) -> int:
    """Figures for which an estimator failed; a history that simply lacks times or costs is not among them."""
    return int(pc.sum(pc.is_in(reasons, pa.array([NOT_COMPUTED, NO_INTERVAL]))).as_py() or 0)


ALIKE = "no two clients look alike"
MINED_DATASETS = (TASKS, TASK_IMPLEMENTATIONS, EDGES, WAITS, NEEDS, ALIASES, VARIANTS, CONTEXTS, CASES)
EMBEDDED_DATASETS = (EMBEDDINGS, IMPLEMENTATION_VECTORS, PROCEDURES, PROCEDURE_VECTORS)
RECALL = "recall at 10 against exact search"
RECALLS = {EMBEDDINGS.name: "recall_at_10", IMPLEMENTATION_VECTORS.name: "recall_at_10_of_cases"}  # in the manifest
SNAPSHOT_DATASETS = (*MINED_DATASETS, *EMBEDDED_DATASETS)
DATASET_MEANINGS = {  # what must hold, by check; the reference of the checks and Dagster show it
    "records add up": "In every source file, the records used, the records that are no work and the rejected "
    "records add up to "
    "the records read.",
    "implementations as counted": "The stored history of every source has as many cases as its reader counted.",
    ALIKE: "No two names of clients differ only in case, accents, blanks, invisible characters or letters of another "
    "script: they would be two clients. This check warns and does not block.",
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
    RECALL: "The FAISS index of tasks, or of cases, finds at least the share `checks.min_recall` of the ten nearest "
    "neighbours that exact search finds.",
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
        return f"it must be an opus_pipelines.wkg.checks.Check, but is a {type(added).__name__}"
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
        d: read_table(d, dataset_folder(folder, d), columns=[name for name in d.schema.names if name != "vector"])
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


def check_recall(dataset: Dataset, found: float, least: float) -> CheckResult:
    """Of the k nearest by exact search, the share that the index of the dataset's vectors finds."""
    off = [] if found >= least else [f"{found:.4f}, less than min_recall = {least:g}"]
    return result(RECALL, dataset, off, f"{found:.4f}")


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
    yield result(ALIKE, TASKS, _alike(tables[TASKS]["clients"]), f"{len(tasks)} tasks", blocking=False)
    bare = set(tasks.to_pylist()) - set(tables[ALIASES]["task_id"].to_pylist())
    yield result("every task has a name in history", TASKS, sorted(bare), f"{len(tasks)} tasks")


def _alike(clients: pa.ChunkedArray) -> list[str]:
    """Returns the names of clients that a person takes for the same; one whose spelling does not show is escaped."""
    names: dict[str, list[str]] = {}
    for name in sorted(pc.unique(pc.list_flatten(clients)).to_pylist()):
        names.setdefault(look_alike_form(name), []).append(ascii(name))
    return [" and ".join(same) for same in names.values() if len(same) > 1]


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


LOSS = "cases are not lost"
LOSS_MEANINGS = {
    LOSS: "History has at most the share `checks.max_lost_share` fewer cases than the history behind the current "
    "snapshot, and not none at all. `opus rebuild --allow-loss` allows a loss for one run."
}
_NAMED = 3  # sources that a message names


class CasesLost(CheckFailed):
    """History lost too many cases. `check` is the failed check."""

    def __init__(self, check: CheckResult) -> None:
        super().__init__(f"nothing was published: {check.detail}")
        self.check = check


@dataclass(frozen=True)
class Loss:
    """The cases of history by source: behind the current snapshot, and now."""

    before: dict[str, int]
    now: dict[str, int]

    @property
    def share(self) -> float:
        """The share of the cases behind the snapshot that are lost, 0 where there are more than before."""
        before = sum(self.before.values())
        return max(0, before - sum(self.now.values())) / before if before else 0.0

    def __str__(self) -> str:
        change = {name: self.now.get(name, 0) - cases for name, cases in self.before.items()}
        lost = sorted((name for name in change if change[name] < 0), key=lambda name: (change[name], name))
        named = ", ".join(f"{name} {self.before[name]:,} -> {self.now.get(name, 0):,}" for name in lost[:_NAMED])
        more = f" and {len(lost) - _NAMED} more sources" if len(lost) > _NAMED else ""
        return (
            f"the current snapshot rests on {sum(self.before.values()):,} cases, and history has "
            f"{sum(self.now.values()):,} now, {self.share:.0%} fewer ({named}{more})"
        )


def loss_of(home: Lake, sources: "Iterable[SourceState]") -> Loss | None:
    """Returns the cases behind the current snapshot and those of `sources`, or None where there is no snapshot yet."""
    snapshot = home.current_snapshot()
    if snapshot is None or not (home.snapshot_folder(snapshot) / "manifest.json").is_file():
        return None
    parts = home.manifest(snapshot)["inputs"]["sources"]
    before = {part["source"]: _stored_rows(home.root / part["folder"]) for part in parts if "folder" in part}
    return Loss(before, {source.source: source.implementations for source in sources})


def check_loss(loss: Loss | None, max_lost_share: float, is_allowed: bool) -> CheckResult:
    """Returns the check of a loss. Raises CasesLost where it is larger than `max_lost_share` and not allowed."""
    if loss is None:
        return result(LOSS, SOURCES, [], "no snapshot to compare with")
    is_lost = loss.share > max_lost_share or (loss.share == 1.0 and bool(loss.before))
    if not is_lost or is_allowed:
        return result(LOSS, SOURCES, [], f"{loss.share:.1%} fewer cases")
    advice = (
        f"at most {max_lost_share:.0%} may be lost (checks.max_lost_share). Is a folder or a mount missing? "
        "`opus rebuild --allow-loss` publishes it all the same"
    )
    raise CasesLost(CheckResult(LOSS, False, f"{loss}; {advice}", SOURCES.name))


def _stored_rows(folder: Path) -> int:
    try:
        return sum(pq.ParquetFile(file).metadata.num_rows for file in sorted(folder.glob("*.parquet")))
    except OSError as error:
        raise LakeError(f"{folder} cannot be read: {error}") from None
