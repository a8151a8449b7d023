"""What EVAL (13) compares: Rewards in steps of a quantum, then Penalties. Without a stated gain the same of chances of
success.
"""

import math

from opus_pipelines.core.errors import WorkflowError


def quantised(worth: float, quantum: float) -> int:
    """The Reward (or chance of success) in whole steps of the quantum, half to even. Raw floats break ties by rounding
    errors, a tolerance is not transitive.
    """
    if not math.isfinite(worth):
        raise WorkflowError(f"a Reward of {worth} cannot be ranked")
    return round(worth / quantum)


def merit(worth: float, penalty: float | None, quantum: float) -> tuple[int, float]:
    """The key of (13), least first: Reward down, Penalty up, an unmeasured one last."""
    return -quantised(worth, quantum), math.inf if penalty is None else penalty
