"""Defines plan states and moves: the order, execution modes and reviews of a plan, and the changes it permits."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

import numpy as np

from opus_pipelines.core.settings import Cost, Reward
from opus_pipelines.generation.search.plan_table import Picks, PlanTable
from opus_pipelines.generation.search.predecessors import Shifts, behind
from opus_pipelines.generation.search.reviews import review_by, with_places, with_reviews
from opus_pipelines.lwm.precedence import OrderFacts
from opus_pipelines.workflow.model import (
    InputNode,
    Node,
    OutputNode,
    TaskNode,
    TaskOrder,
    Workflow,
    review_id,
    reviewed_task,
)

Tasks = tuple[str, ...]
Kind = Literal["way", "review", "parallel", "wait", "merge", "split", "drop"]


@dataclass(frozen=True)
class PlanState:
    """An order of tasks with `picks`: the option number by node, for a task's mode or its reviewer; 0 where absent."""

    order: TaskOrder
    picks: Mapping[str, int] = field(default_factory=dict, hash=False)

    @property
    def tasks(self) -> Tasks:
        """Its tasks, without reviews."""
        return self.order.tasks


@dataclass(frozen=True)
class PlanMove:
    """One change of a plan state.

    way, review: `nodes` is the one node, which takes option `to`. parallel: the second task no longer waits for the
    first. wait: the second task now waits for the first. drop: the task. merge: two adjacent tasks, and the one that
    replaces both. split: the task, and the two that replace it.
    """

    kind: Kind
    nodes: Tasks
    to: int = 0


@dataclass(frozen=True)
class PlanSpace:
    """All plan states that the search may reach.

    `execution_modes`: those of every task that may occur. `permitted`: whether a workflow may have these tasks in
    this order. `follows`: whether history has the first task directly before the second. `may_insert`: whether an edit
    may put the second, new task directly behind the first. `limits`: by name, as in `search_limits.stated`. `penalty`:
    EVAL (10), None where it is not measured. `shifts`: how the figures of a task differ behind another one.
    """

    ends: tuple[InputNode, OutputNode]
    execution_modes: Mapping[str, Sequence[TaskNode]]
    facts: OrderFacts
    cost: Cost
    reward: Reward
    reviewers: Sequence[TaskNode] = ()
    limits: Mapping[str, float] = field(default_factory=dict)
    permitted: Callable[[Tasks], bool] = lambda tasks: True
    follows: Callable[[str, str], bool] = lambda a, b: False
    may_insert: Callable[[str, str], bool] = lambda a, b: True
    penalty: Callable[[Workflow], float] | None = None
    shifts: Shifts = field(default_factory=dict)

    def _modes(self, order: TaskOrder) -> dict[str, tuple[TaskNode, ...]]:
        """Returns the execution modes of each task of the order, with their figures behind its predecessors."""
        before: dict[str, list[str]] = {t: [] for t in order.tasks}
        for first, second in order.covers() if self.shifts else ():
            before[second].append(first)
        return {t: tuple(behind(n, before[t], self.shifts) for n in self.execution_modes[t]) for t in order.tasks}

    def table(self, order: TaskOrder) -> PlanTable:
        """Returns every execution mode and every review of the order's tasks."""
        tasks = self._modes(order)
        nodes: tuple[Node, ...] = (self.ends[0], *(options[0] for options in tasks.values()), self.ends[1])
        whole, reviews = with_places(Workflow(nodes, tuple(sorted(order.edges()))), self.reviewers)
        return PlanTable.of(whole, {**tasks, **reviews}, self.cost, self.reward)

    def to_workflow(self, state: PlanState) -> Workflow:
        """Returns the plan state as a workflow, not checked."""
        modes = self._modes(state.order)
        chosen = [modes[t][state.picks.get(t, 0)] for t in state.tasks]
        plain = Workflow((self.ends[0], *chosen, self.ends[1]), tuple(sorted(state.order.edges())))
        who = {t.id: state.picks.get(review_id(t.id), 0) for t in chosen}
        return with_reviews(
            plain, {t.id: review_by(self.reviewers[who[t.id] - 1], t.id, t.title) for t in chosen if who[t.id]}
        )

    def apply(self, move: PlanMove, state: PlanState) -> PlanState:
        """Returns the plan state after one change."""
        first, *rest = move.nodes
        match move.kind:
            case "way" | "review":
                return replace(state, picks={**state.picks, first: move.to})
            case "parallel":
                return replace(state, order=state.order.without_wait(first, rest[0]))
            case "wait":
                return replace(state, order=state.order.with_wait(first, rest[0]))
            case "drop":
                return self._rebuilt(state, {first: ()})
            case "merge":
                return self._rebuilt(state, {first: (rest[1],), rest[0]: (rest[1],)})
            case "split":
                return self._rebuilt(state, {first: (rest[0], rest[1])})

    def describe(self, move: PlanMove, state: PlanState) -> str:
        """Returns the change of this plan state as text."""
        first, *rest = (self._title(n) for n in move.nodes)
        match move.kind:
            case "way":
                modes = self.execution_modes[move.nodes[0]]
                current = modes[state.picks.get(move.nodes[0], 0)]
                return f"{first}: {modes[move.to].actor.label} instead of {current.actor.label}"
            case "review":
                return f"{first} by {self.reviewers[move.to - 1].actor.label}" if move.to else f"{first}: left out"
            case "parallel":
                return f"{rest[0]} no longer waits for {first}"
            case "wait":
                return f"{rest[0]} waits for {first}"
            case "drop":
                return f"{first}: left out"
            case "merge":
                return f"{first} and {rest[0]} in one: {rest[1]}"
            case "split":
                return f"{first} in two: {rest[0]}, then {rest[1]}"

    def _title(self, node: str) -> str:
        if node in self.execution_modes:
            return repr(self.execution_modes[node][0].title)
        return f"review of {self.execution_modes[reviewed_task(node)][0].title!r}"

    def _rebuilt(self, state: PlanState, instead: Mapping[str, Tasks]) -> PlanState:
        """Replaces tasks by others in their place.

        Existing waits stay, and the required waits of the new tasks are added.
        """

        def becomes(task: str) -> Tasks:
            return instead.get(task, (task,))

        tasks = tuple(dict.fromkeys(new for t in state.tasks for new in becomes(t)))
        pairs = [(x, y) for a, b in state.order.pairs() for x in becomes(a) for y in becomes(b) if x != y]
        pairs += [(new[0], new[1]) for new in instead.values() if len(new) > 1]
        keep = {n for t in tasks for n in (t, review_id(t))}
        picks = {n: p for n, p in state.picks.items() if n in keep}
        return PlanState(TaskOrder.of(tasks, [*pairs, *self.facts.required(tasks)]), picks)


def row(table: PlanTable, picks: Mapping[str, int]) -> Picks:
    """Returns picks by node as one row of a table's picks."""
    return np.array([picks.get(name, 0) for name in table.options], np.int64)


def kind_of(node: str, space: PlanSpace) -> Kind:
    """Returns whether a node with options is a task ("way") or a place for a review ("review")."""
    return "way" if node in space.execution_modes else "review"
