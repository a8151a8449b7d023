"""Made flat logs for tests: tables of texts and of typed columns with every kind of gap, and settings for them."""

import csv
import io
import math
from typing import Any

from hypothesis import strategies as st

CELLS = {
    "case_id": st.sampled_from(["a", "b", "c", "d", "4111111111111111", "", " ", "nan"]),
    "activity": st.sampled_from(["A", "B", "call 06-12345678", 'say "hi"', "two\nlines", "a,b", "", "é", "N/A"]),
    "lifecycle": st.sampled_from(["", "", "start", "Complete", "schedule", "odd"]),
    "instance": st.sampled_from(["", "1", "2"]),
    "resource": st.sampled_from(["", "Ann", "ann@example.com", "nan", " None", "–"]),
    "cost": st.sampled_from(["", "3", "4.5", "$5", "1e3", "-1", "dear", "7 EUR", "1_0", "#DIV/0!", "-"]),
    "case_cost": st.sampled_from(["", "", "10", "x"]),
    "note": st.sampled_from(["", "n", "n2", " ", "NULL"]),
    "case:size": st.sampled_from(["", "5", "6"]),
    "client": st.sampled_from(["", "acme", "gone"]),
    "verdict": st.sampled_from(["", "true", "no", "1"]),
}
MOMENTS = st.sampled_from(
    [
        "2026-01-01T00:00:00Z",
        "2026-01-01 00:00:00.5+01:00",
        "2026-03-29T02:30:00",
        "2026-10-25 02:30:00.123",
        "2026-01-03",
        "1767225600",
        "soon",
        "2026-13-01T00:00:00",
        "03/04/2026 10:00",
        "",
        "NaT",
    ]
)
WELL = {
    "case_id": st.sampled_from("abcdefgh"),
    "activity": st.sampled_from(["A", "B", "C"]),
    "cost": st.sampled_from(["", "3", "4.5"]),
    "case_cost": st.just(""),
}
SETTINGS = st.fixed_dictionaries(
    {
        "columns": st.sampled_from(
            [
                {"case_cost": "case_cost", "transition": "lifecycle", "instance": "instance"},
                {"actor_group": "note", "attributes": ["case:size"], "task_success": "verdict"},
                {"instructions": "resource", "title": "note"},
            ]
        ),
        "client": st.just({"column": "client"}),
        "success": st.sampled_from(
            [{}, {"column": "verdict", "equals": True}, {"contains_activity": ["B"]}, {"last_activity_in": ["A"]}]
        ),
        "events": st.sampled_from([{"repeated": "drop"}, {"repeated": "keep"}]),
        "rows": st.sampled_from(
            [{}, {"only": {"activity": ["A", "B"]}}, {"without": {"case_id": ["a"], "note": [""]}}]
        ),
        "rates": st.sampled_from([{}, {"Ann": 30.0, "n": 20.0}]),
        "redact": st.sampled_from([{}, {"hash": ["case_id", "resource"], "drop": ["note"], "mask": ["case:size"]}]),
    },
    optional={"timezone": st.just("Europe/Amsterdam"), "decimal": st.sampled_from([".", ","])},
)


@st.composite
def tables(draw: Any) -> tuple[list[str], list[list[str]]]:
    interval = draw(st.booleans())
    times = ["start_time", "end_time"] if interval else ["timestamp"]
    good = st.fixed_dictionaries({**CELLS, **WELL, **{t: st.just("2026-01-05T08:00:00Z") | MOMENTS for t in times}})
    wild = st.fixed_dictionaries({**CELLS, **dict.fromkeys(times, MOMENTS)})
    header = [*CELLS, *times]
    rows = draw(st.lists(good, min_size=6, max_size=25)) + draw(st.lists(wild, max_size=4))
    return header, [[row[name] for name in header] for row in draw(st.permutations(rows))]


def written(header: list[str], rows: list[list[str]], quoting: int) -> str:
    text = io.StringIO()
    writer = csv.writer(text, quoting=quoting, lineterminator="\n")
    writer.writerows([header, *rows])
    return text.getvalue()


TYPED = {
    "case_id": st.integers(0, 5),
    "activity": st.sampled_from(["A", "B", "", None]),
    "lifecycle:transition": st.sampled_from(["start", "complete", "", None]),
    "concept:instance": st.sampled_from([0, 1, None]),
    "cost": st.sampled_from([0.0, 1.5, 1e13, -2.0, None, 1e-7]),
    "flag": st.sampled_from([True, False, None]),
    "share": st.sampled_from([0.1, 1e16, None, math.nan]),
}
CLOCKS = st.sampled_from([0, 1_767_225_600_000_000, 1_774_748_700_123_456, 1 << 60, -(1 << 59), None])
