"""Walks on the graph: the chance to visit a task, alone and given goals, and which of two tasks comes first."""

import numpy as np
import pytest

from opus_pipelines.wkg.graph import Edge, Task, WorkGraph
from opus_pipelines.wkg.subgraphs import Walks


def graph(*edges: tuple[str, int]) -> WorkGraph:
    tasks = sorted({task for pair, _ in edges for task in pair})
    return WorkGraph.of([Task(t, t) for t in tasks], [Edge(p[0], p[1], n, 1, 1.0, 0.0, 1.0) for p, n in edges])


FORK = graph(("ab", 3), ("ac", 1), ("bd", 3), ("cd", 1))  # three of four walks take b, one takes c


def walks(known: WorkGraph, begun: dict[str, float], ended: dict[str, float]) -> Walks:
    found = Walks.on(known, sorted(known.tasks), begun, ended)
    assert found is not None
    return found


def test_a_walk_visits_what_its_edges_lead_to() -> None:
    found = walks(FORK, {"a": 4}, {"d": 4})
    assert found.reaches[0].round(6).tolist() == [1.0, 0.75, 0.25, 1.0]
    assert found.precedence()[0, 1].round(6) == 0.75
    assert np.array_equal(found.precedence(), -found.precedence().T)


def test_a_goal_changes_what_a_walk_visits() -> None:
    visited = walks(FORK, {"a": 4}, {"d": 4}).visits(["c"])
    assert visited is not None
    assert visited.round(6).tolist() == [1.0, 0.0, 1.0, 1.0]


def test_goals_on_two_branches_are_visited_by_a_loop_alone() -> None:
    assert walks(FORK, {"a": 4}, {"d": 4}).visits(["b", "c"]) is None
    looped = graph(("ab", 1), ("ac", 1), ("ba", 1), ("cd", 1))
    visited = walks(looped, {"a": 2}, {"d": 1}).visits(["b", "c"])
    assert visited is not None
    assert visited.round(6).tolist() == [1.0, 1.0, 1.0, 1.0]


def test_a_weak_edge_counts_less_than_its_share() -> None:
    weak = WorkGraph.of(
        [Task(t, t) for t in "abc"], [Edge("a", "b", 10, 1, 1.0, 0.0, 0.5), Edge("a", "c", 10, 1, 0.25, 0.75, 0.5)]
    )
    assert walks(weak, {"a": 1}, {}).reaches[0].round(6).tolist() == [1.0, 0.8, 0.2]


@pytest.mark.parametrize(("known", "begun"), [(graph(("ab", 1)), {}), (WorkGraph.of([Task("a", "a")], []), {"a": 1})])
def test_without_edges_or_a_begin_there_are_no_walks(known: WorkGraph, begun: dict[str, float]) -> None:
    assert Walks.on(known, ["a", "b"], begun, {}) is None


def test_a_goal_outside_the_graph_is_never_visited() -> None:
    assert walks(FORK, {"a": 4}, {"d": 4}).visits(["x"]) is None
