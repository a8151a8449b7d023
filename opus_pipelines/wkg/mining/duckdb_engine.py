"""Mines in this process: Arrow makes the observations batch by batch, and DuckDB counts them."""

import re
from pathlib import Path

import duckdb
import pyarrow as pa

from opus_pipelines.wkg.mining.observations import observations
from opus_pipelines.wkg.mining.queries import PARAMETERS, Source, query

_PARAMETER = re.compile(r"(?<![:\w]):([a-z_]+)")
# Spark's names of functions that DuckDB has under another name.
_MACROS = "CREATE MACRO get(list, place) AS list[place + 1]"


def mine_with_duckdb(
    sources: list[Source], aliases: pa.Table, names: tuple[str, ...], spill: Path, memory: str
) -> dict[str, pa.Table]:
    """Returns the rows of these aggregates of all sources.

    `spill`: a folder for what does not fit into `memory`, such as 2GB.
    """
    files = [file for source in sources for file in source.files]
    with duckdb.connect(config={"temp_directory": str(spill), "memory_limit": memory}) as connection:
        connection.execute(_MACROS)
        connection.execute("SET preserve_insertion_order = false")
        connection.execute("SET TimeZone = 'UTC'")
        connection.register("aliases", aliases)
        return {name: _mined_by_duckdb(connection, name, files) for name in names}


def _mined_by_duckdb(connection: duckdb.DuckDBPyConnection, name: str, files: list[Path]) -> pa.Table:
    batches = observations(files, name)
    first = next(batches)
    connection.register("observations", pa.RecordBatchReader.from_batches(first.schema, batches))
    text = _PARAMETER.sub(r"$\1", query(name))
    return connection.sql(text, params=PARAMETERS.get(name)).to_arrow_table()
