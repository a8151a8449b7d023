"""The cost of a node, LWM (12): what carrying out a task in one way takes, by history, else by the settings' prices."""

from dataclasses import dataclass
from typing import NamedTuple

from opus_pipelines.evaluation.cost import MS_PER_HOUR, Parts, split_cost, time_usd
from opus_pipelines.settings import Cost, Priors
from opus_pipelines.wkg.graph import Task, Way

_DEFAULTS = Cost()
UNKNOWN_ACTOR = "human"


class Price(NamedTuple):
    """What doing a task once takes; basis: `observed`, `rate` (observed time × a price) or `prior`."""

    cost_usd: float
    cost_basis: str
    duration_ms: float
    duration_basis: str


@dataclass(frozen=True)
class NodeCost:
    """A node's figures, named as in `workflows/tasks`. The three parts add up to `cost_usd`; `path_cost_usd` = cost_usd + time_usd."""

    cost_usd: float
    cost_compute_usd: float
    cost_model_usd: float
    cost_human_usd: float
    cost_basis: str
    duration_ms: float
    duration_basis: str
    time_usd: float
    p: float
    p_basis: str
    q: float
    q_basis: str

    @property
    def path_cost_usd(self) -> float:
        """C(t) of LWM (12): compute, time, model and human cost, each in dollars, so with weight 1."""
        return self.cost_usd + self.time_usd


def priced(actor_kind: str | None, model: str | None, cost_usd: float | None, duration_ms: float | None, settings: Cost) -> Price:
    """Cost and duration of a task, with the settings' figures where history has none.

    Without a cost: the observed duration at `usd_per_hour` of the model, else of the actor kind (`rate`). Without a duration too:
    `default_cost_usd`, else `default_duration_ms` at `usd_per_hour` (`prior`). A task whose actor kind is unknown, or not in these tables,
    is taken for a person's: the dearest guess, so that nothing looks cheap because little is known of it.
    """
    kind = actor_kind or UNKNOWN_ACTOR
    duration = _for(kind, settings.default_duration_ms, _DEFAULTS.default_duration_ms) if duration_ms is None else duration_ms
    duration_basis = "prior" if duration_ms is None else "observed"
    if cost_usd is not None:
        return Price(cost_usd, "observed", duration, duration_basis)
    if duration_ms is None and kind in settings.default_cost_usd:
        return Price(settings.default_cost_usd[kind], "prior", duration, duration_basis)
    rates = settings.usd_per_hour
    rate = rates[model] if model is not None and model in rates else _for(kind, rates, _DEFAULTS.usd_per_hour)
    return Price(rate * duration / MS_PER_HOUR, "prior" if duration_ms is None else "rate", duration, duration_basis)


def node_cost(task: Task, way: Way, cost: Cost, priors: Priors) -> NodeCost:
    """What `task` takes done in `way`, LWM (12), and how well it succeeds (EVAL p and q).

    p and q are the way's own where they were counted for it, else the task's, else the settings' priors with basis `prior`.
    """
    price = priced(way.actor_kind, way.model, _observed_cost(way), way.duration_ms_mean, cost)
    parts = _parts(way, price)
    p, p_basis = _share(way.p if way.p_n > 0 else None, way.basis, task.p, task.p_basis, priors.p)
    q, q_basis = _share(way.q if way.q_n > 0 else None, way.basis, task.q, task.q_basis, priors.q)
    return NodeCost(
        cost_usd=price.cost_usd,
        cost_compute_usd=parts.compute_usd,
        cost_model_usd=parts.model_usd,
        cost_human_usd=parts.human_usd,
        cost_basis=(way.cost_basis or price.cost_basis) if price.cost_basis == "observed" else price.cost_basis,
        duration_ms=price.duration_ms,
        duration_basis=(way.duration_basis or price.duration_basis) if price.duration_basis == "observed" else price.duration_basis,
        time_usd=time_usd(price.duration_ms, cost),
        p=p, p_basis=p_basis, q=q, q_basis=q_basis,
    )


def _observed_cost(way: Way) -> float | None:
    """The way's cost; where only parts of it are known, their sum."""
    if way.cost_usd_mean is not None:
        return way.cost_usd_mean
    known = [part for part in (way.cost_compute_usd, way.cost_model_usd, way.cost_human_usd) if part is not None]
    return sum(known) if known else None


def _parts(way: Way, price: Price) -> Parts:
    kind = way.actor_kind or UNKNOWN_ACTOR
    return split_cost(price.cost_usd, way.cost_compute_usd, way.cost_model_usd, way.cost_human_usd, kind)


def _for(kind: str, table: dict[str, float], defaults: dict[str, float]) -> float:
    """The kind's figure; a table of the settings that leaves a kind out leaves the built-in figure in force."""
    known = defaults | table
    return known.get(kind, known[UNKNOWN_ACTOR])


def _share(own: float | None, own_basis: str | None, task: float | None, task_basis: str | None, prior: float) -> tuple[float, str]:
    if own is not None:
        return own, "observed" if own_basis in (None, "prior") else str(own_basis)
    return (prior, "prior") if task is None else (task, task_basis or "observed")
