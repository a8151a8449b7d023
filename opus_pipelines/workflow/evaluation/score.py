"""Scores a workflow by every part of EVAL, each with the number of its formula, and ranks several workflows."""

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from opus_pipelines.core.errors import WorkflowError
from opus_pipelines.core.settings import Cost, Reward
from opus_pipelines.workflow.evaluation.penalty import Scores, WorkflowPenalties, penalties
from opus_pipelines.workflow.evaluation.reward import Evaluation, evaluate, merit, quantised
from opus_pipelines.workflow.evaluation.success import Difference, differences
from opus_pipelines.workflow.files import WorkflowFile
from opus_pipelines.workflow.model import Workflow


@dataclass(frozen=True)
class Score:
    """One workflow with its parts; `penalties` is None where scores are missing.

    `differences`: where (4) and exact inference differ. `uncompared`: why the differences are unknown, where exact
    inference would take too long.
    """

    title: str
    workflow: Workflow
    parts: Evaluation
    penalties: WorkflowPenalties | None
    differences: tuple[Difference, ...]
    uncompared: str | None = None

    @property
    def penalty(self) -> float | None:
        """EVAL (10); None where scores are missing."""
        return self.penalties.penalty if self.penalties else None


@dataclass(frozen=True)
class RankedScore:
    """A rank by EVAL (13).

    `distance_usd` is (14) to the next rank, None for the last one and where no gain is stated.
    """

    rank: int
    score: Score
    distance_usd: float | None


def score(title: str, workflow: Workflow, scores: Mapping[str, Scores], cost: Cost, reward: Reward) -> Score:
    """Returns EVAL (1)-(10) of one workflow; `scores` are by node, and a Penalty needs the scores of every task."""
    complete = all(task.id in scores for task in workflow.tasks) and bool(workflow.tasks)
    penalty = penalties(workflow, scores, reward) if complete else None
    parts = evaluate(workflow, cost, reward)
    try:
        return Score(title, workflow, parts, penalty, tuple(differences(workflow)))
    except WorkflowError as error:  # success is simulated, or in the product form where the settings have it
        return Score(title, workflow, parts, penalty, (), str(error))


def score_file(title: str, file: WorkflowFile, cost: Cost, reward: Reward) -> Score:
    """Scores a workflow file with the scores that its tasks state; its own weights override the settings."""
    cost, reward = file.weights.over(cost, reward) if file.weights else (cost, reward)
    stated = {task.id: Scores.of(**task.scores.model_dump()) for task in file.tasks if task.scores is not None}
    return score(title, file.workflow(), stated, cost, reward)


def ranked(scores: Sequence[Score], quantum_usd: float, success_step: float) -> list[RankedScore]:
    """Ranks by EVAL (13) on Rewards in steps of the quantum, an unmeasured Penalty last, then by title.

    Rewards within one step are 0 apart. Where no gain is stated, it ranks by success probability in steps of
    `success_step`. Raises WorkflowError where `incomparability_reasons` finds any.
    """
    if why := incomparability_reasons(scores):
        raise WorkflowError("these workflows cannot be ranked against each other: " + "; ".join(why))
    has_gain = all(s.workflow.states_gain for s in scores)
    step = quantum_usd if has_gain else success_step
    ordered = sorted(scores, key=lambda s: (*merit(s.parts.worth, s.penalty, step), s.title))
    worths = [s.parts.worth for s in ordered]
    gaps: list[float | None] = [
        a - b if quantised(a, step) != quantised(b, step) else 0.0 for a, b in itertools.pairwise(worths)
    ]
    if not has_gain:
        gaps = [None] * len(gaps)
    return [
        RankedScore(place, entry, gap)
        for place, (entry, gap) in enumerate(zip(ordered, [*gaps, None], strict=True), start=1)
    ]


def incomparability_reasons(scores: Sequence[Score]) -> list[str]:
    """Returns why these workflows must not be ranked against each other.

    Their inputs or outputs differ, or the same task in the same execution mode has different parameters.
    """
    reasons = []
    for name in ("inputs", "outputs"):
        ends = {s.title: _ends(s.workflow, name) for s in scores}
        first_title, first = next(iter(ends.items()))
        reasons += [
            f"{first_title} and {title} have different {name} ({_only(first, own)} against {_only(own, first)})"
            for title, own in ends.items()
            if own != first
        ]
    return reasons + _inconsistent(scores)


def _ends(workflow: Workflow, name: str) -> dict[tuple[str, str | None], float | None]:
    if name == "inputs":
        return {(n.title, n.data_type): n.prior for n in workflow.inputs}
    return {(n.title, n.data_type): n.gain_usd for n in workflow.outputs}


def _only(
    mine: Mapping[tuple[str, str | None], float | None], other: Mapping[tuple[str, str | None], float | None]
) -> str:
    named = (
        title if value is None else f"{title} ({value:g})"
        for (title, kind), value in mine.items()
        if (title, kind) not in other or other[title, kind] != value
    )
    return ", ".join(named) or "nothing more"


_MODE = ("task_id", "actor_kind", "model", "instructions")
_PARAMETERS = ("p", "q", "cost_usd", "duration_ms", "memory_gb", "threads")


def _inconsistent(scores: Sequence[Score]) -> list[str]:
    """Returns the tasks that have different parameters in the same execution mode."""
    seen: dict[tuple[object, ...], tuple[str, tuple[float, ...]]] = {}
    lines = []
    for s in scores:
        for task in s.workflow.tasks:
            mode = tuple(getattr(task, name) for name in _MODE)
            figures = tuple(getattr(task, name) for name in _PARAMETERS)
            title, first = seen.setdefault(mode, (s.title, figures))
            off = [f"{n} {a:g} and {b:g}" for n, a, b in zip(_PARAMETERS, first, figures, strict=True) if a != b]
            if off:
                lines.append(
                    f"task {task.title!r} is done in one way but carries, in {title} and {s.title}, {', '.join(off)}"
                )
    return lines
