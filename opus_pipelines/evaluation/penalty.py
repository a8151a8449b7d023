"""The normative Penalties of EVAL (8)-(10), from four scores a task. How a score is measured is not told here: the
papers do not say.
"""

import math
from collections.abc import Collection, Mapping
from dataclasses import asdict, dataclass

from opus_pipelines.core.errors import WorkflowError
from opus_pipelines.core.settings import Reward
from opus_pipelines.workflow.model import Workflow


@dataclass(frozen=True)
class Scores:
    """Ch, Cp, Ob, Ih of one task (EVAL A3), each in [0, 1], 0 best: four free scores; `Scores.of` fills in what is not
    measured.
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
        """Where one of a pair is absent, the complement of the other: Ch + Cp = 1, Ob + Ih = 1, the paper's own
        supposition.
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
    """EVAL (8)-(10) with α, β, λ from the settings, `scores` by node."""
    known = list(task_scores(workflow, scores).values())
    first, second = cip(known, reward.alpha), sip(known, reward.beta)
    return Penalties(first, second, joint_penalty(first, second, reward.lambda_))


def task_scores(workflow: Workflow, scores: Mapping[str, Scores]) -> dict[str, Scores]:
    """The scores of the workflow's tasks, by node; raises WorkflowError where a task has none."""
    if missing := [t.id for t in workflow.tasks if t.id not in scores]:
        raise WorkflowError(f"no scores for {', '.join(map(repr, missing))}: without them the workflow has no Penalty")
    return {t.id: scores[t.id] for t in workflow.tasks}


def cip(scores: Collection[Scores], alpha: float = 0.5) -> float:
    """EVAL (8): the mean of α Ch² + (1 - α) Cp² over the tasks; 0 without tasks. Which of the two α weighs is a
    reading (R 75 %).
    """
    return _mean_of_squares([(s.cohesion, s.coupling) for s in scores], alpha)


def sip(scores: Collection[Scores], beta: float = 0.5) -> float:
    """EVAL (9): the mean of β Ob² + (1 - β) Ih² over the tasks; 0 without tasks. Which of the two β weighs is a
    reading (R 75 %).
    """
    return _mean_of_squares([(s.observability, s.hygiene) for s in scores], beta)


def joint_penalty(cip: float, sip: float, lambda_: float = 0.5) -> float:
    """EVAL (10): sqrt(λ CIP² + (1 - λ) SIP²), quadratic as the printed figures demand."""
    return min(1.0, math.sqrt(lambda_ * cip * cip + (1 - lambda_) * sip * sip))


def _mean_of_squares(pairs: Collection[tuple[float, float]], weight: float) -> float:
    if not pairs:
        return 0.0
    return min(1.0, math.fsum(weight * a * a + (1 - weight) * b * b for a, b in pairs) / len(pairs))


def _pair(first_name: str, first: float | None, second_name: str, second: float | None) -> tuple[float, float]:
    """Both scores of a pair, an absent one as the other's complement."""
    if first is not None:
        return first, 1 - first if second is None else second
    if second is not None:
        return 1 - second, second
    raise WorkflowError(f"neither {first_name} nor {second_name} is known: one of the two is needed")
