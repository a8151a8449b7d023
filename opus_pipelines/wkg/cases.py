"""Implementations as task ids (wkg/cases), a source at a time, streamed through Arrow."""

from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from opus_pipelines.history.costs import GROUP_ATTRIBUTES, NO_GROUP
from opus_pipelines.schemas import CASES

Lookup = Mapping[tuple[str | None, str], str]  # industry, task_key → task_id
_PLAIN = ["implementation_id", "source", "industry", "client", "contract", "title", "success", "expected_outcome", "weight"]
_STEP = ["task_key", "cost_usd", "duration_ms", "actor_kind", "model"]


def cases_of(folder: Path, lookup: Lookup) -> pa.Table:
    """The implementations in `folder` in the form of wkg/cases."""
    columns = _PLAIN + [f"tasks.list.element.{name}" for name in (*_STEP, "attributes")]
    parts = [
        _cases(batch, lookup) for file in sorted(folder.glob("*.parquet")) for batch in pq.ParquetFile(file).iter_batches(columns=columns)
    ]
    return pa.concat_tables(parts) if parts else CASES.schema.empty_table()


def task_ids(industries: pa.Array, keys: pa.ListArray, lookup: Lookup) -> pa.ListArray:
    """Lists of raw keys as lists of task ids, by the industry of each row."""
    flat = pc.list_flatten(keys).dictionary_encode()
    owner = industries.take(pc.list_parent_indices(keys)).dictionary_encode()
    ids = pa.nulls(len(flat), pa.string())
    for industry in pc.unique(industries).to_pylist():
        names = pa.array([lookup.get((industry, key)) for key in flat.dictionary.to_pylist()], pa.string())
        mine = pc.is_null(owner) if industry is None else pc.fill_null(pc.equal(owner.dictionary_decode(), industry), False)
        ids = pc.if_else(mine, names.take(flat.indices), ids)
    return _nested(keys, ids)


def _cases(batch: pa.RecordBatch, lookup: Lookup) -> pa.Table:
    steps = batch["tasks"]
    of = {name: _nested(steps, pc.struct_field(pc.list_flatten(steps), name)) for name in _STEP}
    columns = {name: batch[name] for name in _PLAIN if name != "title"} | {
        "kind_of_case": batch["title"],
        "tasks": task_ids(batch["industry"], of["task_key"], lookup),
        "task_keys": of["task_key"],
        "task_cost_usd": of["cost_usd"],
        "task_duration_ms": of["duration_ms"],
        "actor_kinds": of["actor_kind"],
        "models": of["model"],
        "actor_groups": _nested(steps, _groups(pc.list_flatten(steps))),
    }
    return pa.table([columns[name] for name in CASES.schema.names], schema=CASES.schema)


def _groups(steps: pa.StructArray) -> pa.Array:
    """The role or group of who did each step, as in wkg/task_implementations (`aggregates.ACTOR_GROUP`)."""
    attributes = pc.struct_field(steps, "attributes")
    offsets = attributes.offsets.to_numpy()
    keys = attributes.keys.slice(offsets[0], offsets[-1] - offsets[0])
    items = attributes.items.slice(offsets[0], offsets[-1] - offsets[0])
    owner = np.repeat(np.arange(len(attributes)), np.diff(offsets))
    is_said = np.asarray(pc.invert(pc.is_in(pc.utf8_lower(pc.utf8_trim_whitespace(items)), pa.array(NO_GROUP))))
    found = np.full(len(attributes), None, dtype=object)
    for name in reversed(GROUP_ATTRIBUTES):
        mine = np.asarray(pc.equal(keys, name)) & is_said
        found[owner[mine]] = items.filter(pa.array(mine)).to_numpy(zero_copy_only=False)
    kinds = pc.fill_null(pc.equal(pc.struct_field(steps, "actor_kind"), "human"), True)
    return pc.if_else(kinds, pa.array(found, pa.string()), pa.scalar(None, pa.string()))


def _nested(like: pa.ListArray, flat: pa.Array) -> pa.ListArray:
    lengths = pc.fill_null(pc.list_value_length(like), 0)
    offsets = pa.concat_arrays([pa.array([0], pa.int32()), pc.cumulative_sum(lengths).cast(pa.int32())])
    return pa.ListArray.from_arrays(offsets, flat)
