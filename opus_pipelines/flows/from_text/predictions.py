"""Writes the flows of many tasks as IR and BPMN; an edit keeps what it does not touch, a failed task has a reason."""

import time
from collections.abc import Callable
from dataclasses import dataclass, replace

from opus_pipelines.core.errors import OpusError
from opus_pipelines.flows.from_text.editing import edited
from opus_pipelines.flows.from_text.flow_folder import FlowTask
from opus_pipelines.flows.from_text.generator import FlowWriter, Made
from opus_pipelines.lwm.interface import Usage
from opus_pipelines.workflow.blocks.expressions import FlowError
from opus_pipelines.workflow.blocks.formats.bpmn_reader import read_bpmn
from opus_pipelines.workflow.blocks.formats.bpmn_writer import patched_bpmn, write_bpmn
from opus_pipelines.workflow.blocks.formats.python_ir import write_ir
from opus_pipelines.workflow.blocks.model import (
    Block,
    Flow,
    If,
    Statement,
    blocks_of,
    identified,
    ids,
    map_blocks,
    renamed,
)

Make = Callable[[str, Flow | None], Made]  # a new flow of an utterance, or the edited one of a prior flow


@dataclass(frozen=True)
class Prediction:
    """The flow of one task.

    Where none could be written, `error` and `reason` say why, and an edit leaves the flow as it was.
    """

    uid: str
    flow: Flow | None
    bpmn: str
    seconds: float
    operations: tuple[str, ...] = ()
    steps: tuple[tuple[str, float], ...] = ()
    reason: str | None = None
    error: OpusError | None = None
    repaired: int | None = None
    usage: Usage | None = None

    @property
    def sequence(self) -> str:
        """The flow as Python IR; empty where there is none."""
        return write_ir(self.flow) if self.flow else ""


def predict(writer: FlowWriter, task: FlowTask, make: Make | None = None) -> Prediction:
    """Returns the flow of one task. The expected flow is not read. `make`: a language model writes, not the writer."""
    began = time.perf_counter()
    if task.unread_prior is not None:
        return Prediction(task.uid, None, "", 0.0, reason=f"The prior flow cannot be parsed: {task.unread_prior}")
    prior, content = _prior(task)
    error, made = None, None
    try:
        made = make(task.utterance, prior) if make else made_by_ranker(writer, task.utterance, prior)
    except OpusError as problem:
        error = problem
    reason, flow = str(error) if error else None, made.flow if made else prior
    seconds = made.seconds if made and made.seconds is not None else time.perf_counter() - began
    about = (made.operations, made.steps) if made else ((), ())
    used = (made.repaired, made.usage) if made else (None, None)
    return Prediction(task.uid, flow, _bpmn(flow, content), seconds, *about, reason, error, *used)


def made_by_ranker(writer: FlowWriter, utterance: str, prior: Flow | None) -> Made:
    """Returns what the generator without a language model makes. Raises OpusError where it makes nothing."""
    return writer.new(utterance) if prior is None else edited(writer, utterance, prior)


def _prior(task: FlowTask) -> tuple[Flow | None, bytes | None]:
    """The flow that is edited, with the ids of its BPMN file where both are the same flow."""
    if task.prior is None or task.prior_bpmn is None:
        return (identified(task.prior) if task.prior else None), None
    try:
        content = task.prior_bpmn.read_bytes()
        drawn = read_bpmn(content).flow
    except (OSError, FlowError):
        return identified(task.prior), None
    bare = replace(drawn, name="")
    if renamed(bare) != renamed(task.prior) and _shape(bare.body) != _shape(task.prior.body):
        return identified(task.prior), None
    return replace(task.prior, body=_with_ids(task.prior.body, list(ids(drawn.body)))), content


def _shape(block: Block) -> list[object]:
    return [(type(s).__name__, getattr(s, "activity", ""), [_shape(b) for b in blocks_of(s)]) for s in block]


def _with_ids(block: Block, left: list[str]) -> Block:
    """The block with ids in the order of reading, which `left` gives."""

    def change(statement: Statement) -> Statement:
        new = replace(statement, id=left.pop(0))
        if isinstance(new, If):
            new = replace(new, branches=tuple(replace(b, id=left.pop(0)) for b in new.branches))
        return map_blocks(new, lambda inner: tuple(change(s) for s in inner))

    return tuple(change(statement) for statement in block)


def _bpmn(flow: Flow | None, content: bytes | None) -> str:
    if flow is None:
        return ""
    if content is not None:
        try:
            return patched_bpmn(content, flow).decode()
        except FlowError:
            return write_bpmn(identified(flow)).decode()
    return write_bpmn(identified(flow)).decode()
