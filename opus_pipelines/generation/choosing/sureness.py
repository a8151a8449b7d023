"""How sure the ranking of one Intention is: intervals of the Rewards, and the chance that each rank holds against the next.

Where no gain is stated, chances of success are drawn in the place of Rewards; draws of the same success are told apart by what ranks next.

Every ranked workflow is drawn from what is believed of its tasks (`beliefs`), with draws in common where two do a task in the same way,
and the draws are ranked as the workflows were: feasible first, then by EVAL (13). What is drawn is p, q, costs and times; which
constraints are met is judged on the expected figures alone.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np

from opus_pipelines.evaluation.batch import Figures, Floats, evaluate_batch
from opus_pipelines.evaluation.uncertainty import beats, interval, worth_draws
from opus_pipelines.generation.choosing.beliefs import beliefs_of
from opus_pipelines.generation.choosing.prices import Prices
from opus_pipelines.generation.choosing.situation import Candidate, Situation, Sureness
from opus_pipelines.settings import Cost, Settings
from opus_pipelines.workflow.model import Workflow

CLEAR, UNDECIDED = "clear", "undecided"


def with_sureness(situation: Situation, ranked: Sequence[Candidate], draws: Callable[[Workflow], Floats] | None = None) -> list[Candidate]:
    """The candidates, best first, each with its Sureness. `draws`: `draws_of` these, where somebody has them already."""
    draws = draws or (lambda workflow: draws_of(workflow, situation.prices, situation.cost, situation.settings))
    drawn = [_as_inferred(situation, candidate, draws(candidate.workflow)) for candidate in ranked]
    best = _best_shares(situation, ranked, drawn)
    return [
        replace(candidate, sureness=_sureness(situation, ranked, drawn, place, best[place])) for place, candidate in enumerate(ranked)
    ]


def _holds(situation: Situation, first: Candidate, second: Candidate, draws: tuple[Floats, Floats]) -> float:
    """P(first ranks before second): 1 where it alone is feasible; Rewards in one step of the quantum are ranked by Penalty."""
    if first.feasible != second.feasible:
        return float(first.feasible)
    if first.has_optional != second.has_optional:
        return float(second.has_optional)
    if situation.complete.agreed:
        return situation.complete.agrees_more(first.tasks, second.tasks)
    return beats(*draws, situation.ranking.step, situation.ranking.in_a_tie(first, second))


def draws_of(workflow: Workflow, prices: Prices, cost: Cost, settings: Settings) -> Floats:
    """What it is worth, drawn in the product form."""
    return worth_draws(workflow, beliefs_of(workflow, prices, settings.priors), cost, settings.generation.seed, settings.reward.draws)


def _as_inferred(situation: Situation, candidate: Candidate, drawn: Floats) -> Floats:
    """Where success is inferred exactly, by as much off as the expected figures are."""
    if situation.settings.reward.inference == "product":
        return drawn
    product = evaluate_batch(candidate.workflow, Figures.of(candidate.workflow, situation.cost), situation.cost).worth[0]
    return drawn + (candidate.worth - product)


def _best_shares(situation: Situation, ranked: Sequence[Candidate], drawn: Sequence[Floats]) -> list[float]:
    """Of each, the share of draws in which no other ranked one earns more; those that earn the same share a draw, and where no gain is
    stated the one that ranks first has it. The infeasible are not in it while any is feasible."""
    if not ranked:
        return []
    running = np.array([c.feasible for c in ranked]) | (not any(c.feasible for c in ranked))
    ranking = situation.ranking
    worths = np.rint(np.stack(drawn) / ranking.step)
    worths[~running] = -np.inf
    if not ranking.has_gain:
        places = sorted(range(len(ranked)), key=lambda place: ranking.order(ranked[place]))
        first = np.array(places)[np.argmax(worths[places], axis=0)]
        return [float(np.mean(first == place)) for place in range(len(ranked))]
    top = worths == worths.max(axis=0)
    return [float(x) for x in (top / top.sum(axis=0)).mean(axis=1)]


def _sureness(situation: Situation, ranked: Sequence[Candidate], drawn: Sequence[Floats], place: int, best: float) -> Sureness:
    ends: tuple[float | None, float | None] = (None, None)
    if situation.ranking.has_gain:  # of the Reward that is shown: less what is known to be spent
        found = interval(drawn[place] + ranked[place].evaluation.imputed_worth)
        ends = found.p05, found.p95
    doubt = situation.complete.doubt
    if place + 1 == len(ranked):
        verdict = None if len(ranked) > 1 else UNDECIDED if doubt else CLEAR
        return Sureness(*ends, None, verdict, best, doubt if verdict else None)
    chance = _holds(situation, ranked[place], ranked[place + 1], (drawn[place], drawn[place + 1]))
    verdict = CLEAR if chance >= situation.settings.reward.clear_share and not doubt else UNDECIDED
    return Sureness(*ends, chance, verdict, best, doubt)
