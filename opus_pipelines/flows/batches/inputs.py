"""The flows that a contract asks for: the files of its folder `flows`, the catalogue of activities, and the batch's id.

`flows/*.csv` and `flows/*.jsonl` hold utterances; those whose name begins with "examples" hold utterances with
references to learn from. The catalogue is `flows/catalogue.toml`, that of an enterprise platform, or
`flows/catalogue.json`, else the contract's own catalogue of tools, else the tasks of the current snapshot.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from opus_pipelines.core.errors import InputError, OpusError
from opus_pipelines.core.ids import digest, file_hash, make_id
from opus_pipelines.core.schemas import TASKS
from opus_pipelines.core.settings import Settings
from opus_pipelines.flows.batches.platform_flows import NAME, Platform, read_platform
from opus_pipelines.flows.batches.platform_flows import VERSION as PLATFORM
from opus_pipelines.flows.batches.scoring import ir_of
from opus_pipelines.flows.batches.utterance_files import CSV, LINES, UtteranceRow, content_of, read
from opus_pipelines.flows.from_text.activities import (
    ActivityCatalogue,
    catalogue_of,
    catalogue_of_tasks,
    is_activity_id,
    read_catalogue,
)
from opus_pipelines.flows.from_text.flow_folder import FlowTask
from opus_pipelines.flows.models.backends import FlowBackend, chosen
from opus_pipelines.flows.models.prompts import VERSION as PROMPTS
from opus_pipelines.intakes.catalogues.declared import DeclaredTask
from opus_pipelines.intakes.catalogues.files import read_catalogue as read_declared
from opus_pipelines.intakes.discover import ContractFolder
from opus_pipelines.intakes.elements import is_hidden
from opus_pipelines.lake.layout import Lake, dataset_folder, read_table

if TYPE_CHECKING:
    from opus_pipelines.language.embedding.encoder import TextEncoder

VERSION = 4  # raised where the same files give other flows: a change of flows.from_text that is meant to
METHOD = f"flows={VERSION} platform={PLATFORM} prompts={PROMPTS}"  # the version of what turns the files into rows
CATALOGUE = "catalogue.json"
EXAMPLES = "examples"
MAX_CATALOGUE_BYTES = 32 << 20


@dataclass(frozen=True)
class BatchInputs:
    """What a contract asks for. `origin` says where the catalogue comes from, `left_out` names unusable examples.

    `platform`: the flows are those of an enterprise platform; None: of activities. `backend`: the language model that
    writes them; None: the generator without one.
    """

    client: str
    contract: str
    catalogue: ActivityCatalogue
    origin: str
    rows: tuple[UtteranceRow, ...]
    examples: tuple[FlowTask, ...]
    left_out: tuple[str, ...]
    platform: Platform | None = None
    backend: FlowBackend | None = None

    @cached_property
    def tasks(self) -> list[FlowTask]:
        """The utterances that can be read."""
        return [row.task for row in self.rows if row.task is not None]

    def batch_id(self, encoder: "TextEncoder") -> str:
        """Returns the id of the batch: a hash of all that its rows depend on."""
        return self.batch_ids(encoder, 1)[0]

    def batch_ids(self, encoder: "TextEncoder", attempts: int) -> list[str]:
        """Returns the id of the batch for each time that it is written.

        It is written again where a language model left utterances without an answer; nothing published is changed.
        """
        activities = [(activity.id, activity.description) for activity in self.catalogue.activities]
        rows = [(r.file, r.line, r.uid, r.utterance, r.code, r.reason, _content(r.task)) for r in self.rows]
        examples = [(task.utterance, _content(task)) for task in self.examples]
        parts: list[object] = [VERSION, self.client, self.contract, self.origin, activities, rows, examples]
        parts += [self.platform.version] if self.platform else [encoder.name, encoder.max_tokens]
        parts += [self.backend.version] if self.backend else []
        base = digest(*parts)
        return [make_id("b", digest(base, n) if n else base) for n in range(attempts)]


def read_inputs(contract: ContractFolder, lake: Lake, settings: Settings | None = None) -> BatchInputs | None:
    """Returns what a contract asks for; None where it has no folder of flows, or no utterances in it.

    Raises InputError for a file that cannot be read as a whole and for a backend without settings, and CatalogueError
    for the catalogue.
    """
    folder = contract.flows
    files = utterance_files(folder)
    asked = [path for path in files if not _is_example(path)]
    if not asked:
        return None
    platform = read_platform(folder)
    catalogue, origin = (platform.activities(), f"flows/{NAME}") if platform else _catalogue(contract, lake)
    rows = [row for path in asked for row in _read(path, folder)]
    taught = [row for path in files if _is_example(path) for row in _read(path, folder)]
    examples = [row.task for row in taught if row.task is not None and row.task.expected is not None]
    left_out = [
        f"{row.file}, line {row.line}: {row.reason or 'it has no gold, so nothing can be learnt from it'}"
        for row in taught
        if row.task is None or row.task.expected is None
    ]
    settings = settings or Settings()
    named = contract.settings.flow_backend or settings.flows.backend
    backend = None if platform else chosen(settings, named)
    about = contract.client, contract.contract
    return BatchInputs(*about, catalogue, origin, _unique(rows), tuple(examples), tuple(left_out), platform, backend)


def _content(task: FlowTask | None) -> list[str] | None:
    """What of a task its flow and its scores depend on, beside the utterance."""
    if task is None:
        return None
    drawn = file_hash(task.prior_bpmn) if task.prior_bpmn else ""
    return [ir_of(task.prior) or "", drawn, task.sequence or "", *task.tags]


def utterance_files(folder: Path) -> list[Path]:
    """Returns the CSV and JSON Lines files of a folder of flows, by name; none where there is no such folder."""
    if not folder.is_dir():
        return []
    own = (path for path in folder.iterdir() if not is_hidden(Path(path.name)) and not path.is_dir())
    return sorted(path for path in own if path.suffix.casefold() in (CSV, LINES))


def check_folder(folder: Path) -> tuple[list[str], list[str]]:
    """Returns a line for each file of a folder of flows, and a line for each row or file that cannot be used."""
    lines, complaints = [], []
    for path in utterance_files(folder):
        try:
            rows = read(path, folder)
        except InputError as error:
            complaints.append(str(error))
            continue
        usable = [row.task for row in rows if row.task is not None]
        known = sum(task.expected is not None for task in usable)
        what = "examples" if _is_example(path) else "utterances"
        lines.append(
            f"flows/{path.name}: {len(usable):,} of {len(rows):,} {what} can be read, {known:,} with a reference"
        )
        complaints += [f"flows/{row.file}, line {row.line}: {row.reason}" for row in rows if row.task is None]
    if (folder / CATALOGUE).exists():
        try:
            content_of(folder / CATALOGUE, folder, MAX_CATALOGUE_BYTES)
            lines.append(f"flows/{CATALOGUE}: {len(read_catalogue(folder / CATALOGUE).activities):,} activities")
        except OpusError as error:
            complaints.append(str(error))
    return lines, complaints


def _is_example(path: Path) -> bool:
    return path.name.casefold().startswith(EXAMPLES)


def _read(path: Path, folder: Path) -> list[UtteranceRow]:
    try:
        return read(path, folder)
    except InputError as error:
        raise InputError(f"{folder}: {error}") from None


def _unique(rows: Sequence[UtteranceRow]) -> tuple[UtteranceRow, ...]:
    """The rows; a uid that another file has, too, costs the later row."""
    known: dict[str, UtteranceRow] = {}
    found = []
    for row in rows:
        first = known.setdefault(row.uid, row) if row.uid is not None else row
        if first.file != row.file and row.task is not None:
            reason = f"the uid {row.uid!r} stands in {first.file}, too; give each utterance its own"
            row = UtteranceRow(row.file, row.line, row.uid, row.utterance, None, "duplicate_uid", reason)
        found.append(row)
    return tuple(found)


def _catalogue(contract: ContractFolder, lake: Lake) -> tuple[ActivityCatalogue, str]:
    path = contract.flows / CATALOGUE
    if path.exists() or path.is_symlink():
        content_of(path, contract.flows, MAX_CATALOGUE_BYTES)
        return read_catalogue(path), f"flows/{CATALOGUE}"
    tools = read_declared(contract.folder).tasks
    if tools:
        return declared_activities(tools), "catalogue of the contract"
    snapshot = lake.current_snapshot()
    if snapshot is None:
        raise InputError(
            f"{contract.flows} has no {CATALOGUE}, {contract.folder.name} has no catalogue of tools, and {lake.root} "
            "has no snapshot; write one of the first two, or run opus rebuild"
        )
    return snapshot_activities(lake, snapshot), f"snapshot {snapshot}"


def declared_activities(tools: Iterable[DeclaredTask]) -> ActivityCatalogue:
    """Returns the tools of a contract as activities: a name that is an identifier is the id, else its words make it."""
    tools = list(tools)
    if all(is_activity_id(tool.name) for tool in tools):
        return catalogue_of({"id": tool.name, "description": tool.description or ""} for tool in tools)
    return catalogue_of_tasks([(tool.name, tool.summary) for tool in tools])


def snapshot_activities(lake: Lake, snapshot: str) -> ActivityCatalogue:
    """Returns the tasks of a snapshot of the Work Knowledge Graph as activities."""
    folder = dataset_folder(lake.snapshot_folder(snapshot), TASKS)
    rows = read_table(TASKS, folder, columns=["title", "description"]).to_pylist()
    return catalogue_of_tasks([(row["title"] or "", row["description"] or "") for row in rows])
