"""Computes the cost of a node, LWM (12): what a task takes in one execution mode.

The figures come from history, otherwise from stated prices. Nothing is invented: where neither states a cost or a time,
it is unknown (None, basis `unknown`). `generation.search.imputed_figures` imputes it where workflows are compared.
"""

from dataclasses import dataclass
from typing import NamedTuple

from opus_pipelines.core.settings import Cost, Priors
from opus_pipelines.wkg.graph import ExecutionMode, Task
from opus_pipelines.workflow.evaluation.cost import MS_PER_HOUR, Parts, split_cost, time_usd
from opus_pipelines.workflow.model import UNKNOWN, Actor

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
