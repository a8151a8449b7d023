"""Limits of running cases, and which of them each similar past case would break.

A limit is of the whole case (its lead time, cost or number of steps) or a service level: by when one activity is done,
counted from the first event or from another activity. They are stated on the command line, by the contract of the
case, or for its source in the settings; of each kind the first of these counts.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from opus_pipelines.core.settings import ForecastLimits
from opus_pipelines.forecasts.similar_prefixes import SimilarPrefixes, quantile
from opus_pipelines.forecasts.traces import TraceTable, Vocabulary
from opus_pipelines.intakes.intake import discover
from opus_pipelines.workflow.constraints import Constraints, folded

LEAD_TIME, COST, STEPS, SERVICE_LEVEL = "lead time", "cost", "steps", "service level"
UNITS = {LEAD_TIME: "ms", COST: "usd", STEPS: "steps", SERVICE_LEVEL: "ms"}
SECONDS_PER_HOUR = 3600.0


@dataclass(frozen=True)
class Limit:
    """One limit. `value` is in seconds, dollars or steps; `activity` and `after` are of a service level."""

    kind: str
    value: float
    activity: str | None = None
    after: str | None = None

    @property
    def subject(self) -> tuple[str, str | None, str | None]:
        """What it limits: two limits with the same subject replace each other."""
        return self.kind, folded(self.activity or "") or None, folded(self.after or "") or None


Limits = tuple[Limit, ...]


def limits_of(settings: ForecastLimits) -> Limits:
    """The limits that the settings state for a source."""
    hours = settings.lead_time_hours
    lead_time = None if hours is None else hours * SECONDS_PER_HOUR
    levels = tuple(
        Limit(SERVICE_LEVEL, level.hours * SECONDS_PER_HOUR, level.activity, level.after)
        for level in settings.service_levels
    )
    return stated([(LEAD_TIME, lead_time), (COST, settings.cost_usd), (STEPS, settings.steps)]) + levels


def in_force(*stated: Limits) -> Limits:
    """Of every subject the limit that is stated first."""
    found: dict[tuple[str, str | None, str | None], Limit] = {}
    for limits in stated:
        for limit in limits:
            found.setdefault(limit.subject, limit)
    return tuple(found.values())


@dataclass(frozen=True)
class LimitOutlook:
    """What is expected of one limit of a running case.

    `so_far` and `expected` (the median at the end) are in the unit of the limit, None where unknown; a service level
    counts from its beginning until the activity is done. `p_broken`: probability that the limit is broken, None where
    history does not know the cost or the activity.
    """

    limit: Limit
    so_far: float | None
    expected: float | None
    p_broken: float | None


class LimitReader:
    """Reads off similar past cases which limits a running case will break. `table` is the history."""

    def __init__(self, vocabulary: Vocabulary, table: TraceTable) -> None:
        self._table = table
        self._code = {folded(name): n for n, name in enumerate(vocabulary.activities) if n > 0}
        self._next: dict[int, np.ndarray] = {}

    def unknown(self, limits: Limits) -> list[str]:
        """The activities of service levels that the history does not know."""
        named = [name for limit in limits for name in (limit.activity, limit.after) if name is not None]
        return sorted({name for name in named if folded(name) not in self._code})

    def totals(self, own: TraceTable, limit: Limit, rows: np.ndarray) -> tuple[float, np.ndarray]:
        """What the running case `own` has used of the limit, and with each similar prefix in `rows` its total [rows].

        NaN is unknown, minus infinity is an activity that the case never does.
        """
        table = self._table
        if limit.kind == LEAD_TIME:
            used = float(own.time[-1] - own.time[0])
            return used, used + table.remaining[rows]
        if limit.kind == COST:
            used = float(own.cost.sum())
            return used, used + table.remaining_cost[rows]
        if limit.kind == STEPS:
            used = float(len(own.code))
            return used, used + (table.last[table.case[rows]] - rows)
        return self._service_level(own, limit, rows)

    def _service_level(self, own: TraceTable, limit: Limit, rows: np.ndarray) -> tuple[float, np.ndarray]:
        activity = self._code.get(folded(limit.activity or ""))
        after = None if limit.after is None else self._code.get(folded(limit.after))
        if activity is None or (limit.after is not None and after is None):
            return float("nan"), np.full(len(rows), np.nan)
        base = first = 0  # the event that the level counts from, and the first that may be the activity
        if after is not None:
            done = np.flatnonzero(own.code == after)
            if not len(done):
                begun = self._following(rows, after)
                ended = np.where(begun >= 0, self._following(np.maximum(begun, 0), activity), -1)
                return 0.0, np.where(ended >= 0, self._table.time[ended] - self._table.time[begun], -np.inf)
            base = int(done[0])
            first = base + 1
        done = np.flatnonzero(own.code[first:] == activity)
        used = float(own.time[-1] - own.time[base])
        if len(done):
            taken = own.time[first + int(done[0])] - own.time[base]
            return float(taken), np.full(len(rows), taken)
        coming = self._following(rows, activity)
        return used, np.where(coming >= 0, used + self._table.time[coming] - self._table.time[rows], -np.inf)

    def _following(self, rows: np.ndarray, activity: int) -> np.ndarray:
        """[rows] the row of the next event of the activity in the case of each row; -1 where none comes."""
        if activity not in self._next:
            table, size = self._table, len(self._table.code)
            hit = np.where(table.code == activity, np.arange(size), size)
            later = np.append(np.minimum.accumulate(hit[::-1])[::-1][1:], size)
            self._next[activity] = np.where(later <= table.last[table.case], later, -1)
        return self._next[activity][rows]

    def outlooks(
        self, own: TraceTable, limits: Limits, like: SimilarPrefixes
    ) -> tuple[tuple[LimitOutlook, ...], np.ndarray]:
        """The outlook of every limit; and for each similar prefix 1 where its case breaks a limit, 0 where it breaks
        none, NaN where nothing is known [similar].
        """
        found, broken = [], np.full(len(like.rows), np.nan)
        for limit in limits:
            used, totals = self.totals(own, limit, like.rows)
            known = ~np.isnan(totals)
            mass = like.mass[known].sum()
            p = expected = None
            if mass > 0:
                over = totals[known] > limit.value
                p = float(like.mass[known][over].sum() / mass)
                expected = _median(totals[known], like.mass[known] / mass)
                broken[known] = np.fmax(broken[known], over)
            found.append(LimitOutlook(limit, None if np.isnan(used) else used, expected, p))
        return tuple(found), broken


def _median(values: np.ndarray, mass: np.ndarray) -> float | None:
    order = np.argsort(values, kind="stable")
    middle = quantile(values[order], mass[order], 0.5)
    return middle if np.isfinite(middle) else None


def share_broken(broken: np.ndarray, mass: np.ndarray) -> float | None:
    """The share of the `mass` [n] of the cases that break a limit (`broken` [n]: 1, 0, NaN unknown)."""
    known = ~np.isnan(broken)
    total = mass[known].sum()
    return float((mass[known] * broken[known]).sum() / total) if total > 0 else None


def by_contract(limits: Mapping[tuple[str, str], Limits], client: str | None, contract: str | None) -> Limits:
    """The limits of the contract of a case; none where its contract is not known."""
    return limits.get((client or "", contract or ""), ())


def stated(limits: Sequence[tuple[str, float | None]]) -> Limits:
    """Limits of the whole case as (kind, value); those without a value are left out."""
    return tuple(Limit(kind, float(value)) for kind, value in limits if value is not None)


_HOURS = {"hours": 1.0, "days": 24.0}  # of the units of a deadline that need no calendar


def contract_limits(intakes: Path) -> dict[tuple[str, str], Limits]:
    """The limits of every usable contract below the folder, by client and contract; none where there is no folder.

    Deadlines in working time are left out: a forecast counts all hours.
    """
    if not intakes.is_dir():
        return {}
    found = {
        (c.client, c.contract): _limits_of_contract(c.settings.constraints) for c in discover(intakes) if not c.problem
    }
    return {key: limits for key, limits in found.items() if limits}


def _limits_of_contract(constraints: Constraints) -> Limits:
    """The limits of lead time and cost, and the deadlines of single steps as service levels."""
    hours = constraints.max_lead_time_hours
    whole = stated([(LEAD_TIME, None if hours is None else hours * SECONDS_PER_HOUR), (COST, constraints.max_cost_usd)])
    return whole + tuple(
        Limit(SERVICE_LEVEL, d.within * _HOURS[d.unit] * SECONDS_PER_HOUR, d.step, d.after)
        for d in constraints.deadlines
        if d.unit in _HOURS
    )
