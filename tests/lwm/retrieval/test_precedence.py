from itertools import permutations
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from opus_pipelines.lwm.interface import SimilarCase
from opus_pipelines.lwm.precedence import independent_pairs, order_facts, precedence_counts, stable_precedence, violates
from opus_pipelines.wkg.graph import Edge, Task, WorkGraph


def case(tasks: str, success: bool = True, weight: float = 1.0) -> Any:
    nothing = (None,) * len(tasks)
    return SimilarCase(
        "i" + tasks, 0.9, weight, success, None, None, None, tuple(tasks), tuple(tasks), nothing, nothing, nothing
    )


def test_what_cases_agree_on_is_settled_and_what_they_do_either_way_is_not() -> None:
    order = stable_precedence([case("abcd"), case("acbd"), case("dcba", success=False)], 0.9)
    assert order == {("a", "b"), ("a", "c"), ("a", "d"), ("b", "d"), ("c", "d")}


def test_a_loop_counts_by_its_first_round() -> None:
    assert stable_precedence([case("abab")], 0.9) == {("a", "b")}


def test_far_cases_settle_nothing() -> None:
    assert stable_precedence([case("ab", weight=0.1)], 0.9) == frozenset()


def test_a_sequence_against_the_order_breaks_it_wherever_it_does() -> None:
    order = stable_precedence([case("abc")], 0.9)
    assert violates("cab", order)
    assert violates("bca", order)
    assert not violates("ac", order)


TASKS = "abcde"
SEQUENCES = st.lists(st.text(TASKS, max_size=6), max_size=8)


@given(SEQUENCES, st.dictionaries(st.sampled_from(list(permutations(TASKS, 2))), st.integers(1, 9)))
def test_pairs_are_free_where_nothing_but_what_history_shows_lets_one_wait_for_the_other(
    sequences: list[Any], walked: dict[str, Any]
) -> None:
    graph = WorkGraph.of([Task(t, t) for t in TASKS], [Edge(a, b, n, 1, 0.5, 0.5, 0.5) for (a, b), n in walked.items()])
    known, seen = "abcd", precedence_counts(sequences)
    facts = order_facts(known, seen, graph, frozenset())
    assert independent_pairs(known, seen, graph) == {pair for pair in permutations(known, 2) if not facts.waits(*pair)}


@given(SEQUENCES)
def test_orders_are_counted_sequence_by_sequence(sequences: list[Any]) -> None:
    expected = {}
    for tasks in sequences:
        first = {task: tasks.index(task) for task in tasks}
        for a, b in permutations(first, 2):
            if first[a] < first[b]:
                expected[a, b] = expected.get((a, b), 0) + 1
    assert precedence_counts(sequences) == expected
