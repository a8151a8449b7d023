"""The plan that joins processes which no case did together: its tasks and its order."""

from collections import Counter
from itertools import combinations, pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from opus_pipelines.lwm.stitching import Demand, IndustryCounts, Stitched, ordered, stitched
from opus_pipelines.wkg.graph import Edge, Task, WorkGraph

# Both processes register (r), inspect (i) and pay (p); one checks the weather (w), the other dries (d) and airs (a).
HISTORY = ["rwip"] * 20 + ["rdaip"] * 20


def counts(cases: list[str]) -> IndustryCounts:
    tasks = tuple(sorted({task for case in cases for task in case}))
    return IndustryCounts(
        tasks,
        np.arange(len(cases)),
        np.array([[task in case for task in tasks] for case in cases]),
        Counter(pair for case in cases for pair in combinations(case, 2)),
        Counter(case[0] for case in cases),
        Counter(case[-1] for case in cases),
    )


def graph(cases: list[str], **outputs: str) -> WorkGraph:
    edges = Counter(pair for case in cases for pair in pairwise(case))
    inputs = {"w": ("note",)} if outputs else {}
    tasks = [
        Task(t, t, inputs=inputs.get(t, ()), outputs=(outputs[t],) if t in outputs else ())
        for t in sorted({task for case in cases for task in case})
    ]
    return WorkGraph.of(tasks, [Edge(a, b, n, 1, 0.9, 0.1, 1.0) for (a, b), n in edges.items()])


def plan(goals: str, cases: list[str], known: WorkGraph | None = None) -> Stitched:
    found = counts(cases)
    demands = [
        Demand(frozenset(goal), dict(zip(found.tasks, found.share(frozenset(goal)).tolist(), strict=True)))
        for goal in goals
    ]
    return stitched(demands, found, known or graph(cases))


def test_the_plan_has_the_goals_with_what_their_cases_did() -> None:
    found = plan("wd", HISTORY)
    assert sorted(found.tasks) == sorted("rwdaip")
    assert found.tasks[0] == "r"
    assert found.tasks[-2:] == ("i", "p")
    assert [sorted(s.tasks) for s in found.subgraphs] == [sorted("rwip"), sorted("rdaip")]


def test_what_belongs_to_neither_goal_stays_out() -> None:
    found = plan("wd", [*HISTORY, *["rxip"] * 20])
    assert "x" not in found.tasks


def test_data_flow_orders_what_no_case_did_together() -> None:
    by_flow = plan("wd", HISTORY, graph(HISTORY, a="note"))
    assert by_flow.tasks.index("a") < by_flow.tasks.index("w")


def test_walks_order_what_no_case_did_together_and_no_data_joins() -> None:
    # w is done early, a late; no case did both: the edges through the shared tasks tell which comes first
    cases = ["rwsip"] * 10 + ["rsiap"] * 10
    found = plan("wa", cases)
    assert found.tasks == tuple("rwsiap")


def test_a_group_of_critical_tasks_gets_its_likeliest_task() -> None:
    cases = [*HISTORY, "rcwip"]
    found = counts(cases)
    demands = [Demand(frozenset("w"), dict(zip(found.tasks, found.share(frozenset("w")).tolist(), strict=True)))]
    assert "c" not in stitched(demands, found, graph(cases)).tasks
    assert "c" in stitched(demands, found, graph(cases), [frozenset("c")]).tasks


def test_drawn_traces_stand_for_the_chances() -> None:
    agreed = plan("wd", HISTORY).consensus(2.0, 0)
    assert agreed == plan("wd", HISTORY).consensus(2.0, 0)
    assert agreed.tasks == plan("wd", HISTORY).tasks
    assert agreed.expected_f1(agreed.tasks, agreed.support.keys())[0] > 0.9


@given(st.permutations("abcdef"))
def test_an_order_without_contradiction_is_found(wanted: list[str]) -> None:
    place = {task: n for n, task in enumerate(wanted)}
    assert ordered(sorted(wanted), lambda a, b: 1.0 if place[a] < place[b] else -1.0) == tuple(wanted)


@pytest.mark.parametrize("tasks", ["", "a"])
def test_nothing_and_one_task_are_in_order(tasks: str) -> None:
    assert ordered(tasks, lambda a, b: 0.0) == tuple(tasks)
