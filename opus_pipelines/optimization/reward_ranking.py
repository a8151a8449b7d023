"""The order of the workflows of one Intention: EVAL (13) where a gain is stated, else success, conformity with similar
cases, lead time.

Without a stated gain a Reward would rest on an invented amount of dollars, so there is none. Where outcomes do not tell
which work may be left out, conformity comes before everything that rests on them.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

from opus_pipelines.evaluation.comparison import quantised

CONSTRAINTS, OPTIONAL, CONFORMITY, REWARD, SUCCESS, LEAD_TIME, PENALTY, TRANSITIONS, NAME = (
    "constraints",
    "steps that nothing asks for",
    "conformity",
    "Reward",
    "success",
    "lead time",
    "Penalty",
    "transitions",
    "id",
)
SECONDS = 1_000  # milliseconds: lead times are compared in whole seconds, so that rounding errors decide nothing


class Rankable(Protocol):
    """What ranking needs of a candidate. `worth`: the Reward by which it is compared, its chance of success where no
    gain is stated;
    `transitions`: how often history went its way; `penalty`: EVAL (10), None = not measured; the rest: see `Candidate`.
    """

    @property
    def id(self) -> str: ...
    @property
    def worth(self) -> float: ...
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
    @property
    def compared_lead_ms(self) -> float: ...


C = TypeVar("C", bound=Rankable)


@dataclass(frozen=True)
class Ranking:
    """By what the workflows of one Intention are ranked. `by_support`: outcomes do not tell which work may be left
    out.
    """

    quantum_usd: float
    success_step: float
    has_gain: bool = True
    by_support: bool = False

    @property
    def step(self) -> float:
        """The step in which `worth` is compared."""
        return self.quantum_usd if self.has_gain else self.success_step

    @property
    def criteria(self) -> tuple[str, ...]:
        """What ranks feasible workflows without idle steps, the first that tells two of them apart."""
        first = (CONFORMITY,) if self.by_support else ()
        if self.has_gain:
            return *first, REWARD, PENALTY
        return *(first or (SUCCESS, CONFORMITY)), LEAD_TIME, PENALTY

    def order(self, candidate: Rankable) -> tuple[Any, ...]:
        """The key of the ranking, least first."""
        return tuple(_KEYS[name](candidate, self) for name in self._names)

    def rank(self, candidates: Sequence[C]) -> list[tuple[int, C]]:
        """The candidates with their ranks 1..n, best first; the id decides last, so that no two tie."""
        return list(enumerate(sorted(candidates, key=self.order), start=1))

    def is_better(self, one: Rankable, other: Rankable) -> bool:
        """Whether one ranks before the other by more than a Penalty or how often history went its way."""
        return self._key_to(PENALTY, one) < self._key_to(PENALTY, other)

    def told_by(self, one: Rankable, other: Rankable) -> str:
        """The first criterion in which the two differ."""
        pairs = zip(self._names, self.order(one), self.order(other), strict=True)
        return next((name for name, a, b in pairs if a != b), NAME)

    def in_a_tie(self, one: Rankable, other: Rankable) -> float:
        """The chance that one ranks before the other where the worth of both is the same: 0, 1, or 0.5 where nothing
        measured tells.
        """
        names = [n for n in self.criteria if n not in (REWARD, SUCCESS)]
        first, second = ([_KEYS[n](c, self) for n in names] for c in (one, other))
        return 0.5 if first == second else float(first < second)

    @property
    def _names(self) -> tuple[str, ...]:
        return CONSTRAINTS, OPTIONAL, *self.criteria, TRANSITIONS, NAME

    def _key_to(self, end: str, candidate: Rankable) -> tuple[Any, ...]:
        return self.order(candidate)[: self._names.index(end)]


def _conformity(candidate: Rankable, ranking: Ranking) -> tuple[float, float]:
    return -round(candidate.conformity or 0.0, 6), -round(candidate.order_conformity or 0.0, 6)


_KEYS: dict[str, Callable[[Rankable, Ranking], Any]] = {
    CONSTRAINTS: lambda c, ranking: not c.feasible,
    OPTIONAL: lambda c, ranking: c.has_optional,
    CONFORMITY: _conformity,
    REWARD: lambda c, ranking: -quantised(c.worth, ranking.step),
    SUCCESS: lambda c, ranking: -quantised(c.worth, ranking.step),
    LEAD_TIME: lambda c, ranking: round(c.compared_lead_ms / SECONDS),
    PENALTY: lambda c, ranking: math.inf if c.penalty is None else c.penalty,
    TRANSITIONS: lambda c, ranking: -c.transitions,
    NAME: lambda c, ranking: c.id,
}
