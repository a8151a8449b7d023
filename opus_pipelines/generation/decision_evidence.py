"""Decisions as evidence: a workflow that a person accepted or wrote counts as a successful case for similar intakes of
its contract.
"""

import math
from collections.abc import Collection, Sequence
from dataclasses import replace

import numpy as np

from opus_pipelines.core.settings import Settings
from opus_pipelines.generation.planning.standing_decisions import as_of_today
from opus_pipelines.intakes.decisions.record import Decision, Decisions, WorkflowContent
from opus_pipelines.lwm.interface import SimilarCase
from opus_pipelines.lwm.retrieval.completeness import Completeness
from opus_pipelines.lwm.retrieval.consensus import Trace, consensus


def accepted_elsewhere(
    decisions: Decisions, intention_id: str, known: Collection[str]
) -> list[tuple[Decision, WorkflowContent]]:
    """Returns the workflows that people accepted or wrote for other Intentions of the contract.

    Each has the task ids of today, `known`; a workflow that can no longer be built is left out, as are rejected ones.
    """
    contents = ((d, as_of_today(d, decisions, known)) for d in decisions.chosen_elsewhere(intention_id))
    return [(decision, content) for decision, content in contents if isinstance(content, WorkflowContent)]


def with_accepted_workflows(
    cases: Sequence[SimilarCase],
    accepted: Sequence[tuple[Decision, WorkflowContent]],
    vector: np.ndarray,
    settings: Settings,
) -> list[SimilarCase]:
    """Returns the similar cases with the accepted workflows among them, most similar first.

    The similarity of an accepted workflow is the cosine of its Intention and `vector` [d]. Its weight is
    `generation.decided_weight` times that of the most similar case that is not more similar than it is; a workflow that
    is less similar than every case is left out.
    """
    found = list(cases)
    for decision, content in accepted:
        similarity = _similarity(decision, vector, settings)
        if similarity is None:
            continue
        less = [case.weight for case in cases if case.similarity <= similarity]
        if less or not cases:
            weight = settings.generation.decided_weight * max(less, default=1.0)
            found.append(_as_case(decision, content, similarity, weight))
    return sorted(found, key=lambda case: -case.similarity) if len(found) > len(cases) else found


def agreed_with(complete: Completeness, cases: Sequence[SimilarCase]) -> Completeness:
    """Where workflows are held against what similar cases did: with the decided workflows among the near cases as
    cases of it.
    """
    decided = [case for case in cases if case.is_decision]
    before = complete.consensus
    if not decided or before is None or not (complete.steps or complete.by_support):
        return complete
    traces = [*(trace for trace, _ in before.traces), *(Trace.of(case.tasks) for case in decided)]
    weights = [*(weight for _, weight in before.traces), *(case.weight for case in decided)]
    expected = replace(consensus(traces, np.array(weights)), cases=before.cases)
    return replace(complete, consensus=expected, steps=complete.steps.union(*(case.tasks for case in decided)))


def _similarity(decision: Decision, vector: np.ndarray, settings: Settings) -> float | None:
    """The cosine; None where another encoder made the decision's vector, or none did."""
    if decision.vector is None or decision.encoder != settings.encoder.model or len(decision.vector) != len(vector):
        return None
    own = np.asarray(decision.vector, dtype=np.float64)
    length = float(np.linalg.norm(own) * np.linalg.norm(vector))
    cosine = float(own @ np.asarray(vector, dtype=np.float64)) / length if length else math.nan
    return max(-1.0, min(1.0, cosine)) if math.isfinite(cosine) else None


def _as_case(decision: Decision, content: WorkflowContent, similarity: float, weight: float) -> SimilarCase:
    """Costs and times of a case that was not carried out are unknown."""
    nothing = (None,) * len(content.tasks)
    return SimilarCase(
        implementation_id=decision.decision_id,
        similarity=similarity,
        weight=weight,
        success=True,
        expected_outcome=True,
        client=decision.client,
        kind_of_case=None,
        tasks=content.tasks,
        task_keys=tuple(decision.titles.get(t, t) for t in content.tasks),
        task_cost_usd=nothing,
        task_duration_ms=nothing,
        actor_kinds=tuple(content.actors[t].kind for t in content.tasks),
        is_decision=True,
    )
