"""Improves a chain of tasks by local search, and lists the variations of a plan.

First the execution modes and reviews are chosen together (`modes`), on the chain and, where time counts, also on
the shape with the fewest waits. Then single edits are tried: drop a task, merge two, split one, add or remove a wait,
another mode, a review more or less. The best edit that helps is applied until none helps.

The success model treats a step with a high q as a repair of what went wrong before it, so that an unnecessary step
looks useful. An edit therefore adds a step only where history has it, or where a requirement demands it
(`PlanSpace.may_insert`). Reviews are added by their figures alone, which are stated, or measured on repairs. In the
product form with p at least q, a wait never lowers the success of a chain. Shapes are therefore tried only where a
duration has a price or the chain takes longer than the limit.

No review is added: one that does not pay is not an alternative, and one that pays is already part of the plan.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import combinations, pairwise
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from opus_pipelines.core.settings import Cost, Reward
from opus_pipelines.generation.search.constraints import is_within_limits, within_limits
from opus_pipelines.generation.search.costs import Shifts, behind
from opus_pipelines.generation.search.modes import EXACT_ROWS, Picks, PlanTable, best_mode_choice
from opus_pipelines.generation.search.problem import StepKey, Steps, step_of
from opus_pipelines.generation.search.reviews import review_by, with_places, with_reviews
from opus_pipelines.lwm.precedence import OrderFacts, plan_shape
from opus_pipelines.workflow.evaluation.reward import evaluate, quantised
from opus_pipelines.workflow.model import (
    INPUT,
    OUTPUT,
    REVIEW,
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
    may put the second, new task directly behind the first. `limits`: by name, as in `constraints.stated`. `penalty`:
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


EDITS = 8  # most edits of one workflow after its first choice of modes and reviews
SHAPES = 40  # most changes of shape that are evaluated for one edit
LEVEL = 4  # most swaps, and most edits with an equal Reward, that are evaluated for one edit


@dataclass(frozen=True)
class PlanStep:
    """An accepted change: its moves in order, the change as text, and its gain in units of `worth`."""

    moves: tuple[PlanMove, ...]
    what: str
    earned: float

    @property
    def kind(self) -> str:
        """The kind of its moves; `joint` where they are of several kinds."""
        kinds = {move.kind for move in self.moves}
        return kinds.pop() if len(kinds) == 1 else "joint"


@dataclass(frozen=True)
class RefinedPlan:
    """A plan state with the changes that led to it.

    `keeps_limits`: it is within the limits. `exact`: no other execution modes and reviews on its shape earn more.
    `worth` is the value by which plans are compared, as in `Evaluation`. `imputed` is the part of it that stands for
    unknown costs; no report states it as earned.
    """

    state: PlanState
    worth: float
    keeps_limits: bool
    exact: bool
    steps: tuple[PlanStep, ...] = ()
    imputed: float = 0.0


@dataclass
class LocalSearch:
    """A local search in one space of plans; it computes one table for each order."""

    space: PlanSpace
    _tables: dict[TaskOrder, PlanTable] = field(default_factory=dict)

    def table(self, order: TaskOrder) -> PlanTable:
        """Returns the options of an order."""
        if order not in self._tables:
            self._tables[order] = self.space.table(order)
        return self._tables[order]

    def workflow(self, state: PlanState) -> Workflow:
        """Returns the plan state as a checked workflow; raises WorkflowError where it is not a valid one."""
        drawn = self.space.to_workflow(state)
        return Workflow.of(drawn.nodes, drawn.edges)

    def evaluate_state(self, state: PlanState) -> RefinedPlan:
        """Returns the plan state evaluated, without a change."""
        worth = evaluate(self.space.to_workflow(state), self.space.cost, self.space.reward)
        return RefinedPlan(
            state, worth.worth, is_within_limits(self.space.limits, worth), exact=False, imputed=worth.imputed_worth
        )

    def initial_plan(self, tasks: Tasks, picks: dict[str, int]) -> RefinedPlan:
        """Returns the best execution modes and reviews for the tasks, beginning at their chain.

        The shape is the chain or, where time counts, the order with the fewest waits.
        """
        begin = self.evaluate_state(PlanState(TaskOrder.chain(tasks), picks))
        best = self.with_best_modes(begin)
        if self._time_counts(best) and (frees := _freeing(begin.state.order, plan_shape(tasks, self.space.facts))):
            best = min(best, self.with_best_modes(self.apply_moves(begin, frees)), key=self._merit)
        return best

    def with_best_modes(self, plan: RefinedPlan) -> RefinedPlan:
        """Returns the best execution modes and reviews on the plan's shape; within the limits where any choice is."""
        table = self.table(plan.state.order)
        picks, exact = self.best_picks(table, self.space.limits)
        target = dict(zip(table.options, picks.tolist(), strict=True))
        done = self._stepwise(plan, target)
        return replace(done, exact=exact) if self._merit(done) <= self._merit(plan) else plan

    def refine(self, plan: RefinedPlan) -> RefinedPlan:
        """Returns a local optimum that is never worse than the plan and at most EDITS edits away."""
        for _ in range(EDITS):
            better = self._next(plan)
            if better is None:
                return plan
            plan = better
        return plan

    def _next(self, plan: RefinedPlan) -> RefinedPlan | None:
        """Returns the best of the edits that help.

        Where no edit raises the Reward, it is the edit that lowers the Penalty most at the same Reward.
        """
        candidates = [self._tried(plan, move) for move in self._edits(plan)]
        best = min(candidates, key=self._merit, default=plan)
        if self._merit(best)[:2] < self._merit(plan)[:2]:
            return self.with_best_modes(best)
        measure = self.space.penalty
        level = [candidate for candidate in candidates if self._merit(candidate)[:2] == self._merit(plan)[:2]][:LEVEL]
        if measure is None or not level:
            return None
        candidate, penalty = min(((f, measure(self.workflow(f.state))) for f in level), key=lambda pair: pair[1])
        return candidate if penalty < measure(self.workflow(plan.state)) else None

    def _tried(self, plan: RefinedPlan, move: PlanMove) -> RefinedPlan:
        """Applies the edit; where it changes the tasks, it also chooses the modes and reviews anew."""
        changed = self.apply_moves(plan, [move])
        return self.with_best_modes(changed) if changed.state.tasks != plan.state.tasks else changed

    def _edits(self, plan: RefinedPlan) -> list[PlanMove]:
        state, space = plan.state, self.space
        moves = [*self._swaps(plan), *_drops(state, space), *_merges(state, space), *_splits(state, space)]
        return moves + (_shapes(state, space)[:SHAPES] if self._time_counts(plan) else [])

    def _swaps(self, plan: RefinedPlan) -> list[PlanMove]:
        """Returns single changes of mode or review that raise the Reward, scored in one pass.

        Where a Penalty is measured, changes that keep the Reward within its quantum are included.
        """
        table = self.table(plan.state.order)
        current = row(table, plan.state.picks)
        moves = [
            (i, PlanMove(kind_of(node, self.space), (node,), to))
            for i, (node, options) in enumerate(table.options.items())
            for to in range(len(options))
            if to != current[i]
        ]
        if not moves:
            return []
        rows = np.repeat(current[None, :], len(moves) + 1, axis=0)
        for n, (i, move) in enumerate(moves):
            rows[n, i] = move.to
        rewards = table.by_product_form(rows).worth
        step = self.space.reward.quantum_usd
        least = rewards[-1] + (step / 2 if self.space.penalty is None else -step / 2)
        likely = np.argsort(-rewards[:-1], kind="stable")[:LEVEL]
        return [moves[n][1] for n in likely if rewards[n] > least]

    def apply_moves(self, plan: RefinedPlan, moves: Sequence[PlanMove]) -> RefinedPlan:
        """Applies all moves as one step."""
        state, descriptions = plan.state, []
        for move in moves:
            descriptions.append(self.space.describe(move, state))
            state = self.space.apply(move, state)
        changed = self.evaluate_state(state)
        known = (changed.worth + changed.imputed) - (plan.worth + plan.imputed)
        step = PlanStep(
            tuple(moves),
            "; ".join(descriptions),
            known if changed.imputed != plan.imputed else changed.worth - plan.worth,
        )
        return replace(changed, steps=(*plan.steps, step))

    def _stepwise(self, plan: RefinedPlan, target: dict[str, int]) -> RefinedPlan:
        """Applies the target options on the same shape, the change that earns most first.

        Changes that earn nothing by themselves are applied together in one step.
        """
        table = self.table(plan.state.order)
        place = {node: i for i, node in enumerate(table.options)}
        left = [n for n, to in target.items() if to != plan.state.picks.get(n, 0)]
        while left:
            current = row(table, plan.state.picks)
            rows = np.repeat(current[None, :], len(left), axis=0)
            for n, node in enumerate(left):
                rows[n, place[node]] = target[node]
            rewards = table.scored(rows).worth
            top = int(np.argmax(rewards))
            these = [left[top]] if rewards[top] > plan.worth else left
            plan = self.apply_moves(
                plan, [PlanMove(kind_of(node, self.space), (node,), target[node]) for node in these]
            )
            left = [node for node in left if node not in these]
        return plan

    def best_picks(self, table: PlanTable, limits: Mapping[str, float]) -> tuple[Picks, bool]:
        """Returns the best options, and whether they are optimal; without the limits where no options keep them."""
        choice = best_mode_choice(
            table, (lambda batch: within_limits(limits, batch)) if limits else None
        ) or best_mode_choice(table)
        assert choice is not None
        return choice

    def _time_counts(self, plan: RefinedPlan) -> bool:
        too_long = not plan.keeps_limits and "max_duration_hours" in self.space.limits
        return self.space.cost.usd_per_hour_of_duration > 0 or too_long or not plan.state.order.is_chain

    def _merit(self, plan: RefinedPlan) -> tuple[bool, int, float]:
        """Returns the sort key, least first: within the limits, then the Reward in steps, then the Reward."""
        return not plan.keeps_limits, -quantised(plan.worth, self.space.reward.quantum_usd), -plan.worth


def _freeing(order: TaskOrder, target: TaskOrder) -> list[PlanMove]:
    """Returns the moves that remove every wait which the target does not have.

    Of the waits to remove, at least one is always direct.
    """
    wanted = set(target.pairs())
    moves = []
    while extra := [pair for pair in order.covers() if pair not in wanted]:
        moves.append(PlanMove("parallel", extra[0]))
        order = order.without_wait(*extra[0])
    return moves


def _shapes(state: PlanState, space: PlanSpace) -> list[PlanMove]:
    waits = [PlanMove("parallel", pair) for pair in state.order.covers() if not space.facts.waits(*pair)]
    return waits + [PlanMove("wait", pair) for pair in state.order.unordered_pairs()]


def _drops(state: PlanState, space: PlanSpace) -> list[PlanMove]:
    """Returns the drops that are permitted, that history has at this place, and that leave each task its data."""
    around = [INPUT, *state.tasks, OUTPUT]
    return [
        PlanMove("drop", (task,))
        for before, task, behind in zip(around, around[1:], around[2:], strict=False)
        if space.follows(before, behind)
        and space.permitted(rest := tuple(t for t in state.tasks if t != task))
        and _supplied(task, rest, state.tasks, space)
    ]


def _supplied(task: str, rest: Tasks, tasks: Tasks, space: PlanSpace) -> bool:
    """Returns whether other earlier tasks supply all data that later tasks take from this one."""
    place = tasks.index(task)
    for i, later in enumerate(rest[place:], start=place):
        others = frozenset[str]().union(*(space.facts.outputs.get(t, frozenset()) for t in rest[:i]))
        if space.facts.flows(task, later) - others:
            return False
    return True


def _merges(state: PlanState, space: PlanSpace) -> list[PlanMove]:
    outputs = space.facts.outputs
    moves = []
    for before, a, b in zip((INPUT, *state.tasks), state.tasks, state.tasks[1:], strict=False):
        both = outputs.get(a, frozenset()) | outputs.get(b, frozenset())
        if outputs.get(a) and outputs.get(b):
            moves += [
                PlanMove("merge", (a, b, c))
                for c in space.execution_modes
                if c not in state.tasks
                and both <= outputs.get(c, frozenset())
                and space.may_insert(before, c)
                and space.permitted(tuple(dict.fromkeys(c if t in (a, b) else t for t in state.tasks)))
            ]
    return moves


def _splits(state: PlanState, space: PlanSpace) -> list[PlanMove]:
    outputs = space.facts.outputs
    moves = []
    for before, c in pairwise((INPUT, *state.tasks)):
        parts = [
            t
            for t in space.execution_modes
            if t not in state.tasks and outputs.get(t) and outputs[t] < outputs.get(c, frozenset())
        ]
        for a, b in ((x, y) for pair in combinations(parts, 2) for x, y in (pair, pair[::-1])):
            if (
                outputs[a] | outputs[b] >= outputs[c]
                and not space.facts.flows(b, a)
                and space.may_insert(before, a)
                and space.may_insert(a, b)
            ):
                tasks = tuple(new for t in state.tasks for new in ((a, b) if t == c else (t,)))
                moves += [PlanMove("split", (c, a, b))] if space.permitted(tasks) else []
    return moves


# most variations that are changed once more; with no more single changes than this, every pair of them is evaluated
BEAM = 64


@dataclass(frozen=True)
class Variations:
    """The variations of a plan that keep the limits.

    `picks` is (n, nodes with options); `worth` is (n,), as in `Evaluation`.
    """

    refiner: LocalSearch
    plan: RefinedPlan
    picks: Picks
    worth: NDArray[np.float64]

    @classmethod
    def of(cls, refiner: LocalSearch, plan: RefinedPlan, most: int) -> "Variations":
        """Returns the variations with up to `most` changes of mode or review, each of another node.

        Only the variations that earn most are changed once more.
        """
        table = refiner.table(plan.state.order)
        base = row(table, plan.state.picks)
        changes = [
            (i, to)
            for i, options in enumerate(table.options.values())
            for to in range(len(options))
            if to != base[i] and (base[i] or options[0].kind != REVIEW)
        ]
        layers = [base[None, :]]
        for _ in range(most):
            layers.append(_once_more(_likely(table, layers[-1], BEAM), base, changes))
        every = np.concatenate(layers[1:])
        if not table.by_product:
            every = _likely(table, every, EXACT_ROWS)
        batch = table.scored(every)
        kept = within_limits(refiner.space.limits, batch)
        return cls(refiner, plan, every[kept], batch.worth[kept])

    def swaps_from(self, other: Steps) -> NDArray[np.int64]:
        """Returns (n,) the number of swaps from each variation to these steps, as `diversity.swaps`."""
        flat, start = self._options
        places = self.picks + start
        common = np.array([step in other for step in flat])[places].sum(axis=1)
        distances: NDArray[np.int64] = (
            np.maximum(np.array([step is not None for step in flat])[places].sum(axis=1), len(other)) - common
        )
        return distances

    def steps(self, number: int) -> Steps:
        """Returns the steps of one variation."""
        flat, start = self._options
        return frozenset(step for place in self.picks[number] + start if (step := flat[place]) is not None)

    def moves(self, number: int) -> list[PlanMove]:
        """Returns the changes that lead to one variation."""
        table = self.refiner.table(self.plan.state.order)
        base = row(table, self.plan.state.picks)
        chosen = self.picks[number]
        return [
            PlanMove(kind_of(n, self.refiner.space), (n,), int(chosen[i]))
            for i, n in enumerate(table.options)
            if chosen[i] != base[i]
        ]

    @cached_property
    def _options(self) -> tuple[list[StepKey | None], Picks]:
        """The step of every option of every node in one list, and the first index of each node.

        The step is None for a review that is absent.
        """
        options: Sequence[Sequence[TaskNode]] = list(self.refiner.table(self.plan.state.order).options.values())
        flat = [
            None if number == 0 and node.kind == REVIEW else step_of(node)
            for nodes in options
            for number, node in enumerate(nodes)
        ]
        return flat, np.cumsum([0, *map(len, options)])[:-1]


def _once_more(rows: Picks, base: Picks, changes: Sequence[tuple[int, int]]) -> Picks:
    """Returns every change of one further node of every row, each once."""
    nodes, options = np.array(changes or np.zeros((0, 2)), np.int64).T
    of_row, change = (grid.ravel() for grid in np.indices((len(rows), len(nodes))))
    is_further = rows[of_row, nodes[change]] == base[nodes[change]]
    of_row, change = of_row[is_further], change[is_further]
    changed = rows[of_row]
    changed[np.arange(len(changed)), nodes[change]] = options[change]
    return np.unique(changed, axis=0)


def _likely(table: PlanTable, rows: Picks, most: int) -> Picks:
    """Returns the rows that earn most in the product form."""
    if len(rows) <= most:
        return rows
    best: Picks = rows[np.argsort(-table.by_product_form(rows).worth, kind="stable")[:most]]
    return best
