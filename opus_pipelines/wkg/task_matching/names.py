"""The names that task resolution compares, counted per source with the evidence about them.

The names that task resolution compares: raw keys with the same normalised title are one name, in any source.

Counts the evidence about the tasks of a source per raw key: their texts, their neighbours, and their scopes. The
tables are small and hold exact integers. They are stored beside the counted names, so that task resolution needs
neither Spark nor a second pass over history.
"""

import re
import unicodedata
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from opus_pipelines.core.ids import digest
from opus_pipelines.core.versions import versions_of
from opus_pipelines.history.records.arrow_arrays import consecutive
from opus_pipelines.lake.layout import Lake, slug
from opus_pipelines.wkg.task_matching.pins import Pins

Merge = Literal["embedding", "normalised", "off"]
Identity = tuple[str | None, str]  # industry, identity


@dataclass(frozen=True)
class SourceNames:
    """The weighted counts of (industry, task_key, title) in one source."""

    source: str
    merge: bool
    counts: Mapping[tuple[str | None, str, str], int]


@dataclass(frozen=True)
class Row:
    """One raw key of one source and industry: a row of wkg/task_aliases."""

    source: str
    industry: str | None
    key: str
    titles: Counter[str]

    @property
    def title(self) -> str:
        """The most frequent title."""
        return winner(self.titles)

    @property
    def weight(self) -> int:
        """The number of times the task was carried out."""
        return sum(self.titles.values())

    @property
    def raw(self) -> Identity:
        """The identity of the key whatever its title; no other identity has two slashes after a source's name."""
        return self.industry, f"{self.source}//{self.key}"


@dataclass
class Node:
    """A name and its raw keys. `free` tells whether duplicate detection may join it to other names."""

    identity: Identity
    normal: str
    free: bool
    rows: list[Row] = field(default_factory=list)

    @property
    def words(self) -> list[str]:
        """The words of the normalised name."""
        return self.normal.split()

    @property
    def order(self) -> tuple[bool, str, str]:
        """The sort key that breaks ties."""
        return order(self.identity)


def order(identity: Identity) -> tuple[bool, str, str]:
    """Returns a sort key that puts identities without an industry first."""
    return identity[0] is not None, identity[0] or "", identity[1]


def winner(titles: Counter[str]) -> str:
    """Returns the most frequent title; ties go to the first by alphabet."""
    return min(titles, key=lambda title: (-titles[title], title))


def normalise(title: str) -> str:
    """Removes from a title what varies by habit: case, camelCase, accents, punctuation and blanks.

    The result is never empty for a title.
    """
    text = re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", " ", title)
    text = "".join(c for c in unicodedata.normalize("NFKD", text) if not unicodedata.combining(c))
    return " ".join(re.sub(r"[\W_]+", " ", text.casefold()).split()) or title.strip() or title


def nodes_of(sources: Iterable[SourceNames], merge: Merge, pins: Pins, across: bool) -> list[Node]:
    """Returns every name with its raw keys, in a fixed order. A key that a pin keeps apart is a name by itself."""
    nodes: dict[Identity, Node] = {}
    for names in sorted(sources, key=lambda s: s.source):
        for row in _rows(names):
            free = merge != "off" and names.merge and (across or row.industry is not None)
            identity = row.industry, _identity(row, free, merge, f"{row.source}/{row.key}" in pins.kept_apart)
            nodes.setdefault(identity, Node(identity, normalise(row.title), free)).rows.append(row)
    return sorted(nodes.values(), key=lambda node: node.order)


def _identity(row: Row, free: bool, merge: Merge, pinned: bool) -> str:
    """Returns the text that two raw keys of one industry share when they are the same name.

    The forms cannot collide, because the name of a folder has no slash.
    """
    if pinned:
        return row.raw[1]
    if merge == "off":
        return f"{row.source}/{row.key}"
    return normalise(row.title) if free and row.industry is not None else f"{row.source}/{normalise(row.title)}"


def _rows(names: SourceNames) -> list[Row]:
    keys: dict[tuple[str | None, str], Counter[str]] = defaultdict(Counter)
    for (industry, key, title), count in names.counts.items():
        keys[industry, key][title] += count
    return [
        Row(names.source, industry, key, titles)
        for (industry, key), titles in sorted(keys.items(), key=lambda k: order(k[0]))
    ]


SAID = pa.schema([(name, pa.string()) for name in ("industry", "task_key", "field", "value")] + [("count", pa.int64())])
FOLLOWS = pa.schema([(name, pa.string()) for name in ("industry", "before", "after")] + [("count", pa.int64())])
SCOPES = pa.schema([(name, pa.string()) for name in ("industry", "task_key", "scope")])
EVIDENCE = {"said": SAID, "follows": FOLLOWS, "scopes": SCOPES}
_VALUES_OF_KEY = 8  # most frequent values of a key's field
NEIGHBOURS_KEPT = 16  # most frequent predecessors, and successors, of a key
_LONGEST = 1_000  # characters of a value
WHOLE_SOURCE = ""  # the scope of what was carried out; a process model is a scope of its own
_FIELDS = ("task_key", "description", "instructions", "predecessors")
_EVIDENCE_COLUMNS = [
    "implementation_id",
    "industry",
    "kind",
    "weight",
    *(f"tasks.list.element.{name}" for name in _FIELDS),
]


def count_evidence(folder: Path) -> dict[str, pa.Table]:
    """Returns the three tables of the implementations in `folder`, sorted.

    `said` has descriptions and instructions. `follows` has pairs of keys, NULL before the first and after the last.
    `scopes` tells where the names of tasks were chosen together: in the whole source for executed cases, in one process
    model for modelled ones.
    """
    parts = [tables for file in sorted(folder.glob("*.parquet")) for tables in _counted(pq.ParquetFile(file))]
    joined = {
        name: pa.concat_tables([schema.empty_table(), *(part[name] for part in parts)])
        for name, schema in EVIDENCE.items()
    }
    said = _first(_summed(joined["said"], SAID), ("industry", "task_key", "field"), _VALUES_OF_KEY)
    follows = _summed(joined["follows"], FOLLOWS)
    near = [_first(follows, ("industry", end), NEIGHBOURS_KEPT) for end in ("before", "after")]
    kept = pa.concat_tables(near).group_by(FOLLOWS.names).aggregate([]).select(FOLLOWS.names)
    return {
        "said": _sorted(said),
        "follows": _sorted(kept),
        "scopes": _sorted(joined["scopes"].group_by(SCOPES.names).aggregate([])),
    }


def _counted(file: pq.ParquetFile) -> Iterator[dict[str, pa.Table]]:
    for batch in file.iter_batches(columns=_EVIDENCE_COLUMNS):
        yield {"said": _said(batch), "follows": _follows(batch), "scopes": _scopes(batch)}


def _said(batch: pa.RecordBatch) -> pa.Table:
    steps = pc.list_flatten(batch["tasks"])
    case = pc.list_parent_indices(batch["tasks"])
    key, instructions = pc.struct_field(steps, "task_key"), pc.struct_field(steps, "instructions")
    step = pc.list_parent_indices(instructions)
    parts = [
        _values(batch, case, key, pc.struct_field(steps, "description"), "description"),
        _values(batch, case.take(step), key.take(step), pc.list_flatten(instructions), "instruction"),
    ]
    return _summed(pa.concat_tables(parts), SAID)


def _values(batch: pa.RecordBatch, case: pa.Array, key: pa.Array, values: pa.Array, field: str) -> pa.Table:
    """Returns rows of `said`: values of a field with the row of the batch and the task key that each belongs to."""
    values = pc.utf8_slice_codeunits(values, 0, _LONGEST)
    columns = [batch["industry"].take(case), key, pa.repeat(field, len(values)), values, batch["weight"].take(case)]
    table = pa.table(columns, schema=SAID)
    return table.filter(pc.fill_null(pc.not_equal(pc.utf8_trim_whitespace(table["value"]), ""), False))


def _follows(batch: pa.RecordBatch) -> pa.Table:
    """Counts who follows whom: a pair of steps, a step without a predecessor, and a step that none follows."""
    steps, case = pc.list_flatten(batch["tasks"]), pc.list_parent_indices(batch["tasks"]).to_numpy()
    lengths = pc.fill_null(pc.list_value_length(batch["tasks"]), 0).to_numpy()
    before, after = consecutive(lengths, pc.struct_field(steps, "predecessors"))
    is_first, is_last = np.ones(len(steps), bool), np.ones(len(steps), bool)
    is_first[after] = is_last[before] = False
    firsts, lasts = np.flatnonzero(is_first), np.flatnonzero(is_last)
    keys = pc.struct_field(steps, "task_key").dictionary_encode()
    nobody = len(keys.dictionary)
    key = pc.fill_null(keys.indices, nobody).to_numpy()
    industries = batch["industry"].dictionary_encode("encode")
    row = case[np.concatenate([after, firsts, lasts])]
    ends = (
        np.concatenate([key[before], np.full(len(firsts), nobody), key[lasts]]),
        np.concatenate([key[after], key[firsts], np.full(len(lasts), nobody)]),
    )
    sizes = max(1, len(industries.dictionary)), nobody + 1, nobody + 1
    numbers = np.ravel_multi_index((industries.indices.to_numpy()[row], *ends), sizes)
    counted, place = np.unique(numbers, return_inverse=True)
    industry, *pair = np.unravel_index(counted, sizes)
    counts = np.zeros(len(counted), np.int64)
    np.add.at(counts, place, pc.fill_null(batch["weight"], 0).to_numpy()[row])
    names = pa.concat_arrays([keys.dictionary, pa.nulls(1, pa.string())])
    columns = [industries.dictionary.take(pa.array(industry)), *(names.take(pa.array(end)) for end in pair)]
    return pa.table([*columns, counts], schema=FOLLOWS)


def _scopes(batch: pa.RecordBatch) -> pa.Table:
    case = pc.list_parent_indices(batch["tasks"])
    model = pc.fill_null(pc.equal(batch["kind"], "model"), False)
    scope = pc.if_else(model, batch["implementation_id"], WHOLE_SOURCE)
    key = pc.struct_field(pc.list_flatten(batch["tasks"]), "task_key")
    table = pa.table([batch["industry"].take(case), key, scope.take(case)], schema=SCOPES)
    return table.group_by(SCOPES.names).aggregate([]).select(SCOPES.names)


def _summed(table: pa.Table, schema: pa.Schema) -> pa.Table:
    keys = [name for name in schema.names if name != "count"]
    return table.group_by(keys).aggregate([("count", "sum")]).rename_columns([*keys, "count"]).cast(schema)


def _first(table: pa.Table, by: Iterable[str], limit: int) -> pa.Table:
    """Of every group the `limit` rows with the largest count, ties by the other columns."""
    by = list(by)
    rest = [name for name in table.schema.names if name not in (*by, "count")]
    order = [
        *((k, "ascending", "at_start") for k in by),
        ("count", "descending", "at_end"),
        *((k, "ascending", "at_start") for k in rest),
    ]
    table = table.take(pc.sort_indices(table, sort_keys=order))
    keep, group, seen = [], None, 0
    for row in zip(*(table[name].to_pylist() for name in by), strict=True):
        seen = seen + 1 if row == group else 1
        group = row
        keep.append(seen <= limit)
    return table.filter(pa.array(keep, pa.bool_()))


def _sorted(table: pa.Table) -> pa.Table:
    return table.take(pc.sort_indices(table, sort_keys=[(k, "ascending", "at_start") for k in table.schema.names]))


NAMES_SCHEMA = pa.schema(
    [("industry", pa.string()), ("task_key", pa.string()), ("title", pa.string()), ("count", pa.int64())]
)
_NAME_COLUMNS = ["industry", "weight", "tasks.list.element.task_key", "tasks.list.element.title"]


def names_of(lake: Lake, source: str, content: str, folder: Path) -> pa.Table:
    """Returns every (industry, task_key, title) of the implementations in `folder` with its weighted count.

    The table is read from the lake when it is stored there.
    """
    file = names_place(lake, source, content) / "names.parquet"
    if not file.exists():
        with lake.staging() as staged:
            for name, table in {"names": count_names(folder), **count_evidence(folder)}.items():
                pq.write_table(table, staged / f"{name}.parquet", compression="zstd")
            lake.publish(staged, file.parent)
    return pq.ParquetFile(file).read()


def evidence_of(lake: Lake, source: str, content: str) -> dict[str, pa.Table]:
    """Returns the tables of `evidence` of a source whose names were counted."""
    place = names_place(lake, source, content)
    return {name: pq.ParquetFile(place / f"{name}.parquet").read() for name in EVIDENCE}


def names_place(lake: Lake, source: str, content: str) -> Path:
    """Returns the folder of the counted names of a source."""
    return lake.root / "aggregates" / f"source_key={slug(source)}" / f"names={digest(content, versions_of('names'))}"


def count_names(folder: Path) -> pa.Table:
    """Counts the names in the implementations of `folder`; the key replaces a missing title."""
    parts = [
        _count(batch)
        for file in sorted(folder.glob("*.parquet"))
        for batch in pq.ParquetFile(file).iter_batches(columns=_NAME_COLUMNS)
    ]
    return _summed_names(pa.concat_tables(parts)) if parts else NAMES_SCHEMA.empty_table()


def _count(batch: pa.RecordBatch) -> pa.Table:
    tasks = batch["tasks"]
    case = pc.list_parent_indices(tasks)
    step = pc.list_flatten(tasks)
    key = pc.struct_field(step, "task_key")
    title = pc.coalesce(pc.struct_field(step, "title"), key)
    return _summed_names(
        pa.table([batch["industry"].take(case), key, title, batch["weight"].take(case)], schema=NAMES_SCHEMA)
    )


def _summed_names(table: pa.Table) -> pa.Table:
    keys = ["industry", "task_key", "title"]
    summed = table.group_by(keys).aggregate([("count", "sum")]).rename_columns([*keys, "count"])
    return summed.take(pc.sort_indices(summed, sort_keys=[(k, "ascending", "at_start") for k in keys])).cast(
        NAMES_SCHEMA
    )
