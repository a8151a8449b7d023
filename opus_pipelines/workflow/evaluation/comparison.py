"""Compares workflows as EVAL (13) does: Rewards in steps of a quantum, then Penalties.

Without a stated gain, success probabilities take the place of Rewards.
"""

import math

from opus_pipelines.core.errors import WorkflowError


def quantised(worth: float, quantum: float) -> int:
    """Returns the Reward (or success probability) in whole steps of the quantum, rounded half to even.

    Raw floats would break ties by rounding errors, and a comparison with a tolerance is not transitive. Raises
    WorkflowError for a value that is not finite.
    """
    if not math.isfinite(worth):
        raise WorkflowError(f"a Reward of {worth} cannot be ranked")
    return round(worth / quantum)


def merit(worth: float, penalty: float | None, quantum: float) -> tuple[int, float]:
    """Returns the sort key of (13), least first: Reward descending, Penalty ascending, an unmeasured one last."""
    return -quantised(worth, quantum), math.inf if penalty is None else penalty
