"""A contract's intakes to its tables, and their publishing: one `result`, visible in one step."""

import logging
import time
from collections import defaultdict
from collections.abc import Callable, MutableMapping
from dataclasses import dataclass, field
from datetime import datetime
from functools import cached_property
from pathlib import Path

import pyarrow as pa

from opus_pipelines.embedding.encoder import TextEncoder
from opus_pipelines.errors import OpusError
from opus_pipelines.generation.contract_settings import prices
from opus_pipelines.generation.discover import ContractFolder
from opus_pipelines.generation.experience.knowledge import Knowledge
from opus_pipelines.generation.flow import Generated
from opus_pipelines.generation.intake import Intake, read_intake
from opus_pipelines.generation.outcome import Outcome, Terms, failed_outcome, outcome_of, unread_outcome
from opus_pipelines.generation.results.changes import write_changes
from opus_pipelines.generation.results.rows import DATASETS_OF_GENERATION, Row
from opus_pipelines.generation.results.staged import Heading, StagedTables
from opus_pipelines.ids import digest, make_id
from opus_pipelines.intention.elements import Element, contract_elements, shown_name
from opus_pipelines.lake import Lake, read_json, write_json, write_table
from opus_pipelines.lwm.history import HistoryBackend
from opus_pipelines.lwm.interface import LargeWorkModel
from opus_pipelines.schemas import DATASETS, EXPECTED_FLOW, OPTIMIZED, RUNS, WORKFLOW_EDGES, WORKFLOW_TASKS, Dataset
from opus_pipelines.settings import Settings
from opus_pipelines.versions import versions_of

logger = logging.getLogger(__name__)

TABLES = (*DATASETS_OF_GENERATION, OPTIMIZED, WORKFLOW_TASKS, WORKFLOW_EDGES, EXPECTED_FLOW)


@dataclass
class ContractResult:
    """All that a contract's intakes led to, its tables in memory or staged on disk. `failed` and `refused`: a line each for a person.

    `attempt`: see `result_id`; `memory_mb`: the most that a process which worked on it took; `texts_missed`: passages that nobody had
    encoded before the work began.
    """

    client: str
    contract: str
    result: str
    snapshot: str
    model_version: str
    tables: MutableMapping[str, pa.Table]
    made: list[tuple[Intake, Generated]] = field(default_factory=list)
    failed: list[str] = field(default_factory=list)
    refused: list[str] = field(default_factory=list)

    attempt: int = 1
    memory_mb: float = 0.0
    texts_missed: int = 0

    def tell(self, status: str, intake: str, reason: str) -> None:
        """Remember what a person must be told of an intake (its folder's name)."""
        lines = {"failed": self.failed, "refused": self.refused}.get(status)
        if lines is not None:
            lines.append(f"{self.client}/{self.contract}/{intake}: {reason}")

    @cached_property
    def counts(self) -> dict[str, int]:
        """Rows by dataset; first asked for before the tables are published, for staged ones are moved then."""
        staged = self.tables
        return {name: staged.rows(name) if isinstance(staged, StagedTables) else staged[name].num_rows for name in staged}


def settings_hash(settings: Settings) -> str:
    """Hash of the settings that a result depends on."""
    return digest([settings.model_dump(include={"generation", "cost", "reward", "scores", "priors", "encoder"})])


def result_id(
    contract: ContractFolder, snapshot: str, settings: Settings, model: LargeWorkModel | None = None, attempt: int = 1
) -> str:
    """The id that the contract's result has or would have: hash of its files, decisions, snapshot, model, settings and
    algorithm versions.
    Cheap.

    `attempt`: 1, or which attempt this is at the same inputs, where intakes failed before for a reason that may pass (time, memory); what
    is published is never changed, so that each attempt has an id of its own.
    """
    return id_of(contract, snapshot, (model or HistoryBackend()).version, settings_hash(settings), versions_of("result"), attempt)


def id_of(
    contract: ContractFolder, snapshot: str, model_version: str, settings: str, code: str, attempt: int = 1, decisions: int | None = None
) -> str:
    """`result_id` of the hash of the settings and the algorithm versions (`code`), which a published result names: both can be compared.

    `decisions`: how many of the contract's decisions were made by then; all, where no number is given.
    """
    again = [attempt] if attempt > 1 else []
    decided = contract.decisions.versions[:decisions][-1:]
    return make_id("r", contract.client, contract.contract, contract.content, snapshot, model_version, settings, code, *decided, *again)


def generate_contract(
    contract: ContractFolder, knowledge: Knowledge, settings: Settings, encoder: TextEncoder, run_id: str, now: datetime,
    model: LargeWorkModel | None = None, progress: Callable[[str], None] = logger.info,
) -> ContractResult:
    """Every intake of a contract in this process, its tables in memory: what `bulk.BulkRun` does with processes and files, for a few.

    An intake that fails costs only itself; one that hangs or kills its process is not guarded against. `now` stands in generation/runs
    alone.
    """
    run = _Run(contract, knowledge, settings, encoder, model or HistoryBackend())
    started = time.monotonic()
    for number, folder in enumerate(contract.intakes, start=1):
        outcome = run.work_on(folder)
        where = f"{contract.client} / {contract.contract}: intake {number} of {len(contract.intakes)}, {shown_name(folder.name)}"
        progress(f"{where}: {outcome}")
    run.rows[RUNS.name].append({
        "run_id": run_id, "generated_at": now, "seconds": [("generate", time.monotonic() - started)],
        "snapshot": knowledge.snapshot.id, "code_version": versions_of("result"), "settings_hash": settings_hash(settings),
    })
    result = run.result
    result.tables = {d.name: result_table(result, d, run.rows[d.name]) for d in (*TABLES, RUNS)}
    return result


class _Run:
    """One contract being worked on: what its intakes share, and the rows so far."""

    def __init__(
        self, contract: ContractFolder, knowledge: Knowledge, settings: Settings, encoder: TextEncoder, model: LargeWorkModel
    ) -> None:
        self.contract, self.knowledge, self.settings, self.encoder, self.model = contract, knowledge, settings, encoder, model
        self.terms = Terms(
            prices(settings, contract.settings, contract.folder), contract.settings.review, contract.decisions, contract.settings.calendar,
        )
        snapshot = knowledge.snapshot.id
        self.result = ContractResult(
            contract.client, contract.contract, result_id(contract, snapshot, settings, model), snapshot, model.version, {}
        )
        self.rows: dict[str, list[Row]] = defaultdict(list)

    @cached_property
    def inherited(self) -> tuple[Element, ...]:
        """The contract's own documents, read once for all its intakes."""
        return contract_elements(self.contract.documents)

    def work_on(self, folder: Path) -> str:
        """Generate for one intake; its rows are kept, what came of it comes back in words."""
        name = shown_name(folder.name)
        try:
            intake = read_intake(self.contract, folder, self.settings, self.inherited)
        except OpusError as error:
            return self._keep(name, None, unread_outcome(self.contract.intake_id(folder), name, str(error)))
        try:
            return self._keep(name, intake, outcome_of(intake, self.terms, self.knowledge, self.encoder, self.model, self.settings))
        except Exception as error:  # one intake's fault must not cost the others theirs: it is logged, counted and shown
            logger.exception("%s / %s / %s failed", self.contract.client, self.contract.contract, name)
            return self._keep(name, intake, failed_outcome(intake, f"{type(error).__name__}: {error}"))

    def _keep(self, name: str, intake: Intake | None, outcome: Outcome) -> str:
        for dataset, row in outcome.rows:
            self.rows[dataset].append(row)
        if intake is not None:
            self.result.made += [(intake, made) for made in outcome.made]
        if outcome.status != "generated":
            self.result.tell(outcome.status, name, outcome.said.split(": ", 1)[1])
        return outcome.said


def result_table(result: ContractResult, dataset: Dataset, rows: list[Row]) -> pa.Table:
    """Rows as a table of a result's dataset, each with its client, contract and result."""
    return Heading(result.client, result.contract, result.result).table(dataset, rows)


def publish_contract(lake: Lake, result: ContractResult, now: datetime) -> None:
    """Write every table of the result aside, where it is not staged there yet, move all into place, runs last (a result that has it is
    whole), then replace the contract's pointer: the one visible step."""
    where = {"client_key": result.client, "contract_key": result.contract, "result": result.result}
    assert result.counts is not None  # counted while the tables are there
    with lake.staging() as scratch:
        tables = result.tables
        staged = tables.folder if isinstance(tables, StagedTables) else scratch
        for name in tables:
            if not (staged / name).is_dir():  # in memory, or staged without a row
                write_table(DATASETS[name], tables[name], staged / name)
        for name in sorted(tables, key=lambda name: name == RUNS.name):
            lake.publish(staged / name, lake.folder(DATASETS[name], **where))
    before = read_json(lake.pointer_path(result.client, result.contract))
    if before and before["result"] == result.result:
        before = None  # it is current already: what it followed stands in its own rows
    pointer = {
        "client": result.client, "contract": result.contract, "result": result.result, "snapshot": result.snapshot,
        "model_version": result.model_version, "attempt": result.attempt, "published_at": now.isoformat(),
        "before": before["result"] if before else None,
    }
    write_changes(lake, pointer, before)
    write_json(lake.pointer_path(result.client, result.contract), pointer)
