"""Counts the raw task names of a source, and stores them with their evidence beside the aggregates."""

from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from opus_pipelines.core.ids import digest
from opus_pipelines.core.versions import versions_of
from opus_pipelines.lake.layout import Lake, slug
from opus_pipelines.wkg.task_matching.evidence import EVIDENCE, count_evidence

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
