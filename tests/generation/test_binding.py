"""Sequences that keep the rules of a procedure."""

from collections import Counter
from typing import Any

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from opus_pipelines.generation.binding import Bound, difference_from_history, keeping, with_bound
from opus_pipelines.intakes.requirements.rules import Sentence
from opus_pipelines.lwm.interface import SimilarCase, TaskSequence
from opus_pipelines.lwm.retrieval.named_rules import REPLACED, NamedRule
from opus_pipelines.lwm.stitching import IndustryCounts
from opus_pipelines.wkg.graph import WorkGraph

SENTENCE = Sentence("A rule.", "e1", "contract", "line 1", "prose")


def rule(kind: str, *tasks: str, held: str = "") -> NamedRule:
    return NamedRule(kind, tasks, SENTENCE, "contract/manual.md", held)


def case(tasks: str, success: bool | None = True) -> Any:
    empty = (None,) * len(tasks)
    return SimilarCase(tasks, 0.9, 1.0, success, None, None, None, tuple(tasks), tuple(tasks), empty, empty, empty)


def counts(*cases: str) -> IndustryCounts:
    tasks = tuple(sorted(set("".join(cases))))
    did = np.array([[task in one for task in tasks] for one in cases])
    before = Counter((a, b) for one in cases for n, a in enumerate(one) for b in one[n + 1 :])
    return IndustryCounts(tasks, np.arange(len(cases)), did, before, Counter(), Counter())


NO_GRAPH = WorkGraph.of([], [])


def test_what_is_demanded_stands_where_history_has_it_and_what_is_ruled_out_is_gone() -> None:
    bound = Bound((rule("must_contain", "f"), rule("must_not_contain", "w"), rule("before", "p", "c")))
    assert keeping("abcp", bound, {("a", "f"): 9, ("f", "c"): 9, ("f", "p"): 9, ("b", "f"): 9}) == tuple("abfpc")
    made = with_bound([TaskSequence(0, tuple("awp"), 1.0, "history")], bound, counts("awp", "afp"), NO_GRAPH, {})
    assert [(s.tasks, s.source) for s in made] == [(tuple("awp"), "history"), (tuple("afp"), "procedure")]


def test_what_history_does_only_behind_a_ruled_out_step_falls_away_with_it_unless_that_is_replaced() -> None:
    history = counts("ofcb", "ofcb", "od")
    assert Bound((rule("must_not_contain", "f"),)).ruled_out(history) == frozenset("fcb")
    assert Bound((rule("must_not_contain", "f"), rule("must_contain", "b"))).ruled_out(history) == frozenset("fc")
    assert Bound((rule("must_not_contain", "f", held=REPLACED),)).ruled_out(history) == frozenset("f")


def test_critical_groups_have_what_is_demanded_and_not_what_is_ruled_out() -> None:
    bound = Bound((rule("must_contain", "d"), rule("must_not_contain", "f", held=REPLACED)))
    groups = [frozenset("f"), frozenset("fx"), frozenset("o")]
    assert bound.critical(groups, counts("of")) == [frozenset("d"), frozenset("o"), frozenset("x")]


TASKS = "abcdef"


@given(
    st.permutations(TASKS[:4]),
    st.lists(st.sampled_from(TASKS), max_size=2, unique=True),
    st.lists(st.sampled_from(TASKS[2:]), max_size=2, unique=True),
)
def test_a_sequence_keeps_every_rule(tasks: list[str], demanded: list[str], pair: list[str]) -> None:
    rules = [rule("must_contain", task) for task in demanded]
    rules += [rule("before", *pair)] if len(pair) == 2 else []
    kept = keeping(tasks, Bound(tuple(rules)), {})
    assert set(kept) == {*tasks, *demanded}
    assert len(kept) == len(set(kept))
    if len(pair) == 2 and set(pair) <= set(kept):
        assert kept.index(pair[0]) < kept.index(pair[1])


@given(st.lists(st.text("ab", max_size=4), min_size=1, max_size=20))
def test_the_share_of_the_cases_that_did_otherwise_is_recounted(histories: list[str]) -> None:
    cases = [case(tasks) for tasks in histories]
    filled = [tasks for tasks in histories if tasks]
    told = difference_from_history(rule("must_contain", "a"), cases, ["Approve"])
    did = sum("a" in tasks for tasks in filled)
    if filled and 2 * did >= len(filled):
        assert told is None
    else:
        assert told == f"{did / max(1, len(filled)):.0%} of the similar cases did 'Approve'"
    both = [tasks for tasks in filled if {"a", "b"} <= set(tasks)]
    turned = sum(tasks.index("b") < tasks.index("a") for tasks in both)
    told = difference_from_history(rule("before", "a", "b"), cases, ["Approve", "Bill"])
    if not both:
        assert told is not None
        assert "no similar case" in told
    else:
        assert (told is None) == (2 * turned < len(both))
        assert told is None or told.startswith(f"{turned / len(both):.0%} ")
