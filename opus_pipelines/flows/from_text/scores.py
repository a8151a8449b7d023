"""Scores of generated flows (specification 2.5): exact match in three readings, syntax, activities, edits, repairs.

Every score is a figure of one task; `interval` of `workflow.metrics.intervals` gives 95 % bootstrap intervals of their
means.
"""

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from opus_pipelines.core.errors import OpusError
from opus_pipelines.flows.from_text.activities import ActivityCatalogue
from opus_pipelines.flows.from_text.flow_folder import FlowTask
from opus_pipelines.flows.from_text.semantics import compare
from opus_pipelines.workflow.blocks.formats.python_ir import write_ir
from opus_pipelines.workflow.blocks.model import Call, Flow, For, If, Statement, UserTask, activities, ids, walk
from opus_pipelines.workflow.metrics.intervals import interval

MEASURES = (
    "exact_string",
    "exact_alpha",
    "exact_semantic",
    "parsed",
    "syntax_f1",
    "activity_f1",
    "hallucination",
    "edit_faithfulness",
)


@dataclass(frozen=True)
class TaskScore:
    """The scores of one flow. None where a measure does not apply: no call for hallucination, no edit for faithfulness.

    `syntax_f1` is over descriptors of statements (kind, activity, depth); `activity_f1` over the multiset of
    activities; `hallucination` the share of calls that are not in the catalogue; `edit_faithfulness` the share of the
    prior's statements that the expected flow keeps whose ids the predicted flow keeps, too.
    """

    uid: str
    exact_string: float
    exact_alpha: float
    exact_semantic: float
    parsed: float
    syntax_f1: float
    activity_f1: float
    hallucination: float | None
    edit_faithfulness: float | None
    relaxations: tuple[str, ...] = ()


def score(
    task: FlowTask,
    predicted: Flow | None,
    catalogue: ActivityCatalogue,
    alike: Callable[[str, str], bool] | None = None,
    prior: Flow | None = None,
) -> TaskScore:
    """Returns the scores of a predicted flow; None stands for a text that is no flow, and scores 0.

    `prior` is the flow that was edited, with the ids that the predicted flow kept; without it nothing is said of edits.
    """
    uid, expected = task.uid, task.expected
    if expected is None:
        raise OpusError(f"test {uid} has no expected flow; only tests with one can be scored")
    if predicted is None:
        return TaskScore(uid, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, None, 0.0 if prior else None)
    match = compare(predicted, expected, catalogue, alike)
    called = activities(predicted)
    unknown = [name for name in called if name not in catalogue.by_id]
    return TaskScore(
        uid,
        float(write_ir(predicted) == write_ir(expected)),
        float(match.alpha),
        float(match.semantic),
        1.0,
        multiset_f1(_descriptors(predicted), _descriptors(expected)),
        multiset_f1(Counter(called), Counter(activities(expected))),
        len(unknown) / len(called) if called else None,
        faithfulness(predicted, expected, prior) if prior else None,
        match.relaxations,
    )


def multiset_f1(one: Counter[str], other: Counter[str]) -> float:
    """Returns the F1 of two multisets; 1 where both are empty."""
    total = sum(one.values()) + sum(other.values())
    return 2 * sum((one & other).values()) / total if total else 1.0


def _descriptors(flow: Flow) -> Counter[str]:
    found = Counter[str]()
    for statement in walk(flow.body):
        found[_descriptor(statement)] += 1
        if isinstance(statement, If):
            found["branch"] += len(statement.branches) - 1
            found["else"] += bool(statement.orelse)
    return found


def _descriptor(statement: Statement) -> str:
    if isinstance(statement, Call):
        return f"call {statement.activity}"
    if isinstance(statement, UserTask):
        return "user task"
    if isinstance(statement, If):
        return "if"
    return "for" if isinstance(statement, For) else type(statement).__name__.lower()


def faithfulness(predicted: Flow, expected: Flow, prior: Flow) -> float | None:
    """Returns which share of the prior's calls that the expected flow keeps are in the predicted flow with their ids.

    `predicted` and `prior` have ids of one file; None where the expected flow keeps no call.
    """
    kept = Counter(activities(expected))
    wanted = []
    for statement in walk(prior.body):
        if isinstance(statement, Call) and kept[statement.activity]:
            kept[statement.activity] -= 1
            wanted.append(statement.id)
    there = set(ids(predicted.body))
    return sum(ident in there for ident in wanted) / len(wanted) if wanted else None


@dataclass(frozen=True)
class MeanScore:
    """The mean of a measure with its 95 % bootstrap interval and the number of tasks; None where it never applies."""

    measure: str
    mean: float | None
    low: float | None
    high: float | None
    tasks: int


def means(scores: Sequence[TaskScore]) -> list[MeanScore]:
    """Returns the mean of every measure over the tasks to which it applies."""
    found = []
    for measure in MEASURES:
        pairs = [(getattr(s, measure), s.uid) for s in scores if getattr(s, measure) is not None]
        values = [value for value, _ in pairs]
        if not values:
            found.append(MeanScore(measure, None, None, None, 0))
            continue
        low, high = interval(values, [uid for _, uid in pairs])
        found.append(MeanScore(measure, sum(values) / len(values), low, high, len(values)))
    return found
