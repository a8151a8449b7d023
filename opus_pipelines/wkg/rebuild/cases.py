"""Translates implementations into task ids (wkg/cases), one source at a time, and cuts the procedures of history.

Cuts the procedures of history into parts, and assigns each case to the part that it followed. Each distinct text is
stored once.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from opus_pipelines.core.ids import make_id
from opus_pipelines.core.schemas import CASES, PROCEDURE_VECTORS, PROCEDURES, TASKS
from opus_pipelines.history.records.arrow_arrays import Bools, Floats, Ints, Longs, distinct
from opus_pipelines.lake.atomic_files import full_disk_named
from opus_pipelines.lake.layout import PART, dataset_folder, read_table, table_of, write_table
from opus_pipelines.language.embedding.encoder import TextEncoder
from opus_pipelines.language.embedding.texts import Part, object_of, part_similarity, parts, plain
from opus_pipelines.wkg.estimates.next_activity import (
    NOTHING_STATED,
    PROBABLY_ENDED,
    Events,
    OpenRule,
    continuations,
)
from opus_pipelines.wkg.estimates.sequences import text_lists
from opus_pipelines.wkg.mining.implementations import actor_groups
from opus_pipelines.wkg.rebuild.vectors import Progress

Lookup = Mapping[tuple[str | None, str], str]  # industry, task_key → task_id


class _AsWritten(dict[tuple[str | None, str], str]):
    """The lookup of a source that nothing was matched of: each activity is a task of its own."""

    def get(self, key: tuple[str | None, str], default: object = None) -> str:
        """Returns the name of the activity."""
        return key[1]


_AS_WRITTEN = _AsWritten()
_PLAIN = [
    "implementation_id",
    "source",
    "industry",
    "client",
    "contract",
    "title",
    "success",
    "expected_outcome",
    "weight",
    "attributes",
    "started_at",
]
_BATCH_CASES = 16_384
_ROW_GROUP, _ROWS = 8_192, 65_536  # rows of a row group of one source, and of the snapshot
_OF_CASE = ("industry", "attributes", "kind")
_WHEN = tuple(f"tasks.list.element.{name}" for name in ("task_key", "started_at", "ended_at"))
_KIND = "kind"
_END = "ended_at"
_NEVER = np.iinfo(np.int64).min
_STEP = [
    "task_key",
    "actor",
    "cost_usd",
    "duration_ms",
    "actor_kind",
    "model",
    "predecessors",
    "started_at",
    "ended_at",
    "wait_ms",
]


def case_batches(folder: Path, lookup: Lookup, rule: OpenRule = NOTHING_STATED) -> Iterator[pa.Table]:
    """Yields the implementations in `folder` as rows of wkg/cases, in the order of their files.

    What is expected of an open case depends on all cases, so that tasks and times are read first, without the rest.
    `rule` is what is stated of cases that still run.
    """
    expected = _Expected.of(folder, lookup, rule)
    columns = [*_PLAIN, _KIND, _END, *(f"tasks.list.element.{name}" for name in (*_STEP, "attributes"))]
    first = 0
    for batch in _batches(folder, columns):
        yield expected.added_to(_cases(batch, lookup), first)
        first += batch.num_rows


def open_share(folder: Path, rule: OpenRule) -> tuple[int, int, str]:
    """Counts the cases that probably still run, among those with times, and says how that is told."""
    found = _Expected.of(folder, _AS_WRITTEN, rule, with_rest=False)
    return int((found.p_ended < PROBABLY_ENDED).sum()), len(found.p_ended), found.basis


def write_case_batches(batches: Iterable[pa.Table], file: Path) -> None:
    """Writes rows of wkg/cases in row groups that are small enough for one of each source to be kept at once."""
    with pq.ParquetWriter(file, CASES.schema, compression="zstd") as writer:
        for cases in batches:
            writer.write_table(cases, row_group_size=_ROW_GROUP)


def merge_cases(files: Sequence[Path], folder: Path, rows: int = _ROWS) -> int:
    """Writes the rows of wkg/cases of all these files as one sorted file into `folder`, and returns their number.

    So many `rows` at a time are kept, and the row groups that they come from: one of each file where the files are
    sorted already, as those of sources are. Raises LakeError where the disk is full.
    """
    with ExitStack() as opened:
        stored = [opened.enter_context(pq.ParquetFile(file)) for file in files]
        groups = [(one, number) for one in stored for number in range(one.num_row_groups)]
        sizes = [one.metadata.row_group(number).num_rows for one, number in groups]
        starts = np.cumsum([0, *sizes])
        ids = pa.chunked_array([one.read(list(CASES.key)).column(0).combine_chunks() for one in stored], pa.string())
        order = pc.sort_indices(ids).to_numpy().astype(np.int64)
        del ids
        folder.mkdir(parents=True, exist_ok=True)
        with full_disk_named(folder), pq.ParquetWriter(folder / PART, CASES.schema, compression="zstd") as writer:
            kept: dict[int, pa.Table] = {}
            for begin in range(0, len(order), rows):
                places = order[begin : begin + rows]
                group = np.searchsorted(starts, places, "right") - 1
                due = distinct(group).tolist()
                kept = {n: kept[n] if n in kept else groups[n][0].read_row_group(groups[n][1]) for n in due}
                found = pa.concat_tables([_taken(kept[n], places[group == n] - starts[n]) for n in due])
                back = np.empty(len(places), np.int64)
                back[np.argsort(group, kind="stable")] = np.arange(len(places))
                writer.write_table(_taken(found, back).combine_chunks(), row_group_size=rows)
        return len(order)


def _taken(table: pa.Table, rows: Longs) -> pa.Table:
    """Returns these rows of a table, which is not copied where they stand side by side."""
    first = int(rows[0])
    if np.array_equal(rows, np.arange(first, first + len(rows))):
        return table.slice(first, len(rows))
    return table.take(pa.array(rows))


def _batches(folder: Path, columns: list[str]) -> Iterator[pa.RecordBatch]:
    for file in sorted(folder.glob("*.parquet")):
        with pq.ParquetFile(file) as stored:
            for number in range(stored.num_row_groups):  # Arrow keeps the bytes of all that it is asked for at once
                yield from stored.iter_batches(batch_size=_BATCH_CASES, row_groups=[number], columns=columns)


def task_ids(industries: pa.Array, keys: pa.ListArray, lookup: Lookup) -> pa.ListArray:
    """Translates lists of raw keys into lists of task ids, by the industry of each row."""
    flat = pc.list_flatten(keys).dictionary_encode()
    owner = industries.take(pc.list_parent_indices(keys)).dictionary_encode()
    ids = pa.nulls(len(flat), pa.string())
    for industry in pc.unique(industries).to_pylist():
        names = pa.array([lookup.get((industry, key)) for key in flat.dictionary.to_pylist()], pa.string())
        mine = (
            pc.is_null(owner)
            if industry is None
            else pc.fill_null(pc.equal(owner.dictionary_decode(), industry), False)
        )
        ids = pc.if_else(mine, names.take(flat.indices), ids)
    return _nested(keys, ids)


def _cases(batch: pa.RecordBatch, lookup: Lookup) -> dict[str, pa.Array]:
    """Returns the columns of the cases of a batch, without what is expected of open cases."""
    steps = batch["tasks"]
    flat = pc.list_flatten(steps)
    of = {name: _nested(steps, pc.struct_field(flat, name)) for name in _STEP}
    return {name: batch[name] for name in (*_PLAIN, _KIND) if name != "title"} | {
        "kind_of_case": batch["title"],
        "tasks": task_ids(batch["industry"], of["task_key"], lookup),
        "task_keys": of["task_key"],
        "task_cost_usd": of["cost_usd"],
        "task_duration_ms": of["duration_ms"],
        "actor_kinds": of["actor_kind"],
        "models": of["model"],
        "actor_groups": _nested(steps, actor_groups(pc.list_flatten(steps))),
        "task_predecessors": of["predecessors"],
        "task_started_at": of["started_at"],
        "task_wait_ms": of["wait_ms"],
        "task_actors": of["actor"],
        "lead_time_ms": _milliseconds(batch["started_at"], batch["ended_at"]),
    }


@dataclass(frozen=True)
class _Expected:
    """What is expected of all cases of a source, in the order of their files.

    `known` [cases] tells which have times, `place` [cases] is the number of each among those, `p_ended` [known cases]
    the probability that it has ended, and `rest` the codes in `names` of the tasks that are expected to follow.
    """

    known: Bools
    place: Longs
    p_ended: Floats
    rest: Mapping[int, tuple[int, ...]]
    names: list[str]
    basis: str

    @classmethod
    def of(cls, folder: Path, lookup: Lookup, rule: OpenRule, with_rest: bool = True) -> "_Expected":
        codes: dict[str, int] = {}
        parts = [_Timed.of(batch, lookup, codes, rule) for batch in _batches(folder, [*_OF_CASE, *_WHEN])]
        known = np.concatenate([np.zeros(0, bool), *(part.known for part in parts)])
        events = Events(
            np.concatenate([np.zeros(0, np.int64), *(part.lengths for part in parts)]),
            np.concatenate([np.zeros(0, np.int32), *(part.code for part in parts)]),
            np.concatenate([np.zeros(0, np.int64), *(part.when for part in parts)]) / 1e6,
        )
        attributes = [of for part in parts for of in part.attributes]
        stated = [p for part in parts for p in part.stated]
        del parts
        found = continuations(events, attributes, np.array(stated, float), with_rest=with_rest)
        return cls(known, np.cumsum(known) - 1, found.p_ended, found.rest, list(codes), found.basis)

    def added_to(self, columns: dict[str, pa.Array], first: int) -> pa.Table:
        """Returns the cases from the number `first` on, whose other columns these are, with what is expected of them.

        Both are unknown when a case has no times.
        """
        rows = slice(first, first + len(columns["tasks"]))
        unknown, place = ~self.known[rows], self.place[rows]
        of_known = place[~unknown]
        rest = [self.rest.get(one, ()) for one in of_known.tolist()]
        lists = text_lists(
            self.names,
            np.array([activity for one in rest for activity in one], np.int64),
            np.array([len(one) for one in rest], np.int64),
        )
        p_ended = np.full(len(unknown), np.nan)
        p_ended[~unknown] = self.p_ended[of_known]
        columns = columns | {
            "p_ended": pa.array(p_ended, mask=unknown),
            "expected_rest": lists.take(pa.array(np.cumsum(~unknown) - 1, mask=unknown)),
        }
        return pa.table([columns[name] for name in CASES.schema.names], schema=CASES.schema)


@dataclass(frozen=True)
class _Timed:
    """The cases of a batch that have times: `lengths` [known cases], `code` and `when` (microseconds) of each task.

    `known` [cases of the batch] tells which they are, and `attributes` [known cases] are their own. `stated` [known
    cases] is what is stated of their end, as `OpenRule.p_ended` returns it.
    """

    known: Bools
    lengths: Longs
    code: Ints
    when: Longs
    attributes: list[dict[str, str]]
    stated: list[float]

    @classmethod
    def of(cls, batch: pa.RecordBatch, lookup: Lookup, codes: dict[str, int], rule: OpenRule) -> "_Timed":
        """Reads a batch. `codes` gets the code of each task id that is new."""
        steps = batch["tasks"]
        flat = pc.list_flatten(steps)
        keys = _nested(steps, pc.struct_field(flat, "task_key"))
        tasks = pc.list_flatten(task_ids(batch["industry"], keys, lookup)).dictionary_encode()
        own = np.array([codes.setdefault(task, len(codes)) for task in tasks.dictionary.to_pylist()] + [-1], np.int32)
        code = own[pc.fill_null(tasks.indices, -1).to_numpy()]
        executed = pc.equal(batch[_KIND], "executed").take(pc.list_parent_indices(steps))  # models have no times
        when = pc.coalesce(pc.struct_field(flat, "ended_at"), pc.struct_field(flat, "started_at")).cast(pa.int64())
        moments = pc.fill_null(pc.if_else(executed, when, pa.scalar(None, pa.int64())), _NEVER).to_numpy()
        lengths = pc.fill_null(pc.list_value_length(steps), 0).to_numpy().astype(np.int64)
        of_case = np.repeat(np.arange(len(lengths)), lengths)
        known = lengths > 0
        known[of_case[(moments == _NEVER) | (code < 0)]] = False
        places = np.flatnonzero(known[of_case])
        # Tasks go by their start; which came last is told by their end.
        places = places[np.lexsort((moments[places], of_case[places]))]
        attributes = [
            {name: value for name, value in (of or ()) if value is not None}
            for of in batch["attributes"].take(pa.array(np.flatnonzero(known))).to_pylist()
        ]
        done = keys.take(pa.array(np.flatnonzero(known))).to_pylist() if rule.ends else [()] * len(attributes)
        stated = [rule.p_ended(of, names) for of, names in zip(attributes, done, strict=True)]
        return cls(known, lengths[known], code[places], moments[places], attributes, stated)


def _milliseconds(start: pa.Array, end: pa.Array) -> pa.Array:
    # Beyond 285 years a microsecond is lost: the difference is then no exact float.
    return pc.divide(
        pc.cast(pc.subtract(end.cast(pa.int64()), start.cast(pa.int64())), pa.float64(), safe=False), 1000.0
    )


def _nested(like: pa.ListArray, flat: pa.Array) -> pa.ListArray:
    lengths = pc.fill_null(pc.list_value_length(like), 0)
    offsets = pa.concat_arrays([pa.array([0], pa.int32()), pc.cumulative_sum(lengths).cast(pa.int32())])
    return pa.ListArray.from_arrays(offsets, flat)


Vectors = dict[str, "np.ndarray"]
REQUESTS = 24  # of a part: enough to know its like


@dataclass
class _Procedure:
    """One distinct text: its parts, and the cases by (title, description)."""

    parts: list[Part]
    asked: dict[tuple[str, str], list[str]] = field(default_factory=lambda: defaultdict(list))


def write_procedures(
    sources: Iterable[Path], folder: Path, encoder: TextEncoder, progress: Progress | None = None
) -> dict[str, int]:
    """Writes `procedures` and `procedure_vectors` of the implementations in `sources`.

    Both are empty when history has no procedure.
    """
    found = _read(sources)
    titles = (
        [row["title"] for row in read_table(TASKS, dataset_folder(folder, TASKS), columns=["title"]).to_pylist()]
        if found
        else []
    )
    vectors = _encoded(_texts(found, titles), encoder, progress)
    rows = [row for text in sorted(found) for row in _rows(text, found[text], vectors)]
    kept = {t for row in rows for t in (plain(row["head"] or ""), *row["sentences"], *row["requests"])}
    kept |= {plain(t) for t in titles} | {object_of(plain(row["head"] or "")) for row in rows}
    write_table(PROCEDURES, table_of(PROCEDURES, rows), dataset_folder(folder, PROCEDURES))
    write_table(
        PROCEDURE_VECTORS,
        _table({t: vectors[t] for t in sorted(kept - {""})}, encoder),
        dataset_folder(folder, PROCEDURE_VECTORS),
    )
    return {PROCEDURES.name: len(rows), PROCEDURE_VECTORS.name: len(kept - {""})}


def _read(sources: Iterable[Path]) -> dict[str, _Procedure]:
    found: dict[str, _Procedure] = {}
    columns = ["implementation_id", "title", "description", "process_context"]
    for folder in sources:
        for file in sorted(folder.glob("*.parquet")):
            for batch in pq.ParquetFile(file).iter_batches(batch_size=4_096, columns=columns):
                for case, title, description, text in zip(*(batch[name].to_pylist() for name in columns), strict=True):
                    if text and text.strip():
                        procedure = found.get(text) or found.setdefault(text, _Procedure(parts(text)))
                        procedure.asked[title or "", description or title or ""].append(case)
    return found


def _texts(found: dict[str, _Procedure], titles: list[str]) -> list[str]:
    """Returns the texts that need a vector."""
    texts = {plain(title) for title in titles}
    for procedure in found.values():
        texts.update(request for _, request in procedure.asked)
        texts.update(object_of(part.name) for part in procedure.parts)
        for part in procedure.parts:
            texts.update((part.name, part.text, *(s.text for s in part.sentences)))
    return sorted(texts - {""})


def _rows(text: str, procedure: _Procedure, vectors: Vectors) -> list[dict[str, Any]]:
    cases: dict[int, list[str]] = defaultdict(list)
    requests: dict[int, set[str]] = defaultdict(set)
    for (title, request), asked in procedure.asked.items():
        number = followed(procedure.parts, title, request, vectors)
        cases[number] += asked
        requests[number] |= {request} - {""}
    return [
        {
            "procedure_id": make_id("o", text),
            "part": number,
            "head": part.head,
            "is_title": part.is_title,
            "sentences": [s.text for s in part.sentences],
            "either": [s.either for s in part.sentences],
            "implementations": sorted(cases[number]),
            "requests": sorted(requests[number])[:REQUESTS],
        }
        for number, part in enumerate(procedure.parts)
    ]


def followed(found: list[Part], title: str, request: str, vectors: Vectors) -> int:
    """Returns the number of the part that a case followed.

    It is the part with the title of the case, else the one most similar to its request; ties go to the first.
    """
    headed = [n for n, part in enumerate(found) if part.name]
    if not headed:
        return 0
    named = [n for n in headed if found[n].name == plain(title)]
    if named or request not in vectors:
        return (named or headed)[0]
    import numpy as np

    heads, texts = (
        np.stack([vectors[t] for t in said])
        for said in ([found[n].name for n in headed], [found[n].text for n in headed])
    )
    return headed[int(part_similarity(vectors[request], heads, texts).round(6).argmax())]


def _encoded(texts: list[str], encoder: TextEncoder, progress: Progress | None) -> Vectors:
    return dict(zip(texts, encoder.encode(texts, progress), strict=True)) if texts else {}


def _table(vectors: Vectors, encoder: TextEncoder) -> pa.Table:
    import numpy as np

    rows = np.stack(list(vectors.values())) if vectors else np.zeros((0, encoder.dimension), np.float32)
    column = pa.FixedSizeListArray.from_arrays(pa.array(np.ascontiguousarray(rows, np.float32).ravel()), rows.shape[1])
    return pa.table({"text": pa.array(list(vectors), pa.string()), "vector": column})
