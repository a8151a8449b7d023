"""The next activity of a running case: deep context counts, and a random forest over them and the case's features."""

import numpy as np
from sklearn.ensemble import RandomForestClassifier

from opus_pipelines.forecasting.context_counts import ContextCounts
from opus_pipelines.forecasting.features import FeatureOptions, features, gap_symbols
from opus_pipelines.forecasting.similar_prefixes import prefix_weights
from opus_pipelines.forecasting.traces import TraceTable

FOLDS = 5  # of cases: the counts that a history row sees as features hold no event of its own case
SMALL_DEPTH, GAP_DEPTH = 3, 4  # of contexts of activity and resource, and of activity and waiting time
TREES = 60
SMALLEST_LEAF = 5
FEATURE_SHARE = 0.2
SAMPLE_SHARE = 0.5
CONTEXT_SHARE = 0.05  # of the context counts in the probabilities, so that no activity that history knows is impossible


class ContextFeatures:
    """Three context models of a history: of activities, of activities with resources, and with waiting times."""

    def __init__(self, table: TraceTable, options: FeatureOptions) -> None:
        self._options = options
        self._counts = [self._fitted(table, table.following, n) for n in range(3)]

    @classmethod
    def with_training_rows(
        cls, table: TraceTable, options: FeatureOptions, seed: int = 0
    ) -> tuple["ContextFeatures", np.ndarray]:
        """The context models, and the features [events, features] of the history's own rows, cross-fitted by case."""
        model = cls(table, options)
        fold = np.random.default_rng(seed).integers(0, FOLDS, len(table.is_open))[table.case]
        own = np.zeros((len(table.code), 3 * options.activities), np.float32)
        for number in range(FOLDS):
            mine = fold == number
            for n in range(3):
                counts = model._fitted(table, np.where(mine, -1, table.following), n)
                block = slice(n * options.activities, (n + 1) * options.activities)
                own[mine, block] = counts.probabilities(model._symbols(table, n)[mine], table.position[mine])
        return model, _joined(table, options, own)

    def rows(self, table: TraceTable) -> np.ndarray:
        """The features [events, features] of cases that are not in the history."""
        found = [c.probabilities(self._symbols(table, n), table.position) for n, c in enumerate(self._counts)]
        return _joined(table, self._options, np.hstack(found).astype(np.float32))

    def counts(self) -> ContextCounts:
        """The context counts of activities alone."""
        return self._counts[0]

    def _symbols(self, table: TraceTable, n: int) -> np.ndarray:
        if n == 0:
            return table.code
        return table.code * self._options.resources + table.resource if n == 1 else gap_symbols(table)

    def _fitted(self, table: TraceTable, following: np.ndarray, n: int) -> ContextCounts:
        kinds = self._options.activities
        if n == 0:
            return ContextCounts(table.code, table.position, following, kinds)
        depth = SMALL_DEPTH if n == 1 else GAP_DEPTH
        return ContextCounts(self._symbols(table, n), table.position, following, kinds, depth)


class NextForest:
    """Probabilities of the next activity. `x` [events, features] of the history `table`; open ends teach nothing."""

    def __init__(self, table: TraceTable, x: np.ndarray, kinds: int, seed: int = 0) -> None:
        self._kinds = kinds
        seen = table.following >= 0
        self._forest = RandomForestClassifier(
            TREES,
            min_samples_leaf=SMALLEST_LEAF,
            max_features=FEATURE_SHARE,
            max_samples=max(1, round(SAMPLE_SHARE * int(seen.sum()))),
            n_jobs=-1,
            random_state=seed,
        ).fit(x[seen], table.following[seen], sample_weight=prefix_weights(table)[seen])
        self._forest.n_jobs = 1  # threads add the trees' votes in any order, which changes the last digit

    def probabilities(self, x: np.ndarray) -> np.ndarray:
        """[rows, kinds] of the next activity, 0 the end of the case; a little of the deep contexts is mixed in."""
        found = np.zeros((len(x), self._kinds))
        found[:, self._forest.classes_] = self._forest.predict_proba(x)
        contexts = x[:, -3 * self._kinds : -2 * self._kinds].astype(float)
        contexts /= contexts.sum(axis=1, keepdims=True)
        return (1.0 - CONTEXT_SHARE) * found + CONTEXT_SHARE * contexts


def _joined(table: TraceTable, options: FeatureOptions, contexts: np.ndarray) -> np.ndarray:
    return np.hstack([np.nan_to_num(features(table, options), nan=-1.0), contexts])
