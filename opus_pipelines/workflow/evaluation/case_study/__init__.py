"""Reproduces the customer-support case of EVAL: three workflows for one request, and Table 1 next to our figures.

The labels follow the specification (A6): *reproduced* follows from printed numbers alone, *fitted input* was chosen so
that the table results, and *not published* is missing in the available text of the paper.
"""

from dataclasses import dataclass
from importlib.resources import as_file, files

from opus_pipelines.core.settings import Cost, Reward
from opus_pipelines.workflow.evaluation.score import Score, score_file
from opus_pipelines.workflow.formats.registry import read_file

NAMES = ("W1", "W2", "W3")
GAINS_USD = {
    "small": 0.92,
    "medium": 10.98,
    "enterprise": 488.0,
}  # customer lifetime value times an expected churn of 0.0305


@dataclass(frozen=True)
class Row:
    """One line of Table 1: the printed figures of the three workflows (None: not published), and the label of ours."""

    name: str
    formula: str
    printed: tuple[float | None, float | None, float | None]
    digits: int
    label: str


TABLE_1 = (
    Row("duration_ms", "(2)", (6110.0, 3810.0, 3810.0), 0, "fitted input"),
    Row("success_probability", "(4)", (0.9262, 0.9250, 0.9250), 4, "fitted input"),
    Row("cost_usd", "(5)", (None, None, None), 5, "not published"),
    Row("reward_usd", "(7)", (0.8495, 0.8500, 0.8500), 4, "reproduced"),
    Row("cip", "(8)", (0.2525, 0.2520, 0.2570), 4, "fitted input"),
    Row("sip", "(9)", (0.2500, 0.2573, 0.2848), 4, "fitted input"),
    Row("penalty", "(10)", (0.2513, 0.2547, 0.2713), 4, "reproduced"),
)


def case_study(gain_usd: float = GAINS_USD["small"]) -> list[Score]:
    """Returns the scores of the three workflows at a gain in dollars."""
    scores = []
    for name in NAMES:
        with as_file(files(__package__) / f"{name.lower()}.yaml") as path:
            file = read_file(path)
        outputs = tuple(output.model_copy(update={"gain_usd": gain_usd}) for output in file.outputs)
        file = file.model_copy(update={"outputs": outputs})
        scores.append(score_file(name, file, Cost(), Reward()))
    return scores


def figure(entry: Score, name: str) -> float:
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
