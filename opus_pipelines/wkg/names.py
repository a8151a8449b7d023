"""The raw names of a source's tasks, counted: what task resolution works on. Kept beside the source's aggregates."""

from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from opus_pipelines.ids import code_version, digest
from opus_pipelines.lake import Lake, slug

SCHEMA = pa.schema([("industry", pa.string()), ("task_key", pa.string()), ("title", pa.string()), ("count", pa.int64())])
COLUMNS = ["industry", "weight", "tasks.list.element.task_key", "tasks.list.element.title"]


def names_of(lake: Lake, source: str, content: str, folder: Path) -> pa.Table:
    """Every (industry, task_key, title) of the implementations in `folder`, with its weighted count; read from the lake where known."""
    file = names_place(lake, source, content) / "names.parquet"
    if not file.exists():
        with lake.staging() as staged:
            pq.write_table(count_names(folder), staged / file.name, compression="zstd")
            lake.publish(staged, file.parent)
    return pq.ParquetFile(file).read()


def names_place(lake: Lake, source: str, content: str) -> Path:
    """The folder of a source's counted names."""
    return lake.root / "aggregates" / f"source_key={slug(source)}" / f"names={digest(content, code_version(('wkg/names.py',)))}"


def count_names(folder: Path) -> pa.Table:
    """The names in the implementations of `folder`; a task without a title is called by its key."""
    parts = [_count(batch) for file in sorted(folder.glob("*.parquet")) for batch in pq.ParquetFile(file).iter_batches(columns=COLUMNS)]
    return _summed(pa.concat_tables(parts)) if parts else SCHEMA.empty_table()


def _count(batch: pa.RecordBatch) -> pa.Table:
    tasks = batch["tasks"]
    case = pc.list_parent_indices(tasks)
    step = pc.list_flatten(tasks)
    key = pc.struct_field(step, "task_key")
    title = pc.coalesce(pc.struct_field(step, "title"), key)
    return _summed(pa.table([batch["industry"].take(case), key, title, batch["weight"].take(case)], schema=SCHEMA))


def _summed(table: pa.Table) -> pa.Table:
    keys = ["industry", "task_key", "title"]
    summed = table.group_by(keys).aggregate([("count", "sum")]).rename_columns([*keys, "count"])
    return summed.take(pc.sort_indices(summed, sort_keys=[(k, "ascending", "at_start") for k in keys])).cast(SCHEMA)
