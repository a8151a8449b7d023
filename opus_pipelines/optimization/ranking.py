"""Ranking by EVAL (13), distance by (14), and the least difference between two ranked workflows."""

from collections.abc import Sequence
from typing import Protocol, TypeVar

from opus_pipelines.evaluation.ranking import merit


class Rankable(Protocol):
    """What ranking needs of a candidate; `transitions`: how often history went its way; `penalty`: EVAL (10), None = not measured."""

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


C = TypeVar("C", bound=Rankable)


class HasTasks(Protocol):
    """A candidate whose tasks can be compared."""

    @property
    def tasks(self) -> Sequence[str]: ...


T = TypeVar("T", bound=HasTasks)


def order(candidate: Rankable, quantum: float) -> tuple[bool, int, float, int, str]:
    """The key of the ranking: feasible first, Reward down, Penalty up (unmeasured last), transitions down, id."""
    worth = merit(candidate.reward_usd, candidate.penalty, quantum)
    return not candidate.feasible, *worth, -candidate.transitions, candidate.id


def rank(candidates: Sequence[C], quantum: float) -> list[tuple[int, C]]:
    """The candidates by EVAL (13) with their ranks 1..n, best first; the id decides last, so that no two tie."""
    return list(enumerate(sorted(candidates, key=lambda c: order(c, quantum)), start=1))


def distance(first: Rankable, second: Rankable) -> float:
    """EVAL (14) in dollars: a pseudo-metric, 0 for two that earn the same."""
    return abs(first.reward_usd - second.reward_usd)


def jaccard_distance(first: Sequence[str], second: Sequence[str]) -> float:
    """1 - |common| / |all| of two sets of tasks; 0 for two empty ones."""
    a, b = set(first), set(second)
    return 1 - len(a & b) / len(a | b) if a | b else 0.0


def diverse(ranked: Sequence[T], least: float) -> list[T]:
    """Those that differ by more than `least` (Jaccard distance of their task sets) from every better one kept; 0 drops equal sets."""
    kept: list[T] = []
    for candidate in ranked:
        if all(jaccard_distance(candidate.tasks, better.tasks) > least for better in kept):
            kept.append(candidate)
    return kept
