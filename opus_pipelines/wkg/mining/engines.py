"""Counts the aggregates of sources: the queries, and two engines that run them, chosen by the size of what is mined.

DuckDB counts in this process, from implementations that Arrow reads batch by batch. Spark takes the observations out of
the nested implementations by SQL. To executors that cannot read the lake the driver sends row groups, with the wanted
columns alone: a row of Spark's holds a row group as compressed Arrow, and the driver's heap holds the compressed
columns of one query at a time.
"""

import re
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq

from opus_pipelines.core.checkout import SQL
from opus_pipelines.core.schemas import IMPLEMENTATIONS
from opus_pipelines.core.settings import Spark
from opus_pipelines.history.records.money import GROUP_ATTRIBUTES, NO_GROUP
from opus_pipelines.wkg.estimates.aggregate_columns import BINNED
from opus_pipelines.wkg.estimates.figures import BORDERS
from opus_pipelines.wkg.mining.implementations import CASE_FIELDS, STEP_FIELDS, implementations

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


VALUES_KEPT = 64  # distinct descriptions, instructions, inputs, outputs of an execution mode in a source
PARAMETERS: dict[str, dict[str, Any]] = {
    "histograms": {"borders": BORDERS, "binned": list(BINNED)},
    "waits": {"borders": BORDERS},
    "texts": {"values_kept": VALUES_KEPT},
}


class Source(NamedTuple):
    """A source to mine: its name, the folder of its implementations, and its aliases (industry, task_key, task_id)."""

    name: str
    folder: Path
    aliases: tuple[tuple[str | None, str, str], ...]

    @property
    def files(self) -> list[Path]:
        """The Parquet files of its implementations."""
        return sorted(self.folder.glob("*.parquet"))


def query(name: str) -> str:
    """Returns the SQL of one aggregate, for both engines."""
    return (SQL / "wkg" / f"{name}.sql").read_text("utf-8")


def made_by(engine: str, name: str) -> str:
    """Returns the SQL by which an engine makes the view that the query of this aggregate reads."""
    return (SQL / "wkg" / engine / f"{name}.sql").read_text("utf-8")


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


_PARAMETER = re.compile(r"(?<![:\w]):([a-z_]+)")


def mine_with_duckdb(
    sources: list[Source], aliases: pa.Table, names: tuple[str, ...], spill: Path, memory: str
) -> dict[str, pa.Table]:
    """Returns the rows of these aggregates of all sources.

    `spill`: a folder for what does not fit into `memory`, such as 2GB.
    """
    files = [file for source in sources for file in source.files]
    with duckdb.connect(config={"temp_directory": str(spill), "memory_limit": memory}) as connection:
        connection.execute(made_by("duckdb", "macros"))
        connection.execute(f"CREATE MACRO actor_group(attributes, actor_kind) AS {_actor_group('')}")
        connection.execute("SET preserve_insertion_order = false")
        connection.execute("SET TimeZone = 'UTC'")
        connection.register("aliases", aliases)
        return {name: _mined_by_duckdb(connection, name, files) for name in names}


def _mined_by_duckdb(connection: duckdb.DuckDBPyConnection, name: str, files: list[Path]) -> pa.Table:
    batches = implementations(files, name)
    first = next(batches)
    connection.register("implementations", pa.RecordBatchReader.from_batches(first.schema, batches))
    connection.execute(f"CREATE OR REPLACE TEMP VIEW observations AS {made_by('duckdb', name)}")
    text = _PARAMETER.sub(r"$\1", query(name))
    return connection.sql(text, params=PARAMETERS.get(name)).to_arrow_table()


def _actor_group(step: str) -> str:
    """Returns the SQL of the group of people that a log states: what `[columns] actor_group` names, the role or group
    of the XES standard, or a column of that name. `implementations.actor_groups` is the same rule in Arrow.
    """
    none = ", ".join(f"'{word}'" for word in NO_GROUP)
    stated = (f"{step}attributes['{name}']" for name in GROUP_ATTRIBUTES)
    known = ", ".join(f"CASE WHEN lower(trim({value})) IN ({none}) THEN NULL ELSE {value} END" for value in stated)
    return f"CASE WHEN coalesce({step}actor_kind, 'human') = 'human' THEN coalesce({known}) END"


_TYPES = {int: "BIGINT", str: "STRING"}


def mine_with_spark(
    sources: list[Source], aliases: pa.Table, names: tuple[str, ...], spark: "SparkSession", shared: bool = True
) -> dict[str, pa.Table]:
    """Returns the rows of these aggregates of all sources. `shared`: executors can read the files of the sources."""
    paths = [str(file) for source in sources for file in source.files]
    spark.createDataFrame(aliases).createOrReplaceTempView("aliases")
    return {name: _mined_by_spark(spark, name, paths, shared) for name in names}


def _mined_by_spark(spark: "SparkSession", name: str, paths: list[str], shared: bool) -> pa.Table:
    _implementations(spark, paths, STEP_FIELDS[name], shared).createOrReplaceTempView("implementations")
    spark.sql(made_by("spark", name)).createOrReplaceTempView("observations")
    text, parameters = query(name), dict[str, Any]()
    for key, value in PARAMETERS.get(name, {}).items():
        if isinstance(value, list):  # Spark takes a text for a parameter, but no long list of numbers
            text = text.replace(f":{key}", f"CAST(split(:{key}, ',') AS ARRAY<{_TYPES[type(value[0])]}>)")
            value = ",".join(map(str, value))
        parameters[key] = value
    return spark.sql(text, args=parameters).toArrow()


def _implementations(spark: "SparkSession", paths: list[str], fields: tuple[str, ...], shared: bool) -> "DataFrame":
    """Returns the implementations with only these fields of their steps, so that no other field is read from disk."""
    from pyspark.sql.pandas.types import from_arrow_schema

    stored = {"attributes" if name == "actor_group" else name for name in fields}
    step = pa.struct([field for field in IMPLEMENTATIONS.schema.field("tasks").type.value_type if field.name in stored])
    schema = pa.schema(
        [*(IMPLEMENTATIONS.schema.field(name) for name in CASE_FIELDS), pa.field("tasks", pa.list_(step))]
    )
    if shared:
        rows = spark.read.schema(from_arrow_schema(schema, prefer_timestamp_ntz=False)).parquet(*paths)
    else:
        rows = carried(spark, paths, schema)
    if "actor_group" not in fields:
        return rows
    plain = ", ".join(f"'{name}', t.{name}" for name in fields if name != "actor_group")
    tasks = f"transform(tasks, t -> named_struct({plain}, 'actor_group', {_actor_group('t.')})) AS tasks"
    return rows.selectExpr(*CASE_FIELDS, tasks)


MIB = 2**20
_ALIASES = pa.schema([(name, pa.string()) for name in ("source", "industry", "task_key", "task_id")])


def mine_aggregates(
    sources: list[Source],
    names: tuple[str, ...],
    rules: Spark,
    session: "Callable[[], SparkSession]",
    spill: Path,
) -> dict[str, pa.Table]:
    """Returns the rows of these aggregates of all sources, in no order.

    From `rules.mine_from_mib` MiB of Parquet on Spark mines them, else DuckDB in this process. `session` is called for
    Spark only. `spill`: a folder for what does not fit into memory.
    """
    rows = [(source.name, *alias) for source in sources for alias in source.aliases]
    aliases = pa.Table.from_pylist([dict(zip(_ALIASES.names, row, strict=True)) for row in rows], schema=_ALIASES)
    if takes_spark(sources, rules):
        return mine_with_spark(sources, aliases, names, session(), rules.shared_files)
    return mine_with_duckdb(sources, aliases, names, spill, memory_limit(rules.driver_memory))


def takes_spark(sources: list[Source], rules: Spark) -> bool:
    """Tells whether Spark mines these sources."""
    return sum(file.stat().st_size for source in sources for file in source.files) >= rules.mine_from_mib * MIB


def memory_limit(driver_memory: str) -> str:
    """Returns the heap of Spark's driver as DuckDB writes a size: 2g becomes 2GiB."""
    number = driver_memory.rstrip("kKmMgGtTbB")
    unit = driver_memory[len(number) :].upper().rstrip("B") or "B"
    return f"{number}B" if unit == "B" else f"{number}{unit}iB"
