"""From events to Task Implementations: the rules of datasets.md, in a table and against a naive oracle."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from opus_pipelines.history.records.assembler import NOT_WORK, tasks_of
from opus_pipelines.history.records.raw import Event, Task

Told = tuple[str, str | None, int | None]
SECOND = 1_000_000


def events(*told: Told, instance: str | None = None) -> list[Event]:
    return [
        Event(place, Task(task_key=key, title=key), None if at is None else at * SECOND, transition, instance)
        for place, (key, transition, at) in enumerate(told)
    ]


def shown(tasks: list[Task]) -> list[tuple[str, int | None, int | None, float | None]]:
    seconds = lambda t: None if t is None else t // SECOND
    return [(t.task_key, seconds(t.started_at), seconds(t.ended_at), t.duration_ms) for t in tasks]


@pytest.mark.parametrize(
    ("told", "has_work", "tasks", "not_work"),
    [
        ([("a", "start", 1), ("a", "complete", 3)], True, [("a", 1, 3, 2000.0)], 0),
        ([("a", "complete", 3)], True, [("a", 3, 3, None)], 0),
        ([("a", "start", 1)], True, [("a", 1, None, None)], 0),
        (
            [("a", "start", 1), ("a", "start", 2), ("a", "complete", 3), ("a", "complete", 5)],
            True,
            [("a", 1, 3, 2000.0), ("a", 2, 5, 3000.0)],
            0,
        ),
        (
            [("a", "start", 1), ("b", "complete", 2), ("a", "complete", 3)],
            True,
            [("a", 1, 3, 2000.0), ("b", 2, 2, None)],
            0,
        ),
        ([("a", "schedule", 1), ("a", "start", 2), ("a", "complete", 3)], True, [("a", 2, 3, 1000.0)], 1),
        ([("a", "schedule", 1), ("b", "suspend", 2)], False, [("a", 1, 1, None), ("b", 2, 2, None)], 0),
        ([("a", None, 1), ("b", "in progress", 2)], True, [("a", 1, 1, None), ("b", 2, 2, None)], 0),
        ([("b", None, 2), ("a", None, 1)], True, [("a", 1, 1, None), ("b", 2, 2, None)], 0),
        ([("b", None, 2), ("a", None, 2)], True, [("b", 2, 2, None), ("a", 2, 2, None)], 0),
        (
            [("c", None, 3), ("x", None, None), ("a", None, 1)],
            True,
            [("a", 1, 1, None), ("c", 3, 3, None), ("x", None, None, None)],
            0,
        ),
        ([("x", None, None), ("a", None, 1)], True, [("x", None, None, None), ("a", 1, 1, None)], 0),
        ([("a", "complete", 3), ("a", "start", 1)], True, [("a", 1, 3, 2000.0)], 0),
        ([], True, [], 0),
    ],
)
def test_rules(told: list[Told], has_work: bool, tasks: list[tuple[str, int, int, float]], not_work: int) -> None:
    found, idle = tasks_of(events(*told), has_work)
    assert shown(found) == tasks
    assert idle == not_work
    assert [t.position for t in found] == list(range(len(found)))


def test_instances_are_told_apart() -> None:
    log = events(("a", "start", 1), ("a", "start", 2), ("a", "complete", 3), ("a", "complete", 5))
    for event, instance in zip(log, ["x", "y", "y", "x"], strict=True):
        event.instance = instance
    assert shown(tasks_of(log, True)[0]) == [("a", 1, 5, 4000.0), ("a", 2, 3, 1000.0)]


def test_what_the_complete_says_wins_and_the_rest_stays() -> None:
    log = events(("a", "start", 1), ("a", "complete", 3))
    log[0].task.actor, log[0].task.cost_usd, log[0].task.attributes = "Ann", 1.0, {"x": "1", "y": "1"}
    log[1].task.cost_usd, log[1].task.attributes = 2.0, {"y": "2"}
    task = tasks_of(log, True)[0][0]
    assert (task.actor, task.cost_usd, task.attributes) == ("Ann", 2.0, {"x": "1", "y": "2"})


def test_waiting_is_from_the_end_before_and_unknown_where_tasks_overlap() -> None:
    log = events(
        ("a", "start", 0),
        ("a", "complete", 4),
        ("b", "start", 6),
        ("c", "start", 7),
        ("b", "complete", 9),
        ("d", None, 9),
    )
    assert [t.wait_ms for t in tasks_of(log, True)[0]] == [None, 2000.0, None, None]


def test_stated_predecessors_become_positions() -> None:
    log = events(("a", None, 0), ("b", None, 5), ("c", None, 3), ("d", None, 9))
    log[3].task.predecessors = [1, 2, 77]
    log[2].task.predecessors = [0]
    tasks = tasks_of(log, True)[0]
    assert [(t.task_key, t.predecessors, t.wait_ms) for t in tasks] == [
        ("a", None, None),
        ("c", [0], 3000.0),
        ("b", None, 2000.0),
        ("d", [1, 2], 4000.0),
    ]


def naive(log: list[Event]) -> list[tuple[str, int, int | None]]:
    """The same by repeated search: for each complete in order of time the earliest open start of its task."""
    ordered = sorted(log, key=lambda e: (e.time, e.position))
    made: list[list] = []
    for event in ordered:
        if event.transition in NOT_WORK:
            continue
        if event.transition == "complete":
            waiting = [m for m in made if m[0] == event.task.task_key and m[3] == "open"]
            if waiting:
                waiting[0][2], waiting[0][3] = event.time, "done"
                continue
        is_open = event.transition == "start"
        made.append([event.task.task_key, event.time, None if is_open else event.time, "open" if is_open else "single"])
    return [(key, start, end) for key, start, end, _ in made]


@settings(max_examples=80, deadline=None)
@given(
    st.lists(
        st.tuples(st.sampled_from("ab"), st.sampled_from(["start", "complete", "schedule", None]), st.integers(0, 5)),
        max_size=12,
    )
)
def test_pairing_agrees_with_a_naive_oracle(told: list[Told]) -> None:
    expected = naive(events(*told))
    found, not_work = tasks_of(events(*told), True)
    assert [(t.task_key, t.started_at, t.ended_at) for t in found] == expected
    assert not_work == sum(1 for _, transition, _ in told if transition == "schedule")
    assert all(t.duration_ms is None or t.duration_ms >= 0 for t in found)
