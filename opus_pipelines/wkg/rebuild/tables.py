"""Makes the mined datasets of a snapshot from the aggregates of its sources and writes them into its folder.

The kind of each task comes from the evidence of each source, which classifies its own activities; the kinds are then
merged by task.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

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
from opus_pipelines.history.records.activity_kinds import Classified, by_activity, classify_source, merge_kinds
from opus_pipelines.lake.layout import Lake, dataset_folder, read_table, table_of, write_table
from opus_pipelines.wkg import graph_metrics
from opus_pipelines.wkg.estimates.case_sequences import Sequences
from opus_pipelines.wkg.estimates.critical_tasks import critical_task_rows, lacking
from opus_pipelines.wkg.estimates.deep_contexts import context_table
from opus_pipelines.wkg.estimates.histograms import figures, grids
from opus_pipelines.wkg.estimates.pair_figures import FIGURES, MODE_COLUMNS, pair_figures
from opus_pipelines.wkg.estimates.standard_deviations import standard_deviations
from opus_pipelines.wkg.estimates.success_probabilities import SuccessModel, from_cases
from opus_pipelines.wkg.estimates.waiting_times import edge_waits, wait_rows
from opus_pipelines.wkg.gamma import choose_lambda
from opus_pipelines.wkg.rebuild import merge
from opus_pipelines.wkg.rebuild.aggregates import CASES_FILE, SourcePart, read_aggregate
from opus_pipelines.wkg.rebuild.cases import merge_cases
from opus_pipelines.wkg.rebuild.records import RebuildContext, ResolvedHistory
from opus_pipelines.wkg.task_matching.resolve import Resolution

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


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


def write_tables(resolved: ResolvedHistory, context: RebuildContext) -> tuple[dict[str, int], float | None]:
    """Writes tasks, task_implementations, edges, waits, needs, task_aliases, variants, contexts and cases.

    Returns the number of rows per dataset name, and λ (None when there is no edge).
    """
    lake, parts, rule, priors = context.work, resolved.parts, resolved.rule, context.settings.priors
    names = ("ways", "histograms", "edges", "waits", "pairs", "texts")
    modes, histograms, edges, waits, pairs, texts = (read_aggregate(lake, parts, name) for name in names)
    sequences = Sequences(read_aggregate(lake, parts, "variants"))
    edge_variants = sequences.edge_variants()
    lambda_ = rule.value or choose_lambda(merge.gamma_counts(edges, edge_variants, rule.unit))
    rows_of_edges = merge.edge_rows(edges, edge_variants, rule.unit, lambda_ or 1.0, edge_waits(waits))
    # An outcome that the activities decide tells which cases to follow, and not how well a step of them is done.
    judging = [part for part in parts if not part.by_activities]
    judged = sequences if judging == list(parts) else Sequences(read_aggregate(lake, judging, "variants"))
    critical = critical_task_rows(judged)
    by_mode, by_task = merge.modes_and_tasks(modes)
    model = SuccessModel(priors, by_task, by_mode, from_cases(judged, lacking(judged, critical), by_task, priors))
    texts_of = merge.TextCounts.of(texts)
    names_of_tasks = _names_of_tasks(by_task, modes, resolved.resolution, kinds_of(lake, parts))
    tasks = _tasks(by_task, names_of_tasks, histograms, texts_of, model)
    mode_table = _task_implementations(by_mode, by_task, histograms, texts_of, model)
    tables: dict[Dataset, pa.Table] = {
        TASKS: tasks,
        TASK_IMPLEMENTATIONS: mode_table,
        EDGES: _edges(rows_of_edges, pairs, tasks, mode_table),
        WAITS: table_of(WAITS, wait_rows(waits)),
        NEEDS: table_of(NEEDS, critical),
        ALIASES: resolved.resolution.aliases,
        VARIANTS: sequences.table(),
        CONTEXTS: context_table(sequences),
    }
    for dataset, table in tables.items():
        write_table(dataset, table, dataset_folder(resolved.snapshot.folder, dataset))
    counts = {dataset.name: table.num_rows for dataset, table in tables.items()}
    cases = [part.place(lake) / CASES_FILE for part in parts]
    counts[CASES.name] = merge_cases(cases, dataset_folder(resolved.snapshot.folder, CASES))
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
    rows: list[merge.Row],
    names: Mapping[str, merge.TaskNames],
    histograms: pa.Table,
    texts_of: merge.TextCounts,
    model: SuccessModel,
) -> pa.Table:
    measures = figures(histograms, ("task_id",))
    return table_of(
        TASKS,
        [
            merge.task_row(row, measures[task,], names[task], texts_of, model.of_task(row))
            for row in rows
            if (task := row["task_id"])
        ],
    )


def _task_implementations(
    rows: list[merge.Row], tasks: list[merge.Row], histograms: pa.Table, texts_of: merge.TextCounts, model: SuccessModel
) -> pa.Table:
    measures, of_task = (
        figures(histograms, merge.ModeKey._fields),
        {row["task_id"]: model.of_task(row) for row in tasks},
    )
    deviations = standard_deviations(histograms, merge.ModeKey._fields)
    duration_quantiles = grids(histograms.filter(pc.equal(histograms["measure"], "duration")), merge.ModeKey._fields)
    return table_of(
        TASK_IMPLEMENTATIONS,
        [
            merge.mode_row(
                row,
                merge.ModeFigures(measures[mode], deviations.get(mode, {}), duration_quantiles.get(mode)),
                texts_of,
                *model.of_mode(row, of_task[row["task_id"]]),
            )
            for row in rows
            if (mode := merge.ModeKey.of(row))
        ],
    )


def _edges(rows: list[merge.Row], pairs: pa.Table, tasks: pa.Table, modes: pa.Table) -> pa.Table:
    """Returns wkg/edges: the rows of edges with what their later task came to behind the earlier one."""
    found = pair_figures(
        pairs,
        tasks.select(["task_id", "industries", *(figure.column for figure in FIGURES)]).to_pylist(),
        modes.select(["task_id", *MODE_COLUMNS, *(figure.column for figure in FIGURES)]).to_pylist(),
    )
    return table_of(EDGES, [row | found[row["src"], row["dst"]] for row in rows])


def _names_of_tasks(
    rows: list[merge.Row], modes: pa.Table, resolution: Resolution, kinds: Mapping[str, Classified]
) -> dict[str, merge.TaskNames]:
    clients, sources = _clients(modes), _sources(resolution)
    return {
        task: merge.TaskNames(resolution.titles[task], clients[task], sources[task], kinds[task])
        for task in (row["task_id"] for row in rows)
    }


def _clients(modes: pa.Table) -> dict[str, list[str]]:
    clients: dict[str, set[str]] = defaultdict(set)
    known = modes.filter(pc.is_valid(modes["client"]))
    for task, client in zip(known["task_id"].to_pylist(), known["client"].to_pylist(), strict=True):
        clients[task].add(client)
    return defaultdict(list, {task: sorted(names) for task, names in clients.items()})


def _sources(resolution: Resolution) -> dict[str, list[str]]:
    sources: dict[str, set[str]] = defaultdict(set)
    for task, source in zip(
        resolution.aliases["task_id"].to_pylist(), resolution.aliases["source"].to_pylist(), strict=True
    ):
        sources[task].add(source)
    return {task: sorted(names) for task, names in sources.items()}
