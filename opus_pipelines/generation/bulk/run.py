"""A run over contracts, few intakes or many: what they share is loaded once, each contract's result is staged alone.

Worker processes of this machine do the chunks of a contract, at most one for each core. On a cluster, Spark does them
from `MANY` intakes on (`chunks.SparkChunks`).
"""

import os
import shutil
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from opus_pipelines.core.formatting import Ticker
from opus_pipelines.core.schemas import RESULT_TABLES, RUNS
from opus_pipelines.core.versions import versions_of
from opus_pipelines.core.workers.pool import Worker, side_by_side
from opus_pipelines.generation.bulk.chunks import (
    Chunk,
    ChunkResult,
    GenerationSetup,
    ReadChunk,
    SparkChunks,
    WorkChunk,
    second_reader_of,
    transcriber_of,
)
from opus_pipelines.generation.results.contract import ContractResult, StagedTables, write_part
from opus_pipelines.generation.results.ids import result_id, settings_hash
from opus_pipelines.intakes.intake import ContractFolder
from opus_pipelines.intakes.stored import write_vectors
from opus_pipelines.lake.layout import PART
from opus_pipelines.lake.results import ResultKey, by_column
from opus_pipelines.language.embedding.encoder import TextEncoder
from opus_pipelines.lwm.interface import Usage, backend_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


MANY = 500  # intakes of a contract from which Spark on a cluster pays
CHUNK = 125  # intakes a file: a worker's rows of one chunk are some 50 MB before they are written
Progress = Callable[[str], None]


@dataclass(frozen=True)
class BulkSize:
    """`many` intakes of a contract start Spark on a cluster; the rows of `chunk` intakes are one file."""

    many: int = MANY
    chunk: int = CHUNK


class BulkRun:
    """Generates contract after contract from one snapshot; a context manager that ends its worker processes."""

    def __init__(
        self,
        setup: GenerationSetup,
        encoder: TextEncoder,
        session: "Callable[[], SparkSession] | None",
        progress: Progress,
        size: BulkSize = BulkSize(),
    ) -> None:
        """`setup` names the lake, the snapshot and the settings. `session` starts Spark; None: there is no cluster."""
        self.snapshot, self.settings, self.encoder = setup.snapshot, setup.settings, encoder
        self._session, self._progress = session, progress
        self._setup, self._size = setup, size
        self._tells_each = True  # whether a line tells of each intake
        self._workers = [Worker(setup, self._tell)]
        self._on_spark: SparkChunks | None = None

    def __enter__(self) -> "BulkRun":
        return self

    def __exit__(self, *_: object) -> None:
        self._end_workers()

    def _end_workers(self) -> None:
        for worker in self._workers:
            worker.end()

    def _tell(self, line: str) -> None:
        if self._tells_each:
            self._progress(line)

    def generate(
        self, contract: ContractFolder, folder: Path, run_id: str, now: datetime, attempt: int = 1
    ) -> ContractResult:
        """A contract's result, its tables staged in `folder`. `now` stands in generation/runs alone; `attempt`: see
        `result_id`. Raises OpusError where a whole chunk is lost; an intake that fails costs only itself.
        """
        model = backend_of(self.settings)
        transcriber_of(self.settings, contract.client)
        second_reader_of(self.settings, contract.client)  # settings that lack something end the run, not each intake
        heading = ResultKey(
            contract.client, contract.contract, result_id(contract, self.snapshot, self.settings, model, attempt)
        )
        tables = StagedTables(folder / "tables", [d.name for d in (*RESULT_TABLES, RUNS)])
        result = ContractResult(
            contract.client, contract.contract, heading.result, self.snapshot, model.version, tables, attempt=attempt
        )
        seconds: dict[str, float] = {}
        read = self._read(contract, folder / "work", seconds)
        worked = self._work(contract, heading, read, tables.folder, seconds)
        for part in worked:
            for status, name, reason in part.lines:
                result.tell(status, name, reason)
        result.memory_mb = max((part.memory_mb for part in worked), default=0.0)
        result.texts_missed = sum(part.texts_missed for part in worked)
        usage = Usage.total(one for part in worked for one in part.usage)
        row = {
            "run_id": run_id,
            "generated_at": now,
            "seconds": list(seconds.items()),
            "snapshot": self.snapshot,
            "code_version": versions_of("result"),
            "settings_hash": settings_hash(self.settings),
            **(
                {"tokens_in": usage.tokens_in, "tokens_out": usage.tokens_out, "cost_model_usd": usage.cost_usd}
                if usage
                else {}
            ),
        }
        write_part(heading, {RUNS.name: by_column(RUNS, [row])}, tables.folder, PART)
        shutil.rmtree(folder / "work")
        return result

    def _read(self, contract: ContractFolder, work: Path, seconds: dict[str, float]) -> list[Path]:
        """Every intake read, in the order of its id, and every passage encoded; the folders of the chunks."""
        intakes = sorted(contract.intakes, key=contract.intake_id)
        cuts = range(0, len(intakes), self._size.chunk)
        alone = replace(contract, intakes=())  # each job names its own
        jobs = [ReadChunk(alone, tuple(intakes[i : i + self._size.chunk])) for i in cuts]
        folders = [work / str(number) for number in range(len(jobs))]
        work.mkdir(parents=True)  # also for a contract without intakes
        for folder in folders:
            folder.mkdir()
        with _timed(seconds, "read"):
            found: list[list[str]] = self._do(contract, jobs, None, folders, "intakes read")
            texts = list(dict.fromkeys(text for part in found for text in part))
        with _timed(seconds, "encode"):
            vectors = self.encoder.encode(texts, Ticker("passages encoded", self._progress))
            places = {text: place for place, text in enumerate(texts)}
            for folder, part in zip(folders, found, strict=True):
                write_vectors(folder, part, vectors[[places[text] for text in part]])
        return folders

    def _work(
        self,
        contract: ContractFolder,
        heading: ResultKey,
        read: Sequence[Path],
        tables: Path,
        seconds: dict[str, float],
    ) -> list[ChunkResult]:
        alone = replace(contract, intakes=())
        jobs = [
            WorkChunk(
                alone,
                heading,
                f"part-{number:05d}.parquet",
                count_from=1 + number * self._size.chunk,
                count_of=len(contract.intakes),
            )
            for number in range(len(read))
        ]
        with _timed(seconds, "work"):
            return self._do(contract, jobs, read, [tables] * len(jobs), "intakes done")

    def _do(
        self,
        contract: ContractFolder,
        jobs: Sequence[Chunk],
        read: Sequence[Path] | None,
        made: Sequence[Path],
        what: str,
    ) -> list[Any]:
        """The answers of the jobs, each of which reads from its folder of `read`, or from the contract where that is
        None, and writes into its folder of `made`.
        """
        of, chunk = len(contract.intakes), self._size.chunk
        ticker = Ticker(f"{contract.client} / {contract.contract}: {what}", self._progress)
        tell = lambda done: ticker(min(done * chunk, of), of)
        is_found = read is not None or self.settings.spark.shared_files  # do executors find what the jobs read
        if self._session is not None and of >= self._size.many and is_found:
            self._end_workers()  # their memory is for Spark's
            self._on_spark = self._on_spark or SparkChunks(self._session(), self._setup)
            return self._on_spark.do(jobs, read, made, tell)
        count = max(1, min(len(os.sched_getaffinity(0)), of // chunk))
        self._tells_each = count == 1
        self._workers += [Worker(self._setup, self._tell) for _ in range(count - len(self._workers))]
        here = [job.at(*places) for job, *places in zip(jobs, read or made, made, strict=True)]
        return side_by_side(self._workers[:count], here, (lambda _: None) if self._tells_each else tell)


@contextmanager
def _timed(seconds: dict[str, float], stage: str) -> Iterator[None]:
    began = time.monotonic()
    yield
    seconds[stage] = time.monotonic() - began
