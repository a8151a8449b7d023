"""Finds workflows that differ enough from better ones: the same steps, carried out by others.

The proposals of an Intention are often nearly the same. Each of the best plans therefore gets the further changes of
execution modes and reviews that cost least. The tasks stay the same, so that critical, demanded and forbidden tasks
stay as they are, and every limit that was kept is still kept. A step with a single execution mode does not change.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from opus_pipelines.generation.planning.plans import Planner
from opus_pipelines.generation.planning.ranking_context import Candidate, Plan
from opus_pipelines.generation.search.diversity import swaps
from opus_pipelines.generation.search.variations import Variations
from opus_pipelines.workflow.evaluation.reward import quantised

BASES = 4  # the best workflows of different tasks, whose variations are looked at


@dataclass
class _Pool:
    """Variations of one plan; `eligible` masks those that differ enough from every workflow chosen so far."""

    plan: Plan
    variations: Variations
    eligible: NDArray[np.bool_]

    def best(self) -> tuple[float, int]:
        """Returns the worth of the best eligible variation, and its number."""
        earned = np.where(self.eligible, self.variations.worth, -np.inf)
        number = int(np.argmax(earned)) if len(earned) else 0
        return (float(earned[number]) if len(earned) else -np.inf), number


def varied(planner: Planner, ranked: Sequence[Candidate]) -> list[Plan]:
    """Returns plans that complete the `ranked` candidates to the best `generation.k` that differ enough.

    The workflows are chosen one after the other: each is the best candidate or variation that differs enough from all
    chosen before it. All variations earn less than the first candidate.
    """
    settings = planner.context.settings.generation
    left = [c for c in ranked if c.feasible]
    if not left or settings.diversity > 0:  # the same tasks differ by no share of them
        return []
    pools = _pools(planner, left)
    chosen, plans = left[0].steps, list[Plan]()
    for _ in range(settings.k - 1):
        left = [c for c in left if swaps(c.steps, chosen) >= settings.least_swaps]
        for pool in pools:
            pool.eligible &= pool.variations.swaps_from(chosen) >= settings.least_swaps
        top = max(pools, key=lambda pool: pool.best()[0])
        earned, number = top.best()
        if earned > max((c.worth for c in left[:1]), default=-np.inf):
            chosen = top.variations.steps(number)
            plans.append(planner.vary(top.plan, top.variations.moves(number)))
        elif left:
            chosen = left[0].steps
        else:
            break
    return plans


def of_different_tasks(ranked: Sequence[Candidate]) -> list[Candidate]:
    """Returns the first candidate of every set of tasks."""
    firsts: dict[frozenset[str], Candidate] = {}
    for candidate in ranked:
        firsts.setdefault(frozenset(candidate.tasks), candidate)
    return list(firsts.values())


def _pools(planner: Planner, ranked: Sequence[Candidate]) -> list[_Pool]:
    bases = of_different_tasks(ranked)[:BASES]
    settings = planner.context.settings
    step, most = planner.context.ranking.step, settings.generation.least_swaps
    first = quantised(ranked[0].worth, step)
    variations = [
        (c.plan, planner.cache.variations(c.plan.refined_plan, most)) for c in bases if c.plan.refined_plan is not None
    ]
    return [_Pool(plan, v, np.rint(v.worth / step) < first) for plan, v in variations]
