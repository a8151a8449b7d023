"""What a document reader takes (`Document`) and returns (`DocumentText`): limits, encoding and layout of text.

They are this project's own. An element's `left_out` names what lies beyond a bound.

Headings begin with `#`, list items with `- `, and ` | ` separates the cells of a table's row. A blank line separates
other blocks.
"""

import codecs
import hashlib
import io
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO, cast

from opus_pipelines.core.errors import InputError
from opus_pipelines.intakes.visibility.unseen import ASIDES

MIB = 1 << 20

MAX_BYTES = 32 * MIB  # of a document that must be held whole: PDF, Office, e-mail
MAX_STREAMED_BYTES = 256 * MIB  # of text, CSV and JSON Lines, which are read from the front
MAX_TREE_BYTES = 8 * MIB  # of HTML, XML and JSON: parsed they take ten to twenty times their size
MAX_CHARACTERS = 400_000  # of text from one document, about 200 pages
MAX_CHARACTERS_OF_ALL = 1_000_000  # of text from all documents of one intake, or of one contract
MAX_DOCUMENTS = 1_000  # of one intake, or of one contract, attachments counted
MAX_ROWS = 1_000  # of one table
MAX_CELLS = 300_000  # of one workbook: cells that are gone through to count its rows
MAX_LINE = 1_000_000  # characters of one line, and of one field, of a table
MAX_SPACES = 20_000  # within one tag of HTML or XML: libxml2 compares each attribute of a tag with all others
MAX_VALUES = 5_000  # of one JSON or XML document
NO_OCR = "pictures of text need OCR: install opus-pipelines[ocr], or ask for the text"
PARTIAL = "only a part of the scan can be read, and is left out; ask for the text"
UNSURE = "read from a picture with low confidence"
MAX_SCANNED = 12  # pictures of pages of all documents of one intake, or of one contract: each takes seconds
MAX_PAGES = 500  # of one PDF or presentation
MAX_ATTACHMENTS = 100  # of one e-mail
MAX_DEPTH = 3  # e-mails in e-mails
MAX_MULTIPARTS = 64  # of one e-mail
# of one e-mail: its lines times its multiparts, for its parser looks in every line for every open one
MAX_LINES_SCANNED = 20_000_000
MAX_HEAD_LINE = 4_000  # characters of one line of an e-mail's head: its parser takes the square of that

MAX_PARTS = 5_000  # files in an Office package
MAX_UNPACKED_BYTES = 256 * MIB  # of all of them
MAX_PART_BYTES = 16 * MIB  # of one XML part that is parsed whole
MAX_SHEET_BYTES = 32 * MIB  # of one sheet, which is read row by row
MAX_RATIO = 300  # unpacked to packed, of parts above a MiB: text reaches some tens, a bomb a thousand


@dataclass(frozen=True)
class Document:
    """The name, the size in bytes and the content of a document.

    `depth`: how many e-mails it is nested in. `asides`: the kinds of text outside the body that are read
    (`intakes.visibility.unseen.ASIDES`). `most_scanned`: how many pictures of pages are read of it. `transcribe`
    writes a recording down; None where the settings name nothing that does.
    """

    name: str
    size: int
    open: Callable[[], BinaryIO]
    depth: int = 0
    asides: frozenset[str] = ASIDES
    most_scanned: int = MAX_SCANNED
    transcribe: "Transcribe | None" = None

    @classmethod
    def of_file(cls, path: Path, asides: frozenset[str] = ASIDES) -> "Document":
        """Returns a file as a document. Raises OSError where its size cannot be read."""
        return cls(path.name, path.stat().st_size, lambda: path.open("rb"), 0, asides)

    @classmethod
    def of_bytes(cls, name: str, data: bytes, depth: int = 0, asides: frozenset[str] = ASIDES) -> "Document":
        """Returns a document in memory, such as an attachment."""
        return cls(name, len(data), lambda: io.BytesIO(data), depth, asides)

    def sha256(self) -> str:
        """Returns the SHA-256 of its content, in hex."""
        with self.open() as file:
            return hashlib.file_digest(cast(Any, file), "sha256").hexdigest()

    def head(self, length: int = 4096) -> bytes:
        """Returns its first bytes."""
        with self.open() as file:
            return file.read(length)

    def content(self, limit: int = MAX_BYTES) -> bytes:
        """Returns all of its bytes. Raises InputError where they are more than `limit`."""
        with self.open() as file:
            data = file.read(limit + 1)
        if len(data) > limit:
            raise InputError(
                f"{self.size:,} bytes are more than the {limit // MIB} MiB that are read of such a document; split it"
            )
        return data


@dataclass(frozen=True)
class DocumentText:
    """The text of a document, Ĩ_m of LWM (3), or None where there is none.

    `left_out` says what is not in the text, `parts` are the documents inside this one. `places` says of lines of the
    text, counted from 0, where a person finds them on the page or slide. `scanned`: how many pictures of pages were
    read.
    """

    text: str | None
    left_out: tuple[str, ...] = ()
    parts: tuple[Document, ...] = ()
    places: Mapping[int, str] = field(default_factory=dict)
    scanned: int = 0


Transcribe = Callable[[Document], DocumentText]


def front(text: str) -> tuple[str, str]:
    """Returns the first MAX_CHARACTERS of a text whose reading ended there, and a note on what was left out."""
    kept, _ = cut(text, MAX_CHARACTERS)
    return kept, f"what stands after its first {len(kept):,} characters"


def counted(number: int, thing: str, plural: str = "") -> str:
    """Returns a number with its noun: `1 page`, `2 pages`. `plural` is for nouns without a plural in s."""
    return f"{number:,} {thing if number == 1 else plural or thing + 's'}"


def counts(numbers: dict[str, int]) -> tuple[str, ...]:
    """Returns one phrase for each kind of part that was left out, without kinds that did not occur."""
    return tuple(counted(number, thing) for thing, number in numbers.items() if number)


def cut(text: str, limit: int) -> tuple[str, str | None]:
    """Returns at most `limit` characters, cut at a space where one is near, and a note on what was left out."""
    if len(text) <= limit:
        return text, None
    end = text.rfind(" ", max(0, limit - 200), limit)
    kept = text[: end if end > 0 else limit]
    return kept, f"the last {len(text) - len(kept):,} of {len(text):,} characters"


def encoding_of(chunks: Iterable[bytes], declared: str | None = None) -> tuple[str, str | None]:
    """Returns the name of the codec, and a note where it is a guess."""
    # here, because it loads the settings of sources, which take half a second and which most commands do not need
    from opus_pipelines.history.formats.encoding_detection import marked_encoding

    decoder = codecs.getincrementaldecoder("utf-8")()
    first = True
    try:
        for chunk in chunks:
            if first:
                if marked := marked_encoding(chunk):
                    return marked, None
                first = False
            decoder.decode(chunk)
        decoder.decode(b"", final=True)
    except UnicodeDecodeError:
        if declared and _is_text_codec(declared):
            return declared, None
        return "cp1252", "its encoding is not UTF-8 and not stated: read as Windows-1252"
    return "utf-8", None


def decode(data: bytes, declared: str | None = None) -> tuple[str, str | None]:
    """Returns the text of bytes with newlines as one character, and a note where the encoding is a guess.

    Raises InputError where the bytes are no text.
    """
    encoding, note = encoding_of([data], declared)
    try:
        text = data.decode(encoding)
    except UnicodeDecodeError:
        raise InputError(_not_text(encoding)) from None
    return checked(text).replace("\r\n", "\n").replace("\r", "\n"), note


def open_text(document: Document, newline: str | None = None) -> tuple[io.TextIOWrapper, str | None]:
    """Opens the document as a stream of characters, and returns a note where the encoding is a guess.

    Raises InputError where the document is larger than MAX_STREAMED_BYTES.
    """
    if document.size > MAX_STREAMED_BYTES:
        raise InputError(
            f"{document.size:,} bytes are more than the {MAX_STREAMED_BYTES // MIB} MiB that are read; split it"
        )
    encoding, note = encoding_of(_chunks(document))
    return io.TextIOWrapper(document.open(), encoding, errors="strict", newline=newline), note


def pieces(stream: io.TextIOWrapper, size: int = MIB) -> Iterator[str]:
    """Yields the rest of a stream, `size` characters at a time. Raises InputError where it is no text."""
    try:
        while piece := stream.read(size):
            yield checked(piece)
    except UnicodeDecodeError:
        raise InputError(_not_text(stream.encoding)) from None


def lines(stream: io.TextIOWrapper, limit: int) -> Iterator[str]:
    """Yields the lines of a stream with their ends. Raises InputError on a line longer than `limit` characters."""
    try:
        while line := stream.readline(limit):
            if len(line) == limit and line[-1] not in "\r\n":
                raise InputError(f"a line is longer than {limit:,} characters")
            yield checked(line)
    except UnicodeDecodeError:
        raise InputError(_not_text(stream.encoding)) from None


def checked(text: str) -> str:
    """Returns the text unchanged. Raises InputError where it holds NUL bytes."""
    if "\0" in text:
        raise InputError("the document holds NUL bytes: it is not text")
    return text


def _chunks(document: Document) -> Iterator[bytes]:
    with document.open() as file:
        while chunk := file.read(MIB):
            yield chunk


def _is_text_codec(name: str) -> bool:
    try:
        return codecs.lookup(name)._is_text_encoding  # noqa: SLF001  Python has no public name for it
    except (LookupError, ValueError):
        return False


def _not_text(encoding: str) -> str:
    tried = "UTF-8 nor Windows-1252" if encoding == "cp1252" else f"the {encoding} it says it is nor UTF-8"
    return f"the document is neither {tried}; save it as UTF-8"


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
