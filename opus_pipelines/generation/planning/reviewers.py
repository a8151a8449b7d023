"""Says who may review under a contract, and with which figures: stated ones, else those of the reviews of history."""

from dataclasses import replace

from opus_pipelines.generation.planning.ranking_context import RankingContext
from opus_pipelines.generation.search.imputed_figures import of_another
from opus_pipelines.generation.search.node_cost import UNKNOWN_ACTOR, price_of
from opus_pipelines.generation.search.reviews import history_reviewers
from opus_pipelines.workflow.model import REVIEW, Actor, TaskNode


def reviewers_of(context: RankingContext) -> tuple[TaskNode, ...]:
    """Returns one node for each reviewer; none where the contract's `[review]` states nothing, or forbids reviews.

    A contract that states p and q has a reviewer with these figures; cost and time are as stated, else at the prices of
    the settings. A contract that states less has the reviewers of its industry's history with the actor kind and model
    that it names; what the contract states replaces their figures. No p or q is invented: where neither the contract
    nor history knows them, no review is placed.
    """
    stated = context.review
    if not stated.allowed or not stated.model_fields_set - {"allowed"}:
        return ()
    if stated.p is not None and stated.q is not None:
        return (_imputed(_stated(context), context),)
    industry = context.intake.industry
    tasks = [t for t in context.draft.graph.tasks.values() if industry is None or industry in t.industries]
    known = history_reviewers(tasks, stated.actor_kind, stated.model, context.cost, context.settings.priors)
    return tuple(_imputed(_with_stated(node, context), context) for node in known)


def _imputed(node: TaskNode, context: RankingContext) -> TaskNode:
    """Returns the reviewer with an imputed cost where its cost or time is unknown
    (`generation.search.imputed_figures`).
    """
    unknown = node.known_cost_usd is None, node.known_duration_ms is None
    return replace(node, imputed_usd=of_another(context.draft.prices.costs, *unknown, context.cost))


def _stated(context: RankingContext) -> TaskNode:
    review = context.review
    kind = review.actor_kind or ("model" if review.model else UNKNOWN_ACTOR)
    price = price_of(Actor(kind, review.model), review.cost_usd, review.duration_ms, context.cost)
    stated = review.cost_usd is not None, review.duration_ms is not None
    assert review.p is not None
    assert review.q is not None
    return TaskNode(
        REVIEW,
        REVIEW,
        "Review",
        p=review.p,
        q=review.q,
        cost_usd=price.cost_usd or 0.0,
        cost_basis="prior" if stated[0] else price.cost_basis,
        duration_ms=price.duration_ms or 0.0,
        duration_basis="prior" if stated[1] else price.duration_basis,
        actor_kind=kind,
        model=review.model,
        kind=REVIEW,
    )


def _with_stated(node: TaskNode, context: RankingContext) -> TaskNode:
    """Returns a reviewer of history with the figures that the contract states; their basis is `prior`."""
    for name in ("p", "q", "cost_usd", "duration_ms"):
        if (value := getattr(context.review, name)) is not None:
            basis = f"{name.split('_')[0]}_basis"
            node = replace(node, **{name: value, basis: "prior"})
            if name == "cost_usd":
                node = replace(node, cost_compute_usd=None, cost_model_usd=None, cost_human_usd=None)
    return node
