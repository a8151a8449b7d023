"""f1_chain and f1_graph: the published program's figures, and the paper's definition with its invariances."""

import itertools
import random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from opus_pipelines.workflow.metrics.worfbench import WorkflowText, chain_scores, graph_scores


def same_texts(own: WorkflowText, gold: WorkflowText) -> np.ndarray:
    """A similarity of 1 where the texts are equal, 0 elsewhere."""
    return np.array([[float(a == b) for b in gold.labels] for a in own.labels])


def scores(own: WorkflowText, gold: WorkflowText, official: bool = False) -> tuple[float, float]:
    """f1_chain and f1_graph, rounded."""
    similarity = same_texts(own, gold)
    results = (score(own, gold, similarity, official) for score in (chain_scores, graph_scores))
    chain, graph = (round(result.f1, 3) for result in results)
    return chain, graph


def dag(edges: str, tasks: str) -> WorkflowText:
    """A graph of one-letter tasks; `edges` such as "ab ac"; START and END are joined to what has no neighbour."""
    number = {task: n for n, task in enumerate(tasks, 1)}
    inner = {(number[a], number[b]) for a, b in edges.split()}
    starts = {(0, n) for n in number.values() if not any(b == n for _, b in inner)}
    ends = {(n, len(tasks) + 1) for n in number.values() if not any(a == n for a, _ in inner)}
    return WorkflowText(tuple(tasks), frozenset(inner | starts | ends))


def test_one_wrong_task_scores_with_the_published_program_and_not_by_the_paper() -> None:
    own, gold = WorkflowText.chain("x"), WorkflowText.chain("ab")
    assert scores(own, gold, official=True) == (0.667, 0.286)
    assert scores(own, gold) == (0.0, 0.0)


def test_a_workflow_scores_one_against_itself() -> None:
    for gold in (WorkflowText.chain("abcde"), dag("ab ac bd cd", "abcd"), dag("", "abc")):
        assert scores(gold, gold) == (1.0, 1.0)
        assert scores(gold, gold, official=True) == (1.0, 1.0)


def test_the_paper_s_definition_does_not_depend_on_numbers_and_the_published_program_does() -> None:
    gold, renumbered = dag("ab ac bd cd", "abcd"), dag("ab ac bd cd", "dcba")
    assert scores(renumbered, gold) == (1.0, 1.0)
    assert scores(renumbered, gold, official=True)[1] < 0.5


def test_the_chain_may_follow_any_topological_order() -> None:
    assert scores(WorkflowText.chain("acbd"), dag("ab ac bd cd", "abcd")) == (1.0, 0.5)
    assert scores(WorkflowText.chain("dcba"), WorkflowText.chain("abcd"))[0] == 0.25


def test_a_workflow_without_its_first_task_keeps_the_rest() -> None:
    assert scores(WorkflowText.chain("bcd"), WorkflowText.chain("abcd")) == (0.857, 0.857)


def test_the_common_subgraph_is_induced_and_connected() -> None:
    assert scores(dag("ab bc", "abc"), dag("ab bc ac", "abc"))[1] == 0.667  # the edge a to c contradicts
    assert scores(dag("ab", "ab"), dag("ba", "ab"))[1] == 0.5


def test_ten_labels_and_more_are_listed_with_start_and_end_by_the_published_program() -> None:
    gold = WorkflowText.chain("abcdefgh")
    assert scores(gold, gold, official=True) == (0.889, 1.0)  # 2 * 8 / (8 + 10)


def test_an_empty_prediction_is_zero_and_a_cycle_is_an_error() -> None:
    gold = WorkflowText.chain("ab")
    assert scores(WorkflowText((), frozenset({(0, 1)})), gold) == (0.0, 0.0)
    assert chain_scores(WorkflowText((), frozenset()), gold, np.zeros((2, 4)), official=True).f1 == 0.0
    circle = WorkflowText(("a", "b"), frozenset({(0, 1), (1, 2), (2, 1), (2, 3)}))
    with pytest.raises(ValueError, match="cycle"):
        scores(circle, gold)


@given(st.integers(1, 6), st.integers(0, 2**32 - 1))
def test_the_chain_is_the_longest_of_all_pairs_of_orders(size: int, seed: int) -> None:
    order = random.Random(seed)
    tasks = "abcdef"[:size]
    pairs = list(itertools.combinations(tasks, 2))
    first, second = (" ".join(a + b for a, b in pairs if order.random() < 0.3) for _ in range(2))
    shuffled = "".join(order.sample(tasks, size))
    own, gold = (
        dag(first, tasks),
        dag(" ".join(shuffled[tasks.index(a)] + shuffled[tasks.index(b)] for a, b in second.split()), shuffled),
    )

    def orders(graph: WorkflowText) -> list[str]:
        inner = {(a, b) for a, b in graph.edges if a > 0 and b <= size}
        return [
            "".join(graph.tasks[n - 1] for n in o)
            for o in itertools.permutations(range(1, size + 1))
            if all(o.index(a) < o.index(b) for a, b in inner)
        ]

    def common(a: str, b: str) -> int:
        return max(n for n in range(size + 1) if set(itertools.combinations(a, n)) & set(itertools.combinations(b, n)))

    if size <= 4:
        longest = max(common(a, b) for a in orders(own) for b in orders(gold))
        assert chain_scores(own, gold, same_texts(own, gold)).size == longest
