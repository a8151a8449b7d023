"""Times of a plan's steps: the most specific level that history knows, the calendar, and the dependence
between waits.
"""

from datetime import UTC, datetime, timedelta
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from opus_pipelines.core.schemas import CASES, TASK_IMPLEMENTATIONS, WAITS
from opus_pipelines.generation.planning.prices import LeadTimes
from opus_pipelines.lake.layout import table_of
from opus_pipelines.lwm.retrieval.task_names import TaskNames
from opus_pipelines.wkg.estimates.times import StepTimes, correlations
from opus_pipelines.wkg.graph import WorkGraph
from opus_pipelines.workflow.constraints import StepDeadline
from opus_pipelines.workflow.evaluation.calendar import Calendar
from opus_pipelines.workflow.evaluation.calendar_settings import CalendarSettings
from opus_pipelines.workflow.model import REVIEW, UNKNOWN, Actor, InputNode, OutputNode, TaskNode, Workflow

HOUR = 3.6e6
MONDAY = datetime(2026, 6, 1, 9, tzinfo=UTC)


def case(number: int, steps: list[tuple[str, str | None, datetime, float, float | None]]) -> dict[str, Any]:
    """Steps: task, actor kind, start, waiting and working hours (None: unknown)."""
    last = steps[-1][2] + timedelta(hours=steps[-1][4] or 0)
    return {
        "implementation_id": f"i{number:04}",
        "industry": "claims",
        "weight": 1,
        "tasks": [s[0] for s in steps],
        "task_keys": [s[0] for s in steps],
        "actor_kinds": [s[1] for s in steps],
        "task_started_at": [s[2] for s in steps],
        "task_wait_ms": [None if not i else s[3] * HOUR for i, s in enumerate(steps)],
        "task_duration_ms": [None if s[4] is None else s[4] * HOUR for s in steps],
        "lead_time_ms": (last - steps[0][2]).total_seconds() * 1000,
    }


def table(*cases: dict[str, Any]) -> pa.Table:
    return table_of(CASES, cases)


def pairs(
    n: int, wait: float, src: str = "a", dst: str = "b", kind: str | None = "human", work: float | None = 1.0
) -> list[dict[str, Any]]:
    return [
        case(i, [(src, "human", MONDAY, 0, 1.0), (dst, kind, MONDAY + timedelta(hours=1 + wait), wait, work)])
        for i in range(n)
    ]


def workflow(*steps: tuple[str, str | None]) -> Workflow:
    nodes = [TaskNode(task, task, task.upper(), actor_kind=kind, duration_ms=None) for task, kind in steps]  # type: ignore[arg-type]
    ends = ["in", *(n.id for n in nodes), "out"]
    return Workflow.of([InputNode("in", "request"), *nodes, OutputNode("out", "answer", 1.0)], list(pairwise(ends)))


def test_the_edge_decides_then_the_task_then_whoever_does_it() -> None:
    waiting = StepTimes.of_cases(table(*pairs(9, 5), *pairs(9, 50, src="c"), *pairs(9, 7, dst="d", kind="code")))
    at = lambda src, dst, kind: (
        (found.level, found.times.p50 / HOUR) if (found := waiting.wait(src, dst, Actor(kind))) else None
    )
    assert at("a", "b", "human") == ("edge_way", 5.0)
    assert at("c", "b", "human") == ("edge_way", 50.0)
    assert at("x", "b", "human") == (
        "way",
        27.5,
    )  # never seen behind x: the task's own waiting, half 5 and half 50 hours
    assert at("a", "b", "code") == ("edge", 5.0)  # nobody but people did it
    assert at("x", "new", "code") == ("resource", 7.0)
    assert at("x", "new", "model") is None


def test_a_level_seen_too_seldom_gives_way_to_a_less_specific_one() -> None:
    waiting = StepTimes.of_cases(table(*pairs(4, 5), *pairs(20, 50, src="c")))
    found = waiting.wait("a", "b", Actor("human"))
    assert found is not None
    assert (found.level, found.times.n) == ("way", 24)


def test_a_log_of_completions_has_the_work_in_the_time_between_them() -> None:
    """Five days between completions, and a working time of ten minutes that only a person stated: five days is the
    lead time.
    """
    waiting = StepTimes.of_cases(table(*pairs(20, 120, work=None)))
    found = LeadTimes(waiting).of(workflow(("a", "human"), ("b", "human")))
    assert found.p50_ms == pytest.approx(121 * HOUR)  # the first step's hour is known
    assert found.basis == "20 whole cases that did these steps"
    assert found.steps["b"].wait_ms_p50 == 120 * HOUR


def test_a_working_time_that_nobody_knows_is_not_assumed_to_be_0() -> None:
    unknown = lambda name: TaskNode(name, name, name.upper(), actor_kind="human", duration_basis=UNKNOWN)
    steps = Workflow.of(
        [InputNode("in", "request"), unknown("a"), unknown("b"), OutputNode("out", "answer", 1.0)],
        [("in", "a"), ("a", "b"), ("b", "out")],
    )
    untimed = [(c | {"task_duration_ms": [None, None]}) for c in pairs(19, 120)]
    assert LeadTimes(StepTimes.of_cases(table(*untimed))).of(steps).basis == "time between completions"
    apart = [(c | {"task_duration_ms": [None, HOUR]}) for c in pairs(19, 120)]
    assert LeadTimes(StepTimes.of_cases(table(*apart))).of(steps).basis == "waiting and work"


def test_the_lead_time_of_a_workflow_is_kept_for_the_same_times_alone() -> None:
    slow, fast = (StepTimes.of_cases(table(*pairs(20, hours))) for hours in (120, 5))
    steps, same = (workflow(("a", "human"), ("b", "human")) for _ in range(2))
    hours = [(LeadTimes(times).of(one).p50_ms or 0) / HOUR for times in (slow, fast, slow) for one in (steps, same)]
    assert hours == pytest.approx([122, 122, 7, 7, 122, 122])
    assert LeadTimes(slow).of(steps) is LeadTimes(slow).of(same)
    assert LeadTimes(slow, seed=1).of(steps) is not LeadTimes(slow).of(steps)
    unlike = LeadTimes(slow, nearest={"b": "a"}).of(steps)  # what the new step b waits for is that of a
    assert (LeadTimes(slow).of(steps).steps["b"].wait_basis, unlike.steps["b"].wait_basis) == ("edge_way", "resource")


def test_work_of_an_unknown_industry_does_not_wait_like_the_people_of_others() -> None:
    known = StepTimes.of_cases(table(*pairs(20, 5)))
    steps = workflow(("y", "human"), ("z", "human"))
    assert LeadTimes(known).of(steps).steps["z"].wait_basis == "resource"
    unknown = LeadTimes(known.of_known_tasks).of(steps)
    assert (unknown.p50_ms, unknown.steps["z"].wait_basis) == (None, None)
    assert LeadTimes(known.of_known_tasks).of(workflow(("a", "human"), ("b", "human"))).p50_ms is not None


def test_a_step_that_history_never_timed_makes_the_lead_time_unknown() -> None:
    waiting = StepTimes.of_cases(table(*pairs(20, 5)))
    found = LeadTimes(waiting).of(workflow(("a", "human"), ("z", "model")))
    assert (found.p50_ms, found.basis) == (None, "unknown: no time of 'Z'")


def test_an_empty_history_knows_no_lead_time() -> None:
    waiting = StepTimes.of(
        WAITS.schema.empty_table(), TASK_IMPLEMENTATIONS.schema.empty_table(), CASES.schema.empty_table()
    )
    assert LeadTimes(waiting).of(workflow(("a", "human"), ("b", "human"))).p50_ms is None


def test_behind_a_review_the_waiting_is_that_behind_the_reviewed_task() -> None:
    waiting = StepTimes.of_cases(table(*pairs(20, 5)))
    review = TaskNode(f"a_{REVIEW}", REVIEW, "Review: A", actor_kind="human", duration_ms=2 * HOUR, kind=REVIEW)
    nodes = [TaskNode("a", "a", "A", actor_kind="human"), review, TaskNode("b", "b", "B", actor_kind="human")]
    made = Workflow.of(
        [InputNode("in", "request"), *nodes, OutputNode("out", "answer", 1.0)],
        [("in", "a"), ("a", review.id), (review.id, "b"), ("b", "out")],
    )
    found = LeadTimes(waiting).of(made)
    assert found.steps[review.id].wait_basis == "resource"
    assert found.steps["b"].wait_basis == "edge_way"
    assert found.p50_ms == pytest.approx((1 + 5 + 2 + 5 + 1) * HOUR)
    assert found.basis == "assumed, waiting and work"


def test_on_a_calendar_the_nights_of_history_are_no_waiting_and_pass_again() -> None:
    """In history B always begins an hour after the office opens, 18 hours after A: an hour of working time, over a
    night.
    """
    office = CalendarSettings(timezone="UTC")
    monday_five = MONDAY.replace(hour=16)
    cases = [
        case(i, [("a", "human", monday_five, 0, 1.0), ("b", "human", monday_five + timedelta(hours=18), 17, 1.0)])
        for i in range(20)
    ]
    waiting = StepTimes.of_cases(table(*cases), Calendar.of(office))
    wait = waiting.wait("a", "b", Actor("human"))
    assert wait is not None
    assert wait.times.p50 == pytest.approx(1 * HOUR)
    times = LeadTimes(waiting, calendar=Calendar.of(office))
    found = times.of(workflow(("a", "human"), ("b", "human")))
    assert found.p50_ms == pytest.approx(3 * HOUR)  # begun in the morning: the same day
    assert found.p90_ms is not None
    assert found.p90_ms > 18 * HOUR  # begun late: over a night, or a weekend


def test_time_of_programs_passes_around_the_clock() -> None:
    office = CalendarSettings(timezone="UTC")
    waiting = StepTimes.of_cases(table(*pairs(20, 20, kind="code")), Calendar.of(office))
    found = LeadTimes(waiting, calendar=Calendar.of(office)).of(workflow(("a", "code"), ("b", "code")))
    assert found.steps["b"].wait_ms_p50 == 20 * HOUR


def test_the_waiting_between_two_steps_holds_the_events_between_them() -> None:
    """A permit is checked an hour after it came, "Permit arrived" is logged two days later, it is filed an hour after
    that: 49 hours.
    """
    at = lambda hours: MONDAY + timedelta(hours=hours)
    cases = [
        case(
            i,
            [("check", "human", at(0), 0, 1.0), ("arrived", None, at(49), 48, None), ("file", "human", at(50), 1, 1.0)],
        )
        for i in range(20)
    ]
    waiting = StepTimes.of_cases(table(*cases), passive={"arrived"})
    wait = waiting.wait("check", "file", Actor("human"))
    assert wait is not None
    assert (wait.level, wait.times.p50, wait.times.n) == ("edge_way", 49 * HOUR, 20)
    assert LeadTimes(waiting).of(workflow(("check", "human"), ("file", "human"))).p50_ms == pytest.approx(51 * HOUR)
    counted = StepTimes.of_cases(table(*cases)).wait("check", "file", Actor("human"))
    assert counted is not None
    assert counted.times.p50 == 1 * HOUR  # with the event as a step of its own


def test_correlation_is_found_where_cases_are_slow_or_fast_as_a_whole() -> None:
    random = np.random.default_rng(3)

    def drawn(share: float) -> float:
        cases = []
        for i in range(400):
            common = random.standard_normal()
            waits = np.exp(np.sqrt(share) * common + np.sqrt(1 - share) * random.standard_normal(4))
            at, steps = MONDAY, [("a", "human", MONDAY, 0.0, 0.0)]
            for name, wait in zip("bcde", waits, strict=True):
                at += timedelta(hours=float(wait))
                steps.append((name, "human", at, float(wait), 0.0))
            cases.append(case(i, steps))  # type: ignore[arg-type]
        return correlations(table(*cases))["claims"]

    assert drawn(0.6) == pytest.approx(0.6, abs=0.08)
    assert drawn(0.0) == pytest.approx(0.0, abs=0.05)


def test_the_lead_time_is_that_of_whole_cases_that_did_the_steps() -> None:
    """Tickets are closed 100 hours after they came, however long the work on them was waited for, and half of them are
    solved twice: the total never varies.
    """
    random = np.random.default_rng(5)
    cases = []
    for i in range(60):
        first = float(random.uniform(1, 90))
        again = [("solve", None, MONDAY + timedelta(hours=95), 95 - first, None)] if i % 2 else []
        steps: list[Any] = [
            ("open", None, MONDAY, 0, None),
            ("solve", None, MONDAY + timedelta(hours=first), first, None),
            *again,
            ("close", None, MONDAY + timedelta(hours=100), 5 if again else 100 - first, None),
        ]
        cases.append(case(i, steps))
    failed = [c | {"success": False, "implementation_id": f"x{c['implementation_id']}"} for c in cases[:30]]
    waiting = StepTimes.of_cases(table(*cases, *failed))
    times, steps = LeadTimes(waiting), workflow(("open", None), ("solve", None), ("close", None))
    taken = times.of(steps)
    assert (taken.p50_ms, taken.p90_ms, taken.basis) == (
        100 * HOUR,
        100 * HOUR,
        "60 whole cases that did these steps",
    )
    due = StepDeadline(step="SOLVE", within=20, unit="hours"), StepDeadline(step="CLOSE", within=5, after="SOLVE")
    solved = sum(c["task_wait_ms"][1] <= 20 * HOUR for c in cases)
    checks = times.deadline_checks(steps, due, TaskNames(WorkGraph.of([], []), []))
    assert f"counted: {solved} of 60" in checks[0].text
    assert checks[1].p_kept == 0.0  # from the first time that it was solved
    assert times.of(workflow(("open", None), ("close", None))).basis == "60 whole cases that did these steps"
    assert times.compared_ms(steps, taken) == taken.single_ms != taken.p50_ms  # the order of the steps counts there
    new = times.of(workflow(("open", None), ("solve", "model"), ("close", None)))  # nobody did it so
    assert new.basis == "time between completions"
    assert new.p50_ms is not None


def test_few_cases_of_the_same_steps_are_no_lead_time() -> None:
    assert LeadTimes(StepTimes.of_cases(table(*pairs(19, 5)))).of(workflow(("a", "human"), ("b", "human"))).basis == (
        "waiting and work"
    )


def test_correlation_of_cases_that_do_not_tell_is_zero() -> None:
    assert correlations(CASES.schema.empty_table()) == {}
    assert correlations(table(*pairs(30, 5))) == {"claims": 0.0}
