"""Well-formed workflows and every defect of one that is not."""

import itertools
import math
import pickle
from typing import Any

import pytest

from opus_pipelines.core.errors import OpusError, WorkflowError
from opus_pipelines.workflow.model import InputNode, OutputNode, TaskNode, Workflow, validate


def task(id: str, **figures: Any) -> TaskNode:
    return TaskNode(id, f"t-{id}", id.title(), **figures)


IN, OUT = InputNode("in", "Claim"), OutputNode("out", "Decision", 2.0)


def test_a_pickle_has_no_hash_because_that_of_a_text_differs_in_another_process() -> None:
    workflow = Workflow.of([IN, task("a"), OUT], [("in", "a"), ("a", "out")])
    assert {workflow: 1}[Workflow.of(workflow.nodes, workflow.edges)] == 1
    read = pickle.loads(pickle.dumps(workflow))
    assert vars(read) == {"nodes": workflow.nodes, "edges": workflow.edges}
    assert read == workflow


def test_order_is_by_parents_then_kind_then_id() -> None:
    nodes = [OUT, task("b"), InputNode("z", "Late"), task("a"), IN, task("c")]
    edges = [("in", "b"), ("in", "a"), ("z", "c"), ("a", "out"), ("b", "out"), ("c", "out"), ("a", "out")]
    workflow = Workflow.of(nodes, edges)
    assert workflow.topological() == ["in", "z", "a", "b", "c", "out"]
    assert Workflow.of(reversed(nodes), reversed(edges)).topological() == workflow.topological()
    assert workflow.predecessors("out") == ["a", "b", "c"]
    assert workflow.successors("in") == ["a", "b"]
    assert workflow.predecessors("in") == []
    assert len(workflow.edges) == 6


LINE = [("in", "a"), ("a", "out")]
NOT_AN_AMOUNT = "not finite and at least 0"


@pytest.mark.parametrize(
    ("nodes", "edges", "defect"),
    [
        ([IN, task("a", p=1.5), OUT], LINE, "task 'a': p is 1.5, not in [0, 1]"),
        ([IN, task("a", q=math.nan), OUT], LINE, "task 'a': q is nan, not in [0, 1]"),
        ([InputNode("in", "Claim", prior=-0.1), OUT], [("in", "out")], "input 'in': prior is -0.1, not in [0, 1]"),
        ([IN, task("a", cost_usd=-1.0), OUT], LINE, f"task 'a': cost_usd is -1.0, {NOT_AN_AMOUNT}"),
        ([IN, task("a", duration_ms=math.inf), OUT], LINE, f"task 'a': duration_ms is inf, {NOT_AN_AMOUNT}"),
        ([IN, task("a", cost_model_usd=math.nan), OUT], LINE, f"task 'a': cost_model_usd is nan, {NOT_AN_AMOUNT}"),
        (
            [IN, OUT, OutputNode("copy", "Copy", None)],
            [("in", "out"), ("in", "copy")],
            "output 'out' states gain_usd and another output does not",
        ),
        (
            [IN, OutputNode("out", "Decision", math.nan)],
            [("in", "out")],
            "output 'out': gain_usd is nan, not a finite number",
        ),
        ([IN, OUT], [("in", "out"), ("in", "gone")], "edge 'in' -> 'gone': no node 'gone'"),
        ([IN, task("a"), OUT], [("a", "in"), ("in", "out")], "input 'in' has parents"),
        ([IN, task("a"), OUT], [("in", "out"), ("out", "a")], "output 'out' has children"),
        ([IN, OUT], [], "output 'out' has no parents: nothing makes it"),
        ([IN, IN, OUT], [("in", "out")], "node 'in' occurs 2 times"),
        ([IN, task("a"), OUT], [("in", "out"), ("a", "a")], "cycle 'a' -> 'a'"),
        (
            [IN, task("a"), task("b"), task("c"), OUT],
            [*LINE, ("a", "b"), ("b", "a"), ("b", "c")],
            "cycle 'a' -> 'b' -> 'a'",
        ),
    ],
)
def test_a_defect_is_named(nodes: list[Any], edges: list[Any], defect: str) -> None:
    assert validate(Workflow(tuple(nodes), tuple(edges))) == [defect]


def test_all_defects_come_at_once() -> None:
    nodes = [IN, task("a", p=2, cost_usd=-1), task("b"), OUT]
    with pytest.raises(WorkflowError, match="p is 2") as caught:
        Workflow.of(nodes, [("a", "b"), ("b", "a"), ("b", "in"), ("out", "ghost"), ("a", "out")])
    text = str(caught.value)
    for part in ("cost_usd is -1", "no node 'ghost'", "input 'in' has parents", "output 'out' has children", "cycle"):
        assert part in text
    assert isinstance(caught.value, OpusError)
    assert isinstance(caught.value, ValueError)


@pytest.mark.long
def test_a_long_cycle_is_found_at_once() -> None:
    names = [f"n{i:05}" for i in range(20_000)]
    edges = [*itertools.pairwise(names), (names[-1], names[-3])]
    defects = validate(Workflow(tuple(task(n) for n in names), tuple(edges)))
    assert defects == ["cycle 'n19997' -> 'n19998' -> 'n19999' -> 'n19997'"]
