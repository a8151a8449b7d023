"""Reviews: who could do one and with what figures, and the places in a workflow where one may stand.

A review stands between a task and all that waits for it. Its p and q are P(right behind it), given that what reaches it
is right or wrong; they are stated by the contract or measured where history has reviews, never guessed: without them no
review is placed.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from opus_pipelines.core.settings import Cost, Priors
from opus_pipelines.optimization.node_cost import NodeCost, node_cost
from opus_pipelines.wkg.graph import Task, Way
from opus_pipelines.workflow.constraints import folded
from opus_pipelines.workflow.model import REVIEW, UNKNOWN, Node, TaskNode, Workflow
from opus_pipelines.workflow.task_order import review_id

INSTRUCTION = "Check what the step before this one left, and put right what is wrong before the next step begins."
REVIEW_WORDS = frozenset({"review", "reviews", "audit", "audits", "inspect", "proofread", "recheck"})
LEAST_CORRECTIONS = 10  # times that a way of history was seen behind something wrong, below which its q tells nothing


def review_place(task: str, title: str) -> TaskNode:
    """The first option of the place behind a task: no review."""
    return TaskNode(review_id(task), REVIEW, f"Review: {title}", p=1.0, q=0.0, kind=REVIEW)


def review_by(reviewer: TaskNode, task: str, title: str) -> TaskNode:
    """The review behind a task, done by this reviewer."""
    return replace(reviewer, id=review_id(task), title=f"Review: {title}", instructions=(INSTRUCTION,))


def with_reviews(workflow: Workflow, behind: Mapping[str, TaskNode]) -> Workflow:
    """The workflow with a node behind each of these tasks: what led from the task leads from it. Not checked anew."""
    nodes: list[Node] = [*workflow.inputs]
    for task in workflow.tasks:
        nodes += [task, behind[task.id]] if task.id in behind else [task]
    edges = [(behind[a].id if a in behind else a, b) for a, b in workflow.edges] + [
        (t, node.id) for t, node in behind.items()
    ]
    return Workflow((*nodes, *workflow.outputs), tuple(sorted(edges)))


def with_places(workflow: Workflow, reviewers: Sequence[TaskNode]) -> tuple[Workflow, dict[str, list[TaskNode]]]:
    """The workflow with a place for a review behind every task, and the options of each place, the empty one first."""
    if not reviewers:
        return workflow, {}
    places = {t.id: review_place(t.id, t.title) for t in workflow.tasks}
    options = {
        places[t.id].id: [places[t.id], *(review_by(who, t.id, t.title) for who in reviewers)] for t in workflow.tasks
    }
    return with_reviews(workflow, places), options


def is_review(task: Task) -> bool:
    """Whether a task of history is a review, by its title's words: this project's own rule."""
    return not REVIEW_WORDS.isdisjoint(folded(task.title).split())


def history_reviewers(
    tasks: Iterable[Task],
    actor_kind: str | None,
    model: str | None,
    cost: Cost,
    priors: Priors,
    least: int = LEAST_CORRECTIONS,
) -> list[TaskNode]:
    """One reviewer a kind of actor and model: the means over history's reviews done so, weighted by how often each was
    done.

    Only ways whose q was counted at least `least` times. Its basis is `estimated`: those reviews were of other work.
    """
    groups: dict[tuple[str, str | None], list[tuple[Way, NodeCost]]] = {}
    for task in tasks:
        for way in task.ways if is_review(task) else ():
            if (
                way.actor_kind is None
                or way.q_n < least
                or actor_kind not in (None, way.actor_kind)
                or model not in (None, way.model)
            ):
                continue
            groups.setdefault((way.actor_kind, way.model), []).append((way, node_cost(task, way, cost, priors)))
    return [
        _reviewer(kind, name, found)
        for (kind, name), found in sorted(groups.items(), key=lambda g: (g[0][0], g[0][1] or ""))
    ]


def _reviewer(kind: str, model: str | None, found: Sequence[tuple[Way, NodeCost]]) -> TaskNode:
    weights = [way.implementations for way, _ in found]

    def mean(figure: str) -> float | None:
        """Over the ways that know it."""
        known = [
            (w, float(value))
            for w, (_, c) in zip(weights, found, strict=True)
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
