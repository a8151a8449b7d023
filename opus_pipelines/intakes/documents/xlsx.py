"""Reads Excel .xlsx and .xlsm sheet by sheet and row by row, with the values as last saved.

Nothing is calculated, and macros are never run. Hidden cells are left out (`intakes.visibility.sheet_view`).
"""

import re
import zipfile
from collections.abc import Iterator, Sequence
from datetime import date, datetime, time
from io import BytesIO
from itertools import zip_longest
from typing import Any

from lxml import etree
from openpyxl import load_workbook

from opus_pipelines.core.formatting import SAFE_XML
from opus_pipelines.intakes.documents.document import Document, DocumentText, counted
from opus_pipelines.intakes.documents.limits import MAX_CELLS, MAX_ROWS, MIB
from opus_pipelines.intakes.documents.office_packages import SHEET, open_package
from opus_pipelines.intakes.documents.tables import beyond, table_text
from opus_pipelines.intakes.visibility.office import theme_of
from opus_pipelines.intakes.visibility.sheet_view import CellView, SheetLayout
from opus_pipelines.intakes.visibility.unseen import Unseen


def read(document: Document) -> DocumentText:
    """Returns a heading and a table for each visible sheet.

    Rows beyond the limit are counted, up to a limit of cells.
    """
    stream, names = open_package(document)
    values = load_workbook(stream, read_only=True, data_only=True, keep_links=False)
    written = (
        load_workbook(stream, read_only=True, data_only=False, keep_links=False)
        if _has_formulas(stream, names)
        else None
    )
    texts, left_out, unseen = [], [], Unseen()
    budget = MAX_CELLS
    parts, view = _sheet_parts(stream), CellView(theme_of(_theme(stream, names)))
    for number, sheet in enumerate(values.worksheets):
        if sheet.sheet_state != "visible":
            left_out.append(f"the hidden sheet {sheet.title!r}")
            continue
        formulas = written.worksheets[number] if written else None
        with zipfile.ZipFile(stream) as package, package.open(parts[sheet.title]) as part:
            layout = SheetLayout(part)
        rows = _Rows((sheet, formulas), (layout, view), unseen, budget)
        text, taken, seen = table_text(rows)
        budget -= rows.cells
        if text:
            texts.append(f"# {sheet.title}\n\n{text}")
        if note := beyond(taken, seen, not rows.ended_early):
            left_out.append(f"sheet {sheet.title!r}: {note}")
        if rows.unsaved:
            left_out.append(f"sheet {sheet.title!r}: {counted(rows.unsaved, 'formula')} without a saved value")
    left_out += unseen.notes
    left_out += [f"the chart sheet {chart.title!r}" for chart in values.chartsheets]
    left_out += [word for part, word in _UNREAD.items() if any(name.startswith(part) for name in names)]
    return DocumentText("\n\n".join(texts), tuple(left_out))


_RELATION = "{http://schemas.openxmlformats.org/officeDocument/2006/relationships}id"
_FORMULA = re.compile(rb"<(\w+:)?f[\s>/]")
_UNREAD = {
    "xl/vbaProject.bin": "macros, which are never run",
    "xl/media/": "pictures",
    "xl/charts/": "charts",
    "xl/comments": "comments on cells",
    "xl/threadedComments/": "discussions on cells",
}


def _sheet_parts(stream: BytesIO) -> dict[str, str]:
    """Returns the part of the package that holds each sheet, by the sheet's title."""
    with zipfile.ZipFile(stream) as package:
        book = _parsed(package.read("xl/workbook.xml"))
        links = _parsed(package.read("xl/_rels/workbook.xml.rels"))
    targets = {link.get("Id"): (link.get("Target") or "").lstrip("/") for link in links}
    ids = {s.get("name"): s.get(_RELATION) for s in book.iter("{*}sheet")}
    places = {title: targets.get(ident, "") for title, ident in ids.items()}
    return {title or "": place if place.startswith("xl/") else f"xl/{place}" for title, place in places.items()}


def _parsed(data: bytes) -> Any:
    return etree.fromstring(data, etree.XMLParser(**SAFE_XML))


def _theme(stream: BytesIO, names: list[str]) -> Any:
    part = next((name for name in sorted(names) if name.startswith("xl/theme/") and name.endswith(".xml")), None)
    if part is None:
        return None
    with zipfile.ZipFile(stream) as package:
        return _parsed(package.read(part))


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
    """Yields the rows of a sheet as text, until the cells read are more than the budget.

    A cell that nobody sees is empty, so that a hidden column keeps its number; a hidden row is left out.
    """

    def __init__(
        self, sheets: tuple[Any, Any], view: tuple[SheetLayout, CellView], unseen: Unseen, budget: int
    ) -> None:
        self._values, self._formulas = sheets
        self._layout, self._view = view
        self._unseen, self._budget = unseen, budget
        self.cells = self.unsaved = 0
        self.ended_early = False

    def __iter__(self) -> Iterator[Sequence[str]]:
        written = iter(self._formulas.iter_rows(values_only=True)) if self._formulas else iter(())
        for number, cells in enumerate(self._values.iter_rows()):
            row = [cell.value for cell in cells]
            self.cells += max(1, len(row))
            if self.cells > self._budget:
                self.ended_early = True
                return
            if number < MAX_ROWS:
                self._count(row, next(written, ()))
            yield self._seen(number + 1, cells)

    def _seen(self, row: int, cells: Sequence[Any]) -> list[str]:
        """Returns the texts of a row; cells that nobody sees for one reason are one passage."""
        texts, hidden = [], dict[str, list[str]]()
        for column, cell in enumerate(cells, start=1):
            text = _text(cell.value)
            reason = (self._layout.reason(row, column) or self._view.reason(cell)) if text else None
            if reason is not None:
                hidden.setdefault(reason, []).append(text)
            texts.append("" if reason is not None else text)
        for reason, parts in hidden.items():
            self._unseen.hide(reason, "; ".join(parts))
        return texts

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
