"""Chunks of intakes done by Spark's executors: the files that a chunk reads go there in its row, what it makes comes
back as rows.

Executors read the snapshot by its path. Where they share no folder with the run, Spark brings it to them
(`wkg.snapshot`), and the documents of intakes are read by the driver's machine.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from opus_pipelines.core.errors import OpusError
from opus_pipelines.core.workers.carried_jobs import Carried, Tasks, carry
from opus_pipelines.core.workers.pool import Answer
from opus_pipelines.generation.bulk.chunks import GenerationSetup, ReadChunk, WorkChunk
from opus_pipelines.lake.layout import Lake
from opus_pipelines.wkg.snapshot import brought

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

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
