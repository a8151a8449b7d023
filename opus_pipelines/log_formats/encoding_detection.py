"""Detects how a text file is written: its character encoding, and the sign between its columns.

Pure functions of a file's bytes. The encoding is settled in this order: a byte order mark; the zero bytes of UTF-16
without a mark; valid UTF-8; else the library chardet decides among the encodings that exports are written in. Every
line is looked at, because a file of which only some lines are UTF-8 (two systems wrote into it) must be named, not half
understood. The delimiter is what the library clevercsv finds in the first lines.
"""

import codecs
import csv
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO

from opus_pipelines.event_logs.files import open_data

DELIMITERS = ",;\t|"
LEGACY_DEFAULT = "cp1252"
# What exports are written in besides Unicode. ISO 8859-1 and its relatives are read as the Windows encoding that
# contains them.
LEGACY = (
    "cp1252",
    "cp1250",
    "iso8859-2",
    "cp1251",
    "koi8-r",
    "cp866",
    "cp1253",
    "cp1254",
    "cp1255",
    "cp1256",
    "cp1257",
    "cp850",
    "cp437",
    "mac-roman",
    "cp932",
    "euc_jp",
    "gb18030",
    "big5",
    "euc_kr",
)
_CONTAINED_IN = {
    "iso8859-1": "cp1252",
    "iso8859-15": "cp1252",
    "iso8859-7": "cp1253",
    "iso8859-9": "cp1254",
    "shift_jis": "cp932",
    "gb2312": "gb18030",
    "gbk": "gb18030",
    "cp949": "euc_kr",
}
_SEVERAL_BYTES = frozenset(
    {"cp932", "euc_jp", "gb18030", "big5", "euc_kr"}
)  # in which short texts may look like UTF-8 by chance
_MARKS = (
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
_BLOCK = 1 << 20
_LONGEST_LINE = 1 << 24
_SAMPLE_BYTES = 1 << 16  # of lines with letters beyond ASCII, by which chardet decides
_FEW_BYTES, _LOW_CONFIDENCE = (
    4,
    0.05,
)  # with fewer such bytes, or less confidence, chardet's answer is no better than the usual encoding
_DIALECT_LINES, _DIALECT_CHARACTERS = 60, 12_000  # clevercsv takes time that grows faster than its sample
_UNREADABLE = re.compile("[\ud800-\udfff]")


@dataclass(frozen=True)
class Place:
    """A byte beyond ASCII in a file: its line and its offset, both as people count them (the first line is 1, the
    first byte 0).
    """

    line: int
    byte: int
    value: int

    def __str__(self) -> str:
        return f"line {self.line:,}, byte {self.byte:,} of the file: 0x{self.value:02X}"


@dataclass(frozen=True)
class Encoding:
    """How a file is encoded.

    `name` is a Python codec. `certain` is False where it is the best guess among encodings of single bytes or of Asia.
    Lines are counted where they have a byte beyond ASCII: `utf8_lines` are valid UTF-8, `other_lines` are not. `mixed`:
    the file has both kinds, so that no one encoding reads it all; the lines that `name` does not read are then the
    smaller part.
    """

    name: str
    certain: bool = True
    utf8_lines: int = 0
    other_lines: int = 0
    first_utf8: Place | None = None
    first_other: Place | None = None
    mixed: bool = False
    legacy: str | None = None  # what the lines that are not UTF-8 are read as, where there are any

    def remark(self) -> str | None:
        """A sentence for the person who sent the file, where its encodings are mixed."""
        if not self.mixed or self.first_utf8 is None or self.first_other is None:
            return None
        return (
            f"its encodings are mixed: {_lines(self.utf8_lines)} UTF-8 (the first: {self.first_utf8}) and {_lines(self.other_lines)} not "
            f'(the first: {self.first_other}); encoding = ["utf-8", "{self.legacy}"] in source.toml reads each line in the first that fits'
        )


def detect_encoding(open_file: Callable[[], BinaryIO]) -> Encoding:
    """How the bytes that `open_file` gives are encoded; it is called once, and all of them are read."""
    with open_file() as file:
        return _of_blocks(iter(lambda: file.read(_BLOCK), b""))


def detect_file_encoding(path: Path) -> Encoding:
    """How a file is encoded, unpacked where its name ends in .gz; raises InputError where it is empty, OSError where
    it cannot be read.
    """
    return detect_encoding(lambda: open_data(path))


def detect_delimiter(text: str) -> str:
    """The sign between the columns, one of DELIMITERS, of a table's first lines (the header and as many rows as there
    are).

    Of a table with one column it is the comma.
    """
    sample = "".join(text[:_DIALECT_CHARACTERS].splitlines(keepends=True)[:_DIALECT_LINES])
    by_header = _by_header(sample)
    if by_header is None:
        return ","
    found = _by_clevercsv(sample)
    return found if found and found in DELIMITERS and _fields(_first_line(sample), found) > 1 else by_header


def detect_file_delimiter(path: Path, encoding: str | None = None) -> str:
    """The delimiter of a file whose encoding is `encoding` (detected where it is None)."""
    name = encoding or detect_file_encoding(path).name
    with open_data(path) as file:
        return detect_delimiter(file.read(8 * _DIALECT_CHARACTERS).decode(name, "replace"))


@dataclass
class _Lines:
    """What is known of the lines so far that have a byte beyond ASCII."""

    line: int = 1
    byte: int = 0
    utf8: int = 0
    other: int = 0
    first_utf8: Place | None = None
    first_other: Place | None = None
    sample: list[bytes] = field(default_factory=list)
    sampled: int = 0

    def add(self, block: bytes) -> None:
        """Whole lines."""
        if not block.isascii():
            at, number = self.byte, self.line
            for line in block.split(b"\n"):
                if not line.isascii():
                    self._judge(line, number, at)
                at, number = at + len(line) + 1, number + 1
        self.line += block.count(b"\n")
        self.byte += len(block)

    def _judge(self, line: bytes, number: int, at: int) -> None:
        try:
            line.decode()
        except UnicodeDecodeError as error:
            self.other += 1
            self.first_other = self.first_other or Place(number, at + error.start, line[error.start])
            if self.sampled < _SAMPLE_BYTES:
                self.sample.append(line)
                self.sampled += len(line)
        else:
            self.utf8 += 1
            if self.first_utf8 is None:
                place = next(i for i, value in enumerate(line) if value > 127)
                self.first_utf8 = Place(number, at + place, line[place])


def _of_blocks(blocks: Iterator[bytes]) -> Encoding:
    lines, held, first, has_mark = _Lines(), b"", True, False
    for block in blocks:
        if first:
            marked = _marked(block)
            if marked is not None and marked != "utf-8-sig":
                return Encoding(marked)
            first, has_mark = False, marked is not None
        held += block
        end = held.rfind(b"\n") + 1 or _end_of_character(held)
        lines.add(held[:end])
        held = held[end:]
    lines.add(held)
    utf8 = "utf-8-sig" if has_mark else "utf-8"
    if not lines.other:
        return Encoding(utf8, utf8_lines=lines.utf8, first_utf8=lines.first_utf8)
    legacy, certain = _legacy(b"\n".join(lines.sample)[: 2 * _SAMPLE_BYTES])
    by_chance = lines.utf8 < lines.other and legacy in _SEVERAL_BYTES
    is_mixed = lines.utf8 > 0 and not by_chance
    return Encoding(
        legacy if lines.other > lines.utf8 and not has_mark else utf8,
        certain and not is_mixed,
        lines.utf8,
        lines.other,
        lines.first_utf8,
        lines.first_other,
        is_mixed or has_mark,
        legacy,
    )


def _end_of_character(line: bytes) -> int:
    """Where a line that is too long to be held is cut; 0 where it is not."""
    if len(line) < _LONGEST_LINE:
        return 0
    return next((end for end in range(len(line) - 1, len(line) - 5, -1) if line[end] & 0xC0 != 0x80), len(line))


def _marked(head: bytes) -> str | None:
    found = next((name for mark, name in _MARKS if head.startswith(mark)), None)
    return found if found is not None else unmarked_utf16(head)


def unmarked_utf16(head: bytes) -> str | None:
    """UTF-16 without a mark: Latin text has a NUL as every other byte. None where it is not that."""
    sample = head[:1000]
    half = len(sample) // 2
    if half > 1 and sample[1::2].count(0) > 0.7 * half and 0 not in sample[::2]:
        return "utf-16-le"
    if half > 1 and sample[::2].count(0) > 0.7 * half and 0 not in sample[1::2]:
        return "utf-16-be"
    return None


def _legacy(sample: bytes) -> tuple[str, bool]:
    """The likeliest encoding of text that is not UTF-8, and whether more than a few bytes speak for it."""
    import chardet

    found = []
    for answer in chardet.detect_all(sample):
        name = _codec(answer["encoding"] or "")
        if name in LEGACY and _decodes(sample, name):
            found.append((float(answer["confidence"] or 0), name))
    best = max((confidence for confidence, _ in found), default=0.0)
    if sum(value > 127 for value in sample) < _FEW_BYTES or best < _LOW_CONFIDENCE:
        usual = _decodes(sample, LEGACY_DEFAULT) or not found
        return (LEGACY_DEFAULT if usual else found[0][1]), False
    return min((name for confidence, name in found if confidence == best), key=LEGACY.index), best > _LOW_CONFIDENCE


def _codec(name: str) -> str:
    try:
        plain = codecs.lookup(name).name
    except LookupError:
        return name
    return _CONTAINED_IN.get(plain, plain)


def _decodes(sample: bytes, name: str) -> bool:
    try:
        sample.decode(name)
    except UnicodeDecodeError:
        return False
    return True


def _by_clevercsv(sample: str) -> str | None:
    import clevercsv

    try:
        dialect = clevercsv.Sniffer().sniff(_UNREADABLE.sub("?", sample), delimiters=list(DELIMITERS))
    except clevercsv.Error:
        return None
    return None if dialect is None else dialect.delimiter


def _by_header(sample: str) -> str | None:
    """The delimiter that parts the header into most columns, None where it has but one."""
    first = _first_line(sample)
    found = max(DELIMITERS, key=lambda sign: (_fields(first, sign), -DELIMITERS.index(sign)))
    return found if _fields(first, found) > 1 else None


def _first_line(sample: str) -> str:
    return next((line for line in sample.splitlines() if line.strip()), "")


def _fields(line: str, delimiter: str) -> int:
    return len(next(csv.reader([line], delimiter=delimiter), []))


def _lines(count: int) -> str:
    return f"{count:,} line is" if count == 1 else f"{count:,} lines are"
