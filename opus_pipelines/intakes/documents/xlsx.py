"""Reads Excel .xlsx and .xlsm sheet by sheet and row by row, with the values as last saved.

Nothing is calculated, and macros are never run.
"""

import re
import zipfile
from collections.abc import Iterator, Sequence
from datetime import date, datetime, time
from io import BytesIO
from itertools import zip_longest
from typing import Any

from openpyxl import load_workbook

from opus_pipelines.intakes.documents.document import Document, DocumentText, counted
from opus_pipelines.intakes.documents.limits import MAX_CELLS, MAX_ROWS, MIB
from opus_pipelines.intakes.documents.office_packages import SHEET, opened
from opus_pipelines.intakes.documents.tables import beyond, table_text


def read(document: Document) -> DocumentText:
    """Returns a heading and a table for each visible sheet.

    Rows beyond the limit are counted, up to a limit of cells.
    """
    stream, names = opened(document)
    values = load_workbook(stream, read_only=True, data_only=True, keep_links=False)
    written = (
        load_workbook(stream, read_only=True, data_only=False, keep_links=False)
        if _has_formulas(stream, names)
        else None
    )
    texts, left_out = [], []
    budget = MAX_CELLS
    for number, sheet in enumerate(values.worksheets):
        if sheet.sheet_state != "visible":
            left_out.append(f"the hidden sheet {sheet.title!r}")
            continue
        rows = _Rows(sheet, written.worksheets[number] if written else None, budget)
        text, taken, seen = table_text(rows)
        budget -= rows.cells
        if text:
            texts.append(f"# {sheet.title}\n\n{text}")
        if note := beyond(taken, seen, not rows.ended_early):
            left_out.append(f"sheet {sheet.title!r}: {note}")
        if rows.unsaved:
            left_out.append(f"sheet {sheet.title!r}: {counted(rows.unsaved, 'formula')} without a saved value")
    left_out += [f"the chart sheet {chart.title!r}" for chart in values.chartsheets]
    left_out += [word for part, word in _UNREAD.items() if any(name.startswith(part) for name in names)]
    return DocumentText("\n\n".join(texts), tuple(left_out))


_FORMULA = re.compile(rb"<(\w+:)?f[\s>/]")
_UNREAD = {
    "xl/vbaProject.bin": "macros, which are never run",
    "xl/media/": "pictures",
    "xl/charts/": "charts",
    "xl/comments": "comments on cells",
    "xl/threadedComments/": "discussions on cells",
}


def _has_formulas(stream: BytesIO, names: list[str]) -> bool:
    """Returns whether any sheet holds a formula.

    Only then is the workbook read again, to count those without a value.
    """
    with zipfile.ZipFile(stream) as package:
        for name in names:
            if SHEET.match(name):
                with package.open(name) as file:
                    while chunk := file.read(MIB):
                        # A formula may be cut in two by the chunk's end; a sheet this long has others.
                        if _FORMULA.search(chunk):
                            return True
    return False


class _Rows:
    """Yields the rows of a sheet as text, until the cells read are more than the budget."""

    def __init__(self, values: Any, formulas: Any, budget: int) -> None:
        self._values, self._formulas, self._budget = values, formulas, budget
        self.cells = self.unsaved = 0
        self.ended_early = False

    def __iter__(self) -> Iterator[Sequence[str]]:
        written = iter(self._formulas.iter_rows(values_only=True)) if self._formulas else iter(())
        for number, row in enumerate(self._values.iter_rows(values_only=True)):
            self.cells += max(1, len(row))
            if self.cells > self._budget:
                self.ended_early = True
                return
            if number < MAX_ROWS:
                self._count(row, next(written, ()))
            yield [_text(value) for value in row]

    def _count(self, row: Sequence[Any], written: Sequence[Any]) -> None:
        for value, formula in zip_longest(row, written):
            self.unsaved += value is None and isinstance(formula, str) and formula.startswith("=")


def _text(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, datetime):
        return (value.date() if value.time() == time() else value.replace(tzinfo=None)).isoformat().replace("T", " ")
    if isinstance(value, date | time):
        return value.isoformat()
    if isinstance(value, float):
        return str(int(value)) if value.is_integer() and abs(value) < 1e15 else repr(value)
    return str(value)
