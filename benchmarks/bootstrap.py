"""Computes bootstrap intervals for the benchmarks: of a mean, and of paired differences.

Samples are drawn over groups of similar intakes.
"""

from collections.abc import Hashable, Mapping, Sequence

import numpy as np

DRAWS = 2_000


def interval(values: Sequence[float], groups: Sequence[Hashable]) -> tuple[float, float]:
    """Returns the 95 % interval of the mean.

    The bootstrap draws groups: goals, or single intakes. The same values give the same interval.
    """
    place = {group: n for n, group in enumerate(dict.fromkeys(groups))}
    of = np.array([place[group] for group in groups])
    draws = np.random.default_rng(0).integers(0, len(place), (DRAWS, len(place)))
    weight = np.stack([np.bincount(drawn, minlength=len(place)) for drawn in draws])[:, of]
    low, high = np.percentile(weight @ np.array(values) / weight.sum(1), [2.5, 97.5])
    return float(low), float(high)


def print_differences(
    found: Mapping[str, Sequence[float]], against: Mapping[str, str], measure: str, groups: Sequence[Hashable]
) -> None:
    """Prints for each row named in `against` the other row minus it, intake by intake.

    An interval that contains 0 shows nothing.
    """
    print(f"\n{measure}, paired differences")
    for name, base in against.items():
        less = np.array(found[base]) - np.array(found[name])
        low, high = interval(less.tolist(), groups)
        print(f"{f'{base} less {name}':46}{less.mean():10.3f} [{low:.3f}, {high:.3f}]")
