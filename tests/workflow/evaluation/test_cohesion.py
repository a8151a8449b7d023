"""Cohesion by words: closed forms, laws, and what two tasks made into one do to it on the sample's tasks."""

import itertools
import math
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from opus_pipelines.quality.sample.industries import read_industry
from opus_pipelines.quality.sample.model import Task
from opus_pipelines.workflow.evaluation.penalty import mean_dissimilarity, statements, word_similarity

few = settings(max_examples=50, deadline=None)
texts = st.lists(st.text(st.sampled_from("abcdef ,.;"), max_size=30), max_size=6)


def said(*tasks: Task) -> tuple[str, ...]:
    names = [" and ".join(t.name for t in tasks), ", ".join(n for t in tasks for n in (*t.inputs, *t.outputs))]
    return statements(names, [t.description for t in tasks] + [next(iter(t.instructions.values())) for t in tasks])


def test_names_stay_whole_and_texts_are_cut_into_sentences_each_once() -> None:
    found = statements(["Pay out", ""], ["Open the account. Pay; note it!\nPay out", None, "Open the account."])
    assert found == ("Pay out", "Open the account.", "Pay;", "note it!")


@pytest.mark.parametrize(
    ("statements", "score"),
    [
        ((), None),
        (("Approve payment",), None),
        (("Approve payment", "a, to the of"), None),
        (("Approve payment", "payment approval"), 1 - math.sqrt(2 / 2)),
        (("Approve payment", "file documents"), 1.0),
        (("Approve payment", "approve the payment run today"), 1 - math.sqrt(2 / math.sqrt(2 * 3))),
        (("Approve payment", "payments", "file documents"), 1 - math.sqrt(1 / math.sqrt(2)) / 3),
    ],
)
def test_by_hand(statements: tuple[Any, ...], score: float | None) -> None:
    assert mean_dissimilarity(statements) == (score if score is None else pytest.approx(score, abs=1e-12))


@few
@given(texts, st.randoms(use_true_random=False))
def test_bounded_and_order_free(said: list[Any], rng: Any) -> None:
    score = mean_dissimilarity(tuple(said))
    shuffled = list(said)
    rng.shuffle(shuffled)
    assert score is None or 0 <= score <= 1
    assert mean_dissimilarity(tuple(shuffled)) == score


@few
@given(st.frozensets(st.integers(0, 9), min_size=1), st.frozensets(st.integers(0, 9), min_size=1))
def test_a_word_more_in_common_makes_two_statements_more_alike(first: frozenset[int], second: frozenset[int]) -> None:
    assert 0 <= word_similarity(first, second) <= 1
    assert word_similarity(first, first) == pytest.approx(1)
    assert word_similarity(first | {99}, second | {99}) >= word_similarity(first, second) - 1e-12


@pytest.mark.parametrize("industry", ["coding", "insurance", "payables"])
def test_two_tasks_of_the_sample_made_into_one_are_less_cohesive_than_they_are_apart(industry: str) -> None:
    """In squares, as (8) counts them: what the two give on average is below what they give as one."""
    pairs = list(itertools.combinations(read_industry(industry).industry.tasks.values(), 2))
    worse = sum(
        mean_dissimilarity(said(a, b)) ** 2 > (mean_dissimilarity(said(a)) ** 2 + mean_dissimilarity(said(b)) ** 2) / 2
        for a, b in pairs
    )
    assert worse / len(pairs) >= 0.95
