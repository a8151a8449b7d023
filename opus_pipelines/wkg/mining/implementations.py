"""Implementations as the queries of `sql/wkg` read them: only the columns that each needs, batch by batch."""

import zlib
from collections.abc import Iterable, Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from opus_pipelines.core.schemas import IMPLEMENTATIONS
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
_CASE_COLUMNS = {
    "ways": ("source", "industry", "client", "weight"),
    "histograms": ("source", "industry", "weight"),
    "edges": ("implementation_id", "source", "industry", "weight"),
    "waits": ("source", "industry", "weight"),
    "pairs": ("case_id", "source", "industry", "weight"),
    "variants": ("source", "industry", "client", "title", "weight", "success", "expected_outcome"),
    "texts": ("source", "industry", "client", "weight"),
}


def implementations(files: Iterable[Path], name: str) -> Iterator[pa.RecordBatch]:
    """Yields the implementations in these files with the columns that the query of this aggregate reads, and no others.

    Those of `pairs` have their fold. The first batch has no rows, so that there is always a schema.
    """
    steps = dict.fromkeys("attributes" if field == "actor_group" else field for field in STEP_FIELDS[name])
    columns = [field for field in CASE_FIELDS if field in _CASE_COLUMNS[name]]
    step = pa.struct([field for field in IMPLEMENTATIONS.schema.field("tasks").type.value_type if field.name in steps])
    schema = pa.schema([*(IMPLEMENTATIONS.schema.field(n) for n in columns), pa.field("tasks", pa.list_(step))])
    yield _folded(pa.RecordBatch.from_pylist([], schema=schema))
    columns += [f"tasks.list.element.{field}" for field in steps]
    for file in files:
        with pq.ParquetFile(file) as stored:
            for group in range(stored.num_row_groups):  # Arrow keeps the bytes of all that it is asked for at once
                for batch in stored.iter_batches(batch_size=BATCH_CASES, row_groups=[group], columns=columns):
                    yield _folded(batch.select(schema.names).cast(schema))


def _folded(batch: pa.RecordBatch) -> pa.RecordBatch:
    if "case_id" not in batch.schema.names:
        return batch
    folds = [None if case is None else zlib.crc32(case.encode()) % FOLDS for case in batch["case_id"].to_pylist()]
    return batch.append_column("fold", pa.array(folds, pa.int32()))


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
