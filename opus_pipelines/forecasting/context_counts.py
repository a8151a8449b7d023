"""How often each activity followed each context: the last d events, d up to ten, backed off with a discount.

The counts of a context are interpolated with those of the next shorter one by absolute discounting: Ney, Essen and
Kneser (1994), "On structuring probabilistic dependences in stochastic language modelling", equation 12. A context
begins at the start of its case at the earliest, and the start is part of it.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

MAX_DEPTH = 10
START = 0  # the symbol in front of the first event of a case


@dataclass(frozen=True)
class _Depth:
    """Counts of the contexts of one depth.

    `keys` [contexts]: sorted, (number of the shorter context) · `base` + the symbol before it; a context's number is
    its place here. `pair_context`, `pair_next`, `pair_count` [pairs]: the sorted table of counts; `begin`
    [contexts + 1]: where the pairs of a context begin.
    """

    keys: np.ndarray
    base: int
    pair_next: np.ndarray
    pair_count: np.ndarray
    begin: np.ndarray
    discount: float


class ContextCounts:
    """Counts of what followed each context, and the probabilities that they give.

    `symbol` [events] is what a context is made of, at least 1 (an activity, or an activity and who did it); `position`
    [events] the place of each event in its case, from 0; `following` [events] what came next, from 0 to `kinds` - 1, or
    -1 where nobody saw it: such an event counts in no context.
    """

    def __init__(
        self, symbol: np.ndarray, position: np.ndarray, following: np.ndarray, kinds: int, max_depth: int = MAX_DEPTH
    ) -> None:
        self.kinds, self.max_depth = kinds, max_depth
        base = int(symbol.max(initial=0)) + 2
        seen = following >= 0
        after = np.bincount(following[seen], minlength=kinds).astype(float)
        self._shortest = (after + 0.5) / (after + 0.5).sum()
        self._depths: list[_Depth] = []
        context = np.zeros(len(symbol), np.int64)
        for depth in range(1, max_depth + 1):
            known = seen & (context >= 0) & (position + 2 >= depth)
            key = np.where(known, context * base + _before(symbol, position, depth), -1)
            keys, number = np.unique(key[known], return_inverse=True)
            if not len(keys):
                break
            context = np.full(len(symbol), -1, np.int64)
            context[known] = number
            self._depths.append(_counted(keys, base, number, following[known], kinds))

    def probabilities(self, symbol: np.ndarray, position: np.ndarray) -> np.ndarray:
        """[events, kinds] of what comes next after each event; each row sums to 1."""
        found = np.tile(self._shortest, (len(symbol), 1))
        for depth, number in self._known(symbol, position):
            rows = np.flatnonzero(number >= 0)
            here = number[rows]
            sizes = depth.begin[here + 1] - depth.begin[here]
            total = np.add.reduceat(depth.pair_count, depth.begin[:-1])[here].astype(float)
            found[rows] *= (depth.discount * sizes / total)[:, None]
            pairs = np.repeat(depth.begin[here] - np.append(0, sizes.cumsum()[:-1]), sizes) + np.arange(sizes.sum())
            found[np.repeat(rows, sizes), depth.pair_next[pairs]] += (
                depth.pair_count[pairs] - depth.discount
            ) / np.repeat(total, sizes)
        return found

    def evidence(self, symbol: np.ndarray, position: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """[events] the depth of the longest known context of each event, and how often that context was seen."""
        longest, seen = np.zeros(len(symbol)), np.zeros(len(symbol))
        for n, (depth, number) in enumerate(self._known(symbol, position), start=1):
            rows = number >= 0
            longest[rows] = n
            seen[rows] = np.add.reduceat(depth.pair_count, depth.begin[:-1])[number[rows]]
        return longest, seen

    def _known(self, symbol: np.ndarray, position: np.ndarray) -> Iterator[tuple[_Depth, np.ndarray]]:
        """By depth, the number of each event's context [events]; -1 where it was never seen."""
        context = np.zeros(len(symbol), np.int64)
        for n, depth in enumerate(self._depths, start=1):
            before = _before(symbol, position, n)
            possible = (context >= 0) & (position + 2 >= n) & (before < depth.base)
            key = np.where(possible, context * depth.base + before, -1)
            place = np.minimum(np.searchsorted(depth.keys, key), len(depth.keys) - 1)
            context = np.where(possible & (depth.keys[place] == key), place, -1)
            yield depth, context


def _before(symbol: np.ndarray, position: np.ndarray, depth: int) -> np.ndarray:
    """[events] the symbol `depth` - 1 events before each; `START` where the case began there."""
    shifted = np.concatenate([np.zeros(depth - 1, np.int64), symbol])[: len(symbol)]
    return np.where(position + 1 >= depth, shifted, START)


def _counted(keys: np.ndarray, base: int, number: np.ndarray, following: np.ndarray, kinds: int) -> _Depth:
    pairs, counts = np.unique(number * kinds + following, return_counts=True)
    once, twice = int((counts == 1).sum()), int((counts == 2).sum())
    begin = np.searchsorted(pairs // kinds, np.arange(len(keys) + 1))
    # Ney's estimate of the discount; one that would leave a pair nothing, or take nothing, serves no back-off.
    discount = float(np.clip(once / max(1.0, once + 2.0 * twice), 0.1, 0.95))
    return _Depth(keys, base, pairs % kinds, counts, begin, discount)
