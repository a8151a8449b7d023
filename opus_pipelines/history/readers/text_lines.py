"""The lines of a CSV file as text: in the encoding and with the delimiter that source.toml states, else as detected."""

import io
import re
from collections.abc import Callable, Iterator
from itertools import islice
from typing import BinaryIO

from opus_pipelines.history.detect_encoding import Encoding, detect_delimiter, detect_encoding
from opus_pipelines.history.source_settings import SourceSettings

UNDECODED = re.compile("[\ud800-\udfff]")  # what the decoder makes of bytes that are no text in the encoding
_SAMPLE_LINES = 60


class TextLines:
    """How one file is written; `encoding` names it, `mixed` says which lines are written otherwise."""

    def __init__(self, open_file: Callable[[], BinaryIO], settings: SourceSettings) -> None:
        self._found: Encoding | None = None if settings.encoding else detect_encoding(open_file)
        self._names = [_with_mark(name) for name in (settings.encoding or [self._found.name if self._found else ""])]
        self.encoding = ", ".join(settings.encoding) or self._names[0]
        self.mixed = self._found.remark() if self._found else None
        self._may_be_utf8 = self._found is not None and self._found.mixed and not self._names[0].startswith("utf-8")
        self._delimiter = settings.delimiter

    def lines(self, file: BinaryIO) -> Iterator[str]:
        """Every line with its end; characters that the encoding does not have are lone surrogates."""
        with io.TextIOWrapper(file, encoding=self._names[0], errors="surrogateescape", newline="") as text:
            if len(self._names) == 1:
                yield from text
            else:
                for line in text:
                    yield self._otherwise(line) if UNDECODED.search(line) else line

    def delimiter(self, open_file: Callable[[], BinaryIO]) -> str:
        """The sign between the columns."""
        if self._delimiter is None:
            with open_file() as file:
                self._delimiter = detect_delimiter("".join(islice(self.lines(file), _SAMPLE_LINES)))
        return self._delimiter

    def misread(self, text: str) -> str | None:
        """Why a text is not what its writer wrote: bytes that the encoding does not have, or UTF-8 in a file that is mostly not."""
        if found := UNDECODED.search(text):
            before = text[max(0, found.start() - 20) : found.start()]
            return f"it is not {self._shown()} (byte 0x{(ord(found[0]) - 0xDC00) & 0xFF:02X} after {before!r})"
        if self._may_be_utf8 and not text.isascii() and _is_utf8(text, self._names[0]):
            return f"it is UTF-8, while most of the file is {self._shown()}"
        return None

    def _shown(self) -> str:
        return self.encoding.replace("utf-8-sig", "utf-8").upper() if self.encoding.startswith("utf") else self.encoding

    def _otherwise(self, line: str) -> str:
        raw = line.encode(self._names[0].replace("utf-8-sig", "utf-8"), "surrogateescape")
        for name in self._names[1:]:
            try:
                return raw.decode(name)
            except UnicodeDecodeError:
                continue
        return line


def _with_mark(name: str) -> str:
    """UTF-8 may begin with a mark, which is no part of the first column's name."""
    return "utf-8-sig" if name.lower().replace("_", "-") in ("utf-8", "utf8") else name


def _is_utf8(text: str, encoding: str) -> bool:
    try:
        text.encode(encoding, "surrogateescape").decode()
    except UnicodeError:
        return False
    return True
