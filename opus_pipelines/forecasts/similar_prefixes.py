"""What came of past cases that were like a running one. A forest says how alike they are; all outcomes are read there.

The forest is a quantile regression forest (Meinshausen 2006, "Quantile regression forests", equations 4 and 5): a
past prefix weighs as much as it shares leaves with the running one, and it ends with the same activity where enough
do. It is grown on what follows: the activities of the rest of the case and the remaining time. Cases that were still
open are not dropped, since the long ones would be missing: they count as long as they were seen (Kaplan and Meier
1958). Nor does a case that is in the history only because it lasted until ends were recorded make the work look
longer: it counts from that moment (delayed entry: Lynden-Bell 1971, "A method of allowing for known observational
selection", equation 4), and the times at which too few cases count are passed over (Lai and Ying 1991, "Estimating a
distribution function with truncated and censored data"). A few prefixes with the same last activity, of every length,
take part with little weight: they take what open cases leave where every similar case that ended was short.
"""

from dataclasses import dataclass

import numpy as np

from opus_pipelines.forecasts.traces import TraceTable

_TREES = 60
_SMALLEST_LEAF = 5  # prefixes
_FEATURE_SHARE = 0.4  # features that a split looks at
_SAMPLE_SHARE = 0.6  # prefixes that a tree is grown on
MAX_SAMPLE = 20_000  # prefixes that a tree is grown on at most, so that its cost does not grow with the history
MOST_COLUMNS = 200  # features that a forest is grown on at most: those of the highest variance of a wide vocabulary
COMPONENTS = 6  # directions of what follows that the forest is grown on, beside the remaining time
TIME_WEIGHT = 0.7  # of the logarithm of the remaining time, beside the first component
LEAF_MEMBERS = 40  # of a leaf that are looked at, evenly spread over the history
BACKGROUND = 40  # prefixes with the same last activity, evenly spread over the remaining times, beside the similar ones
BACKGROUND_WEIGHT = 0.02  # of them together, where similar ones weigh 1
LEAST_ENTERED = 0.1  # share of the weight that must have entered before an end tells something
PREFIXES_OF_CASE = 5.0  # a case weighs as much as this many of its prefixes at most


def prefix_weights(table: TraceTable) -> np.ndarray:
    """[events] the weight of each prefix, so that a long case does not outweigh many short ones."""
    length = np.bincount(table.case, minlength=len(table.is_open))[table.case]
    return np.minimum(PREFIXES_OF_CASE, length) / length


def grown_on(share: float, prefixes: int) -> int:
    """How many of the prefixes a tree is grown on: this share of them, `MAX_SAMPLE` at most."""
    return max(1, min(MAX_SAMPLE, round(share * prefixes)))


def informative_columns(x: np.ndarray) -> np.ndarray:
    """Returns the numbers of the columns of `x` [rows, features] that a forest is grown on, in order.

    Each activity has several columns, and in a wide vocabulary most of them are constant in nearly all rows, so that
    the time would grow with the square of the vocabulary.
    """
    if x.shape[1] <= MOST_COLUMNS:
        return np.arange(x.shape[1])
    blocks = [x[:, begin : begin + MOST_COLUMNS] for begin in range(0, x.shape[1], MOST_COLUMNS)]
    variance = np.concatenate([block.var(axis=0, dtype=np.float64) for block in blocks])  # needs copies of float64
    return np.sort(np.argsort(-variance, kind="stable")[:MOST_COLUMNS])


@dataclass(frozen=True)
class SimilarPrefixes:
    """Past prefixes like a running case: `rows` [n] of the history, by remaining time, and their `mass` [n], sum 1."""

    rows: np.ndarray
    mass: np.ndarray


@dataclass(frozen=True)
class _Leaves:
    """Members of the leaves of all trees, one leaf after the other.

    `first` [trees]: the number of each tree's first node. `begin` [nodes + 1]: where the members of a node begin.
    `row`, `weight` [members]: prefixes of the history, `LEAF_MEMBERS` of a leaf at most, and their weights, 1 a leaf.
    """

    first: np.ndarray
    begin: np.ndarray
    row: np.ndarray
    weight: np.ndarray

    @classmethod
    def of(cls, leaves: np.ndarray, weights: np.ndarray) -> "_Leaves":
        """Those of a history: `leaves` [prefixes, trees], `weights` [prefixes]."""
        first = np.append(0, leaves.max(axis=0)[:-1] + 1).cumsum()
        rows, heavy, counts = [], [], []
        for own in leaves.T:
            order = np.argsort(own, kind="stable")
            node = own[order]
            size = np.bincount(node)
            place = np.arange(len(node)) - (size.cumsum() - size)[node]
            kept = place % ((size - 1) // LEAF_MEMBERS + 1)[node] == 0
            node, members = node[kept], order[kept]
            weight = weights[members]
            rows.append(members)
            heavy.append(weight / np.bincount(node, weight)[node])
            counts.append(np.bincount(node))
        begin = np.append(0, np.concatenate(counts).cumsum())
        return cls(first, begin, np.concatenate(rows), np.concatenate(heavy))

    def numbers(self, leaves: np.ndarray) -> np.ndarray:
        """The nodes of `leaves` [cases, trees], counted over all trees."""
        return leaves + self.first

    def members(self, nodes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The rows of all members of these `nodes`, and their weights."""
        begin, size = self.begin[nodes], self.begin[nodes + 1] - self.begin[nodes]
        place = np.repeat(begin - (size.cumsum() - size), size) + np.arange(size.sum())
        return self.row[place], self.weight[place]


class PrefixForest:
    """Finds similar past prefixes. `x` [events, features] of the history `table`."""

    def __init__(self, table: TraceTable, x: np.ndarray, seed: int = 0) -> None:
        from sklearn.ensemble import ExtraTreesRegressor  # every run of Dagster loads this module; few forecast

        self._ended = ~table.is_open[table.case]
        self._remaining, self._weights = table.remaining, prefix_weights(table)
        self._entered = table.end_seen_from
        self._code = table.code
        self._gap = np.append(np.diff(table.time), 0.0)
        self._gap[table.last] = np.where(table.is_open, 0.0, np.inf)
        rows = np.flatnonzero(self._ended)
        self._background = {
            code: _spread(rows[table.code[rows] == code], table.remaining) for code in np.unique(table.code)
        }
        self._anything = _spread(rows, table.remaining)
        self._columns = informative_columns(x)
        self._forest = ExtraTreesRegressor(
            _TREES,
            min_samples_leaf=_SMALLEST_LEAF,
            max_features=_FEATURE_SHARE,
            bootstrap=True,
            max_samples=grown_on(_SAMPLE_SHARE, len(rows)),
            n_jobs=-1,
            random_state=seed,
        ).fit(x[np.ix_(rows, self._columns)], _targets(table, rows), sample_weight=self._weights[rows])
        self._leaves = _Leaves.of(self._apply(x), self._weights)

    def similar(
        self, x: np.ndarray, last_activity: np.ndarray, silent: np.ndarray | None = None
    ) -> list[SimilarPrefixes]:
        """For each row of `x` [cases, features] the similar prefixes. `last_activity` [cases] is a code; `silent`
        [cases]: seconds since the case's last event, in which nothing happened; a prefix that went on sooner is not
        similar.
        """
        waits = np.zeros(len(x)) if silent is None else silent
        return [
            self._of(own, int(code), float(wait))
            for own, code, wait in zip(self._leaves.numbers(self._apply(x)), last_activity, waits, strict=True)
        ]

    def _apply(self, x: np.ndarray) -> np.ndarray:
        return np.asarray(self._forest.apply(x[:, self._columns]))

    def _of(self, leaves: np.ndarray, last_activity: int, silent: float) -> SimilarPrefixes:
        background = self._background.get(last_activity, self._anything)
        background = background if len(background) else self._anything
        rows, weights = self._leaves.members(leaves)
        some = np.full(len(background), BACKGROUND_WEIGHT * len(leaves) / len(background))
        found, inverse = np.unique(np.append(background, rows), return_inverse=True)
        weight = np.bincount(inverse, np.append(some, weights))
        same = self._code[found] == last_activity
        if self._ended[found[same]].sum() >= _SMALLEST_LEAF:
            found, weight = found[same], weight[same]
        if silent > 0:
            patient = self._gap[found] >= silent
            if self._ended[found[patient]].any():
                found, weight = found[patient], weight[patient]
        return self._with_open_cases(found, weight)

    def _with_open_cases(self, rows: np.ndarray, weight: np.ndarray) -> SimilarPrefixes:
        """The weight of open prefixes given to those that lasted longer; what none takes is spread over all."""
        counted = self._entered[rows] <= self._remaining[rows]
        if self._ended[rows[counted]].any():
            rows, weight = rows[counted], weight[counted]
        ended = self._ended[rows]
        order = np.lexsort((~ended, self._remaining[rows]))
        rows, weight, ended = rows[order], weight[order], ended[order]
        entry = np.sort(self._entered[rows])
        waiting = np.append(weight[np.argsort(self._entered[rows], kind="stable")][::-1].cumsum()[::-1], 0.0)
        outside = waiting[np.searchsorted(entry, self._remaining[rows], side="right")]
        at_risk = np.maximum(weight[::-1].cumsum()[::-1] - outside, weight)
        hazard = np.where(ended & (outside <= (1.0 - LEAST_ENTERED) * weight.sum()), weight / at_risk, 0.0)
        mass = hazard * np.append(1.0, np.cumprod(1.0 - hazard)[:-1])
        if mass.sum() <= 0:
            mass = weight * ended
        return SimilarPrefixes(rows[ended], mass[ended] / mass[ended].sum())


def quantile(values: np.ndarray, mass: np.ndarray, level: float) -> float:
    """The smallest of the sorted `values` [n] up to which `mass` [n] reaches `level`."""
    return float(values[min(int(np.searchsorted(mass.cumsum(), level - 1e-12)), len(values) - 1)])


def _spread(rows: np.ndarray, remaining: np.ndarray) -> np.ndarray:
    """At most `BACKGROUND` of the rows, evenly spread over their remaining times."""
    order = rows[np.argsort(remaining[rows], kind="stable")]
    return (
        order[np.unique(np.linspace(0, len(order) - 1, BACKGROUND).round().astype(np.int64))] if len(order) else order
    )


def _targets(table: TraceTable, rows: np.ndarray) -> np.ndarray:
    """[rows, components + 1] the activities of the rest and the next one, in few directions, and the remaining time."""
    from sklearn.decomposition import PCA

    kinds = int(table.code.max()) + 1
    rest = np.zeros((len(rows), kinds))
    for activity in range(1, kinds):
        seen = (table.code == activity).cumsum()
        rest[:, activity] = seen[table.last[table.case[rows]]] - seen[rows]
    following = np.eye(kinds)[table.following[rows]]
    outcomes = np.hstack([np.sqrt(rest), following])
    varied = outcomes[:, np.ptp(outcomes, axis=0) > 0]
    parts = np.zeros((len(rows), 1))
    if varied.size:
        parts = PCA(min(COMPONENTS, *varied.shape), random_state=0).fit_transform(varied)
    time = np.log1p(np.maximum(0.0, table.remaining[rows]))
    return np.column_stack(
        [parts / max(1e-9, parts[:, 0].std()), TIME_WEIGHT * (time - time.mean()) / max(1e-9, time.std())]
    )
