"""How a dataset is declared: a line a column - name, type, meaning - read into an Arrow schema.

The tables themselves lie beside this file, a module a stage; `opus_pipelines.core.schemas` is what the rest imports.
"""

import re
from dataclasses import dataclass
from functools import cached_property

import pyarrow as pa

DIMENSION = 384  # of the shipped encoder; `Dataset.with_dimension` is for others

_SCALARS: dict[str, pa.DataType] = {
    "id": pa.string(),
    "string": pa.string(),
    "bool": pa.bool_(),
    "int32": pa.int32(),
    "int64": pa.int64(),
    "float": pa.float64(),
    "ms": pa.float64(),
    "usd": pa.float64(),
    "prob": pa.float64(),
    "ts": pa.timestamp("us", tz="UTC"),
    "vector": pa.list_(pa.float32(), DIMENSION),
}


@dataclass(frozen=True)
class Column:
    """One column: its Arrow type, the name of that type in the data dictionary, and a sentence of meaning."""

    name: str
    type: pa.DataType
    type_name: str
    meaning: str


@dataclass(frozen=True)
class Dataset:
    """One dataset: folder, columns, the columns that order its rows, and its hive partitions."""

    name: str
    about: str
    columns: tuple[Column, ...]
    key: tuple[str, ...]
    partitions: tuple[str, ...] = ()

    @cached_property
    def schema(self) -> pa.Schema:
        """The Arrow schema of its Parquet files; every column is nullable."""
        return pa.schema([pa.field(c.name, c.type) for c in self.columns])

    def with_dimension(self, dimension: int) -> pa.Schema:
        """The same schema with vectors of `dimension` numbers, for an encoder other than the shipped one."""
        vector = pa.list_(pa.float32(), dimension)
        return pa.schema([pa.field(c.name, vector if c.type_name == "vector" else c.type) for c in self.columns])

    @property
    def view(self) -> str:
        """The name of its DuckDB view."""
        return self.name.replace("/", "_")


DATASETS: dict[str, Dataset] = {}
STRUCTS: dict[str, pa.DataType] = {}


def arrow_type(text: str) -> pa.DataType:
    if text in _SCALARS:
        return _SCALARS[text]
    if text in STRUCTS:
        return STRUCTS[text]
    if match := re.fullmatch(r"list<(.+)>", text):
        return pa.list_(arrow_type(match[1]))
    if match := re.fullmatch(r"map<(.+),(.+)>", text):
        return pa.map_(arrow_type(match[1]), arrow_type(match[2]))
    raise TypeError(f"no such column type: {text}")


def _columns(table: str) -> tuple[Column, ...]:
    rows = (re.split(r"\s{2,}", line.strip(), maxsplit=2) for line in table.strip().splitlines())
    return tuple(Column(name, arrow_type(kind), kind, meaning) for name, kind, meaning in rows)


def struct(name: str, table: str) -> tuple[Column, ...]:
    """Declare a struct type that later tables may name."""
    columns = _columns(table)
    STRUCTS[name] = pa.struct([pa.field(c.name, c.type) for c in columns])
    return columns


def dataset(name: str, about: str, key: str, table: str, partitions: str = "") -> Dataset:
    """Declare a dataset; `key` and `partitions` are names separated by blanks."""
    made = Dataset(name, about, _columns(table), tuple(key.split()), tuple(partitions.split()))
    DATASETS[name] = made
    return made
