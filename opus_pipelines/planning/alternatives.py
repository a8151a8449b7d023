"""Workflows that differ enough from better ones where the proposals are near-copies of one another: the same steps,
done by others.

What lies one swap from a better workflow, and the best itself, gets the further swaps that cost least. Nothing is
forced: what is needed, demanded and forbidden stays as it is, and every limit that is kept stays kept. Steps of which
history knows one way stay, too.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from opus_pipelines.evaluation.comparison import quantised
from opus_pipelines.optimization.diversity import swaps
from opus_pipelines.optimization.variations import Variations
from opus_pipelines.planning.plans import Planner
from opus_pipelines.planning.ranking_context import Candidate, Plan

BASES = 4  # the best workflows of different tasks, of which other ways are looked at


@dataclass
class _Pool:
    """Variations of one plan; `free`: those that differ enough from all that is kept so far."""

    plan: Plan
    variations: Variations
    free: NDArray[np.bool_]

    def best(self) -> tuple[float, int]:
        """The most that a free one earns, and which one that is."""
        earned = np.where(self.free, self.variations.worth, -np.inf)
        number = int(np.argmax(earned)) if len(earned) else 0
        return (float(earned[number]) if len(earned) else -np.inf), number


def varied(planner: Planner, ranked: Sequence[Candidate]) -> list[Plan]:
    """Returns plans that complete the `ranked` candidates to the best `generation.k` that differ enough.

    They are chosen one after the other: the best of what is left, ranked or varied, that differs enough from all before
    it. All earn less than the first candidate.
    """
    knobs = planner.context.settings.generation
    left = [c for c in ranked if c.feasible]
    if not left or knobs.diversity > 0:  # the same tasks differ by no share of them
        return []
    pools = _pools(planner, left)
    kept, made = left[0].steps, list[Plan]()
    for _ in range(knobs.k - 1):
        left = [c for c in left if swaps(c.steps, kept) >= knobs.least_swaps]
        for pool in pools:
            pool.free &= pool.variations.swaps_from(kept) >= knobs.least_swaps
        top = max(pools, key=lambda pool: pool.best()[0])
        earned, number = top.best()
        if earned > max((c.worth for c in left[:1]), default=-np.inf):
            kept = top.variations.steps(number)
            made.append(planner.varied(top.plan, top.variations.moves(number)))
        elif left:
            kept = left[0].steps
        else:
            break
    return made


def of_different_tasks(ranked: Sequence[Candidate]) -> list[Candidate]:
    """The first of every set of tasks."""
    firsts: dict[frozenset[str], Candidate] = {}
    for candidate in ranked:
        firsts.setdefault(frozenset(candidate.tasks), candidate)
    return list(firsts.values())


def _pools(planner: Planner, ranked: Sequence[Candidate]) -> list[_Pool]:
    bases = of_different_tasks(ranked)[:BASES]
    settings = planner.context.settings
    step, most = planner.context.ranking.step, settings.generation.least_swaps
    first = quantised(ranked[0].worth, step)
    found = [(c.plan, planner.cache.variations(c.plan.found, most)) for c in bases if c.plan.found is not None]
    return [_Pool(plan, v, np.rint(v.worth / step) < first) for plan, v in found]
