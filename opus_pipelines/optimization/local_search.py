"""From a chain of tasks to the best workflow that small changes lead to: Reward, EVAL (7), then Penalty (10), as (13)
orders them.

First ways and reviews are chosen together (`choice`), on the chain and, where time counts, on the shape in which
nothing waits that need not. Then single edits are tried - drop a task, merge two, split one, let a step wait or not,
another way, a review more or less - and the best that helps is taken until none does. The success model takes a step
with a high q for a repair of what went wrong before it, so that an idle one looks useful: an edit adds no step but
where history has it, or where something asks for it (`Space.joins`); reviews are added for their figures alone, which
are stated, or measured on repairs. In the product form, with p at least q, waiting never lowers the success of a chain,
so shapes are only tried where a duration has a price or the chain takes longer than it may.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations, pairwise

import numpy as np

from opus_pipelines.evaluation.comparison import quantised
from opus_pipelines.evaluation.reward import evaluate
from opus_pipelines.optimization.mode_choice import best_mode_choice
from opus_pipelines.optimization.plan_shape import plan_shape
from opus_pipelines.optimization.plan_states import PlanMove, PlanSpace, PlanState, Tasks, kind_of, row
from opus_pipelines.optimization.plan_table import Picks, PlanTable
from opus_pipelines.optimization.search_limits import keeps, within
from opus_pipelines.workflow.model import Workflow
from opus_pipelines.workflow.task_order import INPUT, OUTPUT, TaskOrder

EDITS = 8  # that one workflow may undergo beside the first choice of ways and reviews
SHAPES = 40  # changes of shape that are looked at for one of them
LEVEL = 4  # swaps, and edits that leave the Reward as it is, that are looked at


@dataclass(frozen=True)
class Step:
    """An accepted change: its moves, in order, in words, and what they earned together in units of `worth`."""

    moves: tuple[PlanMove, ...]
    what: str
    earned: float

    @property
    def kind(self) -> str:
        """Of its moves; `joint` where they are of several kinds."""
        kinds = {move.kind for move in self.moves}
        return kinds.pop() if len(kinds) == 1 else "joint"


@dataclass(frozen=True)
class RefinedPlan:
    """A draft with what led to it. `keeps`: it is within the limits; `exact`: no other ways and reviews on its shape
    earn more.

    `worth`: by which drafts are compared, as in `Evaluation`; `imputed`: what stands in it for unknown costs, never
    said to be earned.
    """

    draft: PlanState
    worth: float
    keeps: bool
    exact: bool
    steps: tuple[Step, ...] = ()
    imputed: float = 0.0


@dataclass
class LocalSearch:
    """One space being searched; tables are made once an order."""

    space: PlanSpace
    _tables: dict[TaskOrder, PlanTable] = field(default_factory=dict)

    def table(self, order: TaskOrder) -> PlanTable:
        """The options of an order."""
        if order not in self._tables:
            self._tables[order] = self.space.table(order)
        return self._tables[order]

    def workflow(self, draft: PlanState) -> Workflow:
        """The draft as a checked workflow; raises WorkflowError where it is none."""
        drawn = self.space.drawn(draft)
        return Workflow.of(drawn.nodes, drawn.edges)

    def start(self, draft: PlanState) -> RefinedPlan:
        """The draft as it stands."""
        worth = evaluate(self.space.drawn(draft), self.space.cost, self.space.reward)
        return RefinedPlan(
            draft, worth.worth, keeps(self.space.limits, worth), exact=False, imputed=worth.imputed_worth
        )

    def chosen(self, tasks: Tasks, picks: dict[str, int]) -> RefinedPlan:
        """The best ways and reviews for the tasks, as a chain or where time counts in the shape that waits least; from
        the chain on.
        """
        begin = self.start(PlanState(TaskOrder.chain(tasks), picks))
        best = self.settled(begin)
        if self._time_counts(best) and (frees := _freeing(begin.draft.order, plan_shape(tasks, self.space.facts))):
            best = min(best, self.settled(self.moved(begin, frees)), key=self._merit)
        return best

    def settled(self, now: RefinedPlan) -> RefinedPlan:
        """The best ways and reviews on the draft's shape; within the limits where any choice is."""
        table = self.table(now.draft.order)
        picks, exact = self.best(table, self.space.limits)
        target = dict(zip(table.options, picks.tolist(), strict=True))
        done = self._stepwise(now, target)
        return replace(done, exact=exact) if self._merit(done) <= self._merit(now) else now

    def refined(self, now: RefinedPlan) -> RefinedPlan:
        """A local optimum from here on; never worse, at most EDITS edits away."""
        for _ in range(EDITS):
            better = self._next(now)
            if better is None:
                return now
            now = better
        return now

    def _next(self, now: RefinedPlan) -> RefinedPlan | None:
        """The best of the edits that help; where none raises the Reward, the one that lowers the Penalty most at the
        same Reward.
        """
        tried = [self._tried(now, move) for move in self._edits(now)]
        best = min(tried, key=self._merit, default=now)
        if self._merit(best)[:2] < self._merit(now)[:2]:
            return self.settled(best)
        measure = self.space.penalty
        level = [found for found in tried if self._merit(found)[:2] == self._merit(now)[:2]][:LEVEL]
        if measure is None or not level:
            return None
        found, penalty = min(((f, measure(self.workflow(f.draft))) for f in level), key=lambda pair: pair[1])
        return found if penalty < measure(self.workflow(now.draft)) else None

    def _tried(self, now: RefinedPlan, move: PlanMove) -> RefinedPlan:
        """The edit, with other tasks the ways and reviews that fit them."""
        found = self.moved(now, [move])
        return self.settled(found) if found.draft.tasks != now.draft.tasks else found

    def _edits(self, now: RefinedPlan) -> list[PlanMove]:
        draft, space = now.draft, self.space
        found = [*self._swaps(now), *_drops(draft, space), *_merges(draft, space), *_splits(draft, space)]
        return found + (_shapes(draft, space)[:SHAPES] if self._time_counts(now) else [])

    def _swaps(self, now: RefinedPlan) -> list[PlanMove]:
        """Single changes of way or review that raise the Reward, or leave its step as it is where a Penalty can tell:
        one pass.
        """
        table = self.table(now.draft.order)
        mine = row(table, now.draft.picks)
        moves = [
            (i, PlanMove(kind_of(node, self.space), (node,), to))
            for i, (node, options) in enumerate(table.options.items())
            for to in range(len(options))
            if to != mine[i]
        ]
        if not moves:
            return []
        rows = np.repeat(mine[None, :], len(moves) + 1, axis=0)
        for n, (i, move) in enumerate(moves):
            rows[n, i] = move.to
        rewards = table.by_product_form(rows).worth
        step = self.space.reward.quantum_usd
        least = rewards[-1] + (step / 2 if self.space.penalty is None else -step / 2)
        likely = np.argsort(-rewards[:-1], kind="stable")[:LEVEL]
        return [moves[n][1] for n in likely if rewards[n] > least]

    def moved(self, now: RefinedPlan, moves: Sequence[PlanMove]) -> RefinedPlan:
        """All moves as one step."""
        draft, said = now.draft, []
        for move in moves:
            said.append(self.space.said(move, draft))
            draft = self.space.after(move, draft)
        found = self.start(draft)
        known = (found.worth + found.imputed) - (now.worth + now.imputed)
        step = Step(tuple(moves), "; ".join(said), known if found.imputed != now.imputed else found.worth - now.worth)
        return replace(found, steps=(*now.steps, step))

    def _stepwise(self, now: RefinedPlan, target: dict[str, int]) -> RefinedPlan:
        """To other options of the same shape, the change that earns the most first; those that earn nothing by
        themselves in one step.
        """
        table = self.table(now.draft.order)
        place = {node: i for i, node in enumerate(table.options)}
        left = [n for n, to in target.items() if to != now.draft.picks.get(n, 0)]
        while left:
            mine = row(table, now.draft.picks)
            rows = np.repeat(mine[None, :], len(left), axis=0)
            for n, node in enumerate(left):
                rows[n, place[node]] = target[node]
            rewards = table.scored(rows).worth
            top = int(np.argmax(rewards))
            these = [left[top]] if rewards[top] > now.worth else left
            now = self.moved(now, [PlanMove(kind_of(node, self.space), (node,), target[node]) for node in these])
            left = [node for node in left if node not in these]
        return now

    def best(self, table: PlanTable, limits: Mapping[str, float]) -> tuple[Picks, bool]:
        """The best options under these limits, or where none keeps them without; and whether none is better."""
        found = best_mode_choice(table, (lambda batch: within(limits, batch)) if limits else None) or best_mode_choice(
            table
        )
        assert found is not None
        return found

    def _time_counts(self, now: RefinedPlan) -> bool:
        too_long = not now.keeps and "max_duration_hours" in self.space.limits
        return self.space.cost.usd_per_hour_of_duration > 0 or too_long or not now.draft.order.is_chain

    def _merit(self, found: RefinedPlan) -> tuple[bool, int, float]:
        """Least first: within the limits, Reward in steps; the Penalty is looked at only where these tie (`_next`)."""
        return not found.keeps, -quantised(found.worth, self.space.reward.quantum_usd), -found.worth


def _freeing(order: TaskOrder, target: TaskOrder) -> list[PlanMove]:
    """The moves that take away every wait which the target lacks: of a wait too many there is always one that is
    direct.
    """
    wanted = set(target.pairs())
    moves = []
    while extra := [pair for pair in order.covers() if pair not in wanted]:
        moves.append(PlanMove("parallel", extra[0]))
        order = order.freed(*extra[0])
    return moves


def _shapes(draft: PlanState, space: PlanSpace) -> list[PlanMove]:
    waits = [PlanMove("parallel", pair) for pair in draft.order.covers() if not space.facts.waits(*pair)]
    return waits + [PlanMove("wait", pair) for pair in draft.order.apart()]


def _drops(draft: PlanState, space: PlanSpace) -> list[PlanMove]:
    """Tasks that may be missing, that history has gone without at this place, and whose data nobody behind them lacks
    then.
    """
    around = [INPUT, *draft.tasks, OUTPUT]
    return [
        PlanMove("drop", (task,))
        for before, task, behind in zip(around, around[1:], around[2:], strict=False)
        if space.follows(before, behind)
        and space.permitted(rest := tuple(t for t in draft.tasks if t != task))
        and _supplied(task, rest, draft.tasks, space)
    ]


def _supplied(task: str, rest: Tasks, tasks: Tasks, space: PlanSpace) -> bool:
    """Is all that tasks take from this one left by another task before them."""
    place = tasks.index(task)
    for i, later in enumerate(rest[place:], start=place):
        others = frozenset[str]().union(*(space.facts.leaves.get(t, frozenset()) for t in rest[:i]))
        if space.facts.flows(task, later) - others:
            return False
    return True


def _merges(draft: PlanState, space: PlanSpace) -> list[PlanMove]:
    leaves = space.facts.leaves
    found = []
    for before, a, b in zip((INPUT, *draft.tasks), draft.tasks, draft.tasks[1:], strict=False):
        both = leaves.get(a, frozenset()) | leaves.get(b, frozenset())
        if leaves.get(a) and leaves.get(b):
            found += [
                PlanMove("merge", (a, b, c))
                for c in space.ways
                if c not in draft.tasks
                and both <= leaves.get(c, frozenset())
                and space.joins(before, c)
                and space.permitted(tuple(dict.fromkeys(c if t in (a, b) else t for t in draft.tasks)))
            ]
    return found


def _splits(draft: PlanState, space: PlanSpace) -> list[PlanMove]:
    leaves = space.facts.leaves
    found = []
    for before, c in pairwise((INPUT, *draft.tasks)):
        parts = [
            t for t in space.ways if t not in draft.tasks and leaves.get(t) and leaves[t] < leaves.get(c, frozenset())
        ]
        for a, b in ((x, y) for pair in combinations(parts, 2) for x, y in (pair, pair[::-1])):
            if (
                leaves[a] | leaves[b] >= leaves[c]
                and not space.facts.flows(b, a)
                and space.joins(before, a)
                and space.joins(a, b)
            ):
                tasks = tuple(new for t in draft.tasks for new in ((a, b) if t == c else (t,)))
                found += [PlanMove("split", (c, a, b))] if space.permitted(tasks) else []
    return found
