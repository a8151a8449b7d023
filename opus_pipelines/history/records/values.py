"""Converts written values to numbers, booleans, lists, texts and times. A value that cannot be read raises
`BadValueError`.

Times become microseconds since 1970 in UTC. A time without a zone is read in the source's `timezone`; without that
setting it is refused, never guessed. In the hour that the clock repeats in autumn, the first occurrence counts. In the
hour that it skips in spring, the offset before the gap applies: 02:30 is then the moment at which the clock shows
03:30. Seconds, milliseconds and microseconds since 1970 are in UTC by definition.
"""

import ast
import json
import math
import re
import tomllib
from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from functools import cache
from pathlib import Path
from typing import Any
from unicodedata import combining, normalize
from zoneinfo import ZoneInfo

from opus_pipelines.core.errors import OpusError

TRUE = frozenset({"true", "t", "yes", "y", "1", "1.0", "success", "succeeded"})
FALSE = frozenset({"false", "f", "no", "n", "0", "0.0", "failure", "failed"})
ACTOR_KINDS = {
    **dict.fromkeys(("human", "person", "people", "user", "employee", "manual"), "human"),
    **dict.fromkeys(("model", "ai", "llm", "ai model", "agent"), "model"),
    **dict.fromkeys(("code", "program", "system", "software", "service", "script", "bot", "automatic"), "code"),
}
_REASON = 1_000  # characters of a reason, which may quote a file
# characters: what is longer was written by no person, and masking it takes seconds
LONGEST_TEXT, LONGEST_NAME = 1 << 20, 10_000
# sums of them, in millionths, stay within what Spark's decimals hold
LARGEST, LONGEST_MS, MOST_RUNS = 1e12, 1e14, 1_000_000_000
_GROUPS = {".": r"[,'\s]", ",": r"[.'\s]"}  # by the decimal sign: what may group thousands
_GROUPED = {sign: re.compile(rf"[+-]?\d{{1,3}}({group})(?:\d{{2,3}}\1)*\d{{3}}") for sign, group in _GROUPS.items()}


ROUNDED_ID = r"\d(?:[.,]\d+)?[Ee]\+\d+"  # what a spreadsheet shows of a long number, e.g. 4.50E+09


class BadValueError(ValueError):
    """A record cannot be used. It has a short stable code for counting, and a sentence with the reason."""

    def __init__(self, code: str, reason: str) -> None:
        self.code = code
        self.reason = reason if len(reason) <= _REASON else reason[: _REASON - 3] + "..."
        super().__init__(self.reason)


def unforeseen(error: Exception) -> BadValueError:
    """Returns the reason of a record at which its reader failed in a way that nobody foresaw; other records go on.

    Raises an error that is about the whole file, or about this machine.
    """
    if isinstance(error, BadValueError):
        return error
    if isinstance(error, OpusError | OSError | MemoryError):
        raise error
    return BadValueError("reader_failed", f"the reader failed with {type(error).__name__}: {error}; please report it")


@cache
def _words() -> dict[str, Any]:
    return tomllib.loads(Path(__file__).with_name("words.toml").read_text("utf-8"))


NO_VALUE = frozenset(_words()["no_value"])
LONGEST_NO_VALUE = 12  # bytes, with some blanks


def says_nothing(value: Any) -> bool:
    """Tells whether a value states that there is none: None, "", not a number, or a word such as "n/a" or "#DIV/0!"."""
    if isinstance(value, str):
        return value == "" or (len(value) <= LONGEST_NO_VALUE and value.strip() in NO_VALUE)
    return value is None or (isinstance(value, float) and value != value)


def telling(raw: Mapping[str, Any]) -> dict[str, Any]:
    """Returns a record without the values that say nothing."""
    return {key: value for key, value in raw.items() if not says_nothing(value)}


def text(value: Any) -> str:
    """Converts any value to text: strings unchanged, others as JSON. Raises BadValueError if the text is too long."""
    written = value if isinstance(value, str) else json.dumps(value, sort_keys=True, ensure_ascii=False)
    return _not_longer(written, LONGEST_TEXT, "; drop under [redact] in source.toml leaves it out")


def name(value: Any) -> str:
    """Converts a value to a name, such as a case id or a task key. Raises BadValueError if it is too long."""
    return _not_longer(text(value), LONGEST_NAME, "")


def _not_longer(written: str, most: int, advice: str) -> str:
    if len(written) > most:
        raise BadValueError(
            "too_long", f"the text has {len(written):,} characters, and at most {most:,} are read{advice}"
        )
    return written


def boolean(value: Any) -> bool:
    """Reads true/false, yes/no, 1/0 or success/failure in upper or lower case. Raises BadValueError for other words."""
    if isinstance(value, bool):
        return value
    word = text(value).strip().lower()
    if word in TRUE:
        return True
    if word in FALSE:
        return False
    raise BadValueError("bad_boolean", f"{shown(value)} is neither true nor false")


def number(value: Any, decimal: str | None = None) -> float:
    """Reads a finite number. Raises BadValueError.

    If `decimal` is stated, the other sign, a space or an apostrophe groups thousands; otherwise grouping is not
    allowed.
    """
    if isinstance(value, str):
        plain = value.strip().removeprefix("$").strip()
        if decimal is not None:
            plain = _ungrouped(plain, decimal)
        try:
            value = float(plain) if "_" not in plain else float("no")
        except ValueError:
            hint = (
                '; decimal = "," or "." in source.toml says what a comma is'
                if re.fullmatch(r"[+-]?[\d.]*,[\d.,]+", plain)
                else ""
            )
            raise BadValueError("bad_number", f"{shown(value)} is no number{hint}") from None
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise BadValueError("bad_number", f"{shown(value)} is no number")
    try:
        result = float(value)
    except OverflowError:
        result = math.inf
    if not math.isfinite(result):
        raise BadValueError("not_finite", "the number is not finite")
    return result


def _ungrouped(plain: str, decimal: str) -> str:
    """Removes the thousands separators of a written number and writes its decimal sign as a point.

    Raises BadValueError for wrong groups, which show that `decimal` is wrong.
    """
    whole, point, rest = plain.partition(decimal)
    if re.search(_GROUPS[decimal], plain):
        if not _GROUPED[decimal].fullmatch(whole) or not re.fullmatch(r"\d*", rest):
            raise BadValueError("bad_number", f"{shown(plain)} is no number whose decimal sign is {decimal}")
        whole = re.sub(r"[^\d+-]", "", whole)
    return whole + ("." if point else "") + rest


def amount(value: Any, decimal: str | None = None) -> float:
    """Reads a number from 0 to `LARGEST`, for money, memory and threads. Raises BadValueError."""
    result = number(value, decimal)
    if result < 0:
        raise BadValueError("negative_number", f"{shown(value)} is negative")
    return _bounded(result, value, LARGEST)


def count(value: Any, decimal: str | None = None) -> int:
    """Reads a whole number that is not negative, for tokens. Raises BadValueError."""
    return int(amount(value, decimal))


def weight(value: Any) -> int:
    """Reads the number of runs that one record represents: a whole number from 1 to `MOST_RUNS`.

    Raises BadValueError.
    """
    result = number(value)
    if result != int(result) or not 1 <= result <= MOST_RUNS:
        raise BadValueError(
            "bad_weight", f"{shown(value)} is no number of runs: a whole number from 1 to {MOST_RUNS:,}"
        )
    return int(result)


def duration(value: Any, decimal: str | None = None) -> float:
    """Reads milliseconds of work, at most `LONGEST_MS` (about three thousand years). Raises BadValueError."""
    result = number(value, decimal)
    if result < 0:
        raise BadValueError("negative_duration", f"the duration {shown(value)} is negative")
    return _bounded(result, value, LONGEST_MS)


def _bounded(result: float, value: Any, most: float) -> float:
    if result > most:
        raise BadValueError("bad_number", f"{shown(value)} is out of range: it is more than {most:,.0f}")
    return result


_PART = re.compile(r"[^\W\d_]+")
_NOT = frozenset({"not", "no", "non", "nicht", "kein", "niet", "geen", "pas", "nao"})  # turn a word into its opposite


def bare(word: str) -> str:
    """Returns a word as `words.toml` writes it: lower case, no accents, one blank between its parts."""
    plain = word if word.isascii() else "".join(c for c in normalize("NFKD", word) if not combining(c))
    return " ".join(plain.casefold().replace("_", " ").split())


class TransitionMeanings:
    """Tells what the words for transitions mean. `stated` are words by meaning that the settings add."""

    def __init__(self, stated: Mapping[str, Sequence[str]] | None = None) -> None:
        self._stated = {bare(word): meaning for meaning, words in (stated or {}).items() for word in words}
        self._found: dict[str, str] = {}

    def __call__(self, word: str) -> str:
        """Returns one of `raw.MEANINGS`.

        A phrase means what its parts mean, where all parts that have a meaning have the same: "task_started", "Wait -
        User".
        """
        if word not in self._found:
            self._found[word] = self._meaning(word)
        return self._found[word]

    def _meaning(self, word: str) -> str:
        whole = bare(re.sub(r"(?<=[a-z])(?=[A-Z])", " ", word))
        known = {"": ""} | _meanings() | self._stated
        for form in (bare(word), whole, whole.replace("-", " ")):
            if form in known:
                return known[form]
        parts = _PART.findall(whole)
        meanings = {known[part] for part in parts if part in known} if _NOT.isdisjoint(parts) else set()
        return meanings.pop() if len(meanings) == 1 else "unknown"


@cache
def _meanings() -> dict[str, str]:
    return {word: meaning for meaning, words in _words()["transitions"].items() for word in words}


def actor_kind(value: Any) -> str | None:
    """Returns human, model or code for the usual words for them, and None for any other word."""
    return ACTOR_KINDS.get(text(value).strip().lower())


def texts(value: Any) -> list[str]:
    """Reads a list of texts: a list, a JSON list, or a text with parts separated by line ends, `;` or `|`."""
    if isinstance(value, str) and value.lstrip().startswith("["):
        try:
            value = json.loads(value)
        except (ValueError, RecursionError):
            return [value]
    if isinstance(value, list):
        return [text(v) for v in value if v not in (None, "")]
    return [part.strip() for part in re.split(r"[;|\n]", text(value)) if part.strip()]


def field_names(value: Any) -> list[str]:
    """Reads the names of the fields of an object, or of the objects in a list.

    The value may be a text that JSON or Python wrote. What the fields hold is left out. A value without fields has no
    names.
    """
    if isinstance(value, str):
        value = _written(text(value))
    names: dict[str, None] = {}
    values = deque([value])
    while values:
        inner = values.popleft()
        if isinstance(inner, dict):
            names.update((str(name), None) for name in inner)
        elif isinstance(inner, list | tuple):
            values.extend(inner)
    return list(names)


def _written(written: str) -> Any:
    """Returns the value that a text states as JSON or as a literal of Python; None where it states none."""
    for read in (json.loads, ast.literal_eval) if "{" in written else ():  # an object is written with braces
        try:
            return read(written)
        except (ValueError, SyntaxError, RecursionError, MemoryError):
            continue
    return None


def instructions(value: Any) -> list[str]:
    """Reads a list of texts like `texts`, but only line ends separate the parts.

    Prose may contain `;` and `|`.
    """
    if isinstance(value, str) and not value.lstrip().startswith("["):
        return [line.strip() for line in value.splitlines() if line.strip()]
    return texts(value)


def places(value: Any) -> list[int]:
    """Reads a list of positions in a list, counted from 0. Raises BadValueError."""
    if not isinstance(value, list) or not all(type(v) is int and v >= 0 for v in value):
        raise BadValueError("bad_predecessors", "the predecessors must be a list of places, counted from 0")
    return value


def flatten(value: dict[str, Any], prefix: str = "", depth: int = 8) -> dict[str, Any]:
    """Flattens nested objects to one with dotted names.

    Lists, and objects deeper than `depth`, stay values.
    """
    flat: dict[str, Any] = {}
    for key, inner in value.items():
        if isinstance(inner, dict) and depth:
            flat |= flatten(inner, f"{prefix}{key}.", depth - 1)
        else:
            flat[f"{prefix}{key}"] = inner
    return flat


def at_path(value: Any, path: str) -> Any:
    """Returns the value at a dotted path, or None if there is none."""
    for part in path.split("."):
        value = value.get(part) if isinstance(value, dict) else None
    return value


def shown(value: Any) -> str:
    """Quotes a value for a message, with at most 40 characters."""
    written = value if isinstance(value, str) else repr(value)
    return repr(written if len(written) <= 40 else written[:37] + "...")


_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)
_FIRST, _LAST = (
    (end - _EPOCH) // _MICROSECOND for end in (datetime.min.replace(tzinfo=UTC), datetime.max.replace(tzinfo=UTC))
)
_CLOCK = (
    r"(?:[T, ]+(\d{1,2}):(\d{2})(?::(\d{2})(?:[.,](\d{1,6})\d*)?)?\s*([AaPp][Mm])?)?\s*(Z|UTC|GMT|[+-]\d{2}:?\d{2})?"
)
_NUMERIC = re.compile(r"(\d{1,2})([/.-])(\d{1,2})\2(\d{4})" + _CLOCK)
# Calendar digits: with the year first, down to the hour at least or the day alone; and with the year last. The year of
# the latter stands where the former have their month, so that no text is both.
_DIGITS_YEAR_FIRST = re.compile(r"((?:19|20)\d\d)(\d\d)(\d\d)(?:(\d\d)(?:(\d\d)(?:(\d\d)[.,]?(\d{1,9})?)?)?)?")
_DIGITS_YEAR_LAST = re.compile(r"(\d\d)(\d\d)((?:19|20)\d\d)(?:(\d\d)(\d\d)(\d\d)?)?")
_EPOCH_UNITS = {10: 1_000_000, 13: 1_000, 16: 1, 19: 0.001}  # microseconds of a unit, by the number of digits
_EPOCH_YEARS = (1990, 2099)
# hours as people write them: 23h24, 9.05 Uhr, 14:05:00 Uhr, 14u05, um 9 Uhr, ore 14.05, kl. 14.05, a las 9:05 h
_HOUR_IN_WORDS = re.compile(
    r"(?:(?<=\d)T|[,\s]\s*)(?:-\s+)?(?:(?:um|at|à|om|ore|alle|às|as|a las|kl\.?)\s+)?"
    r"(\d{1,2})\s*(?:h|u|:|\.|uhr|uur)\s*"
    r"(?:(\d{2})(?:\s*(?:m|min|:|\.|')\s*(\d{2})?)?)?\s*(?:s|sec|uhr|uur|min|m|hs?|hrs?|u)?\.?$",
    re.IGNORECASE,
)
_HALF = re.compile(r"\s*\b([ap])\.?\s?m\.?$", re.IGNORECASE)
_WEEKDAY = re.compile(r"^[^\W\d_]{2,10}(?:\.?,\s*|\.?\s+)(?=\d{1,2}\D|\d{4}[/.-])")
_MONTH_NAME = re.compile(
    r"(\d{1,2})(?:\.|st|nd|rd|th|er|º)?[\s/.-]*(?:de\s+)?([^\W\d_]{3,10})\.?,?[\s/.-]*(?:del?\s+)?(\d{4})" + _CLOCK
)
_MONTH_NAME_FIRST = re.compile(r"([^\W\d_]{3,10})\.?\s+(\d{1,2})(?:st|nd|rd|th)?,?\s+(\d{4})" + _CLOCK)
_YEAR_FIRST = re.compile(r"(\d{4})([/.])(\d{1,2})\2(\d{1,2})" + _CLOCK)
EXCEL_DAYS = "excel"  # a `time_format`: days since 1899-12-30 as spreadsheets count them, 45719.3125 or 45719,3125
_EXCEL_DAY, _EXCEL_FIRST = re.compile(r"(\d{5})(?:[.,](\d+))?"), datetime(1899, 12, 30)
_EXACT = 8  # decimals of a day from which it tells milliseconds; with fewer it is rounded to a second


class TimeParser:
    """Reads the times of one file.

    `day_first` tells whether 03/04/2020 is in April; with None such a date is refused.
    """

    def __init__(self, timezone: str | None = None, formats: Sequence[str] = (), day_first: bool | None = None) -> None:
        self._zone = ZoneInfo(timezone) if timezone else None
        self._formats = formats
        self.day_first = day_first

    def __call__(self, value: Any) -> int:
        """Returns microseconds since 1970. Raises BadValueError with code bad_time, no_timezone or ambiguous_time."""
        try:
            moment = _iso(value) if not self._formats else None
            if moment is None:
                moment = self._moment(value)
            if moment.tzinfo is None:
                if self._zone is None:
                    raise BadValueError(
                        "no_timezone", f'{shown(value)} states no time zone; timezone = "..." in source.toml says which'
                    )
                moment = moment.replace(tzinfo=self._zone)
            micros = (moment - _EPOCH) // _MICROSECOND
            if not _FIRST <= micros <= _LAST:
                raise OverflowError
            return micros
        except (OverflowError, OSError):
            raise BadValueError("bad_time", f"{shown(value)} is out of the range of times") from None

    def offset(self, clock: datetime) -> timedelta | None:
        """Returns by how much a clock without a zone is before UTC, or None if the source states no zone."""
        return None if self._zone is None else self._zone.utcoffset(clock)

    @property
    def fixed_offset(self) -> timedelta | None:
        """Returns the same where it is one for all times, as in UTC, else None."""
        return None if self._zone is None else self._zone.utcoffset(None)

    def _moment(self, value: Any) -> datetime:
        if isinstance(value, bool) or not isinstance(value, str | int | float):
            raise BadValueError("bad_time", f"{shown(value)} is no time")
        written = value.strip() if isinstance(value, str) else repr(value)
        for form in self._formats:
            if form == EXCEL_DAYS and (match := _EXCEL_DAY.fullmatch(written)):
                return excel_day(match[1], match[2] or "")
            try:
                return datetime.strptime(written, form)
            except ValueError:
                continue
        if re.fullmatch(r"-?\d+([.,]\d+)?", written):
            return self._from_digits(written)
        try:
            return datetime.fromisoformat(
                re.sub(r" ?(UTC|GMT)$", "+00:00", written) if written[-1:] in "CT" else written
            )
        except ValueError:
            pass  # it is written as people write, and not as programs do
        plain = as_programs_write(written)
        if plain != written:
            try:
                return datetime.fromisoformat(plain)
            except ValueError:
                pass  # nor is the day
        return self._from_usual(plain, written)

    def _from_usual(self, plain: str, written: str) -> datetime:
        """Reads a time whose hours are written with colons; `written` is what the file has."""
        try:
            if match := _YEAR_FIRST.fullmatch(plain):
                return _combined(int(match[1]), int(match[3]), int(match[4]), match.groups()[4:])
            if (match := _MONTH_NAME.fullmatch(plain)) and (month := _month(match[2])):
                return _combined(int(match[3]), month, int(match[1]), match.groups()[3:])
            if (match := _MONTH_NAME_FIRST.fullmatch(plain)) and (month := _month(match[1])):
                return _combined(int(match[3]), month, int(match[2]), match.groups()[3:])
            if match := _NUMERIC.fullmatch(plain):
                day, month = self._day_and_month(int(match[1]), int(match[3]), match[2], written)
                return _combined(int(match[4]), month, day, match.groups()[4:])
        except BadValueError:
            raise
        except ValueError:
            pass  # falls through to the one refusal below: no such day or hour
        raise BadValueError(
            "bad_time",
            f"{shown(written)} is no time that can be read; time_format in source.toml says how it is written",
        )

    def _from_digits(self, written: str) -> datetime:
        """Reads digits alone: a calendar's, or units since 1970 in a plausible year."""
        try:
            if match := _DIGITS_YEAR_FIRST.fullmatch(written):
                year, month, day, hour, minute, second, fraction = match.groups()
                return _combined(
                    int(year), int(month), int(day), (hour, minute, second, (fraction or "")[:6], None, None)
                )
        except ValueError:
            pass  # 20032024 has its year last
        try:
            if match := _DIGITS_YEAR_LAST.fullmatch(written):
                day_of, month_of = self._day_and_month(int(match[1]), int(match[2]), "", written)
                return _combined(int(match[3]), month_of, day_of, (match[4], match[5], match[6], None, None, None))
        except BadValueError:
            raise
        except ValueError:
            pass  # digits that are no calendar's may still be an epoch's
        whole, _, part = written.replace(",", ".").partition(".")
        unit = _EPOCH_UNITS.get(len(whole))
        if unit is not None and not whole.startswith(("-", "0")):
            micros = int(whole) * int(unit) if unit >= 1 else int(whole) // 1_000
            moment = _EPOCH + timedelta(microseconds=micros + (round(float(f"0.{part}") * unit) if part else 0))
            if _EPOCH_YEARS[0] <= moment.year <= _EPOCH_YEARS[1]:
                return moment
        raise BadValueError(
            "bad_time",
            f"{shown(written)} is no time that can be read: its digits are neither a calendar's nor those of a time "
            "since 1970; time_format in source.toml says how it is written",
        )

    def _day_and_month(self, first: int, second: int, separator: str, written: str) -> tuple[int, int]:
        day_first = True if separator == "." else self.day_first
        if day_first is None:
            if first <= 12 and second <= 12 and first != second:
                raise BadValueError(
                    "ambiguous_time",
                    f"{shown(written)} may be day or month first; time_format in source.toml says which",
                )
            day_first = second <= 12
        return (first, second) if day_first else (second, first)


def _iso(value: Any) -> datetime | None:
    """Reads an ISO time that begins with its year, which is the most frequent form. Returns None for any other form."""
    if isinstance(value, str) and value[4:5] == "-":
        try:
            return datetime.fromisoformat(value)
        except ValueError:
            return None
    return None


def day_comes_first(values: Iterable[str]) -> bool | None:
    """Returns the order of d/m/Y or m/d/Y dates that a whole column shows.

    The result is True, False, or None if the column shows neither order or both.
    """
    shown = set()
    for value in values:
        first, second = numeric_day(value) or (0, 0)
        if (first > 12) != (second > 12):
            shown.add(first > 12)
    return shown.pop() if len(shown) == 1 else None


def numeric_day(value: str) -> tuple[int, int] | None:
    """Returns the two numbers before the year of a date such as 03/04/2020 or 03042020."""
    value = value.strip()
    if value[4:5] == "-" and value[:4].isdigit():  # as programs write, which need no look at words
        return None
    if match := _DIGITS_YEAR_LAST.fullmatch(value):
        return int(match[1]), int(match[2])
    match = _NUMERIC.fullmatch(as_programs_write(value))
    return None if match is None else (int(match[1]), int(match[3]))


def is_numeric_date(value: str) -> bool:
    """Tells whether the value has the form of 03/04/2020, whose order of day and month the column must show."""
    return numeric_day(value) is not None and "." not in value[:5]


def excel_day(days: str, part: str) -> datetime:
    """Returns the moment of a day as spreadsheets count it, without a zone; `part` are its decimals."""
    unit = 1_000 if len(part) >= _EXACT else 1
    units = round(float(f"0.{part or 0}") * 86_400 * unit)
    return _EXCEL_FIRST + timedelta(days=int(days), seconds=units / unit)


def as_programs_write(written: str) -> str:
    """Returns a time with its hours as 9:05 or 09:05:30, and without a weekday: 'Mo, 4.3.2024 um 9.05 Uhr'."""
    plain = _WEEKDAY.sub("", written) if not written[:1].isdigit() and not _MONTH_NAME_FIRST.match(written) else written
    if half := _HALF.search(plain):
        return f"{plain[: half.start()]} {half[1].upper()}M"
    if (match := _HOUR_IN_WORDS.search(plain)) and match.start():
        clock = ":".join(part for part in (match[1].zfill(2), match[2] or "00", match[3]) if part)
        return f"{plain[: match.start()].rstrip(' ,')} {clock}"
    return plain


def _month(word: str) -> int | None:
    """Returns the number of the month that a word means, by its beginning; None where it could be several."""
    found = [
        number for number, names in enumerate(_words()["months"], 1) if any(n.startswith(bare(word)) for n in names)
    ]
    return found[0] if len(found) == 1 else None


_NANOSECONDS = re.compile(r"\d[.,]\d{6}(\d{1,3})|^\d{16}(\d{3})$")


def nanoseconds(value: Any) -> int:
    """Returns by how many nanoseconds a time is later than its last microsecond."""
    written = value if isinstance(value, str) else str(value) if isinstance(value, int) else ""
    found = _NANOSECONDS.search(written) if len(written) >= _FINE else None
    return 0 if found is None else int((found[1] or found[2]).ljust(3, "0"))


_FINE = 19  # characters of a time from which it may tell nanoseconds


def joined_time(day: Any, clock: Any) -> str:
    """Returns the text of a day and a time of day that stand in two columns; "" without a day."""
    first, second = ("" if says_nothing(value) else text(value).strip() for value in (day, clock))
    first = re.sub(r"[T ]00:00(:00(\.0+)?)?$", "", first)
    second = re.sub(r"^\d{4}-\d\d-\d\d[T ]", "", second)  # what spreadsheets make of a time of day
    if re.fullmatch(r"\d{3,6}", second):
        second = re.sub(r"(\d\d)(?=\d)", r"\1:", second.zfill(4 if len(second) <= 4 else 6))
    return f"{first} {second}".strip() if first else ""


def _combined(year: int, month: int, day: int, clock: Sequence[str | None]) -> datetime:
    hour, minute, second, fraction, half, zone = clock
    hours = int(hour or 0)
    if half:
        if not 1 <= hours <= 12:
            raise ValueError("no such hour")
        hours = hours % 12 + (12 if half.lower() == "pm" else 0)
    naive = datetime(year, month, day, hours, int(minute or 0), int(second or 0), int((fraction or "0").ljust(6, "0")))
    if zone is None:
        return naive
    return datetime.fromisoformat(naive.isoformat() + ("+00:00" if zone in {"Z", "UTC", "GMT"} else zone))
