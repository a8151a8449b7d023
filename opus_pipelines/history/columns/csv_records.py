"""Splits lines of CSV into records one by one, with the rules of Python's module csv in its strict mode."""

import csv
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

FIELD_BYTES = 1 << 22


@dataclass(slots=True)
class Row:
    """A row: the line on which it starts, and its fields, or None, the reason why it cannot be split, and its text.

    `lines` is the number of lines that it takes.
    """

    position: int
    fields: list[str] | None
    complaint: str = ""
    written: str = ""
    lines: int = 1


def rows_of(lines: Iterable[str], delimiter: str, first: int = 1) -> Iterator[Row]:
    """Yields every row that is not blank, from line number `first` on.

    After a row that cannot be split it continues with the next line.
    """
    csv.field_size_limit(FIELD_BYTES)
    read_lines: list[str] = []
    reader = csv.reader(_noted(lines, read_lines), delimiter=delimiter, strict=True)
    while True:
        position = reader.line_num + first
        read_lines.clear()
        try:
            fields = next(reader)
        except StopIteration:
            return
        except csv.Error as error:
            written = "".join(read_lines)
            yield Row(position, None, f"the row cannot be split: {error}", written, len(read_lines))
            continue
        if fields:
            yield Row(position, fields, lines=len(read_lines))


def _noted(lines: Iterable[str], notes: list[str]) -> Iterator[str]:
    for line in lines:
        notes.append(line)
        yield line
