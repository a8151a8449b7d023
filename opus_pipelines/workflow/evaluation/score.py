"""Scores a workflow by every part of EVAL, each with the number of its formula, and ranks several workflows.

`case_study` reproduces the customer-support case of EVAL: three workflows for one request, and Table 1 next to our
figures. Its labels follow the specification (A6): *reproduced* follows from printed numbers alone, *fitted input* was
chosen so that the table results, and *not published* is missing in the available text of the paper.
"""

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.resources import as_file, files

from opus_pipelines.core.errors import WorkflowError
from opus_pipelines.core.settings import Cost, Reward
from opus_pipelines.workflow.evaluation.penalty import Scores, WorkflowPenalties, penalties
from opus_pipelines.workflow.evaluation.reward import Evaluation, evaluate, merit, quantised
from opus_pipelines.workflow.evaluation.success import Difference, differences
from opus_pipelines.workflow.files import WorkflowFile
from opus_pipelines.workflow.formats.registry import read_file
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


CASES = ("W1", "W2", "W3")
GAINS_USD = {
    "small": 0.92,
    "medium": 10.98,
    "enterprise": 488.0,
}  # customer lifetime value times an expected churn of 0.0305


@dataclass(frozen=True)
class TableRow:
    """One line of Table 1: the printed figures of the three workflows (None: not published), and the label of ours."""

    name: str
    formula: str
    printed: tuple[float | None, float | None, float | None]
    digits: int
    label: str


TABLE_1 = (
    TableRow("duration_ms", "(2)", (6110.0, 3810.0, 3810.0), 0, "fitted input"),
    TableRow("success_probability", "(4)", (0.9262, 0.9250, 0.9250), 4, "fitted input"),
    TableRow("cost_usd", "(5)", (None, None, None), 5, "not published"),
    TableRow("reward_usd", "(7)", (0.8495, 0.8500, 0.8500), 4, "reproduced"),
    TableRow("cip", "(8)", (0.2525, 0.2520, 0.2570), 4, "fitted input"),
    TableRow("sip", "(9)", (0.2500, 0.2573, 0.2848), 4, "fitted input"),
    TableRow("penalty", "(10)", (0.2513, 0.2547, 0.2713), 4, "reproduced"),
)


def case_study(gain_usd: float = GAINS_USD["small"]) -> list[Score]:
    """Returns the scores of the three workflows at a gain in dollars."""
    scores = []
    for name in CASES:
        with as_file(files(__package__) / "case_study" / f"{name.lower()}.yaml") as path:
            file = read_file(path)
        outputs = tuple(output.model_copy(update={"gain_usd": gain_usd}) for output in file.outputs)
        file = file.model_copy(update={"outputs": outputs})
        scores.append(score_file(name, file, Cost(), Reward()))
    return scores


def table_figure(entry: Score, name: str) -> float:
    """Returns a figure of Table 1 by the name of its row."""
    record = entry.penalties if name in ("cip", "sip", "penalty") else entry.parts
    return float(getattr(record, name))


def turning_gain_usd(first: Score, second: Score) -> float:
    """Returns the gain of the one output at which two workflows earn the same.

    It is the difference of their costs divided by the difference of their success probabilities.
    """
    return (first.parts.cost_usd - second.parts.cost_usd) / (
        first.parts.success_probability - second.parts.success_probability
    )
