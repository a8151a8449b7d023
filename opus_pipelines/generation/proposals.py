"""Which tasks a candidate has, and their order: the cheapest paths of the Workflow Graph with all that is needed, and such sequences.

The cheapest path is a trap (DESIGN 5): a path that leaves out a needed task is offered only where none has it, and then
it is infeasible and says what it lacks.
"""

from collections.abc import Sequence

from opus_pipelines.generation.order import breaks, forward
from opus_pipelines.generation.situation import Proposal, Situation
from opus_pipelines.optimization.paths import k_best
from opus_pipelines.wfg.algorithm1 import WFG

PATHS_PER_RANK = 4  # cheapest paths looked at for every workflow that is kept: Reward orders them anew


def proposals(situation: Situation) -> list[Proposal]:
    """Every proposal, in the order of its tasks' ids."""
    required = situation.required
    found = _paths(situation, required, situation.forbidden)
    found |= {tasks for tasks in situation.sequences.values() if all(group & set(tasks) for group in required)}
    found = {tasks for tasks in found if not breaks(tasks, situation.order)} or found
    return [Proposal(tasks) for tasks in sorted(found)]


def _paths(situation: Situation, required: Sequence[frozenset[str]], forbidden: frozenset[str]) -> set[tuple[str, ...]]:
    """The cheapest paths in history's order with all that is required and nothing forbidden; where none is, less is asked in turn."""
    k = situation.settings.generation.k * PATHS_PER_RANK
    costs, kappa = situation.prices.costs, situation.cost.kappa_usd
    ahead, whole = forward(situation.wfg, situation.order), situation.wfg
    demands: list[tuple[WFG, Sequence[frozenset[str]], frozenset[str]]] = [
        (ahead, required, forbidden), (whole, required, forbidden), (whole, required, frozenset()), (whole, (), frozenset()),
    ]
    for wfg, groups, without in demands:
        result = k_best(wfg, lambda node: costs[node][0].path_cost_usd, kappa, k, groups, without)
        if result.paths:
            return {path.tasks for path in result.paths}
    return set()
