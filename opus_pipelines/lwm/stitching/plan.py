"""Stitching: the plan of an Intention that demands the work of several processes, which no case did as a whole.

Each demand has its own part of the WKG: the tasks that the cases with its goal did. The parts are joined by Algorithms
1 and 2 of LWM. Which tasks the work holds is estimated twice, and the log-odds of both are averaged:

- from cases, by naive Bayes: log-odds(t | all demands) = log-odds(t) + Σ_k [log-odds(t | demand k) - log-odds(t)];
- from the graph: the probability that a walk along its edges visits t, given that it visits the goals
  (`wkg.subgraphs.walks`).

The plan has the tasks with the highest expected F1 under these chances. Its order agrees best with what cases did
before what (the dependency measure); for two tasks that no case did together, with the flow of data, and where there is
none, with the precedence of walks in the joined graph: they meet in tasks that cases of both processes share. This is
the project's own rule.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from opus_pipelines.lwm.dependency import dependency
from opus_pipelines.lwm.merging.join_components import Similarity, join_components
from opus_pipelines.lwm.merging.sequence_dag import Dag
from opus_pipelines.lwm.merging.workflow_graph import WFG, workflow_graph
from opus_pipelines.lwm.retrieval.consensus import Consensus, Trace
from opus_pipelines.lwm.stitching.industry_counts import IndustryCounts
from opus_pipelines.wkg.graph import WorkGraph
from opus_pipelines.wkg.subgraphs.steiner_tree import SubWKG, steiner
from opus_pipelines.wkg.subgraphs.walks import Walks
from opus_pipelines.workflow.model import INPUT, OUTPUT

_LEAST_SHARE = 0.02  # of a demand's cases that did a task, from which it is in the demand's part of the WKG
_MOST_TASKS = 150  # most tasks of a part, those of most cases
CORE = 0.5  # share of a demand's cases that did a task, from which the SWKG must reach it
MAY_CHANGE = 0.2  # least dependency measure of two tasks of which the second waits for the first
_SURE = 0.002  # no chance is taken as nearer to 0 or 1, so that neither estimate alone decides
DRAWS = 200  # drawn traces that stand for the chances where workflows are compared with them
Shares = Mapping[str, float]
OrderScore = Callable[[str, str], float]


@dataclass(frozen=True)
class Demand:
    """One of the demands: its goals, which the plan must hold, and the share of its cases that did each task."""

    goals: frozenset[str]
    shares: Shares


@dataclass(frozen=True)
class Stitched:
    """The stitched plan.

    `tasks` are its work steps in order, `chances` the probability that the work holds a task, for all tasks that were
    considered. `subgraphs` has one SWKG for each demand, `joined` the graph that joins their parts. `waits` are the
    pairs (a, b) of the plan whose order is known from cases or from data; the order of the others may change.
    """

    tasks: tuple[str, ...]
    chances: Mapping[str, float]
    subgraphs: tuple[SubWKG, ...]
    joined: WFG
    waits: frozenset[tuple[str, str]] = frozenset()

    def consensus(self, cases: float, seed: int) -> Consensus:
        """Return the plan as a consensus of drawn traces; `cases` is the effective number of cases behind it."""
        order = {task: n for n, task in enumerate(self.tasks)}
        considered = [*self.tasks, *sorted(task for task in self.chances if task not in order)]
        chances = np.array([self.chances[task] for task in considered])
        drawn = np.random.default_rng(seed).random((DRAWS, len(considered))) < chances
        traces = [Trace.of([task for task, held in zip(considered, row, strict=True) if held]) for row in drawn]
        weights: dict[Trace, float] = {}
        for trace in traces:
            if trace.tasks:
                weights[trace] = weights.get(trace, 0.0) + 1.0
        pairs: dict[tuple[str, str], float] = {}
        for trace, weight in weights.items():
            for pair in trace.pairs:
                pairs[pair] = pairs.get(pair, 0.0) + weight / DRAWS
        return Consensus(self.tasks, dict(self.chances), pairs, 0.0, cases, tuple(weights.items()))


def stitched(
    demands: Sequence[Demand],
    counts: IndustryCounts,
    graph: WorkGraph,
    similarity: Similarity,
    needed: Sequence[frozenset[str]] = (),
) -> Stitched:
    """Return the stitched plan of two demands or more.

    `similarity` of two tasks joins parts of the graph that no edge joins. The plan holds the goals, and one task, the
    likeliest, of each group in `needed`.
    """
    parts = [_part(demand, graph) for demand in demands]
    joined = join_components(
        workflow_graph({str(n): _dag(part, graph) for n, part in enumerate(parts)}, graph), graph, similarity
    )
    tasks = [task for task in joined.nodes if task not in (INPUT, OUTPUT)]
    walks = Walks.on(graph, tasks, counts.begun, counts.ended)
    chances = _chances(demands, counts, walks, tasks)
    goals = frozenset[str]().union(*(demand.goals for demand in demands)) & set(tasks)
    steps = [t for t in tasks if graph.tasks[t].activity_kind == "step"]
    chosen = _likely(chances, steps, goals)
    for group in needed:
        if not group & chosen and (known := group & chances.keys()):
            chosen |= {max(sorted(known), key=lambda task: chances[task])}
    subgraphs = tuple(
        steiner(graph, sorted(task for task in part if demand.shares[task] >= CORE) or part[:1], part)
        for demand, part in zip(demands, parts, strict=True)
    )
    order = ordered(sorted(chosen), _score(counts, graph, walks))
    by_cases = _score(counts, graph, None)
    waits = frozenset((a, b) for a, b in combinations(order, 2) if by_cases(a, b) > MAY_CHANGE)
    return Stitched(order, chances, subgraphs, joined, waits)


def _part(demand: Demand, graph: WorkGraph) -> list[str]:
    """Return the tasks of the WKG that cases of the demand did, those of most cases first."""
    shares, goals = demand.shares, demand.goals
    known = [t for t, share in shares.items() if t in graph.tasks and (share >= _LEAST_SHARE or t in goals)]
    return sorted(known, key=lambda task: (task not in goals, -shares[task], task))[:_MOST_TASKS]


def _dag(part: Sequence[str], graph: WorkGraph) -> Dag:
    inside = set(part)
    return Dag(tuple(part), tuple((t, v) for t in part for v in graph.successors.get(t, ()) if v in inside and v != t))


def _chances(
    demands: Sequence[Demand], counts: IndustryCounts, walks: Walks | None, tasks: Sequence[str]
) -> dict[str, float]:
    """Return the chance of each task: the log-odds by cases and by walks, averaged where there are walks."""
    of_all = dict(zip(counts.tasks, counts.of_all.tolist(), strict=True))
    floor = 0.5 / (len(counts.did) + 1)
    whole = np.array([of_all.get(task, floor) for task in tasks])
    odds = _log_odds(whole)
    for demand in demands:
        odds = odds + _log_odds(np.array([demand.shares.get(task, floor) for task in tasks])) - _log_odds(whole)
    goals = [min(d.goals, key=lambda t: (of_all.get(t, floor), t)) for d in demands if d.goals]
    if walks is not None and goals and (visited := walks.visits(goals)) is not None:
        by_walk = dict(zip(walks.tasks, visited.tolist(), strict=True))
        odds = (_bounded(odds) + _log_odds(np.array([by_walk.get(task, 0.0) for task in tasks]))) / 2
    chances = 1 / (1 + np.exp(-_bounded(odds)))
    certain = frozenset[str]().union(*(demand.goals for demand in demands))
    return {t: 1.0 if t in certain else c for t, c in zip(tasks, chances.round(9).tolist(), strict=True)}


def _log_odds(chances: np.ndarray) -> np.ndarray:
    inside = np.clip(chances, _SURE, 1 - _SURE)
    return np.asarray(np.log(inside / (1 - inside)))


def _bounded(odds: np.ndarray) -> np.ndarray:
    most = np.log((1 - _SURE) / _SURE)
    return np.asarray(np.clip(odds, -most, most))


def _likely(chances: Mapping[str, float], steps: Sequence[str], goals: frozenset[str]) -> frozenset[str]:
    """Return the steps with the highest expected F1: that of k steps is about 2 Σ their chances / (k + Σ chances)."""
    by_chance = sorted(steps, key=lambda task: (-chances[task], task))
    gains = np.cumsum([chances[task] for task in by_chance])
    worth = 2 * gains / (np.arange(1, len(by_chance) + 1) + gains[-1]) if by_chance else np.zeros(1)
    return frozenset(by_chance[: int(worth.round(9).argmax()) + 1]) | goals


def _score(counts: IndustryCounts, graph: WorkGraph, walks: Walks | None) -> OrderScore:
    """Return how much speaks for doing one task before another one, in [-1, 1]."""
    precedence = walks.precedence() if walks is not None else np.zeros((0, 0))
    place = {task: n for n, task in enumerate(walks.tasks)} if walks is not None else {}

    def score(one: str, other: str) -> float:
        forward, backward = counts.before[one, other], counts.before[other, one]
        if forward or backward:
            return dependency(forward, backward)
        flows = [set(graph.tasks[a].outputs) & set(graph.tasks[b].inputs) for a, b in ((one, other), (other, one))]
        if any(flows) and not all(flows):
            return 1.0 if flows[0] else -1.0
        return float(precedence[place[one], place[other]]) if one in place and other in place else 0.0

    return score


def ordered(tasks: Sequence[str], score: OrderScore) -> tuple[str, ...]:
    """Return the tasks in an order with the highest sum of scores of (earlier, later), found by moving single tasks.

    It is the linear ordering problem; the search ends in an order that no move of one task improves.
    """
    scores = np.array([[score(a, b) if a != b else 0.0 for b in tasks] for a in tasks]).reshape(len(tasks), len(tasks))
    order = sorted(range(len(tasks)), key=lambda n: (-round(float(scores[n].sum()), 9), n))
    while True:
        gain, moved = 1e-9, order
        for now, task in enumerate(order):
            rest = order[:now] + order[now + 1 :]
            later = scores[task, rest]  # the task before all others: each place further turns one score round
            worths = later.sum() - 2 * np.append(0.0, np.cumsum(later))
            best = int(worths.round(9).argmax())
            if worths[best] - worths[now] > gain:
                gain, moved = float(worths[best] - worths[now]), [*rest[:best], task, *rest[best:]]
        if moved is order:
            return tuple(tasks[n] for n in order)
        order = moved
