"""Writes sequences of tasks, given the probabilities of the next step: by a sample, or by beam search.

The sample holds each next step as often as its probability says, so that its shares estimate probabilities. Beam
search holds the likeliest sequences, which are too short where work is long: many long sequences share a probability
that none of them has. Both ask for the next steps of all open prefixes at once, and both keep the rules.
"""

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

SAMPLE = 100  # sequences that are drawn for a request
BEAM = 20  # open prefixes of a beam search, and sequences that it returns
LENGTH = 0.7  # power of the length by which the log-probability of a sequence is divided (Wu et al. 2016)
SEED = 0
Prefix = tuple[int, ...]
NextStep = Callable[[Sequence[Prefix]], np.ndarray]  # probabilities [prefixes, candidates + 1]; the last is of the end


@dataclass(frozen=True)
class Written:
    """A sequence of tasks and its probability among those of its request.

    `before` has for each step the places of the steps that are directly before it, so that the sequence is a DAG; None
    where the model does not tell them.
    """

    tasks: tuple[int, ...]
    probability: float
    before: tuple[tuple[int, ...], ...] | None = None


@dataclass(frozen=True)
class Rules:
    """What a sequence must keep; tasks are places of candidates.

    Attributes:
        required: tasks that it must have; it does not end before.
        forbidden: tasks that it must not have.
        before: pairs of tasks (u, v): where it has both, u comes first.
        longest: steps that it has at most.
    """

    longest: int
    required: frozenset[int] = frozenset()
    forbidden: frozenset[int] = frozenset()
    before: frozenset[tuple[int, int]] = frozenset()

    def allowed(self, prefix: Prefix, count: int) -> np.ndarray:
        """Return whether each of `count` candidates, and the end, may come after a prefix [count + 1].

        No task comes twice, and no sequence is empty. Where a required task is left and the rest is as long as they
        are many, they alone may come.
        """
        open_ = np.ones(count + 1, bool)
        open_[[*prefix, *self.forbidden]] = False
        open_[[u for u, v in self.before if v in prefix]] = False
        missing = self.required.difference(prefix, self.forbidden)
        open_[count] = bool(prefix) and not missing
        if missing and self.longest - len(prefix) <= len(missing):
            only = np.zeros(count + 1, bool)
            only[list(missing)] = True
            open_ &= only
        return open_


def sampled(next_step: NextStep, rules: Rules) -> list[Written]:
    """Return a systematic sample of sequences, most frequent first; their shares sum to 1.

    Equal prefixes are continued together, so that the sample holds each next step as often as its probability says, up
    to one draw (systematic sampling, Madow 1949).
    """
    draw = np.random.default_rng(SEED)
    drawn: dict[Prefix, int] = {(): SAMPLE}
    ended: Counter[Prefix] = Counter()
    for _ in range(rules.longest):
        longer: dict[Prefix, int] = {}
        for prefix, own in zip(drawn, _kept(next_step, list(drawn), rules), strict=True):
            if own is None:
                ended[prefix] += drawn[prefix]
                continue
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


def by_beam(next_step: NextStep, rules: Rules, width: int = BEAM) -> list[Written]:
    """Return the sequences of a beam search, best first; their probabilities are rescaled to sum to 1.

    The open prefixes are ordered by their probability, and the sequences by log p / length^`LENGTH`.
    """
    beam: dict[Prefix, float] = {(): 0.0}
    ended: dict[Prefix, float] = {}
    for step in range(rules.longest + 1):
        longer: dict[Prefix, float] = {}
        for prefix, own in zip(beam, _kept(next_step, list(beam), rules), strict=True):
            if own is None or step == rules.longest:
                ended[prefix] = beam[prefix]
                continue
            for place in np.argsort(-own, kind="stable")[: width + 1].tolist():
                if own[place] > 0.0:
                    score = beam[prefix] + float(np.log(own[place]))
                    (ended if place == len(own) - 1 else longer)[
                        prefix if place == len(own) - 1 else (*prefix, place)
                    ] = score
        beam = dict(sorted(longer.items(), key=lambda one: (-one[1], one[0]))[:width])
        if not beam:
            break
    rank = lambda one: (-one[1] / max(1, len(one[0])) ** LENGTH, one[0])
    best = sorted(ended.items(), key=rank)[:width]
    weights = np.exp(np.array([score for _, score in best]) - max(score for _, score in best))
    return [Written(chosen, float(share)) for (chosen, _), share in zip(best, weights / weights.sum(), strict=True)]


def systematic(probabilities: np.ndarray, draws: int, start: float) -> list[tuple[int, int]]:
    """Return the places that are drawn, likeliest first, and how often.

    `probabilities` [k] sum to 1; `start` in [0, 1[ shifts the grid of `draws` equal steps.
    """
    order = np.argsort(-probabilities, kind="stable")
    reached = np.floor(probabilities[order].cumsum().clip(max=1.0) * draws + start)
    reached[-1] = draws  # the sum of the probabilities may miss 1 by rounding
    counts = np.diff(np.minimum(reached, draws), prepend=0.0).astype(int)
    return [(int(order[n]), int(counts[n])) for n in np.flatnonzero(counts)]


def _kept(next_step: NextStep, prefixes: Sequence[Prefix], rules: Rules) -> list[np.ndarray | None]:
    """Return the probabilities of the steps that the rules allow; None where they allow none, so that it ends there."""
    found: list[np.ndarray | None] = []
    for prefix, own in zip(prefixes, next_step(prefixes), strict=True):
        kept = np.where(rules.allowed(prefix, len(own) - 1), own, 0.0)
        total = float(kept.sum())
        if np.array_equal(kept, own):  # nothing is scaled, so that no rounding decides
            found.append(own)
        else:
            found.append(kept / total if total > 0.0 else None)
    return found
