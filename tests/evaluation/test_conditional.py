"""EVAL (15): the mean of the branches, and shares that are none."""

import pytest

from opus_pipelines.errors import WorkflowError
from opus_pipelines.evaluation.conditional import conditional, conditional_reward
from opus_pipelines.evaluation.reward import evaluate
from opus_pipelines.settings import Cost, Reward
from opus_pipelines.workflow.model import InputNode, OutputNode, TaskNode, Workflow


def line(p: float, cost: float) -> Workflow:
    nodes = [InputNode("in", "In"), TaskNode("a", "a", "A", p=p, cost_usd=cost), OutputNode("out", "Out", 10.0)]
    return Workflow.of(nodes, [("in", "a"), ("a", "out")])


def test_the_mean_of_the_branches():
    easy, hard = line(1.0, 1.0), line(0.5, 3.0)
    result = conditional([(0.75, easy), (0.25, hard)], Cost(), Reward())
    assert result.reward_usd == 0.75 * 9 + 0.25 * 2
    assert result.branches == ((0.75, evaluate(easy, Cost(), Reward())), (0.25, evaluate(hard, Cost(), Reward())))
    assert conditional([(1.0, hard)], Cost(), Reward()).reward_usd == 2


def test_shares_that_rounding_keeps_from_one_are_taken():
    assert conditional_reward([(0.1, 5.0)] * 10) == pytest.approx(5.0)


@pytest.mark.parametrize(("shares", "complaint"), [
    ([], "sum to 0"),
    ([0.5, 0.4], "sum to 0.9"),
    ([1.5, -0.5], "branch 1 has a share of 1.5; branch 2 has a share of -0.5"),
    ([float("nan"), 1.0], "branch 1 has a share of nan"),
])
def test_shares_that_are_none(shares, complaint):
    with pytest.raises(WorkflowError, match=complaint):
        conditional_reward([(share, 1.0) for share in shares])
