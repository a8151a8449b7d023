"""The mined datasets of a snapshot, put together from the aggregates of its sources and written into its folder."""

from collections import Counter, defaultdict
from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc

from opus_pipelines.lake import Lake, table_of, write_table
from opus_pipelines.schemas import ALIASES, CASES, EDGES, NEEDS, TASKS, VARIANTS, WAYS, Dataset
from opus_pipelines.settings import Settings
from opus_pipelines.wkg import merge
from opus_pipelines.wkg.aggregates import SourcePart, read_aggregate
from opus_pipelines.wkg.gamma import LambdaRule, choose_lambda
from opus_pipelines.wkg.needs import needs
from opus_pipelines.wkg.resolve import Resolution
from opus_pipelines.wkg.sequences import Sequences
from opus_pipelines.wkg.success import SuccessModel, case_records


def write_tables(
    lake: Lake, parts: Sequence[SourcePart], resolution: Resolution, settings: Settings, rule: LambdaRule, folder: Path
) -> tuple[dict[str, int], float | None]:
    """Write tasks, task_implementations, edges, needs, task_aliases, variants, cases; returns their rows, and λ (None: no edge)."""
    ways, edges, texts = (read_aggregate(lake, parts, name) for name in ("ways", "edges", "texts"))
    sequences = Sequences(read_aggregate(lake, parts, "variants"))
    edge_variants = sequences.edge_variants()
    lambda_ = rule.value or choose_lambda(merge.gamma_counts(edges, edge_variants, rule.unit))
    edge_table = table_of(EDGES, merge.edge_rows(edges, edge_variants, rule.unit, lambda_ or 1.0))
    tasks, way_table = _tasks_and_ways(ways, texts, sequences, resolution, settings, edge_table)
    tables: dict[Dataset, pa.Table] = {
        TASKS: tasks, WAYS: way_table, EDGES: edge_table, NEEDS: table_of(NEEDS, needs(sequences)),
        ALIASES: resolution.aliases, VARIANTS: sequences.table(), CASES: read_aggregate(lake, parts, "cases"),
    }
    for dataset, table in tables.items():
        write_table(dataset, table, place(folder, dataset))
    return {dataset.name: table.num_rows for dataset, table in tables.items()}, lambda_


def place(folder: Path, dataset: Dataset) -> Path:
    """A dataset's folder inside a snapshot's."""
    return folder / dataset.name.removeprefix("wkg/")


def _tasks_and_ways(
    ways: pa.Table, texts: pa.Table, sequences: Sequences, resolution: Resolution, settings: Settings, edges: pa.Table
) -> tuple[pa.Table, pa.Table]:
    by_way, by_task = merge.ways_and_tasks(ways)
    model = SuccessModel(settings.priors, by_task, case_records(sequences, settings.priors))
    estimates = merge.estimates(by_task, model)
    said, clients, sources = merge.Said.of(texts), _clients(ways), _sources(resolution)
    in_degree, out_degree = Counter(edges["dst"].to_pylist()), Counter(edges["src"].to_pylist())
    task_rows = [
        merge.task_row(row, resolution.titles[task], said, clients[task], sources[task], *estimates[task])
        | {"in_degree": in_degree[task], "out_degree": out_degree[task]}
        for row in by_task if (task := row["task_id"])
    ]
    way_rows = [
        merge.way_row(
            row, said,
            model.of_way(estimates[row["task_id"]][0], row["p_successes"], row["p_n"]),
            model.of_way(estimates[row["task_id"]][1], row["q_successes"], row["q_n"]),
        )
        for row in by_way
    ]
    return table_of(TASKS, task_rows), table_of(WAYS, way_rows)


def _clients(ways: pa.Table) -> dict[str, list[str]]:
    clients: dict[str, set[str]] = defaultdict(set)
    known = ways.filter(pc.is_valid(ways["client"]))
    for task, client in zip(known["task_id"].to_pylist(), known["client"].to_pylist(), strict=True):
        clients[task].add(client)
    return defaultdict(list, {task: sorted(names) for task, names in clients.items()})


def _sources(resolution: Resolution) -> dict[str, list[str]]:
    sources: dict[str, set[str]] = defaultdict(set)
    for task, source in zip(resolution.aliases["task_id"].to_pylist(), resolution.aliases["source"].to_pylist(), strict=True):
        sources[task].add(source)
    return {task: sorted(names) for task, names in sources.items()}
