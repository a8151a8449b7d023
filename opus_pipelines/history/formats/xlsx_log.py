"""Reads event logs in Excel workbooks (.xlsx, .xlsm) with the same columns as CSV. A record is a row of a sheet.

The sheet is the one that source.toml names, else the one that looks like a log; sheets with the same header are read
one after the other. Titles above the header are skipped, and each cell of a merged range has the value of the range.
Nothing is calculated: formulas have the values that were saved with them.
"""

import io
import re
import zipfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import date, datetime, time
from functools import cached_property
from itertools import islice
from typing import Any, BinaryIO

from opus_pipelines.core.errors import InputError
from opus_pipelines.history.formats.encoding_detection import header_place, is_header, with_groups
from opus_pipelines.history.formats.table_log import TableLog, column_names
from opus_pipelines.history.records.assembler import Assembler
from opus_pipelines.history.records.source_settings import SourceSettings
from opus_pipelines.history.records.values import day_comes_first, is_numeric_date

FILE_BYTES = 1 << 28
BOMB_BYTES, BOMB_RATIO = 1 << 28, 100  # real sheets shrink five to twenty times
_WHOLE_BYTES = 1 << 22  # of a file up to which a workbook is held in memory, with its merged cells
_MOST_MERGED = 100_000  # cells of merged ranges in such a workbook
_LOOKED_AT = 60  # rows that show where the header is, and what the sheet has
_LEAST_COLUMNS = 3  # of a log
_RIVAL = 0.5  # share of the rows of the largest log from which another one may be meant as well


_MERGED = re.compile(rb"<(?:\w+:)?mergeCell [^>]*?([A-Z]{1,3})(\d{1,7}):([A-Z]{1,3})(\d{1,7})")


@dataclass(frozen=True)
class Sheet:
    """A sheet with a table: its name, its header, the place of each column and the number of the header's row."""

    name: str
    header: list[str]
    places: list[int]
    row: int
    rows: int
    has_times: bool


class Workbook:
    """An Excel workbook. Raises InputError if it is broken, or larger than any log."""

    def __init__(self, file: BinaryIO) -> None:
        import openpyxl

        content = file.read(FILE_BYTES + 1)
        if len(content) > FILE_BYTES:
            raise InputError(f"the workbook is larger than {FILE_BYTES >> 20} MiB; save its sheet as CSV")
        try:
            with zipfile.ZipFile(io.BytesIO(content)) as parts:
                unpacked = sum(part.file_size for part in parts.infolist())
                if unpacked > max(BOMB_BYTES, BOMB_RATIO * len(content)):
                    raise InputError("the workbook unpacks to more than any log does; save its sheet as CSV")
                is_large = len(content) > _WHOLE_BYTES or _merged_cells(parts) > _MOST_MERGED
            self._book = openpyxl.load_workbook(io.BytesIO(content), read_only=is_large, data_only=True)
            for sheet in self._book.worksheets if is_large else []:
                if (sheet.max_row or 0) <= 1:  # some writers state a wrong size, to which rows would be cut
                    sheet.reset_dimensions()
        except InputError:
            raise
        except Exception as error:
            raise InputError(
                f"it is no Excel workbook that can be opened ({type(error).__name__}: {str(error)[:200]}); save it "
                "anew as .xlsx without a password, or as CSV"
            ) from None

    @cached_property
    def tables(self) -> list[Sheet]:
        """Returns the sheets that hold a table, without hidden ones."""
        sheets = [sheet for sheet in self._book.worksheets if sheet.sheet_state == "visible"]
        return [table for sheet in sheets if (table := self._table(sheet)) is not None]

    def logs(self, stated: Sequence[str]) -> list[Sheet]:
        """Returns the sheets to read, which have one header.

        `stated` are the names that a person gave. Raises InputError if it cannot be told which are meant.
        """
        if stated:
            tables = {table.name: table for sheet in self._book.worksheets if (table := self._table(sheet)) is not None}
            if lacking := [name for name in stated if name not in tables]:
                raise InputError(f"it has no sheet {lacking[0]!r} with a table; its sheets are {self._names()}")
            return [_like(tables[name], tables[stated[0]]) for name in stated]
        wide = [table for table in self.tables if len(table.header) >= _LEAST_COLUMNS] or self.tables
        found = [table for table in wide if table.has_times] or wide
        if not found:
            raise InputError(f"none of its sheets has a table with a header: {self._names()}")
        best = max(found, key=lambda table: table.rows)
        alike = [table for table in found if set(table.header) == set(best.header)]
        others = [table.name for table in found if table not in alike and table.rows >= _RIVAL * best.rows]
        if others:
            raise InputError(
                f"its sheets {best.name!r} and {others[0]!r} both look like a log; say which under [table] in "
                f'source.toml: sheet = "{best.name}"'
            )
        return [_like(table, alike[0]) for table in alike]

    def rows(self, sheet: Sheet) -> Iterator[tuple[int, list[Any]]]:
        """Yields the number and the values of each row below the header that is not empty.

        A single cell below an empty row is a remark under the table, as "As of today".
        """
        merged, is_below = self._merged(sheet.name), False
        for number, cells in enumerate(self._book[sheet.name].iter_rows(values_only=True), start=1):
            if number > sheet.row:
                values = [_value(merged.get((number, place), _at(cells, place))) for place in sheet.places]
                filled = sum(value not in ("", None) for value in values)
                if filled > 1 or (filled and not is_below):
                    yield number, values
                is_below = not filled

    def _table(self, sheet: Any) -> Sheet | None:
        cells = [list(map(_value, row)) for row in islice(sheet.iter_rows(values_only=True), _LOOKED_AT)]
        filled = [place for place in range(max(map(len, cells), default=0)) if any(_has(row, place) for row in cells)]
        rows = [[_text(_at(row, place)) for place in filled] for row in cells]
        numbers = [number for number, row in enumerate(rows) if any(row)]
        head = header_place([rows[number] for number in numbers])[0] if numbers else 0
        if len(numbers) < head + 2 or len(filled) < 2:
            return None
        names = with_groups(rows[numbers[head]], rows[numbers[head - 1]] if head else [])
        # what stands in a column without a name is a remark beside the table, unless every row has it
        places = [p for p, name in enumerate(names) if name or all(rows[n][p] for n in numbers[head + 1 :])]
        if not is_header([names[p] for p in places if names[p]]):
            return None
        has_times = any(_is_date(text) for n in numbers[head + 1 :] for text in rows[n])
        return Sheet(
            sheet.title,
            column_names(names[p] for p in places),
            [filled[p] for p in places],
            numbers[head] + 1,
            (sheet.max_row or 0) - numbers[head],
            has_times,
        )

    def _merged(self, name: str) -> dict[tuple[int, int], Any]:
        """Returns the value of each cell, by row and place, that a merged range covers."""
        sheet = self._book[name]
        ranges = getattr(getattr(sheet, "merged_cells", None), "ranges", ())
        return {
            (row, column - 1): sheet.cell(area.min_row, area.min_col).value
            for area in ranges
            if area.max_row > area.min_row
            for row in range(area.min_row, area.max_row + 1)
            for column in range(area.min_col, area.max_col + 1)
        }

    def _names(self) -> str:
        return ", ".join(repr(sheet.title) for sheet in self._book.worksheets)


def _like(sheet: Sheet, first: Sheet) -> Sheet:
    """Returns a sheet with its columns in the order of another one, where both have the same columns."""
    if set(sheet.header) != set(first.header):
        return sheet
    places = [sheet.places[sheet.header.index(name)] for name in first.header]
    return replace(sheet, header=first.header, places=places)


def _merged_cells(parts: zipfile.ZipFile) -> int:
    """Returns how many cells the merged ranges of all sheets cover; a few bytes may claim billions."""
    sheets = [part for part in parts.namelist() if part.startswith("xl/worksheets/") and part.endswith(".xml")]
    cells = 0
    for part in sheets:
        for left, top, right, bottom in _MERGED.findall(parts.read(part)):
            cells += (abs(int(bottom) - int(top)) + 1) * (abs(_column(right) - _column(left)) + 1)
    return cells


def _column(letters: bytes) -> int:
    return sum((letter - 64) * 26**place for place, letter in enumerate(reversed(letters)))


def read(open_file: Callable[[], BinaryIO], settings: SourceSettings, sink: Assembler) -> None:
    """Reads every case into `sink` at the end of the file. Raises InputError if sheet or columns are unclear."""
    with open_file() as file:
        book = Workbook(file)
    sheets = book.logs(settings.table.sheet)
    if any(sheet.header != sheets[0].header for sheet in sheets):
        raise InputError("the sheets that source.toml names have different headers; put each into a source of its own")
    table = TableLog(sheets[0].header, settings, sink)
    dates = (
        row[place]
        for sheet in sheets
        for _, row in book.rows(sheet)
        for place in table.time_columns
        if isinstance(row[place], str) and is_numeric_date(row[place])
    )
    first = next(dates, None)
    if first is not None:
        table.times.day_first = sink.day_first_of(day_comes_first([first, *dates]))
    before = 0
    for sheet in sheets:
        number = sheet.row
        for number, row in book.rows(sheet):
            table.row(before + number, dict(zip(table.header, row, strict=True)))
            sink.report_progress(before + number)
        before += number
    table.finish()


def _value(cell: Any) -> Any:
    """Returns a cell's value as the row readers expect it: moments as ISO text, whole numbers without a fraction."""
    if isinstance(cell, datetime | date | time):
        return cell.isoformat()
    if isinstance(cell, float) and cell.is_integer():
        return int(cell)
    return cell if cell is None or isinstance(cell, str | int | float) else str(cell)


def _text(value: Any) -> str:
    return "" if value is None else str(value).strip()


def _at(row: Sequence[Any], place: int) -> Any:
    return row[place] if place < len(row) else None


def _has(row: Sequence[Any], place: int) -> bool:
    return _text(_at(row, place)) != ""


def _is_date(text: str) -> bool:
    return len(text) > 5 and sum(c.isdigit() for c in text) >= 4 and sum(c in "-/.:" for c in text) >= 2
