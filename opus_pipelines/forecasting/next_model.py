"""The next activity of a running case: deep context counts, and trees over them and the case's features.

The mean of a random forest and of gradient-boosted trees is used: its log-loss is lower than that of either.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from threadpoolctl import threadpool_limits

from opus_pipelines.forecasting.context_counts import MAX_DEPTH, ContextCounts
from opus_pipelines.forecasting.features import FeatureOptions, features, gap_symbols
from opus_pipelines.forecasting.lake_contexts import NextCounts
from opus_pipelines.forecasting.similar_prefixes import prefix_weights
from opus_pipelines.forecasting.traces import TraceTable

FOLDS = 5  # of cases: the counts that a history row sees as features hold no event of its own case
SMALL_DEPTH, GAP_DEPTH = 3, 4  # of contexts of activity and resource, and of activity and waiting time
TREES = 60
SMALLEST_LEAF = 5
FEATURE_SHARE = 0.2
SAMPLE_SHARE = 0.5
ROUNDS, LEAVES, RATE, SMALLEST_BOOSTED_LEAF = 60, 15, 0.06, 40  # of the boosted trees
MIN_BOOSTED_ROWS = 20_000  # events, below which the forest alone is as often right, and learnt much sooner
MAX_BOOSTED_ROWS = 60_000  # events that they learn from, the newest
MAX_BOOSTED_KINDS = 40  # next activities, above which the forest alone is used: each has a tree in every round
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
        fold = np.random.default_rng(seed).integers(0, FOLDS, len(table.is_open))[table.case]
        kinds = self._options.activities
        own = np.zeros((len(table.code), 3 * kinds), np.float32)
        for number in range(FOLDS):
            mine = fold == number
            following = np.where(mine, table.taught, -1)
            for n, counts in enumerate(self._counts):
                found = counts.without(table, following).probabilities(table)
                own[mine, n * kinds : (n + 1) * kinds] = found[mine]
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
        self._kinds = kinds
        seen = np.flatnonzero(table.taught >= 0)
        weights = prefix_weights(table)
        self._forest = RandomForestClassifier(
            TREES,
            min_samples_leaf=SMALLEST_LEAF,
            max_features=FEATURE_SHARE,
            max_samples=max(1, round(SAMPLE_SHARE * len(seen))),
            n_jobs=-1,
            random_state=seed,
        ).fit(x[seen], table.following[seen], sample_weight=weights[seen])
        self._forest.n_jobs = 1  # threads add the trees' votes in any order, which changes the last digit
        newest = seen[np.sort(np.argsort(-table.time[seen], kind="stable")[:MAX_BOOSTED_ROWS])]
        self._boosted = None
        kinds_seen = len(np.unique(table.following[newest]))
        if len(newest) >= MIN_BOOSTED_ROWS and 1 < kinds_seen <= MAX_BOOSTED_KINDS:
            self._boosted = _boosted(x[newest], table.following[newest], weights[newest], seed)

    def probabilities(self, x: np.ndarray) -> np.ndarray:
        """[rows, kinds] of the next activity, 0 the end of the case; a little of the deep contexts is mixed in."""
        found = np.zeros((len(x), self._kinds))
        found[:, self._forest.classes_] = self._forest.predict_proba(x)
        if self._boosted is not None:
            found[:, self._boosted.classes_] += self._boosted.predict_proba(x)
            found /= 2.0
        contexts = x[:, -3 * self._kinds : -2 * self._kinds].astype(float)
        contexts /= contexts.sum(axis=1, keepdims=True)
        return (1.0 - CONTEXT_SHARE) * found + CONTEXT_SHARE * contexts


def _boosted(x: np.ndarray, y: np.ndarray, weights: np.ndarray, seed: int) -> HistGradientBoostingClassifier:
    model = HistGradientBoostingClassifier(
        max_iter=ROUNDS,
        max_leaf_nodes=LEAVES,
        learning_rate=RATE,
        min_samples_leaf=SMALLEST_BOOSTED_LEAF,
        l2_regularization=1.0,
        early_stopping=False,
        random_state=seed,
    )
    with threadpool_limits(1, "openmp"):  # threads add gradients in any order, which changes the last digit
        return model.fit(x, y, sample_weight=weights)


def _activities(table: TraceTable) -> np.ndarray:
    return table.code


def _joined(table: TraceTable, options: FeatureOptions, contexts: np.ndarray) -> np.ndarray:
    return np.hstack([np.nan_to_num(features(table, options), nan=-1.0), contexts])
