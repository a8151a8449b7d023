"""Writes sequences of tasks, given the probabilities of the next step: as a sample.

The sample holds each next step as often as its probability says, so that its shares estimate probabilities. The
likeliest sequences alone, which a beam search would find, are too short where work is long: many long sequences share a
probability that none of them has. The next steps of all open prefixes are asked for at once.
"""

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

SAMPLE = 100  # sequences that are drawn for a request
_SAMPLE_SEED = 0
Prefix = tuple[int, ...]
# Probabilities [prefixes, candidates + 1] of the next step after each prefix; the last is of the end. A candidate that
# the prefix has is 0, and so is the end where the prefix is empty.
NextStep = Callable[[Sequence[Prefix]], np.ndarray]


@dataclass(frozen=True)
class Written:
    """A sequence of tasks and its probability among those of its request."""

    tasks: tuple[int, ...]
    probability: float


def sampled(next_step: NextStep, longest: int) -> list[Written]:
    """Return a systematic sample of sequences of at most `longest` steps, most frequent first; their shares sum to 1.

    Equal prefixes are continued together, so that the sample holds each next step as often as its probability says, up
    to one draw (systematic sampling, Madow 1949).
    """
    draw = np.random.default_rng(_SAMPLE_SEED)
    drawn: dict[Prefix, int] = {(): SAMPLE}
    ended: Counter[Prefix] = Counter()
    for _ in range(longest):
        longer: dict[Prefix, int] = {}
        for prefix, own in zip(drawn, next_step(list(drawn)), strict=True):
            for place, count in systematic(own, drawn[prefix], float(draw.random())):
                if place == len(own) - 1:
                    ended[prefix] += count
                else:
                    longer[*prefix, place] = count
        drawn = longer
        if not drawn:
            break
    ended.update(drawn)
    total = sum(ended.values())
    return [
        Written(chosen, count / total)
        for chosen, count in sorted(ended.items(), key=lambda sequence: (-sequence[1], sequence[0]))
    ]


def systematic(probabilities: np.ndarray, draws: int, start: float) -> list[tuple[int, int]]:
    """Return the places that are drawn, likeliest first, and how often.

    `probabilities` [k] sum to 1; `start` in [0, 1[ shifts the grid of `draws` equal steps.
    """
    order = np.argsort(-probabilities, kind="stable")
    reached = np.floor(probabilities[order].cumsum().clip(max=1.0) * draws + start)
    reached[-1] = draws  # the sum of the probabilities may miss 1 by rounding
    counts = np.diff(np.minimum(reached, draws), prepend=0.0).astype(int)
    return [(int(order[n]), int(counts[n])) for n in np.flatnonzero(counts)]
