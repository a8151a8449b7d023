"""Mines the implementations of changed sources into one folder of mergeable aggregates per source.

Computes the aggregates of a grown source from those of its earlier version and from its changed cases. The aggregates
of removed cases are subtracted, those of added cases are added, and only these cases are mined. Counts and sums are
exact integers, so the result is bit for bit that of mining all cases. A minimum or maximum cannot be subtracted: it is
kept where no removed case can have had it, or where an added case has it too. Only the most frequent texts are kept,
so a full list may lack a text that would now be among them. In these doubtful cases `combined` returns None, and the
aggregate is mined from all cases.
"""

import json
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from opus_pipelines.core.ids import digest
from opus_pipelines.core.settings import Spark
from opus_pipelines.core.versions import versions_of
from opus_pipelines.history.records.activity_kinds import ActivityKind, evidence_of
from opus_pipelines.lake.layout import PART, Lake, read_json, slug, write_json
from opus_pipelines.wkg.estimates.aggregate_columns import AGGREGATES, KEYS, RAW_VARIANTS, VARIANTS
from opus_pipelines.wkg.estimates.next_activity import OpenRule
from opus_pipelines.wkg.mining import engines
from opus_pipelines.wkg.mining.engines import VALUES_KEPT, Source
from opus_pipelines.wkg.rebuild.cases import case_batches, task_ids, write_case_batches

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


FACTS = "part.json"  # beside the aggregates: what they were mined from
MOST_CHANGED = 0.5  # of the cases: where more changed, mining them all is as cheap
_COUNT = dict.fromkeys(("histograms", "waits", "pairs", "texts"), "count")
_COUNT |= {"ways": "implementations", "edges": "transitions"}
_VARIANT = ("industry", "client", "kind_of_case", "task_keys", "predecessors")
_VARIANT_COUNTS = ("implementations", "success_known", "successes")


@dataclass(frozen=True)
class Earlier:
    """An earlier version of a source: the folder of its aggregates, and that of the implementations behind them."""

    aggregates: Path
    implementations: Path


@dataclass(frozen=True)
class Change:
    """The row numbers of the cases that were removed from the earlier, and added in the new implementations."""

    earlier: Earlier
    removed: pa.Array
    added: pa.Array


def write_facts(folder: Path, content: str, code: str, aliases: Iterable[tuple[str | None, str, str]]) -> None:
    """Writes what the aggregates were mined from. The names of tasks are stored as hashes only."""
    write_json(
        folder / FACTS, {"content": content, "code": code, "aliases": sorted(digest(*alias) for alias in aliases)}
    )


def earlier_versions(
    lake: Lake, source: str, code: str, aliases: Iterable[tuple[str | None, str, str]]
) -> list[Earlier]:
    """Returns the mined versions of a source that can be continued, newest first.

    They were mined by the same code, and each of their tasks still has the same id.
    """
    known = {digest(*alias) for alias in aliases}
    found = []
    for folder in (lake.root / "aggregates" / f"source_key={slug(source)}").glob("content=*"):
        facts: dict[str, Any] = read_json(folder / FACTS) or {}
        implementations = (
            lake.root / "history" / "implementations" / f"source_key={slug(source)}" / f"content={facts.get('content')}"
        )
        if facts.get("code") == code and known.issuperset(facts["aliases"]) and (implementations / PART).is_file():
            found.append((folder.stat().st_mtime_ns, folder.name, Earlier(folder, implementations)))
    return [earlier for _, _, earlier in sorted(found, reverse=True, key=lambda row: row[:2])]


def change_since(earlier: Earlier, implementations: Path) -> Change | None:
    """Returns the change; None when so much changed that mining everything costs no more, or a hash is missing."""
    before, now = _hashes(earlier.implementations), _hashes(implementations)
    if before.null_count or now.null_count:  # cases without a hash cannot be told apart
        return None
    removed = pc.indices_nonzero(pc.invert(pc.is_in(before, now)))
    added = pc.indices_nonzero(pc.invert(pc.is_in(now, before)))
    if len(removed) + len(added) > MOST_CHANGED * len(now):
        return None
    return Change(earlier, removed, added)


def write_rows(implementations: Path, rows: pa.Array, source: str, folder: Path) -> None:
    """Writes some implementations as a source of their own, called `source`, for mining."""
    table = pq.ParquetFile(implementations / PART).read().take(rows)
    place = table.schema.get_field_index("source")
    table = table.set_column(place, table.schema.field(place), pa.repeat(pa.scalar(source), len(table)))
    folder.mkdir(parents=True)
    pq.write_table(table, folder / PART, compression="zstd")


class Delta(NamedTuple):
    """One aggregate of the cases before, of those that went, and of those that came; all have the same columns."""

    old: pa.Table
    removed: pa.Table
    added: pa.Table


def combined(name: str, keys: tuple[str, ...], delta: Delta, most_texts: int) -> pa.Table | None:
    """Returns the rows of one aggregate in no order; None when it must be mined from all cases."""
    old, removed, added = delta
    if name == "variants":
        return _changed_variants(old, removed, added)
    if name not in _COUNT or (name == "texts" and any(_may_lack_texts(table, keys, most_texts) for table in delta)):
        return None
    least = [column for column in old.schema.names if column.startswith("first_") or column.endswith("_min")]
    most = [column for column in old.schema.names if column.startswith("last_") or column.endswith("_max")]
    sums = [column for column in old.schema.names if column not in (*keys, *least, *most)]
    if not _extremes_hold(keys, least, most, delta):
        return None
    minus = removed
    for column in sums:
        negative = pc.negate(removed[column]).cast(removed.schema.field(column).type)
        minus = minus.set_column(minus.schema.get_field_index(column), minus.schema.field(column), negative)
    totals = _grouped(pa.concat_tables([old, minus, added]), keys, dict.fromkeys(sums, "sum"))
    extremes = _grouped(pa.concat_tables([old, added]), keys, dict.fromkeys(least, "min") | dict.fromkeys(most, "max"))
    found = _joined(totals, extremes, keys) if least or most else totals
    found = found.filter(pc.not_equal(found[_COUNT[name]], 0))
    if pc.min(found[_COUNT[name]]).as_py() is not None and pc.min(found[_COUNT[name]]).as_py() < 0:
        return None
    return found.select(old.schema.names).cast(old.schema)


def _hashes(folder: Path) -> pa.Array:
    return pq.ParquetFile(folder / PART).read(columns=["content_hash"])["content_hash"].combine_chunks()


def _may_lack_texts(table: pa.Table, keys: tuple[str, ...], most: int) -> bool:
    groups = table.group_by([key for key in keys if key != "value"]).aggregate([([], "count_all")])
    return bool(len(groups)) and pc.max(groups["count_all"]).as_py() >= most


def _grouped(table: pa.Table, keys: tuple[str, ...], how: Mapping[str, str]) -> pa.Table:
    grouped = table.group_by(list(keys)).aggregate(list(how.items()))
    return grouped.rename_columns([*keys, *how])


def _extremes_hold(keys: tuple[str, ...], least: list[str], most: list[str], delta: Delta) -> bool:
    """Tells whether every minimum and maximum is still that of the remaining and the added cases."""
    if not (least or most) or not len(delta.removed):
        return True
    before, new_rows = _by_key(delta.old, keys), _by_key(delta.added, keys)
    for row in delta.removed.to_pylist():
        key = tuple(row[name] for name in keys)
        old_row, new_row = before.get(key), new_rows.get(key, {})
        if old_row is None:
            return False
        for column in (*least, *most):
            sign = 1 if column in least else -1
            if not _extreme_holds(row[column], old_row[column], new_row.get(column), sign):
                return False
    return True


def _extreme_holds(removed: Any, old: Any, added: Any, sign: int) -> bool:
    if removed is None or (removed > old if sign > 0 else removed < old):
        return True
    return added is not None and bool(added <= removed if sign > 0 else added >= removed)


def _by_key(table: pa.Table, keys: tuple[str, ...]) -> dict[tuple[Any, ...], dict[str, Any]]:
    return {tuple(row[name] for name in keys): row for row in table.to_pylist()}


def _joined(totals: pa.Table, extremes: pa.Table, keys: tuple[str, ...]) -> pa.Table:
    """Joins both tables by key. Both have a row for every key of an old or added row; NULL is a key like any other."""
    found = _by_key(extremes, keys)
    rest = [name for name in extremes.schema.names if name not in keys]
    wanted = [found[tuple(row)] for row in zip(*(totals[key].to_pylist() for key in keys), strict=True)]
    for name in rest:
        field = extremes.schema.field(name)
        totals = totals.append_column(field, pa.array([row[name] for row in wanted], field.type))
    return totals


def _changed_variants(old: pa.Table, removed: pa.Table, added: pa.Table) -> pa.Table | None:
    counts: dict[str, Counter[str]] = {}
    rows: dict[str, dict[str, Any]] = {}
    for table, sign in ((old, 1), (removed, -1), (added, 1)):
        for row in table.to_pylist():
            key = json.dumps([row[name] for name in _VARIANT])
            rows.setdefault(key, row)
            counter = counts.setdefault(key, Counter())
            for name in _VARIANT_COUNTS:
                counter[name] += sign * row[name]
    if any(counter["implementations"] < 0 for counter in counts.values()):
        return None
    kept = [
        {name: rows[key].get(name) for name in old.schema.names} | dict(c)
        for key, c in counts.items()
        if c["implementations"]
    ]
    return pa.Table.from_pylist(kept, schema=old.schema)


BY_SIZE = Spark()
_LONG = pa.large_string()  # the texts of all variants together may have more than 2 GiB
CASES_FILE = "cases.parquet"
RAW_VARIANTS_FILE = "raw_variants"  # with the source's own task keys, to add to and to take from


@dataclass(frozen=True)
class SourcePart:
    """A source to be mined: the folder of its implementations and its aliases (industry, task_key, task_id).

    `stated` holds the activity kinds that a person stated, and `by_activities` tells whether the activities of a case
    decide its outcome. They are no part of the aggregates. `open_cases` is what is stated of cases that still run.
    """

    source: str
    content: str
    folder: Path
    aliases: tuple[tuple[str | None, str, str], ...]
    stated: tuple[tuple[str, ActivityKind], ...] = ()
    by_activities: bool = False
    open_cases: tuple[str, ...] = ()

    @cached_property
    def key(self) -> str:
        """The hash of all that the aggregates depend on, the version of mining included."""
        return digest(self.content, self.aliases, versions_of("mining"), *self.open_cases)

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
            write_case_batches(case_batches(part.folder, lookup, OpenRule.of(*part.open_cases)), staged / CASES_FILE)
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
            return _by_source(engines.mine_aggregates(sources, names, rules, session, folder / "spill"), wanted)

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
