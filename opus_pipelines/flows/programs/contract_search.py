"""AutoFlow's search on the plans of a contract: the reward is what history says a workflow earns, EVAL (7) and (10).

A plan is a program without decisions; its edits are those of the refinement search (`generation.search.local_search`):
other execution modes, reviews, waits, merged, split and dropped tasks. A policy over the features of an edit is trained
by REINFORCE with a running baseline, and the walk is annealed. One feature is what the edit would earn on a chain, from
the figures of the WKG: it takes no scoring, as the exact choice of modes on a chain takes none in the refinement
search. All searches begin at the same tasks with the same modes, and every workflow that is scored counts, so that they
are compared at the same budget.
"""

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, field, fields
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from opus_pipelines.flows.programs.edit_policy import RunningMoments, direction, draw
from opus_pipelines.generation.search.local_search import LocalSearch, RefinedPlan
from opus_pipelines.generation.search.plan_states import PlanMove, PlanSpace, PlanState, Tasks, row
from opus_pipelines.generation.search.plan_table import Picks, PlanTable
from opus_pipelines.workflow.blocks.formats.core_text import NEXT, CoreProgram, CoreStep
from opus_pipelines.workflow.evaluation.batch import Batch
from opus_pipelines.workflow.evaluation.cost import time_usd, weighed_usd
from opus_pipelines.workflow.model import TaskNode, Workflow
from opus_pipelines.workflow.task_order import TaskOrder

KINDS = ("way", "review", "parallel", "wait", "merge", "split", "drop")
LEARNING_RATE, HEAT = 0.2, 0.001
EXPECTED, TRIED = 8.0, -1.0  # the weights that the expected effect, and log(1 + times tried), begin with
MOST_IDLE, KICK = 30, 2  # proposals in a row that were scored before, then so many moves are taken as they come
MOST_KICKS = 20  # in a row without a plan that was not scored before
BROKEN = 1e6  # dollars by which a plan that breaks a limit is worth less


@dataclass
class Counter:
    """The number of workflows that were scored."""

    scored: int = 0


@dataclass(frozen=True)
class CountingTable(PlanTable):
    """A table that counts its rows as they are scored."""

    counter: Counter = field(default_factory=Counter)

    def scored(self, picks: Picks) -> Batch:
        """Scores rows as `PlanTable.scored`, and counts them."""
        self.counter.scored += len(picks)
        return super().scored(picks)

    def by_product_form(self, picks: Picks) -> Batch:
        """Scores rows as `PlanTable.by_product_form`, and counts them."""
        self.counter.scored += len(picks)
        return super().by_product_form(picks)


@dataclass(frozen=True)
class CountingSpace(PlanSpace):
    """A space that counts every workflow that is drawn from it to be scored."""

    counter: Counter = field(default_factory=Counter)

    @classmethod
    def of(cls, space: PlanSpace) -> "CountingSpace":
        """Returns the same space with a counter of its own."""
        return cls(**{one.name: getattr(space, one.name) for one in fields(PlanSpace)})

    def table(self, order: TaskOrder) -> PlanTable:
        """Returns the table of an order, which counts."""
        plain = super().table(order)
        return CountingTable(plain.workflow, plain.options, plain.cost, plain.reward, self.counter)

    def to_workflow(self, state: PlanState) -> Workflow:
        """Returns the plan as a workflow, and counts it."""
        self.counter.scored += 1
        return super().to_workflow(state)


@dataclass(frozen=True)
class PlanSearch:
    """What a search on plans found: the plan, its value, and (scored workflows, best plan) as a learning curve."""

    method: str
    plan: RefinedPlan
    value: float
    scored: int
    curve: tuple[tuple[int, RefinedPlan], ...] = ()


def refinement(space: PlanSpace, tasks: Tasks, picks: dict[str, int]) -> PlanSearch:
    """Returns what the refinement search finds from these tasks and modes."""
    counting = CountingSpace.of(space)
    search = LocalSearch(counting)
    plan = search.refine(search.initial_plan(tasks, picks))
    return PlanSearch("refinement", plan, value_of(plan), counting.counter.scored)


def reward_search(space: PlanSpace, start: tuple[Tasks, dict[str, int]], budget: int, seed: int) -> PlanSearch:
    """Returns what the policy gradient finds with so many scored workflows."""
    return _walk("policy gradient", space, start, budget, EditPolicyOfPlans(np.random.default_rng(seed)))


def random_search(space: PlanSpace, start: tuple[Tasks, dict[str, int]], budget: int, seed: int) -> PlanSearch:
    """Returns what random edits find with so many scored workflows: the control."""
    return _walk("random edits", space, start, budget, EvenDraws(np.random.default_rng(seed)))


def value_of(plan: RefinedPlan) -> float:
    """Returns the Reward of a plan in dollars (or its success without a gain), less a penalty for broken limits."""
    return plan.worth - (0.0 if plan.keeps_limits else BROKEN)


def plan_program(search: LocalSearch, plan: RefinedPlan) -> CoreProgram:
    """Returns a plan as a CoRE program: one process step for each task and review, in a topological order."""
    workflow = search.workflow(plan.state)
    by_id = {task.id: task for task in workflow.tasks}
    tasks = [by_id[node] for node in workflow.topological() if node in by_id]
    names = [f"Step {i + 1}" for i in range(len(tasks))] + ["End"]
    steps = []
    for i, task in enumerate(tasks):
        words = " ".join(f"{task.title}, by {task.actor.label}".replace(":::", ":").split())
        steps.append(CoreStep(names[i], "process", words, ((NEXT, names[i + 1]),)))
    return CoreProgram((*steps, CoreStep("End", "terminal", "Hand the result over.")))


def expected_usd(search: LocalSearch, state: PlanState, moves: Sequence[PlanMove]) -> NDArray[np.float64]:
    """Returns what each move would earn if the plan were a chain, in dollars (in success without a stated gain).

    The success that reaches a step and the slope of what follows it give the effect of other figures of the step
    (EVAL (7)). A dropped task lets everything pass. Moves of other kinds have no such estimate: 0.
    """
    space, table = search.space, search.table(state.order)
    gain, order = space.ends[1].gain_usd, {name: i for i, name in enumerate(table.workflow.topological())}
    picked = dict(zip(table.options, row(table, state.picks).tolist(), strict=True))
    nodes = {task.id: task for task in table.workflow.tasks}
    nodes |= {name: table.options[name][to] for name, to in picked.items()}
    chain = sorted(nodes, key=order.__getitem__)
    reaches, slopes, success, slope = {}, {}, 1.0, 1.0
    for name in chain:
        reaches[name] = success
        success = nodes[name].p * success + nodes[name].q * (1 - success)
    for name in reversed(chain):
        slopes[name] = slope
        slope *= nodes[name].p - nodes[name].q

    def earned(name: str, p: float, q: float, spent: float) -> float:
        now, s = nodes[name], reaches[name]
        success = ((p - now.p) * s + (q - now.q) * (1 - s)) * slopes[name]
        return success if gain is None else gain * success - (spent - _spent(now, space))

    found = np.zeros(len(moves))
    for i, move in enumerate(moves):
        name = move.nodes[0]
        if move.kind in ("way", "review"):
            then = table.options[name][move.to]
            found[i] = earned(name, then.p, then.q, _spent(then, space))
        elif move.kind == "drop":
            found[i] = earned(name, 1.0, 0.0, 0.0)
    return found


def _spent(node: TaskNode, space: PlanSpace) -> float:
    return weighed_usd(node, space.cost) + time_usd(node.duration_ms, space.cost)


class MovePolicy(Protocol):
    """What chooses the next move of a plan."""

    generator: np.random.Generator

    def move(self, search: LocalSearch, state: PlanState, moves: Sequence[PlanMove]) -> PlanMove:
        """Returns one of the moves."""
        ...

    def learn(self, gain: float) -> None:
        """Takes what the last move gained, 0 where it gained nothing."""
        ...


class EvenDraws:
    """The control: every move is as likely as any other."""

    def __init__(self, generator: np.random.Generator) -> None:
        self.generator = generator

    def move(self, search: LocalSearch, state: PlanState, moves: Sequence[PlanMove]) -> PlanMove:
        """Returns one of the moves, drawn evenly."""
        return moves[int(self.generator.integers(len(moves)))]

    def learn(self, gain: float) -> None:
        """Learns nothing."""


class EditPolicyOfPlans:
    """A softmax over the features of the possible moves of a plan."""

    def __init__(self, generator: np.random.Generator) -> None:
        self.generator = generator
        self._weights = np.zeros(len(KINDS) + 2)
        self._weights[-2:] = EXPECTED, TRIED
        self._moments = RunningMoments()
        self._tried: dict[PlanMove, int] = {}

    def move(self, search: LocalSearch, state: PlanState, moves: Sequence[PlanMove]) -> PlanMove:
        """Returns one of the moves, drawn by the policy."""
        expected = expected_usd(search, state, moves)
        most = float(np.abs(expected).max(initial=0.0))
        features = np.zeros((len(moves), len(self._weights)))
        features[np.arange(len(moves)), [KINDS.index(move.kind) for move in moves]] = 1.0
        features[:, -2] = expected / most if most > 0 else 0.0
        features[:, -1] = np.log1p([self._tried.get(move, 0) for move in moves])
        self._last = features, draw(features @ self._weights, self.generator)
        chosen = moves[self._last[1]]
        self._tried[chosen] = self._tried.get(chosen, 0) + 1
        return chosen

    def learn(self, gain: float) -> None:
        """Takes one step of the gradient for the last move."""
        advantage = self._moments.advantage(gain)
        self._moments.add(gain)
        features, chosen = self._last
        self._weights += direction(features @ self._weights, chosen, LEARNING_RATE * advantage) @ features


def _walk(
    method: str, space: PlanSpace, start: tuple[Tasks, dict[str, int]], budget: int, policy: MovePolicy
) -> PlanSearch:
    return improve_plan(method, space, PlanState(TaskOrder.chain(start[0]), start[1]), budget, policy)


def improve_plan(method: str, space: PlanSpace, start: PlanState, budget: int, policy: MovePolicy) -> PlanSearch:
    """Returns what a policy finds from a plan with so many scored workflows; a plan is scored once.

    Where only plans are proposed that were scored before, it goes back to the beginning, which costs nothing, because
    no edit adds a task that was dropped too early; the next time it takes some moves as they come.
    """
    counting = CountingSpace.of(space)
    search, counter = LocalSearch(counting), counting.counter
    current = best = first = search.evaluate_state(start)
    known, idle, forced, ended = {_key(start): best}, 0, 0, 0
    curve = [(counter.scored, best)]
    scale = max(1.0, abs(value_of(best)) if best.keeps_limits else 1.0)
    while counter.scored < budget and idle < MOST_IDLE * MOST_KICKS:
        moves = search.single_moves(current.state)
        if not moves and current.state == start:
            break
        if not moves:
            current, idle = first, idle + 1
            continue
        even = moves[int(policy.generator.integers(len(moves)))]
        move = even if forced else policy.move(search, current.state, moves)
        state = counting.apply(move, current.state)
        tried = known.get(_key(state))
        idle = idle + 1 if tried else 0
        tried = tried or known.setdefault(_key(state), search.apply_moves(current, [move]))
        gain = value_of(tried) - value_of(current)
        if not forced:
            policy.learn(max(0.0, gain))
        heat = HEAT * scale * (1 - counter.scored / budget)
        if idle and idle % MOST_IDLE == 0:
            ended += 1
            forced = KICK + idle // MOST_IDLE
            if ended % 2:
                current, forced = first, 0
                continue
        if forced or gain > 0 or gain > -heat * policy.generator.exponential():
            current, forced = tried, max(0, forced - 1)
        if value_of(tried) > value_of(best):
            best = tried
            curve.append((counter.scored, best))
    curve.append((counter.scored, best))
    return PlanSearch(method, best, value_of(best), counter.scored, tuple(dict(curve).items()))


def _key(state: PlanState) -> Hashable:
    return state.order, tuple(sorted((node, to) for node, to in state.picks.items() if to))


Searcher = Callable[[PlanSpace, tuple[Tasks, dict[str, int]], int, int], PlanSearch]
SEARCHERS: dict[str, Searcher] = {"policy gradient": reward_search, "random edits": random_search}
