"""Reads the first rows of a table (CSV or Parquet), and classifies its columns by their names and their values.

Values may be times (format, with or without zone) or amounts of money (with their decimal sign).
"""

import csv
import io
import re
import tomllib
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import cached_property, lru_cache, partial
from itertools import islice
from pathlib import Path
from unicodedata import combining, normalize

import pyarrow.parquet as pq

from opus_pipelines.core.errors import InputError
from opus_pipelines.history.columns.csv_blocks import FIELD_BYTES
from opus_pipelines.history.formats.csv_log import is_padded
from opus_pipelines.history.formats.encoding_detection import (
    Encoding,
    detect_file_encoding,
    row_above,
    table_head,
    with_groups,
)
from opus_pipelines.history.formats.table_log import column_names, refuse_object_centric
from opus_pipelines.history.records.activity_kinds import words_of
from opus_pipelines.history.records.files import folder_values, open_data, placed
from opus_pipelines.history.records.money import Money
from opus_pipelines.history.records.source_settings import SourceSettings
from opus_pipelines.history.records.values import (
    EXCEL_DAYS,
    BadValueError,
    TimeParser,
    day_comes_first,
    joined_time,
    numeric_day,
    says_nothing,
    text,
)

_WORDS = tomllib.loads(Path(__file__).with_name("column_words.toml").read_text("utf-8"))


def folded_word(word: str) -> str:
    """Returns a word without accents."""
    return "".join(c for c in normalize("NFKD", word) if not combining(c))


def folded_words(text: str) -> frozenset[str]:
    """Returns the words of a text, with and without their accents."""
    return frozenset(text.split()) | frozenset(map(folded_word, text.split()))


ROLES = {role: folded_words(words) for role, words in _WORDS["roles"].items()}
GOOD, BAD, YES_OR_NO = (folded_words(_WORDS["values"][side]) for side in ("good", "bad", "yes_or_no"))
NUMBERING = folded_words(_WORDS["words"]["numbering"])
_BY, _TO, _ASSIGNED, _OPENING, _OF, _NAME, _REST, _LEADING, _OLD, _NEW, SUMS, PLANNED = (
    folded_words(_WORDS["words"][kind])
    for kind in "by to assigned opening of name rest leading old new sums planned".split()
)
_OF_ACTIVITIES = frozenset({"bezeichnung", "desc", "description", "label", "name", "text", "title", "type", "typ"})
MOST_WORDS = 2  # of the name of a column without units and numbering
_COMPOUND = 5  # letters of a word from which it may be the end of a longer one
_NO_COMPOUNDS = frozenset({"cost", "amount", "party"})


def _told_words(name: str) -> list[str]:
    """Returns the words that tell what a column holds: of "Nº da multa" and "order number" the thing that is numbered.

    Of "date of birth" and "responsable du dossier" it is what stands before the word for "of".
    """
    words = [folded_word(word) for word in words_of(name)]
    place = next((n for n, word in enumerate(words) if n and word in _OF), len(words))
    for part in (words[:place], words[place:]):
        told = [word for word in part if word not in NUMBERING and word not in _REST and word not in _OF]
        if len(told) > 1:
            told = [word for word in told if word not in _NAME]
        if told and not set(told) <= _NAME:
            return told
    return []


def names_role(name: str, role: str) -> bool:
    """Tells whether the name states this role.

    Its last word must do so, apart from numbering and units, with at most one other word before it; or the whole name,
    written as one word.
    """
    told = _told_words(name)
    if role in ("actor", "owner") and _names_by(name):
        return role == _names_by(name)
    if told and told[0] in _LEADING:
        return told[0] in ROLES[role]
    if not told or len(told) > MOST_WORDS:
        return False
    bare = told[-1].removesuffix("name").removesuffix("naam")
    if {told[-1], bare, bare.removesuffix("s"), "".join(told)} & ROLES[role]:
        return True
    ends = tuple(word for word in ROLES[role] if len(word) >= _COMPOUND)
    return role not in _NO_COMPOUNDS and told[-1].endswith(ends)


def _names_by(name: str) -> str:
    """Returns the role of a name such as "processed by" (actor), "created by" or "assigned to" (owner), else ""."""
    words = [folded_word(word) for word in words_of(name) if folded_word(word) not in NUMBERING | _NAME]
    if not 1 < len(words) <= MOST_WORDS + 1:
        return ""
    if words[-1] in _BY:
        return "owner" if set(words) & _OPENING else "actor"
    return "owner" if words[-1] in _TO and words[-2] in _ASSIGNED else ""


def names_number(name: str) -> bool:
    """Tells whether the name says that the column numbers something."""
    words = [folded_word(word) for word in words_of(name)]
    return any(word in NUMBERING or word.endswith(("nummer", "number", "zeichen", "nr", "id")) for word in words)


def names_amount(name: str) -> bool:
    """Tells whether the name is that of an amount or of any value."""
    return any(folded_word(word) in ROLES["amount"] for word in words_of(name))


def change_words(name: str) -> list[str]:
    """Returns "old" or "new" for each word of the name that tells the value before a change or the one after it."""
    words = [folded_word(word) for word in words_of(name)]
    ends = ("value", "wert", "string", "val")
    bare = [next((word.removesuffix(e) for e in ends if word.endswith(e) and word != e), word) for word in words]
    return ["old" if word in _OLD else "new" for word in bare if word in _OLD or word in _NEW]


def names_type_of_activity(name: str) -> bool:
    """Tells whether the name is that of an activity with a word for what it says of it: "event type", "step name"."""
    *words, last = words_of(name) or [""]
    return last in _OF_ACTIVITIES and bool(words) and words[-1] in ROLES["activity"] and len(words) <= MOST_WORDS


def zone_of(header: list[str]) -> str | None:
    """Returns the time zone where a table with these column names was probably written, or None if it is unclear.

    It is the one with the most inhabitants of those whose language the names are in, and is shown as a guess.
    """
    words = {word for name in header for word in words_of(name)}
    votes = {zone: len(words & set(known.split())) for zone, known in _WORDS["zones"].items()}
    best = max(votes, key=lambda zone: votes[zone])
    return best if votes[best] else None


ROWS = 100_000  # looked at; more do not change what a column means
_HEAD = 1 << 16


@dataclass(frozen=True, eq=False)  # looked up by identity in the caches below
class Column:
    """One column: its values in the order of the rows, as text, "" where a row has none."""

    name: str
    values: tuple[str, ...]

    @cached_property
    def filled(self) -> list[str]:
        """Returns the values that are not empty, without surrounding blanks."""
        return [stripped for value in self.values if (stripped := value.strip())]

    @cached_property
    def counts(self) -> Counter[str]:
        """Counts the distinct values."""
        return Counter(self.filled)


@dataclass(frozen=True)
class TableSample:
    """The first rows of a table. `encoding` and `delimiter` are None but for CSV. `table` is what [table] must say."""

    columns: dict[str, Column]
    rows: int
    encoding: Encoding | None = None
    delimiter: str | None = None
    table: dict[str, str | list[str]] = field(default_factory=dict)
    notes: dict[str, str] = field(default_factory=dict)  # reasons for lines of source.toml
    folders: tuple[str, ...] = ()  # columns whose values the folders of the file state
    codes: dict[str, dict[str, str]] = field(default_factory=dict)  # names by code, of columns that another file names
    legend: dict[str, str] = field(default_factory=dict)  # names by code that lines beside the table tell
    also: dict[str, str] = field(default_factory=dict)  # a sheet that is not read and has the values of a column
    _groups: dict[str, list[list[int]]] = field(default_factory=dict, compare=False, repr=False)

    @property
    def header(self) -> list[str]:
        """Returns the names of the columns, in their order."""
        return list(self.columns)

    def cases(self, case: str) -> list[list[int]]:
        """Returns the row numbers of each value of the column `case`."""
        if case not in self._groups:
            groups: dict[str, list[int]] = {}
            for row, value in enumerate(self.columns[case].values):
                if value.strip():
                    groups.setdefault(value.strip(), []).append(row)
            self._groups[case] = list(groups.values())
        return self._groups[case]

    def some(self, rows: Sequence[int]) -> "TableSample":
        """Returns some of the rows."""
        columns = {n: Column(n, tuple(c.values[row] for row in rows)) for n, c in self.columns.items()}
        return replace(self, columns=columns, rows=len(rows), _groups={})

    def changes_within(self, case: str, column: str) -> float:
        """Returns the share of cases with several rows in which the column has several values.

        The share is 0 if there are no such cases.
        """
        values = self.columns[column].values
        several = [rows for rows in self.cases(case) if len(rows) > 1]
        if not several:
            return 0.0
        return sum(len({values[row].strip() for row in rows} - {""}) > 1 for rows in several) / len(several)


def read_sample(path: Path, kind: str, sheets: Sequence[str] = ()) -> TableSample:
    """Reads the first rows of a table. Raises InputError if it is empty or has no header.

    `sheets` are those of a workbook that a person named.
    """
    readers: dict[str, Callable[[Path], TableSample]] = {
        "xlsx": partial(_workbook, sheets=sheets),
        "parquet": _parquet,
        "json_events": json_sample,
    }
    sample = readers.get(kind, _csv)(path)
    folders = {n: v for n, v in folder_values(placed(path)).items() if n not in sample.columns}
    added = {name: Column(name, (value,) * sample.rows) for name, value in folders.items()}
    return replace(sample, columns=sample.columns | added, folders=tuple(folders))


def _workbook(path: Path, sheets: Sequence[str]) -> TableSample:
    from opus_pipelines.history.formats.xlsx_log import Workbook

    with open_data(path) as file:
        book = Workbook(file)
    found = book.logs(sheets)
    rows = [row for sheet in found for _, row in islice(book.rows(sheet), ROWS)]
    columns = {
        name: Column(name, tuple(_text(row[place]) for row in rows)) for place, name in enumerate(found[0].header)
    }
    names = [sheet.name for sheet in found]
    also: dict[str, str] = {}
    for sheet in () if sheets else (table for table in book.tables if table.name not in names):
        names_of_both = [name for name in found[0].header if name in sheet.header]
        written = [row for _, row in islice(book.rows(sheet), ROWS)] if names_of_both else []
        for shared in names_of_both:
            place = sheet.header.index(shared)
            told = {_text(row[place]) for row in written} & set(columns[shared].counts)
            if len(told) > 1 and 2 * len(told) >= len(columns[shared].counts):
                also[shared] = sheet.name
    others = [repr(sheet.name) for sheet in book.tables if sheet.name not in names]
    notes = {"sheet": f"assumed; not read: {', '.join(others)}"} if others else {}
    return TableSample(columns, len(rows), table={"sheet": names} if others or sheets else {}, notes=notes, also=also)


def json_sample(path: Path, most: int = ROWS) -> TableSample:
    """Reads the first records of JSON as rows of a table, whose columns are the dotted paths of their values."""
    from opus_pipelines.history.formats.json_events import records

    with open_data(path) as file:
        rows = [record for _, record in islice(records(file, partial(open_data, path), lambda *_: None), most)]
    names = dict.fromkeys(key for row in rows for key in row)
    told = {name: [row.get(name) for row in rows] for name in names}
    written = {name: [v if v is None or isinstance(v, str) else text(v) for v in some] for name, some in told.items()}
    return TableSample({name: Column(name, _told(map(_text, some))) for name, some in written.items()}, len(rows))


def _csv(path: Path) -> TableSample:
    encoding = detect_file_encoding(path)
    with open_data(path) as file:
        above, delimiter = table_head(file.read(_HEAD).decode(encoding.name, "replace"))
    csv.field_size_limit(FIELD_BYTES)
    with open_data(path) as file, io.TextIOWrapper(file, encoding=encoding.name, errors="replace", newline="") as text:
        groups = row_above(list(islice(text, above)), delimiter)
        lines = csv.reader(text, delimiter=delimiter)
        written = next(lines, [])
        header = column_names(with_groups([name.strip() for name in written], groups))
        told = list(islice(lines, ROWS))
        rows = [row for row in told if len(row) == len(header)]
        rows = [[cell.strip() for cell in row] for row in rows] if is_padded(written) else rows
    refuse_object_centric(header)
    if not header or not rows:
        raise InputError(f"{path}: it has no rows below a header of columns")
    columns = {name: Column(name, _told(values)) for name, values in zip(header, zip(*rows, strict=True), strict=True)}
    legend = dict(filter(None, (_explained(row) for row in told if len(row) != len(header))))
    return TableSample(columns, len(rows), encoding, delimiter, legend=legend)


def _explained(row: Sequence[str]) -> tuple[str, str] | None:
    """Returns the code and its name that a line beside the table tells, as "* 11 = BILLED" does; None for others."""
    cells = [cell.strip() for cell in row if cell.strip()]
    match = _LEGEND.fullmatch(" = ".join(cells)) if len(cells) < 3 else None
    return (match[1], match[2]) if match else None


_LEGEND = re.compile(r"[*#/\s-]*(\w{1,12})\s*[=:]+\s*(\S.*)")


def _parquet(path: Path) -> TableSample:
    batch = next(pq.ParquetFile(path).iter_batches(batch_size=ROWS), None)
    if batch is None:
        raise InputError(f"{path}: it has no rows")
    columns = {n: Column(n, _told(map(_text, batch[n].to_pylist()))) for n in batch.schema.names}
    return TableSample(columns, len(batch))


def _told(values: Iterable[str]) -> tuple[str, ...]:
    """Returns the values, with "" for those that say nothing."""
    written = tuple(values)
    nothing = {value for value in set(written) if says_nothing(value)} - {""}
    return tuple("" if value in nothing else value for value in written) if nothing else written


def _text(value: object) -> str:
    return "" if value is None else str(value)


LOOKED_AT = 5_000  # distinct values of a column
FIRST_LOOK = 50
MOSTLY = 0.9
_CLOCKS = ("", " %H:%M", " %H:%M:%S", " %I:%M %p", " %I:%M:%S %p", "T%H:%M:%S", " %Hh%M", " %H:%M Uhr", " %H.%M Uhr")
# Dates that the readers accept only with a stated format: two-digit years, months in words, time before date.
_DAY_FIRST = ("%d.%m.%y", "%d/%m/%y", "%d-%m-%y")
_MONTH_FIRST = ("%m/%d/%y", "%m-%d-%y")
_DAY_FIRST_FULL, _MONTH_FIRST_FULL = ("%d/%m/%Y", "%d-%m-%Y", "%d%m%Y"), ("%m/%d/%Y", "%m-%d-%Y", "%m%d%Y")
_NEUTRAL = ("%d-%b-%y", "%d/%b/%y", "%d %B %Y", "%B %d, %Y", "%b %d, %Y", "%Y%m%d", "%y-%m-%d")
_DIGITS = re.compile(
    r"(19|20)\d\d(0[1-9]|1[0-2])([0-2]\d|3[01])([01]\d|2[0-4])?([0-5]\d([0-5]\d\d{0,9})?)?([.,]\d+)?"
    r"|[0-3]\d[0-3]\d(19|20)\d\d(\d{4}|\d{6})?|1\d{9}(\d{3}|\d{6}|\d{9})?(\.\d+)?"
)
_EXCEL_DAY = re.compile(r"(\d{5})(?:[.,](\d+))?")
_FIRST_EXCEL_DAY, _LAST_EXCEL_DAY = 29_221, 65_746  # 1980 to 2079
MONEY_DECIMALS = 2  # an amount has so many; a time of day needs more
_COMMA = re.compile(r"[^\d,.]*\d{1,3}(?:[.\s']?\d{3})*,\d{1,2}[^\d,.]*")
_POINT = re.compile(r"[^\d,.]*\d{1,3}(?:[,\s']?\d{3})*\.\d+[^\d,.]*")

_GROUPED = re.compile(r"[^\d,.]*\d{1,3}(?:,\d{3})+\.\d+[^\d,.]*")


@dataclass(frozen=True)
class TimeValues:
    """How a column of times is written.

    `readable` is the share of its values that are times. `formats` are those that `time_format` must state, and
    `guessed` those among them that rest on the country's custom and not on the values. `states_zone`: every value
    states its zone. `mixed` has an example of each of two readings where the column mixes them: the day first and the
    month first, digits alone and dates, with a zone and without.
    """

    readable: float
    formats: tuple[str, ...] = ()
    guessed: tuple[str, ...] = ()
    states_zone: bool = True
    mixed: tuple[str, ...] = ()


@lru_cache(64)
def time_values(column: Column, day_first_usual: bool = True) -> TimeValues:
    """Returns how the times of a column are written.

    `day_first_usual` is the order of day and month that applies if the column itself does not show it.
    """
    values = [value for value, _ in column.counts.most_common(LOOKED_AT)]
    if values and _are_excel_days(column.name, values):
        return TimeValues(1.0, (EXCEL_DAYS,), states_zone=False)
    if not values or _are_plain_numbers(values):
        return TimeValues(0.0)
    if len(values) > FIRST_LOOK and _times_of(values[:FIRST_LOOK], day_first_usual).readable < MOSTLY / 2:
        return TimeValues(0.0)  # most columns hold no times, and trying every form on all their values takes long
    return _times_of(values, day_first_usual)


@lru_cache(64)
def moments_of(column: Column, seen: TimeValues) -> list[int | None]:
    """Returns the time of each row in microseconds, None where it has none that can be read."""
    parse = TimeParser("UTC", seen.formats, day_comes_first(column.counts))
    known: dict[str, int | None] = {"": None}
    for value in column.counts:
        try:
            known[value] = parse(value)
        except BadValueError:
            known[value] = None
    return [known.get(value.strip()) for value in column.values]


def _times_of(values: Sequence[str], day_first_usual: bool) -> TimeValues:
    shown = day_comes_first(values)
    formats, guessed = [], []
    left = _unread(values, TimeParser("UTC", (), shown))
    ambiguous = [value for value in left if re.match(r"\d{1,2}[/-]\d{1,2}[/-]\d{4}|\d{4}(19|20)\d\d$", value)]
    if ambiguous:
        chosen = _formats(ambiguous, _DAY_FIRST_FULL if day_first_usual else _MONTH_FIRST_FULL)
        formats, guessed = list(chosen), list(chosen)
    apart = frozenset(ambiguous)
    others = [value for value in left if value not in apart]
    two_digits = _two_digit_years(others, day_first_usual if shown is None else shown)
    formats += _formats(others, (*two_digits, *_NEUTRAL))
    still = frozenset(_unread(values, TimeParser("UTC", formats, shown)))
    readable = 1 - len(still) / len(values)
    zoned = not _unread([value for value in values if value not in still], TimeParser(None, formats, shown))
    return TimeValues(readable, tuple(formats), tuple(guessed), zoned, mixed_times(values))


_MIXED = (
    lambda value: (parts := numeric_day(value)) and (True if parts[0] > 12 else False if parts[1] > 12 else None),
    lambda value: value.replace(".", "").isdigit(),
    lambda value: bool(re.search(r"\d(Z|[+-]\d\d:?\d\d)$", value)) if ":" in value else None,
)


def mixed_times(values: Iterable[str]) -> tuple[str, ...]:
    """Returns an example of each of two readings of times that a column mixes, () where it mixes none."""
    for reading in _MIXED:
        found: dict[bool, str] = {}
        for value in values:
            if isinstance(told := reading(value), bool):
                found.setdefault(told, value)
        if len(found) > 1:
            return tuple(found.values())
    return ()


def _two_digit_years(values: Sequence[str], day_first: bool) -> tuple[str, ...]:
    """Returns the formats of dates such as 3/25/17: with day or month first, as the values show, else as is usual."""
    shown = set()
    for value in values:
        match = re.match(r"(\d{1,2})[/.-](\d{1,2})[/.-]\d{2}\b", value)
        if match and (int(match[1]) > 12) != (int(match[2]) > 12):
            shown.add(int(match[1]) > 12)
    first = shown.pop() if len(shown) == 1 else day_first
    return (*_DAY_FIRST, *_MONTH_FIRST) if first else (*_MONTH_FIRST, *_DAY_FIRST)


def _are_excel_days(name: str, values: Sequence[str]) -> bool:
    """Tells whether a column that is named as a time has days as spreadsheets count them, most with a time of day."""
    is_named = any(names_role(name, role) for role in ("time", "start", "end"))
    days = [match for value in values if (match := _EXCEL_DAY.fullmatch(value))]
    is_recent = all(_FIRST_EXCEL_DAY <= int(match[1]) <= _LAST_EXCEL_DAY for match in days)
    # no amount has so many decimals as a time of day in a column of any name
    of_clocks = sum(len(match[2] or "") > MONEY_DECIMALS * (1 if is_named else 2) for match in days)
    return len(days) == len(values) and is_recent and of_clocks > len(days) / 2


def _are_plain_numbers(values: Sequence[str]) -> bool:
    """Tells whether the values are numbers, but neither calendar days nor seconds since 1970 of the last decades."""
    numbers = [value for value in values if re.fullmatch(r"-?\d+(\.\d+)?", value)]
    if len(numbers) < MOSTLY * len(values):
        return False
    moments = [value for value in numbers if _DIGITS.fullmatch(value)]
    return len(moments) < len(values)


def _unread(values: Iterable[str], parse: TimeParser) -> list[str]:
    left = []
    for value in values:
        try:
            parse(value)
        except BadValueError:
            left.append(value)
    return left


def _formats(values: Sequence[str], dates: Sequence[str]) -> tuple[str, ...]:
    """Returns the fewest formats, tried in this order, that read as many of the values as possible."""
    left, chosen = list(values), []
    for form in [date + clock for date in dates for clock in _CLOCKS]:
        rest = [value for value in left if not _fits(value, form)]
        if len(rest) < len(left):
            chosen.append(form)
            left = rest
    return tuple(chosen)


def _fits(value: str, form: str) -> bool:
    try:
        datetime.strptime(value, form)
    except ValueError:
        return False
    return True


@dataclass(frozen=True)
class MoneyValues:
    """Amounts of a column.

    `readable` is the share of its values that are amounts with this decimal sign. `currencies` are the signs or letters
    written in them, most frequent first.
    """

    readable: float
    decimal: str | None
    currencies: tuple[str, ...]


def money_values(column: Column) -> MoneyValues:
    """Returns how the values of the column are written as amounts of money."""
    values = [value for value, _ in column.counts.most_common(LOOKED_AT)]
    if not values:
        return MoneyValues(0.0, None, ())
    commas, points = (sum(pattern.fullmatch(value) is not None for value in values) for pattern in (_COMMA, _POINT))
    # A point is the sign of every program; it is stated only where commas group thousands, which are refused otherwise.
    is_grouped = any(_GROUPED.fullmatch(value) for value in values)
    decimal = "," if commas > points else "." if is_grouped else None
    money = Money(SourceSettings(decimal=decimal))
    counts: dict[str, int] = {}
    bad = 0
    for value in values:
        try:
            amount = money.read(value)
        except BadValueError:
            bad += 1
        else:
            if re.search(r"[^\d\s.,+'-]", value):
                counts[amount.currency] = counts.get(amount.currency, 0) + 1
    return MoneyValues(1 - bad / len(values), decimal, tuple(sorted(counts, key=lambda code: (-counts[code], code))))


_ORDER_NAMES = frozenset(
    "sorting sort order sequence seq reihenfolge sortierung sortierfolge volgorde ordre orden ordine ordem lfd "
    "laufende laufnr volgnr volgnummer progressivo progressif consecutivo correlativo running".split()
)
_WHOLE = re.compile(r"[+-]?\d{1,15}")


def numbers_rows(name: str) -> bool:
    """Tells whether the name says that the column numbers the rows, as "Lfd. Nr." does, and "order" alone does not."""
    words = [folded_word(word) for word in words_of(name)]
    return bool(_ORDER_NAMES.intersection(words)) and not ROLES["case"].intersection(words)


def order_column(sample: TableSample, case: str, moment: str, taken: Iterable[str]) -> str | None:
    """Returns the column that orders the events of a case that have the same time; None where there is none.

    It is a column so named, of whole numbers that differ in such events.
    """
    used = set(taken)
    when = sample.columns[moment].values
    ties: list[list[int]] = []
    for rows in sample.cases(case):
        at: dict[str, list[int]] = {}
        for row in rows:
            at.setdefault(when[row], []).append(row)
        ties += [same for same in at.values() if len(same) > 1]
    for name in sample.header if ties else ():
        column = sample.columns[name]
        if name in used or len(column.filled) < sample.rows or not all(map(_WHOLE.fullmatch, column.counts)):
            continue
        is_distinct = all(len({column.values[row] for row in same}) == len(same) for same in ties)
        is_named = _ORDER_NAMES & set(words_of(name)) or (names_number(name) and names_role(name, "activity"))
        if is_named and is_distinct:
            return name
    return None


_CLOCK_FORM = re.compile(
    r"\d{1,2}\s?[:hHuU]\s?(\d{2})?([:.'m]\d{2})?([.,]\d+)?(\s?([AaPp]\.?\s?[Mm]\.?|Uhr|uur|h))?"
    r"|\d{1,2}([.:]\d{2}){0,2}\s?(Uhr|uur|h)|\d{4}-\d\d-\d\d[T ]\d\d:\d\d(:\d\d)?"
)
_NAMED_CLOCK = re.compile(r"\d{1,2}\.\d{2}(\.\d{2})?|\d{3,6}")
_CLOCK_NAMES = frozenset("hour hours time uhrzeit zeit heure hora ora uur tijd tijdstip orario horario hr".split())
_DURATIONS = re.compile(
    r"dauer|durat|dur[ée]e|duur|duraci|duração|aufwand|effort|elapsed|spent|hours? worked|saldo", re.I
)
_DAY = 86_400_000_000
_STEM = 4  # letters that words of one meaning share: Startdatum, Startzeit


def with_joined_times(sample: TableSample, taken: Iterable[str] = ()) -> tuple[TableSample, dict[str, tuple[str, str]]]:
    """Returns the table with one column for each time whose day and hour stand in two, and these by its name.

    `taken` are columns that a person named.
    """
    free = [name for name in sample.header if name not in set(taken)]
    clocks = [name for name in free if _is_clock(sample.columns[name])]
    days = [name for name in free if name not in clocks and clocks and _is_day(sample.columns[name])]
    pairs: dict[str, str] = {}
    for clock in clocks if days else ():
        left = [day for day in days if day not in pairs.values()] or (days if len(days) == 1 else [])
        if left:
            pairs[clock] = max(left, key=lambda day: _belongs(sample.header, day, clock))
    joined = {f"{day} {clock}": (day, clock) for clock, day in pairs.items()}
    columns: dict[str, Column] = {}
    for name, column in sample.columns.items():
        for whole, (day, clock) in joined.items():
            if name == day:
                texts = map(joined_time, column.values, sample.columns[clock].values)
                columns[whole] = Column(whole, tuple(texts))
        if name not in pairs and name not in pairs.values():
            columns[name] = column
    return replace(sample, columns=columns, _groups={}), joined


def _belongs(header: list[str], day: str, clock: str) -> tuple[int, int, int]:
    """Returns how well the names of a day and an hour fit together, and how near their columns are."""
    one, other = words_of(day), words_of(clock)
    alike = any(a[:_STEM] == b[:_STEM] for a in one for b in other if len(a) > _STEM)
    distance = header.index(clock) - header.index(day)
    return len(set(one) & set(other)), alike, -abs(2 * distance - 1)  # at the same distance, the day comes first


def _is_clock(column: Column) -> bool:
    """Tells whether nearly all values are times of day, and no durations."""
    values = [value for value, _ in column.counts.most_common(LOOKED_AT)]
    named = bool(_CLOCK_NAMES & set(words_of(column.name))) or column.name.lower().endswith(("zeit", "tijd"))
    forms = [_CLOCK_FORM, _NAMED_CLOCK] if named else [_CLOCK_FORM]
    if not values or _DURATIONS.search(column.name):
        return False
    told = [value for value in values if any(form.fullmatch(value) for form in forms)]
    days = {value[:10] for value in told if value[4:5] == "-"}  # a spreadsheet's time of day has a day that is none
    dated = [joined_time("2024-03-01", value) for value in told]
    return len(days) <= 1 and len(told) - len(_unread(dated, TimeParser("UTC"))) >= MOSTLY * len(values)


def _is_day(column: Column) -> bool:
    """Tells whether nearly all values are days without a time of day."""
    seen = time_values(column)
    if seen.readable < MOSTLY:
        return False
    values = [value for value, _ in column.counts.most_common(LOOKED_AT)]
    parse = TimeParser("UTC", seen.formats, day_comes_first(values))
    readable = [parse(value) for value in values if not _unread([value], parse)]
    return all(moment % _DAY == 0 for moment in readable)
