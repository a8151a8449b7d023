"""The flows that a contract asks for: the files of its folder `flows`, the catalogue of activities, and the batch's id.

`flows/*.csv` and `flows/*.jsonl` hold utterances: uid, utterance, and where stated a prior flow, a reference and tags;
those whose name begins with "examples" hold utterances with references to learn from. A row that cannot be used is
kept with a reason, and costs no other row. Nothing in a text is followed: a path to a BPMN file must lead to a file of
the same folder. The catalogue is `flows/catalogue.toml`, that of an enterprise platform, or `flows/catalogue.json`,
else the contract's own catalogue of tools, else the tasks of the current snapshot.
"""

import csv
import io
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from opus_pipelines.core.errors import InputError, OpusError
from opus_pipelines.core.formatting import xml_text
from opus_pipelines.core.ids import digest, file_hash, make_id
from opus_pipelines.core.json_lines import parsed
from opus_pipelines.core.schemas import TASKS
from opus_pipelines.core.settings import Settings
from opus_pipelines.core.settings_files import hard_link_reason
from opus_pipelines.core.versions import FLOWS_VERSION, PLATFORM_VERSION
from opus_pipelines.flows.batches.scoring import ir_of
from opus_pipelines.flows.enterprise.block_flows import block_flow
from opus_pipelines.flows.enterprise.catalogue import LARGEST_CATALOGUE, Catalogue
from opus_pipelines.flows.enterprise.catalogue import read_platform_catalogue as read_platform_catalogue
from opus_pipelines.flows.enterprise.composer import Composer
from opus_pipelines.flows.enterprise.documents import document_text as write_document
from opus_pipelines.flows.enterprise.validation import structure_errors
from opus_pipelines.flows.from_text.activities import (
    ActivityCatalogue,
    catalogue_of,
    catalogue_of_tasks,
    is_activity_id,
    read_catalogue,
)
from opus_pipelines.flows.from_text.flow_folder import FlowTask, FolderError, inside
from opus_pipelines.flows.from_text.language_writers import FlowBackend, chosen
from opus_pipelines.flows.text.clauses import MAX_UTTERANCE, UtteranceError, words_of
from opus_pipelines.intakes.catalogues.entries import DeclaredTask
from opus_pipelines.intakes.catalogues.files import read_catalogue as read_declared
from opus_pipelines.intakes.documents.document import decode
from opus_pipelines.intakes.elements import is_hidden
from opus_pipelines.intakes.intake import ContractFolder
from opus_pipelines.lake.layout import Lake, dataset_folder, read_table
from opus_pipelines.wkg.graph import task_of
from opus_pipelines.workflow.blocks.expressions import FlowError
from opus_pipelines.workflow.blocks.formats.bpmn_reader import read_bpmn
from opus_pipelines.workflow.blocks.formats.bpmn_writer import write_bpmn
from opus_pipelines.workflow.blocks.formats.python_ir import parse_ir, write_ir
from opus_pipelines.workflow.blocks.formats.registry import flow_format, reduced
from opus_pipelines.workflow.blocks.model import Flow, activities

if TYPE_CHECKING:
    from opus_pipelines.language.embedding.encoder import TextEncoder


CSV, LINES = ".csv", ".jsonl"
MAX_FILE_BYTES = 64 << 20
MAX_FLOW_BYTES = 4 << 20  # of a BPMN file
MAX_CELL = 2_000_000  # characters of a cell of a CSV file; a longer one is an error of the file
MAX_UID = 200
MAX_ROWS = 100_000
_TEXTS = ("uid", "utterance", "prior", "prior_bpmn", "gold")


@dataclass(frozen=True)
class UtteranceRow:
    """One row of a file, `line` from 1. `task` is None where the row cannot be used; code and reason say why."""

    file: str
    line: int
    uid: str | None
    utterance: str
    task: FlowTask | None
    code: str | None = None
    reason: str | None = None


class _Defect(Exception):
    """Why a row cannot be used: a code in one word and a sentence."""

    def __init__(self, code: str, reason: str) -> None:
        super().__init__(reason)
        self.code = code


def read_utterances(path: Path, folder: Path) -> list[UtteranceRow]:
    """Returns the rows of a file; BPMN files that it names lie in `folder`.

    Raises InputError where the whole file cannot be read: another ending, no such column, too large, out of the folder.
    """
    text, _ = decode(content_of(path, folder, MAX_FILE_BYTES))
    text = text.removeprefix("\ufeff")
    if path.suffix.casefold() not in (CSV, LINES):
        raise InputError(f"{path.name}: utterances are read from {CSV} and {LINES}; rename or convert the file")
    raw = _of_csv(path.name, text) if path.suffix.casefold() == CSV else _of_lines(text)
    rows: list[UtteranceRow] = []
    known: dict[str, int] = {}
    for line, value in raw:
        if len(rows) >= MAX_ROWS:
            raise InputError(f"{path.name}: it has more than {MAX_ROWS:,} rows; split it")
        row = _row(path.name, line, value, folder)
        first = known.setdefault(row.uid, line) if row.uid is not None else line
        if first != line:
            reason = f"the uid {row.uid!r} stands in line {first}, too; give each utterance its own"
            row = replace(row, task=None, code="duplicate_uid", reason=reason)
        rows.append(row)
    return rows


def content_of(path: Path, folder: Path, most: int) -> bytes:
    """Returns the bytes of a file of a folder. Raises InputError for a link out of it and for a file too large."""
    try:
        if path.is_symlink() and not path.resolve().is_relative_to(folder.resolve()):
            raise InputError(f"{path.name}: it points outside its folder; copy the file instead of linking it")
        if not path.is_file():
            raise InputError(f"{path.name}: there is no such file in {folder.name}")
        if reason := hard_link_reason(path.stat()):
            raise InputError(f"{path.name}: {reason}")
        with path.open("rb") as file:
            data = file.read(most + 1)
    except OSError as error:
        raise InputError(f"{path.name}: it cannot be opened: {error.strerror}") from None
    if len(data) > most:
        raise InputError(f"{path.name}: it has more than {most:,} bytes; split it")
    return data


def _of_csv(name: str, text: str) -> Iterator[tuple[int, object]]:
    csv.field_size_limit(MAX_CELL)
    head = text.split("\n", 1)[0]
    rows = csv.DictReader(io.StringIO(text), delimiter=max(",;\t", key=head.count), restkey="", restval="")
    try:
        columns = [(column or "").strip().casefold() for column in rows.fieldnames or ()]
        if not {"uid", "utterance"} <= set(columns):
            raise InputError(f"{name}: its first line must name the columns uid and utterance")
        rows.fieldnames = columns
        for row in rows:
            if any(isinstance(value, str) and value.strip() for value in row.values()):
                yield rows.line_num, {key: value for key, value in row.items() if value}
    except csv.Error as error:
        raise InputError(f"{name}, line {rows.line_num}: it is no CSV: {error}") from None


def _of_lines(text: str) -> Iterator[tuple[int, object]]:
    for number, value, error in parsed(text.split("\n")):
        yield number, _Defect("not_json", f"the line is not JSON: {error}") if error else value


def _row(file: str, line: int, value: object, folder: Path) -> UtteranceRow:
    if isinstance(value, _Defect):
        return UtteranceRow(file, line, None, "", None, value.code, str(value))
    if not isinstance(value, dict):
        return UtteranceRow(file, line, None, "", None, "no_object", 'the line is no object with "uid" and "utterance"')
    uid, utterance = _uid(value), value.get("utterance")
    shown = xml_text(utterance) if isinstance(utterance, str) else ""
    try:
        return UtteranceRow(file, line, uid, shown, _task(value, uid, shown, folder))
    except _Defect as defect:
        return UtteranceRow(file, line, uid, shown, None, defect.code, str(defect))


def _uid(value: Mapping[str, Any]) -> str | None:
    uid = value.get("uid", value.get("id"))
    if isinstance(uid, bool) or not isinstance(uid, str | int):
        return None
    return xml_text(str(uid).strip())[:MAX_UID] or None


def _task(value: Mapping[str, Any], uid: str | None, utterance: str, folder: Path) -> FlowTask:
    for name in _TEXTS[1:]:
        if value.get(name) is not None and not isinstance(value[name], str):
            raise _Defect("no_text", f"its {name} is no text")
    if uid is None:
        raise _Defect("no_uid", "it has no uid; give each utterance a name of its own")
    if not utterance.strip():
        raise _Defect("no_utterance", "it has no utterance; say what the flow should do")
    if len(utterance) > MAX_UTTERANCE:
        reason = f"the utterance has {len(utterance):,} characters, and {MAX_UTTERANCE:,} are the most; shorten it"
        raise _Defect("too_long", reason)
    try:
        words_of(utterance)
    except UtteranceError as error:
        raise _Defect("no_utterance", str(error)) from None
    prior, file = _flow(value.get("prior"), folder, "prior")
    if value.get("prior_bpmn") is not None:
        drawn, file = _flow(value["prior_bpmn"], folder, "prior_bpmn")
        prior = prior or drawn  # the IR has the names of variables, which a BPMN file may lack
    gold, _ = _flow(value.get("gold"), folder, "gold")
    try:
        sequence = write_ir(gold) if gold is not None else None
    except FlowError as error:
        raise _Defect("bad_gold", f"its gold cannot be compared: {error}") from None
    return FlowTask(uid, utterance, prior, file, gold, sequence, _tags(value.get("tags")))


def _flow(text: str | None, folder: Path, what: str) -> tuple[Flow | None, Path | None]:
    """The flow of a cell, Python IR or the path of a BPMN file, and that file."""
    if text is None or not text.strip():
        return None, None
    try:
        if not text.strip().casefold().endswith(".bpmn"):
            return parse_ir(text.strip("\n")), None
        path = inside(folder, text.strip())
        return read_bpmn(content_of(path, folder, MAX_FLOW_BYTES)).flow, path
    except FolderError as error:
        raise _Defect("outside_folder", f"its {what}: {error}") from None
    except (OpusError, RecursionError, ValueError) as error:
        raise _Defect(f"bad_{what}", f"its {what} is no flow: {error}") from None


def _tags(value: object) -> tuple[str, ...]:
    parts = value.replace(";", ",").split(",") if isinstance(value, str) else value if isinstance(value, list) else ()
    return tuple(xml_text(str(part).strip())[:MAX_UID] for part in parts if str(part).strip())


PLATFORM_FILE = "catalogue.toml"
NO_STEP, NO_EDIT = "no_step", "edit_impossible"


@dataclass(frozen=True)
class Platform:
    """The catalogue of an enterprise platform, and the hash of its file."""

    catalogue: Catalogue
    hash: str

    @property
    def version(self) -> str:
        """What the flows of a requirement depend on."""
        return f"{PLATFORM_VERSION}-{self.hash}"

    def activities(self) -> ActivityCatalogue:
        """Returns triggers, actions and subflows as activities, as they are called in a flow."""
        entries = {f"trigger_{name}": entry for name, entry in self.catalogue.triggers.items()}
        entries |= {**self.catalogue.actions, **self.catalogue.subflows}
        return catalogue_of({"id": name, "description": entry.about} for name, entry in entries.items())


def read_platform(folder: Path) -> Platform | None:
    """Returns the platform of a folder of flows, None where it has no such catalogue.

    Raises InputError for a file that leads out of the folder, and FlowDocumentError for a bad catalogue.
    """
    path = folder / PLATFORM_FILE
    if not path.exists() and not path.is_symlink():
        return None
    content_of(path, folder, LARGEST_CATALOGUE)
    return Platform(read_platform_catalogue(path), file_hash(path))


def composed(platform: Platform, composer: Composer, task: FlowTask) -> tuple[dict[str, Any], Flow | None, float]:
    """Returns the columns of a requirement's outcome, its flow, and the seconds that it took."""
    began = time.perf_counter()
    if task.is_update:
        reason = "a flow of a platform is written anew; leave prior empty"
        return {"status": "refused", "reason_code": NO_EDIT, "reason": reason}, None, 0.0
    try:
        document = composer.flow(task.utterance)
        if not document.components:
            raise OpusError("no clause of the requirement asks for a step of the catalogue")
        flow, _ = reduced(block_flow(document)[0], flow_format("python").features)
    except OpusError as error:
        seconds = time.perf_counter() - began
        return {"status": "refused", "reason_code": NO_STEP, "reason": str(error)}, None, seconds
    seconds = time.perf_counter() - began
    return (
        {
            "status": "written",
            "sequence": write_ir(flow),
            "bpmn": write_bpmn(flow).decode(),
            "document": write_document(document),
            "structure_errors": len(structure_errors(document, platform.catalogue)),
            "operations": [],
            "steps": [component.name for component in document.components],
            "calls": len(activities(flow)),
            "user_tasks": 0,
        },
        flow,
        seconds,
    )


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
        parts: list[object] = [FLOWS_VERSION, self.client, self.contract, self.origin, activities, rows, examples]
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
    catalogue, origin = (platform.activities(), f"flows/{PLATFORM_FILE}") if platform else _catalogue(contract, lake)
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
            rows = read_utterances(path, folder)
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
        return read_utterances(path, folder)
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
    activities = snapshot_activities(lake, snapshot, contract.client, contract.settings.industry)
    return activities, f"snapshot {snapshot}"


def declared_activities(tools: Iterable[DeclaredTask]) -> ActivityCatalogue:
    """Returns the tools of a contract as activities: a name that is an identifier is the id, else its words make it."""
    tools = list(tools)
    if all(is_activity_id(tool.name) for tool in tools):
        return catalogue_of({"id": tool.name, "description": tool.description or ""} for tool in tools)
    return catalogue_of_tasks([(tool.name, tool.summary) for tool in tools])


def snapshot_activities(
    lake: Lake, snapshot: str, client: str | None = None, industry: str | None = None
) -> ActivityCatalogue:
    """Returns the tasks of a snapshot of the Work Knowledge Graph as activities.

    For a client these are its own tasks, and the names of those that several clients of the industry have; a task that
    only one other client has, and every description of others, is left out. None: the tasks of the whole lake, as an
    operator sees them.
    """
    folder = dataset_folder(lake.snapshot_folder(snapshot), TASKS)
    table = read_table(TASKS, folder, columns=["task_id", "title", "description", "industries", "clients", "said"])
    tasks = [task_of(row) for row in table.to_pylist()]
    if client is not None:
        own = lambda task: not task.clients or client in task.clients
        shared = lambda task: len(task.clients) > 1 and industry in task.industries
        tasks = [task.seen_by(client) for task in tasks if own(task) or shared(task)]
    return catalogue_of_tasks([(task.title or "", task.description or "") for task in tasks])
