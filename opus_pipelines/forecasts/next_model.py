"""The next activity of a running case: deep context counts, and trees over them and the case's features.

The trees are extremely randomised (Geurts, Ernst and Wehenkel 2006, "Extremely randomized trees"): their thresholds are
drawn and not searched for, so nothing is sorted. Each is grown on so few prefixes that its cost does not grow with the
history.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from opus_pipelines.forecasts.context_counts import MAX_DEPTH, ContextCounts, NextCounts
from opus_pipelines.forecasts.similar_prefixes import grown_on, prefix_weights
from opus_pipelines.forecasts.traces import FeatureOptions, TraceTable, features, gap_symbols

FOLDS = 5  # of cases: the counts that a history row sees as features hold no event of its own case
SMALL_DEPTH, GAP_DEPTH = 3, 4  # of contexts of activity and resource, and of activity and waiting time
_TREES = 60
_SMALLEST_LEAF = 5
_FEATURE_SHARE = 0.4
_SAMPLE_SHARE = 0.5
CONTEXT_SHARE = 0.05  # of the context counts in the probabilities, so that no activity that history knows is impossible


@dataclass(frozen=True)
class SymbolCounts:
    """Context counts over symbols that are made of the events."""

    counts: ContextCounts
    symbols: Callable[[TraceTable], np.ndarray]

    @classmethod
    def of(
        cls, table: TraceTable, symbols: Callable[[TraceTable], np.ndarray], kinds: int, depth: int
    ) -> "SymbolCounts":
        """The counts of a history."""
        return cls(ContextCounts(symbols(table), table.position, table.taught, kinds, depth), symbols)

    def probabilities(self, table: TraceTable) -> np.ndarray:
        """[events, activities] of what comes next after each event; each row sums to 1."""
        return self.counts.probabilities(self.symbols(table), table.position)

    def without(self, table: TraceTable, following: np.ndarray) -> "SymbolCounts":
        """The same counts less those of the events of `table`; `following` [events], -1 for an event to keep."""
        return SymbolCounts(self.counts.without(self.symbols(table), table.position, following), self.symbols)


class ContextFeatures:
    """Three context models of a history: of activities, of activities with resources, and with waiting times.

    `of_activities` are the first one's counts; None: they are counted from `table`.
    """

    def __init__(self, table: TraceTable, options: FeatureOptions, of_activities: NextCounts | None = None) -> None:
        self._options = options
        self._counts: list[NextCounts] = [
            of_activities or SymbolCounts.of(table, _activities, options.activities, MAX_DEPTH),
            SymbolCounts.of(table, self._with_resources, options.activities, SMALL_DEPTH),
            SymbolCounts.of(table, gap_symbols, options.activities, GAP_DEPTH),
        ]

    def training_rows(self, table: TraceTable, seed: int = 0) -> np.ndarray:
        """The features [events, features] of the history's own rows; the counts of a row hold nothing of its case."""
        fold = np.random.default_rng(seed).integers(0, FOLDS, len(table.is_open))
        kinds = self._options.activities
        own = np.zeros((len(table.code), 3 * kinds), np.float32)
        for number in range(FOLDS):
            part, mine = table.of_cases(fold == number), fold[table.case] == number
            following = table.taught[mine]  # not `part.taught`: a part sees its first ends at another time
            for n, counts in enumerate(self._counts):
                found = counts.without(part, following).probabilities(part)
                own[mine, n * kinds : (n + 1) * kinds] = found
        return _joined(table, self._options, own)

    def rows(self, table: TraceTable) -> np.ndarray:
        """The features [events, features] of cases that are not in the history."""
        found = [counts.probabilities(table) for counts in self._counts]
        return _joined(table, self._options, np.hstack(found).astype(np.float32))

    def _with_resources(self, table: TraceTable) -> np.ndarray:
        return table.code * self._options.resources + table.resource


class NextTrees:
    """Probabilities of the next activity. `x` [events, features] of the history `table`; see `TraceTable.taught`."""

    def __init__(self, table: TraceTable, x: np.ndarray, kinds: int, seed: int = 0) -> None:
        from sklearn.ensemble import ExtraTreesClassifier  # every run of Dagster loads this module; few forecast

        self._kinds = kinds
        seen = np.flatnonzero(table.taught >= 0)
        weights = prefix_weights(table)
        self._forest = ExtraTreesClassifier(
            _TREES,
            min_samples_leaf=_SMALLEST_LEAF,
            max_features=_FEATURE_SHARE,
            bootstrap=True,
            max_samples=grown_on(_SAMPLE_SHARE, len(seen)),
            n_jobs=-1,
            random_state=seed,
        ).fit(x[seen], table.following[seen], sample_weight=weights[seen])
        self._forest.n_jobs = 1  # threads add the trees' votes in any order, which changes the last digit

    def probabilities(self, x: np.ndarray) -> np.ndarray:
        """[rows, kinds] of the next activity, 0 the end of the case; a little of the deep contexts is mixed in."""
        found = np.zeros((len(x), self._kinds))
        found[:, self._forest.classes_] = self._forest.predict_proba(x)
        contexts = x[:, -3 * self._kinds : -2 * self._kinds].astype(float)
        contexts /= contexts.sum(axis=1, keepdims=True)
        return (1.0 - CONTEXT_SHARE) * found + CONTEXT_SHARE * contexts


def _activities(table: TraceTable) -> np.ndarray:
    return table.code


def _joined(table: TraceTable, options: FeatureOptions, contexts: np.ndarray) -> np.ndarray:
    return np.hstack([np.nan_to_num(features(table, options), nan=-1.0), contexts])
