"""The sentences of a document, each with the place where a person finds it: "line 12", "page 2, line 3", "row 3".

Marks (those of Markdown, and those that plain text imitates) separate headings, list items, table rows and prose. Code,
markup and settings are snippets and hold no sentences. The rules are the project's own, for English.
"""

import re
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from itertools import accumulate

from opus_pipelines.intakes.elements import Element
from opus_pipelines.language.word_stems import word_set

# documents whose sentences are kept: an intake's are asked for several times, a contract's by each intake
_DOCUMENTS_KEPT = 256
PAGE = "\f"  # stands between the pages of a document that has pages
_ABBREVIATIONS = word_set("e.g i.e etc no nos approx mr mrs ms dr inc ltd co vs cf art sec fig st")
_ITEM = re.compile(r"\s*(?:\[[ xX✓]?\]|☐|[-*+•–▪◦]|\(?\d{1,3}[.)]|\(?[a-z][.)])\s+(?=\S)", re.I)
_BOX = re.compile(r"\s*(?:[-*+]\s+)?\[[ xX✓]?\]\s+\S")  # a box to tick
_HEADING = re.compile(r"\s{0,3}#{1,6}\s+(.*?)\s*#*\s*$")
_RULE_LINE = re.compile(r"\s*(?:[-=_*]\s*){3,}$")
_FENCE = re.compile(r"\s*(?:```|~~~)")
_CELLS = re.compile(r"\s*\|.*\|\s*$|.* \| ")
_TAG = re.compile(r"<!--|-->|</?[a-z][^<>]{0,300}>", re.I)
_SNIPPET = re.compile(
    r"""\s*(?:[{}\[\]]|<[/!?a-z]|[\w."'\]\[-]+\s*=(?!=)|["'][\w.]+["']\s*:|\w*_\w*\s*:|(?:\$|>>>|//|/\*)\s*\S)""", re.I
)
_END = re.compile(r"""(?<=[.!?])["')\]]*\s+(?=["'(\[]*[A-Z0-9])""")
_EMPHASIS = re.compile(r"(\*\*|__|`)")
_PART = re.compile(r"(page|slide|sheet)\s+\S+$", re.I)
_HEAD_OF_TABLE = re.compile(r"[^:;]+(?:;[^:;]+)*")
_TABLES = ("text/csv", "text/tab-separated-values", "spreadsheetml", "ms-excel")
_FIGURE = re.compile(
    r":\s.*(?:\d\s*[a-z%$]|[$]\s?\d)", re.I
)  # a label with its figure says something, it heads nothing
_LONG_LINE = 4000  # characters beyond which a line is prose, whatever it begins with
_CELL = 80  # characters of a cell of such a table
_LABEL = 3  # words of a line that ends in a colon and is a heading for that
_SHORT = 8  # words of a line that may be a heading though nothing marks it as one


@dataclass(frozen=True)
class Sentence:
    """One sentence of an element.

    `shape` is prose, item, row, heading or snippet; `heading` is the nearest one above it; sentences of one
    paragraph or list item have the same `block`.
    """

    text: str
    element_id: str
    role: str
    place: str
    shape: str
    heading: str | None = None
    block: int = 0


@dataclass(frozen=True)
class _Block:
    lines: tuple[tuple[int, str], ...]
    shape: str


@lru_cache(_DOCUMENTS_KEPT)
def sentences_of(element: Element) -> tuple[Sentence, ...]:
    """Return every sentence of an element, in order; none where it has no text."""
    if not element.text:
        return ()
    if element.modality == "table" or any(kind in (element.media_type or "") for kind in _TABLES):
        return tuple(_rows(element, element.text))
    pages = element.text.split(PAGE)
    begins = [0, *accumulate(page.count("\n") for page in pages)]
    return tuple(
        s
        for number, (page, first) in enumerate(zip(pages, begins[:-1], strict=True), start=1)
        for s in _page(element, page, number, first)
    )


_ASKS = re.compile(
    r"\b(?:please|kindly|(?:i|we)(?: would|'d) like|(?:i|we) (?:want|need|ask|request|claim)"
    r"|(?:asks?|requests?|wants?|would like) (?:for|to|you|that|us)"
    r"|can you|could you|would you|help (?:me|us)|(?:i|we)(?: am|'m| are|'re) (?:looking|asking|requesting"
    r"|writing to))\b",
    re.I,
)


def is_request(text: str) -> bool:
    """Return whether the sentence asks for something."""
    return bool(_ASKS.search(text))


def _page(element: Element, text: str, number: int, first: int) -> Iterator[Sentence]:
    """Yield the sentences of a page; `first` is the number of its first line in the whole text, from 0."""
    places = dict(element.places)
    before = f"page {number}, " if PAGE in (element.text or "") else ""
    heading: str | None = None
    for count, block in enumerate(_blocks(text.split("\n"))):
        for line, sentence in _in_block(block):
            yield Sentence(
                sentence,
                element.element_id,
                element.role,
                f"{before}line {line}" + (f", {places[at]}" if (at := first + line - 1) in places else ""),
                block.shape,
                heading,
                (number << 20) + count,
            )
        if block.shape == "heading":
            heading = _plain(block.lines[0][1])
            before = f"{heading.lower()}, " if _PART.match(heading) else before


def _blocks(lines: list[str]) -> Iterator[_Block]:
    """Yield the lines that belong together, with their shape; a blank line ends a block."""
    taken: list[tuple[int, str]] = []
    shape, fenced = "prose", False

    def flush() -> Iterator[_Block]:
        if taken:
            yield _Block(tuple(taken), shape)
            taken.clear()

    for number, line in enumerate(lines, start=1):
        if _FENCE.match(line):
            yield from flush()
            fenced, shape = not fenced, "prose"
            continue
        if fenced:
            yield _Block(((number, line.strip()),), "snippet")
            continue
        if not line.strip() or (len(line) <= _LONG_LINE and _RULE_LINE.match(line)):
            yield from flush()
            shape = "prose"
            continue
        here = _shape(line, bool(taken), lines[number].strip() if number < len(lines) else "")
        if here in (None, "item", "heading") and _is_among_rows(lines, number - 1):
            yield from flush()
            here = "row"
        if here is not None:
            yield from flush()
            shape = here
        if here in ("heading", "row", "snippet"):
            yield _Block(((number, _stripped(line, here)),), here)
            shape = "prose"
        else:
            taken.append((number, _ITEM.sub("", line, count=1).strip() if here == "item" else line.strip()))
    yield from flush()


def _is_among_rows(lines: list[str], place: int) -> bool:
    """Return whether a line is a row of a table.

    Such lines have the same number of short cells, at least three, with ";" or tabs between them.
    """
    counts = [
        (text.count(mark), mark)
        for text in lines[max(place - 1, 0) : place + 2]
        for mark in (";", "\t")
        if text.count(mark) > 1
    ]
    here = next(((n, mark) for mark in (";", "\t") if (n := lines[place].count(mark)) > 1), None)
    short = here is not None and all(len(cell) <= _CELL for cell in lines[place].split(here[1]))
    return short and counts.count(here or (0, "")) > 1


def _shape(line: str, inside: bool, following: str) -> str | None:
    """Return the shape that a line begins; None where it continues the block."""
    if len(line) > _LONG_LINE:
        return None
    if _HEADING.match(line):
        return "heading"
    if _CELLS.match(line):
        return "row"
    if _BOX.match(line):
        return "item"
    if _SNIPPET.match(line):
        return "snippet"
    bare = line.strip()
    if bare.endswith(":") and len(_ITEM.sub("", bare, count=1).split()) <= _LABEL and (_ITEM.match(line) or not inside):
        return "heading"
    if _ITEM.match(line):
        return "item"
    alone = not inside and (not following or _ITEM.match(following + " x") is not None) and not _FIGURE.search(bare)
    if (
        alone
        and len(bare.split()) <= _SHORT
        and not bare.endswith((".", "!", "?", ";", ",", ":"))
        and bare[:1].isupper()
    ):
        return "heading"
    return None


def _stripped(line: str, shape: str) -> str:
    match = _HEADING.match(line)
    if shape == "heading":
        return (match.group(1) if match else _ITEM.sub("", line, count=1)).strip().rstrip(":")
    return line.strip().strip("|").strip()


def _in_block(block: _Block) -> Iterator[tuple[int, str]]:
    """Yield the sentences of a block, each with the line in which it begins."""
    if block.shape in ("heading", "row", "snippet"):
        text = _plain(block.lines[0][1]) if block.shape != "snippet" else block.lines[0][1]
        if text and set(text) - set("-:| "):
            yield block.lines[0][0], text
        return
    starts = list(accumulate((len(line) + 1 for _, line in block.lines[:-1]), initial=0))
    for start, sentence in split_sentences(" ".join(line for _, line in block.lines)):
        if plain := _plain(sentence):
            yield block.lines[bisect_right(starts, start) - 1][0], plain


def split_sentences(text: str) -> Iterator[tuple[int, str]]:
    """Yield the sentences of a paragraph, each with its position; an abbreviation ends no sentence."""
    start = 0
    for end in _END.finditer(text):
        last = text[start : end.start()].rstrip(".!?\"')]").rsplit(None, 1)
        if text[end.start() - 1] == "." and last and last[-1].casefold().lstrip("(") in _ABBREVIATIONS:
            continue
        yield start, text[start : end.start()].strip() + text[end.start() : end.end()].rstrip()
        start = end.end()
    if text[start:].strip():
        yield start, text[start:].strip()


def _plain(text: str) -> str:
    return " ".join(_TAG.sub(" ", _EMPHASIS.sub("", text)).split())


def _rows(element: Element, text: str) -> Iterator[Sentence]:
    """Yield the rows of a table in the form in which its reader writes it.

    This is a line of column names, then a line of `column: value; ...` for each row, with the sheets under
    headings.
    """
    sheet, head, number, row = "", "", 0, ""
    begins = re.compile("(?!)")

    def finished_row() -> Iterator[Sentence]:
        if row:
            yield Sentence(row, element.element_id, element.role, f"{sheet}row {number}", "row", head or None)

    for line in map(str.strip, text.split("\n")):
        if match := _HEADING.match(line):
            yield from finished_row()
            sheet, number, row = f"{match.group(1)}, ", 0, ""
        elif not begins.match(line) and _HEAD_OF_TABLE.fullmatch(line):
            yield from finished_row()
            head, row = line, ""
            begins = re.compile("|".join(re.escape(name.strip()) + ":" for name in line.split(";") if name.strip()))
        elif begins.match(line):
            yield from finished_row()
            number, row = number + 1, line
        elif row and line:
            row = f"{row} {line}"
    yield from finished_row()
