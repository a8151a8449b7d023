"""A source that grows: cases over several files, events that come twice, corrections. The same cases as from
one file.
"""

import gzip
import json
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from opus_pipelines.history.ingestion.onboarding.report import report
from opus_pipelines.history.ingestion.onboarding.trial import findings_of, reading
from opus_pipelines.history.ingestion.read_source import CaseParts
from opus_pipelines.history.records.duplicate_events import CasePart
from opus_pipelines.history.records.raw import Case, Event, Task
from tests.campaigns import examples
from tests.history_fixtures import Bench

HEADER = "case_id,activity,timestamp,lifecycle:transition,resource,case:amount\n"


def row(case: str, activity: str, day: int, transition: str = "", who: str = "Ann", amount: str = "5") -> str:
    return f"{case},{activity},2020-01-{day:02}T00:00:00Z,{transition},{who},{amount}\n"


def count(state: Any, name: str) -> dict[str, int]:
    return {r["path"]: r[name] for r in state.files if r[name]}


def adds_up(state: Any) -> bool:
    return all(r["records"] == r["records_used"] + r["records_not_work"] + r["records_rejected"] for r in state.files)


def but_path(cases: dict[str, dict[str, Any]]) -> dict[str, dict[str, Any]]:
    return {
        case_id: {k: v for k, v in case.items() if k not in ("path", "content_hash")} for case_id, case in cases.items()
    }


def test_a_case_goes_on_in_the_next_days_file(bench: Bench, keys: Callable[..., Any]) -> None:
    bench.put("s/day_9.csv", HEADER + row("1", "A", 9) + row("2", "A", 9))
    bench.put("s/day_10.csv", HEADER + row("1", "B", 10))
    bench.put("s/day_11.csv", HEADER + row("3", "A", 11) + row("1", "C", 11))
    said: list[str] = []
    bench.read(progress=said.append)
    assert said[-1].startswith("s: 1 cases ")
    cases = bench.cases()
    assert {c: (keys(case), case["path"]) for c, case in cases.items()} == {
        "1": (["A", "B", "C"], "day_9.csv"),
        "2": (["A"], "day_9.csv"),
        "3": (["A"], "day_11.csv"),
    }
    state = bench.read()
    assert adds_up(state)
    assert count(state, "implementations") == {"day_9.csv": 2, "day_11.csv": 1}
    assert count(state, "records_used") == {"day_9.csv": 2, "day_10.csv": 1, "day_11.csv": 2}


def test_events_that_come_twice_are_dropped_and_counted(bench: Bench, keys: Callable[..., Any]) -> None:
    bench.put("s/source.toml", '[events]\nrepeated = "drop"\n')
    bench.put("s/1.csv", HEADER + row("1", "A", 1) + row("1", "A", 1) + row("1", "B", 2))
    bench.put("s/2.csv", HEADER + row("1", "B", 2) + row("1", "C", 3))
    assert keys(bench.cases()["1"]) == ["A", "B", "C"]
    state = bench.read()
    assert adds_up(state)
    assert count(state, "records_duplicate") == {"1.csv": 1, "2.csv": 1}
    assert count(state, "records_corrected") == {}


@pytest.mark.parametrize("stated", ["", 'duplicates = "keep"', '[events]\nrepeated = "keep"'])
def test_equal_events_of_one_file_stay(bench: Bench, keys: Callable[..., Any], stated: str) -> None:
    bench.put("s/source.toml", stated)
    bench.put("s/1.csv", HEADER + row("1", "A", 1) + row("1", "A", 1))
    assert keys(bench.cases()["1"]) == ["A", "A"]
    bench.put("s/2.csv", HEADER + row("1", "A", 1) + row("1", "A", 1) + row("1", "B", 2))
    assert keys(bench.cases()["1"]) == ["A", "A", "B"]  # the other file says the same two once more
    bench.put("s/3.csv", HEADER + row("1", "A", 1))
    assert keys(bench.cases()["1"]) == ["A", "A", "B"]  # an event counts as often as in the file that has it most
    assert count(bench.read(), "records_duplicate") == {"2.csv": 2, "3.csv": 1}


def test_a_later_file_corrects_an_earlier_one(bench: Bench, keys: Callable[..., Any]) -> None:
    bench.put("s/export_2.csv", HEADER + row("1", "A", 1, who="Ann") + row("1", "B", 2, who="Bob", amount="7"))
    bench.put("s/export_10.csv", HEADER + row("1", "A", 1, who="Eve", amount="9"))
    case = bench.cases()["1"]
    assert [(t["task_key"], t["actor"]) for t in case["tasks"]] == [("A", "Eve"), ("B", "Bob")]
    assert case["attributes"] == [("amount", "9")]
    state = bench.read()
    assert adds_up(state)
    assert count(state, "records_corrected") == {"export_2.csv": 1}


def test_events_of_one_file_that_differ_are_two(bench: Bench, keys: Callable[..., Any]) -> None:
    payments = row("1", "Pay", 1, who="Ann") + row("1", "Pay", 1, who="Bob")
    bench.put("s/1.csv", HEADER + payments)
    bench.put("s/2.csv", HEADER + row("1", "Close", 2))
    assert [t["actor"] for t in bench.cases()["1"]["tasks"]] == ["Ann", "Bob", "Ann"]


def test_an_event_without_a_time_is_never_another(bench: Bench, keys: Callable[..., Any]) -> None:
    for name in ("1", "2"):
        bench.put(f"s/{name}.csv", "case_id,activity\n1,A\n1,A\n")
    assert keys(bench.cases()["1"]) == ["A"] * 4


def test_an_event_id_tells_events_apart_and_finds_corrections(bench: Bench, keys: Callable[..., Any]) -> None:
    bench.put("s/source.toml", '[columns]\nevent_id = "id"')
    header = "case_id,activity,timestamp,id\n"
    bench.put(
        "s/1.csv", header + "1,A,2020-01-01T00:00:00Z,a\n1,A,2020-01-01T00:00:00Z,b\n1,B,2020-01-02T00:00:00Z,c\n"
    )
    bench.put("s/2.csv", header + "1,Z,2020-01-03T00:00:00Z,c\n1,A,2020-01-01T00:00:00Z,a\n")
    assert keys(bench.cases()["1"]) == ["A", "A", "Z"]
    state = bench.read()
    assert (count(state, "records_duplicate"), count(state, "records_corrected")) == ({"2.csv": 1}, {"1.csv": 1})
    assert adds_up(state)


def test_a_rejected_record_in_one_file_puts_the_case_aside_in_all(bench: Bench, keys: Callable[..., Any]) -> None:
    bench.put("s/1.csv", HEADER + row("1", "A", 1) + row("2", "A", 1))
    bench.put("s/2.csv", HEADER + "1,B,soon,,,\n" + row("1", "C", 3))
    assert list(bench.cases()) == ["2"]
    state = bench.read()
    assert adds_up(state)
    assert count(state, "cases_quarantined") == {"2.csv": 1}
    assert [
        (r["path"], r["position"], r["reason_code"], r["cause_path"], r["cause_position"]) for r in bench.rejects()
    ] == [
        ("1.csv", 2, "case_quarantined", "2.csv", 2),
        ("2.csv", 2, "bad_time", None, None),
        ("2.csv", 3, "case_quarantined", "2.csv", 2),
    ]


def test_the_later_record_of_a_whole_case_wins(bench: Bench, keys: Callable[..., Any]) -> None:
    def record(*activities: str) -> str:
        return json.dumps({"case_id": "1", "tasks": [{"activity": a} for a in activities]}) + "\n"

    bench.put("s/1.jsonl", record("A") + record("A", "B") + '{"case_id": "2", "tasks": []}\n')
    bench.put("s/2.jsonl", record("A", "B") + record("C"))
    bench.put("s/3.jsonl", record("C"))
    cases = bench.cases()
    assert {c: (keys(case), case["path"]) for c, case in cases.items()} == {
        "1": (["C"], "3.jsonl"),
        "2": ([], "1.jsonl"),
    }
    state = bench.read()
    assert adds_up(state)
    assert (count(state, "records_duplicate"), count(state, "records_corrected")) == (
        {"2.jsonl": 1},
        {"1.jsonl": 2, "2.jsonl": 1},
    )


def xes(*traces: tuple[str, list[tuple[str, int]]]) -> str:
    def event(name: str, day: int) -> str:
        return (
            f'<event><string key="concept:name" value="{name}"/><date key="time:timestamp" '
            f'value="2020-01-{day:02}T00:00:00Z"/></event>'
        )

    def trace(case: str, events: list[tuple[str, int]]) -> str:
        return f'<trace><string key="concept:name" value="{case}"/>{"".join(event(*e) for e in events)}</trace>'

    return f"<log>{''.join(trace(*t) for t in traces)}</log>"


def test_traces_of_one_name_are_one_case_in_one_file_and_in_several(bench: Bench, keys: Callable[..., Any]) -> None:
    bench.put("s/1.xes", xes(("1", [("A", 1)]), ("2", [("A", 1)]), ("1", [("B", 2)])))
    assert {c: keys(case) for c, case in bench.cases().items()} == {"1": ["A", "B"], "2": ["A"]}
    bench.put("s/2.xes", xes(("1", [("B", 2), ("C", 3)])))
    assert {c: keys(case) for c, case in bench.cases().items()} == {"1": ["A", "B", "C"], "2": ["A"]}
    state = bench.read()
    assert adds_up(state)
    assert count(state, "records_duplicate") == {"2.xes": 1}


def test_the_files_of_a_log_share_what_dates_and_transitions_mean(bench: Bench, keys: Callable[..., Any]) -> None:
    bench.put("s/source.toml", 'timezone = "UTC"')
    bench.put("s/1.csv", "case_id,activity,timestamp,transition\n1,A,03/04/2020 10:00,schedule\n")
    bench.put("s/2.csv", "case_id,activity,timestamp,transition\n2,A,25/04/2020 10:00,complete\n")
    cases = bench.cases()
    assert {c: keys(case) for c, case in cases.items()} == {"1": [], "2": ["A"]}
    bench.put("s/1.csv", "case_id,activity,timestamp,transition\n1,A,03/04/2020 10:00,complete\n")
    assert bench.cases()["1"]["started_at"].month == 4


EVENTS = st.lists(
    st.tuples(
        st.sampled_from("1234"),
        st.sampled_from(["A", "B", "C"]),
        st.sampled_from(["", "start", "complete", "schedule"]),
        st.sampled_from(["Ann", "Bob"]),
    ),
    min_size=1,
    max_size=25,
)


@pytest.mark.long
@given(EVENTS, st.data())
@settings(max_examples=examples(20), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_any_split_of_a_log_gives_the_cases_of_one_file(
    make_bench: Any, events: list[tuple[str, ...]], data: Any
) -> None:
    """Rows go to any file, some to several, in any order: their times tell the order of the work."""
    start = datetime(2020, 1, 1, tzinfo=UTC)
    rows = [
        f"{case},{activity},{(start + timedelta(hours=n)).isoformat()},{transition},{who},5\n"
        for n, (case, activity, transition, who) in enumerate(events)
    ]
    whole, split = make_bench(), make_bench()
    whole.put("s/log.csv", HEADER + "".join(rows))
    files: dict[int, list[str]] = {}
    for text in data.draw(st.permutations(rows)):
        for number in data.draw(st.sets(st.integers(1, 4), min_size=1, max_size=2)):
            files.setdefault(number, []).append(text)
    for number, lines in files.items():
        content = (HEADER + "".join(lines)).encode()
        split.put(f"s/part_{number}.csv", content)
    one, many = whole.cases(), split.cases()
    assert but_path(many) == but_path(one)
    state = split.read()
    assert adds_up(state)
    assert sum(r["records_duplicate"] for r in state.files) == sum(map(len, files.values())) - len(rows)
    assert sum(r["records_used"] for r in state.files) == sum(r["records_used"] for r in whole.read().files)


def test_parts_of_many_files_are_put_together(bench: Bench, keys: Callable[..., Any]) -> None:
    for day in range(1, 5):
        bench.put(f"s/{day}.csv", HEADER + "".join(row(str(n), "ABCD"[day - 1], day) for n in range(20)))
    assert [keys(case) for case in bench.cases().values()] == [["A", "B", "C", "D"]] * 20
    assert not list((bench.lake.root / ".staging").glob("*"))


@pytest.mark.parametrize("in_memory", [5, 100_000])
def test_parts_that_are_many_wait_on_disk(tmp_path: Path, in_memory: int) -> None:
    parts = CaseParts(tmp_path / "parts", in_memory)
    for day in range(4):
        event = Event(0, Task(task_key="ABCD"[day], title="x"), None)
        parts.add([CasePart(f"{day}.csv", Case(str(n), {}, [event])) for n in range(20)])
    assert (tmp_path / "parts").exists() == (in_memory == 5)
    cases = {group[0].case.case_id: [part.case.events[0].task.task_key for part in group] for group in parts.cases()}
    assert cases == {str(n): ["A", "B", "C", "D"] for n in range(20)}
    parts.close()
    assert list(parts.cases()) == []


def test_a_packed_file_and_a_plain_one_share_cases(bench: Bench, keys: Callable[..., Any]) -> None:
    bench.put("s/1.csv.gz", HEADER + row("1", "A", 1))
    assert gzip.decompress((bench.history / "s" / "1.csv.gz").read_bytes()).startswith(b"case_id")
    bench.put("s/2.csv", HEADER + row("1", "B", 2))
    assert keys(bench.cases()["1"]) == ["A", "B"]


def test_check_shows_the_share_and_the_money_of_equal_events(bench: Bench) -> None:
    bench.put("s/1.csv", HEADER + row("1", "A", 1, amount="7") * 2 + row("1", "B", 2))
    with reading(bench.history / "s") as trial:
        found = findings_of(trial)
        assert (found.tasks, found.repeated) == (3, 1)
        doubts = [line for line in report(trial, found) if "doubt" in line]
    assert any("33.3 %" in line and "repeated" in line for line in doubts)


@pytest.mark.parametrize(("day", "is_doubted"), [("1970-01-12", True), ("9999-12-31", True), ("2024-03-01", False)])
def test_check_doubts_a_period_that_no_program_recorded(bench: Bench, day: str, is_doubted: bool) -> None:
    bench.put("s/1.csv", f"case_id,activity,timestamp\n1,A,2024-01-01T00:00:00Z\n1,B,{day}T00:00:00Z\n")
    with reading(bench.history / "s") as trial:
        lines = report(trial, findings_of(trial))
    assert any("doubt" in line and day in line for line in lines) is is_doubted
