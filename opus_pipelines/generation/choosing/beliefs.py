"""What is believed of the figures of a workflow's nodes: Beta posteriors of p and q, and how far mean costs and times may be off.

The rules are this project's own. p and q have the node's figure as their mean, and are as sure as the estimator's interval of the way says
(wkg/estimates), less what it is too sure by; where a snapshot has no interval, as the way's count and `priors.strength` pseudo-counts;
without a way, as those alone.
"""

import math

from opus_pipelines.evaluation.uncertainty import Belief, Share
from opus_pipelines.generation.choosing.prices import Prices
from opus_pipelines.settings import Priors
from opus_pipelines.wkg.graph import Way
from opus_pipelines.workflow.model import TaskNode, Workflow

# An estimate drawn to a pool that was learned from the same counts looks surer than it is (empirical Bayes): of its 95 % intervals of p
# .914 held the truth (models' ways, six samples), so they are taken for what they were. This is the normal quantile of .957.
LEARNED_Z = 1.717
GUESSED_DOINGS = 2.0  # pseudo-counts behind a spread: doings that lie as far apart as an exponential's, their mean


def beliefs_of(workflow: Workflow, prices: Prices, priors: Priors) -> dict[str, Belief]:
    """By node. A review that no history knows is as sure as who states its figures says; any other task unknown to history is a prior's."""
    found = {}
    for node in workflow.tasks:
        way = prices.known_way(node)
        if way is not None or not node.is_review:
            found[node.id] = belief_of(node, way or Way(), priors)
    return found


def belief_of(node: TaskNode, way: Way, priors: Priors) -> Belief:
    """A node that does its task in this way. A cost that is a time at a price is as far off as that time."""
    return Belief(
        share(node.p, way.p_n, way.p_lower, way.p_upper, priors), share(node.q, way.q_n, way.q_lower, way.q_upper, priors),
        of_mean(node.cost_usd + node.imputed_usd, way.cost_usd_deviation, way.cost_n),
        of_mean(node.duration_ms, way.duration_ms_deviation, way.duration_n),
        paid_by_time=node.cost_basis in ("rate", "prior") and not way.cost_n,
    )


def share(value: float, n: int, lower: float | None, upper: float | None, priors: Priors) -> Share:
    """p or q with its posterior; `n`: the steps that were judged, `lower` and `upper`: 95 % of what the estimator believes."""
    if lower is not None and upper is not None:
        return Share.within(value, lower, upper, LEARNED_Z)
    return Share(value, priors.strength + n)


def of_mean(mean: float, deviation: float | None, n: int) -> float:
    """The standard deviation of a mean of n doings. Few doings tell little of their own spread: GUESSED_DOINGS more stand beside them."""
    own = (n - 1) * deviation**2 if deviation is not None and n > 1 else 0.0
    degrees = max(n - 1, 0) + GUESSED_DOINGS
    return math.sqrt((own + GUESSED_DOINGS * mean**2) / degrees / max(n, 1))
