"""Decides whether a new model replaces the champion: only when it is better on held-out history beyond the interval.

What is compared is what a request would get: the model where it serves an industry, and similar cases elsewhere.
"""

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from opus_pipelines.core.ids import digest
from opus_pipelines.workflow.metrics.intervals import interval

HELD_OUT = 4  # one case of so many is held out, by the hash of its request


def is_held_out(request: str) -> bool:
    """Returns whether cases with this request are held out: a quarter by hash, so that equal requests stay together."""
    return int(digest("held out", request)[:8], 16) % HELD_OUT == 0


class ServesBeyond:
    """Figures of a model with `low`, the lower end of the 95 % interval of its difference to what it would replace."""

    low: float

    @property
    def serves(self) -> bool:
        """Whether the model is better beyond the interval."""
        return self.low > 0


@dataclass(frozen=True)
class Figures(ServesBeyond):
    """How the model and the look-up of similar cases do on held-out cases of one industry.

    Attributes:
        cases: cases that the held-out model learnt from.
        asked: held-out cases that both were asked.
        model, similar_cases: mean F1 of the tasks.
        low, high: 95 % interval of the mean difference of the F1 of tasks, model minus similar cases.
    """

    cases: int
    asked: int
    model: float
    similar_cases: float
    low: float
    high: float


@dataclass(frozen=True)
class Judged:
    """The held-out cases of one industry, case by case.

    Attributes:
        figures: the means.
        scores: F1 [cases, 3] of the new model, of similar cases and of the champion; the last is that of similar cases
            where no champion serves the industry.
        texts: the requests; equal ones are one group of the bootstrap.
        reads: whether the new model has its task reader there, because its mean is better with it.
    """

    figures: Figures
    scores: np.ndarray
    texts: tuple[str, ...]
    reads: bool = False


@dataclass(frozen=True)
class Promotion:
    """The verdict.

    Attributes:
        promoted: whether the new model becomes the champion.
        reason: why, in words.
        against: the champion that it was compared with, None where there was none.
        difference: mean F1 of what would serve minus what serves now; None where nothing was compared.
        low, high: its 95 % interval.
    """

    promoted: bool
    reason: str
    against: str | None = None
    difference: float | None = None
    low: float | None = None
    high: float | None = None


def promotion(judged: Mapping[str, Judged], champion: str | None, serves: frozenset[str]) -> Promotion:
    """Returns whether the judged model replaces the champion, which `serves` these industries."""
    if champion is None:
        return Promotion(True, "there was no champion")
    if left_out := sorted(serves - judged.keys()):
        return Promotion(False, f"the champion also serves {', '.join(left_out)}, which was not judged", champion)
    values, groups = list[float](), list[Hashable]()
    for name, one in judged.items():
        would = one.scores[:, 0] if one.figures.serves else one.scores[:, 1]
        values += (would - one.scores[:, 2]).tolist()
        groups += [(name, text) for text in one.texts]
    return beyond(values, groups, champion)


def beyond(values: Sequence[float], groups: Sequence[Hashable], champion: str | None) -> Promotion:
    """Returns the verdict on paired differences of F1, what would serve minus what serves now, by groups of cases."""
    if len(values) < 2:
        return Promotion(False, "fewer than two held-out cases", champion)
    low, high = interval(values, groups)
    reason = "better than what served beyond the 95 % interval" if low > 0 else "not better beyond the 95 % interval"
    return Promotion(low > 0, reason, champion, round(float(np.mean(values)), 6), round(low, 6), round(high, 6))
