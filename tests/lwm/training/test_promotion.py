"""Which model serves: the champion is replaced only by one that is better beyond the interval."""

import numpy as np
import pytest

from opus_pipelines.lwm.training.judging import Figures, Judged, promotion

TEXTS = tuple(f"request {n}" for n in range(40))


def judged(model: float, similar: float, champion: float, serves: bool = True) -> Judged:
    """Forty held-out cases with these F1, give or take .05."""
    noise = np.random.default_rng(0).normal(0, 0.05, (40, 3))
    scores = np.array([[model, similar, champion]]) + noise
    return Judged(Figures(120, 40, model, similar, 0.01 if serves else -0.01, 0.2), scores, TEXTS)


@pytest.mark.parametrize(("serves", "promoted"), [(True, True), (False, False)])
def test_the_first_model_serves_only_where_it_beats_history_beyond_the_interval(serves: bool, promoted: bool) -> None:
    verdict = promotion({"retail": judged(0.7, 0.6, 0.6, serves=serves)}, None, frozenset())
    assert verdict.promoted is promoted
    assert verdict.difference is None
    assert ("retail" in verdict.reason) is promoted


@pytest.mark.parametrize(("model", "promoted"), [(0.9, True), (0.71, False), (0.5, False)])
def test_a_challenger_must_beat_the_champion_beyond_the_interval(model: float, promoted: bool) -> None:
    verdict = promotion({"retail": judged(model, 0.4, 0.7)}, "m1", frozenset({"retail"}))
    assert verdict.promoted is promoted
    assert verdict.against == "m1"
    assert verdict.low < verdict.difference < verdict.high


def test_where_the_challenger_does_not_serve_similar_cases_are_what_it_is_judged_by() -> None:
    worse = promotion({"retail": judged(0.9, 0.4, 0.7, serves=False)}, "m1", frozenset({"retail"}))
    assert not worse.promoted
    better = promotion({"retail": judged(0.5, 0.9, 0.7, serves=False)}, "m1", frozenset({"retail"}))
    assert better.promoted, "the champion is worse than similar cases by now"


def test_a_champion_keeps_industries_that_were_not_judged() -> None:
    verdict = promotion({"retail": judged(0.9, 0.4, 0.4)}, "m1", frozenset({"retail", "law"}))
    assert not verdict.promoted
    assert "law" in verdict.reason


def test_one_held_out_case_decides_nothing() -> None:
    one = Judged(Figures(60, 1, 0.0, 0.0, 0.0, 0.0), np.array([[1.0, 0.0, 0.0]]), ("a request",))
    assert not promotion({"retail": one}, "m1", frozenset()).promoted
    assert not promotion({}, "m1", frozenset()).promoted
