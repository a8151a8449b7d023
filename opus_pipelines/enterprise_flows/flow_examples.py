"""Requirements with the flows that answer them: a record, its split by hash, and files of one's own."""

import json
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from opus_pipelines.core.errors import InputError
from opus_pipelines.core.ids import digest
from opus_pipelines.enterprise_flows.documents import FlowDocument, FlowDocumentError
from opus_pipelines.enterprise_flows.flow_json import document_of

TUNE, HELD_OUT = PARTS = ("tune", "held out")
OWN = "own"
MOST_BYTES = 200_000_000


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
    try:
        if path.stat().st_size > MOST_BYTES:
            raise InputError(f"{path} has more than {MOST_BYTES:,} bytes")
        lines = path.read_text("utf-8").splitlines()
    except (OSError, UnicodeError) as error:
        raise InputError(f"{path} cannot be read: {error}") from None
    found: dict[str, FlowExample] = {}
    rejected: list[str] = []
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            example = _example(json.loads(line), f"line-{number}")
            if example.id in found:
                raise FlowDocumentError(f"the id {example.id!r} stands in an earlier line, too")
        except (ValueError, RecursionError) as error:
            rejected.append(f"{path.name}, line {number}: {error}")
            continue
        found[example.id] = example
    if not found:
        raise InputError(f"{path}: no line can be used; {rejected[0] if rejected else 'the file is empty'}")
    return list(found.values()), rejected


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
