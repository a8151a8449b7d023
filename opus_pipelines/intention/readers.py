"""From a document's bytes to its text, LWM (3), a reader a file suffix. Text is data here: nothing in it is ever followed."""

import csv
import io
import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from opus_pipelines.errors import InputError

MAX_BYTES = 10 * 1024 * 1024
MAX_ROWS = 200
csv.field_size_limit(MAX_BYTES)


@dataclass(frozen=True)
class Reader:
    """What a suffix means, and the function from bytes to (text, what was left out)."""

    modality: str
    media_type: str
    read: Callable[[bytes], tuple[str, str | None]]


def decode(data: bytes) -> str:
    """Text of a document in UTF-8 (with or without mark), UTF-16 (with mark) or, failing that, Windows-1252."""
    encodings = ["utf-16"] if data.startswith((b"\xff\xfe", b"\xfe\xff")) else ["utf-8-sig", "cp1252"]
    for encoding in encodings:
        try:
            text = data.decode(encoding)
        except UnicodeDecodeError:
            continue
        if "\0" in text:
            raise InputError("the document holds NUL bytes: it is not text")
        return text.replace("\r\n", "\n")
    raise InputError(f"the document is neither {' nor '.join(encodings)}")


def read_text(data: bytes) -> tuple[str, str | None]:
    """Plain text and Markdown, as they stand."""
    return decode(data), None


def read_csv(data: bytes) -> tuple[str, str | None]:
    """A table as lines of `column: value`, a paragraph for each ten rows; rows past MAX_ROWS are left out and said so."""
    text = decode(data)
    try:
        dialect: Any = csv.Sniffer().sniff(text[:4096], delimiters=",;\t|")
    except csv.Error:
        dialect = csv.excel
    try:
        rows = [row for row in csv.reader(io.StringIO(text, newline=""), dialect) if any(cell.strip() for cell in row)]
    except csv.Error as error:
        raise InputError(f"not a table that can be read: {error}") from None
    if not rows:
        return "", None
    head, body = rows[0], rows[1:]
    lines = ["; ".join(f"{h.strip()}: {c.strip()}" for h, c in zip(head, row, strict=False) if c.strip()) for row in body[:MAX_ROWS]]
    paragraphs = ["; ".join(head)] + ["\n".join(lines[i : i + 10]) for i in range(0, len(lines), 10)]
    left_out = f"{len(body) - MAX_ROWS} of {len(body)} rows" if len(body) > MAX_ROWS else None
    return "\n\n".join(paragraphs), left_out


def read_json(data: bytes) -> tuple[str, str | None]:
    """A JSON document as lines of `path: value`."""
    try:
        value = json.loads(decode(data))
    except (json.JSONDecodeError, RecursionError) as error:
        raise InputError(f"not JSON: {error}") from None
    lines = list(_flatten(value, ""))
    left_out = f"{len(lines) - MAX_ROWS * 5} of {len(lines)} values" if len(lines) > MAX_ROWS * 5 else None
    return "\n".join(lines[: MAX_ROWS * 5]), left_out


def _flatten(value: Any, path: str) -> Iterator[str]:
    stack = [(path, value)]
    while stack:
        place, item = stack.pop()
        if isinstance(item, dict):
            stack += [(f"{place}.{k}" if place else str(k), v) for k, v in reversed(item.items())]
        elif isinstance(item, list):
            stack += [(place, v) for v in reversed(item)]
        elif item is not None:
            yield f"{place}: {item}" if place else str(item)


_PLAIN = Reader("text", "text/plain", read_text)
_MARKDOWN = Reader("text", "text/markdown", read_text)
READERS: dict[str, Reader] = {
    ".txt": _PLAIN, ".text": _PLAIN, ".md": _MARKDOWN, ".markdown": _MARKDOWN,
    ".csv": Reader("table", "text/csv", read_csv), ".tsv": Reader("table", "text/tab-separated-values", read_csv),
    ".json": Reader("record", "application/json", read_json),
}
