"""What tells which work may be left out: history's outcomes where there are enough of them, else the support among
similar cases.

`outcomes`: a task is critical when similar cases failed without it (`experience.needed`), and the Reward prices the
rest.
`support`: history tells no outcomes, or too few. Leaving work out then is not free: a task that at least
`CRITICAL_SUPPORT` of the similar cases did is critical, and workflows are ranked by their conformity: the expected F1
of their steps against those of the similar cases; of two orders of the same steps the one goes first whose consecutive
pairs have the higher expected F1.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from opus_pipelines.lwm.interface import SimilarCase
from opus_pipelines.retrieval.consensus import Consensus, Course
from opus_pipelines.retrieval.similar_cases import SimilarCases

OUTCOMES, SUPPORT = "outcomes", "support"
LEAST_KNOWN = 0.5  # share of the similar cases' weight whose outcome must be known for outcomes to decide
CRITICAL_SUPPORT = 0.8  # share of the similar cases that did a task, from which no workflow may lack it
LEAST_SUCCESSES = 3.0  # similar successes (effective number) below which no verdict is clear
EQUAL = 1e-12  # difference up to which two workflows agree equally
LEAST_COSINE = 0.35  # of the most similar case, below which history has no case like the intake


@dataclass(frozen=True)
class Completeness:
    """`rule`: outcomes or support; `similar`, `expected`: what the cases agree on, where that was worked out; `steps`:
    all work steps that the similar cases did, where workflows are held against them; `doubt`: why no verdict on
    this Intention is clear, None where nothing speaks against one.
    """

    rule: str
    undecided_reason: str | None = None
    similar: SimilarCases | None = None
    consensus: Consensus | None = None
    steps: frozenset[str] = frozenset()

    @property
    def by_support(self) -> bool:
        """Whether workflows are ranked by what similar cases did before anything that rests on outcomes."""
        return self.rule == SUPPORT

    @property
    def consensus_tasks(self) -> tuple[str, ...]:
        """The work steps of the consensus, in order; none where outcomes decide."""
        return (
            tuple(t for t in self.consensus.tasks if t in self.steps) if self.rule == SUPPORT and self.consensus else ()
        )

    @property
    def critical(self) -> list[frozenset[str]]:
        """Groups of one task each that no workflow may lack, by support; in order of their ids."""
        if self.rule != SUPPORT or self.consensus is None:
            return []
        found = {t for t, share in self.consensus.support.items() if share >= CRITICAL_SUPPORT and t in self.steps}
        return [frozenset({t}) for t in sorted(found)]

    def conformity(self, tasks: Sequence[str]) -> tuple[float, float] | tuple[None, None]:
        """Expected F1 of these steps, and of their consecutive pairs, against those of the similar cases; None where
        it ranks nothing.
        """
        if self.consensus is None or not (self.steps or self.by_support):
            return None, None
        return self.consensus.expected_f1(tasks, self.steps)

    def preferred_share(self, one: Sequence[str], other: Sequence[str]) -> float:
        """Share of the similar cases, by weight, that agree more with the one than with the other; those that agree
        equally count half.
        """
        assert self.consensus is not None
        first, second, counted = Course.of(one), Course.of(other), self.consensus.weights_among(self.steps)
        told = (
            (sum(course.agreement(first)) - sum(course.agreement(second)), weight) for course, weight in counted.items()
        )
        return sum(w * (0.5 if abs(lead) < EQUAL else float(lead > 0)) for lead, w in told) / sum(counted.values())


BY_OUTCOMES = Completeness(OUTCOMES)


def outcomes_decide(cases: Sequence[SimilarCase]) -> bool:
    """Whether enough of the similar cases have a known outcome, some of them a success."""
    whole = sum(c.weight for c in cases)
    known = sum(c.weight for c in cases if c.is_informative)
    return whole > 0 and known >= LEAST_KNOWN * whole and any(c.success for c in cases)


def undecided_reason(cases: Sequence[SimilarCase], rule: str, nearest: float | None) -> str | None:
    """Why no verdict is clear: nothing in history is like the intake, or no outcomes, or few successes tell of it."""
    if nearest is not None and nearest < LEAST_COSINE:
        return f"no case of history is like this intake: the most similar one has cosine {nearest:.2f}, and {LEAST_COSINE:.2f} is asked"
    if rule == SUPPORT:
        return "history tells no outcomes of similar cases: what is right is not known, only what is usual"
    weights = [c.weight for c in cases if c.success and c.is_informative]
    effective = sum(weights) ** 2 / sum(w * w for w in weights) if weights else 0.0
    if effective < LEAST_SUCCESSES:
        return f"only {effective:.1f} similar successes in effect, and {LEAST_SUCCESSES:.0f} are asked"
    return None
