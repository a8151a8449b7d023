"""Cuts a document into passages: sentences, list items, table rows and headings, each with its section.

It reads Markdown, numbered headings, tables with bars, plain text, e-mail threads and minutes, and uses no words but
the names of the header fields of mail. The rules are the project's own.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

from opus_pipelines.language.reading.languages import language_of, tables_of

Shape = Literal["prose", "item", "row", "heading"]
SentenceKind = Literal["ask", "condition", "order", "forbid", "guard", "none"]
ASKING: tuple[SentenceKind, ...] = ("ask", "condition", "order")
_DOCUMENTS_KEPT = 64
_ITEM = re.compile(
    r"^\s*(?:(?:[-*•▪◦‣–+☐☑☒✓>]+|\[[ xX]?\])\s+|\(?\d{1,2}[.)]\s+|\(?[a-zA-Z][.)]\s+|"
    r"(?:step|schritt|étape|stap|paso)\s+\d+\s*[-–:.)]?\s+)",
    re.IGNORECASE,
)
_NUMBER = re.compile(r"^\s*(\d+(?:\.\d+)*)\.?\)?\s+(?=\S)")
_MARKDOWN = re.compile(r"^(#+)\s+(.*)$")
_BOLD = re.compile(r"^\*\*[^*]+\*\*:?$")
_EMPHASIS = re.compile(r"\*\*|__")
_ENDS = re.compile(r"(?<=[.!?])[\"')\]]*\s+(?=[\"'(\[]*[A-ZÀ-ÜÄÖÜ0-9])|(?<=;)\s+")
_CLAUSE = re.compile(
    r"\s*[,;:()]\s+(?:and then|and|then|but|or|und dann|und|dann|puis|et|y|en)?\s*|"
    r"\s+(?:and then|then|and|but|und dann|und|dann|puis|et|en|y)\s+",
    re.IGNORECASE,
)
_SENTENCE_END = re.compile(r"[.;,!?]$")
_CELL_END = re.compile(r"\||(?<=\S)\t+(?=\S)")
_FRAME = re.compile(r"[\s:+=-]*")
_RULE = re.compile(r"\s*[-=_*]{3,}\s*")
_WORD = re.compile(r"\w+")
_HEADING_WORDS = 7
_LONG_WORD = 4  # letters of a word that a title writes with a capital
_TITLED = 0.6  # least share of these words that have one
_WRAPPED = 60  # characters of a line from which on an editor may have wrapped it
_BOLD_LEVEL, _NUMBER_LEVEL = 7, 8  # of headings that are no Markdown headings


@dataclass(frozen=True)
class Passage:
    """A sentence, list item, table row or heading of a document.

    Attributes:
        text: its words; of a row, those of the column that says what is done.
        section: the headings above it, the outermost first, without numbers.
        shape: what it is.
        when: the other cells of a row, each with the name of its column.
        clauses: its clauses, where it has several.
        document: the number of its document, from 0.
    """

    text: str
    section: tuple[str, ...]
    shape: Shape
    when: str = ""
    clauses: tuple[str, ...] = ()
    document: int = 0

    @property
    def own_section(self) -> tuple[str, ...]:
        """The section that a heading opens; of any other passage, the one in which it stands."""
        return (*self.section, self.text) if self.shape == "heading" else self.section


def sentences(text: str) -> list[str]:
    """Returns the sentences of a text, without the marks of list items."""
    found = [_bare(s) for line in text.splitlines() for s in _ENDS.split(_bare(line))]
    return [s for s in found if len(_WORD.findall(s)) >= 2]


@lru_cache(_DOCUMENTS_KEPT)
def passages_of(documents: tuple[str, ...]) -> tuple[Passage, ...]:
    """Returns the passages of some documents, in their order."""
    return tuple(p for n, text in enumerate(documents) for p in _Cutter(text, n).passages())


class _Cutter:
    """Cuts one document. `_stack` holds the levels and names of the open headings, `_paragraph` the open lines."""

    def __init__(self, text: str, document: int) -> None:
        self._lines = text.replace("\f", "\n").splitlines()
        self._document = document
        self._header = tables_of(language_of(text)).header
        self._stack: list[tuple[int, str]] = []
        self._table: list[str] = []
        self._paragraph: list[str] = []
        self._shape: Shape = "prose"

    def passages(self) -> Iterator[Passage]:
        """Yields the passages in order."""
        lines = self._lines
        for n, line in enumerate(lines):
            before, after = lines[n - 1] if n else "", lines[n + 1] if n + 1 < len(lines) else ""
            if _bars(line) >= 2 or 0 < _bars(line) in (_bars(before), _bars(after)):
                yield from self._end_paragraph()
                self._table.append(line)
                continue
            yield from self._end_table()
            if not line.strip() or _RULE.fullmatch(line) or self._header.match(line):
                yield from self._end_paragraph()
            elif heading := _heading(line, before, after):
                yield from self._end_paragraph()
                while self._stack and self._stack[-1][0] >= heading[0]:
                    self._stack.pop()
                yield Passage(heading[1], self._section, "heading", document=self._document)
                self._stack.append(heading)
            elif _ITEM.match(line) or _NUMBER.match(line):
                yield from self._end_paragraph()
                self._shape = "item"
                self._paragraph.append(_bare(line if _ITEM.match(line) else _NUMBER.sub("", line)))
            else:
                if not _goes_on(before):
                    yield from self._end_paragraph()
                if not self._paragraph:
                    self._shape = "item" if line[:1].isspace() else "prose"
                self._paragraph.append(_bare(line))
        yield from self._end_paragraph()
        yield from self._end_table()

    @property
    def _section(self) -> tuple[str, ...]:
        return tuple(name for _, name in self._stack)

    def _cut(self, text: str, shape: Shape, when: str = "") -> Iterator[Passage]:
        for part in _ENDS.split(text):
            sentence = part.strip()
            if len(_WORD.findall(sentence)) >= (2 if shape == "prose" else 1):
                yield Passage(sentence, self._section, shape, when, clauses_in(sentence), self._document)

    def _end_paragraph(self) -> Iterator[Passage]:
        text, self._paragraph = " ".join(self._paragraph), []
        yield from self._cut(text, self._shape)

    def _end_table(self) -> Iterator[Passage]:
        rows = [[cell.strip() for cell in _CELL_END.split(line.strip().strip("|"))] for line in self._table]
        self._table = []
        rows = [row for row in rows if not all(_FRAME.fullmatch(cell) for cell in row)]
        if len(rows) < 2:
            for row in rows:
                yield from self._cut(" ".join(row), "prose")
            return
        head, *rest = rows
        columns = range(min(map(len, rows)))
        action = max(columns, key=lambda k: sum(len(row[k].split()) for row in rest))
        for row in rest:
            when = "; ".join(f"{head[k]}: {row[k]}" for k in columns if k != action)
            yield from self._cut(row[action], "row", when)


def _bars(line: str) -> int:
    """Returns how many bars or tabs separate cells of a line; a tab behind the mark of an item separates none."""
    mark = _ITEM.match(line) or _NUMBER.match(line)
    return line.count("|") or len(_CELL_END.findall(line[mark.end() :] if mark and "\t" in mark[0] else line.strip()))


def _goes_on(before: str) -> bool:
    """Tells whether a line may go on behind the line before it: an editor may have wrapped that one."""
    text = before.strip()
    return len(text) >= _WRAPPED and not text.endswith(":")


def clauses_in(sentence: str) -> tuple[str, ...]:
    """Returns the clauses of a sentence, each of at least two words; none where it has only one."""
    parts = [part.strip() for part in _CLAUSE.split(sentence.rstrip(".")) if len(_WORD.findall(part)) >= 2]
    return tuple(parts) if len(parts) > 1 else ()


def _bare(line: str) -> str:
    """Returns a line without the marks of a list item and of emphasis."""
    text = line.strip()
    while (mark := _ITEM.match(text)) and mark.end() < len(text):
        text = text[mark.end() :].strip()
    return _EMPHASIS.sub("", text).strip().strip(">").strip()


def _heading(line: str, before: str, after: str) -> tuple[int, str] | None:
    """Returns the level and the name of a heading, None where the line is none.

    A numbered line is one where it is short, ends no sentence and writes its long words with capitals; another line,
    where it is short, stands alone and begins with a capital.
    """
    text = line.strip()
    if mark := _MARKDOWN.match(text):
        return len(mark[1]), _unnumbered(mark[2])
    if _BOLD.match(text):
        return _BOLD_LEVEL, _unnumbered(text.strip("*: "))
    number = _NUMBER.match(text)
    name = text[number.end() :] if number else text
    words = name.split()
    if not 0 < len(words) <= _HEADING_WORDS or _SENTENCE_END.search(name):
        return None
    if number:
        long = [word for word in words if len(word) >= _LONG_WORD]
        is_titled = sum(word[:1].isupper() for word in long) >= max(1, _TITLED * len(long))
        return (_NUMBER_LEVEL + number[1].count("."), name.rstrip(":")) if is_titled else None
    stands_alone = not before.strip() and not after.strip()
    is_heading = stands_alone and text[:1].isupper() and not _ITEM.match(text)
    return (_BOLD_LEVEL, name.rstrip(":")) if is_heading else None


def _unnumbered(name: str) -> str:
    number = _NUMBER.match(name)
    return _EMPHASIS.sub("", name[number.end() :] if number else name).strip().rstrip(":")
