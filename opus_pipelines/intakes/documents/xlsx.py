"""Reads workbooks as a person sees them.

Hidden and flat rows and columns and merged cells are read from the sheet's own part, colours and number formats from
the cell. Colours that a table style or a conditional format would add are not computed.

Reads Excel .xlsx and .xlsm sheet by sheet and row by row, with the values as last saved.

Nothing is calculated, and macros are never run. Hidden cells are left out.
"""

import re
import zipfile
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from datetime import date, datetime, time
from io import BytesIO
from itertools import zip_longest
from typing import IO, Any

from lxml import etree
from openpyxl import load_workbook
from openpyxl.styles.colors import COLOR_INDEX
from openpyxl.utils import range_boundaries

from opus_pipelines.core.formatting import SAFE_XML
from opus_pipelines.intakes.documents.document import MAX_CELLS, MAX_ROWS, MIB, Document, DocumentText, counted
from opus_pipelines.intakes.documents.office import SHEET, THEME, Theme, open_package, theme_of
from opus_pipelines.intakes.documents.tables import beyond, table_text
from opus_pipelines.intakes.visibility import unseen
from opus_pipelines.intakes.visibility.unseen import BLACK, WHITE, Colour, Unseen, is_like, of_hex, tinted

HIDDEN_ROW, HIDDEN_COLUMN = "in a hidden row", "in a hidden column"
NO_FORMAT = "in a number format that shows nothing"
MERGED = "under a merged cell"
MOST_ROWS, MOST_COLUMNS = 1_048_576, 16_384
MOST_MERGED = 200_000  # rows of merged cells that are followed; a sheet with more keeps the first
_LEAST_WIDTH = 0.3  # of a column, in characters
_TAGS = ("row", "col", "sheetFormatPr", "mergeCell")


class SheetLayout:
    """The rows, columns and merged cells of one sheet, from its XML part."""

    def __init__(self, part: IO[bytes]) -> None:
        self._rows = bytearray(MOST_ROWS + 2)
        self._columns = bytearray(MOST_COLUMNS + 2)
        self._merged: dict[int, list[tuple[int, int, bool]]] = {}
        self._zero_height, self._listed, self._count = False, 0, 0
        for _, element in etree.iterparse(part, events=("end",), tag=[f"{{*}}{t}" for t in _TAGS], **SAFE_XML):
            getattr(self, f"_take_{element.tag.rpartition('}')[2].lower()}")(element)
            element.clear()
            while element.getprevious() is not None:
                del element.getparent()[0]

    def reason(self, row: int, column: int) -> str | None:
        """Returns why nobody sees a cell by where it stands; both numbers begin with 1."""
        if self._rows[min(row, MOST_ROWS)]:
            return HIDDEN_ROW
        if self._columns[min(column, MOST_COLUMNS)]:
            return HIDDEN_COLUMN
        for first, last, is_top in self._merged.get(row, ()):
            if first <= column <= last and not (is_top and column == first):
                return MERGED
        return None

    def _take_sheetformatpr(self, element: Any) -> None:
        self._zero_height = _is_on(element.get("zeroHeight"))

    def _take_col(self, element: Any) -> None:
        flat = element.get("width") is not None and _number(element.get("width")) < _LEAST_WIDTH
        first, last = (min(MOST_COLUMNS, max(1, int(_number(element.get(side))))) for side in ("min", "max"))
        if (_is_on(element.get("hidden")) or flat) and last >= first:
            self._columns[first : last + 1] = b"\1" * (last + 1 - first)

    def _take_row(self, element: Any) -> None:
        number = int(_number(element.get("r"))) or self._listed + 1
        self._listed = number
        height = element.get("ht")
        flat = _number(height) < unseen.SMALLEST_POINTS if height is not None else self._zero_height
        if (_is_on(element.get("hidden")) or flat) and 0 < number <= MOST_ROWS:
            self._rows[number] = 1

    def _take_mergecell(self, element: Any) -> None:
        with suppress(ValueError, TypeError):
            left, top, right, bottom = range_boundaries(element.get("ref") or "")
            for row in range(top, bottom + 1):
                if self._count >= MOST_MERGED:
                    return
                self._count += 1
                self._merged.setdefault(row, []).append((left, right, row == top))


class CellView:
    """Tells by font, fill and number format whether a cell shows its value. Looks are computed once for each style."""

    def __init__(self, theme: Theme, indexed: Iterable[str] = ()) -> None:
        self._theme = theme
        self._indexed = list(indexed) or list(COLOR_INDEX)
        self._known: dict[tuple[int, int, int, bool], str | None] = {}

    def reason(self, cell: Any) -> str | None:
        """Returns why nobody sees the value of a cell, by its look."""
        if not getattr(cell, "has_style", False):
            return None
        style = cell.style_array
        key = (style.fontId, style.fillId, style.numFmtId, isinstance(cell.value, str))
        if key not in self._known:
            self._known[key] = self._look(cell)
        return self._known[key]

    def _look(self, cell: Any) -> str | None:
        font = cell.font
        if font is not None and font.sz is not None and font.sz < unseen.SMALLEST_POINTS:
            return unseen.SMALL
        sections = (cell.number_format or "General").split(";")
        is_text = isinstance(cell.value, str)
        if len(sections) > 1 and (
            not any(map(str.strip, sections)) or (is_text and len(sections) > 3 and not sections[3].strip())
        ):
            return NO_FORMAT
        colour = self._colour(font.color if font is not None else None) or BLACK
        grounds = self._grounds(cell.fill)
        return unseen.COLOUR if all(is_like(colour, ground) for ground in grounds) else None

    def _grounds(self, fill: Any) -> list[Colour]:
        if fill is None:
            return [WHITE]
        if getattr(fill, "patternType", None):
            colours = [fill.fgColor] if fill.patternType == "solid" else [fill.fgColor, fill.bgColor]
        else:
            colours = [stop.color for stop in getattr(fill, "stop", ()) or ()]
        return [found for one in colours if (found := self._colour(one)) is not None] or [WHITE]

    def _colour(self, colour: Any) -> Colour | None:
        """Returns a colour of openpyxl, None where it is automatic or not known."""
        if colour is None:
            return None
        found: Colour | None = None
        with suppress(IndexError, KeyError, TypeError, ValueError):
            if colour.type == "theme":
                found = self._theme[THEME[int(colour.theme)]]
            elif colour.type == "indexed":
                found = None if int(colour.indexed) >= 64 else of_hex(self._indexed[int(colour.indexed)])
            elif colour.type == "rgb":
                found = of_hex(colour.rgb)
        tint = colour.tint if isinstance(colour.tint, float) else 0.0
        return tinted(found, max(-1.0, min(1.0, tint))) if found is not None else None


def _is_on(value: str | None) -> bool:
    return (value or "0").lower() in ("1", "true")


def _number(text: str | None) -> float:
    try:
        return float(text or 0)
    except ValueError:
        return 0.0


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
