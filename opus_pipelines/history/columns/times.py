"""Parses a whole column of times at once, in the forms of ISO 8601 that nearly all logs use.

All other times go through the parser of single times.
"""

from datetime import datetime, timedelta
from functools import lru_cache

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from opus_pipelines.history.records.arrow_arrays import Bools, Longs, array, numbers, text_offsets, validity
from opus_pipelines.history.records.times import TimeParser
from opus_pipelines.history.records.values import BadValueError

NO_TIME = np.iinfo(np.int64).min
_SECONDS = "dddd-dd-dd*dd:dd:dd"
_FORMS = {
    len(form): form
    for form in (
        _SECONDS,
        _SECONDS + ".ddd",
        _SECONDS + ".dddddd",
        _SECONDS + "Z",
        _SECONDS + ".dddZ",
        _SECONDS + ".ddddddZ",
        _SECONDS + "+dd:dd",
        _SECONDS + ".ddd+dd:dd",
        _SECONDS + ".dddddd+dd:dd",
    )
}
_MONTH_STARTS = np.array([0, 0, 31, 59, 90, 120, 151, 181, 212, 243, 273, 304, 334], np.int64)
_MONTH_DAYS = np.array([0, 31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31], np.int64)
_EPOCH_DAY = 719_162  # days from 0001-01-01 to 1970-01-01
_EPOCH, _DAY = datetime(1970, 1, 1), 86_400_000_000
_MOST_DAYS = 1 << 17  # between the first and the last one, up to which each has a place in a table
_FIRST_DAY, _LAST_DAY = -_EPOCH_DAY + 366, 2_932_896 - 366


def microseconds(texts: pa.Array, parser: TimeParser, plain: bool) -> Longs:
    """Returns microseconds since 1970 in UTC of every text.

    `plain`: no `time_format` is stated, so ISO 8601 may be read here. Raises BadValueError for the first text that is
    no time.
    """
    results, bad = moments(texts, parser, plain)
    if bad.any():
        parser(texts[int(np.argmax(bad))].as_py())
    return results


def moments(texts: pa.Array, parser: TimeParser, plain: bool) -> tuple[Longs, Bools]:
    """Returns microseconds since 1970 in UTC of every text, and which texts are no time that can be read.

    NULL and an empty text have no time, and are not bad.
    """
    results, bad = np.full(len(texts), NO_TIME, np.int64), np.zeros(len(texts), bool)
    offsets = text_offsets(texts)
    lengths = np.diff(offsets)
    valid = validity(texts)
    lengths = lengths if valid is None else np.where(valid, lengths, 0)
    content = np.frombuffer(texts.buffers()[2] or b"", np.uint8)
    rest = lengths > 0
    for length, form in _FORMS.items() if plain else ():
        rows = np.flatnonzero(lengths == length)
        if len(rows):
            written = content[offsets[rows][:, None] + np.arange(length, dtype=np.int32)]
            found, good = _iso(np.ascontiguousarray(written.T), form)
            if form[-1] == "d" and form[-6:] != "+dd:dd":
                found, known = in_utc(found, parser)
                good &= known
            results[rows[good]] = found[good]
            rest[rows[good]] = False
    if rest.any():
        places = np.flatnonzero(rest)
        coded = texts.take(array(places.astype(np.int32), pa.int32())).dictionary_encode()
        single = [_or_none(parser, text) for text in coded.dictionary.to_pylist()]
        codes = numbers(coded.indices, np.int32)
        bad[places] = np.array([moment is None for moment in single])[codes]
        results[places] = np.array([NO_TIME if moment is None else moment for moment in single], np.int64)[codes]
    return results, bad


def in_utc(local: Longs, parser: TimeParser) -> tuple[Longs, Bools]:
    """Converts microseconds of clocks without a zone to UTC, and tells which are sure.

    Not sure are those outside the years 2 to 9998, and those of days on which the offset of the parser's zone changes.
    """
    if not len(local):
        return local, np.zeros(0, bool)
    fixed = parser.fixed_offset
    if fixed is not None and local.min() >= (_FIRST_DAY + 1) * _DAY and local.max() < _LAST_DAY * _DAY:
        return local - fixed // timedelta(microseconds=1), np.ones(len(local), bool)
    day = local // _DAY
    first = int(day.min())
    if int(day.max()) - first < _MOST_DAYS:
        place = day - first
        present = np.zeros(int(place.max()) + 1, bool)
        present[place] = True
        of_day = np.zeros(len(present), np.int64)
        days = np.flatnonzero(present)
        of_day[days] = [_offset(parser, first + one) for one in days.tolist()]
        offsets = of_day[place]
    else:
        days, place = np.unique(day, return_inverse=True)
        offsets = np.array([_offset(parser, int(one)) for one in days.tolist()], np.int64)[place]
    return np.where(offsets == NO_TIME, local, local - offsets), offsets != NO_TIME


@lru_cache(maxsize=1 << 14)
def _offset(parser: TimeParser, day: int) -> int:
    """Returns by how many microseconds the clock is before UTC on a day since 1970, NO_TIME if that is not sure."""
    if not _FIRST_DAY < day < _LAST_DAY:
        return NO_TIME
    start = _EPOCH + timedelta(days=day)
    found = {parser.offset(start + timedelta(hours=hours)) for hours in (0, 6, 12, 18, 24)}
    only = found.pop()
    return NO_TIME if found or only is None else only // timedelta(microseconds=1)


def _or_none(parser: TimeParser, text: str) -> int | None:
    try:
        return parser(text)
    except BadValueError:
        return None


def _iso(written: npt.NDArray[np.uint8], form: str) -> tuple[Longs, Bools]:
    """Returns the times of texts of one form (one row per character), and which of them are valid."""
    digits = written - np.uint8(48)
    good = np.ones(written.shape[1], bool)
    for place, kind in enumerate(form):
        if kind == "d":
            good &= digits[place] < 10
        elif kind == "*":
            good &= (written[place] == ord("T")) | (written[place] == ord(" "))
        elif kind == "+":
            good &= (written[place] == ord("+")) | (written[place] == ord("-"))
        else:
            good &= written[place] == ord(kind)

    def number(start: int, end: int) -> Longs:
        total: Longs = digits[start].astype(np.int64)
        for place in range(start + 1, end):
            total = total * 10 + digits[place]
        return total

    year, month, day = number(0, 4), number(5, 7), number(8, 10)
    hour, minute, second = number(11, 13), number(14, 16), number(17, 19)
    good &= (year > 1) & (year < 9999) & (month >= 1) & (month <= 12) & (hour < 24) & (minute < 60) & (second < 60)
    month = np.where(good, month, 1)
    leap = (year % 4 == 0) & ((year % 100 != 0) | (year % 400 == 0))
    good &= (day >= 1) & (day <= _MONTH_DAYS[month] + (leap & (month == 2)))
    before = year - 1
    days = (
        before * 365
        + before // 4
        - before // 100
        + before // 400
        + _MONTH_STARTS[month]
        + (leap & (month > 2))
        + day
        - 1
        - _EPOCH_DAY
    )
    moment = ((days * 24 + hour) * 60 + minute) * 60 + second
    form, place = form + ";", len(_SECONDS)
    fraction = np.zeros(len(moment), np.int64)
    if form[place] == ".":
        end = place + 1 + form[place + 1 :].count("d", 0, 6 if form.find("ddddd", place) > 0 else 3)
        fraction = number(place + 1, end) * 10 ** (6 - (end - place - 1))
        place = end
    if form[place] == "+":
        hours, minutes = number(place + 1, place + 3), number(place + 4, place + 6)
        good &= (hours < 24) & (minutes < 60)
        sign = np.where(written[place] == ord("-"), 1, -1)
        moment = moment + sign * (hours * 3600 + minutes * 60)
    return moment * 1_000_000 + fraction, good
