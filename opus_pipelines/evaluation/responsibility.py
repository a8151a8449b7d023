"""Whether a task has a single responsibility, EVAL (19)-(23): by level (1 a role ... 4 an atomic action) or by degree of atomicity.

The papers give no way to measure either. γ_c = 1 - Coupling is this project's reading of "Coupling is an inverse indicator of
atomicity"; with it a task is at the target exactly where its Coupling makes CIP (8) least.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from opus_pipelines.errors import WorkflowError
from opus_pipelines.evaluation.penalty import Scores, task_scores
from opus_pipelines.settings import Reward
from opus_pipelines.workflow.model import Workflow

ROLE, ATOMIC_ACTION = 1, 4
"""The first and the last of the four levels of EVAL (19)."""


@dataclass(frozen=True)
class Responsibility:
    """One task against the target: `advice` says what would bring it nearer."""

    atomicity: float
    target: float
    is_single: bool
    advice: Literal["keep", "split", "merge"]


def is_single_level(level: int, optimal: int) -> bool:
    """SRP(v, W) of EVAL (20): γ(v, W) = L*(W), both levels of (19)."""
    if wrong := [x for x in (level, optimal) if x not in range(ROLE, ATOMIC_ACTION + 1)]:
        raise WorkflowError(f"a level is {ROLE} (a role) to {ATOMIC_ACTION} (an atomic action), not {wrong[0]}")
    return level == optimal


def atomicity(scores: Scores) -> float:
    """γ_c of EVAL (21), 1 for a task that cannot be divided: 1 - Coupling."""
    return 1 - scores.coupling


def target_atomicity(alpha: float) -> float:
    """γ* of EVAL (23): 1 - α (R 70 %: printed as α if the paper weighs Coupling with it)."""
    return 1 - alpha


def is_single(degree: float, target: float, tolerance: float = 0.0) -> bool:
    """SRP(v, W) of EVAL (22): γ_c equals γ*, or lies within the tolerance of it."""
    return math.isclose(degree, target, rel_tol=0, abs_tol=tolerance + 1e-12)


def responsibilities(workflow: Workflow, scores: Mapping[str, Scores], reward: Reward, tolerance: float = 0.1) -> dict[str, Responsibility]:
    """Every task against γ*(W), by node: split what is too coarse, merge what is too fine."""
    target = target_atomicity(reward.alpha)
    found = {}
    for node, known in task_scores(workflow, scores).items():
        degree = atomicity(known)
        single = is_single(degree, target, tolerance)
        found[node] = Responsibility(degree, target, single, "keep" if single else "split" if degree < target else "merge")
    return found
