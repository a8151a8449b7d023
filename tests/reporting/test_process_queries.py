"""The shipped queries on the process of history: every figure is counted again from the cases, in plain Python."""

from collections import Counter, defaultdict
from datetime import datetime, timedelta
from itertools import pairwise
from pathlib import Path
from statistics import mean, median
from typing import Any

import pytest

from opus_pipelines.lake.layout import Lake
from opus_pipelines.reporting.views import connect, run
from tests.reporting.process_lake import HOUR, ORDERS, TITLES, Row, cases_of, write_lake


@pytest.fixture(scope="module")
def cases() -> list[Row]:
    return cases_of(7)


@pytest.fixture(scope="module")
def lake(cases: list[Row], tmp_path_factory: pytest.TempPathFactory) -> Lake:
    return write_lake(tmp_path_factory.mktemp("process") / "lake", cases)


def asked(lake: Lake, name: str, **variables: str) -> list[Row]:
    found = run(connect(lake), name, variables)
    return [dict(zip(found.columns, row, strict=True)) for row in found.fetchall()]


def executed(cases: list[Row]) -> dict[tuple[str, str | None], list[Row]]:
    """The cases that were carried out, by source and client."""
    of: dict[tuple[str, str | None], list[Row]] = defaultdict(list)
    for case in cases:
        if case["kind"] == "executed":
            of[case["source"], case["client"]].append(case)
    return of


def total(values: list[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return sum(known) if known else None


def near(value: float | None) -> Any:
    return None if value is None else pytest.approx(value)


def test_cases_variants_and_costs(lake: Lake, cases: list[Row]) -> None:
    expected = executed(cases)
    rows = asked(lake, "process_summary")
    assert len(rows) == len(expected) == 6
    for row in rows:
        own = expected[row["source"], row["client"]]
        outcomes = [case["success"] for case in own if case["success"] is not None]
        costs = [cost for case in own if (cost := total(case["task_cost_usd"])) is not None]
        assert (row["cases"], row["steps"]) == (len(own), sum(len(case["tasks"]) for case in own))
        assert row["variants"] == len({tuple(case["tasks"]) for case in own})
        assert row["running"] == sum(case["p_ended"] < 0.5 for case in own)
        assert row["success_share"] == pytest.approx(mean(outcomes))
        assert row["lead_hours_p50"] == pytest.approx(median(case["lead_time_ms"] / HOUR for case in own))
        assert (row["cost_usd"], row["cost_usd_a_case"]) == (near(sum(costs)), near(mean(costs)))


def test_a_client_and_a_source_can_be_chosen(lake: Lake) -> None:
    chosen = asked(lake, "process_summary", client="Acme", source="shop")
    assert [(row["source"], row["client"]) for row in chosen] == [("shop", "Acme")]
    assert asked(lake, "process_summary", client="Nobody") == []


def test_the_usual_path_and_its_share(lake: Lake, cases: list[Row]) -> None:
    expected = executed(cases)
    first = [row for row in asked(lake, "process_paths") if row["variant"] == 1]
    assert len(first) == 6
    for row in first:
        own = expected[row["source"], row["client"]]
        counts = Counter(" → ".join(TITLES[task] for task in case["tasks"]) for case in own)
        assert row["cases"] == max(counts.values()) == counts[row["path"]]
        assert row["share"] == row["share_so_far"] == pytest.approx(row["cases"] / len(own))


def test_where_cases_begin_and_end(lake: Lake, cases: list[Row]) -> None:
    counts: Counter[tuple[str, str | None, str, str]] = Counter()
    for key, own in executed(cases).items():
        for case in own:
            counts[*key, "begins with", TITLES[case["tasks"][0]]] += 1
            counts[*key, "goes on after" if case["p_ended"] < 0.5 else "ends with", TITLES[case["tasks"][-1]]] += 1
    rows = asked(lake, "process_ends")
    assert {(row["source"], row["client"], row["place"], row["activity"]): row["cases"] for row in rows} == counts


def test_lead_times_by_month_of_the_end(lake: Lake, cases: list[Row]) -> None:
    hours: dict[tuple[str, str | None, str], list[float]] = defaultdict(list)
    for key, own in executed(cases).items():
        for case in own:
            if case["p_ended"] >= 0.5:
                end = case["started_at"] + timedelta(milliseconds=case["lead_time_ms"])
                hours[*key, end.strftime("%Y-%m")].append(case["lead_time_ms"] / HOUR)
    found = {(row["source"], row["client"], row["month"]): row for row in asked(lake, "process_lead_times")}
    assert {key: (row["cases"], row["lead_hours_p50"], row["lead_hours_mean"]) for key, row in found.items()} == {
        key: (len(own), pytest.approx(median(own)), pytest.approx(mean(own))) for key, own in hours.items()
    }


def test_waits_before_activities_at_hand_overs_and_of_people(lake: Lake, cases: list[Row]) -> None:
    hours: dict[tuple[str, str | None, str, str], float] = defaultdict(float)
    for key, own in executed(cases).items():
        for case in own:
            steps = zip(case["tasks"], case["task_actors"], case["task_wait_ms"], strict=True)
            for (before, first, _), (task, actor, wait) in pairwise(steps):
                if wait is None:
                    continue
                hours[*key, "activity", TITLES[task]] += wait / HOUR
                if actor is not None:
                    hours[*key, "person", actor] += wait / HOUR
                if None not in (first, actor) and first != actor:
                    hours[*key, "hand-over", f"{TITLES[before]} → {TITLES[task]}"] += wait / HOUR
    rows = asked(lake, "process_waits")
    assert {(row["source"], row["client"], row["level"], row["waits_at"]): row["wait_hours"] for row in rows} == {
        key: pytest.approx(value) for key, value in hours.items()
    }
    shares = [
        row["share"] for row in rows if (row["source"], row["client"], row["level"]) == ("bank", "Acme", "activity")
    ]
    assert sum(shares) == pytest.approx(1)


def test_who_does_what_in_which_week(lake: Lake, cases: list[Row]) -> None:
    counts: Counter[tuple[Any, ...]] = Counter()
    for key, own in executed(cases).items():
        for case in own:
            for task, actor, start in zip(case["tasks"], case["task_actors"], case["task_started_at"], strict=True):
                counts[*key, start.date() - timedelta(days=start.weekday()), actor, TITLES[task]] += 1
    keys = ("source", "client", "week_from", "actor", "activity")
    assert {tuple(row[key] for key in keys): row["steps"] for row in asked(lake, "process_workload")} == counts
    assert {row["actor"] for row in asked(lake, "process_workload", actor="Ann")} == {"Ann"}


def test_rework_and_what_it_costs(lake: Lake, cases: list[Row]) -> None:
    again: dict[tuple[str, str | None, str], list[tuple[str, bool, float | None]]] = defaultdict(list)
    for key, own in executed(cases).items():
        for case in own:
            for place, task in enumerate(case["tasks"]):
                if task in case["tasks"][:place]:
                    directly = case["tasks"][place - 1] == task
                    again[*key, TITLES[task]].append(
                        (case["implementation_id"], directly, case["task_cost_usd"][place])
                    )
    rows = {(row["source"], row["client"], row["activity"]): row for row in asked(lake, "process_rework")}
    assert set(rows) == set(again)
    for key, repeated in again.items():
        assert rows[key]["repetitions"] == len(repeated)
        assert rows[key]["cases"] == len({case for case, _, _ in repeated})
        assert rows[key]["directly_again"] == sum(directly for _, directly, _ in repeated)
        assert rows[key]["cost_usd"] == near(total([cost for _, _, cost in repeated]))


def test_the_activity_that_drives_the_cost(lake: Lake, cases: list[Row]) -> None:
    costs: dict[tuple[str, str | None, str], list[float | None]] = defaultdict(list)
    for key, own in executed(cases).items():
        for case in own:
            for task, cost in zip(case["tasks"], case["task_cost_usd"], strict=True):
                costs[*key, TITLES[task]].append(cost)
    rows = asked(lake, "process_costs", source="bank", client="Acme")
    assert [row["cost_usd"] for row in rows] == sorted((row["cost_usd"] for row in rows), reverse=True)
    assert sum(row["share"] for row in rows) == pytest.approx(1)
    for row in rows:
        own = costs["bank", "Acme", row["activity"]]
        assert (row["steps"], row["cost_usd"]) == (len(own), near(total(own)))
        assert row["known_share"] == pytest.approx(sum(cost is not None for cost in own) / len(own))


def test_segments_differ_by_a_welch_interval(lake: Lake, cases: list[Row]) -> None:
    rows = asked(lake, "process_segments", source="bank")
    assert {row["attribute"] for row in rows} == {"channel"}  # the other one has one value
    own = [case for key, of in executed(cases).items() if key[0] == "bank" for case in of]
    web, phone = (
        [float(len(c["tasks"])) for c in own if dict(c["attributes"])["channel"] == v] for v in ("web", "phone")
    )
    (row,) = [row for row in rows if (row["value"], row["measure"]) == ("web", "steps")]
    variance = sum(sum((x - mean(s)) ** 2 for x in s) / (len(s) - 1) / len(s) for s in (web, phone))
    assert (row["cases"], row["mean"], row["mean_others"]) == (len(web), near(mean(web)), near(mean(phone)))
    assert row["difference_high"] - row["difference"] == pytest.approx(1.96 * variance**0.5)
    pays = [("t4" in c["tasks"]) for c in own if dict(c["attributes"])["channel"] == "web"]
    (row,) = [row for row in rows if (row["value"], row["measure"]) == ("web", "does Pay")]
    assert row["mean"] == pytest.approx(mean(pays))  # a case that does it not counts as 0


def test_a_month_against_the_month_before(lake: Lake, cases: list[Row]) -> None:
    (row,) = [
        row
        for row in asked(lake, "process_months", month="2025-03", source="bank", client="Acme")
        if row["what"] == "all cases"
    ]
    own = [case for case in executed(cases)["bank", "Acme"] if case["p_ended"] >= 0.5]
    ends = Counter(f"{case['started_at'] + timedelta(milliseconds=case['lead_time_ms']):%Y-%m}" for case in own)
    assert (row["month_before"], row["month"]) == ("2025-02", "2025-03")
    assert (row["times_before"], row["times"]) == (ends["2025-02"], ends["2025-03"])
    last = asked(lake, "process_months", source="bank", client="Acme")[0]["month"]
    first_day = datetime.strptime(max(ends), "%Y-%m")  # of the last month, which may not be whole
    assert last == f"{first_day - timedelta(days=1):%Y-%m}"


def test_finished_cases_that_broke_a_rule(lake: Lake, cases: list[Row]) -> None:
    broken: Counter[str] = Counter()
    for (_, client), own in executed(cases).items():
        for case in own:
            if client != "Acme" or case["p_ended"] < 0.5:
                continue
            tasks = case["tasks"]
            broken["must_contain"] += "t2" not in tasks
            broken["before"] += any(t == "t3" and "t2" not in tasks[:place] for place, t in enumerate(tasks))
            broken["max_cost_usd"] += (total(case["task_cost_usd"]) or 0) > 6
    found = Counter(row["kind"] for row in asked(lake, "process_broken_rules"))
    assert found == +broken
    assert found["before"] > 0
    assert found["max_cost_usd"] > 0


def test_conformance_to_a_ranked_workflow(lake: Lake, cases: list[Row]) -> None:
    steps = {"t1", "t2", "t3", "t4"}
    deviations: dict[tuple[str, str], set[str]] = defaultdict(set)
    compared = [
        case
        for (_, client), own in executed(cases).items()
        for case in own
        if client == "Acme" and case["p_ended"] >= 0.5 and len(steps & set(case["tasks"])) >= 2
    ]
    for case in compared:
        tasks, name = case["tasks"], case["implementation_id"]
        found = [("left out", TITLES[t]) for t in steps - set(tasks)]
        found += [("added", TITLES[t]) for t in set(tasks) - steps]
        found += [("repeated", TITLES[t]) for t in steps if tasks.count(t) > 1]
        found += [
            ("order broken", f"{TITLES[a]} before {TITLES[b]}")
            for a, b in ORDERS
            if a in tasks and b in tasks and tasks.index(a) > len(tasks) - 1 - tasks[::-1].index(b)
        ]
        for deviation in found or [("none: conforms", "")]:
            deviations[deviation].add(name)
    rows = asked(lake, "process_conformance")
    assert {(row["deviation"], row["activity"]): row["cases"] for row in rows} == {
        key: len(names) for key, names in deviations.items()
    }
    assert rows[0]["deviation"] == "none: conforms"
    assert rows[0]["share"] == pytest.approx(rows[0]["cases"] / len(compared))


def test_the_views_file_alone_has_the_process(lake: Lake, tmp_path: Path) -> None:
    import duckdb

    with duckdb.connect() as connection:
        connection.execute((lake.root / "views.sql").read_text("utf-8"))
        (steps,) = connection.execute("SELECT count(*) FROM process_steps").fetchone() or (0,)
        (counted,) = connection.execute("SELECT sum(steps) FROM process_cases").fetchone() or (0,)
    assert steps == counted > 0
