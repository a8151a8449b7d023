"""Builds reviews: their reviewers with figures, and the places in a workflow where a review may stand.

A review stands between a task and everything that waits for the task. Its p and q are the probabilities that the result
is right after the review, given that what reaches it is right or wrong. A contract states them or history has measured
them; they are never guessed, and without them no review is placed.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from opus_pipelines.core.settings import Cost, Priors
from opus_pipelines.generation.search.costs import NodeCost, node_cost
from opus_pipelines.wkg.graph import ExecutionMode, Task
from opus_pipelines.workflow.constraints import folded
from opus_pipelines.workflow.model import REVIEW, UNKNOWN, Node, TaskNode, Workflow, review_id

INSTRUCTION = "Check what the step before this one left, and put right what is wrong before the next step begins."
REVIEW_WORDS = frozenset({"review", "reviews", "audit", "audits", "inspect", "proofread", "recheck"})
LEAST_CORRECTIONS = 10  # reviews of a wrong result from which the q of a mode is used


def review_place(task: str, title: str) -> TaskNode:
    """Returns the first option of the place behind a task: no review."""
    return TaskNode(review_id(task), REVIEW, f"Review: {title}", p=1.0, q=0.0, kind=REVIEW)


def review_by(reviewer: TaskNode, task: str, title: str) -> TaskNode:
    """Returns the review behind a task by this reviewer."""
    return replace(reviewer, id=review_id(task), title=f"Review: {title}", instructions=(INSTRUCTION,))


def with_reviews(workflow: Workflow, behind: Mapping[str, TaskNode]) -> Workflow:
    """Returns the workflow with a review node behind each of these tasks, not checked again.

    The edges that led from the task lead from its review.
    """
    nodes: list[Node] = [*workflow.inputs]
    for task in workflow.tasks:
        nodes += [task, behind[task.id]] if task.id in behind else [task]
    edges = [(behind[a].id if a in behind else a, b) for a, b in workflow.edges] + [
        (t, node.id) for t, node in behind.items()
    ]
    return Workflow((*nodes, *workflow.outputs), tuple(sorted(edges)))


def with_places(workflow: Workflow, reviewers: Sequence[TaskNode]) -> tuple[Workflow, dict[str, list[TaskNode]]]:
    """Returns the workflow with a review place behind every task, and each place's options, the empty one first."""
    if not reviewers:
        return workflow, {}
    places = {t.id: review_place(t.id, t.title) for t in workflow.tasks}
    options = {
        places[t.id].id: [places[t.id], *(review_by(who, t.id, t.title) for who in reviewers)] for t in workflow.tasks
    }
    return with_reviews(workflow, places), options


def is_review(task: Task) -> bool:
    """Returns whether a task of history is a review, by the words of its title: this project's own rule."""
    return not REVIEW_WORDS.isdisjoint(folded(task.title).split())


def history_reviewers(
    tasks: Iterable[Task], actor_kind: str | None, model: str | None, cost: Cost, priors: Priors
) -> list[TaskNode]:
    """Returns one reviewer for each actor kind and model, with the mean figures of history's reviews.

    The means are weighted by how often each review was done. Only execution modes whose q was counted at least
    `LEAST_CORRECTIONS` times are used. Their basis is `estimated`, because those reviews were of other work.
    """
    groups: dict[tuple[str, str | None], list[tuple[ExecutionMode, NodeCost]]] = {}
    for task in tasks:
        for mode in task.execution_modes if is_review(task) else ():
            if (
                mode.actor_kind is None
                or mode.q_n < LEAST_CORRECTIONS
                or actor_kind not in (None, mode.actor_kind)
                or model not in (None, mode.model)
            ):
                continue
            groups.setdefault((mode.actor_kind, mode.model), []).append((mode, node_cost(task, mode, cost, priors)))
    return [
        _reviewer(kind, name, reviews)
        for (kind, name), reviews in sorted(groups.items(), key=lambda g: (g[0][0], g[0][1] or ""))
    ]


def _reviewer(kind: str, model: str | None, reviews: Sequence[tuple[ExecutionMode, NodeCost]]) -> TaskNode:
    weights = [mode.implementations for mode, _ in reviews]

    def mean(figure: str) -> float | None:
        """Returns the mean over the modes whose figure is known."""
        known = [
            (w, float(value))
            for w, (_, c) in zip(weights, reviews, strict=True)
            if (value := getattr(c, figure)) is not None
        ]
        return sum(w * value for w, value in known) / sum(w for w, _ in known) if known else None

    cost_usd, duration_ms = mean("cost_usd"), mean("duration_ms")
    return TaskNode(
        REVIEW,
        REVIEW,
        "Review",
        p=mean("p") or 0.0,
        p_basis="estimated",
        q=mean("q") or 0.0,
        q_basis="estimated",
        cost_usd=cost_usd or 0.0,
        cost_compute_usd=mean("cost_compute_usd"),
        cost_model_usd=mean("cost_model_usd"),
        cost_human_usd=mean("cost_human_usd"),
        cost_basis=UNKNOWN if cost_usd is None else "estimated",
        duration_ms=duration_ms or 0.0,
        duration_basis=UNKNOWN if duration_ms is None else "estimated",
        actor_kind=kind,
        model=model,
        kind=REVIEW,
    )
