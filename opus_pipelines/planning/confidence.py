"""How sure the ranking of one Intention is: intervals of the Rewards, and the chance that each rank holds against the
next.

Where no gain is stated, chances of success are drawn in the place of Rewards; draws of the same success are told apart
by what ranks next.

Every ranked workflow is drawn from what is believed of its tasks (`beliefs`), with draws in common where two do a task
in the same way, and the draws are ranked as the workflows were: feasible first, then by EVAL (13). What is drawn is p,
q, costs and times; which constraints are met is judged on the expected figures alone.

What is believed of the figures of a workflow's nodes: Beta posteriors of p and q, and how far mean costs and times may
be off.

The rules are this project's own. p and q have the node's figure as their mean, and are as sure as the estimator's
interval of the mode says (wkg/estimates), less what it is too sure by; where a snapshot has no interval, as the mode's
count and `priors.strength` pseudo-counts; without a mode, as those alone.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np

from opus_pipelines.core.settings import Cost, Priors, Settings
from opus_pipelines.evaluation.batch import Figures, Floats, evaluate_batch
from opus_pipelines.evaluation.uncertainty import BetaDistribution, Posterior, interval, p_better, worth_draws
from opus_pipelines.planning.prices import Prices
from opus_pipelines.planning.ranking_context import Candidate, Confidence, RankingContext
from opus_pipelines.wkg.graph import ExecutionMode
from opus_pipelines.workflow.model import TaskNode, Workflow

# An estimate drawn to a pool that was learned from the same counts looks surer than it is (empirical Bayes): of its 95
# % intervals of p
# .914 held the truth (models' modes, six samples), so they are taken for what they were. This is the normal quantile of
# .957.
LEARNED_Z = 1.717
GUESSED_DOINGS = 2.0  # pseudo-counts behind a spread: doings that lie as far apart as an exponential's, their mean


def posteriors_of(workflow: Workflow, prices: Prices, priors: Priors) -> dict[str, Posterior]:
    """By node. A review that no history knows is as sure as who states its figures says; any other task unknown to
    history is a prior's.
    """
    found = {}
    for node in workflow.tasks:
        mode = prices.known_mode(node)
        if mode is not None or not node.is_review:
            found[node.id] = posterior_of(node, mode or ExecutionMode(), priors)
    return found


def posterior_of(node: TaskNode, mode: ExecutionMode, priors: Priors) -> Posterior:
    """A node that does its task in this mode. A cost that is a time at a price is as far off as that time."""
    return Posterior(
        beta_distribution(node.p, mode.p_n, mode.p_lower, mode.p_upper, priors),
        beta_distribution(node.q, mode.q_n, mode.q_lower, mode.q_upper, priors),
        of_mean(node.cost_usd + node.imputed_usd, mode.cost_usd_deviation, mode.cost_n),
        of_mean(node.duration_ms, mode.duration_ms_deviation, mode.duration_n),
        paid_by_time=node.cost_basis in ("rate", "prior") and not mode.cost_n,
    )


def beta_distribution(
    mean: float, n: int, lower: float | None, upper: float | None, priors: Priors
) -> BetaDistribution:
    """P or q with its posterior; `n`: the steps that were judged, `lower` and `upper`: 95 % of what the estimator
    believes.
    """
    if lower is not None and upper is not None:
        return BetaDistribution.within(mean, lower, upper, LEARNED_Z)
    return BetaDistribution(mean, priors.strength + n)


def of_mean(mean: float, deviation: float | None, n: int) -> float:
    """The standard deviation of a mean of n doings. Few doings tell little of their own spread: GUESSED_DOINGS more
    stand beside them.
    """
    own = (n - 1) * deviation**2 if deviation is not None and n > 1 else 0.0
    degrees = max(n - 1, 0) + GUESSED_DOINGS
    return math.sqrt((own + GUESSED_DOINGS * mean**2) / degrees / max(n, 1))


CLEAR, UNDECIDED = "clear", "undecided"


def with_confidence(
    context: RankingContext, ranked: Sequence[Candidate], draws: Callable[[Workflow], Floats] | None = None
) -> list[Candidate]:
    """The candidates, best first, each with its Sureness. `draws`: `draws_of` these, where somebody has them
    already.
    """
    draws = draws or (lambda workflow: reward_draws(workflow, context.draft.prices, context.cost, context.settings))
    drawn = [_as_inferred(context, candidate, draws(candidate.workflow)) for candidate in ranked]
    best = _best_shares(context, ranked, drawn)
    return [
        replace(candidate, confidence=_confidence(context, ranked, drawn, place, best[place]))
        for place, candidate in enumerate(ranked)
    ]


def _holds(context: RankingContext, first: Candidate, second: Candidate, draws: tuple[Floats, Floats]) -> float:
    """P(first ranks before second): 1 where it alone is feasible; Rewards in one step of the quantum are ranked by
    Penalty.
    """
    if first.feasible != second.feasible:
        return float(first.feasible)
    if first.has_optional != second.has_optional:
        return float(second.has_optional)
    if context.evidence.completeness.consensus_tasks:
        return context.evidence.completeness.preferred_share(first.tasks, second.tasks)
    return p_better(*draws, context.ranking.step, context.ranking.p_first_in_tie(first, second))


def reward_draws(workflow: Workflow, prices: Prices, cost: Cost, settings: Settings) -> Floats:
    """What it is worth, drawn in the product form."""
    return worth_draws(
        workflow,
        posteriors_of(workflow, prices, settings.priors),
        cost,
        settings.generation.seed,
        settings.reward.draws,
    )


def _as_inferred(context: RankingContext, candidate: Candidate, drawn: Floats) -> Floats:
    """Where success is inferred exactly, by as much off as the expected figures are."""
    if context.settings.reward.inference == "product":
        return drawn
    product = evaluate_batch(candidate.workflow, Figures.of(candidate.workflow, context.cost), context.cost).worth[0]
    return drawn + (candidate.worth - product)


def _best_shares(context: RankingContext, ranked: Sequence[Candidate], drawn: Sequence[Floats]) -> list[float]:
    """Of each, the share of draws in which no other ranked one earns more; those that earn the same share a draw, and
    where no gain is stated the one that ranks first has it. The infeasible are not in it while any is feasible.
    """
    if not ranked:
        return []
    running = np.array([c.feasible for c in ranked]) | (not any(c.feasible for c in ranked))
    ranking = context.ranking
    worths = np.rint(np.stack(drawn) / ranking.step)
    worths[~running] = -np.inf
    if not ranking.has_gain:
        places = sorted(range(len(ranked)), key=lambda place: ranking.order(ranked[place]))
        first = np.array(places)[np.argmax(worths[places], axis=0)]
        return [float(np.mean(first == place)) for place in range(len(ranked))]
    top = worths == worths.max(axis=0)
    return [float(x) for x in (top / top.sum(axis=0)).mean(axis=1)]


def _confidence(
    context: RankingContext, ranked: Sequence[Candidate], drawn: Sequence[Floats], place: int, best: float
) -> Confidence:
    ends: tuple[float | None, float | None] = (None, None)
    if context.ranking.has_gain:  # of the Reward that is shown: less what is known to be spent
        found = interval(drawn[place] + ranked[place].evaluation.imputed_worth)
        ends = found.p05, found.p95
    doubt = context.evidence.completeness.undecided_reason
    if place + 1 == len(ranked):
        verdict = None if len(ranked) > 1 else UNDECIDED if doubt else CLEAR
        return Confidence(*ends, None, verdict, best, doubt if verdict else None)
    chance = _holds(context, ranked[place], ranked[place + 1], (drawn[place], drawn[place + 1]))
    verdict = CLEAR if chance >= context.settings.reward.clear_share and not doubt else UNDECIDED
    return Confidence(*ends, chance, verdict, best, doubt)
