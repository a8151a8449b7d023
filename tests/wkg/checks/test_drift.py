"""What changed between two snapshots, with figures to reckon by hand; and what a person is told of it."""

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from opus_pipelines.core.schemas import EDGES, IMPLEMENTATION_VECTORS, TASKS
from opus_pipelines.core.settings import Checks, load
from opus_pipelines.lake.layout import table_of, write_table
from opus_pipelines.wkg.checks import check_recall
from opus_pipelines.wkg.drift import Drift, Move, check_drift, compare

Counts = dict[tuple[str, str], int]
BEFORE: Counts = {("a", "b"): 60, ("a", "c"): 40, ("b", "c"): 60, ("c", "d"): 40}
AFTER: Counts = {("a", "b"): 90, ("a", "c"): 10, ("b", "c"): 90, ("c", "e"): 10}


def snapshot(folder: Path, counts: Counts, industries: dict[str, str] | None = None, **titles: str) -> Path:
    """A snapshot's folder with these edges; a task is of industry and source "x" unless said otherwise."""
    tasks = sorted({task for pair in counts for task in pair} | set(industries or ()))
    of = {task: [(industries or {}).get(task, "x")] for task in tasks}
    rows = [
        {"task_id": t, "title": titles.get(t, t.upper()), "industries": of[t], "sources": of[t], "implementations": 9}
        for t in tasks
    ]
    out = {src: sum(n for (s, _), n in counts.items() if s == src) for src, _ in counts}
    edges = [
        {"src": s, "dst": d, "transitions": n, "gamma": 0.5, "probability": n / out[s]} for (s, d), n in counts.items()
    ]
    write_table(TASKS, table_of(TASKS, rows), folder / "tasks")
    write_table(EDGES, table_of(EDGES, edges), folder / "edges")
    return folder


def drift(tmp_path: Path, before: Counts, after: Counts, **more: Any) -> Drift:
    return compare(snapshot(tmp_path / "w1", before), snapshot(tmp_path / "w2", after, **more))


def test_drift_by_hand(tmp_path: Path) -> None:
    found = drift(tmp_path, BEFORE, AFTER, b="Check")
    assert (found.tasks, found.edges, found.transitions) == ((4, 4), (4, 4), (200, 200))
    assert (found.tasks_added, found.tasks_removed, found.tasks_renamed) == (("e",), ("d",), (("b", "B", "Check"),))
    assert (found.edges_added, found.edges_removed) == ((("c", "e"),), (("c", "d"),))
    assert found.task_share == 2 / 5
    assert found.edge_share == 50 / 400  # 40 transitions on the edge that went, 10 on the one that came
    # Out of a (200 of 400 transitions) the shares move by .3, out of b (150) not at all, out of c (50) by 1.
    assert found.moved == pytest.approx((200 * 0.3 + 150 * 0 + 50 * 1) / 400)
    assert found.movers[0] == Move("a", "b", ("A", "Check"), 0.6, 0.9, pytest.approx(0.3 * 200 / 400))
    assert [(m.src, m.dst, m.before, m.after) for m in found.movers[2:]] == [("c", "d", 1.0, 0.0), ("c", "e", 0.0, 1.0)]


def test_the_same_shares_of_more_history_are_no_drift(tmp_path: Path) -> None:
    found = drift(tmp_path, BEFORE, {pair: 3 * n for pair, n in BEFORE.items()})
    assert (found.movers, found.edges_added, found.edges_removed) == ((), (), ())
    assert (found.task_share, found.edge_share, found.moved) == (0.0, 0.0, 0.0)


def test_a_task_that_nothing_follows_any_more_has_no_shares_to_move(tmp_path: Path) -> None:
    found = drift(tmp_path, {("a", "b"): 1, ("b", "a"): 1}, {("a", "b"): 1})
    assert (found.moved, found.edge_share, found.edges_removed) == (0.0, 1 / 3, (("b", "a"),))


@pytest.mark.parametrize(("before", "after", "share"), [({}, {}, 0.0), ({}, BEFORE, 1.0), (BEFORE, {}, 1.0)])
def test_nothing_against_something(tmp_path: Path, before: Counts, after: Counts, share: float) -> None:
    found = drift(tmp_path, before, after)
    assert (found.task_share, found.edge_share, found.moved) == (share, share, 0.0)


def test_an_industry_that_vanished_is_named_however_small(tmp_path: Path) -> None:
    many = {(f"t{i}", f"t{i + 1}"): 1_000 for i in range(60)}
    before = snapshot(tmp_path / "w1", many | {("y1", "y2"): 1}, {"y1": "y", "y2": "y"})
    checks = check_drift(compare(before, snapshot(tmp_path / "w2", many)), Checks())
    assert {c.name: (c.passed, c.blocking) for c in checks} == {
        "drift of tasks": (True, False),
        "no industry or source vanished": (False, False),
        "drift of edges": (True, False),
        "drift of transition shares": (True, False),
    }
    assert next(c.detail for c in checks if not c.passed) == "gone: industry y, source y"


@pytest.mark.parametrize(
    ("limits", "failed"),
    [
        ({}, {"drift of tasks", "drift of transition shares"}),
        ({"drift_tasks": 0.4, "drift_transitions": 0.275}, set()),
        ({"drift_tasks": 0.39, "drift_edges": 0.12, "drift_transitions": 1}, {"drift of tasks", "drift of edges"}),
        ({"drift": "off"}, set()),
    ],
)
def test_beyond_the_settings_it_warns_or_blocks(tmp_path: Path, limits: dict[str, Any], failed: set[str]) -> None:
    found = drift(tmp_path, BEFORE, AFTER)
    for mode in ("warn", "block"):
        checks = check_drift(found, Checks(**({"drift": mode} | limits)))
        assert {c.name for c in checks if not c.passed} == failed
        assert {c.blocking for c in checks if not c.passed} <= {mode == "block"}


def test_settings_from_the_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    checks = load(environ={"OPUS_CHECKS_DRIFT": "block", "OPUS_CHECKS_DRIFT_TASKS": "0.5"}).checks
    assert (checks.drift, checks.drift_tasks, Checks().drift) == ("block", 0.5, "warn")


def test_the_words_say_how_far_and_what_to_do(tmp_path: Path) -> None:
    found = drift(tmp_path, BEFORE, AFTER)
    details = {c.name: c.detail for c in check_drift(found, Checks(drift="block"))}
    assert details["drift of tasks"].startswith("40.0%, more than drift_tasks = 0.2 (1 came, 1 went of 4);")
    assert details["drift of tasks"].endswith("OPUS_CHECKS_DRIFT=warn")
    shares = details["drift of transition shares"]
    assert shares.startswith("27.5%, more than drift_transitions = 0.1 ")
    assert "A -> B from 0.600 to 0.900" in shares
    assert {c.detail for c in check_drift(None, Checks())} == {"no other snapshot to compare with"}


@pytest.mark.parametrize(("recall", "passed"), [(1.0, True), (0.99, True), (0.989, False)])
def test_recall_below_the_least_blocks(recall: float, passed: bool) -> None:
    check = check_recall(IMPLEMENTATION_VECTORS, recall, Checks().min_recall)
    assert (check.passed, check.blocking, check.dataset) == (passed, True, "wkg/implementation_vectors")
    assert passed or check.detail == "1 wrong: 0.9890, less than min_recall = 0.99"


EDGE_COUNTS = st.dictionaries(
    st.tuples(st.sampled_from("abc"), st.sampled_from("abcd")), st.integers(1, 50), max_size=8
)


@pytest.mark.long
@settings(max_examples=20, deadline=None)
@given(before=EDGE_COUNTS, after=EDGE_COUNTS)
def test_drift_is_a_distance(tmp_path_factory: pytest.TempPathFactory, before: Counts, after: Counts) -> None:
    folder = tmp_path_factory.mktemp("drift")
    one, other = snapshot(folder / "w1", before), snapshot(folder / "w2", after)
    there, back, same = compare(one, other), compare(other, one), compare(one, one)
    assert (there.moved, there.edge_share, there.task_share) == pytest.approx(
        (back.moved, back.edge_share, back.task_share)
    )
    assert all(0 <= value <= 1 + 1e-12 for value in (there.moved, there.edge_share, there.task_share))
    assert (same.tasks_added, same.tasks_removed, same.edges_added, same.edges_removed, same.movers) == (
        (),
        (),
        (),
        (),
        (),
    )
    assert (there.edges_added, there.tasks_added) == (back.edges_removed, back.tasks_removed)
