"""The two jobs of a chunk of a contract's intakes, done in this process or by Spark's executors.

Each intake is read and worked on in a sandbox; its outcome is a row also where the sandbox ended it.

Executors read the snapshot by its path. Where they share no folder with the run, Spark brings it to them
(`wkg.snapshot_archive`), and the documents of intakes are read by the driver's machine.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar
from uuid import uuid4

from opus_pipelines.core.errors import InputError, OpusError, SettingsError
from opus_pipelines.core.schemas import DATASETS, INTAKES, Dataset
from opus_pipelines.core.settings import Settings
from opus_pipelines.core.workers.carried_jobs import Carried, Tasks, carry
from opus_pipelines.core.workers.pool import Answer, Report
from opus_pipelines.core.workers.sandbox import LostWorker, Sandbox
from opus_pipelines.generation.flow import generate
from opus_pipelines.generation.records import ContractTerms, GenerationContext, Ranked, Refused
from opus_pipelines.generation.results.contract import write_part
from opus_pipelines.generation.results.rows import Row, broken_row, generation_rows, intake_row
from opus_pipelines.generation.results.workflow_rows import workflow_rows
from opus_pipelines.generation.written_steps import load_writer, texts_to_write
from opus_pipelines.intakes.documents.document import Transcribe
from opus_pipelines.intakes.elements import INHERITED, shown_name
from opus_pipelines.intakes.intake import ContractFolder, Intake, read_intake
from opus_pipelines.intakes.requirements.intention import passages_of
from opus_pipelines.intakes.stored import Inherited, StoredVectors, Unread, read_inherited, read_intakes, write_intakes
from opus_pipelines.lake.layout import Lake
from opus_pipelines.lake.results import Columns, ResultKey, by_column
from opus_pipelines.language.embedding.cache import CachedEncoder
from opus_pipelines.language.embedding.encoder import encoder_of
from opus_pipelines.language.embedding.texts import words_of
from opus_pipelines.language.reading.second_reader import SecondReader
from opus_pipelines.lwm.interface import LargeWorkModel, Usage, backend_of
from opus_pipelines.lwm.pointer.candidates import texts_of
from opus_pipelines.lwm.retrieval.case_memory import ContractCatalogue, memory_of, request_of
from opus_pipelines.lwm.retrieval.intentions import likeness_of
from opus_pipelines.lwm.retrieval.requested_steps import texts_to_encode
from opus_pipelines.lwm.retrieval.snapshot_index import SnapshotIndex
from opus_pipelines.lwm.retrieval.task_names import refuse_unknown_prices
from opus_pipelines.lwm.retrieval.unknown_steps import texts_to_align
from opus_pipelines.wkg.snapshot import Snapshot, brought

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@dataclass
class IntakeOutcome:
    """What became of an intake.

    Attributes:
        status: generated, refused or failed.
        summary: one line for a person, without the intake's name.
        rows: rows by the name of their dataset, column by column: other processes take them so in half the time.
        ranked: the records behind the rows, one for each Intention.
        usage: what the answers of a language model took, None where none was asked.
    """

    status: str
    summary: str
    rows: dict[str, Columns] = field(default_factory=dict)
    ranked: list[Ranked] = field(default_factory=list)
    usage: Usage | None = None


def outcome_of(intake: Intake, context: GenerationContext) -> IntakeOutcome:
    """Generates for one intake; the outcome is failed where something stated for the intake names nothing known.

    Raises whatever else generation raises.
    """
    try:
        refuse_unknown_prices(context.terms.cost, context.index.graph)
        intentions = generate(intake, context)
    except SettingsError as error:  # the person who stated it reads it; only this intake fails
        return failed_outcome(intake, str(error))
    except Refused as refusal:
        reason = str(refusal)
        return IntakeOutcome("refused", f"refused: {reason}", _intake(intake_row(intake, "refused", reason)))
    rows = _intake(intake_row(intake, "generated", None)) | _by_dataset(
        row for ranked in intentions for rows in (generation_rows, workflow_rows) for row in rows(ranked, context)
    )
    goals = f"{len(intentions)} goals: " if len(intentions) > 1 else ""
    usage = Usage.total(ranked.drafted.usage for ranked in intentions if ranked.drafted.usage)
    return IntakeOutcome("generated", goals + "; ".join(map(_summary, intentions)), rows, intentions, usage)


def _summary(ranked: Ranked) -> str:
    """Says how many workflows there are, what the best earns or what ranks them, and its size."""
    number, best = len(ranked.ranked), ranked.ranked[0][1]
    workflows, tasks = f"{number} workflow{'s' * (number > 1)}", f"in {len(best.tasks)} tasks"
    if best.evaluation.reward_usd is None:
        return f"{workflows} ranked by {', '.join(ranked.context.ranking.criteria)} (no gain stated), the best {tasks}"
    return f"{workflows}, the best earns {best.evaluation.reward_usd:.2f} USD {tasks}"


def failed_outcome(intake: Intake, reason: str) -> IntakeOutcome:
    """An intake that could be read and not be worked on."""
    return _failed(intake_row(intake, "failed", reason))


def unread_outcome(intake_id: str, folder: str, reason: str) -> IntakeOutcome:
    """An intake whose settings or documents could not even be read."""
    return _failed(broken_row(intake_id, folder, reason))


def _failed(row: Row) -> IntakeOutcome:
    return IntakeOutcome("failed", f"failed: {row['reason']}", _intake(row))


def _intake(row: Row) -> dict[str, Columns]:
    return {INTAKES.name: by_column(INTAKES, [row])}


def _by_dataset(rows: Iterable[tuple[Dataset, Row]]) -> dict[str, Columns]:
    by_dataset: dict[str, list[Row]] = defaultdict(list)
    for dataset, row in rows:
        by_dataset[dataset.name].append(row)
    return {name: by_column(DATASETS[name], found) for name, found in by_dataset.items()}


Read = tuple[Intake | None, Inherited | None, list[str]]


@dataclass(frozen=True)
class GenerationSetup:
    """What a worker process must know to work on any contract: the lake, one snapshot of it, the settings.

    `archive` is the name of what Spark unpacked on its executors where they share no folder with the run.
    """

    lake: Path
    snapshot: str
    settings: Settings
    archive: str | None = None

    @contextmanager
    def open(self) -> Iterator["WorkerState"]:
        """Opens the state that the chunks of a worker process share."""
        state = WorkerState(self)
        limits = self.settings.generation.seconds_per_intake, self.settings.generation.memory_mb_per_intake
        with Sandbox(state.read, *limits) as state.reading, Sandbox(state.work, *limits) as state.working:
            yield state

    def there(self) -> "GenerationSetup":
        """Returns the setup for the workers of an executor of Spark's, which finds the lake by its path, or what it
        needs of it in the archive.
        """
        if self.archive is None:
            return self
        from pyspark import SparkFiles

        lake = Path(SparkFiles.get(self.archive))
        paths = self.settings.paths.model_copy(update={"lake": lake})
        return replace(self, lake=lake, settings=self.settings.model_copy(update={"paths": paths}))


class WorkerState:
    """A worker process's index of the snapshot, loaded when the first chunk needs it, and its two sandboxes."""

    reading: Sandbox[tuple[ContractFolder, Path | None], Read]
    working: Sandbox[tuple[Intake, ContractTerms, Path], tuple[IntakeOutcome, int, float]]

    def __init__(self, setup: GenerationSetup) -> None:
        self.setup = setup
        self._seen: dict[str | None, SnapshotIndex] = {}  # of the client that is being worked for
        self._encoders: dict[Path, StoredVectors] = {}
        self._inherited: dict[Path, Inherited] = {}  # of the contract, or the chunk, that is being worked on
        self._catalogues: dict[Path, ContractCatalogue] = {}

    @cached_property
    def index(self) -> SnapshotIndex:
        """The snapshot, whole: what is loaded before a child is forked is loaded once."""
        index = SnapshotIndex(Snapshot.open(Lake(self.setup.lake), self.setup.snapshot))
        index.load()
        return index

    def index_for(self, client: str | None) -> SnapshotIndex:
        """The snapshot as a result for a client may show it."""
        if client not in self._seen:
            self._seen = {client: shown_index(self.index, self.setup.settings, client)}
        return self._seen[client]

    @cached_property
    def model(self) -> LargeWorkModel:
        """The backend of the LWM, with the trained model that serves."""
        return backend_of(self.setup.settings)

    def load(self, industry: str | None) -> None:
        """Loads what intakes of an industry need, before a child is forked that shares it."""
        if self.index.unknown_industry_reason(industry):
            self.index.procedures.load_for_lists()
            return
        if industry is None:
            settings = self.setup.settings.encoder
            likeness_of(self.index, CachedEncoder(encoder_of(settings), Lake(self.setup.lake).kept / "embeddings"))
        self.index.load_similar(industry)
        load_writer(industry, self.model, self.index)
        if industry is not None and self.model.serves(industry):
            memory = memory_of(self.index, industry)
            if memory is not None:
                memory.memory.load()
                self.model.load()

    def inherited(self, contract: ContractFolder) -> Inherited:
        """What all intakes of the contract inherit. It is read once, in a child, which keeps it as every later one
        does.
        """
        if contract.folder not in self._inherited:
            found = self.reading.do((contract, None))[1]
            assert found is not None
            self._inherited = {contract.folder: found}
        return self._inherited[contract.folder]

    def read(self, item: tuple[ContractFolder, Path | None]) -> Read:
        """In a child: one intake without what it inherits, and its passages; without a folder, what all intakes of the
        contract inherit.
        """
        contract, folder = item
        transcribe = transcriber_of(self.setup.settings, contract.client)
        if contract.folder not in self._inherited:
            self._inherited = {contract.folder: Inherited.of(contract, transcribe)}
        inherited = self._inherited[contract.folder]
        if folder is None:
            return None, inherited, []
        intake = read_intake(contract, folder, self.setup.settings, inherited.elements, transcribe)
        texts: dict[str, None] = {}
        if not intake.refusal:
            catalogue = self.catalogue(contract.folder, intake, inherited)
            history = catalogue.history(intake.industry)
            texts |= dict.fromkeys(
                p.text for p in passages_of(intake.elements, words_of(self.setup.settings.encoder.max_tokens))
            )
            texts |= dict.fromkeys(texts_to_encode(intake.elements, intake.industry, history))
            industry = intake.industry
            if industry is not None and self.model.serves(industry):
                texts |= dict.fromkeys(texts_of([request_of(intake.elements)]))
                texts |= dict.fromkeys(catalogue.texts_to_encode(intake.elements, industry))
            if not inherited.catalogue and self.index.is_new_client(intake.client, intake.industry):
                texts |= dict.fromkeys(texts_to_align(intake))
            texts |= dict.fromkeys(texts_to_write(intake.elements, intake.industry, self.model, self.index))
        own = [element for element in intake.elements if element.role != INHERITED]
        return replace(intake, elements=own), None, list(texts)

    def catalogue(self, place: Path, intake: Intake, inherited: Inherited) -> ContractCatalogue:
        """The catalogue of the contract, with what is known of its tools, which all of its intakes share."""
        if place not in self._catalogues:
            names = intake.client or "", intake.contract or ""
            self._catalogues = {place: ContractCatalogue(self.index_for(intake.client), *names, inherited.catalogue)}
        return self._catalogues[place]

    def work(self, item: tuple[Intake, ContractTerms, Path]) -> tuple[IntakeOutcome, int, float]:
        """In a child: what becomes of one intake of the chunk that was read into a folder, how many texts nobody had
        encoded for it, and MB of memory.
        """
        intake, terms, read = item
        if read not in self._inherited:
            self._inherited = {read: read_inherited(read)}
        encoder = self._encoder(read)
        before = encoder.missed
        inherited = self._inherited[read]
        whole = with_inherited(intake, inherited)
        context = GenerationContext(
            self.index_for(intake.client),
            encoder,
            self.model,
            self.setup.settings,
            terms,
            catalogue=self.catalogue(read, intake, inherited) if inherited.catalogue else None,
            second=second_reader_of(self.setup.settings, intake.client),
        )
        outcome = outcome_of(whole, context)
        return self.passed_on(whole, outcome), encoder.missed - before, peak_mb()

    def passed_on(self, intake: Intake, outcome: IntakeOutcome) -> IntakeOutcome:
        """What leaves the child: the rows, without the records that they were made from."""
        return replace(outcome, ranked=[])

    def _encoder(self, read: Path) -> StoredVectors:
        if read not in self._encoders:
            settings = self.setup.settings.encoder
            cached = CachedEncoder(encoder_of(settings), Lake(self.setup.lake).kept / "embeddings")
            self._encoders = {read: StoredVectors(read, cached)}
        return self._encoders[read]


def shown_index(index: SnapshotIndex, settings: Settings, client: str | None) -> SnapshotIndex:
    """Returns the lookups of a snapshot as a result for a client may show them."""
    return index if settings.generation.between_clients == "texts" else index.seen_by(client)


def second_reader_of(settings: Settings, client: str | None) -> SecondReader | None:
    """Returns the language model that reads sentences for a client; None where the settings name none.

    Raises SettingsError where `[openai_compatible]` lacks what it needs.
    """
    if settings.reading.backend == "rules":
        return None
    # here, because HTTP and its errors are loaded with it, which most runs do not need
    from opus_pipelines.lwm.language_models.sentence_reader import EndpointReader

    return EndpointReader(settings, client)


def transcriber_of(settings: Settings, client: str | None) -> Transcribe | None:
    """Returns what writes a client's recordings down; None where the settings name nothing. As `second_reader_of`."""
    if not settings.reading.transcription_model:
        return None
    from opus_pipelines.lwm.language_models.recordings import Transcriber

    return Transcriber(settings, client)


def with_inherited(intake: Intake, inherited: Inherited) -> Intake:
    """The intake whole again: its own elements, then the contract's."""
    return replace(intake, elements=[*intake.elements, *inherited.elements])


def peak_mb() -> float:
    """Returns the peak resident memory of this process in MB; getrusage would count the parent process's too."""
    status = Path("/proc/self/status").read_text("ascii")
    return next(int(line.split()[1]) for line in status.splitlines() if line.startswith("VmHWM:")) / 1024


@dataclass(frozen=True, repr=False)
class ReadChunk:
    """Intakes to read; what they hold goes to a file in the folder `into`, their passages come back."""

    ANSWER: ClassVar[Any] = list[str]
    contract: ContractFolder
    folders: tuple[Path, ...]
    into: Path = Path()

    def at(self, read: Path, made: Path) -> "ReadChunk":
        """Returns the job that writes into the folder `made`; the folders of the intakes stay where they are."""
        return replace(self, into=made)

    def run(self, state: WorkerState, report: Report) -> list[str]:
        """The distinct passages of these intakes. Raises OpusError where the contract's own documents cannot
        be read.
        """
        state.index.procedures.load()  # here, so that children share it
        load_writer(self.contract.settings.industry, state.model, state.index)
        try:
            inherited = state.inherited(self.contract)
        except LostWorker as lost:
            raise InputError(f"{self.contract.documents}: {lost}") from None
        found: list[tuple[str, Intake | Unread]] = []
        texts: dict[str, None] = {}
        for folder in self.folders:
            name = shown_name(folder.name)
            try:
                intake, _, own = state.reading.do((self.contract, folder))
            except LostWorker as lost:
                found.append((name, Unread(self.contract.intake_id(folder), str(lost))))
                continue
            assert intake is not None
            found.append((name, intake))
            texts |= dict.fromkeys(own)
        write_intakes(self.into, inherited, found)
        return list(texts)

    def __repr__(self) -> str:
        first = shown_name(self.folders[0].name)
        return f"{len(self.folders)} intakes of {self.contract.client} / {self.contract.contract} from {first} on"


@dataclass
class ChunkResult:
    """What came of a chunk: rows by dataset, a line for each that failed or was refused, texts that nobody had encoded
    before, the most memory that server and child took together (what they share counts twice), and what the answers of
    a language model took, one for each intake.
    """

    rows: Counter[str] = field(default_factory=Counter)
    lines: list[tuple[str, str, str]] = field(default_factory=list)
    texts_missed: int = 0
    memory_mb: float = 0.0
    usage: list[Usage] = field(default_factory=list)


@dataclass(frozen=True, repr=False)
class WorkChunk:
    """Intakes that were read into the folder `read`, with the vectors of their passages, to be worked on; their rows
    become files called `part` in the datasets' folders below `into`.
    """

    ANSWER: ClassVar[Any] = ChunkResult
    contract: ContractFolder
    heading: ResultKey
    part: str
    count_from: int
    count_of: int
    read: Path = Path()
    into: Path = Path()

    def at(self, read: Path, made: Path) -> "WorkChunk":
        """Returns the job that reads from the one folder and writes into the other."""
        return replace(self, read=read, into=made)

    def run(self, state: WorkerState, report: Report) -> ChunkResult:
        """The rows' numbers, and who failed or was refused."""
        settings = state.setup.settings
        contract = self.contract
        terms = ContractTerms.of(contract, settings)
        state.load(self.contract.settings.industry)
        worked = ChunkResult()
        rows: dict[str, Columns] = {}
        inherited = read_inherited(self.read)
        for number, (name, intake) in enumerate(read_intakes(self.read), start=self.count_from):
            outcome = (
                unread_outcome(intake.intake_id, name, intake.reason)
                if isinstance(intake, Unread)
                else self._work(state, intake, inherited, terms, worked)
            )
            for dataset, columns in outcome.rows.items():
                whole = rows.setdefault(dataset, {column: [] for column in columns})
                for column, values in columns.items():
                    whole[column] += values
            if outcome.status != "generated":
                worked.lines.append((outcome.status, name, outcome.summary.split(": ", 1)[1]))
            report(
                f"{self.contract.client} / {self.contract.contract}: intake {number} of {self.count_of}, "
                f"{name}: {outcome.summary}"
            )
        worked.rows = write_part(self.heading, rows, self.into, self.part)
        worked.memory_mb += peak_mb()
        return worked

    def _work(
        self, state: WorkerState, intake: Intake, inherited: Inherited, terms: ContractTerms, worked: ChunkResult
    ) -> IntakeOutcome:
        try:
            outcome, missed, memory_mb = state.working.do((intake, terms, self.read))
        except LostWorker as lost:
            return failed_outcome(with_inherited(intake, inherited), str(lost))
        worked.texts_missed += missed
        worked.memory_mb = max(worked.memory_mb, memory_mb)
        worked.usage += [outcome.usage] if outcome.usage else []
        return outcome

    def __repr__(self) -> str:
        return f"{self.contract.client} / {self.contract.contract}, part {self.part}"


# The heap of the driver holds what is sent at once, packed, and what comes back, some 14 kB an intake.
WAVE_BYTES, WAVE_CHUNKS = 96 << 20, 128
Chunk = ReadChunk | WorkChunk


@dataclass(frozen=True)
class SparkChunks:
    """Does chunks on the executors of a session, whose workers load the snapshot once."""

    session: "SparkSession"
    setup: GenerationSetup
    run: str = field(default_factory=lambda: uuid4().hex)

    def do(
        self,
        jobs: Sequence[Chunk],
        read: Sequence[Path] | None,
        made: Sequence[Path],
        progress: Callable[[int], None],
    ) -> list[Any]:
        """Returns the answers of the jobs in order: see `BulkRun._do`.

        Raises OpusError with the reason of the first job that failed, after all jobs have run.
        """
        answers: list[Answer] = []
        setup = self._setup_to_carry()
        for wave in waves(jobs, read):
            before = len(answers)
            tasks = Tasks(jobs=1, progress=partial(_tell, progress, before), run=self.run)
            answers += carry(self.session, setup, wave, made[before : before + len(wave)], tasks)
        for succeeded, reason in answers:
            if not succeeded:
                raise OpusError(reason)
        return [answer for _, answer in answers]

    def _setup_to_carry(self) -> GenerationSetup:
        setup = self.setup
        is_shared = setup.settings.spark.shared_files
        archive = None if is_shared else brought(self.session, Lake(setup.lake), setup.snapshot)
        return replace(setup, archive=archive)


def _tell(progress: Callable[[int], None], before: int, done: int) -> None:
    progress(before + done)


def waves(
    jobs: Sequence[Chunk], read: Sequence[Path] | None, chunks: int = WAVE_CHUNKS, packed_bytes: int = WAVE_BYTES
) -> Iterator[list[Carried]]:
    """Yields the jobs that are sent at once, in order, with the files of their folders of `read`: so many chunks, and
    no more once their files have so many bytes, packed.
    """
    wave: list[Carried] = []
    for number, job in enumerate(jobs):
        files = sorted(read[number].iterdir()) if read else []
        wave.append(Carried.of(job, **{file.name: file.read_bytes() for file in files}))
        if len(wave) == chunks or sum(one.packed_size for one in wave) >= packed_bytes:
            yield wave
            wave = []
    if wave:
        yield wave
