"""Declares datasets: each line of a table has a column's name, type and meaning, and is read into an Arrow schema.

A line with a deeper indentation continues the meaning of the line above. Each stage has a module of tables next to this
one; the rest of the package imports them from `opus_pipelines.core.schemas`.
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
    """One column: its Arrow type, the name of that type in the data dictionary, and its meaning."""

    name: str
    type: pa.DataType
    type_name: str
    meaning: str


@dataclass(frozen=True)
class Dataset:
    """One dataset: its folder, its columns, the columns that order its rows, and its hive partitions."""

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
        """Returns the same schema with vectors of `dimension` numbers, for an encoder other than the shipped one."""
        vector = pa.list_(pa.float32(), dimension)
        return pa.schema([pa.field(c.name, vector if c.type_name == "vector" else c.type) for c in self.columns])

    @property
    def view(self) -> str:
        """The name of its DuckDB view."""
        return self.name.replace("/", "_")


DATASETS: dict[str, Dataset] = {}
STRUCTS: dict[str, pa.DataType] = {}


def arrow_type(text: str) -> pa.DataType:
    """Returns the Arrow type of a type name of the declarations. Raises TypeError for an unknown one."""
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
    whole_lines = re.sub(r"\n {5,}", " ", table.strip())
    rows = (re.split(r"\s{2,}", line.strip(), maxsplit=2) for line in whole_lines.splitlines())
    return tuple(Column(name, arrow_type(kind), kind, meaning) for name, kind, meaning in rows)


def struct(name: str, table: str) -> tuple[Column, ...]:
    """Declares a struct type that later tables may name, and returns its fields."""
    columns = _columns(table)
    STRUCTS[name] = pa.struct([pa.field(c.name, c.type) for c in columns])
    return columns


def dataset(name: str, about: str, key: str, table: str, partitions: str = "") -> Dataset:
    """Declares a dataset; `key` and `partitions` are names separated by blanks."""
    declared = Dataset(name, about, _columns(table), tuple(key.split()), tuple(partitions.split()))
    DATASETS[name] = declared
    return declared


# The columns with which every dataset of a contract's results begins.
RESULT = """
    client    string  the client, as written
    contract  string  the contract, as written
    result    id      hash of intakes, contract, snapshot, model, settings and algorithm versions
"""
INTAKE = (
    RESULT
    + """
    intake_id     id  hash of client, contract and folder
"""
)
INTENTION = (
    INTAKE
    + """
    intention_id  id  one goal of the intake
"""
)


def result_dataset(name: str, about: str, key: str, table: str, head: str = INTENTION) -> Dataset:
    """Declares a dataset of a contract's results: every row begins with client, contract and result."""
    lines = [line for line in (head + table).splitlines() if line.strip()]
    return dataset(name, about, "client contract " + key, "\n".join(lines), partitions="client_key contract_key result")
