"""Mines the implementations of changed sources into one folder of mergeable aggregates per source.

When a source grew, only its changed cases are mined (`aggregate_delta`).
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from opus_pipelines.core.ids import digest
from opus_pipelines.core.settings import Spark
from opus_pipelines.core.versions import versions_of
from opus_pipelines.history.records.activity_kinds import ActivityKind, evidence_of
from opus_pipelines.lake.layout import Lake, slug
from opus_pipelines.wkg.estimates.aggregate_columns import AGGREGATES, KEYS, RAW_VARIANTS, VARIANTS
from opus_pipelines.wkg.mining import engines
from opus_pipelines.wkg.mining.queries import VALUES_KEPT, Source
from opus_pipelines.wkg.rebuild.aggregate_delta import (
    Change,
    Delta,
    change_since,
    combined,
    earlier_versions,
    write_facts,
    write_rows,
)
from opus_pipelines.wkg.rebuild.cases import case_batches, task_ids, write_case_batches

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

BY_SIZE = Spark()
_LONG = pa.large_string()  # the texts of all variants together may have more than 2 GiB
CASES_FILE = "cases.parquet"
RAW_VARIANTS_FILE = "raw_variants"  # with the source's own task keys, to add to and to take from


@dataclass(frozen=True)
class SourcePart:
    """A source to be mined: the folder of its implementations and its aliases (industry, task_key, task_id).

    `stated` holds the activity kinds that a person stated, and `by_activities` tells whether the activities of a case
    decide its outcome. They are no part of the aggregates.
    """

    source: str
    content: str
    folder: Path
    aliases: tuple[tuple[str | None, str, str], ...]
    stated: tuple[tuple[str, ActivityKind], ...] = ()
    by_activities: bool = False

    @cached_property
    def key(self) -> str:
        """The hash of all that the aggregates depend on: implementations, aliases, the version of mining."""
        return digest(self.content, self.aliases, versions_of("mining"))

    def place(self, lake: Lake) -> Path:
        """Returns the folder of its aggregates."""
        return lake.root / "aggregates" / f"source_key={slug(self.source)}" / f"content={self.key}"


def mine_missing(
    lake: Lake, parts: Iterable[SourcePart], session: "Callable[[], SparkSession]", rules: Spark = BY_SIZE
) -> list[str]:
    """Mines the sources without aggregates in one pass over all of them, and returns their names.

    `session` is called only where so much is mined that Spark does it (`rules.mine_from_mib`).
    """
    missing = _missing(lake, parts)
    if not missing:
        return []
    mined = _mined_rows(lake, missing, rules, session)
    for part in missing:
        lookup = {(industry, key): task for industry, key, task in part.aliases}
        with lake.staging() as staged:
            for name in AGGREGATES:
                pq.write_table(
                    _own(name, mined[part.source, name], lookup), staged / f"{name}.parquet", compression="zstd"
                )
            pq.write_table(
                _raw_variants(mined[part.source, "variants"]),
                staged / f"{RAW_VARIANTS_FILE}.parquet",
                compression="zstd",
            )
            write_facts(staged, part.content, versions_of("mining"), part.aliases)
            for name in AGGREGATES:
                del mined[part.source, name]
            write_case_batches(case_batches(part.folder, lookup), staged / CASES_FILE)
            pq.write_table(evidence_of(part.folder), staged / "activities.parquet", compression="zstd")
            lake.publish(staged, part.place(lake))
    return [part.source for part in missing]


def bytes_to_mine(lake: Lake, parts: Iterable[SourcePart]) -> int:
    """Returns the size of the implementations of the sources without aggregates, on disk."""
    return sum(file.stat().st_size for part in _missing(lake, parts) for file in part.folder.glob("*.parquet"))


def _missing(lake: Lake, parts: Iterable[SourcePart]) -> list[SourcePart]:
    return [part for part in parts if not part.place(lake).exists()]


def read_aggregate(lake: Lake, parts: Iterable[SourcePart], name: str) -> pa.Table:
    """Returns the rows of one aggregate of all sources, in their order.

    Rows of different sources are not added up yet.
    """
    schema = AGGREGATES[name]
    tables = [pq.ParquetFile(part.place(lake) / f"{name}.parquet").read() for part in parts]
    return pa.concat_tables([schema.empty_table(), *tables])


Mined = dict[tuple[str, str], pa.Table]  # source and aggregate → rows


@dataclass
class _Grown:
    """A source of which only the changed cases are mined.

    `jobs` are two temporary sources: its removed cases and its added cases.
    """

    source: str
    change: Change
    jobs: list[SourcePart]

    def add(self, name: str, mined: Mined) -> bool:
        """Adds one aggregate of the source to `mined`; returns False when it must be mined from all cases."""
        stored = RAW_VARIANTS_FILE if name == "variants" else name
        old = pq.ParquetFile(self.change.earlier.aggregates / f"{stored}.parquet").read()
        removed, added = (mined[job.source, name].select(old.schema.names).cast(old.schema) for job in self.jobs)
        found = combined(name, KEYS.get(name, ()), Delta(old, removed, added), VALUES_KEPT)
        if found is not None:
            mined[self.source, name] = found
        return found is not None


def _mined_rows(lake: Lake, parts: list[SourcePart], rules: Spark, session: "Callable[[], SparkSession]") -> Mined:
    """Returns the rows of every aggregate of every source.

    They are mined from all its cases, or from those that changed since it was mined last.
    """
    with lake.staging() as folder:
        grown = {part.source: found for part in parts if (found := _grown(lake, part, folder)) is not None}
        jobs = [job for part in parts for job in (grown[part.source].jobs if part.source in grown else [part])]

        def rows_of(wanted: list[SourcePart], names: tuple[str, ...]) -> Mined:
            sources = [Source(part.source, part.folder, part.aliases) for part in wanted]
            return _by_source(engines.mine(sources, names, rules, session, folder / "spill"), wanted)

        mined = rows_of(jobs, tuple(AGGREGATES))
        for name in AGGREGATES:
            doubtful = [part for part in parts if part.source in grown and not grown[part.source].add(name, mined)]
            if doubtful:
                mined |= rows_of(doubtful, (name,))
    return mined


def _grown(lake: Lake, part: SourcePart, folder: Path) -> _Grown | None:
    """Returns what to mine of a source that was mined before; None when all of it must be mined."""
    earlier = next(iter(earlier_versions(lake, part.source, versions_of("mining"), part.aliases)), None)
    change = change_since(earlier, part.folder) if earlier is not None else None
    if change is None:
        return None
    jobs = []
    for side, implementations, rows in (
        ("went", change.earlier.implementations, change.removed),
        ("came", part.folder, change.added),
    ):
        name = f"{part.source}\n{side}"  # no source's name has a line end
        place = folder / slug(name)
        write_rows(implementations, rows, name, place)
        jobs.append(SourcePart(name, part.content, place, part.aliases))
    return _Grown(part.source, change, jobs)


def _by_source(tables: dict[str, pa.Table], parts: list[SourcePart]) -> Mined:
    """Splits the rows by source; a source without rows gets an empty table."""
    return {
        (part.source, name): table.filter(pc.equal(table["source"], part.source))
        for part in parts
        for name, table in tables.items()
    }


def _raw_variants(table: pa.Table) -> pa.Table:
    """Returns the variants with the task keys of the source, in a fixed order."""
    table = table.select(RAW_VARIANTS.names).cast(RAW_VARIANTS).combine_chunks()
    return table.take(_order_of_variants(table))


def _own(name: str, table: pa.Table, lookup: dict[tuple[str | None, str], str]) -> pa.Table:
    """Returns the rows of one source in the schema of the aggregate and in a fixed order."""
    if name == "variants":
        return _variants(table.combine_chunks(), lookup)
    table = table.select(AGGREGATES[name].names).cast(AGGREGATES[name])
    return table.take(pc.sort_indices(table, sort_keys=[(key, "ascending", "at_start") for key in KEYS[name]]))


def _variants(table: pa.Table, lookup: dict[tuple[str | None, str], str]) -> pa.Table:
    if not table.num_rows:
        return VARIANTS.empty_table()
    tasks = task_ids(table["industry"].combine_chunks(), table["task_keys"].combine_chunks(), lookup)
    rows = table.append_column("tasks", tasks).select(VARIANTS.names).cast(VARIANTS)
    return rows.take(_order_of_variants(rows))


def _order_of_variants(table: pa.Table) -> pa.Array:
    """Returns the order of the rows by what Python writes for them as tuples."""
    columns = [_written(column.combine_chunks()) for column in table.columns]
    return pc.sort_indices(pc.binary_join_element_wise(*columns, pa.scalar(")", _LONG), pa.scalar(", ", _LONG)))


def _written(values: pa.Array) -> pa.Array:
    """Returns what Python writes for each value."""
    if pa.types.is_list(values.type) and pa.types.is_string(values.type.value_type):
        offsets = np.append(0, np.cumsum(pc.fill_null(pc.list_value_length(values), 0)))
        lists = pa.LargeListArray.from_arrays(pa.array(offsets), _written(pc.list_flatten(values)))
        opening, comma, closing, nothing, none = (pa.scalar(text, _LONG) for text in ("[", ", ", "]", "", "None"))
        joined = pc.binary_join_element_wise(opening, pc.binary_join(lists, comma), closing, nothing)
        return pc.if_else(pc.is_valid(values), joined, none)
    if pa.types.is_list(values.type):
        return pa.array(map(repr, values.to_pylist()), _LONG)
    encoded = values.dictionary_encode("encode")
    return pa.array(map(repr, encoded.dictionary.to_pylist()), _LONG).take(encoded.indices)
