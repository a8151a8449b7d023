"""Algorithm 2: joined by what is alike, and left alone where nothing is."""

from typing import Any

from opus_pipelines.lwm.workflow_graph import chain, connected_components, join_components, workflow_graph
from opus_pipelines.wkg.graph import Edge, Task, WorkGraph
from opus_pipelines.workflow.model import INPUT, OUTPUT


def graph(*pairs: str) -> WorkGraph:
    return WorkGraph.of([Task(t, t) for t in "abcdmx"], [Edge(p[0], p[1], 3, 1, 0.5, 0.5, 1.0) for p in pairs])


def alike(**of: float) -> Any:
    return lambda a, b: of.get("".join(sorted(a + b)), 0.0)


WHOLE = graph("ab", "cd", "bm", "mc", "bx")
APART = workflow_graph({"q1": chain("ab"), "q2": chain("cd")}, graph("ab", "cd"))


def test_input_and_output_do_not_hold_a_graph_together() -> None:
    assert connected_components(APART) == [{"a", "b"}, {"c", "d"}]


def test_a_task_like_both_sides_joins_them_and_says_where_it_comes_from() -> None:
    found = join_components(APART, WHOLE, alike(bm=0.7, cm=0.6, bx=0.2))
    assert connected_components(found) == [{"a", "b", "c", "d", "m"}]
    assert found.nodes["m"].origin == "algorithm2"
    assert [(e.src, e.dst) for e in found.edges.values() if e.origin == "algorithm2"] == [("b", "m"), ("m", "c")]
    assert found.nodes[INPUT] == APART.nodes[INPUT]
    assert found.nodes[OUTPUT] == APART.nodes[OUTPUT]


def test_the_threshold_ends_the_search_and_leaves_the_graph_as_it_was() -> None:
    assert join_components(APART, WHOLE, alike(bm=0.7, cm=0.2)) == APART


def test_a_wkg_that_is_itself_in_parts_ends_it_too() -> None:
    assert join_components(APART, graph("ab", "cd"), lambda a, b: 1.0) == APART


def test_a_graph_that_hangs_together_is_left_alone() -> None:
    whole = workflow_graph({"q1": chain("abc")}, WHOLE)
    assert join_components(whole, WHOLE, lambda a, b: 1.0) is whole


def test_no_more_than_so_many_tasks_are_added() -> None:
    assert join_components(APART, WHOLE, lambda a, b: 0.9, most=1) == APART
    assert "x" in join_components(APART, WHOLE, lambda a, b: 0.9, most=2).nodes
