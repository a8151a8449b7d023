"""Stitching: one plan for an intake that demands the work of several processes, which no case of history did together.

A demanded step that similar cases did not do, or that no case did together with the other demanded steps, is looked up
where history did it. Where it is a critical task of those cases, all their critical tasks are demanded; otherwise only
the step is. This is the project's own rule.

Each demand has its own part of the WKG: the tasks that the cases with its goal did. Which tasks of all parts the work
holds is estimated twice, and the log-odds of both are averaged:

- from cases, by naive Bayes: log-odds(t | all demands) = log-odds(t) + Σ_k [log-odds(t | demand k) - log-odds(t)];
- from the graph: the probability that a walk along its edges visits t, given that it visits the goals
  (`wkg.subgraphs`).

The plan has the tasks with the highest expected F1 under these chances. Its order agrees best with what cases did
before what (the dependency measure); for two tasks that no case did together, with the flow of data, and where there is
none, with the precedence of walks in the graph of all parts: they meet in tasks that cases of both processes share.
This is the project's own rule.

Algorithm 2 of the paper is left out: parts nearly always share tasks, and where they do not, joining them by the cosine
of the texts or by a learnt scorer of edges is not shown to be better than leaving them apart
(benchmarks/results/deleted.md).
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from opus_pipelines.core.settings import Generation
from opus_pipelines.intakes.intake import Intake
from opus_pipelines.intakes.requirements.intention import Intention
from opus_pipelines.lwm.history_backend import first_occurrences
from opus_pipelines.lwm.interface import ProcessDemand, SimilarCase
from opus_pipelines.lwm.precedence import Pair, dependency, stable_precedence
from opus_pipelines.lwm.retrieval.completeness import LEAST_COSINE, critical_tasks
from opus_pipelines.lwm.retrieval.consensus import Consensus, Trace
from opus_pipelines.lwm.retrieval.rule_constraints import (
    ConstraintResolution,
    IntakeStatements,
    ProcessHistory,
    ResolutionContext,
)
from opus_pipelines.lwm.retrieval.similar_cases import latest
from opus_pipelines.lwm.retrieval.snapshot_index import SnapshotIndex
from opus_pipelines.lwm.retrieval.task_names import TaskMatcher
from opus_pipelines.lwm.workflow_graph import WFG
from opus_pipelines.wkg.graph import WorkGraph
from opus_pipelines.wkg.subgraphs import SubWKG, Walks, steiner

_MOST_CASES = 5_000  # the latest ones


@dataclass(frozen=True)
class IndustryCounts:
    """The cases of an industry, by the tasks that they did.

    `rows` are those of the cases in `CaseRetriever.table`, `did` [cases, tasks] is boolean. `before` counts the cases
    that did the first task of a pair anywhere before the second, each at its first occurrence. `begun` and `ended`
    count the cases that began and ended with a task.
    """

    tasks: tuple[str, ...]
    rows: np.ndarray
    did: np.ndarray
    before: Counter[Pair]
    begun: Counter[str]
    ended: Counter[str]

    def share(self, goals: frozenset[str]) -> np.ndarray:
        """Return the share [tasks] of the cases with all goals that did a task, drawn to that of all by one case."""
        of_all = self.of_all
        with_goals = self.did[self.with_all(goals)]
        return np.asarray((with_goals.sum(0) + of_all) / (len(with_goals) + 1))

    @property
    def of_all(self) -> np.ndarray:
        """Return the share [tasks] of all cases that did a task, smoothed so that none is 0 or 1."""
        return np.asarray((self.did.sum(0) + 0.5) / (len(self.did) + 1))

    def with_all(self, goals: frozenset[str]) -> np.ndarray:
        """Return, for each case [cases], whether it did all goals."""
        if not goals <= set(self.tasks):
            return np.zeros(len(self.did), bool)
        return np.asarray(self.did[:, [n for n, task in enumerate(self.tasks) if task in goals]].all(1))


def counts_of(index: SnapshotIndex, industry: str | None) -> IndustryCounts:
    """Return the counts of an industry (None: of all history), made once for each index."""
    found = index.counts.get(industry)
    if not isinstance(found, IndustryCounts):
        found = index.counts[industry] = _counted(index, industry)
    return found


def _counted(index: SnapshotIndex, industry: str | None) -> IndustryCounts:
    table = index.cases.table
    rows = latest(table, index.cases.rows_of(industry), _MOST_CASES)
    failed = pc.equal(table["success"], False).fill_null(False).to_numpy()
    rows = rows[~failed[rows]]
    sequences = [tuple(tasks or ()) for tasks in table["tasks"].take(pa.array(rows)).to_pylist()]
    tasks = tuple(sorted({task for sequence in sequences for task in sequence} & index.graph.tasks.keys()))
    place = {task: n for n, task in enumerate(tasks)}
    did = np.zeros((len(rows), len(tasks)), bool)
    for row, sequence in enumerate(sequences):
        did[row, [place[task] for task in sequence if task in place]] = True
    before: Counter[Pair] = Counter()
    for first, n in Counter(map(first_occurrences, sequences)).items():
        for pair in combinations(first, 2):
            before[pair] += n
    filled = [sequence for sequence in sequences if sequence]
    return IndustryCounts(tasks, rows, did, before, Counter(s[0] for s in filled), Counter(s[-1] for s in filled))


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
    considered. `subgraphs` has one SWKG for each demand. `waits` are the pairs (a, b) of the plan whose order is known
    from cases or from data; the order of the others may change.
    """

    tasks: tuple[str, ...]
    chances: Mapping[str, float]
    subgraphs: tuple[SubWKG, ...]
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
    needed: Sequence[frozenset[str]] = (),
) -> Stitched:
    """Return the stitched plan of two demands or more.

    The plan holds the goals, and one task, the likeliest, of each group in `needed`.
    """
    parts = [_part(demand, graph) for demand in demands]
    tasks = sorted({task for part in parts for task in part})
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
    return Stitched(order, chances, subgraphs, waits)


def _part(demand: Demand, graph: WorkGraph) -> list[str]:
    """Return the tasks of the WKG that cases of the demand did, those of most cases first."""
    shares, goals = demand.shares, demand.goals
    known = [t for t, share in shares.items() if t in graph.tasks and (share >= _LEAST_SHARE or t in goals)]
    return sorted(known, key=lambda task: (task not in goals, -shares[task], task))[:_MOST_TASKS]


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


_MOST_PROCESSES = 3  # most processes of one Intention; documents that mention more describe all the work of a company


def combined_processes(
    first: ProcessDemand, intention: Intention, intake: Intake, index: SnapshotIndex, settings: Generation
) -> list[ProcessDemand]:
    """Return the process of the similar cases first, then each further process that a demanded step belongs to.

    A demanded step is a goal of the first process that supports it, if a case that did not fail did all of its goals.
    """
    demands, counts = [first], counts_of(index, intake.industry)
    for task in dict.fromkeys(demanded_tasks(intention, intake, index)):
        for n, demand in enumerate(demands):
            if demand.supports(task) and counts.with_all(demand.goals | {task}).any():
                demands[n] = replace(demand, goals=demand.goals | {task})
                break
        else:
            if len(demands) < _MOST_PROCESSES and (found := _process_of(task, intention, intake, index, settings)):
                demands.append(found)
    return demands


def _process_of(
    task: str, intention: Intention, intake: Intake, index: SnapshotIndex, settings: Generation
) -> ProcessDemand | None:
    """Return the process that a demanded step belongs to; None where no case that did not fail did the step.

    Without texts no case is nearer than another, so the latest ones stand for the process, and the step is demanded.
    """
    cases = index.cases.near_case_with(task, intention.vector, intake.industry, settings.near_cases)
    if cases:
        critical = critical_tasks(cases, index.critical_task_rows(intake.industry), intake.client, settings)
        belongs = any(task in group for group in critical)
        return ProcessDemand(cases, critical if belongs else [frozenset({task})], frozenset({task}))
    counts = counts_of(index, intake.industry)
    rows = latest(index.cases.table, counts.rows[counts.with_all(frozenset({task}))], settings.near_cases).tolist()
    cases = index.cases.at(rows, [1.0] * len(rows), None)
    return ProcessDemand(cases, [frozenset({task})], frozenset({task})) if cases else None


def stitch(demands: Sequence[ProcessDemand], industry: str | None, index: SnapshotIndex) -> Stitched | None:
    """Return the plan that joins the processes; None where there is only one, or none has a case.

    All cases with its goals tell what a process does. Where the similar cases support none of the goals, they stand for
    themselves if they are like the intake.
    """
    if len(demands) < 2:
        return None
    counts, found = counts_of(index, industry), []
    for demand in demands:
        if demand.goals:
            shares = counts.share(demand.goals)
            found.append(Demand(demand.goals, dict(zip(counts.tasks, shares.tolist(), strict=True))))
        elif demand.cases and demand.cases[0].similarity >= LEAST_COSINE and any(c.weight < 1 for c in demand.cases):
            found.append(Demand(frozenset(), _shares(demand.cases, counts)))
    return stitched(found, counts, index.graph, critical_groups(demands)) if found else None


def _shares(cases: Sequence[SimilarCase], counts: IndustryCounts) -> dict[str, float]:
    """Return the share of similar cases that did each task, by weight, drawn to that of all cases by one case."""
    models = [case for case in cases if case.success is not False]
    done = dict.fromkeys(counts.tasks, 0.0)
    for case in models:
        for task in done.keys() & set(case.tasks):
            done[task] += case.weight
    total = sum(case.weight for case in models) + 1
    of_all = zip(counts.tasks, counts.of_all.tolist(), strict=True)
    return {task: (done[task] + share) / total for task, share in of_all}


def critical_groups(demands: Iterable[ProcessDemand]) -> list[frozenset[str]]:
    """Return the groups of critical tasks of all processes, each once, in order of their ids."""
    return sorted({group for demand in demands for group in demand.critical}, key=sorted)


def combined_precedence(demands: Sequence[ProcessDemand], share: float, plan: Sequence[str] = ()) -> frozenset[Pair]:
    """Return the stable precedence of the first process, and of each further one what does not contradict it.

    No pair contradicts the order of `plan`, which agrees best with all cases: the stitched plan, or the consensus where
    support decides. The few nearest cases would otherwise forbid what all similar cases, or a trained model, expect.
    """
    place = {task: n for n, task in enumerate(plan)}
    pairs: set[Pair] = set()
    for demand in demands:
        pairs |= {(a, b) for a, b in stable_precedence(demand.cases, share) if (b, a) not in pairs}
    return frozenset((a, b) for a, b in pairs if a not in place or b not in place or place[a] < place[b])


def demanded_tasks(intention: Intention, intake: Intake, index: SnapshotIndex) -> Iterator[str]:
    """Yield the tasks of the industry that the intake's settings and process documents certainly demand, in order."""
    graph, names = index.graph, index.names
    tasks = [t for t, task in graph.tasks.items() if intake.industry is None or intake.industry in task.industries]
    for name in intake.constraints.must_contain:
        yield from sorted(names.tasks(name) & set(tasks))[:1]
    matcher = TaskMatcher(names, graph, tasks, index.task_vectors, intention.texts)
    context = ResolutionContext(IntakeStatements.of(intake), matcher, WFG(), ProcessHistory())
    resolution = ConstraintResolution(context)
    for rule in intention.decoded.rules:
        if rule.sentence.role == "process":
            yield from filter(
                None, (resolution.task_demanded(demand, rule.sentence.heading) for demand in rule.demands)
            )
