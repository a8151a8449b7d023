"""Translates implementations into task ids (wkg/cases), one source at a time, streamed through Arrow."""

from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from opus_pipelines.core.schemas import CASES
from opus_pipelines.estimates.open_cases import Events, continuations
from opus_pipelines.estimates.task_lists import text_lists
from opus_pipelines.mining.observations import actor_groups

Lookup = Mapping[tuple[str | None, str], str]  # industry, task_key → task_id
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
_KIND = "kind"
_END = "ended_at"
_NEVER = np.iinfo(np.int64).min
_STEP = [
    "task_key",
    "cost_usd",
    "duration_ms",
    "actor_kind",
    "model",
    "predecessors",
    "started_at",
    "ended_at",
    "wait_ms",
]


def cases_of(folder: Path, lookup: Lookup) -> pa.Table:
    """Returns the implementations in `folder` as rows of wkg/cases."""
    columns = [*_PLAIN, _KIND, _END, *(f"tasks.list.element.{name}" for name in (*_STEP, "attributes"))]
    parts = [
        _cases(batch, lookup)
        for file in sorted(folder.glob("*.parquet"))
        for batch in pq.ParquetFile(file).iter_batches(columns=columns)
    ]
    if not parts:
        return CASES.schema.empty_table()
    whole = pa.concat_tables([cases for cases, _ in parts]).combine_chunks()
    return _with_continuations(whole, pa.concat_arrays([times for _, times in parts]))


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


def _cases(batch: pa.RecordBatch, lookup: Lookup) -> tuple[pa.Table, pa.ListArray]:
    """Returns the cases of a batch, and the times of their tasks; process models have no times."""
    steps = batch["tasks"]
    flat = pc.list_flatten(steps)
    of = {name: _nested(steps, pc.struct_field(flat, name)) for name in _STEP}
    when = pc.coalesce(pc.struct_field(flat, "ended_at"), pc.struct_field(flat, "started_at")).cast(pa.int64())
    executed = pc.equal(batch[_KIND], "executed").take(pc.list_parent_indices(steps))
    tasks = task_ids(batch["industry"], of["task_key"], lookup)
    columns = {name: batch[name] for name in _PLAIN if name != "title"} | {
        "kind_of_case": batch["title"],
        "tasks": tasks,
        "task_keys": of["task_key"],
        "task_cost_usd": of["cost_usd"],
        "task_duration_ms": of["duration_ms"],
        "actor_kinds": of["actor_kind"],
        "models": of["model"],
        "actor_groups": _nested(steps, actor_groups(pc.list_flatten(steps))),
        "task_predecessors": of["predecessors"],
        "p_ended": pa.nulls(len(batch), pa.float64()),
        "expected_rest": pa.nulls(len(batch), pa.list_(pa.string())),
        "task_started_at": of["started_at"],
        "task_wait_ms": of["wait_ms"],
        "lead_time_ms": _milliseconds(batch["started_at"], batch["ended_at"]),
    }
    times = _nested(steps, pc.if_else(executed, when, pa.scalar(None, pa.int64())))
    return pa.table([columns[name] for name in CASES.schema.names], schema=CASES.schema), times


def _with_continuations(cases: pa.Table, times: pa.ListArray) -> pa.Table:
    """Adds the probability that each case has ended, and its expected continuation.

    Both are unknown when a case has no times.
    """
    column = cases["tasks"].combine_chunks()
    flat = pc.list_flatten(column).dictionary_encode()
    code = pc.fill_null(flat.indices, -1).to_numpy().astype(np.int64)
    when = pc.fill_null(pc.list_flatten(times), _NEVER).to_numpy()
    lengths = pc.fill_null(pc.list_value_length(column), 0).to_numpy()
    of_case = np.repeat(np.arange(len(lengths)), lengths)
    known = lengths > 0
    known[of_case[(when == _NEVER) | (code < 0)]] = False
    steps = np.flatnonzero(known[of_case])
    # Tasks go by their start; which came last is told by their end.
    steps = steps[np.lexsort((when[steps], of_case[steps]))]
    rows = np.flatnonzero(known)
    attributes = [
        {name: value for name, value in (of or ()) if value is not None}
        for of in cases["attributes"].take(pa.array(rows)).to_pylist()
    ]
    found = continuations(Events(lengths[rows], code[steps], when[steps] / 1e6), attributes)
    p_ended = np.full(len(lengths), np.nan)
    p_ended[rows] = found.p_ended
    rest = [found.rest.get(place, ()) for place in range(len(rows))]
    of_rows = text_lists(
        flat.dictionary.to_pylist(),
        np.array([activity for one in rest for activity in one], np.int64),
        np.array([len(one) for one in rest], np.int64),
    )
    place = np.full(len(lengths), -1)
    place[rows] = np.arange(len(rows))
    columns = {
        "p_ended": pa.array(p_ended, mask=~known),
        "expected_rest": of_rows.take(pa.array(place, mask=~known)),
    }
    for name, column in columns.items():
        cases = cases.set_column(cases.schema.names.index(name), CASES.schema.field(name), column)
    return cases


def _milliseconds(start: pa.Array, end: pa.Array) -> pa.Array:
    # Beyond 285 years a microsecond is lost: the difference is then no exact float.
    return pc.divide(
        pc.cast(pc.subtract(end.cast(pa.int64()), start.cast(pa.int64())), pa.float64(), safe=False), 1000.0
    )


def _nested(like: pa.ListArray, flat: pa.Array) -> pa.ListArray:
    lengths = pc.fill_null(pc.list_value_length(like), 0)
    offsets = pa.concat_arrays([pa.array([0], pa.int32()), pc.cumulative_sum(lengths).cast(pa.int32())])
    return pa.ListArray.from_arrays(offsets, flat)
