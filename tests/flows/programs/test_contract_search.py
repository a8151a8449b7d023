"""AutoFlow's search on plans: it counts what it scores, never ends worse, and beats random edits at what it learns."""

from collections.abc import Sequence

import numpy as np
import pytest

from opus_pipelines.core.settings import Cost, Reward
from opus_pipelines.flows.programs.contract_search import (
    SEARCHERS,
    CountingSpace,
    improve_plan,
    plan_program,
    random_search,
    refinement,
    reward_search,
    value_of,
)
from opus_pipelines.generation.search.local_search import LocalSearch
from opus_pipelines.generation.search.plan_states import PlanMove, PlanSpace, PlanState
from opus_pipelines.lwm.plan_shape import OrderFacts
from opus_pipelines.workflow.blocks.formats.core_checks import findings
from opus_pipelines.workflow.model import InputNode, OutputNode, TaskNode
from opus_pipelines.workflow.task_order import INPUT, OUTPUT, TaskOrder

TASKS = ("a", "b", "c", "d")
START = TASKS, dict[str, int]()


def modes(task: str) -> tuple[TaskNode, ...]:
    figures = ((0.7, 1.0), (0.99, 4.0), (0.95, 1.5))
    return tuple(
        TaskNode(task, task, task.upper(), p=p, q=0.0, cost_usd=cost, actor_kind=kind)
        for (p, cost), kind in zip(figures, ("code", "human", "model"), strict=True)
    )


@pytest.fixture
def space() -> PlanSpace:
    return PlanSpace(
        (InputNode(INPUT, "in"), OutputNode(OUTPUT, "out", 100.0)),
        {task: modes(task) for task in TASKS},
        OrderFacts(lambda pair: (1.0, 0.0), {}, {}, frozenset()),
        Cost(),
        Reward(),
    )


@pytest.mark.long
def test_both_searches_find_the_best_modes_of_a_chain(space: PlanSpace) -> None:
    best = refinement(space, *START)
    found = reward_search(space, START, 300, 0)
    assert found.value == pytest.approx(best.value)
    assert 40 <= found.scored <= 304
    assert best.value == pytest.approx(100 * 0.99**4 - 16.0)


@pytest.mark.parametrize("method", list(SEARCHERS))
def test_a_search_keeps_to_its_budget_and_never_ends_worse(method: str, space: PlanSpace) -> None:
    found = SEARCHERS[method](space, START, 40, 1)
    assert 40 <= found.scored <= 44
    assert found.curve[-1] == (found.scored, found.plan)
    assert value_of(found.curve[-1][1]) == found.value >= value_of(found.curve[0][1])
    assert SEARCHERS[method](space, START, 40, 1) == found


def test_every_scored_workflow_counts(space: PlanSpace) -> None:
    counting = CountingSpace.of(space)
    search = LocalSearch(counting)
    found = random_search(space, START, 1, 0)
    assert found.scored == 1
    search.evaluate_state(found.plan.state)
    table = search.table(found.plan.state.order)
    table.scored(np.zeros((5, len(table.options)), int))
    assert counting.counter.scored == 6


def test_a_plan_is_a_valid_program(space: PlanSpace) -> None:
    program = plan_program(LocalSearch(space), refinement(space, *START).plan)
    assert findings(program) == []
    assert [step.kind for step in program.steps] == ["process"] * 4 + ["terminal"]


class DropsFirst:
    """Drops a task as the first move, and draws evenly afterwards."""

    def __init__(self) -> None:
        self.generator, self.calls = np.random.default_rng(0), 0

    def move(self, search: LocalSearch, state: PlanState, moves: Sequence[PlanMove]) -> PlanMove:
        self.calls += 1
        dropping = [move for move in moves if move.kind == "drop"]
        return dropping[0] if self.calls == 1 else moves[int(self.generator.integers(len(moves)))]

    def learn(self, gain: float) -> None:
        """Learns nothing."""


def test_a_task_that_was_dropped_too_early_comes_back_in_a_walk_from_the_beginning() -> None:
    def node(task: str, p: float, q: float, cost: float, kind: str) -> TaskNode:
        return TaskNode(task, task, task.upper(), p=p, q=q, cost_usd=cost, actor_kind=kind)

    space = PlanSpace(
        (InputNode(INPUT, "in"), OutputNode(OUTPUT, "out", 100.0)),
        {
            "a": (node("a", 0.7, 0.0, 1.0, "code"),),
            "b": (node("b", 0.7, 0.0, 1.0, "code"), node("b", 0.99, 0.9, 4.0, "human")),
            "c": (node("c", 1.0, 0.0, 0.0, "code"),),
        },
        OrderFacts(lambda pair: (1.0, 0.0), {}, {}, frozenset()),
        Cost(),
        Reward(),
        follows=lambda a, b: (a, b) == ("a", "c"),
    )
    start = PlanState(TaskOrder.chain(("a", "b", "c")), {})
    found = improve_plan("test", space, start, 60, DropsFirst())
    assert found.value == pytest.approx(100 * (0.99 * 0.7 + 0.9 * 0.3) - 5.0)
    assert [value_of(plan) for _, plan in found.curve[:2]] == pytest.approx([100 * 0.49 - 2.0, 100 * 0.7 - 1.0])
