"""Writes rows for spreadsheet programs, as CSV and XLSX, so that no text of a client is run as a formula.

A spreadsheet program takes a cell of a CSV file for a formula where it begins with `=`, `+`, `-`, `@`, a tab or a
carriage return, or with one of the full-width and small forms of these signs (OWASP, CSV Injection). Such a text gets
an apostrophe in front, which spreadsheet programs take for the mark of a text. Numbers stay as they are, also in texts.
In XLSX a cell states its own type: all texts are written as texts, and those that look like a formula carry the mark
"quote prefix", so that editing them does not make formulas of them.
"""

import csv
import io
import json
import re
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any

MARK = "'"
_SIGNS = "=+-@"
_WIDE = "＝＋－＠﹦﹢﹣﹫−⁺⁻⁼"  # their full-width, small and raised forms; some programs make the plain ones of them
_NUMBER = re.compile(
    r"[+-]?(?:\d{1,15}(?:[.,]\d{1,15})?|\d{1,3}(?:[.,' ]\d{3}){1,4}(?:[.,]\d{1,6})?)(?:[eE][+-]?\d{1,3})?%?"
)
# Where a program splits lines at another sign than the comma, the rest of a text becomes a cell of its own.
_INNER = re.compile(rf"([;\t|\r\n][ ]*)(?=[{re.escape(_SIGNS)}{_WIDE}][^\s])")
MAX_CELL = 32_767  # characters of one cell, by the limits of Excel


def is_formula(text: str) -> bool:
    """Returns whether a spreadsheet program could take a text for a formula. A plain number is none."""
    if not text or _NUMBER.fullmatch(text):
        return False
    if text[0] in "\t\r\n":
        return True
    first = next((c for c in text if not c.isspace() and unicodedata.category(c) not in ("Cf", "Cc", "Mn")), "")
    return first != "" and (first in _SIGNS or first in _WIDE)


def escaped(text: str) -> str:
    """Returns a text as it stands in CSV: with an apostrophe before what could be taken for a formula."""
    inner = _INNER.sub(rf"\1{MARK}", text)
    return MARK + inner if is_formula(text) else inner


def as_csv(columns: Sequence[str], rows: Iterable[Sequence[Any]]) -> tuple[str, int]:
    """Returns rows as CSV with a line of column names, and how many cells were escaped. NULL is an empty cell."""
    out, marked = io.StringIO(newline=""), 0
    writer = csv.writer(out, lineterminator="\n")
    for row in (columns, *rows):
        cells = [(value, cell_text(value)) for value in row]
        safe = [escaped(text) if isinstance(value, str | list | dict) else text for value, text in cells]
        marked += sum(after != before for after, (_, before) in zip(safe, cells, strict=True))
        writer.writerow(safe)
    return out.getvalue(), marked


def as_xlsx(
    sheets: Mapping[str, tuple[Sequence[str], Iterable[Sequence[Any]]]],
) -> tuple[bytes, int]:
    """Returns tables as the sheets of a workbook, and how many texts look like a formula and are marked as texts.

    `sheets` has the columns and the rows of each sheet by its name.
    """
    from openpyxl import Workbook
    from openpyxl.cell import WriteOnlyCell

    book = Workbook(write_only=True)
    marked = 0

    def cell(value: Any) -> Any:
        nonlocal marked
        if isinstance(value, bool | int | float) or value is None:
            return value
        written = WriteOnlyCell(sheet, _printable(cell_text(value)))
        written.data_type = "s"  # openpyxl takes each text with "=" in front for a formula
        if is_formula(str(written.value)):
            written.quotePrefix = True
            marked += 1
        return written

    for title, (columns, rows) in sheets.items():
        sheet = book.create_sheet(title)
        for row in (columns, *rows):
            sheet.append([cell(value) for value in row])
    out = io.BytesIO()
    book.save(out)
    return out.getvalue(), marked


def cell_text(value: Any) -> str:
    """Returns a value as the text of a cell: a time in ISO 8601, a list or a struct as JSON, NULL as nothing."""
    if isinstance(value, datetime):
        return value.isoformat()
    if isinstance(value, list | dict):
        return json.dumps(value, default=str, ensure_ascii=False)
    return "" if value is None else str(value)


def _printable(text: str) -> str:
    """Returns a text without the control characters that XML cannot hold, as far as a cell is long."""
    kept = "".join(c for c in text if c in "\t\n" or unicodedata.category(c) not in ("Cc", "Cs"))
    return kept[:MAX_CELL]
