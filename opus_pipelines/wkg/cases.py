"""Implementations as task ids (wkg/cases), a source at a time, streamed through Arrow."""

from collections.abc import Mapping
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from opus_pipelines.schemas import CASES

Lookup = Mapping[tuple[str | None, str], str]  # industry, task_key → task_id
_PLAIN = ["implementation_id", "source", "industry", "client", "contract", "title", "success", "expected_outcome", "weight"]
_STEP = ["task_key", "cost_usd", "duration_ms", "actor_kind"]


def cases_of(folder: Path, lookup: Lookup) -> pa.Table:
    """The implementations in `folder` in the form of wkg/cases."""
    columns = _PLAIN + [f"tasks.list.element.{name}" for name in _STEP]
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
    }
    return pa.table([columns[name] for name in CASES.schema.names], schema=CASES.schema)


def _nested(like: pa.ListArray, flat: pa.Array) -> pa.ListArray:
    lengths = pc.fill_null(pc.list_value_length(like), 0)
    offsets = pa.concat_arrays([pa.array([0], pa.int32()), pc.cumulative_sum(lengths).cast(pa.int32())])
    return pa.ListArray.from_arrays(offsets, flat)
