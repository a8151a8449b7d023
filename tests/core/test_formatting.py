"""Figures as a person reads them."""

import pytest

from opus_pipelines.core.formatting import is_far, usd


@pytest.mark.parametrize(
    ("value", "said"),
    [
        (None, "-"),
        (0.0, "$0.00"),
        (12.345, "$12.35"),
        (-12.345, "-$12.35"),
        (0.5, "$0.5000"),
        (-0.0004, "-$0.0004"),
        (-1e-6, "$0.0000"),
        (-100.0, "-$100.00"),
    ],
)
def test_dollars(value: float | None, said: str) -> None:
    assert usd(value) == said


@pytest.mark.parametrize(("similarity", "far"), [(None, False), (0.24, True), (0.25, False), (0.9, False)])
def test_what_is_far_from_history(similarity: float | None, far: bool) -> None:
    assert is_far(similarity) is far
