"""Detects the character encoding of a text file and the delimiter of its columns, from its bytes only.

The encoding is determined in this order: a byte order mark; the zero bytes of UTF-16 without a mark; valid UTF-8; else
the library chardet chooses among the encodings in which exports are written. Every line is checked, because a file with
only some lines in UTF-8 (two systems wrote into it) must be reported and not half understood. The library clevercsv
detects the delimiter from the first lines.
"""

import codecs
import csv
import io
import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO

from opus_pipelines.history.records.files import open_data

DELIMITERS = ",;\t|"
LEGACY_DEFAULT = "cp1252"
# What exports are written in besides Unicode. ISO 8859-1 and its relatives are read as the Windows encoding that
# contains them.
LEGACY = (
    "cp1252 cp1250 iso8859-2 cp1251 koi8-r cp866 cp1253 cp1254 cp1255 cp1256 cp1257 cp850 cp437 mac-roman cp932 euc_jp "
    "gb18030 big5 euc_kr"
).split()
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
# in which short texts may look like UTF-8 by chance
_SEVERAL_BYTES = frozenset({"cp932", "euc_jp", "gb18030", "big5", "euc_kr"})
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
# with fewer such bytes, or less confidence, chardet's answer is no better than the usual encoding
_FEW_BYTES, _LOW_CONFIDENCE = 4, 0.05
_DIALECT_LINES, _DIALECT_CHARACTERS = 60, 12_000  # clevercsv takes time that grows faster than its sample
_UNREADABLE = re.compile("[\ud800-\udfff]")


@dataclass(frozen=True)
class Place:
    """The position of a non-ASCII byte in a file: its line, counted from 1, and its offset in bytes, counted from 0."""

    line: int
    byte: int
    value: int

    def __str__(self) -> str:
        return f"line {self.line:,}, byte {self.byte:,} of the file: 0x{self.value:02X}"


@dataclass(frozen=True)
class Encoding:
    """The encoding of a file. `name` is a Python codec.

    `certain` is False for a best guess among single-byte or Asian encodings. The counts include only lines with a
    non-ASCII byte: `utf8_lines` are valid UTF-8, `other_lines` are not. `mixed`: the file has both kinds, so no single
    encoding reads it all; the lines that `name` does not read are the smaller part.
    """

    name: str
    certain: bool = True
    utf8_lines: int = 0
    other_lines: int = 0
    first_utf8: Place | None = None
    first_other: Place | None = None
    mixed: bool = False
    legacy: str | None = None  # the encoding of the lines that are not UTF-8

    def remark(self) -> str | None:
        """Returns a message for the person who sent the file if its encodings are mixed."""
        if not self.mixed or self.first_utf8 is None or self.first_other is None:
            return None
        return (
            f"its encodings are mixed: {_lines(self.utf8_lines)} UTF-8 (the first: {self.first_utf8}) and "
            f"{_lines(self.other_lines)} not "
            f'(the first: {self.first_other}); encoding = ["utf-8", "{self.legacy}"] in source.toml reads each line '
            "in the first that fits"
        )


def detect_encoding(open_file: Callable[[], BinaryIO]) -> Encoding:
    """Detects the encoding of the bytes that `open_file` gives. It is called once and read to the end."""
    with open_file() as file:
        return _of_blocks(iter(lambda: file.read(_BLOCK), b""))


def detect_file_encoding(path: Path) -> Encoding:
    """Detects the encoding of a file, decompressed if its name ends in .gz.

    Raises InputError if the file is empty and OSError if it cannot be read.
    """
    return detect_encoding(lambda: open_data(path))


def detect_delimiter(text: str) -> str:
    """Detects the delimiter, one of DELIMITERS, from a table's first lines (the header and some rows).

    The result for a table with one column is the comma.
    """
    sample = "".join(text[:_DIALECT_CHARACTERS].splitlines(keepends=True)[:_DIALECT_LINES])
    by_header = _by_header(sample)
    if by_header is None:
        return ","
    if sum(sign in _first_line(sample) for sign in DELIMITERS) == 1:
        return by_header  # the only answer that splits the header; importing clevercsv takes .2 s
    delimiter = _by_clevercsv(sample)
    return (
        delimiter
        if delimiter and delimiter in DELIMITERS and _fields(_first_line(sample), delimiter) > 1
        else by_header
    )


def detect_file_delimiter(path: Path, encoding: str | None = None) -> str:
    """Detects the delimiter of a file with the given encoding, which is detected if it is None."""
    name = encoding or detect_file_encoding(path).name
    with open_data(path) as file:
        return table_head(file.read(8 * _DIALECT_CHARACTERS).decode(name, "replace"))[1]


_STATED = re.compile(r"""\ufeff?"?sep=(\\t|[^\s"]|\t)[\s"]*""", re.IGNORECASE)  # the first line of CSV made for Excel
_MOST_ABOVE = 30  # rows above a header
_ALIKE = 0.8  # share of a table's rows that have as many columns as most


def table_head(text: str, delimiter: str | None = None) -> tuple[int, str]:
    """Returns the number of lines above the header of a table, and the delimiter, detected if it is None.

    `text` is the begin of a file. Above the header may stand titles, comments, and `sep=;`, which states the delimiter.
    """
    lines = list(io.StringIO(text[:_DIALECT_CHARACTERS], newline=""))
    first = _STATED.match(lines[0]) if lines else None
    if first is not None and not lines[0][first.end() :].strip(first[1] + '\r\n"'):
        delimiter = delimiter or first[1].replace("\\t", "\t")
        above, _ = table_head("".join(lines[1:]), delimiter)
        return above + 1, delimiter
    usual = delimiter or detect_delimiter(text)
    above, width = _table(lines, usual)
    for sign in DELIMITERS if delimiter is None else "":
        other = _table(lines, sign)
        if other[0] and other[1] > max(2, width):  # a title misled
            (above, width), usual = other, sign
    return above, usual


def _table(lines: list[str], sign: str) -> tuple[int, int]:
    """Returns how many lines stand above the header by this delimiter, and the number of columns, 0 without a table."""
    rows, places = [], []
    reader = csv.reader(lines, delimiter=sign)
    before = 0
    try:
        for row in reader:
            if any(map(str.strip, row)):
                rows.append([cell.strip() for cell in row])
                places.append(before)
            before = reader.line_num
    except csv.Error:
        return 0, 0
    place, width = header_place(rows)
    return places[place] if width else 0, width


def header_place(rows: Sequence[Sequence[str]]) -> tuple[int, int]:
    """Returns which of the first rows is the header, and the number of columns, 0 if the rows make no table.

    No row may be empty. A header is the first row that names most columns. It is looked for where the first row does
    not name all.
    """
    below = rows[1:-1] or rows[1:]
    width = max(Counter(map(len, below)).items(), key=lambda found: (found[1], found[0]))[0] if below else 0
    if width < 2 or sum(len(row) == width for row in below[_MOST_ABOVE:] or below[-5:]) < _ALIKE * min(5, len(below)):
        return 0, 0
    if all(rows[0]) and len(rows[0]) >= width and not rows[0][0].startswith("#"):
        return 0, width
    named = 0 if rows[0][0].startswith("#") else sum(map(bool, rows[0]))
    found = [
        (row[0].startswith("#"), -sum(map(bool, row)), place)
        for place, row in enumerate(rows[:_MOST_ABOVE])
        if place
        and len(row) == width
        and sum(map(bool, row)) > named
        and is_header([cell for cell in with_groups(row, rows[place - 1]) if cell])
    ]
    return min(found, default=(False, 0, 0))[2], width


def with_groups(names: Sequence[str], above: Sequence[str]) -> list[str]:
    """Returns the names of columns, of which those that stand twice have the name of their group before them.

    `above` is the row above the header, where a cell names the columns from its own to that of the next cell.
    """
    found, group = [], ""
    for name, cell in zip(names, above if len(above) == len(names) else [""] * len(names), strict=True):
        group = cell.strip() or group
        found.append(f"{group} {name}" if group and name and list(names).count(name) > 1 else name)
    return found


def row_above(lines: Sequence[str], delimiter: str) -> list[str]:
    """Returns the last row of these lines above a header that is not empty."""
    return next((row for row in reversed(list(csv.reader(lines, delimiter=delimiter))) if any(row)), [])


def is_header(cells: Sequence[str]) -> bool:
    """Tells whether the cells of a row may be names of columns: several, all different, and none is a value."""
    return len(cells) > 1 and len(set(cells)) == len(cells) and not any(_shows_data(cell) for cell in cells)


def _shows_data(cell: str) -> bool:
    return len(cell) > 100 or bool(re.search(r"\d{5}|\d[:./-]\d", cell) or re.fullmatch(r"[\d.,%+\s-]+", cell))


@dataclass
class _Lines:
    """Counts of the non-ASCII lines read so far."""

    line: int = 1
    byte: int = 0
    utf8: int = 0
    other: int = 0
    first_utf8: Place | None = None
    first_other: Place | None = None
    sample: list[bytes] = field(default_factory=list)
    sampled: int = 0

    def add(self, block: bytes) -> None:
        """Adds a block of whole lines."""
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
            marked = marked_encoding(block)
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
    """Returns where to cut a line that is too long to be held in memory, or 0 if it is not."""
    if len(line) < _LONGEST_LINE:
        return 0
    return next((end for end in range(len(line) - 1, len(line) - 5, -1) if line[end] & 0xC0 != 0x80), len(line))


def marked_encoding(head: bytes) -> str | None:
    """Returns the encoding that a byte order mark or the zero bytes of UTF-16 show, or None where there are none."""
    encoding = next((name for mark, name in _MARKS if head.startswith(mark)), None)
    return encoding if encoding is not None else _unmarked_utf16(head)


def _unmarked_utf16(head: bytes) -> str | None:
    """Detects UTF-16 without a mark, in which every other byte of Latin text is zero.

    Returns None for anything else.
    """
    sample = head[:1000]
    half = len(sample) // 2
    if half > 1 and sample[1::2].count(0) > 0.7 * half and 0 not in sample[::2]:
        return "utf-16-le"
    if half > 1 and sample[::2].count(0) > 0.7 * half and 0 not in sample[1::2]:
        return "utf-16-be"
    return None


def _legacy(sample: bytes) -> tuple[str, bool]:
    """Returns the most likely encoding of text that is not UTF-8, and whether more than a few bytes support it."""
    import chardet

    candidates = []
    for answer in chardet.detect_all(sample):
        name = _codec(answer["encoding"] or "")
        if name in LEGACY and _decodes(sample, name):
            candidates.append((float(answer["confidence"] or 0), name))
    best = max((confidence for confidence, _ in candidates), default=0.0)
    if sum(value > 127 for value in sample) < _FEW_BYTES or best < _LOW_CONFIDENCE:
        usual = _decodes(sample, LEGACY_DEFAULT) or not candidates
        return (LEGACY_DEFAULT if usual else candidates[0][1]), False
    return min(
        (name for confidence, name in candidates if confidence == best), key=LEGACY.index
    ), best > _LOW_CONFIDENCE


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
    """Returns the delimiter that splits the header into most columns, or None if it has one column only."""
    first = _first_line(sample)
    best = max(DELIMITERS, key=lambda sign: (_fields(first, sign), -DELIMITERS.index(sign)))
    return best if _fields(first, best) > 1 else None


def _first_line(sample: str) -> str:
    return next((line for line in sample.splitlines() if line.strip()), "")


def _fields(line: str, delimiter: str) -> int:
    return len(next(csv.reader([line], delimiter=delimiter), []))


def _lines(count: int) -> str:
    return f"{count:,} line is" if count == 1 else f"{count:,} lines are"
