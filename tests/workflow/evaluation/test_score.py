"""Workflows scored and ranked: the paper's case, what must not be ranked, and named resources."""

from dataclasses import replace
from itertools import pairwise
from typing import Any

import pytest

from opus_pipelines.core.errors import WorkflowError
from opus_pipelines.core.settings import Cost, Reward
from opus_pipelines.workflow.evaluation.penalty import Scores
from opus_pipelines.workflow.evaluation.score import (
    GAINS_USD,
    TABLE_1,
    TableRow,
    case_study,
    incomparability_reasons,
    ranked,
    score,
    table_figure,
    turning_gain_usd,
)
from opus_pipelines.workflow.model import InputNode, OutputNode, TaskNode, Workflow


def chain(*tasks: TaskNode, gain: float = 10.0, prior: float = 1.0) -> Workflow:
    nodes = ["in", *(t.id for t in tasks), "out"]
    ends = InputNode("in", "Request", prior), OutputNode("out", "Answer", gain)
    return Workflow.of([*ends, *tasks], pairwise(nodes))


def scored(title: str, workflow: Workflow, penalty: float | None = None) -> Any:
    scores = {t.id: Scores(penalty, penalty, penalty, penalty) for t in workflow.tasks} if penalty is not None else {}
    return score(title, workflow, scores, Cost(), Reward())


@pytest.mark.parametrize("row", TABLE_1, ids=lambda row: row.name)
def test_table_1_of_the_paper(row: TableRow) -> None:
    for found, printed in zip(case_study(), row.printed, strict=True):
        if printed is not None:
            assert round(table_figure(found, row.name), row.digits) == printed


def test_the_order_turns_with_the_gain() -> None:
    orders = {who: [r.score.title for r in ranked(case_study(gain), 0.0001, 0.01)] for who, gain in GAINS_USD.items()}
    assert orders == {"small": ["W2", "W3", "W1"], "medium": ["W1", "W2", "W3"], "enterprise": ["W1", "W2", "W3"]}
    first, second, _ = case_study()
    gain = turning_gain_usd(first, second)
    assert gain == pytest.approx(0.0016 / (first.parts.success_probability - 0.925))
    a, b, _ = case_study(gain)
    assert a.parts.reward_usd == pytest.approx(b.parts.reward_usd, abs=1e-12)


def test_equal_rewards_are_decided_by_the_penalty_and_are_no_distance_apart() -> None:
    places = ranked(
        [
            scored("a", chain(TaskNode("x", "x", "X"))),
            scored("b", chain(TaskNode("x", "x", "X")), 0.4),
            scored("c", chain(TaskNode("x", "x", "X")), 0.2),
        ],
        0.0001,
        0.01,
    )
    assert [(p.rank, p.score.title, p.distance_usd) for p in places] == [(1, "c", 0.0), (2, "b", 0.0), (3, "a", None)]


def test_workflows_of_other_ends_are_not_ranked() -> None:
    task = TaskNode("x", "x", "X")
    found = incomparability_reasons(
        [scored("a", chain(task)), scored("b", chain(task, gain=11.0)), scored("c", chain(task, prior=0.5))]
    )
    assert [line.partition(" have different ")[0] for line in found] == ["a and c", "a and b"]
    assert "inputs (Request (1) against Request (0.5))" in found[0]
    assert "outputs (Answer (10) against Answer (11))" in found[1]


def test_one_task_in_one_way_has_one_set_of_parameters() -> None:
    task = TaskNode("x", "x", "X", p=0.9, cost_usd=1.0, actor_kind="human")
    with pytest.raises(WorkflowError, match=r"task 'X' .* p 0\.9 and 0\.8"):
        ranked([scored("a", chain(task)), scored("b", chain(replace(task, p=0.8)))], 0.0001, 0.01)
    other_way = replace(task, p=0.8, actor_kind="model")
    assert [p.score.title for p in ranked([scored("a", chain(task)), scored("b", chain(other_way))], 0.0001, 0.01)] == [
        "a",
        "b",
    ]


def test_a_penalty_needs_the_scores_of_every_task() -> None:
    workflow = chain(TaskNode("x", "x", "X"), TaskNode("y", "y", "Y"))
    half = {"x": Scores(0.5, 0.5, 0.5, 0.5)}
    assert score("w", workflow, half, Cost(), Reward()).penalties is None
    assert score("w", workflow, half | {"y": Scores(0.5, 0.5, 0.5, 0.5)}, Cost(), Reward()).penalty == 0.25


def test_further_resources_are_consumed_and_held_by_name() -> None:
    tasks = [
        TaskNode(i, i, i, duration_ms=10, consumes={"kwh": 2.0}, holds={"desk": 1.0}, memory_gb=2.0) for i in ("a", "b")
    ]
    ends = InputNode("in", "Request"), OutputNode("out", "Answer", 1.0)
    side_by_side = Workflow.of([*ends, *tasks], [("in", "a"), ("in", "b"), ("a", "out"), ("b", "out")])
    prices = Cost(usd_per_unit={"kwh": 0.25}, usd_per_held={"desk": 3.0}, usd_per_gb_held=0.5)
    parts = score("w", side_by_side, {}, prices, Reward()).parts
    assert (parts.cost_compute_usd, parts.cost_held_usd, parts.cost_usd) == (1.0, 2 * 3.0 + 4 * 0.5, 9.0)
    one_after_the_other = chain(*tasks)
    assert score("w", one_after_the_other, {}, prices, Reward()).parts.cost_held_usd == 3.0 + 1.0
    with pytest.raises(WorkflowError, match=r"'kwh' has no price: set cost\.usd_per_unit\.kwh"):
        score("w", side_by_side, {}, Cost(), Reward())


def test_where_exact_inference_takes_too_much_the_workflow_is_scored_all_the_same() -> None:
    ends = InputNode("in", "Request"), OutputNode("out", "Answer", 1.0)

    def crossing(width: int) -> Workflow:
        """So many tasks, behind each of them so many others that depend on all."""
        first, second = ([TaskNode(f"{row}{n}", "t", "T", p=0.99, q=0.1) for n in range(width)] for row in "ab")
        edges = [*(("in", a.id) for a in first), *((a.id, b.id) for a in first for b in second)]
        return Workflow.of([*ends, *first, *second], [*edges, *((b.id, "out") for b in second)])

    small, large = (score("w", crossing(width), {}, Cost(), Reward()) for width in (2, 21))
    assert ([d.node for d in small.differences], small.uncompared) == (["out", None], None)
    assert (small.parts.success_inference, large.parts.success_inference) == ("exact", "simulated")
    assert large.parts.success_probability == pytest.approx(0.99**42, abs=0.02)
    assert "too many uncertain branches cross" in (large.uncompared or "")


def test_without_a_stated_gain_success_ranks_and_no_distance_is_told() -> None:
    def unstated(task: TaskNode) -> Workflow:
        return Workflow.of(
            [InputNode("in", "In"), task, OutputNode("out", "Out", None)], [("in", task.id), (task.id, "out")]
        )

    less, more = (
        unstated(TaskNode(name, name, name, p=p, cost_usd=c)) for name, p, c in (("a", 0.8, 1.0), ("b", 0.9, 99.0))
    )
    places = ranked([scored("less", less), scored("more", more)], 0.0001, 0.01)
    assert [(p.score.title, p.score.parts.reward_usd, p.distance_usd) for p in places] == [
        ("more", None, None),
        ("less", None, None),
    ]
    with pytest.raises(WorkflowError, match="different outputs"):
        ranked([scored("less", less), scored("stated", chain(TaskNode("a", "a", "a")))], 0.0001, 0.01)
