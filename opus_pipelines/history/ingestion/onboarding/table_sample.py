"""Reads the first rows of a table (CSV or Parquet) and the values of each of its columns."""

import csv
import io
from collections import Counter
from dataclasses import dataclass, field
from functools import cached_property
from itertools import islice
from pathlib import Path

import pyarrow.parquet as pq

from opus_pipelines.core.errors import InputError
from opus_pipelines.history.columns.csv_records import FIELD_BYTES
from opus_pipelines.history.formats.encoding_detection import Encoding, detect_delimiter, detect_file_encoding
from opus_pipelines.history.records.files import open_data

ROWS = 100_000  # looked at; more do not change what a column means
_HEAD = 1 << 16


@dataclass(frozen=True)
class Column:
    """One column: its values in the order of the rows, as text, "" where a row has none."""

    name: str
    values: tuple[str, ...]

    @cached_property
    def filled(self) -> list[str]:
        """Returns the values that are not empty, without surrounding blanks."""
        return [value.strip() for value in self.values if value.strip()]

    @cached_property
    def counts(self) -> Counter[str]:
        """Counts the distinct values."""
        return Counter(self.filled)


@dataclass(frozen=True)
class TableSample:
    """The first rows of a table. `encoding` and `delimiter` are None for Parquet."""

    columns: dict[str, Column]
    rows: int
    encoding: Encoding | None = None
    delimiter: str | None = None
    _groups: dict[str, list[list[int]]] = field(default_factory=dict, compare=False, repr=False)

    @property
    def header(self) -> list[str]:
        """Returns the names of the columns, in their order."""
        return list(self.columns)

    def cases(self, case: str) -> list[list[int]]:
        """Returns the row numbers of each value of the column `case`."""
        if case not in self._groups:
            groups: dict[str, list[int]] = {}
            for row, value in enumerate(self.columns[case].values):
                if value.strip():
                    groups.setdefault(value.strip(), []).append(row)
            self._groups[case] = list(groups.values())
        return self._groups[case]

    def changes_within(self, case: str, column: str) -> float:
        """Returns the share of cases with several rows in which the column has several values.

        The share is 0 if there are no such cases.
        """
        values = self.columns[column].values
        several = [rows for rows in self.cases(case) if len(rows) > 1]
        if not several:
            return 0.0
        return sum(len({values[row].strip() for row in rows} - {""}) > 1 for rows in several) / len(several)


def read_sample(path: Path, kind: str) -> TableSample:
    """Reads the first rows of a CSV or Parquet file. Raises InputError if it is empty or has no header."""
    return _parquet(path) if kind == "parquet" else _csv(path)


def _csv(path: Path) -> TableSample:
    encoding = detect_file_encoding(path)
    with open_data(path) as file:
        delimiter = detect_delimiter(file.read(_HEAD).decode(encoding.name, "replace"))
    csv.field_size_limit(FIELD_BYTES)
    with open_data(path) as file, io.TextIOWrapper(file, encoding=encoding.name, errors="replace", newline="") as text:
        lines = csv.reader(text, delimiter=delimiter)
        header = _named(next(lines, []))
        rows = [row for row in islice(lines, ROWS) if len(row) == len(header)]
    if not header or not rows:
        raise InputError(f"{path}: it has no rows below a header of columns")
    columns = {name: Column(name, tuple(values)) for name, values in zip(header, zip(*rows, strict=True), strict=True)}
    return TableSample(columns, len(rows), encoding, delimiter)


def _parquet(path: Path) -> TableSample:
    batch = next(pq.ParquetFile(path).iter_batches(batch_size=ROWS), None)
    if batch is None:
        raise InputError(f"{path}: it has no rows")
    columns = {n: Column(n, tuple(_text(value) for value in batch[n].to_pylist())) for n in batch.schema.names}
    return TableSample(columns, len(batch))


def _text(value: object) -> str:
    return "" if value is None else str(value)


def _named(fields: list[str]) -> list[str]:
    """Returns column names as the CSV reader does.

    A column without a name is named by its position, and a repeated name gets a number.
    """
    header: dict[str, None] = {}
    for place, name in enumerate(fields, start=1):
        plain = name.strip() or f"column {place}"
        while plain in header:
            plain = f"{plain} ({place})"
        header[plain] = None
    return list(header)
