"""The figures of a step in each execution mode, and what history paid for it.

The figures come from history, otherwise from stated prices. Nothing is invented: where neither states a cost or a time,
it is unknown (None, basis `unknown`). `imputed_usd` imputes it where workflows are compared.

The figures of a task given the tasks directly before it: how the order of tasks enters the Reward, EVAL (7).

Each direct predecessor shifts p, q, time and cost as the WKG's edge between the two says
(`wkg.estimates.pair_figures`). The figures behind several predecessors are the means over the predecessors; each of
them is weighted by γ already, and one without an edge has the task's own figures. A review is looked through: the
predecessor is the task that it reviews. The probabilities stay P(success | all predecessors succeeded) and P(success |
at least one did not), so the inference of success is the same. These rules are the project's own.

Imputes unknown costs and times for the comparison of workflows. No imputed figure is shown or part of a total.

The rule is this project's own. The search minimises a sum over steps, so every step needs a figure.

- A step that two workflows carry out in the same execution mode counts the same for both. Their known parts are
  compared on the other steps.
- Where another execution mode of the same task has a known cost, a mode of unknown cost counts as the dearest of these.
  A mode is therefore never chosen because its cost is unknown.
- Any other task of unknown cost counts as the mean over the tasks of known cost in the Workflow Graph, each with its
  most frequent mode of known cost. With 0, a workflow would win by its unknown steps. With the maximum, one dear step
  would make it worthwhile to omit every unknown step. The mean is the best estimate of the cost of such a step.
- Where no task has a known cost, every unknown cost counts 0. Unknown times are treated the same way where time has a
  price (`cost.usd_per_hour_of_duration`). Limits on cost and time are compared with the known parts alone, because an
  imputed figure must not break a limit. Next to each total stands the number of steps with an unknown figure.

Computes the baseline: how similar cases of history carried out this kind of work, and what they paid.

A saving is defined once, for a step, and added up from there. The compared cases are the nearest similar cases. What
they cost on average, less what the workflow costs, has three parts, and only the first one is called the saving:

- The price: the baseline of a step is the mean amount that compared cases paid for carrying out its task once. The
  saving is the baseline less the cost of the step. It is unknown where one of the two is unknown.
- Repetition: what a compared case paid on average for carrying out the task again, which the workflow does not plan.
- Steps left out: what a compared case paid on average for tasks that the workflow does not have, less what the
  workflow pays for steps that not every compared case did.

The price of time and of held resources is part of none of them. The parts of a workflow are the sums over its steps and
over the tasks that it leaves out. Those of a contract are the sums over its rank-1 workflows. Tasks, workflows,
contracts and the shipped queries therefore add up the same numbers.

`Baseline` also gives the median cost and duration of a whole case. These medians are part of no saving.
"""

import math
import statistics
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from statistics import fmean
from typing import Any, NamedTuple

from opus_pipelines.core.ids import SameSettings
from opus_pipelines.core.settings import Cost, Priors
from opus_pipelines.wkg.graph import ExecutionMode, PairShift, Task
from opus_pipelines.workflow.evaluation.cost import MS_PER_HOUR, Parts, split_cost, time_usd
from opus_pipelines.workflow.model import UNKNOWN, Actor, TaskNode

# work of an unknown actor kind takes the stated prices of this one, with basis `prior`
UNKNOWN_ACTOR = "human"


class Price(NamedTuple):
    """The cost and duration of doing a task once, None where unknown.

    The bases are `observed`, `rate` (an observed time × a stated price), `prior` and `unknown`.
    """

    cost_usd: float | None
    cost_basis: str
    duration_ms: float | None
    duration_basis: str


@dataclass(frozen=True)
class NodeCost:
    """The figures of a node, named as in `workflows/tasks`; None where unknown.

    The three parts add up to `cost_usd`. `time_usd` is w_d times the known duration. `paid_by_time`: the cost is the
    observed duration at a stated price.
    """

    cost_usd: float | None
    cost_compute_usd: float | None
    cost_model_usd: float | None
    cost_human_usd: float | None
    cost_basis: str
    duration_ms: float | None
    duration_basis: str
    time_usd: float
    p: float
    p_basis: str
    q: float
    q_basis: str
    paid_by_time: bool = False


def price_of(actor: Actor, cost_usd: float | None, duration_ms: float | None, settings: Cost) -> Price:
    """Returns cost and duration of a task, with stated prices where history has no figure.

    Without a cost, the cost is the observed duration at `usd_per_hour` of the model, else of the role (the group), else
    of the actor kind (`rate`). Without such a price, or without a duration, it is the stated `default_cost_usd`, else
    the stated `default_duration_ms` at `usd_per_hour` (`prior`). Otherwise the cost is unknown. Work of an unknown
    actor kind takes the stated prices of a person, with basis `prior`.
    """
    names = _names(actor)
    duration = _of(names, settings.default_duration_ms) if duration_ms is None else duration_ms
    duration_basis = "observed" if duration_ms is not None else UNKNOWN if duration is None else "prior"
    if cost_usd is not None:
        return Price(cost_usd, "observed", duration, duration_basis)
    rate = _of(names, settings.usd_per_hour)
    if duration_ms is not None and rate is not None:
        known = actor.kind or any(_of([name], settings.usd_per_hour) is not None for name in actor[1:] if name)
        return Price(rate * duration_ms / MS_PER_HOUR, "rate" if known else "prior", duration_ms, duration_basis)
    stated = _of(names, settings.default_cost_usd)
    if stated is None and rate is not None and duration is not None:
        stated = rate * duration / MS_PER_HOUR
    return Price(stated, UNKNOWN if stated is None else "prior", duration, duration_basis)


def node_cost(task: Task, mode: ExecutionMode, cost: Cost, priors: Priors) -> NodeCost:
    """Returns the cost of `task` in execution mode `mode`, LWM (12), and its success probabilities (EVAL p and q).

    p and q are those of the mode where they were counted for it, else those of the task, else the priors of the
    settings with basis `prior`.
    """
    price = price_of(mode.actor, _observed_cost(mode), mode.duration_ms_mean, cost)
    parts = _parts(mode, price.cost_usd)
    p, p_basis = _share(mode.p if mode.p_n > 0 else None, mode.basis, task.p, task.p_basis, priors.p)
    q, q_basis = _share(mode.q if mode.q_n > 0 else None, mode.basis, task.q, task.q_basis, priors.q)
    return NodeCost(
        cost_usd=price.cost_usd,
        cost_compute_usd=parts.compute_usd if parts else None,
        cost_model_usd=parts.model_usd if parts else None,
        cost_human_usd=parts.human_usd if parts else None,
        cost_basis=(mode.cost_basis or price.cost_basis) if price.cost_basis == "observed" else price.cost_basis,
        duration_ms=price.duration_ms,
        duration_basis=(mode.duration_basis or price.duration_basis)
        if price.duration_basis == "observed"
        else price.duration_basis,
        time_usd=time_usd(price.duration_ms or 0.0, cost),
        p=p,
        p_basis=p_basis,
        q=q,
        q_basis=q_basis,
        paid_by_time=price.cost_basis != "observed"
        and mode.duration_ms_mean is not None
        and _of(_names(mode.actor), cost.usd_per_hour) is not None,
    )


def _observed_cost(mode: ExecutionMode) -> float | None:
    """Returns the cost of the mode; where only parts of it are known, their sum."""
    if mode.cost_usd_mean is not None:
        return mode.cost_usd_mean
    known = [part for part in (mode.cost_compute_usd, mode.cost_model_usd, mode.cost_human_usd) if part is not None]
    return sum(known) if known else None


def _parts(mode: ExecutionMode, cost_usd: float | None) -> Parts | None:
    if cost_usd is None:
        return None
    return split_cost(
        cost_usd, mode.cost_compute_usd, mode.cost_model_usd, mode.cost_human_usd, mode.actor_kind or UNKNOWN_ACTOR
    )


def _names(actor: Actor) -> list[str]:
    """Returns the names under which prices of an actor are looked up, the most specific first."""
    return [name for name in (actor.model, actor.group, actor.kind or UNKNOWN_ACTOR) if name]


def _of(names: list[str], table: dict[str, float]) -> float | None:
    """Returns the figure of the first name that the table states, in any case."""
    folded = {name.casefold(): value for name, value in table.items()}
    return next((folded[name.casefold()] for name in names if name.casefold() in folded), None)


def _share(
    own: float | None, own_basis: str | None, task: float | None, task_basis: str | None, prior: float
) -> tuple[float, str]:
    if own is not None:
        return own, "observed" if own_basis in (None, "prior") else str(own_basis)
    return (prior, "prior") if task is None else (task, task_basis or "observed")


Shifts = Mapping[tuple[str, str], PairShift]
_NONE = PairShift()


def behind(node: TaskNode, before: Collection[str], shifts: Shifts) -> TaskNode:
    """Returns the node with its figures behind these tasks; the node itself where no edge shifts them."""
    found = [shifts.get((task, node.task_id), _NONE) for task in before]
    if all(shift is _NONE for shift in found):
        return node
    duration = fmean(shift.duration_factor for shift in found)
    cost = fmean(_cost_factor(node, shift) for shift in found)
    return replace(
        node,
        p=fmean(_shifted(node.p, shift.p_log_odds) for shift in found),
        q=fmean(_shifted(node.q, shift.q_log_odds) for shift in found),
        duration_ms=node.duration_ms * duration,
        cost_usd=node.cost_usd * cost,
        cost_compute_usd=_times(node.cost_compute_usd, cost),
        cost_model_usd=_times(node.cost_model_usd, cost),
        cost_human_usd=_times(node.cost_human_usd, cost),
    )


def errors(node: TaskNode, before: Collection[str], shifts: Shifts) -> tuple[float, float]:
    """Returns the standard errors of p and q of a node behind these tasks that come with the outcomes of the pairs.

    Pairs are independent, so the variance of their mean is the sum of their variances over the square of their number.
    """
    found = [shifts.get((task, node.task_id), _NONE) for task in before]
    p, q = (math.hypot(*values) for values in ((s.p_error for s in found), (s.q_error for s in found)))
    return p / max(len(found), 1), q / max(len(found), 1)


def _cost_factor(node: TaskNode, shift: PairShift) -> float:
    if shift.cost_factor is not None:
        return shift.cost_factor
    return shift.duration_factor if node.cost_basis == "rate" or node.paid_by_time else 1.0


def _times(amount: float | None, factor: float) -> float | None:
    return None if amount is None else amount * factor


def _shifted(chance: float, log_odds: float) -> float:
    """Returns the probability with these log-odds more; 0 and 1 stay what they are."""
    if not log_odds or not 0 < chance < 1:
        return chance
    return 1 / (1 + (1 - chance) / chance * math.exp(-log_odds))


def imputed_usd(costs: Mapping[str, Sequence[NodeCost]], settings: Cost) -> dict[str, tuple[float, ...]]:
    """Returns the imputed dollars of every execution mode of every task, most frequent mode first.

    The amount is 0.0 where cost and time of the mode are known.
    """
    spent = _stand_ins({task: [c.cost_usd for c in modes] for task, modes in costs.items()})
    if not settings.usd_per_hour_of_duration:
        return spent
    took = _stand_ins({task: [c.duration_ms for c in modes] for task, modes in costs.items()})
    return {
        task: tuple(usd + time_usd(ms, settings) for usd, ms in zip(spent[task], took[task], strict=True))
        for task in spent
    }


def of_another(
    costs: Mapping[str, Sequence[NodeCost]], unknown_cost: bool, unknown_time: bool, settings: Cost
) -> float:
    """Returns the imputed dollars of a step that is not among these tasks: a review that a plan adds."""
    spent = _usual([[c.cost_usd for c in modes] for _, modes in sorted(costs.items())]) if unknown_cost else 0.0
    took = _usual([[c.duration_ms for c in modes] for _, modes in sorted(costs.items())]) if unknown_time else 0.0
    return spent + time_usd(took, settings)


def _stand_ins(figures: Mapping[str, Sequence[float | None]]) -> dict[str, tuple[float, ...]]:
    """Returns the imputed value of each figure that is None, and 0.0 for a known one."""
    other = _usual([values for _, values in sorted(figures.items())])
    dearest = {task: max((x for x in values if x is not None), default=other) for task, values in figures.items()}
    return {task: tuple(dearest[task] if x is None else 0.0 for x in values) for task, values in figures.items()}


def _usual(figures: Sequence[Sequence[float | None]]) -> float:
    """Returns the mean of the first known figure of each task; 0.0 where no task has one."""
    first = [next((x for x in values if x is not None), None) for values in figures]
    known = [x for x in first if x is not None]
    return math.fsum(known) / len(known) if known else 0.0


# cases whose prices are kept, 1 kB each: most intakes of a contract are compared with the same ones
_CASES_KEPT = 10_000


class CaseFigures(NamedTuple):
    """The figures of the tasks of a case, in their order."""

    costs_usd: tuple[float | None, ...]
    actor_kinds: tuple[str | None, ...]
    models: tuple[str | None, ...]
    times_ms: tuple[float | None, ...]
    actor_groups: tuple[str | None, ...]


@dataclass(frozen=True)
class Baseline:
    """The medians over the whole nearest cases and their success rate; None where no case states the figure."""

    cost_usd: float | None = None
    duration_ms: float | None = None
    success: float | None = None


def baseline(cases: Iterable[Mapping[str, Any]], settings: Cost) -> Baseline:
    """Returns the baseline of rows of wkg/cases.

    The rows have `task_cost_usd`, `task_duration_ms` and `success`, and `actor_kinds` where it is known. EVAL (5) gives
    the cost of each case as the chain of its tasks, rework included: Σ costs + w_d · Σ durations, at stated prices
    where history has no cost.

    A case with an unknown cost or time is left out of that median, because a partial sum is not the cost of a case.
    History does not record held resources, so ⟨w_r, R^(r)⟩ is left out. Cases without tasks are ignored.
    """
    rows = [row for row in cases if row["task_cost_usd"]]
    stated = SameSettings.of(settings)
    prices = [_prices(row, stated) for row in rows]
    times = [
        sum(known)
        for case_prices in prices
        if len(known := [p.duration_ms for p in case_prices if p.duration_ms is not None]) == len(case_prices)
    ]
    known_outcomes = [bool(row["success"]) for row in rows if row["success"] is not None]
    costs = [cost for case_prices in prices if (cost := _case_usd(case_prices, settings)) is not None]
    return Baseline(
        statistics.median(costs) if costs else None,
        statistics.median(times) if times else None,
        statistics.fmean(known_outcomes) if known_outcomes else None,
    )


class Paid(NamedTuple):
    """What compared cases paid for carrying out a task once (mean, None: unknown), and how often a case did it.

    `often` is the mean number of times a case, and `share` the share of the cases that did it at least once.
    """

    usd: float | None
    often: float
    share: float

    @property
    def case_usd(self) -> float | None:
        """Returns the dollars that a case paid for the task on average, repetitions included."""
        return None if self.usd is None else self.usd * self.often


class Saved(NamedTuple):
    """The difference between the compared cases and a step, in dollars; None where it is unknown."""

    baseline_cost_usd: float | None = None
    saving_usd: float | None = None
    repetition_usd: float | None = None
    left_out_usd: float | None = None


@dataclass(frozen=True)
class TaskBaselines:
    """What the compared cases paid for each task; `compared` counts the cases."""

    paid: Mapping[str, Paid]
    compared: int

    def of(self, task: str | None) -> float | None:
        """Returns the dollars for a task once, None where they are unknown or no compared case did it."""
        paid = self.paid.get(task) if task is not None else None
        return None if paid is None else paid.usd

    def saved(self, steps: Iterable[TaskNode]) -> dict[str, Saved]:
        """Returns the difference of each step of a workflow, by node. A step that is planned again repeats its task."""
        found: dict[str, Saved] = {}
        seen: set[str] = set()
        for step in steps:
            task = None if step.is_review else step.task_id
            found[step.id] = self._saved(task, step.known_cost_usd, task in seen)
            seen |= {task} if task is not None else set()
        return found

    def _saved(self, task: str | None, cost: float | None, is_again: bool) -> Saved:
        paid = self.paid.get(task) if task is not None else None
        if cost is None or not self.compared or (paid is not None and paid.usd is None):
            return Saved(self.of(task))
        if paid is None or paid.usd is None:
            return Saved(left_out_usd=-cost)
        repeated, added = (-1.0, 0.0) if is_again else (paid.often - paid.share, paid.share - 1.0)
        return Saved(paid.usd, paid.usd - cost, repeated * paid.usd, added * paid.usd)

    def left_out(self, tasks: Collection[str]) -> dict[str, float]:
        """Returns what a compared case paid on average for each other task than these, where it is known."""
        others = ((task, paid.case_usd) for task, paid in sorted(self.paid.items()) if task not in tasks)
        return {task: usd for task, usd in others if usd is not None}


def task_baselines(cases: Collection[Mapping[str, Any]], settings: Cost | None = None) -> TaskBaselines:
    """Returns what the cases paid for each task, and how often they did it.

    The rows have `tasks`, `task_cost_usd` and `task_duration_ms`, and the actors of each task (`actor_kinds`, `models`,
    `actor_groups`), so that both sides of a saving use the same stated prices.

    Where the cost of a task is known for some of its occurrences only, the mean of these occurrences stands for the
    others.
    """
    done: dict[str, list[float | None]] = {}
    did: Counter[str] = Counter()
    stated = SameSettings.of(settings or Cost())
    for case in cases:
        did.update(set(case["tasks"]))
        for task, price in zip(case["tasks"], _prices(case, stated), strict=True):
            done.setdefault(task, []).append(price.cost_usd)
    paid = {task: Paid(_mean(costs), len(costs) / len(cases), did[task] / len(cases)) for task, costs in done.items()}
    return TaskBaselines(paid, len(cases))


def total(figures: Iterable[float | None]) -> float | None:
    """Returns the exactly rounded sum of the known figures; None where no figure is known."""
    known = [x for x in figures if x is not None]
    return math.fsum(known) if known else None


def _mean(costs: list[float | None]) -> float | None:
    known = [x for x in costs if x is not None]
    return math.fsum(known) / len(known) if known else None


def _prices(row: Mapping[str, Any], stated: SameSettings[Cost]) -> tuple[Price, ...]:
    costs = tuple(row["task_cost_usd"])
    nothing = (None,) * len(costs)
    others = (tuple(row.get(name) or nothing) for name in ("actor_kinds", "models", "task_duration_ms", "actor_groups"))
    return _prices_of(CaseFigures(costs, *others), stated)


@lru_cache(_CASES_KEPT)
def _prices_of(case: CaseFigures, stated: SameSettings[Cost]) -> tuple[Price, ...]:
    """Returns the price of each task of a case."""
    return tuple(
        price_of(Actor(kind, model, group), cost, ms, stated.settings)
        for cost, kind, model, ms, group in zip(*case, strict=True)
    )


def _case_usd(prices: Sequence[Price], settings: Cost) -> float | None:
    """Returns the cost of a whole case; None where a part of it is unknown."""
    costs = [p.cost_usd for p in prices if p.cost_usd is not None]
    times = [p.duration_ms for p in prices if p.duration_ms is not None]
    if len(costs) < len(prices) or (settings.usd_per_hour_of_duration and len(times) < len(prices)):
        return None
    return sum(costs) + time_usd(sum(times), settings)
