"""Computes the aggregates of a grown source from those of its earlier version and from its changed cases.

The aggregates of removed cases are subtracted, those of added cases are added, and only these cases are mined. Counts
and sums are exact integers, so the result is bit for bit that of mining all cases. A minimum or maximum cannot be
subtracted: it is kept where no removed case can have had it, or where an added case has it too. Only the most frequent
texts are kept, so a full list may lack a text that would now be among them. In these doubtful cases `combined` returns
None, and the aggregate is mined from all cases.
"""

import json
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from opus_pipelines.core.ids import digest
from opus_pipelines.lake.layout import PART, Lake, read_json, slug, write_json

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
