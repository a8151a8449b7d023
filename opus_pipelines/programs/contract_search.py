"""AutoFlow's search on the plans of a contract: the reward is what history says a workflow earns, EVAL (7) and (10).

A plan is a program without decisions; its edits are those of the refinement search (`optimization.local_search`): other
execution modes, reviews, waits, merged, split and dropped tasks. A policy over the features of an edit is trained by
REINFORCE with a running baseline, and the walk is annealed. Both searches begin at the same tasks with the same modes,
and every workflow that is scored counts, so that they are compared at the same budget.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, fields
from typing import Any

import numpy as np
from numpy.typing import NDArray

from opus_pipelines.evaluation.batch import Batch
from opus_pipelines.flows.formats.core_text import NEXT, CoreProgram, CoreStep
from opus_pipelines.optimization.local_search import LocalSearch, RefinedPlan
from opus_pipelines.optimization.plan_states import PlanMove, PlanSpace, PlanState, Tasks
from opus_pipelines.optimization.plan_table import Picks, PlanTable
from opus_pipelines.programs.edit_policy import RunningMoments, direction, draw
from opus_pipelines.workflow.model import Workflow
from opus_pipelines.workflow.task_order import TaskOrder

KINDS = ("way", "review", "parallel", "wait", "merge", "split", "drop")
LEARNING_RATE, HEAT = 0.2, 0.02
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
    """What a search on plans found: the plan, its value, and (scored workflows, best value) as a learning curve."""

    method: str
    plan: RefinedPlan
    value: float
    scored: int
    curve: tuple[tuple[int, float], ...] = ()


def refinement(space: PlanSpace, tasks: Tasks, picks: dict[str, int]) -> PlanSearch:
    """Returns what the refinement search finds from these tasks and modes."""
    counting = CountingSpace.of(space)
    search = LocalSearch(counting)
    plan = search.refine(search.initial_plan(tasks, picks))
    return PlanSearch("refinement", plan, value_of(plan), counting.counter.scored)


def reward_search(space: PlanSpace, start: tuple[Tasks, dict[str, int]], budget: int, seed: int) -> PlanSearch:
    """Returns what the policy gradient finds with so many scored workflows."""
    return _walk("policy gradient", space, start, budget, _Policy(np.random.default_rng(seed)))


def random_search(space: PlanSpace, start: tuple[Tasks, dict[str, int]], budget: int, seed: int) -> PlanSearch:
    """Returns what random edits find with so many scored workflows: the control."""
    return _walk("random edits", space, start, budget, _Policy(np.random.default_rng(seed), rate=0.0))


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


class _Policy:
    """A softmax over the features of the possible moves of a plan."""

    def __init__(self, generator: np.random.Generator, rate: float = LEARNING_RATE) -> None:
        self.generator, self._rate = generator, rate
        self._weights = np.zeros(len(KINDS) + 4)
        self._moments = RunningMoments()
        self._tried: dict[PlanMove, int] = {}

    def move(self, search: LocalSearch, state: PlanState, moves: Sequence[PlanMove]) -> PlanMove:
        features = np.stack([self._features(search, state, move) for move in moves])
        self._last = features, draw(features @ self._weights, self.generator)
        chosen = moves[self._last[1]]
        self._tried[chosen] = self._tried.get(chosen, 0) + 1
        return chosen

    def learn(self, gain: float) -> None:
        advantage = self._moments.advantage(gain)
        self._moments.add(gain)
        features, chosen = self._last
        self._weights += direction(features @ self._weights, chosen, self._rate * advantage) @ features

    def _features(self, search: LocalSearch, state: PlanState, move: PlanMove) -> NDArray[np.float64]:
        found = np.zeros(len(self._weights))
        found[KINDS.index(move.kind)] = 1.0
        found[-1] = np.log1p(self._tried.get(move, 0))
        if move.kind in ("way", "review"):
            options: Any = search.table(state.order).options[move.nodes[0]]
            now, then = options[state.picks.get(move.nodes[0], 0)], options[move.to]
            found[-4], found[-3] = then.p - now.p, then.q - now.q
            found[-2] = np.tanh(then.cost_usd - now.cost_usd)
        return found


def _walk(
    method: str, space: PlanSpace, start: tuple[Tasks, dict[str, int]], budget: int, policy: _Policy
) -> PlanSearch:
    counting = CountingSpace.of(space)
    search, counter = LocalSearch(counting), counting.counter
    current = best = search.evaluate_state(PlanState(TaskOrder.chain(start[0]), start[1]))
    curve = [(counter.scored, value_of(best))]
    scale = max(1.0, abs(value_of(best)) if best.keeps_limits else 1.0)
    while counter.scored < budget:
        moves = search.single_moves(current.state)
        if not moves:
            break
        tried = search.evaluate_state(counting.apply(policy.move(search, current.state, moves), current.state))
        gain = value_of(tried) - value_of(current)
        policy.learn(max(0.0, gain))
        heat = HEAT * scale * (1 - counter.scored / budget)
        if gain > 0 or gain > -heat * policy.generator.exponential():
            current = tried
        if value_of(current) > value_of(best):
            best = current
            curve.append((counter.scored, value_of(best)))
    return PlanSearch(method, best, value_of(best), counter.scored, tuple(curve))


Searcher = Callable[[PlanSpace, tuple[Tasks, dict[str, int]], int, int], PlanSearch]
SEARCHERS: dict[str, Searcher] = {"policy gradient": reward_search, "random edits": random_search}
