"""Makes the mined datasets of a snapshot from the aggregates of its sources and writes them into its folder.

The kind of each task comes from the evidence of each source, which classifies its own activities; the kinds are then
merged by task.

Adds up the aggregates of all sources and makes the rows of tasks, execution modes and edges (see schemas.py).
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from opus_pipelines.core.schemas import (
    ALIASES,
    CASES,
    CONTEXTS,
    EDGES,
    NEEDS,
    TASK_IMPLEMENTATIONS,
    TASKS,
    VARIANTS,
    WAITS,
    Dataset,
)
from opus_pipelines.core.settings import Graph
from opus_pipelines.core.statistics import Estimate
from opus_pipelines.history.records.activity_kinds import Classified, by_activity, classify_source, merge_kinds
from opus_pipelines.lake.layout import Lake, dataset_folder, read_table, table_of, write_table
from opus_pipelines.wkg import graph_metrics
from opus_pipelines.wkg.estimates.aggregate_columns import KEYS, MODE_COLUMNS, summed
from opus_pipelines.wkg.estimates.critical_tasks import critical_task_rows, lacking
from opus_pipelines.wkg.estimates.figures import (
    NO_COSTS,
    NO_TIMES,
    NO_WAITS,
    NOTHING,
    QUANTILES,
    Figures,
    figures,
    grids,
    probability,
    standard_deviations,
)
from opus_pipelines.wkg.estimates.pair_figures import FIGURES, pair_figures
from opus_pipelines.wkg.estimates.sequences import Sequences, context_table
from opus_pipelines.wkg.estimates.success import SuccessModel, from_cases
from opus_pipelines.wkg.estimates.times import WaitFigures, edge_waits, wait_rows
from opus_pipelines.wkg.graph import choose_lambda, gamma
from opus_pipelines.wkg.rebuild.aggregates import CASES_FILE, SourcePart, read_aggregate
from opus_pipelines.wkg.rebuild.cases import merge_cases
from opus_pipelines.wkg.rebuild.records import Rebuild
from opus_pipelines.wkg.task_matching.resolve import Resolution

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


PER_MS, PER_UNIT = 1_000, 1_000_000  # microseconds a millisecond; millionths a dollar, gigabyte or thread
TEXTS_SHOWN = {"instruction": 8, "input": 20, "output": 20}
_Row = dict[str, Any]
Measures = Mapping[str, Figures]


class ModeKey(NamedTuple):
    """The columns that identify an execution mode of a task."""

    task_id: str
    actor_kind: str | None
    model: str | None
    actor_group: str | None

    @classmethod
    def of(cls, row: _Row) -> "ModeKey":
        """Returns the key of a row that has these columns."""
        return cls(*(row[name] for name in cls._fields))


@dataclass
class TextCounts:
    """Counts of the texts of tasks, by field, of all clients and of each, and of execution modes (instructions)."""

    by_task: dict[tuple[str, str], Counter[str]] = field(default_factory=lambda: defaultdict(Counter))
    by_client: dict[str, dict[str | None, dict[str, Counter[str]]]] = field(default_factory=dict)
    by_mode: dict[ModeKey, Counter[str]] = field(default_factory=lambda: defaultdict(Counter))

    @classmethod
    def of(cls, texts: pa.Table) -> "TextCounts":
        """Counts the texts of the `texts` aggregate of all sources."""
        texts_of = cls()
        for row in texts.to_pylist():
            texts_of.by_task[row["task_id"], row["field"]][row["value"]] += row["count"]
            of_client = texts_of.by_client.setdefault(row["task_id"], {}).setdefault(row["client"], {})
            of_client.setdefault(row["field"], Counter())[row["value"]] += row["count"]
            if row["field"] == "instruction":
                texts_of.by_mode[ModeKey.of(row)][row["value"]] += row["count"]
        return texts_of

    def most(self, task: str, what: str) -> list[str] | None:
        """Returns the most frequent values of a field of a task; None when it has none."""
        return most_frequent(self.by_task.get((task, what)), TEXTS_SHOWN.get(what, 1))

    def said(self, task: str) -> list[_Row]:
        """Returns the texts of a task by client, those without a client first."""
        return [
            {"client": client, **_texts(partial(_most_of, of))}
            for client, of in sorted(self.by_client.get(task, {}).items(), key=lambda pair: pair[0] or "")
        ]


def most_frequent(counts: Counter[str] | None, limit: int) -> list[str] | None:
    """Returns the `limit` most frequent values, ties by alphabet; None when there are none."""
    return sorted(counts, key=lambda value: (-counts[value], value))[:limit] if counts else None


def _most_of(counts: Mapping[str, Counter[str]], what: str) -> list[str] | None:
    return most_frequent(counts.get(what), TEXTS_SHOWN.get(what, 1))


def _texts(most: "Callable[[str], list[str] | None]") -> _Row:
    """Returns the columns of a task's texts; `most` gives the most frequent ones of a field."""
    return {
        "description": next(iter(most("description") or ()), None),
        "instructions": most("instruction"),
        "inputs": most("input"),
        "outputs": most("output"),
    }


def modes_and_tasks(modes: pa.Table) -> tuple[list[_Row], list[_Row]]:
    """Adds up the `ways` aggregate of all sources by execution mode, and by task.

    Each row has its task's `industries`, and the first of them as `industry`; that of a mode has its `clients`.
    """
    by_mode = summed(modes.drop_columns(["client", "industry"]), ModeKey._fields)
    by_task = summed(by_mode.drop_columns(ModeKey._fields[1:]), ModeKey._fields[:1])
    industries, clients = _industries(modes), _clients(modes, ModeKey._fields)
    return tuple(  # type: ignore[return-value]
        [
            row
            | {"industry": industries[row["task_id"]][0], "industries": industries[row["task_id"]]}
            | ({"clients": clients[ModeKey.of(row)]} if table is by_mode else {})
            for row in table.to_pylist()
        ]
        for table in (by_mode, by_task)
    )


def _industries(modes: pa.Table) -> dict[str, list[str | None]]:
    """Returns the industries of every task, the most frequent first, ties by name."""
    counts: dict[str, Counter[str | None]] = defaultdict(Counter)
    for task, industry, n in zip(
        *(modes[c].to_pylist() for c in ("task_id", "industry", "implementations")), strict=True
    ):
        counts[task][industry] += n
    return {task: sorted(of, key=lambda i: (-of[i], i is not None, i or "")) for task, of in counts.items()}


@dataclass(frozen=True)
class TaskNames:
    """What names a task: its title, the clients and sources that have it, and whether it is a step or an event."""

    title: str
    clients: list[str]
    sources: list[str]
    kind: Classified


@dataclass(frozen=True)
class ModeFigures:
    """The figures of an execution mode: measures, standard deviations, and the quantiles of its duration in
    microseconds, None where no duration is known.
    """

    measures: Measures
    deviations: Mapping[str, float]
    duration_quantiles: Sequence[float] | None


def task_row(
    row: _Row, measures: Measures, names: TaskNames, texts_of: TextCounts, success: tuple[Estimate, Estimate]
) -> _Row:
    """Returns one row of wkg/tasks, without the metrics of the graph; `success` are its p and q."""
    p, q = success
    wait = mean(measures, "wait", PER_MS)
    return {
        "task_id": row["task_id"],
        "title": names.title,
        **_texts(partial(texts_of.most, row["task_id"])),
        "said": texts_of.said(row["task_id"]),
        "industries": sorted(i for i in row["industries"] if i is not None),
        "clients": names.clients,
        "sources": names.sources,
        "activity_kind": names.kind.kind,
        "activity_kind_reason": names.kind.reason,
        "implementations": row["implementations"],
        "first_seen": row["first_seen"],
        "last_seen": row["last_seen"],
        **probability("p", p),
        **probability("q", q),
        **_time_and_cost_columns(row, measures),
        **_wait_columns(measures),
        "wait_reason": NO_WAITS if wait is None else None,
    }


def mode_row(row: _Row, figures: ModeFigures, texts_of: TextCounts, p: Estimate, q: Estimate) -> _Row:
    """Returns one row of wkg/task_implementations."""
    mode, success = ModeKey.of(row), probability("p", p)
    measures, deviations, duration_quantiles = figures.measures, figures.deviations, figures.duration_quantiles
    return {
        **mode._asdict(),
        "clients": row["clients"],
        "implementations": row["implementations"],
        "instructions": most_frequent(texts_of.by_mode.get(mode), TEXTS_SHOWN["instruction"]),
        **success,
        **probability("q", q),
        "basis": success["p_basis"],
        **_time_and_cost_columns(row, measures),
        **_wait_columns(measures),
        "duration_ms_quantiles": None
        if duration_quantiles is None
        else [point / PER_MS for point in duration_quantiles],
        "duration_ms_deviation": _scaled(deviations.get("duration"), PER_MS),
        "cost_usd_deviation": _scaled(deviations.get("cost"), PER_UNIT),
        **{f"cost_{part}_usd": mean(measures, part, PER_UNIT) for part in ("compute", "model", "human")},
        **{name: mean(measures, name, 1) for name in ("tokens_in", "tokens_out")},
        "memory_gb": mean(measures, "memory", PER_UNIT),
        "threads": mean(measures, "threads", PER_UNIT),
    }


def edge_rows(
    edges: pa.Table,
    variants: Mapping[tuple[str, str], int],
    unit: str,
    lambda_: float,
    waits: Mapping[tuple[str | None, ...], WaitFigures],
) -> list[_Row]:
    """Returns the rows of wkg/edges from the `edges` aggregate of all sources.

    γ follows LWM (2), with |ξ| counted in `unit`. The probability is the share of all transitions out of src. `waits`
    holds the waiting times by (src, dst).
    """
    rows = summed(edges, KEYS["edges"]).to_pylist()
    out: Counter[str] = Counter()
    for row in rows:
        out[row["src"]] += row["transitions"]
    return [
        _edge(row, variants[row["src"], row["dst"]], unit, lambda_, out[row["src"]]) | _edge_wait(row, waits)
        for row in rows
    ]


def gamma_counts(edges: pa.Table, variants: Mapping[tuple[str, str], int], unit: str) -> list[int]:
    """Returns |ξ| of every edge, counted in `unit`."""
    return (
        sorted(variants.values())
        if unit == "variant"
        else sorted(summed(edges, KEYS["edges"])["transitions"].to_pylist())
    )


def mean(measures: Measures, measure: str, per: int) -> float | None:
    """Returns the mean of the known values of a measure, in the unit of datasets.md; None when none is known.

    It is the only division of the exact sum.
    """
    figures = measures.get(measure, NOTHING)
    return _divided(figures.total, figures.n * per)


def _edge(row: _Row, variants: int, unit: str, lambda_: float, out: int) -> _Row:
    return {
        "src": row["src"],
        "dst": row["dst"],
        "transitions": row["transitions"],
        "variants": variants,
        "gamma": gamma(lambda_, variants if unit == "variant" else row["transitions"]),
        "probability": row["transitions"] / out,
        "implementations": row["implementations"],
        "first_seen": row["first_seen"],
        "last_seen": row["last_seen"],
    }


def _edge_wait(row: _Row, waits: Mapping[tuple[str | None, ...], WaitFigures]) -> _Row:
    found = waits.get((row["src"], row["dst"]))
    if found is None:
        return {"wait_n": 0, "wait_with_work_n": 0}
    return {**found.columns, "wait_with_work_n": found.with_work_n}


def _wait_columns(measures: Measures) -> _Row:
    wait = measures.get("wait", NOTHING)
    quantiles = {f"wait_ms_{name}": _scaled(getattr(wait, name), PER_MS) for name in QUANTILES}
    return {"wait_ms_mean": mean(measures, "wait", PER_MS), "wait_n": wait.n, **quantiles}


def _divided(total: Decimal, by: int) -> float | None:
    return float(Decimal(total) / by) if by else None


def _time_and_cost_columns(row: _Row, measures: Measures) -> _Row:
    """Returns the columns of working time and cost, each with its count and basis.

    A cost has the basis `rate` when at least half of the costs behind it have.
    """
    duration, cost = measures.get("duration", NOTHING), measures.get("cost", NOTHING)
    return {
        "duration_ms_mean": mean(measures, "duration", PER_MS),
        "cost_usd_mean": mean(measures, "cost", PER_UNIT),
        **{f"duration_ms_{name}": _scaled(getattr(duration, name), PER_MS) for name in QUANTILES},
        **{f"cost_usd_{name}": _scaled(getattr(cost, name), PER_UNIT) for name in QUANTILES},
        "duration_n": duration.n,
        "duration_basis": "observed" if duration.n else None,
        "duration_reason": None if duration.n else NO_TIMES,
        "cost_n": cost.n,
        "cost_basis": None if not cost.n else "rate" if 2 * row["cost_rate_n"] >= cost.n else "observed",
        "cost_reason": None if cost.n else NO_COSTS,
    }


def _scaled(value: float | None, per: int) -> float | None:
    return None if value is None else value / per


def kinds_of(lake: Lake, parts: Iterable[SourcePart]) -> dict[str, Classified]:
    """Returns the kind of activity of each task id. The order of `parts` does not matter."""
    kinds_by_task: dict[str, list[tuple[str, str, int, Classified]]] = defaultdict(list)
    for part in parts:
        evidence, whole = by_activity(pq.ParquetFile(part.place(lake) / "activities.parquet").read())
        classified = classify_source(evidence, whole, dict(part.stated))
        tasks = {(key, task) for _, key, task in part.aliases if key in classified}
        for key, task in sorted(tasks):
            kinds_by_task[task].append((part.source, key, evidence[key].occurrences, classified[key]))
    return {task: merge_kinds(rows) for task, rows in kinds_by_task.items()}


def write_tables(rebuild: Rebuild) -> tuple[dict[str, int], float | None]:
    """Writes tasks, task_implementations, edges, waits, needs, task_aliases, variants, contexts and cases.

    Returns the number of rows per dataset name, and λ (None when there is no edge).
    """
    lake, parts, rule, priors = rebuild.work, rebuild.parts, rebuild.rule, rebuild.settings.priors
    names = ("ways", "histograms", "edges", "waits", "pairs", "texts")
    modes, histograms, edges, waits, pairs, texts = (read_aggregate(lake, parts, name) for name in names)
    sequences = Sequences(read_aggregate(lake, parts, "variants"))
    edge_variants = sequences.edge_variants()
    lambda_ = rule.value or choose_lambda(gamma_counts(edges, edge_variants, rule.unit))
    rows_of_edges = edge_rows(edges, edge_variants, rule.unit, lambda_ or 1.0, edge_waits(waits))
    # An outcome that the activities decide tells which cases to follow, and not how well a step of them is done.
    judging = [part for part in parts if not part.by_activities]
    judged = sequences if judging == list(parts) else Sequences(read_aggregate(lake, judging, "variants"))
    critical = critical_task_rows(judged)
    by_mode, by_task = modes_and_tasks(modes)
    model = SuccessModel(priors, by_task, by_mode, from_cases(judged, lacking(judged, critical), by_task, priors))
    texts_of = TextCounts.of(texts)
    names_of_tasks = _names_of_tasks(by_task, modes, rebuild.resolution, kinds_of(lake, parts))
    tasks = _tasks(by_task, names_of_tasks, histograms, texts_of, model)
    mode_table = _task_implementations(by_mode, by_task, histograms, texts_of, model)
    tables: dict[Dataset, pa.Table] = {
        TASKS: tasks,
        TASK_IMPLEMENTATIONS: mode_table,
        EDGES: _edges(rows_of_edges, pairs, tasks, mode_table),
        WAITS: table_of(WAITS, wait_rows(waits)),
        NEEDS: table_of(NEEDS, critical),
        ALIASES: rebuild.resolution.aliases,
        VARIANTS: sequences.table(),
        CONTEXTS: context_table(sequences),
    }
    for dataset, table in tables.items():
        write_table(dataset, table, dataset_folder(rebuild.snapshot.folder, dataset))
    counts = {dataset.name: table.num_rows for dataset, table in tables.items()}
    cases = [part.place(lake) / CASES_FILE for part in parts]
    counts[CASES.name] = merge_cases(cases, dataset_folder(rebuild.snapshot.folder, CASES))
    return counts, lambda_


def write_metrics(folder: Path, rules: Graph, session: "Callable[[], SparkSession]") -> str:
    """Adds the metrics of the graph to the written tasks and returns the name of the engine.

    `session` gives a Spark session that has GraphFrames.
    """
    tasks = read_table(TASKS, dataset_folder(folder, TASKS))
    edges = read_table(EDGES, dataset_folder(folder, EDGES), columns=["src", "dst", "transitions"])
    engine = graph_metrics.choose(edges.num_rows, rules, session)
    metrics = graph_metrics.task_metrics(tasks["task_id"], edges, rules, engine)
    of_task = metrics.take(pc.index_in(tasks["task_id"], metrics["task_id"]))
    for name in metrics.schema.names:
        tasks = tasks.set_column(tasks.schema.names.index(name), name, of_task[name])
    write_table(TASKS, tasks, dataset_folder(folder, TASKS))
    return engine.name


def _tasks(
    rows: list[_Row],
    names: Mapping[str, TaskNames],
    histograms: pa.Table,
    texts_of: TextCounts,
    model: SuccessModel,
) -> pa.Table:
    measures = figures(histograms, ("task_id",))
    return table_of(
        TASKS,
        [
            task_row(row, measures[task,], names[task], texts_of, model.of_task(row))
            for row in rows
            if (task := row["task_id"])
        ],
    )


def _task_implementations(
    rows: list[_Row],
    tasks: list[_Row],
    histograms: pa.Table,
    texts_of: TextCounts,
    model: SuccessModel,
) -> pa.Table:
    measures, of_task = (
        figures(histograms, ModeKey._fields),
        {row["task_id"]: model.of_task(row) for row in tasks},
    )
    deviations = standard_deviations(histograms, ModeKey._fields)
    duration_quantiles = grids(histograms.filter(pc.equal(histograms["measure"], "duration")), ModeKey._fields)
    return table_of(
        TASK_IMPLEMENTATIONS,
        [
            mode_row(
                row,
                ModeFigures(measures[mode], deviations.get(mode, {}), duration_quantiles.get(mode)),
                texts_of,
                *model.of_mode(row, of_task[row["task_id"]]),
            )
            for row in rows
            if (mode := ModeKey.of(row))
        ],
    )


def _edges(rows: list[_Row], pairs: pa.Table, tasks: pa.Table, modes: pa.Table) -> pa.Table:
    """Returns wkg/edges: the rows of edges with what their later task came to behind the earlier one."""
    found = pair_figures(
        pairs,
        tasks.select(["task_id", "industries", *(figure.column for figure in FIGURES)]).to_pylist(),
        modes.select(["task_id", *MODE_COLUMNS, *(figure.column for figure in FIGURES)]).to_pylist(),
    )
    return table_of(EDGES, [row | found[row["src"], row["dst"]] for row in rows])


def _names_of_tasks(
    rows: list[_Row], modes: pa.Table, resolution: Resolution, kinds: Mapping[str, Classified]
) -> dict[str, TaskNames]:
    clients, sources = _clients(modes, ModeKey._fields[:1]), _sources(resolution)
    return {
        task: TaskNames(resolution.titles[task], clients[task,], sources[task], kinds[task])
        for task in (row["task_id"] for row in rows)
    }


def _clients(modes: pa.Table, key: Sequence[str]) -> dict[tuple[str | None, ...], list[str]]:
    """Returns the clients of each task, or of each execution mode, by the columns of `key`."""
    clients: dict[tuple[str | None, ...], set[str]] = defaultdict(set)
    known = modes.filter(pc.is_valid(modes["client"]))
    for *of, client in zip(*(known[name].to_pylist() for name in (*key, "client")), strict=True):
        clients[tuple(of)].add(client)
    return defaultdict(list, {of: sorted(names) for of, names in clients.items()})


def _sources(resolution: Resolution) -> dict[str, list[str]]:
    sources: dict[str, set[str]] = defaultdict(set)
    for task, source in zip(
        resolution.aliases["task_id"].to_pylist(), resolution.aliases["source"].to_pylist(), strict=True
    ):
        sources[task].add(source)
    return {task: sorted(names) for task, names in sources.items()}
