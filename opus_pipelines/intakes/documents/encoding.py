"""Detects a document's encoding: by its byte order mark, else UTF-8, else what it declares, else Windows-1252."""

import codecs
import io
from collections.abc import Iterable, Iterator

from opus_pipelines.core.errors import InputError
from opus_pipelines.history.formats.encoding_detection import marked_encoding
from opus_pipelines.intakes.documents.document import Document
from opus_pipelines.intakes.documents.limits import MAX_STREAMED_BYTES, MIB


def encoding_of(chunks: Iterable[bytes], declared: str | None = None) -> tuple[str, str | None]:
    """Returns the name of the codec, and a note where it is a guess."""
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
