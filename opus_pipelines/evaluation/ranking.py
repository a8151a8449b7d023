"""What EVAL (13) compares: Rewards in steps of a quantum, then Penalties."""

import math

from opus_pipelines.errors import WorkflowError


def quantised(reward_usd: float, quantum: float) -> int:
    """The Reward in whole steps of the quantum, half to even: raw floats break ties by rounding errors, a tolerance is not transitive."""
    if not math.isfinite(reward_usd):
        raise WorkflowError(f"a Reward of {reward_usd} cannot be ranked")
    return round(reward_usd / quantum)


def merit(reward_usd: float, penalty: float | None, quantum: float) -> tuple[int, float]:
    """The key of (13), least first: Reward down, Penalty up, an unmeasured one last."""
    return -quantised(reward_usd, quantum), math.inf if penalty is None else penalty
