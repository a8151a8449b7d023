"""The two jobs of a chunk of a contract's intakes: read their documents, and, when the passages are encoded, work on them.

Each intake is read and worked on by a child that may be killed; what became of it is a row either way.
"""

import pickle
import resource
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path

from opus_pipelines.embedding.attention import words_of
from opus_pipelines.embedding.cache import CachedEncoder
from opus_pipelines.embedding.encoder import Encoder
from opus_pipelines.generation.bulk.killable import Killable, Lost
from opus_pipelines.generation.bulk.vectors import LookedUp
from opus_pipelines.generation.contract_settings import prices
from opus_pipelines.generation.discover import ContractFolder
from opus_pipelines.generation.intake import Intake, read_intake
from opus_pipelines.generation.knowledge import Knowledge
from opus_pipelines.generation.outcome import Outcome, Terms, failed_outcome, outcome_of, unread_outcome
from opus_pipelines.generation.reading import texts_to_encode
from opus_pipelines.generation.rows import Row
from opus_pipelines.generation.staged import Heading, write_part
from opus_pipelines.intention.elements import Element, contract_elements
from opus_pipelines.intention.encode import passages_of
from opus_pipelines.lake import Lake
from opus_pipelines.lwm.history import HistoryBackend
from opus_pipelines.settings import Settings
from opus_pipelines.wkg.snapshot import Snapshot

Tell = Callable[[str], None]


@dataclass(frozen=True)
class GenerationSetup:
    """What a server must know to work on any contract: the lake, one snapshot of it, the settings."""

    lake: Path
    snapshot: str
    settings: Settings

    @contextmanager
    def bench(self) -> Iterator["Bench"]:
        """Where chunks are worked on."""
        bench = Bench(self)
        limits = self.settings.generation.seconds_per_intake, self.settings.generation.memory_mb_per_intake
        with Killable(bench.read, *limits) as bench.reading, Killable(bench.work, *limits) as bench.working:
            yield bench


class Bench:
    """One server's knowledge, loaded when the first chunk needs it, and its two killable children."""

    reading: Killable[tuple[ContractFolder, Path], Intake]
    working: Killable[tuple[Intake, Terms, Path], tuple[Outcome, int]]

    def __init__(self, setup: GenerationSetup) -> None:
        self.setup = setup
        self._encoders: dict[Path, LookedUp] = {}
        self._inherited: dict[Path, tuple[Element, ...]] = {}

    @cached_property
    def knowledge(self) -> Knowledge:
        """The snapshot, whole: what is loaded before a child is forked is loaded once."""
        knowledge = Knowledge(Snapshot.open(Lake(self.setup.lake), self.setup.snapshot))
        knowledge.load()
        return knowledge

    def read(self, item: tuple[ContractFolder, Path]) -> Intake:
        """In a child: one intake."""
        contract, folder = item
        if contract.documents not in self._inherited:
            self._inherited = {contract.documents: contract_elements(contract.documents)}
        return read_intake(contract, folder, self.setup.settings, self._inherited[contract.documents])

    def work(self, item: tuple[Intake, Terms, Path]) -> tuple[Outcome, int]:
        """In a child: what becomes of one intake, and how many texts nobody had encoded for it."""
        intake, terms, vectors = item
        encoder = self._encoder(vectors)
        before = encoder.missed
        outcome = outcome_of(intake, terms, self.knowledge, encoder, HistoryBackend(), self.setup.settings)
        return replace(outcome, made=[]), encoder.missed - before

    def _encoder(self, vectors: Path) -> LookedUp:
        if vectors not in self._encoders:
            settings = self.setup.settings.encoder
            cached = CachedEncoder(Encoder(settings), Lake(self.setup.lake).kept / "embeddings")
            self._encoders = {vectors: LookedUp(vectors, cached)}
        return self._encoders[vectors]


@dataclass(frozen=True, repr=False)
class ReadChunk:
    """Intakes to read; what they hold goes to the file `into`, their passages come back."""

    contract: ContractFolder
    folders: tuple[Path, ...]
    into: Path

    def done_at(self, bench: Bench, tell: Tell) -> list[str]:
        """The distinct passages of these intakes."""
        found: list[tuple[str, Intake | Outcome]] = []
        texts: dict[str, None] = {}
        words = words_of(bench.setup.settings.encoder.max_tokens)
        for folder in self.folders:
            try:
                intake = bench.reading.do((self.contract, folder))
            except Lost as lost:
                found.append((folder.name, unread_outcome(self.contract.intake_id(folder), folder.name, str(lost))))
                continue
            found.append((folder.name, intake))
            if not intake.refusal:
                texts |= dict.fromkeys(p.text for p in passages_of(intake.elements, words))
                texts |= dict.fromkeys(texts_to_encode(intake.elements, intake.industry, bench.knowledge.procedures))
        self.into.write_bytes(pickle.dumps(found))
        return list(texts)

    def __repr__(self) -> str:
        return f"{len(self.folders)} intakes of {self.contract.client} / {self.contract.contract} from {self.folders[0].name} on"


@dataclass
class Worked:
    """What came of a chunk: rows by dataset, intakes by status, a line for each that failed or was refused, and what it took."""

    rows: Counter[str] = field(default_factory=Counter)
    lines: list[tuple[str, str, str]] = field(default_factory=list)
    texts_missed: int = 0
    memory_mb: float = 0.0


@dataclass(frozen=True, repr=False)
class WorkChunk:
    """Intakes that were read, to be worked on; their rows become files called `part` in the datasets' folders below `into`."""

    contract: ContractFolder
    heading: Heading
    read: Path
    vectors: Path
    into: Path
    part: str
    count_from: int
    count_of: int

    def done_at(self, bench: Bench, tell: Tell) -> Worked:
        """The rows' numbers, and who failed or was refused."""
        settings = bench.setup.settings
        terms = Terms(prices(settings, self.contract.settings, self.contract.folder), self.contract.settings.review)
        bench.knowledge  # noqa: B018 - loaded here, so that children share it
        worked = Worked()
        rows: dict[str, list[Row]] = defaultdict(list)
        found: list[tuple[str, Intake | Outcome]] = pickle.loads(self.read.read_bytes())
        for number, (name, intake) in enumerate(found, start=self.count_from):
            outcome = intake if isinstance(intake, Outcome) else self._work(bench, intake, terms, worked)
            for dataset, row in outcome.rows:
                rows[dataset].append(row)
            if outcome.status != "generated":
                worked.lines.append((outcome.status, name, outcome.said.split(": ", 1)[1]))
            tell(f"{self.contract.client} / {self.contract.contract}: intake {number} of {self.count_of}, {name}: {outcome.said}")
        worked.rows = write_part(self.heading, rows, self.into, self.part)
        worked.memory_mb = max(resource.getrusage(who).ru_maxrss for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)) / 1024
        return worked

    def _work(self, bench: Bench, intake: Intake, terms: Terms, worked: Worked) -> Outcome:
        try:
            outcome, missed = bench.working.do((intake, terms, self.vectors))
        except Lost as lost:
            return failed_outcome(intake, str(lost))
        worked.texts_missed += missed
        return outcome

    def __repr__(self) -> str:
        return f"{self.contract.client} / {self.contract.contract}, part {self.part}"
