"""The rule that tells which work may be left out: by outcomes of history, or by support among similar cases.

`outcomes`: a task is critical when similar cases failed without it (`lwm.retrieval.critical_tasks`), and the Reward
prices the others.

`support`: history has too few outcomes. A task that at least the share `CRITICAL_SUPPORT` of the similar cases did is
critical, and workflows are ranked by conformity: the expected F1 of their steps against those of the similar cases. Of
two orders of the same steps, the one with the higher expected F1 of its consecutive pairs is ranked first.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from opus_pipelines.lwm.interface import SimilarCase
from opus_pipelines.lwm.retrieval.consensus import Consensus, Trace
from opus_pipelines.lwm.retrieval.similar_cases import SimilarCases

OUTCOMES, SUPPORT = "outcomes", "support"
LEAST_KNOWN = 0.5  # least share of the similar cases, by weight, with a known outcome where outcomes decide
CRITICAL_SUPPORT = 0.8  # share of the similar cases that did a task, from which it is critical
LEAST_SUCCESSES = 3.0  # effective number of similar successful cases below which no verdict is clear
EQUAL = 1e-12  # difference up to which two workflows agree equally
LEAST_COSINE = 0.35  # cosine of the most similar case, below which history has no case like the intake


@dataclass(frozen=True)
class Completeness:
    """The rule of completeness of one Intention, with the consensus of its similar cases.

    `rule`: outcomes or support. `similar`, `consensus`: the similar cases and what they agree on, where they were
    computed. `steps`: all work steps of the similar cases, where workflows are compared with them.
    `undecided_reason`: why no verdict on this Intention is clear, None where there is no such reason.
    `is_independent`: whether it is known that no step of the consensus has to wait for another.
    `model_support`: by task the share of the sequences of a trained model that have it; None where none serves.
    """

    rule: str
    undecided_reason: str | None = None
    similar: SimilarCases | None = None
    consensus: Consensus | None = None
    steps: frozenset[str] = frozenset()
    is_independent: bool = False
    model_support: Mapping[str, float] | None = None

    @property
    def by_support(self) -> bool:
        """Return whether workflows are ranked by conformity before anything that depends on outcomes."""
        return self.rule == SUPPORT

    @property
    def consensus_tasks(self) -> tuple[str, ...]:
        """Return the work steps of the consensus, in order; none where outcomes decide."""
        return (
            tuple(t for t in self.consensus.tasks if t in self.steps) if self.rule == SUPPORT and self.consensus else ()
        )

    @property
    def critical(self) -> list[frozenset[str]]:
        """Return, by support, the groups of one critical task each, in order of their ids."""
        if self.rule != SUPPORT or self.consensus is None:
            return []
        tasks = {t for t, share in self.consensus.support.items() if share >= CRITICAL_SUPPORT and t in self.steps}
        return [frozenset({t}) for t in sorted(tasks)]

    def conformity(self, tasks: Sequence[str]) -> tuple[float, float] | tuple[None, None]:
        """Return the expected F1 of these steps, and of their consecutive pairs, against the similar cases.

        Both are None where conformity does not rank workflows.
        """
        if self.consensus is None or not (self.steps or self.by_support):
            return None, None
        return self.consensus.expected_f1(tasks, self.steps)

    def preferred_share(self, one: Sequence[str], other: Sequence[str]) -> float:
        """Return the share of the similar cases, by weight, that agree more with `one` than with `other`.

        Cases that agree equally with both count half.
        """
        assert self.consensus is not None
        first, second, counted = Trace.of(one), Trace.of(other), self.consensus.weights_among(self.steps)
        leads = (
            (sum(trace.agreement(first)) - sum(trace.agreement(second)), weight) for trace, weight in counted.items()
        )
        return sum(w * (0.5 if abs(lead) < EQUAL else float(lead > 0)) for lead, w in leads) / sum(counted.values())


BY_OUTCOMES = Completeness(OUTCOMES)


def outcomes_decide(cases: Sequence[SimilarCase]) -> bool:
    """Return whether enough of the similar cases have a known outcome, and at least one succeeded."""
    total = sum(c.weight for c in cases)
    known = sum(c.weight for c in cases if c.is_informative)
    return total > 0 and known >= LEAST_KNOWN * total and any(c.success for c in cases)


def undecided_reason(cases: Sequence[SimilarCase], rule: str, nearest: float | None) -> str | None:
    """Return why no verdict is clear: no similar case, no outcomes, or too few successes; else None."""
    if nearest is not None and nearest < LEAST_COSINE:
        return (
            "no case of history is like this intake: "
            f"the most similar one has cosine {nearest:.2f}, and {LEAST_COSINE:.2f} is asked"
        )
    if rule == SUPPORT and any(c.outcome_by_activities for c in cases):
        return (
            "the activities of a case decide its outcome, by the rule [success] of its source: the outcomes tell which "
            "cases to follow, and not what a step is worth"
        )
    if rule == SUPPORT:
        return "history tells no outcomes of similar cases: what is right is not known, only what is usual"
    effective = effective_successes(cases)
    if effective < LEAST_SUCCESSES:
        return f"only {effective:.1f} similar successes in effect, and {LEAST_SUCCESSES:.0f} are asked"
    return None


def effective_successes(cases: Sequence[SimilarCase]) -> float:
    """Return the effective number of similar successful cases (Kish 1965), (Σw)² / Σw²; 0 where there is none."""
    weights = [c.weight for c in cases if c.success and c.is_informative]
    return sum(weights) ** 2 / sum(w * w for w in weights) if weights else 0.0


def are_few(cases: Sequence[SimilarCase]) -> bool:
    """Return whether similar cases are too few to say by themselves what the work is.

    Where outcomes decide, their successes count by weight; elsewhere all cases that did not fail count alike.
    """
    if outcomes_decide(cases):
        return effective_successes(cases) < LEAST_SUCCESSES
    return sum(case.success is not False for case in cases) < LEAST_SUCCESSES
