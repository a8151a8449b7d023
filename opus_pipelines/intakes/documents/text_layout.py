"""The shape of a document as text: what every reader of formatted documents writes.

Headings begin with `#`, list items with `- `, the cells of a table's row are parted by ` | `; a blank line parts the
rest.
"""

import re

_CLOSE = {"item", "row"}  # follow one another without a blank line


class Layout:
    """Collects blocks in order."""

    def __init__(self) -> None:
        self._parts: list[str] = []
        self._last = ""
        self.length = 0

    def add(self, text: str, kind: str = "paragraph", level: int = 1) -> None:
        """One block: paragraph, heading (with its level), item or row. Empty ones fall away."""
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

    def row(self, cells: list[str]) -> None:
        """One row of a table."""
        self.add(" | ".join(" ".join(cell.split()) for cell in cells) if any(map(str.strip, cells)) else "", "row")

    @property
    def text(self) -> str:
        """All of it."""
        return "".join(self._parts)
