"""Computes which share of a total of costs or times is assumed, and how many steps have an unknown figure.

Both figures stand next to every total. A success probability is treated the same way: it is unknown where no outcome of
any of its steps was ever observed.
"""

import math
from collections.abc import Iterable
from dataclasses import asdict, dataclass

from opus_pipelines.workflow.model import UNKNOWN, TaskNode

ASSUMED = frozenset(
    {"prior", "estimated", "declared"}
)  # bases of figures that were neither observed nor an observed time at a stated price


@dataclass(frozen=True)
class AssumedShares:
    """The assumed share of the known part of a total (None where nothing is known), and its steps of unknown figure."""

    cost_assumed_share: float | None
    cost_unknown_steps: int
    duration_assumed_share: float | None
    duration_unknown_steps: int

    def row(self) -> dict[str, float | int | None]:
        """Returns the fields as columns of a table."""
        return asdict(self)


def assumed(tasks: Iterable[TaskNode]) -> AssumedShares:
    """Returns the assumed shares of the steps of a workflow, reviews included."""
    steps = list(tasks)
    return assumed_of(
        ((t.known_cost_usd, t.cost_basis) for t in steps), ((t.known_duration_ms, t.duration_basis) for t in steps)
    )


def assumed_of(
    costs: Iterable[tuple[float | None, str | None]], times: Iterable[tuple[float | None, str | None]]
) -> AssumedShares:
    """Returns the assumed shares of figures with their bases; a figure of None is unknown."""
    return AssumedShares(*_share(costs), *_share(times))


def total_usd(tasks: Iterable[TaskNode], total: float) -> float | None:
    """Returns the total; None where no step has a known cost and nothing else was added, because unknown is not 0."""
    steps = list(tasks)
    return None if steps and not total and all(t.cost_basis == UNKNOWN for t in steps) else total


def total_ms(tasks: Iterable[TaskNode], total: float) -> float | None:
    """Returns the total duration; None where no step has a known duration and nothing else was added."""
    steps = list(tasks)
    return None if steps and not total and all(t.duration_basis == UNKNOWN for t in steps) else total


def known_success(tasks: Iterable[TaskNode], success: float) -> float | None:
    """Returns the probability that a workflow of these steps succeeds.

    Returns None where the p of every step is a prior, because a product of priors is not an estimate.
    """
    steps = list(tasks)
    return None if steps and success_unknown_steps(steps) == len(steps) else success


def success_unknown_steps(tasks: Iterable[TaskNode]) -> int:
    """Returns how many steps have a p without an observed outcome."""
    return sum(task.p_basis == "prior" for task in tasks)


def _share(figures: Iterable[tuple[float | None, str | None]]) -> tuple[float | None, int]:
    """Returns the assumed share of the known total, and the number of unknown figures.

    Where the known total is 0, the share is that of the steps.
    """
    entries = list(figures)
    known = [(value, basis in ASSUMED) for value, basis in entries if value is not None]
    if not known:
        return None, len(entries)
    total = math.fsum(value for value, _ in known)
    part = math.fsum(value for value, is_assumed in known if is_assumed)
    share = min(1.0, part / total) if total > 0 else sum(is_assumed for _, is_assumed in known) / len(known)
    return share, len(entries) - len(known)
