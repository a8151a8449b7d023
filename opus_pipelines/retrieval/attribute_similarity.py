"""Similarity of cases by their attributes: how often a random forest that predicts what was done puts two of them into
one leaf.

A case's attributes are what the client gave (an amount, a product, a country). Which of them matter, and where a number
must be cut, is learnt from what the cases did: a forest of regression trees predicts which tasks and which consecutive
pairs a case holds, and two cases are as similar as their share of common leaves says (Breiman 2001; as weights of a
conditional distribution, Meinshausen 2006). When a case began counts as an attribute, so that work which has changed is
told by the cases since then.

What a case that still runs is expected to do is a guess. So it teaches the forest as much as its chance to have ended,
and where the latest cases mostly still run, the forest learns from the time before: it would take the start of the
guesses for a change of the work.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

import numpy as np

TREES = 40
LEAST_LEAF = 25  # cases a leaf; a leaf of few cases repeats them
MOST_FIT = 6_000  # cases that each tree is grown from
FEATURES_TRIED = 0.5  # share of the features looked at for each cut, where they are many
FEW_FEATURES = 8  # up to which all of them are looked at: the one that matters must not be missed
CATEGORIES = 30  # values of one attribute that are told apart, the most frequent ones
LEAST_CATEGORY = 5  # cases that hold such a value
NUMBER_SHARE = 0.95  # of an attribute's values that must be numbers, or times, for it to be one
FEW_VALUES = 8  # distinct numbers up to which they are taken for names
TARGETS = 60  # consecutive pairs that are predicted, beside the tasks
MOSTLY_ENDED = 0.8  # mean chance to have ended of consecutive cases, below which they mostly still run
WINDOW_SHARE = 0.05  # of the cases, that many consecutive ones
LEAST_WINDOW = 25  # cases
LEAST_BEFORE = 0.3  # share of the cases that must lie before, or the forest learns from all of them
LEAST_WEIGHT = 1e-3  # of a case that surely still runs
USUAL = 0.99  # share of the cases from which a task or pair tells nothing
_UNKNOWN = -1e12  # of an attribute that is not there: a cut tells it apart from every value

Attributes = Mapping[str, str]


@dataclass
class Features:
    """Turns attributes into numbers in the way that was learnt from a history: numbers as they are, times as seconds,
    weekday and the days between any two of them, names as one column for each frequent value and one for the
    value's frequency.
    """

    numbers: list[str] = field(default_factory=list)
    times: list[str] = field(default_factory=list)
    names: list[tuple[str, tuple[str, ...], Mapping[str, int]]] = field(default_factory=list)

    @classmethod
    def of(cls, history: Sequence[Attributes]) -> "Features":
        """What the attributes of a history are."""
        made = cls()
        for key in sorted({key for one in history for key in one}):
            values = [one[key] for one in history if one.get(key)]
            counts = Counter(values)
            if len(counts) < 2:
                continue
            if _share(values, _number) >= NUMBER_SHARE and len(counts) > FEW_VALUES:
                made.numbers.append(key)
            elif _share(values, _time) >= NUMBER_SHARE:
                made.times.append(key)
            else:
                frequent = [v for v, n in counts.most_common(CATEGORIES) if LEAST_CATEGORY <= n < len(history)]
                made.names.append((key, tuple(frequent), counts))
        return made

    @property
    def known(self) -> frozenset[str]:
        """Attributes that tell something."""
        return frozenset([*self.numbers, *self.times, *(key for key, *_ in self.names)])

    def of_cases(self, cases: Sequence[Attributes], began: Sequence[float | None]) -> np.ndarray:
        """[cases, features]; `began` in seconds since 1970."""
        columns: list[list[float | None]] = [list(began)]
        columns += [[_number(one.get(key, "")) for one in cases] for key in self.numbers]
        moments = {key: [_time(one.get(key, "")) for one in cases] for key in self.times}
        for n, found in enumerate(moments.values()):
            columns.append([None if t is None else t.timestamp() for t in found])
            columns.append([None if t is None else float(t.weekday()) for t in found])
            for other in list(moments)[n + 1 :]:
                columns.append(
                    [
                        None if a is None or b is None else b.timestamp() - a.timestamp()
                        for a, b in zip(found, moments[other], strict=True)
                    ]
                )
        for key, frequent, counts in self.names:
            values = [one.get(key) for one in cases]
            columns += [[float(value == name) for value in values] for name in frequent]
            columns.append([float(counts.get(value, 0)) if value else None for value in values])
        return np.array(
            [[_UNKNOWN if value is None else value for value in column] for column in columns], np.float64
        ).T


class Proximity:
    """The forest of one history, and the weights that it gives its cases for a new one."""

    def __init__(
        self,
        cases: Sequence[Attributes],
        began: Sequence[float | None],
        done: Sequence[frozenset[Any]],
        features: Features,
        p_ended: np.ndarray | None = None,
        seed: int = 0,
    ) -> None:
        """`done`: the tasks and pairs of each case, the forest's targets; `p_ended` [cases]: its chance to have ended,
        None: all have.
        """
        from sklearn.ensemble import RandomForestRegressor

        self.features = features
        self._latest = max((b for b in began if b is not None), default=None)
        held = np.array(features.of_cases(cases, began))
        weights = np.ones(len(done)) if p_ended is None else np.maximum(p_ended, LEAST_WEIGHT)
        taught = _before_most_run(began, weights)
        targets = _targets([done[n] for n in taught])
        self._forest = RandomForestRegressor(
            TREES,
            min_samples_leaf=min(LEAST_LEAF, max(1, len(taught) // 4)),
            max_features=1.0 if held.shape[1] <= FEW_FEATURES else FEATURES_TRIED,
            max_samples=min(MOST_FIT, len(taught)),
            random_state=seed,
            n_jobs=1,
        ).fit(held[taught], targets, sample_weight=weights[taught])
        self._leaves = self._forest.apply(held)
        self._of_leaf = [Counter(self._leaves[:, tree].tolist()) for tree in range(TREES)]
        self._kept: dict[bytes, np.ndarray] = {}

    def weights(self, attributes: Attributes, began: float | None) -> np.ndarray:
        """[cases]: sums to 1. `began` unknown: now, that is, as the latest case of this history."""
        row = self.features.of_cases([attributes], [self._latest if began is None else began])
        leaves = self._forest.apply(row)[0]
        key = leaves.tobytes()
        if key not in self._kept:
            if len(self._kept) > 1_000:
                self._kept.clear()
            found = np.zeros(len(self._leaves))
            for tree, leaf in enumerate(leaves.tolist()):
                found[self._leaves[:, tree] == leaf] += 1 / self._of_leaf[tree][leaf]
            self._kept[key] = found / TREES
        return self._kept[key]


def _before_most_run(began: Sequence[float | None], p_ended: np.ndarray) -> np.ndarray:
    """Places of the cases, in order of time, that began before the latest ones of which most still run; of all cases
    where too few did.
    """
    order = np.argsort([-np.inf if b is None else b for b in began], kind="stable")
    width = min(len(order), max(LEAST_WINDOW, int(WINDOW_SHARE * len(order))))
    means = np.convolve(p_ended[order], np.ones(width) / width, "valid")
    below = np.flatnonzero(means < MOSTLY_ENDED)
    before = int(below[0]) + width // 2 if len(below) else len(order)
    return np.sort(order[:before]) if before >= LEAST_BEFORE * len(order) else np.arange(len(order))


def _targets(done: Sequence[frozenset[Any]]) -> np.ndarray:
    """[cases, targets] 0 or 1: the tasks, and the most frequent pairs, that some cases hold and others do not."""
    counts = Counter(item for held in done for item in held)
    told = [i for i, n in counts.items() if (1 - USUAL) * len(done) < n < USUAL * len(done)]
    tasks = sorted(i for i in told if isinstance(i, str))
    pairs = sorted((i for i in told if not isinstance(i, str)), key=lambda i: (-counts[i], i))[:TARGETS]
    chosen = [*tasks, *pairs]
    return (
        np.array([[item in held for item in chosen] for held in done], np.float32)
        if chosen
        else np.zeros((len(done), 1), np.float32)
    )


def _share(values: Sequence[str], read: Any) -> float:
    return sum(read(v) is not None for v in values) / len(values)


def _number(value: str) -> float | None:
    try:
        found = float(value)
    except ValueError:
        return None
    return found if np.isfinite(found) and abs(found) < 1e300 else None


def _time(value: str) -> datetime | None:
    try:
        found = datetime.fromisoformat(value)
    except ValueError:
        return None
    return found.astimezone(UTC) if found.tzinfo else found.replace(tzinfo=UTC)
