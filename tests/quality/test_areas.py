"""The area of the Opus paper's five metrics of each system, and its interval."""

from typing import Any

import pytest

from opus_pipelines.quality.evaluate import areas


def row(system: str, group: str, *values: float) -> dict[str, Any]:
    axes = ("coverage", "kendall", "dtw", "bleu", "cosine")
    return {"system": system, "item_group": group, **dict(zip(axes, values, strict=True))}


def test_the_area_is_that_of_the_means_and_its_interval_is_drawn_over_groups() -> None:
    rows = [row("gold", name, 1, 1, 1, 1, 1) for name in "abc"]
    rows += [
        row("half", "a", 1, 1, 1, 1, 1),
        row("half", "b", 0, 0, 0, 0, 0),
        row("half", "c", 0.5, 0.5, 0.5, 0.5, 0.5),
    ]
    rows += [row("reversed", name, 1, -1, 0, 0, 1) for name in "abc"]
    found = areas(rows)
    assert (found["gold"].mean, found["gold"].low, found["gold"].high) == pytest.approx((1.0, 1.0, 1.0))
    assert found["half"].mean == pytest.approx(0.25)  # of the means, .5 each; the mean of the areas is .42
    assert (found["half"].low, found["half"].high) == pytest.approx((0.0, 1.0))
    assert found["reversed"].mean == pytest.approx(0.2)  # coverage and cosine are neighbours; a negative tau adds none
    assert found["half"].n == 3
