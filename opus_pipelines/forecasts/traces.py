"""Traces of cases in columns, and the names behind their numbers."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

END = "<end>"  # stands for the end of a case among the next activities
EARLIEST_ENDS = 0.01  # share of the ended cases that may have ended before a history shows the ends of all cases

MIN_TAUGHT = 500  # events after that moment, below which the events before it teach what follows, too


@dataclass(frozen=True)
class Trace:
    """One case as far as it was observed.

    `times` are seconds since the epoch, in order; `resources` name who did each event, or None; `costs_usd` are of
    each event, None where unknown. The three run in step with `activities`; the last two may be empty. An open case was
    still running when it was last seen. `success` is of the whole case, None where unknown.
    """

    case_id: str
    activities: Sequence[str]
    times: Sequence[float]
    resources: Sequence[str | None] = ()
    costs_usd: Sequence[float | None] = ()
    is_open: bool = False
    success: bool | None = None


@dataclass(frozen=True)
class TraceTable:
    """The events of all cases in one row each; cases follow each other, events of a case are in order of time.

    Shapes: `code`, `time` (seconds), `resource`, `cost` (dollars), `case` [events]; `is_open`, `success` [cases].
    `code` is an index of `Vocabulary.activities`, `resource` of `Vocabulary.resources` (0: none or unknown). An unknown
    cost or success (1, 0) is NaN.
    """

    code: np.ndarray
    time: np.ndarray
    resource: np.ndarray
    cost: np.ndarray
    case: np.ndarray
    is_open: np.ndarray
    success: np.ndarray

    def of_cases(self, chosen: np.ndarray) -> "TraceTable":
        """The events of the cases that are `chosen` [cases], a mask."""
        events = chosen[self.case]
        number = chosen.cumsum() - 1
        return TraceTable(
            code=self.code[events],
            time=self.time[events],
            resource=self.resource[events],
            cost=self.cost[events],
            case=number[self.case[events]],
            is_open=self.is_open[chosen],
            success=self.success[chosen],
        )

    @cached_property
    def first(self) -> np.ndarray:
        """Row of the first event of every case [cases]."""
        return np.searchsorted(self.case, np.arange(len(self.is_open)))

    @cached_property
    def last(self) -> np.ndarray:
        """Row of the last event of every case [cases]."""
        return np.searchsorted(self.case, np.arange(len(self.is_open)), side="right") - 1

    @cached_property
    def position(self) -> np.ndarray:
        """Place of every event in its case, from 0 [events]."""
        return np.arange(len(self.code)) - self.first[self.case]

    @cached_property
    def following(self) -> np.ndarray:
        """Code of the next activity of every event [events]; 0 where the case ends, -1 where nobody saw what came."""
        found = np.append(self.code[1:], 0)
        found[self.last] = np.where(self.is_open, -1, 0)
        return found

    @cached_property
    def taught(self) -> np.ndarray:
        """As `following`, but -1 also before the history begins to show the ends of cases [events].

        Of a case that began before, an event is in the history only because the case went on for long: what followed it
        tells too little of ends (`end_seen_from`). All events teach where too few are left.
        """
        found = np.where(self.time >= self.ends_seen_at, self.following, -1)
        return found if (found >= 0).sum() >= MIN_TAUGHT else self.following

    @cached_property
    def remaining(self) -> np.ndarray:
        """Seconds from every event to the last one of its case [events].

        Where the case is open this is a lower bound: its last event comes after the newest event of all cases.
        """
        until = np.where(self.is_open, self.time.max(initial=-np.inf), self.time[self.last])
        return until[self.case] - self.time

    @cached_property
    def end_seen_from(self) -> np.ndarray:
        """Seconds after every event before which the history would not show the end of its case [events].

        An export often holds the cases that ended in one period: one that began earlier is in it only because it
        lasted. No end before the earliest ones tells of such a case (left truncation).
        """
        return np.maximum(0.0, self.ends_seen_at - self.time)

    @cached_property
    def ends_seen_at(self) -> float:
        """When the history begins to show the ends of cases, in seconds since the epoch; minus infinity without any."""
        ends = self.time[self.last[~self.is_open]]
        return float(np.quantile(ends, EARLIEST_ENDS, method="lower")) if len(ends) else float("-inf")

    @cached_property
    def remaining_cost(self) -> np.ndarray:
        """Dollars of all events after each one in its case [events]; NaN where one of them is unknown."""
        unknown = np.isnan(self.cost).cumsum()
        total = np.nan_to_num(self.cost).cumsum()
        last = self.last[self.case]
        return np.where(unknown[last] > unknown, np.nan, total[last] - total)


@dataclass(frozen=True)
class Vocabulary:
    """Names of activities and resources. Number 0 is the end of a case, and the unknown resource."""

    activities: tuple[str, ...]
    resources: tuple[str, ...]

    @classmethod
    def of(cls, traces: Sequence[Trace]) -> "Vocabulary":
        """The names of these traces, the most frequent first."""
        return cls(
            (END, *_by_frequency([a for t in traces for a in t.activities])),
            ("", *_by_frequency([r for t in traces for r in t.resources if r])),
        )

    @cached_property
    def _activity_codes(self) -> dict[str, int]:
        return {name: n for n, name in enumerate(self.activities)}

    @cached_property
    def _resource_codes(self) -> dict[str, int]:
        return {name: n for n, name in enumerate(self.resources)}

    def table(self, traces: Sequence[Trace]) -> TraceTable:
        """The events of the traces, in their order. An activity that is not known gets a number of its own, the
        length of `activities`.
        """
        lengths = np.array([len(t.activities) for t in traces], np.int64)
        activity, resource, unknown = self._activity_codes, self._resource_codes, len(self.activities)
        return TraceTable(
            code=np.array([activity.get(a, unknown) for t in traces for a in t.activities], np.int64),
            time=np.array([x for t in traces for x in t.times], float),
            resource=np.array(
                [resource.get(r or "", 0) for t in traces for r in (t.resources or [None] * len(t.activities))],
                np.int64,
            ),
            cost=np.array(
                [np.nan if c is None else c for t in traces for c in (t.costs_usd or [None] * len(t.activities))], float
            ),
            case=np.repeat(np.arange(len(traces)), lengths),
            is_open=np.array([t.is_open for t in traces], bool),
            success=np.array([np.nan if t.success is None else float(t.success) for t in traces], float),
        )


def _by_frequency(names: Sequence[str]) -> list[str]:
    found, counts = np.unique(np.array(names, dtype=object).astype(str), return_counts=True)
    return [str(found[n]) for n in np.lexsort((found, -counts))]
