"""The choice between the two engines of mining, by the size of what is mined."""

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa

from opus_pipelines.core.settings import Spark
from opus_pipelines.wkg.mining import duckdb_engine, spark_engine
from opus_pipelines.wkg.mining.queries import Source

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

MIB = 2**20
_ALIASES = pa.schema([(name, pa.string()) for name in ("source", "industry", "task_key", "task_id")])


def mine(
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
        return spark_engine.mine_with_spark(sources, aliases, names, session(), rules.shared_files)
    return duckdb_engine.mine_with_duckdb(sources, aliases, names, spill, memory_limit(rules.driver_memory))


def takes_spark(sources: list[Source], rules: Spark) -> bool:
    """Tells whether Spark mines these sources."""
    return sum(file.stat().st_size for source in sources for file in source.files) >= rules.mine_from_mib * MIB


def memory_limit(driver_memory: str) -> str:
    """Returns the heap of Spark's driver as DuckDB writes a size: 2g becomes 2GiB."""
    number = driver_memory.rstrip("kKmMgGtTbB")
    unit = driver_memory[len(number) :].upper().rstrip("B") or "B"
    return f"{number}B" if unit == "B" else f"{number}{unit}iB"
