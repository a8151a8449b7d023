"""The one suffix that is nearest to all that may follow: the medoid under the restricted Damerau-Levenshtein distance.

The distance is computed bit-parallel for many pairs at once: Hyyrö (2003), "A bit-vector algorithm for computing
Levenshtein and Damerau edit distances", figure 6 (restricted: no substring is edited twice).
"""

from collections.abc import Sequence

import numpy as np

LONGEST = 63  # activities of a suffix that are compared; a longer one is cut there
_ONE = np.uint64(1)


class SuffixTable:
    """Suffixes as rows of numbers, compared by pairs. `suffixes`: tuples of activity codes, none empty."""

    def __init__(self, suffixes: Sequence[tuple[int, ...]]) -> None:
        self.suffixes = suffixes
        cut = [s[:LONGEST] for s in suffixes]
        self.length = np.array([len(s) for s in cut], np.int64)
        self._text = np.full((len(cut), int(self.length.max(initial=1))), -1, np.int64)
        for row, s in enumerate(cut):
            self._text[row, : len(s)] = s
        kinds = int(self._text.max(initial=0)) + 2
        self._masks = np.zeros((len(cut), kinds), np.uint64)  # bit i of [suffix, activity]: the activity stands at i
        for i in range(self._text.shape[1]):
            rows = np.flatnonzero(self.length > i)
            self._masks[rows, self._text[rows, i]] |= _ONE << np.uint64(i)

    def similarity(self, left: np.ndarray, right: np.ndarray) -> np.ndarray:
        """[pairs] 1 - distance / length of the longer, of the suffixes `left` and `right` [pairs]."""
        return 1.0 - self._distance(left, right) / np.maximum(self.length[left], self.length[right])

    def _distance(self, left: np.ndarray, right: np.ndarray) -> np.ndarray:
        order = np.argsort(-self.length[right], kind="stable")  # the pairs still running stand in front
        left, right = left[order], right[order]
        lengths, score = self.length[right], self.length[left].copy()
        top = _ONE << (self.length[left] - 1).astype(np.uint64)
        positive = np.full(len(left), ~np.uint64(0))
        negative, zero, before = (np.zeros(len(left), np.uint64) for _ in range(3))
        for column in range(int(lengths.max(initial=0))):
            n = int(np.searchsorted(-lengths, -column, side="left"))
            match = self._masks[left[:n], self._text[right[:n], column]]
            vp, vn = positive[:n], negative[:n]
            swapped = ((~zero[:n] & match) << _ONE) & before[:n]
            diagonal = (((match & vp) + vp) ^ vp) | match | vn | swapped
            up, down = vn | ~(diagonal | vp), diagonal & vp
            score[:n] += ((up & top[:n]) != 0).astype(np.int64) - ((down & top[:n]) != 0).astype(np.int64)
            up, down = (up << _ONE) | _ONE, down << _ONE
            positive[:n], negative[:n] = down | ~(diagonal | up), up & diagonal
            zero[:n], before[:n] = diagonal, match
        found = np.empty_like(score)
        found[order] = score
        return found


def medoid(weights: np.ndarray, similarity: np.ndarray) -> int:
    """Row of the candidate whose expected similarity to the weighted suffixes is highest.

    `similarity` [candidates, suffixes], `weights` [suffixes]. Ties go to the first row.
    """
    return int(np.argmax(np.round(similarity @ weights, 12)))
