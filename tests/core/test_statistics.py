"""Intervals against published values, and the choice of λ."""

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from opus_pipelines.core.settings import Retention, Wkg
from opus_pipelines.core.statistics import beta_interval, lift, rate_of, smoothed, wilson
from opus_pipelines.wkg.graph import choose_lambda, gamma, lambda_rule
from opus_pipelines.wkg.upkeep.retention import expired


def test_wilson_and_newcombe_give_the_values_of_newcombe_1998() -> None:
    assert [round(x, 4) for x in wilson(81, 263)] == [0.2553, 0.3662]
    assert [round(x, 4) for x in lift(56, 70, 48, 80)] == [0.2, 0.0524, 0.3339]


def test_where_nothing_is_known_an_interval_is_everything() -> None:
    assert wilson(0, 0) == (0.0, 1.0)
    assert rate_of(0, 0) == 0.5
    assert [round(float(x), 4) for x in lift(5, 5, 0, 0)] == [0.5, -0.1624, 1.0]


@settings(deadline=None)
@given(st.integers(0, 50), st.integers(0, 50), st.integers(0, 50), st.integers(0, 50))
def test_a_lift_lies_inside_its_interval_and_equal_evidence_shows_none(n: int, s: int, m: int, t: int) -> None:
    s, t = min(s, n), min(t, m)
    difference, lower, upper = lift(s, n, t, m)
    assert -1.0000001 <= lower <= difference <= upper <= 1.0000001
    assert lift(s, n, s, n)[1] < 0 < lift(s, n, s, n)[2]


def test_smoothed_is_the_mean_of_the_beta_posterior() -> None:
    estimate = smoothed(8, 10, 0.9, 10)
    assert (estimate.value, estimate.basis, estimate.n) == (pytest.approx(0.85), "observed", 10)
    assert (estimate.lower, estimate.upper) == beta_interval(9 + 8, 1 + 2)
    assert smoothed(0, 0, 0.9, 10).basis == "prior"
    certain = smoothed(300, 300, 0.99, 5)
    assert (certain.lower, certain.upper) == beta_interval(304.95, 0.5)
    assert certain.lower < 0.992 < certain.value < certain.upper
    assert (beta_interval(3, 0), beta_interval(0, 3)) == ((1.0, 1.0), (0.0, 0.0))


@pytest.mark.parametrize(("counts", "expected"), [([1, 3, 7, 7], math.log(2) / 5), ([1], math.log(2)), ([], None)])
def test_lambda_gives_the_median_edge_a_half(counts: list[int], expected: float | None) -> None:
    assert choose_lambda(counts) == expected
    assert gamma(math.log(2) / 5, 5) == pytest.approx(0.5)


def test_lambda_is_given_kept_or_chosen_and_a_kept_one_has_the_token_of_its_choice() -> None:
    chosen = lambda_rule(Wkg(), None, "inputs")
    kept = {"transition": {"lambda": 0.1, "chosen_from": chosen.token}}
    assert (chosen.value, chosen.kept) == (None, True)
    assert lambda_rule(Wkg(), kept, "other").token == chosen.token
    assert lambda_rule(Wkg(), kept, "other").value == 0.1
    assert lambda_rule(Wkg(), kept, "other", reset=True).value is None
    assert lambda_rule(Wkg(gamma_unit="variant"), kept, "inputs").value is None
    assert lambda_rule(Wkg(**{"lambda": 0.7}), kept, "inputs").kept is False


def test_retention_keeps_the_newest_the_young_and_what_is_named() -> None:
    from datetime import UTC, datetime

    manifests = {f"w{day}": {"published_at": f"2024-01-{day:02}T00:00:00+00:00"} for day in range(1, 10)}
    now = datetime(2024, 1, 10, tzinfo=UTC)
    assert expired(manifests, Retention(snapshots=2, days=5), now, {"w2", None}) == ["w1", "w3", "w4"]
