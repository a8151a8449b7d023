"""Calibration by bins, in which equal predictions stay together."""

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))

from calibration import bins, error  # type: ignore[import-not-found]


def test_equal_predictions_make_one_bin_and_the_error_is_that_of_its_mean() -> None:
    rows = [{"success": 0.5, "happened": n % 2 == 0} for n in range(10)]
    rows += [{"success": 0.9, "happened": n < 6} for n in range(10)]
    assert [len(part) for part in bins(rows)] == [10, 10]
    assert error(rows) == pytest.approx(0.15)
    assert error([]) != error([])
