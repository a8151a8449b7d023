"""Learns from the history of cases how they go on, and forecasts the rest of running ones.

The next activity comes from deep context counts, and from trees over them and the case's features. The trees are
extremely randomised (Geurts, Ernst and Wehenkel 2006, "Extremely randomized trees"): their thresholds are drawn and not
searched for, so nothing is sorted. Each is grown on so few prefixes that its cost does not grow with the history.

The one suffix that is nearest to all that may follow: the medoid under the restricted Damerau-Levenshtein distance.
The distance is computed bit-parallel for many pairs at once: Hyyrö (2003), "A bit-vector algorithm for computing
Levenshtein and Damerau edit distances", figure 6 (restricted: no substring is edited twice).

Intervals of the remaining time that hold as often as they say: levels chosen on cases that were not learnt from.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from opus_pipelines.core.errors import InputError
from opus_pipelines.forecasts.context_counts import MAX_DEPTH, ContextCounts, LakeContexts, NextCounts
from opus_pipelines.forecasts.limits import LimitOutlook, LimitReader, Limits, share_broken
from opus_pipelines.forecasts.similar_prefixes import (
    PrefixForest,
    SimilarPrefixes,
    grown_on,
    informative_columns,
    prefix_weights,
    quantile,
)
from opus_pipelines.forecasts.traces import FeatureOptions, Trace, TraceTable, Vocabulary, features, gap_symbols

FOLDS = 5  # of cases: the counts that a history row sees as features hold no event of its own case
SMALL_DEPTH, GAP_DEPTH = 3, 4  # of contexts of activity and resource, and of activity and waiting time
_TREES = 60
MOST_CLASSES = 200  # next activities that the trees tell apart; of the rarer ones the context counts tell
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
        x, of_counts = self._empty(table)
        for number in range(FOLDS):
            part, mine = table.of_cases(fold == number), fold[table.case] == number
            following = table.taught[mine]  # not `part.taught`: a part sees its first ends at another time
            for place, counts in zip(of_counts, self._counts, strict=True):
                place[mine] = counts.without(part, following).probabilities(part)
        return x

    def rows(self, table: TraceTable) -> np.ndarray:
        """The features [events, features] of cases that are not in the history."""
        x, of_counts = self._empty(table)
        for place, counts in zip(of_counts, self._counts, strict=True):
            place[:] = counts.probabilities(table)
        return x

    def _empty(self, table: TraceTable) -> tuple[np.ndarray, list[np.ndarray]]:
        """Features of which those of the counts are not filled in, and the views of these by count."""
        known, kinds = np.nan_to_num(features(table, self._options), nan=-1.0), self._options.activities
        x = np.empty((len(known), known.shape[1] + len(self._counts) * kinds), np.float32)
        x[:, : known.shape[1]] = known
        return x, np.split(x[:, known.shape[1] :], len(self._counts), axis=1)

    def _with_resources(self, table: TraceTable) -> np.ndarray:
        return table.code * self._options.resources + table.resource


class NextTrees:
    """Probabilities of the next activity. `x` [events, features] of the history `table`; see `TraceTable.taught`."""

    def __init__(self, table: TraceTable, x: np.ndarray, kinds: int, seed: int = 0) -> None:
        from sklearn.ensemble import ExtraTreesClassifier  # every run of Dagster loads this module; few forecast

        self._kinds, self._classes = kinds, min(kinds, MOST_CLASSES + 1)
        seen = np.flatnonzero(table.taught >= 0)
        weights = prefix_weights(table)
        self._columns = informative_columns(x)
        self._forest = ExtraTreesClassifier(
            _TREES,
            min_samples_leaf=_SMALLEST_LEAF,
            max_features=_FEATURE_SHARE,
            bootstrap=True,
            max_samples=grown_on(_SAMPLE_SHARE, len(seen)),
            n_jobs=-1,
            random_state=seed,
        ).fit(
            x[np.ix_(seen, self._columns)],
            np.minimum(table.following[seen], self._classes - 1),
            sample_weight=weights[seen],
        )
        self._forest.n_jobs = 1  # threads add the trees' votes in any order, which changes the last digit

    def probabilities(self, x: np.ndarray) -> np.ndarray:
        """[rows, kinds] of the next activity, 0 the end of the case; a little of the deep contexts is mixed in.

        The last class of the trees are the rare activities together; the deep contexts share it out among them.
        """
        of_class = np.zeros((len(x), self._classes))
        of_class[:, self._forest.classes_] = self._forest.predict_proba(x[:, self._columns])
        contexts = x[:, -3 * self._kinds : -2 * self._kinds].astype(float)
        contexts /= contexts.sum(axis=1, keepdims=True)
        found = np.hstack([of_class[:, :-1], contexts[:, self._classes - 1 :]])
        rare = found[:, self._classes - 1 :]
        rare *= of_class[:, -1:] / np.maximum(rare.sum(axis=1, keepdims=True), 1e-300)
        return (1.0 - CONTEXT_SHARE) * found + CONTEXT_SHARE * contexts


def _activities(table: TraceTable) -> np.ndarray:
    return table.code


LONGEST = 63  # activities of a suffix that are compared; a longer one is cut there
_ONE = np.uint64(1)


class SuffixTable:
    """Suffixes as rows of numbers, compared by pairs. `suffixes`: tuples of activity codes, none empty."""

    def __init__(self, suffixes: Sequence[tuple[int, ...]]) -> None:
        self.suffixes = suffixes
        cut = [s[:LONGEST] for s in suffixes]
        self.length = np.array([len(s) for s in cut], np.int64)
        self._text = np.full((len(cut), int(self.length.max(initial=1))), -1, np.int64)
        for row, s in enumerate(cut):
            self._text[row, : len(s)] = s
        kinds = int(self._text.max(initial=0)) + 2
        self._masks = np.zeros((len(cut), kinds), np.uint64)  # bit i of [suffix, activity]: the activity stands at i
        for i in range(self._text.shape[1]):
            rows = np.flatnonzero(self.length > i)
            self._masks[rows, self._text[rows, i]] |= _ONE << np.uint64(i)

    def similarity(self, left: np.ndarray, right: np.ndarray) -> np.ndarray:
        """[pairs] 1 - distance / length of the longer, of the suffixes `left` and `right` [pairs]."""
        return 1.0 - self._distance(left, right) / np.maximum(self.length[left], self.length[right])

    def _distance(self, left: np.ndarray, right: np.ndarray) -> np.ndarray:
        order = np.argsort(-self.length[right], kind="stable")  # the pairs still running stand in front
        left, right = left[order], right[order]
        lengths, score = self.length[right], self.length[left].copy()
        top = _ONE << (self.length[left] - 1).astype(np.uint64)
        positive = np.full(len(left), ~np.uint64(0))
        negative, zero, before = (np.zeros(len(left), np.uint64) for _ in range(3))
        for column in range(int(lengths.max(initial=0))):
            n = int(np.searchsorted(-lengths, -column, side="left"))
            match = self._masks[left[:n], self._text[right[:n], column]]
            vp, vn = positive[:n], negative[:n]
            swapped = ((~zero[:n] & match) << _ONE) & before[:n]
            diagonal = (((match & vp) + vp) ^ vp) | match | vn | swapped
            up, down = vn | ~(diagonal | vp), diagonal & vp
            score[:n] += ((up & top[:n]) != 0).astype(np.int64) - ((down & top[:n]) != 0).astype(np.int64)
            up, down = (up << _ONE) | _ONE, down << _ONE
            positive[:n], negative[:n] = down | ~(diagonal | up), up & diagonal
            zero[:n], before[:n] = diagonal, match
        found = np.empty_like(score)
        found[order] = score
        return found


def medoid(weights: np.ndarray, similarity: np.ndarray) -> int:
    """Row of the candidate whose expected similarity to the weighted suffixes is highest.

    `similarity` [candidates, suffixes], `weights` [suffixes]. Ties go to the first row.
    """
    return int(np.argmax(np.round(similarity @ weights, 12)))


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


MAX_EVENTS = 200_000  # of the history, the newest cases
MAX_CELLS = 25_000_000  # events times activities: each event has columns for each activity, some 30 bytes a cell
MAX_SUFFIXES, MAX_CANDIDATES = 60, 30  # the most probable ones that are compared
LEAST_GOING_ON = 0.05  # mass of similar prefixes that went on, below which the case is taken to have ended
MAX_REST = 200  # activities of a rest
SUCCESS_STRENGTH = 2.0  # cases that the overall success rate counts as


class TooLittleHistory(InputError):
    """The history holds too few ended cases to learn from."""


@dataclass(frozen=True)
class Interval:
    """A forecast quantity: its median and the ends of its 90 % interval."""

    middle: float
    low: float
    high: float


@dataclass(frozen=True)
class StepOutlook:
    """What came of similar cases that did this activity next. `p_limit`: share of them that break a limit."""

    activity: str
    probability: float
    p_success: float | None
    remaining_s: float | None
    similar: int
    p_limit: float | None = None


@dataclass(frozen=True)
class Forecast:
    """How one running case is expected to go on.

    `following`: probable next activities, `END` among them, most probable first. `rest`: the activities after the
    last event, if the case goes on. `remaining_s` is in seconds, `remaining_cost_usd` in dollars, None where no
    cost is known. `limits`: what is expected of each limit; `p_limit`: probability of breaking at least one, None
    without any. `similar`: past prefixes that the figures rest on.
    """

    case_id: str
    steps: int
    following: tuple[StepOutlook, ...]
    p_end: float
    rest: tuple[str, ...]
    remaining_s: Interval
    remaining_cost_usd: Interval | None
    p_success: float | None
    limits: tuple[LimitOutlook, ...]
    p_limit: float | None
    similar: int


class Forecaster:
    """Learns from `traces`; open ones teach what came next, and how long cases last at least.

    `calendar`: whether the dates of running cases are real, so that hours and weekdays may be used. `contexts`: those
    of the snapshot whose history `traces` are; None: they are counted from `traces`.

    Raises:
        TooLittleHistory: fewer than two cases have ended, or nothing but one prefix.
    """

    def __init__(
        self, traces: Sequence[Trace], calendar: bool = True, seed: int = 0, contexts: LakeContexts | None = None
    ) -> None:
        newest = newest_cases([t for t in traces if len(t.activities)])
        if sum(not t.is_open for t in newest) < 2:
            raise TooLittleHistory("history has fewer than two ended cases; give an export with more of them")
        self.vocabulary = Vocabulary.of(newest)
        self._options = FeatureOptions(len(self.vocabulary.activities), len(self.vocabulary.resources), calendar)
        self._table = self.vocabulary.table(newest)
        self._calibration = calibrated(newest, calendar, seed)
        known = contexts.counts(self.vocabulary, self._table) if contexts is not None else None
        self._contexts = ContextFeatures(self._table, self._options, known)
        x = self._contexts.training_rows(self._table, seed)
        self._next = NextTrees(self._table, x, self._options.activities, seed)
        self._outcomes = PrefixForest(self._table, x, seed)
        self._remaining, self._cost = self._table.remaining, self._table.remaining_cost
        self._success = self._table.success[self._table.case]
        self._limits = LimitReader(self.vocabulary, self._table)
        self._suffixes: dict[tuple[int, ...], int] = {}
        self._suffix_of = np.full(len(self._table.code), -1, np.int64)

    def unknown_activities(self, limits: Limits) -> list[str]:
        """The activities of service levels that the history does not know."""
        return self._limits.unknown(limits)

    def forecast(
        self,
        running: Sequence[Trace],
        silent: Sequence[float] | None = None,
        limits: Sequence[Limits] | None = None,
    ) -> list[Forecast]:
        """The forecast of every running case after its last event. `silent` [cases]: seconds since that event, in which
        nothing happened; None: none. `limits` [cases]: the limits of each case; None: none.

        Raises:
            ValueError: a running case has no event.
        """
        empty = [t.case_id for t in running if not len(t.activities)]
        if empty:
            raise ValueError(f"running case {empty[0]!r} has no event")
        if not running:
            return []
        table = self.vocabulary.table(running)
        x = self._contexts.rows(table)[table.last]
        probabilities = self._next.probabilities(x)
        similar = self._outcomes.similar(
            x, table.code[table.last], None if silent is None else np.asarray(silent, float)
        )
        rests = self._rests(similar)
        return [
            self._one(trace, p, like, rest, own)
            for trace, p, like, rest, own in zip(
                running, probabilities, similar, rests, limits or [()] * len(running), strict=True
            )
        ]

    def _one(
        self, trace: Trace, probabilities: np.ndarray, like: SimilarPrefixes, rest: tuple[str, ...], limits: Limits
    ) -> Forecast:
        outlooks, broken = self._limits.outlooks(self.vocabulary.table([trace]), limits, like) if limits else ((), None)
        return Forecast(
            case_id=trace.case_id,
            steps=len(trace.activities),
            following=self._outlooks(probabilities, like, broken),
            p_end=float(probabilities[0]),
            rest=rest,
            remaining_s=self._interval(self._remaining[like.rows], like.mass),
            remaining_cost_usd=self._cost_interval(like),
            p_success=self._p_success(like),
            limits=outlooks,
            p_limit=None if broken is None else share_broken(broken, like.mass),
            similar=len(like.rows),
        )

    def _interval(self, values: np.ndarray, mass: np.ndarray) -> Interval:
        low, high = self._calibration.interval(values, mass)
        middle = quantile(values, mass, 0.5)
        return Interval(middle, min(low, middle), max(high, middle))

    def _cost_interval(self, like: SimilarPrefixes) -> Interval | None:
        values = self._cost[like.rows]
        known = ~np.isnan(values)
        if np.isnan(self._table.cost).all() or like.mass[known].sum() <= 0:
            return None
        order = np.flatnonzero(known)[np.argsort(values[known], kind="stable")]
        mass = like.mass[order] / like.mass[order].sum()
        low, middle, high = (quantile(values[order], mass, level) for level in (LEVELS[0], 0.5, LEVELS[1]))
        return Interval(middle, low, high)

    def _p_success(self, like: SimilarPrefixes) -> float | None:
        overall = self._table.success
        if np.isnan(overall).all():
            return None
        values = self._success[like.rows]
        known = ~np.isnan(values)
        mass = like.mass[known]
        # The number of cases that weigh as much as these: Kish's effective sample size.
        size = float(mass.sum() ** 2 / (mass**2).sum()) if mass.sum() > 0 else 0.0
        rate = float((mass * values[known]).sum() / mass.sum()) if mass.sum() > 0 else 0.0
        prior = float(np.nanmean(overall))
        return (size * rate + SUCCESS_STRENGTH * prior) / (size + SUCCESS_STRENGTH)

    def _outlooks(
        self, probabilities: np.ndarray, like: SimilarPrefixes, broken: np.ndarray | None
    ) -> tuple[StepOutlook, ...]:
        """The next activities that are at least one in a hundred probable, five of them at most."""
        found: list[StepOutlook] = []
        following = self._table.following[like.rows]
        for code in np.argsort(-np.round(probabilities, 12), kind="stable")[:5].tolist():
            if found and probabilities[code] < 0.01:
                break
            part = following == code
            same = SimilarPrefixes(like.rows[part], like.mass[part])
            known = bool(part.any()) and float(same.mass.sum()) > 0
            found.append(
                StepOutlook(
                    activity=self.vocabulary.activities[code],
                    probability=float(probabilities[code]),
                    p_success=self._p_success(same) if known else None,
                    remaining_s=quantile(self._remaining[same.rows], same.mass / same.mass.sum(), 0.5)
                    if known
                    else None,
                    similar=int(part.sum()),
                    p_limit=share_broken(broken[part], same.mass) if known and broken is not None else None,
                )
            )
        return tuple(found)

    def _rests(self, similar: Sequence[SimilarPrefixes]) -> list[tuple[str, ...]]:
        """Of every running case the medoid of the similar cases' rests; `()` where next to all of them ended."""
        chosen: list[tuple[np.ndarray, np.ndarray]] = []
        for like in similar:
            on = self._table.following[like.rows] > 0
            if like.mass[on].sum() < LEAST_GOING_ON:
                chosen.append((np.zeros(0, np.int64), np.zeros(0)))
                continue
            kinds, inverse = np.unique(self._suffix_numbers(like.rows[on]), return_inverse=True)
            mass = np.bincount(inverse, like.mass[on], len(kinds))
            order = np.argsort(-np.round(mass, 12), kind="stable")[:MAX_SUFFIXES]
            chosen.append((kinds[order], mass[order]))
        suffixes = list(self._suffixes)
        best = _medoids(suffixes, chosen)
        return [() if b is None else tuple(self.vocabulary.activities[c] for c in suffixes[b]) for b in best]

    def _suffix_numbers(self, rows: np.ndarray) -> np.ndarray:
        """[rows] the number of the activities after each row of the history, the same for the same activities."""
        for row in rows[self._suffix_of[rows] < 0].tolist():
            end = min(self._table.last[self._table.case[row]], row + MAX_REST)
            rest = tuple(self._table.code[row + 1 : end + 1].tolist())
            self._suffix_of[row] = self._suffixes.setdefault(rest, len(self._suffixes))
        return np.asarray(self._suffix_of[rows])


def _medoids(suffixes: list[tuple[int, ...]], chosen: list[tuple[np.ndarray, np.ndarray]]) -> list[int | None]:
    """For each set of weighted suffixes the one with the highest expected similarity to all of them."""
    pairs = [
        np.stack([np.repeat(ids[:MAX_CANDIDATES], len(ids)), np.tile(ids, len(ids[:MAX_CANDIDATES]))])
        for ids, _ in chosen
    ]
    joined = np.concatenate(pairs, axis=1) if pairs else np.zeros((2, 0), np.int64)
    distinct, inverse = np.unique(joined[0] * max(1, len(suffixes)) + joined[1], return_inverse=True)
    similarity = (
        SuffixTable(suffixes).similarity(distinct // len(suffixes), distinct % len(suffixes))[inverse]
        if suffixes
        else np.zeros(0)
    )
    best: list[int | None] = []
    begin = 0
    for ids, mass in chosen:
        size = len(ids[:MAX_CANDIDATES]) * len(ids)
        matrix = similarity[begin : begin + size].reshape(-1, max(1, len(ids)))
        begin += size
        best.append(int(ids[medoid(mass, matrix)]) if len(ids) else None)
    return best


def newest_cases(traces: Sequence[Trace]) -> list[Trace]:
    """The newest cases with at most `MAX_EVENTS` events and `MAX_CELLS` cells, by first event and id."""
    found: list[Trace] = []
    events, activities = 0, set[str]()
    for trace in sorted(traces, key=lambda t: (t.times[0], t.case_id), reverse=True):
        events += len(trace.activities)
        activities.update(trace.activities)
        if found and (events > MAX_EVENTS or events * len(activities) > MAX_CELLS):
            break
        found.append(trace)
    return found[::-1]
