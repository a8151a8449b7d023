"""Writes the flows of a contract's utterances as rows, and publishes them as one batch, visible in one step.

A row that cannot be read is rejected, an utterance of which no flow can be made is refused, each with its reason; the
rest goes on. The same files give the same batch, which is written once.
"""

import logging
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from opus_pipelines.core.errors import OpusError
from opus_pipelines.core.schemas import FLOW_CATALOGUE, FLOW_SCORES, FLOWS, Dataset
from opus_pipelines.core.settings import Retention, Settings
from opus_pipelines.flows.batches.inputs import BatchInputs, Platform, UtteranceRow, composed, read_inputs
from opus_pipelines.flows.batches.scoring import (
    BASELINE,
    MANY,
    WRITER,
    Answer,
    alike_by,
    answer_of,
    baseline_flow,
    ir_of,
    others,
    retrieved_for,
    score_row,
    usage_row,
)
from opus_pipelines.flows.enterprise.composer import Composer
from opus_pipelines.flows.from_text.activities import Activity
from opus_pipelines.flows.from_text.editing import EditError
from opus_pipelines.flows.from_text.flow_folder import FlowTask
from opus_pipelines.flows.from_text.generator import FlowWriter, GenerationError, learn
from opus_pipelines.flows.from_text.language_writers import RANKER, Asked
from opus_pipelines.flows.from_text.predictions import Make, Prediction, predict
from opus_pipelines.flows.text.clauses import UtteranceError
from opus_pipelines.flows.text.operations import UNKNOWN
from opus_pipelines.intakes.intake import ContractFolder
from opus_pipelines.lake.layout import Lake, read_table, table_of, write_table
from opus_pipelines.lwm.language_models.chat_client import EndpointError, KeptAnswers, ModelRefused, SpendLimitReached
from opus_pipelines.workflow.blocks.expressions import FlowError
from opus_pipelines.workflow.blocks.model import UserTask, activities, walk

if TYPE_CHECKING:
    from opus_pipelines.language.embedding.encoder import TextEncoder

WRITTEN, REFUSED, REJECTED, FAILED = "written", "refused", "rejected", "failed"
DATASETS_OF_BATCH = (FLOW_CATALOGUE, FLOW_SCORES, FLOWS)  # the flows last: a batch that has them is whole
CUT = 2_000  # characters of an utterance that a row holds
_SHOWN = 10  # retrieved activities that a row holds
MOST_ATTEMPTS = 100  # times that a batch is written while utterances have no answer of a language model
UNANSWERED = ("no_answer", "spend_limit")  # the reasons for which a language model is asked again
COMPOSER = "composer"
_Row = dict[str, Any]
_Report = Callable[[int, int], None]
# The reasons by the type of the error, the special ones first.
_CODES: tuple[tuple[type[OpusError], str], ...] = (
    (SpendLimitReached, "spend_limit"),
    (ModelRefused, "model_refused"),
    (EndpointError, "no_answer"),
    (EditError, "edit_impossible"),
    (GenerationError, "no_step"),
    (UtteranceError, "no_utterance"),
    (FlowError, "contradicting_edits"),
)
logger = logging.getLogger("opus_pipelines.flows.batches")


@dataclass(frozen=True)
class FlowBatch:
    """The rows of a batch by dataset, and its id."""

    client: str
    contract: str
    id: str
    rows: dict[str, list[_Row]]

    @property
    def counts(self) -> Counter[str]:
        """The rows by their status."""
        return Counter(row["status"] for row in self.rows[FLOWS.name])

    @property
    def failed(self) -> list[str]:
        """A line for each row that an error of the program cost."""
        return [
            f"{self.client}/{self.contract}/{row['file']}, line {row['line']}: {row['reason']}"
            for row in self.rows[FLOWS.name]
            if row["status"] == FAILED
        ]


def is_current(lake: Lake, inputs: BatchInputs, encoder: "TextEncoder") -> bool:
    """Tells whether the lake has this batch, whole, and no utterance waits for the answer of a language model."""
    return next_id(lake, inputs, encoder) is None


def next_id(lake: Lake, inputs: BatchInputs, encoder: "TextEncoder") -> str | None:
    """Returns the id under which the batch is to be written; None where it is up to date."""
    ids = inputs.batch_ids(encoder, MOST_ATTEMPTS if inputs.backend else 1)
    folders = [[_folder(lake, d, inputs.client, inputs.contract, one) for d in DATASETS_OF_BATCH] for one in ids]
    there = [n for n, own in enumerate(folders) if all(folder.is_dir() for folder in own)]
    if not there:
        return ids[0]
    last = there[-1]
    if not inputs.backend or last + 1 == len(ids):
        return None
    codes = read_table(FLOWS, folders[last][-1], columns=["reason_code"])["reason_code"].to_pylist()
    return ids[last + 1] if set(codes) & set(UNANSWERED) else None


def is_contract_current(
    lake: Lake, contract: ContractFolder, encoder: "TextEncoder", settings: Settings | None = None
) -> bool:
    """Tells whether there is nothing to write for a contract. False also where its folder cannot be used.

    It reads the files, and loads no model.
    """
    try:
        inputs = read_inputs(contract, lake, settings)
    except OpusError:
        return False  # the run says why
    return inputs is None or is_current(lake, inputs, encoder)


def run_batch(
    inputs: BatchInputs,
    encoder: "TextEncoder",
    now: datetime,
    report: _Report = lambda done, of: None,
    lake: Lake | None = None,
) -> FlowBatch:
    """Returns the rows of a batch: what is learnt, then a flow for each utterance, then scores where there is gold.

    `report` is called with the utterances done and their number. Nothing that is asked teaches. `lake` keeps the
    answers of a language model and what they cost, and says under which id the batch is written.
    """
    batch = (next_id(lake, inputs, encoder) if lake else None) or inputs.batch_id(encoder)
    head = {"client": inputs.client, "contract": inputs.contract, "batch": batch}
    writer: FlowWriter | None = None
    if inputs.platform is not None:
        make = partial(_composed, inputs.platform, Composer(inputs.platform.catalogue))
    else:
        known = others(inputs.examples, inputs.tasks)
        writer, model = learn(inputs.catalogue, known, encoder), None
        if inputs.backend is not None:
            model = Asked(inputs.backend.writer(writer, known, KeptAnswers(lake, inputs.client) if lake else None)).make
        make = partial(_predicted, writer, model)
    alike, scored = alike_by(encoder), inputs.backend.name if inputs.backend else WRITER
    backend = COMPOSER if inputs.platform else inputs.backend.name if inputs.backend else RANKER
    flows: list[_Row] = []
    scores: list[_Row] = []
    for number, row in enumerate(inputs.rows, 1):
        made, answer = _flow_row(make, row)
        flows.append(head | {"made_at": now.astimezone(UTC), "backend": backend} | made)
        if row.task is not None and row.task.expected is not None:
            answers = [(scored, answer)]
            answers += [(BASELINE, Answer(baseline_flow(row.task, writer.ranker.table)))] if writer else []
            for system, own in answers:
                columns = score_row(row.task, own, inputs.catalogue, alike)
                scores.append(head | {"system": system, "item": row.uid} | columns)
        report(number, len(inputs.rows))
    catalogue = [head | {"origin": inputs.origin} | _activity_row(one) for one in inputs.catalogue.activities]
    rows = {FLOW_CATALOGUE.name: catalogue, FLOWS.name: flows, FLOW_SCORES.name: scores}
    return FlowBatch(inputs.client, inputs.contract, batch, rows)


def _activity_row(activity: Activity) -> _Row:
    known = activity.operation if activity.operation != UNKNOWN else None
    return {
        "activity": activity.id,
        "description": activity.description,
        "application": activity.application or None,
        "object": activity.object or None,
        "operation": known,
        "version": activity.version or None,
    }


def _flow_row(make: Callable[[FlowTask], tuple[_Row, Answer]], row: UtteranceRow) -> tuple[_Row, Answer]:
    """The row of one utterance, and the answer that is scored. An error of the program costs this row alone."""
    text = row.utterance if len(row.utterance) <= CUT else row.utterance[:CUT] + " …"
    about: _Row = {"file": row.file, "line": row.line, "item": row.uid, "utterance": text or None}
    task = row.task
    if task is None:
        return about | {"status": REJECTED, "reason_code": row.code, "reason": row.reason}, Answer(None)
    about |= {"kind": "edit" if task.is_update else "new", "prior": ir_of(task.prior)}
    try:
        made, answer = make(task)
    except Exception as error:  # the utterance is data from outside: what it breaks is logged and costs its own row
        logger.exception("%s, line %d", row.file, row.line)
        reason = f"{type(error).__name__}: {error}"
        return about | {"status": FAILED, "reason_code": "program_error", "reason": reason}, Answer(None)
    return about | made, answer


def _composed(platform: Platform, composer: Composer, task: FlowTask) -> tuple[_Row, Answer]:
    """A requirement as a flow of an enterprise platform."""
    made, flow, seconds = composed(platform, composer, task)
    answer = Answer(flow, made.get("bpmn"), None, seconds, made.get("reason"))
    return {"duration_ms": 1000 * seconds} | usage_row(None, None) | made, answer


def _predicted(writer: FlowWriter, model: Make | None, task: FlowTask) -> tuple[_Row, Answer]:
    """An utterance as a flow of activities."""
    made, found = predict(writer, task, model), retrieved_for(writer, task)
    by_id = writer.catalogue.by_id
    retrieved = [
        {"activity": r.activity, "description": by_id[r.activity].description, "score": r.score, "clause": r.clause}
        for r in found[:_SHOWN]
    ]
    answer = answer_of(made, found[:MANY], model is not None)
    took = {"retrieved": retrieved, "duration_ms": 1000 * made.seconds} | usage_row(answer.repaired, answer.usage)
    return took | _outcome(task, made), answer


def _outcome(task: FlowTask, made: Prediction) -> _Row:
    if made.error is not None or made.flow is None:
        code = next((code for kind, code in _CODES if isinstance(made.error, kind)), "refused")
        return {"status": REFUSED, "reason_code": code, "reason": made.reason}
    calls = activities(made.flow)
    if not calls and not task.is_update:
        reason = "no activity of the catalogue fits, so that every step would be a user task; name what it can do"
        return {"status": REFUSED, "reason_code": "no_activity", "reason": reason}
    return {
        "status": WRITTEN,
        "sequence": ir_of(made.flow),
        "bpmn": made.bpmn,
        "operations": list(made.operations),
        "steps": [name for name, _ in made.steps],
        "probabilities": [probability for _, probability in made.steps],
        "calls": len(calls),
        "user_tasks": sum(isinstance(step, UserTask) for step in walk(made.flow.body)),
    }


def publish_batch(lake: Lake, batch: FlowBatch) -> None:
    """Writes the batch into the lake, its flows last; the same batch is written once. The caller holds the lock."""
    lake.ensure_empty()
    with lake.staging() as staged:
        for dataset in DATASETS_OF_BATCH:
            write_table(dataset, table_of(dataset, batch.rows[dataset.name]), staged / dataset.view)
            final = _folder(lake, dataset, batch.client, batch.contract, batch.id)
            final.parent.mkdir(parents=True, exist_ok=True)
            lake.publish(staged / dataset.view, final)


def prune(lake: Lake, client: str, contract: str, retention: Retention, now: datetime) -> list[str]:
    """Removes batches of a contract beyond the newest `results` that are older than the grace time; returns those."""
    newest_first = sorted(_dated(lake, client, contract, now), reverse=True)
    grace = timedelta(minutes=retention.grace_minutes)
    gone = [batch for made, batch in newest_first[retention.results :] if now - made >= grace]
    for batch in gone:
        for dataset in reversed(DATASETS_OF_BATCH):
            lake.remove(_folder(lake, dataset, client, contract, batch))
    return gone


def newest(lake: Lake, client: str, contract: str) -> tuple[str, dict[str, int]] | None:
    """Returns the newest batch of a contract with the rows of each dataset; None where there is none."""
    dated = _dated(lake, client, contract, datetime.now(UTC))
    if not dated:
        return None
    batch = max(dated)[1]
    folders = {dataset: _folder(lake, dataset, client, contract, batch) for dataset in DATASETS_OF_BATCH}
    return batch, {d.name: read_table(d, folder, columns=["batch"]).num_rows for d, folder in folders.items()}


def _dated(lake: Lake, client: str, contract: str, now: datetime) -> list[tuple[datetime, str]]:
    """When each batch of a contract was made."""
    dated = []
    for folder in sorted(lake.folder(FLOWS, client_key=client, contract_key=contract).glob("batch_key=*")):
        times = read_table(FLOWS, folder, columns=["made_at"])["made_at"].to_pylist()
        dated.append((times[0] if times else now, folder.name.partition("=")[2]))
    return dated


def contract_batch(
    lake: Lake, contract: ContractFolder, encoder: "TextEncoder", settings: Settings, report: _Report
) -> FlowBatch | None:
    """Writes and publishes the batch of a contract; None where it is up to date or asks for no flows.

    The caller holds the lock. Raises OpusError where the folder as a whole cannot be used.
    """
    inputs, name = read_inputs(contract, lake, settings), f"{contract.client} / {contract.contract}"
    if inputs is None:
        logger.info("%s: it has no utterances in %s, skipped", name, contract.flows.name)
        return None
    for line in inputs.left_out:
        logger.warning("%s: an example is left out: %s", name, line)
    now = datetime.now(UTC)
    if is_current(lake, inputs, encoder):
        logger.info("%s: up to date, skipped", name)
        return None
    lake.ensure_empty()  # before answers are kept there: a lake without lake.json is of format 1
    batch = run_batch(inputs, encoder, now, report, lake)
    publish_batch(lake, batch)
    prune(lake, batch.client, batch.contract, settings.retention, now)
    return batch


def _folder(lake: Lake, dataset: Dataset, client: str, contract: str, batch: str) -> Path:
    return lake.folder(dataset, client_key=client, contract_key=contract, batch_key=batch)
