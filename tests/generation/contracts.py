"""Contracts generated as `opus generate` does it, with the records that lie behind the rows of each workflow."""

import pickle
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from itertools import count
from pathlib import Path
from typing import Any

from opus_pipelines.core.settings import Settings
from opus_pipelines.core.workers.sandbox import Sandbox
from opus_pipelines.generation.bulk.chunks import GenerationSetup, IntakeOutcome, WorkerState
from opus_pipelines.generation.bulk.run import BulkRun
from opus_pipelines.generation.records import Ranked
from opus_pipelines.generation.results.contract import ContractResult
from opus_pipelines.intakes.intake import ContractFolder, Intake
from opus_pipelines.lake.layout import Lake
from opus_pipelines.language.embedding.encoder import TextEncoder
from opus_pipelines.wkg.snapshot import Snapshot

NOW = datetime(2026, 1, 31, tzinfo=UTC)


class RecordingState(WorkerState):
    """Writes down each intake and what was generated for it before the rows go back."""

    def passed_on(self, intake: Intake, outcome: IntakeOutcome) -> IntakeOutcome:
        assert isinstance(self.setup, RecordingSetup)
        with (self.setup.records / intake.folder).open("wb") as file:
            pickle.dump([(intake, made) for made in outcome.ranked], file)
        return super().passed_on(intake, outcome)


@dataclass(frozen=True)
class RecordingSetup(GenerationSetup):
    """`records`: a folder with a file for each intake of the contract that is worked on."""

    records: Path = Path()

    @contextmanager
    def open(self) -> Iterator[RecordingState]:
        state = RecordingState(self)
        limits = self.settings.generation.seconds_per_intake, self.settings.generation.memory_mb_per_intake
        with Sandbox(state.read, *limits) as state.reading, Sandbox(state.work, *limits) as state.working:
            yield state


@dataclass
class RecordedResult(ContractResult):
    """A result with its tables in memory. `made`: what was generated, in the order of the intakes' folders."""

    made: list[tuple[Intake, Ranked]] = field(default_factory=list)


class ContractGenerator:
    """Generates contract after contract from a lake's current snapshot; at its end no worker process is left."""

    def __init__(self, lake: Lake, settings: Settings, encoder: TextEncoder, folder: Path) -> None:
        self._folder, self._numbers, self._records = folder, count(), folder / "records"
        snapshot = Snapshot.open(lake).id
        setup = RecordingSetup(lake.root, snapshot, settings, records=self._records)
        self._run = BulkRun(setup, encoder, _no_spark, lambda line: None)

    def __enter__(self) -> "ContractGenerator":
        return self

    def __exit__(self, *_: object) -> None:
        self._run.__exit__()

    def __call__(self, contract: ContractFolder) -> RecordedResult:
        shutil.rmtree(self._records, ignore_errors=True)
        self._records.mkdir(parents=True)
        result = self._run.generate(contract, self._folder / str(next(self._numbers)), "test", NOW)
        made: list[tuple[Intake, Ranked]] = []
        for file in (self._records / folder.name for folder in contract.intakes):
            made += pickle.loads(file.read_bytes()) if file.exists() else []
        counted = {
            name: getattr(result, name) for name in ("failed", "refused", "attempt", "memory_mb", "texts_missed")
        }
        return RecordedResult(
            result.client,
            result.contract,
            result.result,
            result.snapshot,
            result.model_version,
            dict(result.tables),
            **counted,
            made=made,
        )


def _no_spark() -> Any:
    raise AssertionError("so few intakes need no Spark")
