"""Bootstrap intervals of a mean, drawn over groups of similar items. The same values give the same interval."""

from collections.abc import Hashable, Sequence

import numpy as np

_DRAWS = 2_000


def interval(values: Sequence[float], groups: Sequence[Hashable]) -> tuple[float, float]:
    """Returns the 95 % interval of the mean of `values`, each of which belongs to one of `groups`.

    Items of one group are alike, so that a draw takes whole groups. For a paired difference, pass the differences.
    """
    low, high = np.percentile(drawn_means(np.array(values), groups), [2.5, 97.5])
    return float(low), float(high)


def drawn_means(values: np.ndarray, groups: Sequence[Hashable]) -> np.ndarray:
    """Returns the mean of each draw of whole groups, [_DRAWS, ...] for values [n, ...]."""
    place = {group: n for n, group in enumerate(dict.fromkeys(groups))}
    of = np.array([place[group] for group in groups])
    draws = np.random.default_rng(0).integers(0, len(place), (_DRAWS, len(place)))
    weight = np.stack([np.bincount(drawn, minlength=len(place)) for drawn in draws])[:, of]
    return np.asarray(weight @ values / weight.sum(1).reshape(-1, *[1] * (values.ndim - 1)))
