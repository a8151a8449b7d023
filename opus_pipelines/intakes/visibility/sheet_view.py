"""Tells of each cell of an Excel sheet whether a person sees it, and why not.

Hidden and flat rows and columns and merged cells are read from the sheet's own part, colours and number formats from
the cell. Colours that a table style or a conditional format would add are not computed.
"""

from collections.abc import Iterable
from contextlib import suppress
from typing import IO, Any

from lxml import etree
from openpyxl.styles.colors import COLOR_INDEX
from openpyxl.utils import range_boundaries

from opus_pipelines.core.formatting import SAFE_XML
from opus_pipelines.intakes.visibility import unseen
from opus_pipelines.intakes.visibility.colours import BLACK, WHITE, Colour, is_like, of_hex, tinted
from opus_pipelines.intakes.visibility.office import THEME, Theme

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
