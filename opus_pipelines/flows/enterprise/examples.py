"""Requirements with the flows that answer them: those of an invented enterprise, and files of one's own.

The invented enterprise has a catalogue, and 300 generated and 100 handwritten requirements. The hash of a text says
whether a composer may learn from it.
"""

import tomllib
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from opus_pipelines.core.ids import digest
from opus_pipelines.core.json_lines import read_records
from opus_pipelines.flows.enterprise.catalogue import Catalogue, read_platform_catalogue
from opus_pipelines.flows.enterprise.documents import FlowDocument, FlowDocumentError, document_of, marked, parse_script

TUNE, HELD_OUT = PARTS = ("tune", "held out")
_OWN = "own"


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
        identity, text, document_of(value.get("flow")), _OWN, part or part_of(text), tuple(map(str, tags))
    )


_WORLD = Path(__file__).parent / "world"  # the files of the invented enterprise
CATALOGUE_FILE = _WORLD / "catalogue.toml"
GENERATED, HANDWRITTEN, SECOND_HANDWRITTEN = KINDS = ("generated", "handwritten", "handwritten, second set")
_FILES = {  # kind: file, form of its ids
    GENERATED: ("generated.toml", "g{:03}"),
    HANDWRITTEN: ("handwritten.toml", "h{:02}"),
    SECOND_HANDWRITTEN: ("handwritten_second.toml", "s{:02}"),
}


@lru_cache(maxsize=1)
def world_catalogue() -> Catalogue:
    """Returns the catalogue that ships with the project."""
    return read_platform_catalogue(CATALOGUE_FILE)


@lru_cache(maxsize=1)
def world_examples() -> tuple[FlowExample, ...]:
    """Returns 300 generated requirements and 100 handwritten ones; the hash of a text says which part it belongs to."""
    subflows = list(world_catalogue().subflows)
    examples = []
    for kind, (file, identity) in _FILES.items():
        for n, entry in enumerate(tomllib.loads((_WORLD / file).read_text("utf-8"))["requirement"], 1):
            text, spans = marked(entry["text"])
            flow = parse_script(entry["flow"], spans, subflows)
            tags = tuple(entry.get("tags", ()))
            examples.append(FlowExample(identity.format(n), text, flow, kind, part_of(text), tags))
    return tuple(examples)
