"""Writes the structure of a formatted document as text, for every reader of such documents.

Headings begin with `#`, list items with `- `, and ` | ` separates the cells of a table's row. A blank line separates
other blocks.
"""

import re

_CLOSE = {"item", "row"}  # follow one another without a blank line


class Layout:
    """Collects blocks of text in order."""

    def __init__(self) -> None:
        self._parts: list[str] = []
        self._last = ""
        self.length = 0
        self.lines = 0  # of the text so far, less one

    def add(self, text: str, kind: str = "paragraph", level: int = 1) -> None:
        """Adds one block: paragraph, heading (with its level), item or row. Empty blocks are skipped."""
        text = re.sub(r"[^\S\n]+", " ", text)
        text = re.sub(r" ?\n ?", "\n", text).strip()
        if not text:
            return
        if kind == "heading":
            text = f"{'#' * min(level, 6)} {' '.join(text.split())}"
        elif kind == "item":
            text = f"- {text}"
        between = "" if not self._parts else "\n" if kind == self._last and kind in _CLOSE else "\n\n"
        self._parts += [between, text]
        self._last = kind
        self.length += len(between) + len(text)
        self.lines += between.count("\n") + text.count("\n")

    def row(self, cells: list[str]) -> None:
        """Adds one row of a table."""
        self.add(" | ".join(" ".join(cell.split()) for cell in cells) if any(map(str.strip, cells)) else "", "row")

    @property
    def text(self) -> str:
        """The text of all blocks."""
        return "".join(self._parts)
