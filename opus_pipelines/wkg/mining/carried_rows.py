"""Implementations for executors that cannot read the lake: the driver sends row groups, with the wanted columns alone.

A row of Spark's holds a row group as compressed Arrow; the executors unpack it. A driver's heap holds the compressed
columns of one query at a time.
"""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_PACKED = pa.schema([("rows", pa.binary())])


def carried(spark: "SparkSession", paths: Sequence[str], schema: pa.Schema) -> "DataFrame":
    """Returns the rows of these Parquet files with the columns of `schema`, whose structs may have fewer fields."""
    from pyspark.sql.pandas.types import from_arrow_schema

    packed = [_packed(group) for path in paths for group in _groups(path, schema)]
    rows = spark.createDataFrame(pa.Table.from_batches(packed, _PACKED))
    return rows.mapInArrow(_unpacked, from_arrow_schema(schema, prefer_timestamp_ntz=False))


def _groups(path: str, schema: pa.Schema) -> Iterator[pa.Table]:
    columns = [name for field in schema for name in _leaves(field)]
    with pq.ParquetFile(path) as file:
        for number in range(file.num_row_groups):
            yield file.read_row_group(number, columns=columns).select(schema.names).cast(schema)


def _leaves(field: pa.Field) -> list[str]:
    """Returns the names by which Parquet reads a column; of a list of structs, those of the wanted fields."""
    if pa.types.is_list(field.type) and pa.types.is_struct(field.type.value_type):
        return [f"{field.name}.list.element.{one.name}" for one in field.type.value_type]
    return [field.name]


def _packed(group: pa.Table) -> pa.RecordBatch:
    """Returns a batch of one row, which becomes a partition of its own."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, group.schema, options=pa.ipc.IpcWriteOptions(compression="zstd")) as stream:
        stream.write_table(group)
    return pa.RecordBatch.from_arrays([pa.array([sink.getvalue().to_pybytes()], pa.binary())], schema=_PACKED)


# --- in Spark's Python workers


def _unpacked(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        for rows in batch.column("rows"):
            with pa.ipc.open_stream(rows.as_buffer()) as stream:
                yield from stream
