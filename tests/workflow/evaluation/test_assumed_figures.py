"""What stands beside every total: the share of it that is assumed, and how many steps are in it with nothing."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from opus_pipelines.workflow.evaluation.cost import (
    AssumedShares,
    assumed,
    assumed_of,
    known_success,
    success_unknown_steps,
    total_ms,
    total_usd,
)
from opus_pipelines.workflow.model import TaskNode


def step(name: str, cost: float, cost_basis: str, ms: float, ms_basis: str) -> Any:
    return TaskNode(name, name, name, cost_usd=cost, cost_basis=cost_basis, duration_ms=ms, duration_basis=ms_basis)


def test_shares_of_the_known_totals_and_counts_of_the_unknown() -> None:
    steps = [
        step("a", 6.0, "observed", 10.0, "observed"),
        step("b", 2.0, "prior", 30.0, "estimated"),
        step("c", 0.0, "unknown", 0.0, "unknown"),
        step("d", 2.0, "rate", 0.0, "unknown"),
    ]
    assert assumed(steps) == AssumedShares(0.2, 1, 0.75, 2)
    assert (total_usd(steps, 10.0), total_ms(steps, 40.0)) == (10.0, 40.0)


def test_a_total_of_nothing_known_is_unknown_and_not_0() -> None:
    steps = [step("c", 0.0, "unknown", 0.0, "unknown")]
    assert assumed(steps) == AssumedShares(None, 1, None, 1)
    assert (total_usd(steps, 0.0), total_ms(steps, 0.0)) == (None, None)
    assert total_usd(steps, 3.0) == 3.0  # of time, or of what is held
    assert total_usd([step("f", 0.0, "observed", 0.0, "observed")], 0.0) == 0.0


def test_of_a_total_of_0_the_share_is_that_of_the_steps() -> None:
    assert assumed([step("a", 0.0, "observed", 0.0, "prior"), step("b", 0.0, "prior", 0.0, "prior")]) == AssumedShares(
        0.5, 0, 1.0, 0
    )


@pytest.mark.parametrize(
    ("bases", "unknown", "success"),
    [
        (("observed", "estimated"), 0, 0.8),
        (("observed", "prior"), 1, 0.8),
        (("prior", "prior"), 2, None),
        ((), 0, 0.8),
    ],
)
def test_a_success_that_rests_on_priors_alone_is_unknown(
    bases: tuple[Any, ...], unknown: int, success: float | None
) -> None:
    steps = [TaskNode(str(n), str(n), str(n), p=0.9, p_basis=basis) for n, basis in enumerate(bases)]
    assert (success_unknown_steps(steps), known_success(steps, 0.8)) == (unknown, success)


FIGURES = st.lists(
    st.tuples(st.none() | st.floats(0, 1e12), st.sampled_from(["observed", "rate", "estimated", "prior"]))
)


@pytest.mark.long
@given(FIGURES, FIGURES)
def test_a_share_is_a_share(costs: list[Any], times: list[Any]) -> None:
    found = assumed_of(costs, times)
    for share, unknown, figures in (
        (found.cost_assumed_share, found.cost_unknown_steps, costs),
        (found.duration_assumed_share, found.duration_unknown_steps, times),
    ):
        assert unknown == sum(value is None for value, _ in figures)
        assert (share is None) == (unknown == len(figures))
        assert share is None or 0 <= share <= 1
        assert share is None or (share == pytest.approx(0)) or any(b in ("prior", "estimated") for _, b in figures)
