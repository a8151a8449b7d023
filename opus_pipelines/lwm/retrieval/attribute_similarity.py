"""Similarity of cases by their attributes: the proximity of a random forest that predicts the tasks of a case.

The attributes of a case are what the client gave (an amount, a product, a country). The forest learns from the tasks of
cases which attributes matter and where a number must be split: regression trees predict which tasks and which
consecutive pairs a case holds, and the similarity of two cases is the share of trees in which they are in one leaf
(Breiman 2001; as weights of a conditional distribution, Meinshausen 2006). The start time of a case is an attribute
too, so that changed work is learnt from the cases after the change.

The expected rest of a running case is a prediction. So a case is weighted with its probability of having ended, and
where most of the latest cases still run, the forest is fitted to the time before them: otherwise it would take the
start of the predictions for a change of the work.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

import numpy as np

TREES = 40
_SEED = 0  # of the forest: the same cases give the same one
LEAST_LEAF = 25  # cases in a leaf; a leaf with few cases overfits
MOST_FIT = 6_000  # most cases that each tree is fitted to
FEATURES_TRIED = 0.5  # share of the features that are tried for each split, where there are many
FEW_FEATURES = 8  # up to so many, all are tried for each split, so that an important one is not missed
CATEGORIES = 30  # most frequent values of an attribute, each of which is a feature
LEAST_CATEGORY = 5  # least cases with such a value
NUMBER_SHARE = 0.95  # least share of an attribute's values that are numbers (or times) where it is numeric (or a time)
FEW_VALUES = 8  # up to so many distinct numbers are treated as categories
TARGETS = 60  # consecutive pairs that are predicted, in addition to the tasks
MOSTLY_ENDED = 0.8  # mean probability that consecutive cases have ended, below which most of them still run
WINDOW_SHARE = 0.05  # length of the window of consecutive cases, as a share of all cases
LEAST_WINDOW = 25  # least cases of that window
LEAST_BEFORE = 0.3  # least share of the cases before that window; with fewer, the forest is fitted to all cases
LEAST_WEIGHT = 1e-3  # weight of a case that certainly still runs
USUAL = 0.99  # a task or pair that more cases than this share have, or lack, is no target
_UNKNOWN = -1e12  # value of a missing attribute: a split separates it from every other value

Attributes = Mapping[str, str]


@dataclass
class Features:
    """Turns attributes into a matrix of features, as learnt from the attributes of a history.

    Numbers stay as they are. Times become seconds, the weekday, and the seconds between each two of them. Names
    become one column for each frequent value and one for the frequency of the value.
    """

    numbers: list[str] = field(default_factory=list)
    times: list[str] = field(default_factory=list)
    names: list[tuple[str, tuple[str, ...], Mapping[str, int]]] = field(default_factory=list)

    @classmethod
    def of(cls, history: Sequence[Attributes]) -> "Features":
        """Return the features of the attributes of a history: which are numbers, times or names."""
        features = cls()
        for key in sorted({key for case in history for key in case}):
            values = [case[key] for case in history if case.get(key)]
            counts = Counter(values)
            if len(counts) < 2:
                continue
            if _share(values, _number) >= NUMBER_SHARE and len(counts) > FEW_VALUES:
                features.numbers.append(key)
            elif _share(values, _time) >= NUMBER_SHARE:
                features.times.append(key)
            else:
                frequent = [v for v, n in counts.most_common(CATEGORIES) if LEAST_CATEGORY <= n < len(history)]
                features.names.append((key, tuple(frequent), counts))
        return features

    @property
    def known(self) -> frozenset[str]:
        """Return the attributes that have at least two values in the history."""
        return frozenset([*self.numbers, *self.times, *(key for key, *_ in self.names)])

    def of_cases(self, cases: Sequence[Attributes], began: Sequence[float | None]) -> np.ndarray:
        """Return the features [cases, features]; `began` is in seconds since 1970."""
        columns: list[list[float | None]] = [list(began)]
        columns += [[_number(case.get(key, "")) for case in cases] for key in self.numbers]
        moments = {key: [_time(case.get(key, "")) for case in cases] for key in self.times}
        for n, times in enumerate(moments.values()):
            columns.append([None if t is None else t.timestamp() for t in times])
            columns.append([None if t is None else float(t.weekday()) for t in times])
            for other in list(moments)[n + 1 :]:
                columns.append(
                    [
                        None if a is None or b is None else b.timestamp() - a.timestamp()
                        for a, b in zip(times, moments[other], strict=True)
                    ]
                )
        for key, frequent, counts in self.names:
            values = [case.get(key) for case in cases]
            columns += [[float(value == name) for value in values] for name in frequent]
            columns.append([float(counts.get(value, 0)) if value else None for value in values])
        return np.array(
            [[_UNKNOWN if value is None else value for value in column] for column in columns], np.float64
        ).T


class Proximity:
    """A random forest fitted to one history, and the weights that it gives to the cases for a new one."""

    def __init__(
        self,
        cases: Sequence[Attributes],
        began: Sequence[float | None],
        done: Sequence[frozenset[Any]],
        features: Features,
        p_ended: np.ndarray | None = None,
    ) -> None:
        """Fit the forest.

        `done` has the tasks and pairs of each case, which are the targets; `p_ended` [cases] is its probability
        of having ended (None: all have).
        """
        from sklearn.ensemble import RandomForestRegressor

        self.features = features
        self._latest = max((b for b in began if b is not None), default=None)
        matrix = np.array(features.of_cases(cases, began))
        weights = np.ones(len(done)) if p_ended is None else np.maximum(p_ended, LEAST_WEIGHT)
        training = _before_most_run(began, weights)
        targets = _targets([done[n] for n in training])
        self._forest = RandomForestRegressor(
            TREES,
            min_samples_leaf=min(LEAST_LEAF, max(1, len(training) // 4)),
            max_features=1.0 if matrix.shape[1] <= FEW_FEATURES else FEATURES_TRIED,
            max_samples=min(MOST_FIT, len(training)),
            random_state=_SEED,
            n_jobs=1,
        ).fit(matrix[training], targets, sample_weight=weights[training])
        self._leaves = self._forest.apply(matrix)
        self._of_leaf = [Counter(self._leaves[:, tree].tolist()) for tree in range(TREES)]
        self._kept: dict[bytes, np.ndarray] = {}

    def weights(self, attributes: Attributes, began: float | None) -> np.ndarray:
        """Return the weights [cases] of the cases of the history; they sum to 1.

        Where `began` is None, the start time is that of the latest case of the history.
        """
        row = self.features.of_cases([attributes], [self._latest if began is None else began])
        leaves = self._forest.apply(row)[0]
        key = leaves.tobytes()
        if key not in self._kept:
            if len(self._kept) > 1_000:
                self._kept.clear()
            weights = np.zeros(len(self._leaves))
            for tree, leaf in enumerate(leaves.tolist()):
                weights[self._leaves[:, tree] == leaf] += 1 / self._of_leaf[tree][leaf]
            self._kept[key] = weights / TREES
        return self._kept[key]


def _before_most_run(began: Sequence[float | None], p_ended: np.ndarray) -> np.ndarray:
    """Return the indices of the cases that began before the first window of which most still run.

    They are in order of time. Where fewer than `LEAST_BEFORE` of the cases began before it, all indices are
    returned.
    """
    order = np.argsort([-np.inf if b is None else b for b in began], kind="stable")
    width = min(len(order), max(LEAST_WINDOW, int(WINDOW_SHARE * len(order))))
    means = np.convolve(p_ended[order], np.ones(width) / width, "valid")
    below = np.flatnonzero(means < MOSTLY_ENDED)
    before = int(below[0]) + width // 2 if len(below) else len(order)
    return np.sort(order[:before]) if before >= LEAST_BEFORE * len(order) else np.arange(len(order))


def _targets(done: Sequence[frozenset[Any]]) -> np.ndarray:
    """Return the targets [cases, targets], 0 or 1, of the forest.

    They are the tasks and the most frequent pairs that some cases hold and others do not.
    """
    counts = Counter(item for tasks_and_pairs in done for item in tasks_and_pairs)
    informative = [i for i, n in counts.items() if (1 - USUAL) * len(done) < n < USUAL * len(done)]
    tasks = sorted(i for i in informative if isinstance(i, str))
    pairs = sorted((i for i in informative if not isinstance(i, str)), key=lambda i: (-counts[i], i))[:TARGETS]
    chosen = [*tasks, *pairs]
    return (
        np.array([[item in tasks_and_pairs for item in chosen] for tasks_and_pairs in done], np.float32)
        if chosen
        else np.zeros((len(done), 1), np.float32)
    )


def _share(values: Sequence[str], read: Any) -> float:
    return sum(read(v) is not None for v in values) / len(values)


def _number(value: str) -> float | None:
    try:
        number = float(value)
    except ValueError:
        return None
    return number if np.isfinite(number) and abs(number) < 1e300 else None


def _time(value: str) -> datetime | None:
    try:
        time = datetime.fromisoformat(value)
    except ValueError:
        return None
    return time.astimezone(UTC) if time.tzinfo else time.replace(tzinfo=UTC)
