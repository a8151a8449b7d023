"""Chains, and Algorithm 1 of LWM on an example worked by hand and against its literal loop."""

import itertools
import random

import pytest

from opus_pipelines.core.errors import WorkflowError
from opus_pipelines.lwm.workflow_graph import Dag, WfgEdge, WfgNode, chain, linear_extensions, workflow_graph
from opus_pipelines.wkg.graph import Edge, Task, WorkGraph


def edge(src: str, dst: str, transitions: int = 4) -> Edge:
    return Edge(src, dst, transitions, 1, 0.75, 0.25, 0.5)


def graph(names: str, *pairs: str) -> WorkGraph:
    return WorkGraph.of([Task(n, n) for n in names], [edge(p[0], p[1]) for p in pairs])


def test_a_loop_is_planned_once() -> None:
    assert chain(["a", "b", "a", "c", "b"]) == Dag(("a", "b", "c"), (("a", "b"), ("b", "c")))
    assert chain(["a"]) == Dag(("a",))
    assert (chain("abc").first, chain("abc").last) == (["a"], ["c"])
    with pytest.raises(WorkflowError, match="without tasks"):
        chain([])


def test_the_literal_example() -> None:
    wkg = graph("abcde", "ab", "bc", "ae", "ec", "ac", "cb")
    wfg = workflow_graph({"s1": chain("abc"), "s2": chain("aec")}, wkg)
    assert list(wfg.nodes) == ["a", "b", "c", "e", "input", "output"]
    assert wfg.nodes["a"] == WfgNode("a", "a", "history", ("s1", "s2"))
    assert wfg.nodes["input"] == WfgNode("input", None, "history", ("s1", "s2"))
    assert {pair: e.origin for pair, e in wfg.edges.items()} == {
        ("a", "b"): "history",
        ("b", "c"): "history",
        ("a", "e"): "history",
        ("e", "c"): "history",
        ("a", "c"): "algorithm1",
        ("c", "b"): "algorithm1",
        ("input", "a"): "history",
        ("c", "output"): "history",
    }
    assert wfg.edges["a", "b"] == WfgEdge("a", "b", "history", 0.75, 0.25, 4, ("s1",))
    assert wfg.edges["a", "c"] == WfgEdge("a", "c", "algorithm1", 0.75, 0.25, 4, ())
    assert wfg.edges["input", "a"] == WfgEdge("input", "a", "history", None, 1.0, 0, ("s1", "s2"))


def test_edges_inside_a_single_dag_are_not_added() -> None:
    wfg = workflow_graph({"s": chain("abc")}, graph("abc", "ac"))
    assert ("a", "c") not in wfg.edges
    assert wfg.edges["a", "b"] == WfgEdge("a", "b", "history", None, 1.0, 0, ("s",))


def test_what_the_wkg_lacks_is_new_and_gets_no_edges() -> None:
    wfg = workflow_graph({"s": chain("ax"), "t": chain("b")}, graph("ab", "ab"), origin="lwm")
    assert wfg.nodes["x"].origin == "new"
    assert wfg.nodes["a"].origin == "lwm"
    assert wfg.edges["a", "b"].origin == "algorithm1"
    with pytest.raises(WorkflowError, match="no sequences"):
        workflow_graph({}, graph("ab"))


@pytest.mark.parametrize("seed", range(60))
def test_against_the_papers_loop(seed: int) -> None:
    rng = random.Random(seed)
    names = "abcdefg"
    wkg = graph(names[:6], *(f"{a}{b}" for a, b in itertools.product(names[:6], repeat=2) if rng.random() < 0.3))
    dags = {f"s{i}": chain(rng.choices(names, k=rng.randint(1, 5))) for i in range(rng.randint(1, 4))}
    expected = {pair for dag in dags.values() for pair in dag.edges}
    for s, dag in dags.items():
        for v in set(dag.nodes) & wkg.tasks.keys():
            for x in {x for d in dags if d != s for x in dags[d].nodes} & wkg.tasks.keys():
                if (v, x) in wkg.edges:
                    expected.add((v, x))
    wfg = workflow_graph(dags, wkg)
    assert {pair for pair in wfg.edges if not {"input", "output"} & set(pair)} == expected
    assert {dst for src, dst in wfg.edges if src == "input"} == {dag.nodes[0] for dag in dags.values()}
    assert {src for src, dst in wfg.edges if dst == "output"} == {dag.nodes[-1] for dag in dags.values()}


def test_tasks_that_wait_for_each_other_in_no_order_have_edges_both_ways() -> None:
    dag = linear_extensions("abcd", [("a", "b"), ("a", "c"), ("b", "d"), ("c", "d")])
    assert dag.nodes == tuple("abcd")
    assert set(dag.edges) == {tuple(pair) for pair in ("ab", "ac", "bc", "cb", "bd", "cd")}
    assert (dag.first, dag.last) == (["a"], ["d"])


def test_a_known_order_of_all_tasks_is_the_chain() -> None:
    assert linear_extensions("abc", [("a", "b"), ("b", "c"), ("c", "a")]) == chain("abc")
