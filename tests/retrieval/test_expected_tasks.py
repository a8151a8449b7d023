"""The expected work of a request: its steps in the order of walks along the graph, and what it makes critical."""

from opus_pipelines.retrieval.expected_tasks import ExpectedWork, likely_tasks
from opus_pipelines.wkg.graph import Edge, Task, WorkGraph


def graph(*edges: tuple[str, str, float]) -> WorkGraph:
    tasks = sorted({task for edge in edges for task in edge[:2]})
    return WorkGraph.of([Task(t, t) for t in tasks], [Edge(a, b, 10, 1, 0.5, 0.5, p) for a, b, p in edges])


def test_steps_are_in_the_order_of_walks_even_where_some_are_left_out() -> None:
    work = graph(("c", "a", 1.0), ("a", "d", 0.6), ("a", "b", 0.4), ("d", "b", 0.9), ("b", "d", 0.1))
    assert likely_tasks({"a": 0.9, "b": 0.9, "c": 0.9, "d": 0.6}, work) == ("c", "a", "d", "b")
    assert likely_tasks({"a": 0.9, "b": 0.9, "c": 0.2, "d": 0.1}, work) == ("a", "b")


def test_what_few_cases_did_by_chance_is_not_required_and_likely_steps_are() -> None:
    work = ExpectedWork({"a": 0.95, "b": 0.55, "c": 0.05}, ("a", "b"))
    assert work.critical([frozenset({"a", "x"}), frozenset({"c"})]) == [frozenset({"a", "x"}), frozenset({"b"})]


def test_a_demanded_task_that_is_not_likely_joins_the_steps_in_order() -> None:
    work = graph(("a", "c", 1.0), ("c", "b", 1.0))
    assert ExpectedWork({"a": 0.9, "b": 0.9, "c": 0.1}, ("a", "b")).joined([frozenset({"c"})], work) == ("a", "c", "b")
    assert ExpectedWork({"a": 0.9}, ("a",)).joined([frozenset({"a", "b"})], work) == ("a",)


def test_a_graph_without_edges_orders_by_id() -> None:
    assert likely_tasks({"b": 0.9, "a": 0.9}, WorkGraph.of([Task("a", "a"), Task("b", "b")], [])) == ("a", "b")
