"""Learns from the history of cases how they go on, and forecasts the rest of running ones."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from opus_pipelines.core.errors import InputError
from opus_pipelines.forecasts.calibration import LEVELS, calibrated
from opus_pipelines.forecasts.features import FeatureOptions
from opus_pipelines.forecasts.lake_contexts import LakeContexts
from opus_pipelines.forecasts.limits import LimitOutlook, LimitReader, Limits, share_broken
from opus_pipelines.forecasts.next_model import ContextFeatures, NextTrees
from opus_pipelines.forecasts.similar_prefixes import PrefixForest, SimilarPrefixes, quantile
from opus_pipelines.forecasts.suffix_choice import SuffixTable, medoid
from opus_pipelines.forecasts.traces import Trace, Vocabulary

MAX_EVENTS = 200_000  # of the history, the newest cases
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
        newest = _newest([t for t in traces if len(t.activities)])
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


def _newest(traces: Sequence[Trace]) -> list[Trace]:
    """The newest cases with at most `MAX_EVENTS` events, by first event and id."""
    found: list[Trace] = []
    events = 0
    for trace in sorted(traces, key=lambda t: (t.times[0], t.case_id), reverse=True):
        events += len(trace.activities)
        if found and events > MAX_EVENTS:
            break
        found.append(trace)
    return found[::-1]
