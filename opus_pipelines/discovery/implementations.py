"""Counts the edges and tasks of implementations, as the ordinary reading makes them."""

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from opus_pipelines.column_reading.times import NO_TIME
from opus_pipelines.discovery.tallies import Steps, Tally

COLUMNS = ("weight", *(f"tasks.list.element.{f}" for f in ("task_key", "started_at", "ended_at", "predecessors")))


def add_implementations(tally: Tally, batch: pa.RecordBatch) -> None:
    """Adds the implementations of a batch, which has at least COLUMNS."""
    flat = pc.list_flatten(batch["tasks"])
    keys = pc.struct_field(flat, "task_key").dictionary_encode()
    seen = pc.coalesce(pc.struct_field(flat, "started_at"), pc.struct_field(flat, "ended_at")).cast(pa.int64())
    codes = tally.names.codes(keys.dictionary)
    tally.add(
        Steps(
            pc.fill_null(pc.list_value_length(batch["tasks"]), 0).to_numpy().astype(np.int64),
            codes[keys.indices.to_numpy()] if len(codes) else codes,
            pc.fill_null(seen, NO_TIME).to_numpy(),
            batch["weight"].to_numpy().astype(np.int64),
            pc.struct_field(flat, "predecessors"),
        )
    )
