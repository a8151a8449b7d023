"""Reads a folder of the form of Flow-Bench (arXiv 2505.11646): a catalogue, and tests of utterances and flows.

The folder has one YAML file with `actions` (a `$ref` to the catalogue) and `tests`. A test needs no expected output.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from opus_pipelines.core.errors import OpusError
from opus_pipelines.flows.from_text.activities import ActivityCatalogue, read_catalogue
from opus_pipelines.workflow.blocks.expressions import FlowError
from opus_pipelines.workflow.blocks.formats.python_ir import parse_ir
from opus_pipelines.workflow.blocks.model import Flow

MAX_TESTS = 100_000


class FolderError(OpusError):
    """A folder that is not of the form of Flow-Bench; the message names the file and the test."""


@dataclass(frozen=True)
class FlowTask:
    """One utterance with what is known of it. `expected` and `sequence` are None where the answer is withheld.

    `unread_prior` says why the prior flow of the test could not be parsed, `unread_expected` the same of the answer.
    """

    uid: str
    utterance: str
    prior: Flow | None = None
    prior_bpmn: Path | None = None
    expected: Flow | None = None
    sequence: str | None = None
    tags: tuple[str, ...] = ()
    unread_prior: str | None = None
    unread_expected: str | None = None

    @property
    def is_update(self) -> bool:
        """Whether a flow is edited."""
        return self.prior is not None or self.unread_prior is not None

    @property
    def kind(self) -> str:
        """Returns "linear", "conditional", "linear_update" or "conditional_update"; "" where no tag says."""
        named = ("conditional_update", "linear_update", "conditional", "linear")
        return next((kind for kind in named if kind in self.tags), "")


@dataclass(frozen=True)
class FlowFolder:
    """The catalogue and the tests of a folder, in the order of the file."""

    catalogue: ActivityCatalogue
    tasks: tuple[FlowTask, ...]


def read_folder(folder: Path) -> FlowFolder:
    """Reads a folder; a flow that cannot be parsed costs its own test. Raises FolderError for another form."""
    files = sorted([*folder.glob("*.yaml"), *folder.glob("*.yml")])
    if len(files) != 1:
        raise FolderError(f"{folder} has {len(files)} YAML files; it must have one, with `actions` and `tests`")
    value = _yaml(files[0])
    references = value.get("actions")
    first = references[0] if isinstance(references, list) and references else references
    name = first.get("$ref") if isinstance(first, dict) else None
    if not isinstance(name, str):
        raise FolderError(f"{files[0]} states no catalogue; give `actions` a `$ref` to a JSON file")
    catalogue = read_catalogue(inside(folder, name))
    tests = value.get("tests")
    if not isinstance(tests, list) or len(tests) > MAX_TESTS:
        raise FolderError(f"{files[0]} has no list of tests, or more than {MAX_TESTS:,}")
    return FlowFolder(catalogue, tuple(_task(folder, number, test) for number, test in enumerate(tests, 1)))


def inside(folder: Path, name: str) -> Path:
    """Returns the path of a file of the folder. Raises FolderError where it leads out of the folder."""
    path = (folder / name).resolve()
    if not path.is_relative_to(folder.resolve()):
        raise FolderError(f"{name!r} leads out of {folder}; state a file of the folder")
    return path


def _yaml(path: Path) -> Mapping[str, Any]:
    try:
        value = yaml.load(path.read_text("utf-8"), Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))
    except (OSError, UnicodeDecodeError, yaml.YAMLError, RecursionError) as error:
        raise FolderError(f"{path} cannot be read: {error}") from None
    if not isinstance(value, dict):
        raise FolderError(f"{path} has no `actions` and `tests`")
    return value


def _task(folder: Path, number: int, test: object) -> FlowTask:
    try:
        metadata, given = test["_metadata"], test["input"]  # type: ignore[index]
        uid, utterance = str(metadata["uid"]), given["utterance"]
    except (TypeError, KeyError):
        raise FolderError(f"test {number} has no `_metadata` with `uid`, or no `input` with `utterance`") from None
    if not isinstance(utterance, str):
        raise FolderError(f"the utterance of test {uid} is no text")
    prior = _text(given.get("prior_sequence"))
    output = test.get("expected_output") or {}  # type: ignore[attr-defined]
    sequence = _text(output.get("sequence"))
    reference = _reference(given.get("bpmn") or given.get("prior_context"))
    before, unread_prior = _parsed(prior)
    expected, unread_expected = _parsed(sequence)
    return FlowTask(
        uid,
        utterance,
        before,
        inside(folder, reference) if reference else None,
        expected,
        sequence or None,
        tuple(str(tag) for tag in metadata.get("tags") or ()),
        unread_prior,
        unread_expected,
    )


def _parsed(sequence: str) -> tuple[Flow | None, str | None]:
    """Returns the flow of a sequence, or why it cannot be parsed; neither where there is no sequence."""
    try:
        return (parse_ir(sequence) if sequence else None), None
    except FlowError as error:
        return None, str(error)


def _text(value: object) -> str:
    """Returns the one block of a sequence, which the file states as a text or as a list of one text."""
    if isinstance(value, list):
        value = "\n".join(part for part in value if isinstance(part, str))
    return value.strip("\n") if isinstance(value, str) and value.strip() else ""


def _reference(value: object) -> str | None:
    while isinstance(value, list) and value:
        value = value[0]
    name = value.get("$ref") if isinstance(value, dict) else None
    return name if isinstance(name, str) else None
