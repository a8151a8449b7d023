"""Reads CSV and TSV row by row in bounded memory, and writes rows of cells as text for every format that has tables."""

import csv
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, islice
from typing import Any

from opus_pipelines.core.errors import InputError
from opus_pipelines.intakes.documents.document import (
    MAX_CHARACTERS,
    MAX_LINE,
    MAX_ROWS,
    Document,
    DocumentText,
    lines,
    open_text,
)

_LOOK_AHEAD = 20  # rows among which the one with the columns' names is sought
_ROWS_A_PARAGRAPH = 10


def table_text(rows: Iterable[Sequence[str]]) -> tuple[str, int, int]:
    """Returns a table as text, with the number of rows taken and seen.

    The text is a line of column names, then lines of `column: value`, with a paragraph for each ten rows. Lines of one
    cell above the names are a title. A cell beyond the last name has its column's number as name. Empty rows do not
    count.
    """
    filled = (row for row in rows if any(map(str.strip, row)))
    first = [_clean(row) for row in islice(filled, _LOOK_AHEAD)]
    if not first:
        return "", 0, 0
    at = next((n for n, row in enumerate(first) if sum(map(bool, row)) > 1), 0)
    head = first[at]
    titles = [" ".join(filter(None, row)) for row in first[:at]]
    lines, seen = _lines(head, chain(first[at + 1 :], filled))
    paragraphs = ["\n".join(lines[i : i + _ROWS_A_PARAGRAPH]) for i in range(0, len(lines), _ROWS_A_PARAGRAPH)]
    return "\n\n".join([*titles, "; ".join(filter(None, head)), *paragraphs]), len(lines), seen


def beyond(taken: int, seen: int, whole: bool = True) -> str | None:
    """Returns what was left out of a table, or None where nothing was.

    `whole` is False where not all rows were counted.
    """
    if taken == seen and whole:
        return None
    return (
        f"{seen - taken:,} of {seen:,} rows"
        if whole
        else f"what stands after its first {taken:,} rows (it has more than {seen:,})"
    )


def _lines(head: Sequence[str], rows: Iterator[Sequence[str]]) -> tuple[list[str], int]:
    lines: list[str] = []
    seen = length = 0
    for row in rows:
        seen += 1
        if len(lines) == seen - 1 and seen <= MAX_ROWS and length <= MAX_CHARACTERS:
            lines.append("; ".join(f"{_name(head, n)}: {cell}" for n, cell in enumerate(_clean(row)) if cell))
            length += len(lines[-1]) + 1
    return lines, seen


def _clean(row: Sequence[str]) -> list[str]:
    return [" ".join(cell.split()) if "\n" not in cell else cell.strip() for cell in row]


def _name(head: Sequence[str], column: int) -> str:
    return head[column] if column < len(head) and head[column] else f"column {column + 1}"


_SAMPLE = 4096


def read(document: Document) -> DocumentText:
    """Returns lines of `column: value`; rows beyond the limit are counted. Raises InputError where it is no table."""
    stream, note = open_text(document, newline="")
    csv.field_size_limit(MAX_LINE)
    with stream:
        dialect = _dialect(document)
        try:
            text, taken, seen = table_text(csv.reader(lines(stream, MAX_LINE), dialect))
        except csv.Error as error:
            raise InputError(f"not a table that can be read: {error}") from None
    return DocumentText(text, tuple(filter(None, (note, beyond(taken, seen)))))


def _dialect(document: Document) -> Any:
    stream, _ = open_text(document, newline="")
    with stream:
        try:
            sample = stream.read(_SAMPLE)
        except UnicodeDecodeError:
            return csv.excel  # the reading itself meets the same byte, and says so
    try:
        return csv.Sniffer().sniff(sample, delimiters=",;\t|")
    except csv.Error:
        return csv.excel_tab if document.name.lower().endswith(".tsv") else csv.excel
