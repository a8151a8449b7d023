"""What a workflow is worth that takes one of several forms, each with its share of the cases: EVAL (15)."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from opus_pipelines.errors import WorkflowError
from opus_pipelines.evaluation.reward import Evaluation, evaluate
from opus_pipelines.settings import Cost, Reward
from opus_pipelines.workflow.model import Workflow


@dataclass(frozen=True)
class Conditional:
    """A conditional workflow's Reward and, branch by branch, the share ρ and what that branch is worth."""

    reward_usd: float
    branches: tuple[tuple[float, Evaluation], ...]


def conditional(branches: Sequence[tuple[float, Workflow]], cost: Cost, reward: Reward) -> Conditional:
    """R(W_cond) of the (ρ_i, W_i), each branch by EVAL (7). Raises WorkflowError where a branch states no gain."""
    worth = tuple((share, evaluate(workflow, cost, reward)) for share, workflow in branches)
    rewards = [(share, e.reward_usd) for share, e in worth if e.reward_usd is not None]
    if len(rewards) < len(worth):
        raise WorkflowError("a conditional workflow has a Reward only where the outputs of every branch state gain_usd")
    return Conditional(conditional_reward(rewards), worth)


def conditional_reward(branches: Sequence[tuple[float, float]]) -> float:
    """EVAL (15): Σ ρ_i R_i in dollars over the (ρ_i, R_i). Raises WorkflowError unless the shares are at least 0 and sum to 1."""
    shares = [share for share, _ in branches]
    defects = [f"branch {i} has a share of {share}" for i, share in enumerate(shares, start=1) if not 0 <= share <= 1]
    if not defects and not math.isclose(math.fsum(shares), 1, abs_tol=1e-9):
        defects = [f"the shares sum to {math.fsum(shares):g}"]
    if defects:
        raise WorkflowError(f"the shares of a conditional workflow are at least 0 and sum to 1: {'; '.join(defects)}")
    return math.fsum(share * reward_usd for share, reward_usd in branches)
