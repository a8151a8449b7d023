"""What the decisions on a contract mean for one Intention today, when tasks may have been merged or be gone."""

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from opus_pipelines.intakes.decisions.record import Decision, Decisions, WorkflowContent
from opus_pipelines.lwm.interface import TaskSequence
from opus_pipelines.wkg.subgraphs import SubWKG
from opus_pipelines.workflow.model import review_id

if TYPE_CHECKING:
    from opus_pipelines.generation.planning.ranking_context import Candidate, RankingContext

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


def with_ranks_for_rejected(context: "RankingContext") -> "RankingContext":
    """Returns the context with one more rank for each rejected workflow.

    Rejected workflows are planned like any other and then taken out. So the workflows in their place differ from them
    as much as ranked workflows must differ from each other.
    """
    more = len(context.evidence.decided.rejected)
    if not more:
        return context
    settings = context.settings.generation
    wider = settings.model_copy(update={"k": settings.k + more})
    return replace(context, settings=context.settings.model_copy(update={"generation": wider}))


def with_decisions(
    context: "RankingContext",
    candidates: Sequence["Candidate"],
    build: Callable[[WorkflowContent], "tuple[Candidate, tuple[str, ...]]"],
) -> list["Candidate"]:
    """Returns the best candidates without the rejected ones; the workflow that a person chose comes first.

    `build` evaluates a workflow and says what had to be changed in it.
    """
    decided, settings = context.evidence.decided, context.settings
    left = [c for c in candidates if signature_of(c) not in decided.rejected][: settings.generation.k]
    chosen = decided.chosen
    if chosen is None:
        return left
    kind = WORDS[chosen.decision]
    if decided.content is None:
        note = (
            f"the workflow that was {kind} ({chosen.workflow_id}, decision {chosen.number}) can no "
            f"longer be built: {decided.gone}"
        )
        return [replace(c, decision=Applied(None, chosen.number, note=note)) if c is left[0] else c for c in left]
    own, changed = build(decided.content)
    others = [c for c in left if c.id != own.id and signature_of(c) != signature_of(own)]
    applied = Applied(kind, chosen.number, chosen.why, chosen.decided_by, "; ".join(changed) or None)
    ranking = context.ranking
    if others and ranking.is_better(others[0], own):
        applied = replace(
            applied, better_id=others[0].id, better_usd=others[0].worth - own.worth if ranking.has_gain else None
        )
    return [replace(own, decision=applied), *others][: settings.generation.k]


def signature_of(candidate: "Candidate") -> tuple[Any, ...]:
    """Returns the signature of a candidate, which compares with `WorkflowContent.signature`."""
    steps = candidate.steps
    if candidate.plan.refined_plan is not None:
        return steps, frozenset(candidate.plan.refined_plan.state.order.pairs())
    return steps, frozenset(WorkflowContent(candidate.tasks, _waits(candidate), {}).order.pairs())


def _waits(candidate: "Candidate") -> frozenset[tuple[str, str]]:
    """Returns the pairs (a, b) of tasks such that b directly waits for a, with reviews left out."""
    behind = {review_id(task): task for task in candidate.tasks}
    pairs = ((behind.get(a, a), behind.get(b, b)) for a, b in candidate.workflow.edges)
    return frozenset((a, b) for a, b in pairs if a != b and a in candidate.tasks and b in candidate.tasks)
