"""Scores of one utterance's flow as columns, the baseline beside the writer, and which flows may teach it."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any

from opus_pipelines.flows.from_text.activities import ActivityCatalogue
from opus_pipelines.flows.from_text.activity_features import FeatureTable
from opus_pipelines.flows.from_text.flow_folder import FlowTask
from opus_pipelines.flows.from_text.generator import FlowWriter
from opus_pipelines.flows.from_text.predictions import Prediction
from opus_pipelines.flows.from_text.retrieval import ActivityRetriever, Retrieved, recall
from opus_pipelines.flows.scores import faithfulness, same_stems, task_score
from opus_pipelines.flows.text.clauses import STEP, UtteranceError, clauses_of
from opus_pipelines.lwm.interface import Usage
from opus_pipelines.workflow.blocks.expressions import FlowError
from opus_pipelines.workflow.blocks.formats.bpmn_reader import read_bpmn
from opus_pipelines.workflow.blocks.formats.python_ir import write_ir
from opus_pipelines.workflow.blocks.model import Call, Flow, activities

if TYPE_CHECKING:
    from opus_pipelines.language.embedding.encoder import TextEncoder

WRITER, BASELINE = "flow writer", "baseline"
_ALIKE = 0.8  # the cosine from which two texts of user tasks mean the same
FOLDS = 5
FEW, MANY = 10, 50  # activities whose recall is measured
Alike = Callable[[str, str], bool]


@dataclass(frozen=True)
class Answer:
    """What a system made of an utterance. `retrieved` is None for a system that retrieves nothing."""

    flow: Flow | None
    bpmn: str | None = None
    retrieved: tuple[Retrieved, ...] | None = None
    seconds: float | None = None
    reason: str | None = None
    repaired: int | None = None
    usage: Usage | None = None


def score_row(task: FlowTask, answer: Answer, catalogue: ActivityCatalogue, alike: Alike) -> dict[str, Any]:
    """Returns the columns of the scores of a task with a reference. No flow scores 0."""
    rating = replace(
        task_score(task, answer.flow, catalogue, alike), edit_faithfulness=elements_kept(task, answer.bpmn)
    )
    columns = {name: value for name, value in asdict(rating).items() if name != "uid"}
    return {
        **columns,
        "relaxations": list(rating.relaxations),
        "tags": list(task.tags),
        "recall_10": _recall(task, answer, FEW),
        "recall_50": _recall(task, answer, MANY),
        "duration_ms": None if answer.seconds is None else 1000 * answer.seconds,
        **usage_row(answer.repaired, answer.usage),
    }


def answer_of(made: Prediction, retrieved: tuple[Retrieved, ...], is_asked: bool) -> Answer:
    """Returns a prediction as an answer. `is_asked`: by a language model, of which a failed request tells no usage."""
    usage = made.usage if made.usage or not is_asked else Usage(None, None, None)
    return Answer(made.flow, made.bpmn or None, retrieved, made.seconds, made.reason, made.repaired, usage)


def usage_row(repaired: int | None, usage: Usage | None) -> dict[str, Any]:
    """Returns the columns of what a language model took; None: no language model was asked."""
    took = usage or Usage(None, None, 0.0)
    return {
        "repaired": repaired,
        "tokens_in": took.tokens_in,
        "tokens_out": took.tokens_out,
        "cost_usd": took.cost_usd,
    }


def _recall(task: FlowTask, answer: Answer, count: int) -> float | None:
    if answer.retrieved is None or task.expected is None:
        return None
    return recall([found.activity for found in answer.retrieved[:count]], task.expected, task.prior)


def retrieved_for(writer: FlowWriter, task: FlowTask, count: int = MANY) -> tuple[Retrieved, ...]:
    """Returns the best activities for an utterance; none where it cannot be read."""
    try:
        return tuple(ActivityRetriever(writer.ranker).retrieve(task.utterance, task.prior, count))
    except UtteranceError:
        return ()


def elements_kept(task: FlowTask, bpmn: str | None) -> float | None:
    """Returns the share of the prior's BPMN elements that should stay and that the predicted BPMN has, by their ids."""
    if task.prior_bpmn is None or task.expected is None or bpmn is None:
        return None
    try:
        prior, predicted = read_bpmn(task.prior_bpmn.read_bytes()).flow, read_bpmn(bpmn.encode()).flow
    except FlowError:
        return 0.0
    return faithfulness(predicted, task.expected, prior)


def alike_by(encoder: "TextEncoder") -> Alike:
    """Returns what says whether two texts of user tasks mean the same: equal stems, or a cosine of at least ALIKE."""

    def alike(one: str, other: str) -> bool:
        if same_stems(one, other):
            return True
        first, second = encoder.encode([one, other])
        return float(first @ second) >= _ALIKE

    return alike


def baseline_flow(task: FlowTask, table: FeatureTable) -> Flow:
    """Returns the baseline's flow: the prior flow, then for each clause the activity of the highest cosine."""
    try:
        clauses = [c.text for c in clauses_of(task.utterance) if c.kind == STEP] or [task.utterance]
    except UtteranceError:
        clauses = [task.utterance]
    best = (table.vectors(clauses) @ table.texts.T).argmax(axis=1)
    chosen = [table.catalogue.activities[i].id for i in best]
    calls = tuple(Call(name, f"step_{number}") for number, name in enumerate(chosen, 1))
    return Flow((*(task.prior.body if task.prior else ()), *calls))


def others(known: Sequence[FlowTask], asked: Sequence[FlowTask]) -> list[FlowTask]:
    """Returns the tasks that may teach: none with the utterance and the prior of a task asked, whatever its uid."""
    taken = {(task.utterance, task.prior) for task in asked}
    return [task for task in known if (task.utterance, task.prior) not in taken]


def folds_of(tasks: Sequence[FlowTask]) -> Iterator[tuple[list[FlowTask], list[FlowTask]]]:
    """Yields each fifth of the tasks with the others, which teach."""
    for place in range(min(FOLDS, len(tasks))):
        asked = [task for i, task in enumerate(tasks) if i % FOLDS == place]
        yield asked, others(tasks, asked)


def without_domain(catalogue: ActivityCatalogue, task: FlowTask, teaching: Sequence[FlowTask]) -> list[FlowTask]:
    """Returns the teaching tasks whose flows, before and after, share no application with those of the task."""

    def used(other: FlowTask) -> set[str]:
        called = [name for flow in (other.expected, other.prior) if flow for name in activities(flow)]
        return {catalogue.by_id[name].application for name in called if name in catalogue.by_id}

    own = used(task)
    return [other for other in teaching if not own & used(other)]


def ir_of(flow: Flow | None) -> str | None:
    """Returns a flow as Python IR; None where there is none, or where it has a parallel, which the IR cannot say."""
    try:
        return write_ir(flow) if flow is not None else None
    except FlowError:
        return None
