"""What a task cost: stated by the source, else time or tokens at the source's `[rates]`."""

from collections.abc import Mapping

from opus_pipelines.history.records import Task
from opus_pipelines.history.source_settings import TokenPrice

_PARTS = {"human": "cost_human_usd", "model": "cost_model_usd", "code": "cost_compute_usd"}
_MS_PER_HOUR = 3_600_000


def price(task: Task, rates: Mapping[str, float | TokenPrice]) -> None:
    """Fill `cost_usd`, its parts and `cost_basis`; all stay NULL where neither the source nor a rate tells.

    A total that the source does not split counts as the part of the kind of actor that did the task.
    """
    parts = [p for p in (task.cost_compute_usd, task.cost_model_usd, task.cost_human_usd) if p is not None]
    if task.cost_usd is None and not parts:
        task.cost_usd = _tokens(task, rates)
        if task.cost_usd is not None:
            task.cost_model_usd, task.cost_basis = task.cost_usd, "rate"
            return
        task.cost_usd = _hours(task, rates)
        task.cost_basis = None if task.cost_usd is None else "rate"
    else:
        task.cost_usd = sum(parts) if task.cost_usd is None else task.cost_usd
        task.cost_basis = "observed"
    if not parts and task.cost_usd is not None and task.actor_kind in _PARTS:
        setattr(task, _PARTS[task.actor_kind], task.cost_usd)


def _tokens(task: Task, rates: Mapping[str, float | TokenPrice]) -> float | None:
    rate = rates.get(task.model) if task.model else None
    if rate is None or (task.tokens_in is None and task.tokens_out is None):
        return None
    paid = rate if isinstance(rate, TokenPrice) else TokenPrice(tokens_in=rate, tokens_out=rate)
    return ((task.tokens_in or 0) * paid.tokens_in + (task.tokens_out or 0) * paid.tokens_out) / 1e6


def _hours(task: Task, rates: Mapping[str, float | TokenPrice]) -> float | None:
    if task.duration_ms is None:
        return None
    for name in (task.actor, task.actor_kind):
        rate = rates.get(name) if name else None
        if isinstance(rate, float):
            return task.duration_ms / _MS_PER_HOUR * rate
    return None
