"""Implementations as flat Arrow rows, one for each thing that a query of `sql/wkg` counts.

The queries in `sql/wkg/spark` say the same in Spark's SQL. A batch of implementations comes in, and a record batch with
the columns of the view `observations` goes out.
"""

import zlib
from collections.abc import Callable, Iterable, Iterator
from functools import cached_property
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from opus_pipelines.core.schemas import IMPLEMENTATIONS
from opus_pipelines.history.records.arrow_arrays import consecutive
from opus_pipelines.history.records.money import GROUP_ATTRIBUTES, NO_GROUP
from opus_pipelines.wkg.estimates.aggregate_columns import FOLDS, MODE_COLUMNS

CASE_FIELDS = (
    "implementation_id",
    "case_id",
    "source",
    "industry",
    "client",
    "title",
    "success",
    "expected_outcome",
    "weight",
)
STEP_FIELDS = {  # of a step, what each query reads from disk
    "ways": ("task_key", *MODE_COLUMNS, "started_at", "ended_at", "cost_usd", "cost_basis", "success", "predecessors"),
    "histograms": (
        "task_key",
        *MODE_COLUMNS,
        "duration_ms",
        "wait_ms",
        "cost_usd",
        "cost_compute_usd",
        "cost_model_usd",
        "cost_human_usd",
        "tokens_in",
        "tokens_out",
        "memory_gb",
        "threads",
    ),
    "edges": ("task_key", "started_at", "ended_at", "predecessors"),
    "waits": ("task_key", *MODE_COLUMNS, "started_at", "ended_at", "duration_ms", "wait_ms", "predecessors"),
    "pairs": ("task_key", *MODE_COLUMNS, "duration_ms", "cost_usd", "success", "predecessors"),
    "variants": ("task_key", "predecessors"),
    "texts": ("task_key", *MODE_COLUMNS, "description", "instructions", "inputs", "outputs"),
}
BATCH_CASES = 16_384
_TEXTS = {"description": "description", "instructions": "instruction", "inputs": "input", "outputs": "output"}
_MILLIONTHS = {  # measure: the column, and how many of the counted unit are one of it
    "duration": ("duration_ms", 1_000),
    "wait": ("wait_ms", 1_000),
    "cost": ("cost_usd", 1_000_000),
    "compute": ("cost_compute_usd", 1_000_000),
    "model": ("cost_model_usd", 1_000_000),
    "human": ("cost_human_usd", 1_000_000),
    "tokens_in": ("tokens_in", 1),
    "tokens_out": ("tokens_out", 1),
    "memory": ("memory_gb", 1_000_000),
    "threads": ("threads", 1_000_000),
}
_CASE_COLUMNS = {
    "ways": ("source", "industry", "client", "weight"),
    "histograms": ("source", "industry", "weight"),
    "edges": ("implementation_id", "source", "industry", "weight"),
    "waits": ("source", "industry", "weight"),
    "pairs": ("case_id", "source", "industry", "weight"),
    "variants": ("source", "industry", "client", "title", "weight", "success", "expected_outcome"),
    "texts": ("source", "industry", "client", "weight"),
}


def observations(files: Iterable[Path], name: str) -> Iterator[pa.RecordBatch]:
    """Yields the rows that the query of this aggregate counts, of all implementations in these files.

    Only the columns that the query needs are read. The first batch has no rows, so that there is always a schema.
    """
    steps = dict.fromkeys("attributes" if field == "actor_group" else field for field in STEP_FIELDS[name])
    columns = [field for field in CASE_FIELDS if field in _CASE_COLUMNS[name]]
    columns += [f"tasks.list.element.{field}" for field in steps]
    nothing = pa.RecordBatch.from_pylist([], schema=IMPLEMENTATIONS.schema)
    yield _MADE[name](Steps(nothing, _CASE_COLUMNS[name]))
    for file in files:
        with pq.ParquetFile(file) as stored:
            for group in range(stored.num_row_groups):  # Arrow keeps the bytes of all that it is asked for at once
                for batch in stored.iter_batches(batch_size=BATCH_CASES, row_groups=[group], columns=columns):
                    yield _MADE[name](Steps(batch, _CASE_COLUMNS[name]))


def actor_groups(steps: pa.StructArray) -> pa.Array:
    """Returns the role or group of the actor of each step: what the log says of it, for people only.

    That is the first attribute of GROUP_ATTRIBUTES whose value is not one of the words of NO_GROUP.
    """
    attributes = pc.struct_field(steps, "attributes")
    offsets = attributes.offsets.to_numpy()
    keys = attributes.keys.slice(offsets[0], offsets[-1] - offsets[0])
    items = attributes.items.slice(offsets[0], offsets[-1] - offsets[0])
    places = pc.indices_nonzero(pc.is_in(keys, pa.array(GROUP_ATTRIBUTES)))
    groups = pa.nulls(len(attributes), pa.string())
    if len(places):
        keys, items = keys.take(places), items.take(places)
        owner = np.repeat(np.arange(len(attributes)), np.diff(offsets))[places.to_numpy()]
        is_none = pc.is_in(pc.utf8_lower(pc.utf8_trim(items, " ")), pa.array([*NO_GROUP, None]))
        rank = pc.index_in(keys, pa.array(GROUP_ATTRIBUTES)).to_numpy()
        stated = np.flatnonzero(~np.asarray(is_none))
        order = stated[np.lexsort((stated, rank[stated], owner[stated]))]
        owners, first = np.unique(owner[order], return_index=True)
        place = np.full(len(attributes), -1)
        place[owners] = order[first]
        groups = items.take(pa.array(place, mask=place < 0))
    is_human = pc.fill_null(pc.equal(pc.struct_field(steps, "actor_kind"), "human"), True)
    return pc.if_else(is_human, groups, pa.scalar(None, pa.string()))


class Steps:
    """A batch of implementations, with their steps as flat columns.

    `case` is the number of the row of each step, `before` and `after` are the numbers of the steps of each pair: the
    step directly before, and the step itself.
    """

    def __init__(self, batch: pa.RecordBatch, case_columns: tuple[str, ...]) -> None:
        self.batch, self._case_columns = batch, case_columns
        self._flat = pc.list_flatten(batch["tasks"])
        self.case = pc.list_parent_indices(batch["tasks"]).to_numpy()
        self._lengths = pc.fill_null(pc.list_value_length(batch["tasks"]), 0).to_numpy()

    def __len__(self) -> int:
        """Returns the number of steps."""
        return len(self._flat)

    def of(self, field: str) -> pa.Array:
        """Returns a field of each step."""
        return actor_groups(self._flat) if field == "actor_group" else pc.struct_field(self._flat, field)

    def cases(self, rows: np.ndarray | None = None) -> dict[str, pa.Array]:
        """Returns the columns of the cases: of each case, or for steps with these numbers."""
        if rows is None:
            return {name: self.batch[name] for name in self._case_columns}
        places = pa.array(self.case[rows])
        return {name: _short(self.batch[name]).take(places) for name in self._case_columns}

    def modes(self) -> dict[str, pa.Array]:
        """Returns how each step was carried out."""
        return {name: _short(self.of(name)) for name in MODE_COLUMNS}

    @cached_property
    def _pairs(self) -> tuple[np.ndarray, np.ndarray]:
        return consecutive(self._lengths, self.of("predecessors"))

    @property
    def before(self) -> np.ndarray:
        """The number of the earlier step of each pair."""
        return self._pairs[0]

    @property
    def after(self) -> np.ndarray:
        """The number of the later step of each pair."""
        return self._pairs[1]

    @property
    def seen(self) -> pa.Array:
        """When each step was seen."""
        return pc.coalesce(self.of("started_at"), self.of("ended_at"))

    @property
    def after_failure(self) -> pa.Array:
        """Tells whether a step directly before is known to have failed."""
        failed = np.asarray(pc.fill_null(pc.invert(self.of("success")), False))
        found = np.zeros(len(self), bool)
        found[self.after[failed[self.before]]] = True
        return pa.array(found)


def _ways(steps: Steps) -> pa.RecordBatch:
    priced = pc.and_(pc.is_valid(steps.of("cost_usd")), pc.fill_null(pc.equal(steps.of("cost_basis"), "rate"), False))
    return _batch(
        steps.cases(np.arange(len(steps)))
        | {"task_key": _short(steps.of("task_key"))}
        | steps.modes()
        | {"success": steps.of("success"), "seen": steps.seen, "priced": priced, "after_failure": steps.after_failure}
    )


def _histograms(steps: Steps) -> pa.RecordBatch:
    common = steps.cases(np.arange(len(steps))) | {"task_key": _short(steps.of("task_key"))} | steps.modes()
    rows, values, measures = [], [], []
    for number, (column, factor) in enumerate(_MILLIONTHS.values()):
        value = steps.of(column)
        value = _whole(value, factor) if factor > 1 else value
        known = pc.indices_nonzero(pc.is_valid(value)).to_numpy()
        rows.append(known)
        values.append(value.take(pa.array(known)))
        measures.append(np.full(len(known), number, np.int8))
    places = pa.array(np.concatenate(rows))
    names = pa.DictionaryArray.from_arrays(pa.array(np.concatenate(measures)), pa.array(list(_MILLIONTHS)))
    return _batch(
        {name: column.take(places) for name, column in common.items()}
        | {"measure": names, "value": pa.concat_arrays(values)}
    )


def _edges(steps: Steps) -> pa.RecordBatch:
    return _pairs(steps, {"seen": steps.seen.take(pa.array(steps.after))})


def _waits(steps: Steps) -> pa.RecordBatch:
    after = pa.array(steps.after)
    stated = pc.if_else(pc.is_null(steps.of("predecessors")), steps.of("wait_ms"), pa.scalar(None, pa.float64()))
    start = steps.of("started_at").cast(pa.int64()).take(after)
    end = steps.of("ended_at").cast(pa.int64()).take(pa.array(steps.before))
    columns = {name: column.take(after) for name, column in steps.modes().items()} | {
        "with_work": pc.is_null(steps.of("duration_ms")).take(after),
        "stated_wait_ms": stated.take(after),
        "gap_us": pc.max_element_wise(pc.subtract(start, end), 0, skip_nulls=False),
    }
    return _pairs(steps, columns)


def _pair_outcomes(steps: Steps) -> pa.RecordBatch:
    after = pa.array(steps.after)
    folds = [None if case is None else zlib.crc32(case.encode()) % FOLDS for case in steps.batch["case_id"].to_pylist()]
    columns = {"fold": pa.array(folds, pa.int32()).take(pa.array(steps.case[steps.after]))}
    columns |= {name: column.take(after) for name, column in steps.modes().items()}
    columns |= {name: steps.of(name).take(after) for name in ("success", "duration_ms", "cost_usd")}
    columns |= {"after_failure": steps.after_failure.take(after)}
    return _pairs(steps, columns)


def _variants(steps: Steps) -> pa.RecordBatch:
    cases, tasks = steps.cases(), steps.batch["tasks"]
    stated = steps.of("predecessors")
    of_case = np.zeros(len(steps.batch), bool)
    of_case[steps.case[np.asarray(pc.is_valid(stated))]] = True
    known = pc.and_(
        pc.is_valid(cases["success"]), pc.invert(pc.equal(pc.fill_null(cases["expected_outcome"], True), False))
    )
    return _batch(
        {name: cases[name] for name in ("source", "industry", "client")}
        | {
            "kind_of_case": cases["title"],
            "task_keys": _nested(tasks, steps.of("task_key"), ~np.asarray(pc.is_valid(tasks))),
            "weight": cases["weight"],
            "success": cases["success"],
            "predecessors": _nested(tasks, stated, ~of_case),
            "known": known,
        }
    )


def _texts(steps: Steps) -> pa.RecordBatch:
    common = steps.cases(np.arange(len(steps))) | {"task_key": _short(steps.of("task_key"))} | steps.modes()
    rows, values, fields = [], [], []
    for number, column in enumerate(_TEXTS):
        said = steps.of(column)
        owner = np.arange(len(steps))
        if column != "description":
            said, owner = pc.list_flatten(said), pc.list_parent_indices(said).to_numpy()
        known = pc.indices_nonzero(pc.is_valid(said))
        rows.append(owner[known.to_numpy()])
        values.append(said.take(known))
        fields.append(np.full(len(known), number, np.int8))
    places = pa.array(np.concatenate(rows))
    names = pa.DictionaryArray.from_arrays(pa.array(np.concatenate(fields)), pa.array(list(_TEXTS.values())))
    return _batch(
        {name: column.take(places) for name, column in common.items()}
        | {"field": names, "value": _short(pa.concat_arrays(values))}
    )


_MADE: dict[str, Callable[[Steps], pa.RecordBatch]] = {
    "ways": _ways,
    "histograms": _histograms,
    "edges": _edges,
    "waits": _waits,
    "pairs": _pair_outcomes,
    "variants": _variants,
    "texts": _texts,
}


def _pairs(steps: Steps, columns: dict[str, pa.Array]) -> pa.RecordBatch:
    key = _short(steps.of("task_key"))
    ends = {"src_key": key.take(pa.array(steps.before)), "dst_key": key.take(pa.array(steps.after))}
    cases = {name: column for name, column in steps.cases(steps.after).items() if name != "case_id"}
    return _batch(cases | ends | columns)


def _batch(columns: dict[str, pa.Array]) -> pa.RecordBatch:
    return pa.RecordBatch.from_arrays(list(columns.values()), list(columns))


def _short(column: pa.Array) -> pa.Array:
    """Returns a column of texts with each text stored once."""
    return column.dictionary_encode() if pa.types.is_string(column.type) else column


def _whole(column: pa.Array, factor: int) -> pa.Array:
    """Returns the nearest whole number of `column` times `factor`, of two the one further from 0, as int64.

    It is NULL where int64 cannot hold it, and where it is no number.
    """
    value = pc.round(pc.multiply(column, float(factor)), round_mode="half_towards_infinity")
    fits = pc.and_(pc.less(value, 2.0**63), pc.greater_equal(value, -(2.0**63)))
    return pc.if_else(fits, value, pa.scalar(None, pa.float64())).cast(pa.int64())


def _nested(like: pa.ListArray, flat: pa.Array, is_null: np.ndarray) -> pa.ListArray:
    """Returns the flat values as lists that are as long as those of `like`; NULL where `is_null`."""
    lengths = pc.fill_null(pc.list_value_length(like), 0).to_numpy()
    offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int32)
    return pa.ListArray.from_arrays(pa.array(offsets), flat, mask=pa.array(is_null))
