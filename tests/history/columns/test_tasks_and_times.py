"""Whole columns against single records: times, and the pairing of starts with completes."""

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from opus_pipelines.history.columns.cases import (
    Spans,
    TooLongError,
    tasks_of_block,
    waits,
)
from opus_pipelines.history.columns.values import NO_TIME, UnusualError, microseconds
from opus_pipelines.history.records import assembler
from opus_pipelines.history.records.raw import COMPLETE, NO_WORK, OTHER, START, Event, Task
from opus_pipelines.history.records.values import BadValueError, TimeParser, nanoseconds

DIGITS = st.text("0123456789", min_size=2, max_size=2)
CLOCKS = st.builds(
    "{}:{}:{}".format, st.sampled_from(["00", "09", "23", "24"]), DIGITS, st.sampled_from(["00", "59", "60"])
)
DATES = st.builds(
    "{}-{}-{}".format,
    st.sampled_from(["2000", "1900", "2024", "0001", "9999", "0000", "2023"]),
    st.sampled_from(["01", "02", "12", "13", "00"]),
    st.sampled_from(["01", "28", "29", "30", "31", "32", "00"]),
)
FRACTIONS = st.one_of(st.just(""), st.text("0123456789", min_size=1, max_size=7).map(".{}".format), st.just(",5"))
ZONES = st.sampled_from(
    ["Z", "+00:00", "-00:00", "+02:00", "-23:59", "+24:00", "+02", "+0200", "", " UTC", "z", "+02:60", "+2:000"]
)
WRITTEN = st.builds("{}{}{}{}{}".format, DATES, st.sampled_from("T t"), CLOCKS, FRACTIONS, ZONES)


def one_by_one(texts: list[str], parser: TimeParser) -> list[int] | str:
    try:
        return [parser(text) for text in texts]
    except BadValueError as error:
        return error.code


@pytest.mark.long
@settings(max_examples=300, deadline=None)
@given(texts=st.lists(WRITTEN, min_size=1, max_size=3), zone=st.sampled_from([None, "Europe/Amsterdam"]))
def test_times_are_read_as_one_by_one(texts: list[str], zone: str | None) -> None:
    for some in ([text] for text in texts):
        parser = TimeParser(zone)
        try:
            found: list[int] | str = microseconds(pa.array(some), parser, plain=True).tolist()
        except BadValueError as error:
            found = error.code
        except UnusualError:
            assert nanoseconds(some[0])  # such times are read one by one, with their order
            continue
        assert found == one_by_one(some, parser)


def test_times_of_several_forms() -> None:
    texts = pa.array(
        [
            "skipped",
            "1970-01-01T00:00:01Z",
            "1970-01-01T01:00:00.25+01:00",
            "1970-01-02",
            "2011-10-01T00:38:44.546+02:00",
        ]
    )
    parser = TimeParser("UTC")
    assert microseconds(texts.slice(1), parser, plain=True).tolist() == [
        1_000_000,
        250_000,
        86_400_000_000,
        1_317_422_324_546_000,
    ]
    with pytest.raises(BadValueError, match="is no time"):
        microseconds(texts, parser, plain=True)
    assert microseconds(pa.array(["01/02/1970"]), TimeParser("UTC", ["%d/%m/%Y"]), plain=False).tolist() == [
        31 * 86_400_000_000
    ]


WORDS = {"start": START, "complete": COMPLETE, "schedule": NO_WORK, "odd": OTHER}
EVENTS = st.lists(
    st.tuples(
        st.integers(0, 2),
        st.one_of(st.none(), st.integers(0, 5)),
        st.sampled_from(["start", "start", "complete", "complete", *WORDS]),
        st.integers(0, 2),
    ),
    max_size=40,
)


@pytest.mark.long
@settings(max_examples=300, deadline=None)
@given(found=EVENTS, log_has_work=st.booleans())
def test_tasks_are_those_of_the_record_way(found: list[tuple[int, int | None, str, int]], log_has_work: bool) -> None:
    found.sort(key=lambda e: e[0])
    expected, not_work = [], 0
    for case in range(3):
        mine = [
            Event(n, Task(task_key=str(run)), None if time is None else time * 1000, word)
            for n, (of, time, word, run) in enumerate(found)
            if of == case
        ]
        tasks, dropped = assembler.tasks_of(mine, log_has_work)
        not_work += dropped
        expected += [(case, t.position, int(t.task_key), t.started_at, t.ended_at, t.wait_ms) for t in tasks]
    case, run = (np.array([e[k] for e in found], np.int32) for k in (0, 3))
    time = np.array([NO_TIME if e[1] is None else e[1] * 1000 for e in found], np.int64)
    spans = Spans.of({"time": time}, interval=False)
    mined = tasks_of_block(
        case, spans, np.array([WORDS[e[2]] for e in found], np.int32), run.astype(np.int64), log_has_work
    )
    gaps, known = waits(mined)
    moments = [[None if t == NO_TIME else t for t in times.tolist()] for times in (mined.started, mined.ended)]
    gone = [gap if is_known else None for gap, is_known in zip(gaps.tolist(), known.tolist(), strict=True)]
    made = list(
        zip(
            mined.case.tolist(),
            mined.position().tolist(),
            run[mined.own].tolist(),
            *moments,
            gone,
            strict=True,
        )
    )
    assert (made, mined.not_work) == (expected, not_work)


def test_times_too_far_apart_for_a_float_are_left_to_the_record_way() -> None:
    case, kind = np.zeros(2, np.int32), np.full(2, OTHER, np.int32)
    spans = Spans.of({"time": np.array([0, 2**53], np.int64)}, interval=False)
    tasks = tasks_of_block(case, spans, kind, np.zeros(2, np.int64), True)
    with pytest.raises(TooLongError):
        waits(tasks)
