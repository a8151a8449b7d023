"""Decisions as evidence: a workflow that a person accepted or wrote counts as a successful case for similar intakes of
its contract.
"""

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from opus_pipelines.core.settings import Settings
from opus_pipelines.decisions.record import Content, Decision, Decisions
from opus_pipelines.lwm.interface import SimilarCase
from opus_pipelines.planning.standing_decisions import as_of_today
from opus_pipelines.retrieval.completeness import Completeness
from opus_pipelines.retrieval.consensus import Course, consensus
from opus_pipelines.wkg.graph import WorkGraph


def with_accepted_workflows(
    cases: Sequence[SimilarCase],
    decisions: Decisions,
    intention_id: str,
    vector: np.ndarray,
    graph: WorkGraph,
    settings: Settings,
) -> list[SimilarCase]:
    """The near cases, and among them the contract's other accepted and edited workflows, most similar first.

    A decided workflow has the cosine of the two Intentions as its similarity. It weighs `generation.decided_weight`
    times as much as the nearest case of history that is not more similar does; one that is less similar than every near
    case is left out. A rejected workflow is never among them, nor is one that can no longer be built.
    """
    found = list(cases)
    for decision in decisions.chosen_elsewhere(intention_id):
        content = as_of_today(decision, decisions, graph.tasks.keys())
        similarity = _similarity(decision, vector, settings)
        if similarity is None or not isinstance(content, Content):
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
    courses = [*(course for course, _ in before.courses), *(Course.of(case.tasks) for case in decided)]
    weights = [*(weight for _, weight in before.courses), *(case.weight for case in decided)]
    expected = replace(consensus(courses, np.array(weights)), cases=before.cases)
    return replace(complete, consensus=expected, steps=complete.steps.union(*(case.tasks for case in decided)))


def _similarity(decision: Decision, vector: np.ndarray, settings: Settings) -> float | None:
    """The cosine; None where another encoder made the decision's vector, or none did."""
    if decision.vector is None or decision.encoder != settings.encoder.model or len(decision.vector) != len(vector):
        return None
    own = np.asarray(decision.vector, dtype=np.float64)
    length = float(np.linalg.norm(own) * np.linalg.norm(vector))
    cosine = float(own @ np.asarray(vector, dtype=np.float64)) / length if length else math.nan
    return max(-1.0, min(1.0, cosine)) if math.isfinite(cosine) else None


def _as_case(decision: Decision, content: Content, similarity: float, weight: float) -> SimilarCase:
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
        actor_kinds=tuple(content.who[t][0] for t in content.tasks),
        is_decision=True,
    )
