"""Counts the edges and tasks of implementations, as the ordinary reading makes them."""

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from opus_pipelines.history.columns.times import NO_TIME
from opus_pipelines.history.discovery.tallies import Steps, Tally
from opus_pipelines.history.records.arrow_arrays import numbers, numbers_or

COUNTED_COLUMNS = (
    "weight",
    *(f"tasks.list.element.{f}" for f in ("task_key", "started_at", "ended_at", "predecessors")),
)


def add_implementations(tally: Tally, batch: pa.RecordBatch) -> None:
    """Adds the implementations of a batch, which has at least COLUMNS."""
    flat = pc.list_flatten(batch["tasks"])
    keys = pc.struct_field(flat, "task_key").dictionary_encode()
    seen = pc.coalesce(pc.struct_field(flat, "started_at"), pc.struct_field(flat, "ended_at")).cast(pa.int64())
    codes = tally.names.codes(keys.dictionary)
    tally.add(
        Steps(
            numbers_or(pc.list_value_length(batch["tasks"]), np.int32, 0).astype(np.int64),
            codes[numbers(keys.indices, np.int32)] if len(codes) else codes,
            numbers_or(seen, np.int64, NO_TIME),
            numbers(batch["weight"].cast(pa.int64()), np.int64),
            pc.struct_field(flat, "predecessors"),
        )
    )
