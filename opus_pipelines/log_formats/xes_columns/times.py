"""Parses a whole column of times at once, in the forms of ISO 8601 that nearly all logs use.

All other times go through the parser of single times.
"""

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from opus_pipelines.event_logs.arrow_arrays import Bools, Longs, array, numbers
from opus_pipelines.event_logs.times import TimeParser

NO_TIME = np.iinfo(np.int64).min
_SECONDS = "dddd-dd-dd*dd:dd:dd"
_FORMS = {
    len(form): form
    for form in (
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


def microseconds(texts: pa.Array, parser: TimeParser, plain: bool) -> Longs:
    """Returns microseconds since 1970 in UTC of every text.

    `plain`: no `time_format` is stated, so ISO 8601 may be read here. Raises BadValueError for the first text that is
    no time.
    """
    results = np.full(len(texts), NO_TIME, np.int64)
    rest = np.ones(len(texts), bool)
    offsets = np.frombuffer(texts.buffers()[1], np.int32, len(texts) + 1, texts.offset * 4)
    lengths = np.diff(offsets)
    content = np.frombuffer(texts.buffers()[2] or b"", np.uint8)
    for length, form in _FORMS.items() if plain else ():
        rows = np.flatnonzero(lengths == length)
        if len(rows):
            written = content[offsets[rows][:, None] + np.arange(length, dtype=np.int32)]
            moments, good = _iso(np.ascontiguousarray(written.T), form)
            results[rows[good]] = moments[good]
            rest[rows[good]] = False
    if rest.any():
        places = np.flatnonzero(rest)
        coded = texts.take(array(places.astype(np.int32), pa.int32())).dictionary_encode()
        moments = np.array([parser(text) for text in coded.dictionary.to_pylist()], np.int64)
        results[places] = moments[numbers(coded.indices, np.int32)]
    return results


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
    place = len(_SECONDS)
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
