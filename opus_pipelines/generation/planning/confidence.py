"""Computes the confidence of a ranking: intervals of the Rewards, and the probability that each rank beats the next.

The Reward of every ranked workflow is drawn from the posteriors of its tasks. Two workflows that have a task in the
same execution mode share its draws. The draws are ranked as the workflows were: feasible workflows first, then by EVAL
(13). p, q, costs and times are drawn; whether constraints are met is decided on the expected figures alone. Where no
gain is stated, success probabilities are drawn in the place of Rewards, and the next criterion decides between draws of
the same success.

The posterior of a node has Beta distributions of p and q, and the standard errors of its mean cost and time. The rules
are this project's own. The mean of p and q is the figure of the node. Their spread is that of the interval which the
estimator gives for the execution mode (`LEARNED_Z` corrects it, because it is too narrow). Where a snapshot has no
interval, the strength is the count of the mode plus `priors.strength` pseudo-counts; without an execution mode it is
`priors.strength` alone. The outcomes of a pair of tasks that the figure rests on bring a standard error of their own.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import lru_cache

import numpy as np

from opus_pipelines.core.errors import WorkflowError
from opus_pipelines.core.ids import SameObject
from opus_pipelines.core.settings import Cost, Priors, Settings
from opus_pipelines.generation.planning.context import Candidate, Confidence, RankingContext
from opus_pipelines.generation.planning.prices import Prices
from opus_pipelines.generation.search.costs import Shifts, errors
from opus_pipelines.wkg.graph import ExecutionMode
from opus_pipelines.workflow.evaluation.success import Floats
from opus_pipelines.workflow.evaluation.uncertainty import (
    BetaDistribution,
    Draws,
    Interval,
    Posterior,
    middle_interval,
    p_better,
    worth_draws,
)
from opus_pipelines.workflow.model import TaskNode, Workflow, reviewed_task

# The pool of an estimate was fitted to the same counts, so its interval is too narrow (empirical Bayes): 91.4 % of the
# 95 % intervals of p held the truth (modes of models, six samples). They are therefore taken as 91.4 % intervals; this
# is the normal quantile of 0.957.
LEARNED_Z = 1.717
PSEUDO_EXECUTIONS = 2.0  # counted in addition, with the spread of an exponential distribution, which is its mean


def posteriors_of(
    workflow: Workflow, prices: Prices, priors: Priors, shifts: Shifts | None = None
) -> dict[str, Posterior]:
    """Returns the posteriors by node; `shifts` says how the figures of a task differ behind another one.

    A review that history does not know has none: its stated figures are taken as certain. Any other task that history
    does not know has the strength of the prior.
    """
    posteriors = {}
    for node in workflow.tasks:
        mode = prices.known_mode(node)
        if mode is not None or not node.is_review:
            own = posterior_of(node, mode or ExecutionMode(), priors)
            before = [reviewed_task(parent) for parent in workflow.predecessors(node.id)]
            p_error, q_error = (0.0, 0.0) if node.is_review else errors(node, before, shifts or {})
            posteriors[node.id] = replace(own, p=own.p.with_error(p_error), q=own.q.with_error(q_error))
    return posteriors


def posterior_of(node: TaskNode, mode: ExecutionMode, priors: Priors) -> Posterior:
    """Returns the posterior of a node in this mode; a cost that is a time at a price has the error of that time."""
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
    """Returns the posterior of p or q.

    `n` counts the steps with a known outcome; `lower` and `upper` are the 95 % interval of the estimator.
    """
    if lower is not None and upper is not None:
        return BetaDistribution.within(mean, lower, upper, LEARNED_Z)
    return BetaDistribution(mean, priors.strength + n)


def of_mean(mean: float, deviation: float | None, n: int) -> float:
    """Returns the standard error of a mean of n executions.

    Few executions say little about their spread, so `PSEUDO_EXECUTIONS` are counted in addition.
    """
    own = (n - 1) * deviation**2 if deviation is not None and n > 1 else 0.0
    degrees = max(n - 1, 0) + PSEUDO_EXECUTIONS
    return math.sqrt((own + PSEUDO_EXECUTIONS * mean**2) / degrees / max(n, 1))


# draws of which the interval is kept, some 10 kB each: most intakes of a contract lead to the same plans
_INTERVALS_KEPT = 256


def with_confidence(
    context: RankingContext, ranked: Sequence[Candidate], draws: Callable[[Workflow], Floats] | None = None
) -> list[Candidate]:
    """Returns the candidates, best first, each with its confidence.

    `draws` returns the draws of a workflow, where they are cached; None computes them.
    """
    draft = context.draft
    draws = draws or (lambda w: reward_draws(w, draft.prices, context.cost, context.settings, draft.graph.shifts))
    drawn = [_as_inferred(candidate, draws(candidate.workflow)) for candidate in ranked]
    best = _best_shares(context, ranked, drawn)
    # The spread of imputed costs is part of the comparison, and not of the interval of the Reward, which has none.
    known = [_as_inferred(candidate, draws(candidate.workflow.without_imputed())) for candidate in ranked]
    return [
        replace(candidate, confidence=_confidence(context, ranked, (drawn, known[place]), place, best[place]))
        for place, candidate in enumerate(ranked)
    ]


def _p_ranks_before(
    context: RankingContext, first: Candidate, second: Candidate, draws: tuple[Floats, Floats]
) -> float:
    """Returns P(first ranks before second): 1 where it alone is feasible.

    Rewards in one step of the quantum are ranked by Penalty.
    """
    if first.broken != second.broken:
        return float(first.broken < second.broken)
    if first.has_optional != second.has_optional:
        return float(second.has_optional)
    if context.evidence.completeness.consensus_tasks:
        return context.evidence.completeness.preferred_share(first.tasks, second.tasks)
    return p_better(*draws, context.ranking.step, context.ranking.p_first_in_tie(first, second))


def reward_draws(
    workflow: Workflow, prices: Prices, cost: Cost, settings: Settings, shifts: Shifts | None = None
) -> Floats:
    """Returns the draws of the worth of a workflow; in the product form where exact inference is too wide."""
    posteriors = posteriors_of(workflow, prices, settings.priors, shifts)
    draws = Draws(settings.generation.seed, settings.reward.draws, settings.reward.inference)
    try:
        return worth_draws(workflow, posteriors, cost, draws)
    except WorkflowError:
        return worth_draws(workflow, posteriors, cost, replace(draws, inference="product"))


def _as_inferred(candidate: Candidate, drawn: Floats) -> Floats:
    """Returns the draws; where success is simulated, moved by the simulated worth less that of the product form."""
    found = candidate.evaluation
    if found.success_inference != "simulated":
        return drawn
    if found.reward_usd is None or found.reward_product_usd is None:
        return drawn + (found.success_probability - found.success_probability_product)
    return drawn + (found.reward_usd - found.reward_product_usd)


def _best_shares(context: RankingContext, ranked: Sequence[Candidate], drawn: Sequence[Floats]) -> list[float]:
    """Returns for each candidate the share of draws in which no other ranked candidate earns more.

    Candidates that earn the same share a draw; where no gain is stated, the one that ranks first has it. Infeasible
    candidates are left out while any candidate is feasible.
    """
    if not ranked:
        return []
    is_compared = np.array([c.broken == min(c.broken for c in ranked) for c in ranked])
    ranking = context.ranking
    worths = np.rint(np.stack(drawn) / ranking.step)
    worths[~is_compared] = -np.inf
    if not ranking.has_gain:
        places = sorted(range(len(ranked)), key=lambda place: ranking.order(ranked[place]))
        first = np.array(places)[np.argmax(worths[places], axis=0)]
        return [float(np.mean(first == place)) for place in range(len(ranked))]
    top = worths == worths.max(axis=0)
    return [float(x) for x in (top / top.sum(axis=0)).mean(axis=1)]


@lru_cache(_INTERVALS_KEPT)
def _interval(draws: SameObject[Floats]) -> Interval:
    return middle_interval(draws.value)


def _confidence(
    context: RankingContext,
    ranked: Sequence[Candidate],
    draws: tuple[Sequence[Floats], Floats],
    place: int,
    best: float,
) -> Confidence:
    """Returns the confidence of a candidate; `draws` are those of all with imputed costs, and its own without them."""
    drawn, known = draws
    ends: tuple[float | None, float | None] = (None, None)
    if context.ranking.has_gain:
        reward = _interval(SameObject(known))
        ends = reward.p05, reward.p95
    if place + 1 == len(ranked):
        return Confidence(*ends, None, best)
    chance = _p_ranks_before(context, ranked[place], ranked[place + 1], (drawn[place], drawn[place + 1]))
    return Confidence(*ends, chance, best)
