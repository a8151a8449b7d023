"""The five Opus metrics against the values that the related-systems notes measured, and their laws."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from opus_pipelines.workflow.metrics.opus_metrics import (
    MAX_AREA,
    OpusMetrics,
    best_matches,
    bleu,
    dtw_similarity,
    kendall_tau,
    opus_metrics,
)

TASKS = ["Read the claim", "Check the policy", "Ask for documents", "Decide the claim", "Pay the customer"]


def test_a_workflow_is_its_own_best_match() -> None:
    metrics = opus_metrics(TASKS, TASKS, np.eye(5))
    assert (metrics.coverage, metrics.kendall, metrics.dtw, metrics.cosine) == (1.0, 1.0, 1.0, 1.0)
    assert (metrics.recall, metrics.f1) == (1.0, 1.0)
    assert pytest.approx(2.37764, abs=1e-5) == MAX_AREA


def test_a_reversed_workflow_has_a_negative_tau_that_adds_no_area() -> None:
    reversed_order = [(n, 4 - n) for n in range(5)]
    assert kendall_tau(reversed_order, 5) == -1.0
    assert dtw_similarity(reversed_order, 5) == pytest.approx(0.4)
    metrics = opus_metrics(TASKS, TASKS[::-1], np.eye(5)[::-1])
    assert metrics.kendall == -1.0
    assert metrics.area == pytest.approx(0.5 * math.sin(math.radians(72)) * (0.4 * metrics.bleu + metrics.bleu + 1.0))


def test_three_matches_of_six_and_eight_tasks() -> None:
    similarity = np.zeros((6, 8))
    similarity[0, 1] = similarity[2, 0] = similarity[5, 7] = 0.9
    metrics = opus_metrics(["a"] * 6, ["b"] * 8, similarity)
    assert metrics.coverage == 0.5
    assert metrics.kendall == pytest.approx(0.1667, abs=1e-4)
    assert metrics.dtw == pytest.approx(0.4524, abs=1e-4)
    assert metrics.cosine == pytest.approx(0.45)
    assert metrics.recall == 0.375
    assert metrics.bleu == 0.0


@pytest.mark.parametrize(
    ("text", "reference", "value"),
    [  # computed with NLTK 3.9, sentence_bleu and SmoothingFunction().method1
        ("check the invoice total", "check invoice total", 0.1880301546543197),
        (
            "It is a guide to action which ensures that the military always obeys the commands of the party",
            "It is a guide to action that ensures that the military will forever heed Party commands",
            0.4208598069524091,
        ),
        ("pay", "reject the claim", 0.0),
        ("", "reject the claim", 0.0),
    ],
)
def test_bleu_is_that_of_nltk(text: str, reference: str, value: float) -> None:
    assert bleu(text, reference) == pytest.approx(value, abs=1e-12)


def test_one_match_orders_nothing_but_in_a_workflow_of_one_task() -> None:
    assert kendall_tau([(0, 0)], 1) == 1.0
    assert kendall_tau([(0, 0)], 2) == 0.0
    assert kendall_tau([], 2) == 0.0
    assert opus_metrics([], TASKS, np.zeros((0, 5))) == OpusMetrics(0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0)


def test_equal_texts_are_matched_in_order_and_a_weak_pair_is_no_match() -> None:
    assert best_matches(np.ones((3, 3))) == [(0, 0), (1, 1), (2, 2)]
    assert best_matches(np.array([[0.6, 0.1], [0.7, 0.65]])) == [(1, 0)]


@given(st.integers(1, 7), st.integers(1, 7), st.integers(0, 2**32 - 1))
def test_all_metrics_stay_within_their_bounds(n: int, m: int, seed: int) -> None:
    similarity = np.random.default_rng(seed).uniform(-1, 1, (n, m))
    metrics = opus_metrics(["pay the claim"] * n, ["pay the claim"] * m, similarity)
    assert 0 <= metrics.coverage <= 1
    assert -metrics.coverage <= metrics.kendall <= metrics.coverage
    assert 0 <= metrics.dtw <= metrics.coverage + 1e-12
    assert 0 <= metrics.cosine <= metrics.coverage + 1e-12
    assert 0 <= metrics.area / MAX_AREA <= 1 + 1e-12
