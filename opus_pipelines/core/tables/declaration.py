"""Declares datasets: each line of a table has a column's name, type and meaning, and is read into an Arrow schema.

A line with a deeper indentation continues the meaning of the line above. Each stage has a module of tables next to this
one; the rest of the package imports them from `opus_pipelines.core.schemas`. Arrow is imported when the first type is
asked for, since a command that only reads views asks for none.
"""

import re
from dataclasses import dataclass
from functools import cache, cached_property
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pyarrow as pa

DIMENSION = 384  # of the shipped encoder; `Dataset.with_dimension` is for others


@dataclass(frozen=True)
class Column:
    """One column: the name of its type in the data dictionary, and its meaning."""

    name: str
    type_name: str
    meaning: str

    @property
    def type(self) -> "pa.DataType":
        """Its Arrow type. Raises TypeError where no type has that name."""
        return arrow_type(self.type_name)


@dataclass(frozen=True)
class Dataset:
    """One dataset: its folder, its columns, the columns that order its rows, and its hive partitions."""

    name: str
    about: str
    columns: tuple[Column, ...]
    key: tuple[str, ...]
    partitions: tuple[str, ...] = ()

    @cached_property
    def schema(self) -> "pa.Schema":
        """The Arrow schema of its Parquet files; every column is nullable."""
        import pyarrow as pa

        return pa.schema([pa.field(c.name, c.type) for c in self.columns])

    @property
    def declaration(self) -> str:
        """Its columns and their types in words, structs with their fields: without Arrow, unlike `schema`."""
        return ", ".join(f"{c.name} {_with_fields(c.type_name)}" for c in self.columns)

    def with_dimension(self, dimension: int) -> "pa.Schema":
        """Returns the same schema with vectors of `dimension` numbers, for an encoder other than the shipped one."""
        import pyarrow as pa

        vector = pa.list_(pa.float32(), dimension)
        return pa.schema([pa.field(c.name, vector if c.type_name == "vector" else c.type) for c in self.columns])

    def with_dimension_of(self, written: "pa.Schema") -> "pa.Schema":
        """Returns the same schema with vectors as long as those of a table or a file, where it has any."""
        import pyarrow as pa

        sizes = [field.type.list_size for field in written if pa.types.is_fixed_size_list(field.type)]
        return self.with_dimension(sizes[0]) if sizes else self.schema

    @property
    def view(self) -> str:
        """The name of its DuckDB view."""
        return self.name.replace("/", "_")

    @property
    def named_by_folder(self) -> dict[str, str]:
        """The columns whose value is in the name of the folder, as a slug: the partition, and the column."""
        return {key: column for key, column in _OF_PARTITIONS.items() if key in self.partitions}

    @property
    def empty_file(self) -> str:
        """The place of its typed file without rows below `.empty`. DuckDB reads partitions only where every file of a
        view has them in its path, so this one has them, too.
        """
        folders = [f"{key}=none/" for key in self.partitions] if self.named_by_folder else []
        return "".join(folders) + f"{self.view}.parquet"


_OF_PARTITIONS = {"client_key": "client", "contract_key": "contract", "source_key": "source"}
DATASETS: dict[str, Dataset] = {}
STRUCTS: dict[str, tuple[tuple[str, str], ...]] = {}  # name and type of each field of a struct


@cache
def _scalars() -> "dict[str, pa.DataType]":
    import pyarrow as pa

    return {
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
        "seconds": pa.map_(pa.string(), pa.float64()),
    }


def arrow_type(text: str) -> "pa.DataType":
    """Returns the Arrow type of a type name of the declarations. Raises TypeError for an unknown one."""
    import pyarrow as pa

    if text in _scalars():
        return _scalars()[text]
    if text in STRUCTS:
        return pa.struct([pa.field(name, arrow_type(kind)) for name, kind in STRUCTS[text]])
    if match := re.fullmatch(r"list<(.+)>", text):
        return pa.list_(arrow_type(match[1]))
    if match := re.fullmatch(r"map<(.+),(.+)>", text):
        return pa.map_(arrow_type(match[1]), arrow_type(match[2]))
    raise TypeError(f"no such column type: {text}")


def _with_fields(type_name: str) -> str:
    """Returns a type name in which each name of a struct is followed by its fields."""

    def fields(match: re.Match[str]) -> str:
        inner = ", ".join(f"{name} {_with_fields(kind)}" for name, kind in STRUCTS[match[0]])
        return f"{match[0]}({inner})"

    return re.sub(r"\w+", lambda match: fields(match) if match[0] in STRUCTS else match[0], type_name)


def _columns(table: str) -> tuple[Column, ...]:
    whole_lines = re.sub(r"\n {5,}", " ", table.strip())
    rows = (re.split(r"\s{2,}", line.strip(), maxsplit=2) for line in whole_lines.splitlines())
    return tuple(Column(name, kind, meaning) for name, kind, meaning in rows)


def struct(name: str, table: str) -> tuple[Column, ...]:
    """Declares a struct type that later tables may name, and returns its fields."""
    columns = _columns(table)
    STRUCTS[name] = tuple((c.name, c.type_name) for c in columns)
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
