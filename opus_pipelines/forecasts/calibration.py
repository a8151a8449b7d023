"""Intervals of the remaining time that hold as often as they say: levels chosen on cases that were not learnt from."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from opus_pipelines.forecasts.features import FeatureOptions
from opus_pipelines.forecasts.next_model import ContextFeatures
from opus_pipelines.forecasts.similar_prefixes import PrefixForest, SimilarPrefixes, prefix_weights, quantile
from opus_pipelines.forecasts.traces import Trace, TraceTable, Vocabulary

LEVELS = (0.05, 0.95)  # of the intervals where they cannot be calibrated
HELD = 0.9  # share of the truths that an interval is to hold
CALIBRATION_SHARE = 0.2  # of the cases, on which the levels are calibrated
LOW_LEVELS = np.linspace(0.0, 0.1, 11)  # among which the lower level is chosen
HIGH_LEVELS = (0.85, 0.985)  # between which the upper one lies
MIN_CALIBRATED = 200  # prefixes below which the levels stay as they are
MAX_CALIBRATED = 2000


@dataclass(frozen=True)
class Calibration:
    """The levels of the quantiles that bound the remaining time."""

    low: float = LEVELS[0]
    high: float = LEVELS[1]

    def interval(self, values: np.ndarray, mass: np.ndarray) -> tuple[float, float]:
        """The ends of the interval of sorted `values` [n] with their `mass` [n]."""
        return quantile(values, mass, self.low), quantile(values, mass, self.high)


def calibrated(traces: Sequence[Trace], calendar: bool, seed: int) -> Calibration:
    """The levels that hold 90 % of the remaining times of a fifth of the cases, forecast from the others.

    That is distributional conformal prediction (Chernozhukov, Wüthrich and Zhu 2021, algorithm 1). Of all pairs of
    levels that hold as many, the one with the shortest intervals is taken, as in their section 3.2: remaining times
    have a long upper tail, which intervals with equal tails would reach far into. The fifth is drawn from all cases and
    is not the newest: of those many are still open, and what came before them often did not last long enough to tell
    how long work takes, so that levels from them came out far too wide.
    """
    held_out = np.random.default_rng(seed).random(len(traces)) < CALIBRATION_SHARE
    older = [t for t, out in zip(traces, held_out, strict=True) if not out]
    newer = [t for t, out in zip(traces, held_out, strict=True) if out]
    if sum(not t.is_open for t in older) < MIN_CALIBRATED or sum(len(t.activities) for t in newer) < MIN_CALIBRATED:
        return Calibration()
    vocabulary = Vocabulary.of(older)
    options = FeatureOptions(len(vocabulary.activities), len(vocabulary.resources), calendar)
    table = vocabulary.table(older)
    contexts = ContextFeatures(table, options)
    forest = PrefixForest(table, contexts.training_rows(table, seed), seed)
    tested = vocabulary.table(newer)
    until = max(t.times[-1] for t in traces)
    is_open = tested.is_open[tested.case]
    truth = np.where(is_open, until - tested.time, tested.remaining)
    weights = prefix_weights(tested) * (table.ends_seen_at <= tested.time)
    size = min(MAX_CALIBRATED, int((weights > 0).sum()))
    if size < MIN_CALIBRATED:
        return Calibration()
    rows = np.sort(np.random.default_rng(seed).choice(len(weights), size, replace=False, p=weights / weights.sum()))
    similar = forest.similar(contexts.rows(tested)[rows], tested.code[rows])
    return _shortest(similar, table, truth[rows], ~is_open[rows])


def _shortest(
    similar: Sequence[SimilarPrefixes], table: TraceTable, truth: np.ndarray, ended: np.ndarray
) -> Calibration:
    """The levels with the shortest intervals; `truth` [cases] is a lower bound where not `ended` [cases]."""
    upto, below = np.zeros(len(truth)), np.zeros(len(truth))
    for n, (like, seconds) in enumerate(zip(similar, truth, strict=True)):
        values = table.remaining[like.rows]
        upto[n], below[n] = like.mass[values <= seconds].sum(), like.mass[values < seconds].sum()
    best, shortest = Calibration(), np.inf
    for low in LOW_LEVELS.tolist():
        missed = _censored_share(upto, ended, low)
        if missed > 1.0 - HELD:
            break
        high = float(np.clip(_censored_quantile(below, ended, missed + HELD), *HIGH_LEVELS))
        one = Calibration(low, high)
        ends = np.array([one.interval(table.remaining[like.rows], like.mass) for like in similar])
        width = float((ends[:, 1] - ends[:, 0]).mean())
        if width < shortest:
            best, shortest = one, width
    return best


def _censored_share(values: np.ndarray, seen: np.ndarray, below: float) -> float:
    """The Kaplan-Meier share of `values` [n] that lie below the number; lower bounds where not `seen` [n]."""
    order = np.lexsort((~seen, values))
    hazard = np.where(seen[order], 1.0 / np.arange(len(values), 0, -1), 0.0)
    return float(1.0 - np.prod(1.0 - hazard[values[order] < below - 1e-12]))


def _censored_quantile(values: np.ndarray, seen: np.ndarray, level: float) -> float:
    """The Kaplan-Meier quantile of `values` [n], which are lower bounds where not `seen` [n]; `level` itself where too
    few are seen to tell.
    """
    order = np.lexsort((~seen, values))
    hazard = np.where(seen[order], 1.0 / np.arange(len(values), 0, -1), 0.0)
    place = int(np.searchsorted(1.0 - np.cumprod(1.0 - hazard), level - 1e-12))
    return float(values[order][place]) if place < len(values) else level
