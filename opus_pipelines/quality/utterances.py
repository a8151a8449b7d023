"""Evaluates the writer of flows on utterances with references, beside the baseline; nothing asked ever teaches.

task set -> what teaches (folds, other applications, given flows, or nothing) -> flows -> scores by item -> means
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import fmean
from typing import TYPE_CHECKING

from opus_pipelines.core.errors import InputError
from opus_pipelines.core.ids import digest, make_id
from opus_pipelines.flows.batches.inputs import read_utterances
from opus_pipelines.flows.batches.scoring import (
    BASELINE,
    WRITER,
    Answer,
    alike_by,
    answer_of,
    baseline_flow,
    folds_of,
    ir_of,
    others,
    retrieved_for,
    score_row,
    without_domain,
)
from opus_pipelines.flows.from_text.activities import read_catalogue
from opus_pipelines.flows.from_text.activity_features import FeatureTable
from opus_pipelines.flows.from_text.flow_folder import FlowFolder, FlowTask, read_folder
from opus_pipelines.flows.from_text.generator import FlowWriter, learn
from opus_pipelines.flows.from_text.language_writers import Asked, FlowBackend
from opus_pipelines.flows.from_text.predictions import Make, predict
from opus_pipelines.flows.scores import MEASURES
from opus_pipelines.lwm.language_models.chat_client import KeptAnswers
from opus_pipelines.quality.score_rows import Evaluation, Row

if TYPE_CHECKING:
    from opus_pipelines.language.embedding.encoder import TextEncoder


PROTOCOLS = ("folds", "cross domain", "examples", "catalogue alone")
SHOWN_OF_UTTERANCES = (
    *MEASURES,
    "recall_10",
    "recall_50",
    "duration_ms",
    "repaired",
    "tokens_in",
    "tokens_out",
    "cost_usd",
)
_Report = Callable[[int, int], None]


@dataclass(frozen=True)
class UtteranceSet:
    """Utterances with references, and the catalogue; `rejected` names what of the file cannot be used, and why."""

    name: str
    folder: FlowFolder
    rejected: tuple[str, ...] = ()

    @property
    def asked(self) -> list[FlowTask]:
        """The tasks that have a reference."""
        return [task for task in self.folder.tasks if task.expected is not None]


def is_utterances(path: Path) -> bool:
    """Tells whether a path is a task set of utterances: a folder, a CSV, or JSON Lines whose first line has one."""
    if path.is_dir() or path.suffix.casefold() == ".csv":
        return True
    if not path.is_file():
        return False
    with path.open("rb") as file:
        return b'"utterance"' in file.readline(1 << 20)


def read_set(path: Path, catalogue: Path | None = None) -> UtteranceSet:
    """Returns a folder of Flow-Bench's form, or a CSV or JSON Lines of {uid, utterance, prior?, gold, tags?}.

    Raises InputError where a file has no catalogue beside it, or nothing of it has a reference.
    """
    rejected: list[str] = []
    if path.is_dir():
        if catalogue is not None:
            raise InputError(f"{path} states its own catalogue; leave --catalogue out")
        folder = read_folder(path)
    else:
        if catalogue is None:
            raise InputError(f"{path} needs --catalogue FILE, a JSON list of activities with id and description")
        rows = read_utterances(path, path.parent)
        rejected = [f"{row.file}, line {row.line}: {row.reason}" for row in rows if row.task is None]
        folder = FlowFolder(read_catalogue(catalogue), tuple(row.task for row in rows if row.task is not None))
    found = UtteranceSet(path.name, folder, tuple(rejected))
    if not found.asked:
        raise InputError(f"{path}: no utterance has a reference (gold), so nothing can be scored")
    return found


def limited(given: UtteranceSet, limit: int | None) -> UtteranceSet:
    """Returns the set with at most so many utterances with a reference, chosen by the hash of their uids."""
    chosen = {task.uid for task in sorted(given.asked, key=lambda task: digest(task.uid))[:limit]}
    tasks = tuple(task for task in given.folder.tasks if task.uid in chosen)
    return replace(given, folder=replace(given.folder, tasks=tasks))


@dataclass(frozen=True)
class Asking:
    """Who is asked, and with what it was taught.

    Protocol: "folds" (each fifth is asked with what the others teach), "cross domain" (only flows teach that share no
    application with the one asked), "examples" (`learnt` teaches), "catalogue alone". `backend`: a language model that
    is asked, too, whose prompts show the flows that teach; `keeping`: the lake that keeps its answers.
    """

    protocol: str = "folds"
    learnt: Sequence[FlowTask] = ()
    backend: FlowBackend | None = None
    keeping: KeptAnswers | None = None


def evaluate_utterances(
    given: UtteranceSet,
    encoder: "TextEncoder",
    asking: Asking | None = None,
    report: _Report = lambda done, of: None,
) -> Evaluation:
    """Returns the rows of the language model, where there is one, of the writer and of the baseline.

    `report` is called with the items done and their number. Raises InputError for a protocol that there is not.
    """
    asking = asking or Asking()
    protocol, learnt = asking.protocol, asking.learnt
    if protocol not in PROTOCOLS:
        raise InputError(f"there is no protocol {protocol!r}; there are: {', '.join(PROTOCOLS)}")
    catalogue, asked, alike = given.folder.catalogue, given.asked, alike_by(encoder)
    table = FeatureTable(catalogue, encoder)
    identity = digest(
        [(t.uid, t.utterance, ir_of(t.prior), t.sequence, list(t.tags)) for t in asked],
        [(activity.id, activity.description) for activity in catalogue.activities],
        [protocol, *((t.utterance, ir_of(t.prior), t.sequence) for t in learnt)],
        [encoder.name, encoder.max_tokens, *([asking.backend.version] if asking.backend else [])],
    )
    head = {"task_set": given.name, "protocol": protocol}
    rows: list[Row] = []
    done = 0
    for tasks, teaching in _lessons(given, protocol, learnt):
        writer = learn(catalogue, teaching, encoder, table)
        model = Asked(asking.backend.writer(writer, teaching, asking.keeping)).make if asking.backend else None
        for task in tasks:
            answers = [(asking.backend.name, answered(writer, task, model))] if asking.backend else []
            answers += [(WRITER, answered(writer, task)), (BASELINE, Answer(baseline_flow(task, table)))]
            for system, answer in answers:
                own: Row = {"system": system, "item": task.uid, "gold": task.sequence}
                own |= {"sequence": ir_of(answer.flow), "reason": answer.reason}
                rows.append(head | own | score_row(task, answer, catalogue, alike))
            done += 1
            report(done, len(asked))
    # The flows are part of the id: another version of the writer, or other weights, are another evaluation.
    made = [(row["system"], row["item"], row["sequence"], row["reason"]) for row in rows]
    evaluation = make_id("v", "utterances", identity, digest(made))
    return Evaluation(evaluation, [{"evaluation": evaluation} | row for row in rows])


def answered(writer: FlowWriter, task: FlowTask, model: Make | None = None) -> Answer:
    """Returns the flow of the writer, or of a language model, with what was retrieved and the seconds that it took."""
    return answer_of(predict(writer, task, model), retrieved_for(writer, task), model is not None)


def _lessons(
    given: UtteranceSet, protocol: str, learnt: Sequence[FlowTask]
) -> Iterator[tuple[list[FlowTask], list[FlowTask]]]:
    """The tasks asked together, and those that teach."""
    asked = given.asked
    if protocol == "examples":
        yield asked, others(learnt, asked)
    elif protocol == "catalogue alone":
        yield asked, []
    elif protocol == "folds":
        yield from folds_of(asked)
    else:
        for tasks, teaching in folds_of(asked):
            yield from (([task], without_domain(given.folder.catalogue, task, teaching)) for task in tasks)


def by_tag(rows: Sequence[Row], system: str = WRITER) -> list[tuple[str, int, int, int, float]]:
    """Returns for each tag: its items, those right in the semantic reading, up to names, and the mean activity F1."""
    own = [row for row in rows if row["system"] == system]
    found = []
    for tag in sorted({tag for row in own for tag in row["tags"] if not tag.isdigit()}):
        members = [row for row in own if tag in row["tags"]]
        right, named = (sum(int(row[name]) for row in members) for name in ("exact_semantic", "exact_alpha"))
        found.append((tag, len(members), right, named, fmean(row["activity_f1"] for row in members)))
    return found
