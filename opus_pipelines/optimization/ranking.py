"""Ranking by EVAL (13), and distance by (14)."""

from collections.abc import Sequence
from typing import Protocol, TypeVar

from opus_pipelines.evaluation.ranking import merit


class Rankable(Protocol):
    """What ranking needs of a candidate; `transitions`: how often history went its way; `penalty`: EVAL (10), None = not measured;
    `conformity`, `has_optional`: see `Candidate`."""

    @property
    def id(self) -> str: ...
    @property
    def reward_usd(self) -> float: ...
    @property
    def feasible(self) -> bool: ...
    @property
    def transitions(self) -> int: ...
    @property
    def penalty(self) -> float | None: ...
    @property
    def conformity(self) -> float | None: ...
    @property
    def order_conformity(self) -> float | None: ...
    @property
    def has_optional(self) -> bool: ...


C = TypeVar("C", bound=Rankable)


def order(candidate: Rankable, quantum: float) -> tuple[bool, bool, tuple[float, float], int, float, int, str]:
    """The key of the ranking: feasible first, then those without optional steps, conformity down (where outcomes do not decide), Reward
    down, Penalty up (unmeasured last), transitions down, id."""
    worth = merit(candidate.reward_usd, candidate.penalty, quantum)
    conformity = -round(candidate.conformity or 0.0, 6), -round(candidate.order_conformity or 0.0, 6)
    return not candidate.feasible, candidate.has_optional, conformity, *worth, -candidate.transitions, candidate.id


def rank(candidates: Sequence[C], quantum: float) -> list[tuple[int, C]]:
    """The candidates by EVAL (13) with their ranks 1..n, best first; the id decides last, so that no two tie."""
    return list(enumerate(sorted(candidates, key=lambda c: order(c, quantum)), start=1))


def distance(first: Rankable, second: Rankable) -> float:
    """EVAL (14) in dollars: a pseudo-metric, 0 for two that earn the same."""
    return abs(first.reward_usd - second.reward_usd)
