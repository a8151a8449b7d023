"""Computes the normative Penalties of EVAL (8)-(10) from four scores per task.

The papers do not say how a score is measured; `workflow.evaluation.task_scores` defines it.
"""

import math
from collections.abc import Collection, Mapping
from dataclasses import asdict, dataclass

from opus_pipelines.core.errors import WorkflowError
from opus_pipelines.core.settings import Reward
from opus_pipelines.workflow.model import Workflow


@dataclass(frozen=True)
class Scores:
    """Ch, Cp, Ob and Ih of one task (EVAL A3), each in [0, 1], 0 best.

    `Scores.of` fills in the scores that are not measured. Raises WorkflowError for a score outside [0, 1].
    """

    cohesion: float
    coupling: float
    observability: float
    hygiene: float

    def __post_init__(self) -> None:
        if not (
            0 <= self.cohesion <= 1
            and 0 <= self.coupling <= 1
            and 0 <= self.observability <= 1
            and 0 <= self.hygiene <= 1
        ):
            wrong = [f"{name} is {x}" for name, x in asdict(self).items() if not 0 <= x <= 1]
            raise WorkflowError(f"a score lies in [0, 1]: {', '.join(wrong)}")

    @classmethod
    def of(
        cls,
        cohesion: float | None = None,
        coupling: float | None = None,
        observability: float | None = None,
        hygiene: float | None = None,
    ) -> "Scores":
        """Returns the scores; an absent one is the complement of its pair.

        Ch + Cp = 1 and Ob + Ih = 1, as the paper assumes. Raises WorkflowError where both scores of a pair are absent.
        """
        return cls(
            *_pair("cohesion", cohesion, "coupling", coupling),
            *_pair("observability", observability, "hygiene", hygiene),
        )


@dataclass(frozen=True)
class Penalties:
    """CIP (8), SIP (9) and their joint Penalty (10) of a workflow, each in [0, 1]."""

    cip: float
    sip: float
    penalty: float


def penalties(workflow: Workflow, scores: Mapping[str, Scores], reward: Reward) -> Penalties:
    """Returns EVAL (8)-(10) with α, β and λ from the settings; `scores` are by node."""
    known = list(task_scores(workflow, scores).values())
    first, second = cip(known, reward.alpha), sip(known, reward.beta)
    return Penalties(first, second, joint_penalty(first, second, reward.lambda_))


def task_scores(workflow: Workflow, scores: Mapping[str, Scores]) -> dict[str, Scores]:
    """Returns the scores of the workflow's tasks, by node; raises WorkflowError where a task has none."""
    if missing := [t.id for t in workflow.tasks if t.id not in scores]:
        raise WorkflowError(f"no scores for {', '.join(map(repr, missing))}: without them the workflow has no Penalty")
    return {t.id: scores[t.id] for t in workflow.tasks}


def cip(scores: Collection[Scores], alpha: float = 0.5) -> float:
    """Returns EVAL (8): the mean of α Ch² + (1 - α) Cp² over the tasks; 0 without tasks.

    The paper does not say which of the two α weighs; this reading is 75 % certain.
    """
    return _mean_of_squares([(s.cohesion, s.coupling) for s in scores], alpha)


def sip(scores: Collection[Scores], beta: float = 0.5) -> float:
    """Returns EVAL (9): the mean of β Ob² + (1 - β) Ih² over the tasks; 0 without tasks.

    The paper does not say which of the two β weighs; this reading is 75 % certain.
    """
    return _mean_of_squares([(s.observability, s.hygiene) for s in scores], beta)


def joint_penalty(cip: float, sip: float, lambda_: float = 0.5) -> float:
    """Returns EVAL (10): sqrt(λ CIP² + (1 - λ) SIP²), quadratic as the printed figures require."""
    return min(1.0, math.sqrt(lambda_ * cip * cip + (1 - lambda_) * sip * sip))


def _mean_of_squares(pairs: Collection[tuple[float, float]], weight: float) -> float:
    if not pairs:
        return 0.0
    return min(1.0, math.fsum(weight * a * a + (1 - weight) * b * b for a, b in pairs) / len(pairs))


def _pair(first_name: str, first: float | None, second_name: str, second: float | None) -> tuple[float, float]:
    """Returns both scores of a pair, an absent one as the complement of the other."""
    if first is not None:
        return first, 1 - first if second is None else second
    if second is not None:
        return 1 - second, second
    raise WorkflowError(f"neither {first_name} nor {second_name} is known: one of the two is needed")
