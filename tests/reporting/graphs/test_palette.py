"""Contrast, and that the colours stay apart for people who lack one kind of cone (Machado, Oliveira, Fernandes 2009,
severity 1).
"""

from itertools import combinations

import numpy as np
import pytest

from opus_pipelines.reporting.graphs.model import CHANGES, GROUPS, INK, LINE, OTHER, PAPER, QUIET, Colour, colours

CONES = {
    "all": np.eye(3),
    "no red": np.array(
        [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]]
    ),
    "no green": np.array(
        [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.011820, 0.042940, 0.968881]]
    ),
    "no blue": np.array(
        [[1.255528, -0.076749, -0.178779], [-0.078411, 0.930809, 0.147602], [0.004733, 0.691367, 0.303900]]
    ),
}
TO_XYZ = np.array([[0.4124, 0.3576, 0.1805], [0.2126, 0.7152, 0.0722], [0.0193, 0.1192, 0.9505]])


def linear(colour: str) -> np.ndarray:
    c = np.array([int(colour[i : i + 2], 16) for i in (1, 3, 5)]) / 255
    return np.where(c <= 0.04045, c / 12.92, ((c + 0.055) / 1.055) ** 2.4)


def contrast(one: str, other: str) -> float:
    """WCAG's ratio."""
    low, high = sorted(float(TO_XYZ[1] @ linear(c)) for c in (one, other))
    return (high + 0.05) / (low + 0.05)


def lab(colour: str, cones: np.ndarray) -> np.ndarray:
    x = TO_XYZ @ np.clip(cones @ linear(colour), 0, 1) / np.array([0.95047, 1, 1.08883])
    f = np.where(x > 0.008856, np.cbrt(x), 7.787 * x + 16 / 116)
    return np.array([116 * f[1] - 16, 500 * (f[0] - f[1]), 200 * (f[1] - f[2])])


@pytest.mark.parametrize("colour", [*GROUPS, OTHER, *CHANGES.values()])
def test_text_and_borders_have_contrast(colour: Colour) -> None:
    assert contrast(INK, colour.fill) >= 7
    assert contrast(colour.border, PAPER) >= 3


def test_lines_and_small_print_have_contrast() -> None:
    assert contrast(LINE, PAPER) >= 4.5
    assert contrast(QUIET, PAPER) >= 7


@pytest.mark.parametrize("cones", CONES)
def test_groups_stay_apart(cones: str) -> None:
    for part, least in (("fill", 9), ("border", 14)):
        seen = [lab(getattr(colour, part), CONES[cones]) for colour in GROUPS]
        assert min(np.linalg.norm(a - b) for a, b in combinations(seen, 2)) >= least


@pytest.mark.parametrize("cones", CONES)
def test_changes_stay_apart(cones: str) -> None:
    seen = [lab(colour.border, CONES[cones]) for colour in CHANGES.values()]
    assert min(np.linalg.norm(a - b) for a, b in combinations(seen, 2)) >= 10


def test_groups_beyond_the_palette_share_a_colour() -> None:
    found = colours(tuple((f"g{i}", "") for i in range(9)))
    assert found["g0"] == GROUPS[0]
    assert found["g7"] == found["g8"] == OTHER
