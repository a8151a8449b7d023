"""What the decisions of people mean for one Intention today, and accepted workflows as evidence for similar intakes."""

import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from opus_pipelines.core.settings import Settings
from opus_pipelines.intakes.decisions.record import Decision, Decisions, WorkflowContent
from opus_pipelines.lwm.interface import SimilarCase, TaskSequence
from opus_pipelines.lwm.retrieval.completeness import Completeness
from opus_pipelines.lwm.retrieval.consensus import Trace, consensus
from opus_pipelines.wkg.subgraphs import SubWKG

WORDS = {"accept": "accepted", "edit": "edited", "reject": "rejected"}


@dataclass(frozen=True)
class StandingDecisions:
    """The decisions of people that hold for one Intention.

    Attributes:
        chosen: the decision whose workflow ranks first; None where there is none.
        content: that workflow by the task ids of today; None where it can no longer be built.
        gone: why it can no longer be built.
        rejected: signatures of the workflows that are not offered.
        rejected_ids: ids of these workflows.
    """

    chosen: Decision | None = None
    content: WorkflowContent | None = None
    gone: str | None = None
    rejected: frozenset[Any] = frozenset()
    rejected_ids: tuple[str, ...] = ()


NOTHING_DECIDED = StandingDecisions()


@dataclass(frozen=True)
class Applied:
    """The effect of a decision on a ranked workflow.

    Attributes:
        kind: accepted or edited; None where only `note` is to be shown.
        number: number of the decision.
        why: the reason that the person gave.
        decided_by: the person who decided.
        note: what had to be changed in the chosen workflow, or why it can no longer be built.
        better_id: a workflow whose figures rank higher than those of the chosen one.
        better_usd: how much more Reward in USD that workflow has; None without a stated gain.
    """

    kind: str | None
    number: int
    why: str | None = None
    decided_by: str | None = None
    note: str | None = None
    better_id: str | None = None
    better_usd: float | None = None


def standing_decisions(decisions: Decisions, intention_id: str, known: Collection[str]) -> StandingDecisions:
    """Returns the decisions that hold for an Intention; `known` are the task ids of today."""
    rejected = [
        (d, content)
        for d in decisions.rejected(intention_id)
        if isinstance(content := as_of_today(d, decisions, known), WorkflowContent)
    ]
    signatures = frozenset(content.signature for _, content in rejected)
    ids = tuple(d.workflow_id for d, _ in rejected)
    chosen = decisions.chosen(intention_id)
    if chosen is None:
        return StandingDecisions(rejected=signatures, rejected_ids=ids)
    content = as_of_today(chosen, decisions, known)
    if isinstance(content, WorkflowContent):
        return StandingDecisions(chosen, content, rejected=signatures - {content.signature}, rejected_ids=ids)
    return StandingDecisions(chosen, None, content, signatures, ids)


def as_of_today(decision: Decision, decisions: Decisions, known: Collection[str]) -> WorkflowContent | str:
    """Returns the decided workflow by the task ids of today, or the reason why it can no longer be built.

    Tasks that were merged since are one task, at the place and with the actor of the first of them.
    """
    before, now = decision.content, dict[str, str]()
    for task in before.tasks:
        title = decision.titles[task]
        follow = [task] if task in known else [t for t in decisions.followers.get(task, ()) if t in known]
        if not follow:
            return f"the task {title!r} is no longer known"
        if len(follow) > 1:
            return f"the task {title!r} is now several tasks ({', '.join(follow)})"
        now[task] = follow[0]
    if all(task == name for task, name in now.items()):
        return before
    tasks = tuple(dict.fromkeys(now[task] for task in before.tasks))
    waits = {(now[a], now[b]) for a, b in before.order.pairs() if now[a] != now[b]}
    place = {task: n for n, task in enumerate(tasks)}
    if any(place[a] > place[b] for a, b in waits):
        return "two of its tasks are now one task, and others had to be done between them"
    actors, reviews = (
        {now[task]: of[task] for task in reversed(before.tasks) if task in of} for of in (before.actors, before.reviews)
    )
    return WorkflowContent(tasks, frozenset(waits), actors, reviews)


def with_chosen(
    written: Sequence[TaskSequence], decided: StandingDecisions, subgraphs: Sequence[SubWKG]
) -> list[TaskSequence]:
    """Adds the tasks of the chosen workflow to the sequences, so that the Workflow Graph has its tasks and edges."""
    if decided.content is None or any(s.tasks == decided.content.tasks for s in written):
        return list(written)
    tasks = decided.content.tasks
    shared = [len(set(tasks) & set(s.tasks)) for s in subgraphs]
    return [*written, TaskSequence(shared.index(max(shared)), tasks, 0.0, "decision")]


def all_rejected(decided: StandingDecisions) -> str:
    """Says why an Intention has no workflow where people rejected all of them."""
    return (
        f"every workflow that was found for this intake was rejected ({', '.join(decided.rejected_ids)}); "
        "`opus decide WORKFLOW accept` takes a rejection back"
    )


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
