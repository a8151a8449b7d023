"""A contract's result in the making, on disk: a folder a dataset, a file a chunk of intakes, read back column by
column.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, MutableMapping, Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from opus_pipelines.core.errors import LakeError
from opus_pipelines.core.schemas import DATASETS
from opus_pipelines.lake.layout import read_table, write_table
from opus_pipelines.lake.results import Columns, ResultKey


def write_part(heading: ResultKey, rows: Mapping[str, Columns], folder: Path, part: str) -> Counter[str]:
    """A file `part` for each dataset with rows, sorted by its key; returns the numbers of rows."""
    counts = Counter[str]()
    for name, columns in rows.items():
        table = heading.table_of_columns(DATASETS[name], columns)
        write_table(DATASETS[name], table, folder / name, part)
        counts[name] = table.num_rows
    return counts


class StagedTables(MutableMapping[str, pa.Table]):
    """The tables of `names` below a folder, each read when it is asked for; a dataset without files is an empty table.
    One that is set is
    written: nothing is held in memory.
    """

    def __init__(self, folder: Path, names: Sequence[str]) -> None:
        self.folder, self._names = folder, tuple(names)

    def __getitem__(self, name: str) -> pa.Table:
        if name not in self._names:
            raise KeyError(name)
        return read_table(DATASETS[name], self.folder / name)

    def __setitem__(self, name: str, table: pa.Table) -> None:
        if any((self.folder / name).glob("*")):
            raise LakeError(f"{name} is written already")
        write_table(DATASETS[name], table, self.folder / name)
        self._names = (*self._names, name) if name not in self._names else self._names

    def __delitem__(self, name: str) -> None:
        raise TypeError("what is staged is never taken back")

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)

    def rows(self, name: str) -> int:
        """How many rows a table has; its footers tell."""
        return sum(pq.ParquetFile(file).metadata.num_rows for file in sorted((self.folder / name).glob("*.parquet")))

    def schemas(self, name: str) -> list[pa.Schema]:
        """The schema of each of a table's files."""
        return [pq.read_schema(file) for file in sorted((self.folder / name).glob("*.parquet"))]


def columns_of(tables: Mapping[str, pa.Table], name: str, columns: Sequence[str]) -> pa.Table:
    """Some columns of a table; of a staged one no others are read."""
    if isinstance(tables, StagedTables):
        return read_table(DATASETS[name], tables.folder / name, columns=list(columns))
    return tables[name].select(list(columns))


def schemas_of(tables: Mapping[str, pa.Table], name: str) -> list[pa.Schema]:
    """The schemas of a table's parts: one, where it is in memory."""
    return tables.schemas(name) if isinstance(tables, StagedTables) else [tables[name].schema]
