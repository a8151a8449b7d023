"""Computes the lead time of a workflow: from the start of its first step to the end of its last one, waiting included.

Touch time (EVAL (2), `duration_ms`) is work alone. Lead time adds the waiting before every step, as history had it.
Both are sums along the critical path. The 90th percentile of a sum is not the sum of the 90th percentiles, so the
distribution is drawn (Monte Carlo with a fixed seed). A step that waits for several others begins to wait when the last
of them has ended.

Waiting times of one case depend on each other: an urgent case waits little everywhere. Each draw therefore has one
common factor for all waits of the workflow, and `correlation` is the share of a wait's normal score that it explains (a
one-factor Gaussian copula).

Times are quantiles at fixed levels (`DurationQuantiles`): the list is short, has no parameters to fit, and its inverse
is a linear interpolation. The levels are denser at both ends, because the 90th percentile of a sum depends on the tails
of its parts.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, lru_cache

import numpy as np

from opus_pipelines.core.ids import digest
from opus_pipelines.workflow.evaluation.calendar import Calendar
from opus_pipelines.workflow.evaluation.cost import MS_PER_HOUR
from opus_pipelines.workflow.evaluation.success import Floats
from opus_pipelines.workflow.model import TaskNode, Workflow

PER_LEVEL = 1_000
LEVELS = (  # in thousandths
    0,
    5,
    10,
    20,
    50,
    100,
    150,
    200,
    250,
    300,
    350,
    400,
    450,
    500,
    550,
    600,
    650,
    700,
    750,
    800,
    850,
    900,
    950,
    980,
    990,
    995,
    1_000,
)
_SHARES = np.array(LEVELS) / PER_LEVEL


@dataclass(frozen=True)
class DurationQuantiles:
    """One distribution of times in milliseconds: its quantiles at LEVELS and the number n of times.

    `with_work_n` counts the times that contain the work of the task that was waited for; it is 0 for working times.
    Raises ValueError for quantiles that are not one per level and ascending.
    """

    quantiles: tuple[float, ...]
    n: int
    with_work_n: int = 0

    def __post_init__(self) -> None:
        if len(self.quantiles) != len(LEVELS) or any(
            a > b for a, b in zip(self.quantiles, self.quantiles[1:], strict=False)
        ):
            raise ValueError(f"{len(self.quantiles)} quantiles; {len(LEVELS)} that never fall are needed")

    @classmethod
    def of(cls, values: Sequence[float] | Floats, with_work_n: int = 0) -> "DurationQuantiles":
        """Returns the distribution of these times, in milliseconds; raises ValueError where there are none."""
        if not len(values):
            raise ValueError("no times to make a distribution of")
        return cls(tuple(np.quantile(np.asarray(values, dtype=np.float64), _SHARES).tolist()), len(values), with_work_n)

    @classmethod
    def constant(cls, value: float) -> "DurationQuantiles":
        """Returns the distribution of one constant time."""
        return cls((value,) * len(LEVELS), 0)

    @cached_property
    def _points(self) -> Floats:
        return np.array(self.quantiles)

    def at(self, shares: Floats) -> Floats:
        """Returns the times at these shares (0 to 1) of the distribution, in the same shape."""
        return np.interp(shares, _SHARES, self._points)

    def draws(self, n: int) -> Floats:
        """Returns n times that represent the distribution: its quantiles at n even shares."""
        return self.at((np.arange(n) + 0.5) / n)

    @property
    def p50(self) -> float:
        """The median in ms."""
        return self.quantiles[LEVELS.index(500)]

    @property
    def p90(self) -> float:
        """The 90th percentile in ms."""
        return self.quantiles[LEVELS.index(900)]

    @property
    def with_work_share(self) -> float:
        """The share of the times that contain the work of the task that was waited for."""
        return self.with_work_n / self.n if self.n else 0.0


_DRAWS = 2_000
_CACHED_STEPS = 512  # draws of steps in the cache: the workflows of an intake share most of their steps
KEPT_TIMES = 2_048  # drawn times in each cache, 16 kB each: workflows of an industry share most of them
# requests arrive evenly over the working time of this year; it is fixed, so that a rebuild gives the same figures
ARRIVAL_YEAR = 2026

APART, TOGETHER, MIXED, ASSUMED = "waiting and work", "time between completions", "mixed", "assumed"


@dataclass(frozen=True)
class Wait:
    """A waiting time and the level it was measured at: edge_way, edge, way, task or resource."""

    times: DurationQuantiles
    level: str


@dataclass(frozen=True)
class StepTime:
    """The known times of one step.

    `waits`: the waiting times by the node before it. `work`: the working time, None where it is unknown.
    `in_working_time`: waiting and work pass in the working hours of the calendar, because people do them. `assumed`:
    the working time does not come from history.
    """

    waits: Mapping[str, Wait] = field(default_factory=dict)
    work: DurationQuantiles | None = None
    in_working_time: bool = False
    assumed: bool = False


@dataclass(frozen=True)
class StepLead:
    """The waiting time of one step in ms and its basis; None where it is unknown or the step waits for nothing."""

    wait_ms_p50: float | None = None
    wait_ms_p90: float | None = None
    wait_basis: str | None = None
    wait_n: int = 0


@dataclass(frozen=True)
class LeadTime:
    """The lead time of a workflow.

    `draws` is (n,) in ms, None where the time of a step is unknown. `basis` states what the figures rest on, or why
    there are none. `steps` is by node. `is_counted`: each draw is one case of history that did the same steps, so that
    shares of draws are counts. `single_ms`: the median of a sum of single steps, without what cases repeat.
    """

    basis: str
    draws: Floats | None = None
    steps: Mapping[str, StepLead] = field(default_factory=dict)
    is_counted: bool = False
    single_ms: float | None = None

    @property
    def p50_ms(self) -> float | None:
        """The median in ms; None where it is unknown."""
        return None if self._quantiles is None else self._quantiles[0]

    @property
    def p90_ms(self) -> float | None:
        """The 90th percentile in ms; None where it is unknown."""
        return None if self._quantiles is None else self._quantiles[1]

    def within(self, hours: float) -> float | None:
        """Returns the probability that the lead time is at most so many hours; None where it is unknown."""
        if hours not in self._within:
            self._within[hours] = None if self.draws is None else float(np.mean(self.draws <= hours * MS_PER_HOUR))
        return self._within[hours]

    def rests_on(self, hours: float) -> str:
        """Returns whether the probability of `within` was counted or estimated, and from what; "" if it is unknown."""
        if self.draws is None:
            return ""
        if self.is_counted:
            kept = int(np.sum(self.draws <= hours * MS_PER_HOUR))
            return f"counted: {kept:,} of {self.basis}"
        return f"estimated from the times of the single steps: {self.basis}"

    @cached_property
    def _within(self) -> dict[float, float | None]:
        return {}

    @cached_property
    def _quantiles(self) -> tuple[float, float] | None:
        if self.draws is None:
            return None
        median, p90 = np.quantile(self.draws, (0.5, 0.9))
        return float(median), float(p90)


@dataclass(frozen=True)
class Sampling:
    """How the draws of lead times are made.

    The same values give the same draws, and workflows that share a step share its draws. `correlation`: of the waits of
    one case, 0 (independent) to below 1. `calendar`: waiting and work of people pass in its working hours, and requests
    arrive during them.
    """

    correlation: float = 0.0
    seed: int = 0
    calendar: Calendar | None = None
    draws: int = _DRAWS

    def arrivals(self) -> Floats:
        """Returns the arrival of the request in each draw, in ms."""
        if self.calendar is None:
            return np.zeros(self.draws)
        shares = (np.random.default_rng(self.seed).permutation(self.draws) + 0.5) / self.draws
        return self.calendar.arrivals(shares, ARRIVAL_YEAR)


@dataclass(frozen=True)
class Period:
    """The period up to the end of the node `until`.

    It begins at the start of the first step, or at the end of the node `since`. `in_working_time`: only working time
    counts, where there is a calendar.
    """

    until: str
    since: str | None = None
    in_working_time: bool = False


INDEPENDENT_WAITS = Sampling()


def lead_time(workflow: Workflow, times: Mapping[str, StepTime], sampling: Sampling = INDEPENDENT_WAITS) -> LeadTime:
    """Returns the lead time of a workflow; `times` is by node."""
    steps = {task.id: _step(workflow, task, times.get(task.id, StepTime())) for task in workflow.tasks}
    if unknown := _unknown(workflow, workflow.tasks, times):
        return LeadTime(unknown, None, steps)
    simulation = _Simulation(workflow, times, sampling)
    finish = simulation.finishes(workflow.topological())
    last = np.max(list(finish.values()), axis=0)
    return LeadTime(_basis(times[task.id] for task in workflow.tasks), last - simulation.start, steps)


def time_until(
    workflow: Workflow, times: Mapping[str, StepTime], period: Period, sampling: Sampling = INDEPENDENT_WAITS
) -> LeadTime:
    """Returns the length of a period of a workflow; `times` is by node.

    The draws are those of `lead_time`. Only the nodes up to both ends of the period are used, so the times of later
    nodes may be unknown. A negative time counts as 0, because the node was done before the period began.
    """
    needed_nodes = workflow.before({period.until} if period.since is None else {period.until, period.since})
    tasks = [task for task in workflow.tasks if task.id in needed_nodes]
    if unknown := _unknown(workflow, tasks, times):
        return LeadTime(unknown)
    simulation, calendar = _Simulation(workflow, times, sampling), sampling.calendar
    finish = simulation.finishes(n for n in workflow.topological() if n in needed_nodes)
    first, last = simulation.start if period.since is None else finish[period.since], finish[period.until]
    if calendar is not None and period.in_working_time:
        first, last = calendar.working_ms(first), calendar.working_ms(last)
    return LeadTime(_basis(times[task.id] for task in tasks), np.maximum(last - first, 0.0))


def _unknown(workflow: Workflow, tasks: Iterable[TaskNode], times: Mapping[str, StepTime]) -> str:
    """Returns why the times of these tasks are unknown; "" where they are known."""
    unknown = [task.title for task in tasks if not _is_known(workflow, task, times.get(task.id, StepTime()))]
    return (
        f"unknown: no time of {', '.join(map(repr, unknown[:3]))}{' and others' if len(unknown) > 3 else ''}"
        if unknown
        else ""
    )


class _Simulation:
    """The times at which the nodes of one workflow end, in ms, in each draw; `start` is the arrival of the request."""

    def __init__(self, workflow: Workflow, times: Mapping[str, StepTime], sampling: Sampling) -> None:
        self.workflow, self.times, self.sampling = workflow, times, sampling
        self.start = sampling.arrivals()

    def finishes(self, nodes: Iterable[str]) -> dict[str, Floats]:
        """Returns the end of each of these nodes, parents first, in each draw."""
        finish: dict[str, Floats] = {}
        for node in nodes:
            before = self.workflow.predecessors(node)
            ready = _last([finish[b] for b in before]) if before else self.start
            is_task = isinstance(self.workflow.by_id[node], TaskNode)
            finish[node] = self._end(node, ready, {b: finish[b] for b in before}) if is_task else ready
        return finish

    def _end(self, task: str, ready: Floats, before: Mapping[str, Floats]) -> Floats:
        """Returns the end of a step in each draw: it waits for the last of its predecessors, then it is worked on.

        `ready` is the end of the last predecessor, `before` the end of each of them.
        """
        time, sampling = self.times[task], self.sampling
        drawn = task, sampling.correlation, sampling.seed, len(ready)
        known = [b for b in before if b in time.waits]
        if len(known) < 2:
            spent = _spent(drawn, time.waits[known[0]].times if known else None, time.work)
        else:
            last = np.argmax([before[b] for b in known], axis=0)
            wait = np.array([_waited(drawn, time.waits[b].times) for b in known])[last, np.arange(len(ready))]
            work_share = 1.0 - np.array([time.waits[b].times.with_work_share for b in known])[last]
            spent = wait + np.where(_shares(*drawn)[2] < work_share, _worked(drawn, time.work), 0.0)
        calendar = sampling.calendar
        return calendar.after(ready, spent) if calendar is not None and time.in_working_time else ready + spent


def _is_known(workflow: Workflow, task: TaskNode, time: StepTime) -> bool:
    """Returns whether the times of a step are known: each wait, and the work where the waits do not contain it."""
    waits = [time.waits.get(b) for b in _tasks_before(workflow, task)]
    if any(wait is None for wait in waits):
        return False
    return time.work is not None or all(wait.times.with_work_share > 0 for wait in waits if wait)


def _tasks_before(workflow: Workflow, task: TaskNode) -> list[str]:
    return [b for b in workflow.predecessors(task.id) if isinstance(workflow.by_id[b], TaskNode)]


def _step(workflow: Workflow, task: TaskNode, time: StepTime) -> StepLead:
    """Returns the waiting time of a step; of several possible waits, the one with the longest median."""
    waits = [time.waits[b] for b in _tasks_before(workflow, task) if b in time.waits]
    if not waits:
        return StepLead()
    wait = max(waits, key=lambda w: w.times.p50)
    return StepLead(wait.times.p50, wait.times.p90, wait.level, wait.times.n)


@lru_cache(_CACHED_STEPS)
def _shares(node: str, correlation: float, seed: int, draws: int) -> tuple[Floats, Floats, Floats]:
    """Returns the shares of waiting and working time of one step, and draws of whether the wait contains the work."""
    from scipy.special import ndtr  # a rebuild loads this module and never draws

    common = np.random.default_rng(int(digest("case", seed)[:12], 16)).standard_normal(draws)
    random = np.random.default_rng(int(digest("lead time", seed, node)[:12], 16))
    own = random.standard_normal(draws)
    shares = (
        ndtr(np.sqrt(correlation) * common + np.sqrt(1 - correlation) * own),
        random.random(draws),
        random.random(draws),
    )
    for values in shares:
        _unchanging(values)
    return shares


Drawn = tuple[str, float, int, int]  # what `_shares` depends on: node, correlation, seed, draws


def _last(ends: Sequence[Floats]) -> Floats:
    return ends[0] if len(ends) == 1 else np.max(ends, axis=0)


@lru_cache(KEPT_TIMES)
def _waited(drawn: Drawn, times: DurationQuantiles) -> Floats:
    """Returns the waiting time of a step in each draw, in ms."""
    return _unchanging(times.at(_shares(*drawn)[0]))


@lru_cache(KEPT_TIMES)
def _worked(drawn: Drawn, times: DurationQuantiles | None) -> Floats:
    """Returns the working time of a step in each draw, in ms; 0 where it is unknown."""
    return _unchanging(np.zeros(drawn[-1]) if times is None else times.at(_shares(*drawn)[1]))


@lru_cache(KEPT_TIMES)
def _spent(drawn: Drawn, wait: DurationQuantiles | None, work: DurationQuantiles | None) -> Floats:
    """Returns the time from the end of the one step that is waited for, or of none, to the end of a step, in ms.

    Where the waiting contains the work, the work is not counted again.
    """
    if wait is None:
        return _worked(drawn, work)
    worked = np.where(_shares(*drawn)[2] < 1.0 - wait.with_work_share, _worked(drawn, work), 0.0)
    return _unchanging(_waited(drawn, wait) + worked)


def _unchanging(values: Floats) -> Floats:
    values.setflags(write=False)
    return values


def _basis(times: Iterable[StepTime]) -> str:
    parts = set[str]()
    for time in times:
        if time.assumed:
            parts.add(ASSUMED)
        for wait in time.waits.values():
            share = wait.times.with_work_share
            parts.add(TOGETHER if share == 1 else APART if share == 0 else MIXED)
    return ", ".join(sorted(parts)) or APART
