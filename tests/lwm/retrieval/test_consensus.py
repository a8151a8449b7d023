"""What similar cases agree on: the sets with the highest expected F1, held against every possible set."""

from itertools import combinations, pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from opus_pipelines.lwm.retrieval.consensus import Trace, consensus


def agreed(courses: list[str], weights: list[float] | None = None) -> Any:
    return consensus([Trace.of(tuple(c)) for c in courses], np.array(weights or [1.0] * len(courses)))


def expected_f1(chosen: tuple[str, ...], courses: list[str]) -> Any:
    return sum(2 * len(set(chosen) & set(c)) / (len(set(chosen)) + len(set(c))) for c in courses) / len(courses)


def test_what_most_cases_did_is_in_it_and_what_few_did_is_not() -> None:
    found = agreed(["abc", "abc", "abd", "abc", "x"])
    assert found.tasks == ("a", "b", "c")
    assert found.support == {"a": 0.8, "b": 0.8, "c": 0.6, "d": 0.2, "x": 0.2}
    assert found.agreement == pytest.approx((1 + 1 + 2 / 3 + 1 + 0) / 5)
    assert found.cases == 5.0


def test_it_need_not_be_what_any_case_did() -> None:
    found = agreed(["abcx", "abcy", "abcz"])
    assert found.tasks == ("a", "b", "c")  # no case did just that


def test_the_order_is_the_one_of_most_cases_and_returns_are_pairs_of_their_own() -> None:
    found = agreed(["abab", "aba", "abab"])
    assert found.tasks == ("a", "b")
    assert found.pairs_among("ab") == {("a", "b"): 1.0, ("b", "a"): 1.0}


def test_weights_decide_and_a_case_without_weight_or_task_says_nothing() -> None:
    assert agreed(["ab", "cd", ""], [1.0, 3.0, 9.0]).tasks == ("c", "d")
    assert agreed(["ab", "cd"], [2.0, 0.0]).support == {"a": 1.0, "b": 1.0}
    with pytest.raises(ValueError, match="no similar case has a task"):
        agreed(["", "ab"], [1.0, 0.0])


def test_predecessors_say_what_follows_what_where_a_case_is_no_chain() -> None:
    course = Trace.of(("a", "b", "c"), [None, [0], [0]])
    assert course.pairs == {("a", "b"), ("a", "c")}
    assert Trace.of(("a", "b"), [None, [7, -1]]).pairs == frozenset()  # places that are not there


def test_agreement_of_other_steps_and_among_steps_alone() -> None:
    found = agreed(["aeb", "ab"])  # e: an event
    assert found.expected_f1("ab", among={"a", "b"}) == (1.0, 1.0)
    assert found.expected_f1("ba", among={"a", "b"}) == (1.0, 0.0)  # the right steps, in an order that no case has
    assert found.expected_f1("ab", among={"a", "b", "e"}) == pytest.approx(((0.8 + 1) / 2, (0 + 1) / 2))
    assert found.expected_f1("", among={"a", "b"}) == (0.0, 0.0)


@pytest.mark.long
@settings(max_examples=150, deadline=None)
@given(st.lists(st.sets(st.sampled_from("abcde"), min_size=1), min_size=1, max_size=6))
def test_no_set_is_expected_to_agree_more(courses: list[Any]) -> None:
    cases = ["".join(sorted(c)) for c in courses]
    best = max(expected_f1(s, cases) for n in range(1, 6) for s in combinations("abcde", n))
    assert agreed(cases).agreement == pytest.approx(best)
    found = agreed(cases).tasks
    assert expected_f1(found, cases) == pytest.approx(best)


def test_the_pairs_of_some_tasks_are_those_that_the_cases_agree_on_and_no_chain_is_made_up() -> None:
    """Two ways part behind a: c follows a or b, and no case did b directly before c more often than a."""
    found = agreed(["ac", "ac", "ab", "abd"])
    assert found.pairs_among("abc") == {("a", "b"): 0.5, ("a", "c"): 0.5}
    assert found.pairs_among("cb") == {}  # no case did one of them directly after the other


def test_an_order_joins_tasks_that_cases_did_directly_one_after_the_other() -> None:
    """b and c are alternatives behind a, both before d. By what comes before what alone b and c tie, and either order
    joins them.
    """
    found = agreed(["abd", "abd", "acd", "acbd", "abd"])
    assert found.tasks == ("a", "b", "d")
    found = agreed(["abcd", "abcd", "cdab", "cdab", "cdab"])
    assert found.tasks == ("c", "d", "a", "b")
    returns = agreed(["abac", "ac", "abac"])  # b goes back to a: cases begin with a all the same
    assert returns.tasks == ("a", "b", "c")
    found = agreed(["abcd", "abcd", "cdab", "cdab", "cdab"])
    assert found.expected_f1(found.tasks, among=set("abcd"))[1] == pytest.approx((3 * 1 + 2 * 2 / 3) / 5)


def test_the_likeliest_first_task_can_be_put_first_and_the_others_keep_their_order() -> None:
    """Most cases, by weight, do c before a; but a begins more of them than c or d."""
    found = agreed(["acbd", "dcab", "dcab", "acbd", "cdab"], [1.0, 1.0, 0.9, 1.0, 1.5])
    assert found.tasks == ("c", "d", "a", "b")
    led = found.with_likeliest_first()
    assert led.tasks == ("a", "c", "d", "b")
    assert led.support == found.support
    assert led.traces == found.traces


def test_a_first_task_that_is_no_part_of_the_consensus_is_not_added() -> None:
    found = agreed(["xab", "yab", "ab"], [0.4, 0.4, 0.3])
    assert found.tasks == ("a", "b")
    assert found.with_likeliest_first().tasks == ("a", "b")


@settings(max_examples=100, deadline=None)
@given(st.lists(st.permutations("abcd"), min_size=1, max_size=5))
def test_no_single_move_betters_the_order(courses: list[Any]) -> None:
    """The sum of what it says: consecutive pairs that courses have, begin and end too, less two tasks turned round."""

    def worth(order: list[str] | tuple[str, ...]) -> Any:
        shared = sum(sum(pair in list(pairwise(c)) for c in courses) for pair in pairwise(order))
        shared += sum((c[0] == order[0]) + (c[-1] == order[-1]) for c in courses)
        turned = sum(
            max(0, sum(c.index(b) < c.index(a) for c in courses) * 2 - len(courses)) for a, b in combinations(order, 2)
        )
        return (shared - turned) / len(courses)

    found = agreed(["".join(c) for c in courses]).tasks
    moves = [
        [*rest[:n], task, *rest[n:]]
        for task in found
        for rest in [[t for t in found if t != task]]
        for n in range(len(found))
    ]
    assert all(worth(found) >= worth(move) - 1e-9 for move in moves)
