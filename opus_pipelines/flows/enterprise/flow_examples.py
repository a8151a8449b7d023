"""Requirements with the flows that answer them: a record, its split by hash, and files of one's own."""

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from opus_pipelines.core.ids import digest
from opus_pipelines.core.json_lines import read_records
from opus_pipelines.flows.enterprise.documents import FlowDocument, FlowDocumentError
from opus_pipelines.flows.enterprise.flow_json import document_of

TUNE, HELD_OUT = PARTS = ("tune", "held out")
OWN = "own"


@dataclass(frozen=True)
class FlowExample:
    """A requirement with the flow that answers it.

    `kind` says who wrote it, `part` whether a composer may learn from it. `tags` are what people say of the
    requirement: implicit, ambiguous, misleading, incomplete or out of scope.
    """

    id: str
    text: str
    flow: FlowDocument
    kind: str
    part: str
    tags: tuple[str, ...] = ()


def part_of(text: str) -> str:
    """Returns the part that a requirement belongs to, by the hash of its text."""
    return PARTS[int(digest(text)[:8], 16) % 2]


def known(examples: Iterable[FlowExample]) -> list[tuple[str, FlowDocument]]:
    """Returns the requirements and flows of the part that may be learnt from."""
    return [(example.text, example.flow) for example in examples if example.part == TUNE]


def read_examples(path: Path) -> tuple[list[FlowExample], list[str]]:
    """Returns the examples of a JSONL file, and the lines that cannot be used, with their reasons.

    A line is {"id"?, "requirement", "flow", "part"?: "tune" or "held out", "tags"?: [texts]}; without a part the hash
    decides. Raises InputError where the file cannot be read or no line can be used.
    """

    def parse(value: object, identity: str) -> tuple[str, FlowExample]:
        example = _example(value, identity)
        return example.id, example

    return read_records(path, parse)


def _example(value: object, identity: str) -> FlowExample:
    if not isinstance(value, dict):
        raise FlowDocumentError("the line is no JSON object")
    text, part, tags = value.get("requirement"), value.get("part"), value.get("tags") or []
    if not isinstance(text, str) or not text.strip():
        raise FlowDocumentError('it has no "requirement"')
    if part not in (None, *PARTS):
        raise FlowDocumentError(f"the part {part!r} is none of {', '.join(PARTS)}")
    if not isinstance(tags, list):
        raise FlowDocumentError("tags are a list of texts")
    identity = str(value.get("id") or identity)
    return FlowExample(
        identity, text, document_of(value.get("flow")), OWN, part or part_of(text), tuple(map(str, tags))
    )
