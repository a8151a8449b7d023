"""Stochastic workflows as flows and back: every one is exported, and the order of its tasks is kept or told."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from opus_pipelines.workflow.blocks.expressions import FlowError
from opus_pipelines.workflow.blocks.formats.python_ir import parse
from opus_pipelines.workflow.blocks.model import Parallel, UserTask
from opus_pipelines.workflow.blocks.traversal import walk
from opus_pipelines.workflow.exchange.workflows import flow_of, workflow_of
from opus_pipelines.workflow.model import InputNode, OutputNode, TaskNode, Workflow


def workflow(edges: str, human: str = "") -> Workflow:
    """A workflow of tasks with one letter; `edges` such as `ab bc`."""
    pairs = [(pair[0], pair[-1]) for pair in edges.split()]
    names = sorted({name for pair in pairs for name in pair})
    tasks = [TaskNode(n, n, f"Do {n}", actor_kind="human" if n in human else None) for n in names]
    return Workflow.of(tasks, [pair for pair in pairs if pair[0] != pair[1]])


def after(edges: set[tuple[str, str]]) -> set[tuple[str, str]]:
    """All pairs of which the first comes before the second."""
    found = set(edges)
    while new := {(a, d) for a, b in found for c, d in found if b == c} - found:
        found |= new
    return found


@pytest.mark.parametrize("edges", ["a", "ab bc", "ab ac bd cd", "ab cd", "ab ac bd cd de df", "ab bc ac"])
def test_a_series_parallel_workflow_comes_back(edges: str) -> None:
    original = workflow(edges, human="b")
    flow, losses = flow_of(original, "Title")
    back = workflow_of(flow)
    assert after(set(back.edges)) == after(set(original.edges))
    assert sorted(task.id for task in back.tasks) == [task.id for task in original.tasks]
    assert {t.id for t in back.tasks if t.actor_kind == "human"} == ({"b"} if "b" in edges else set())
    assert not any("comes before" in loss for loss in losses)


def test_an_order_that_is_added_is_told() -> None:
    flow, losses = flow_of(workflow("ac bc bd"))
    assert sum("comes before" in loss for loss in losses) == 1
    assert any(loss.startswith("a comes before d") for loss in losses)
    assert [type(statement) for statement in flow.body] == [Parallel, Parallel]


def test_inputs_and_outputs_are_told_and_variables_are_names() -> None:
    tasks = [TaskNode("t", "t", "Für immer!"), TaskNode("u", "u", "class")]
    nodes = [InputNode("i", "Claim"), *tasks, OutputNode("o", "Letter", None)]
    flow, losses = flow_of(Workflow.of(nodes, [("i", "t"), ("t", "u"), ("u", "o")]))
    assert [getattr(s, "variable", "") for s in flow.body] == ["für_immer", "result_class"]
    assert any("inputs and outputs" in loss for loss in losses)


def test_decisions_and_loops_have_no_workflow() -> None:
    with pytest.raises(FlowError, match="s2"):
        workflow_of(parse("x = A()\nfor y in x:\n  z = B()"))


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 6), st.integers(0, 6)), max_size=12))
def test_every_workflow_is_exported_and_no_order_is_lost(pairs: list[tuple[int, int]]) -> None:
    edges = " ".join(f"{'abcdefg'[min(p)]}{'abcdefg'[max(p)]}" for p in pairs) or "a"
    original = workflow(edges)
    flow, losses = flow_of(original)
    back = after(set(workflow_of(flow).edges))
    told = {(loss[0], loss.split()[3]) for loss in losses if "comes before" in loss}
    assert back == after(set(original.edges)) | told
    assert sorted(s.id for s in walk(flow.body) if not isinstance(s, Parallel)) == sorted(original.by_id)
    assert not any(isinstance(s, UserTask) for s in walk(flow.body))
