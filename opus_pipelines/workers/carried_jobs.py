"""Runs jobs on Spark executors that share no folder with the run: a job's files travel with its row, both ways.

A row holds the job and the files that it reads; the answer's rows hold what it wrote, piece by piece, and then what it
answered. All travel compressed. As in `spark_executor`, a job runs in a process that may be killed.
"""

import pickle
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol
from uuid import uuid4

from opus_pipelines.core.errors import OpusError
from opus_pipelines.workers.jobs import Job, Setup
from opus_pipelines.workers.spark_executor import worker_of
from opus_pipelines.workers.worker import Answer

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import SparkSession

MADE_COLUMNS = "number int, succeeded boolean, answer binary, name string, size int, content binary"
CODEC = "zstd"
TOGETHER_BYTES, TOGETHER_JOBS = 32 << 20, 256  # of small jobs that are one task of Spark's
_PIECE = 8 << 20  # bytes of a made file in one row
_MADE = "made"
_TRIES = 2


class CarriedJob(Protocol):
    """A job that names the contents that it reads, and can be laid out in any folder; it is pickled without them."""

    def at(self, read: Path, made: Path) -> Job:
        """Returns the job that reads its contents below `read` and writes files into the folder `made`."""
        ...


class Content(NamedTuple):
    """A file that a job reads: its name, its size in bytes, and its bytes, packed."""

    name: str
    size: int
    content: bytes


@dataclass(frozen=True)
class Carried:
    """A job with the contents of the files that it reads."""

    job: CarriedJob
    contents: tuple[Content, ...]

    @classmethod
    def of(cls, job: CarriedJob, **contents: bytes) -> "Carried":
        """Packs the contents of the files, by name."""
        return cls(job, tuple(Content(name, len(one), _packed(one)) for name, one in contents.items()))

    @property
    def size(self) -> int:
        """The bytes of the contents."""
        return sum(one.size for one in self.contents)

    @property
    def packed_size(self) -> int:
        """The bytes that travel, all of which the heap of the driver holds."""
        return sum(len(one.content) for one in self.contents)


def carry(session: "SparkSession", setup: Setup, jobs: Sequence[Carried], into: Path) -> list[Answer]:
    """Runs the jobs on Spark and returns, in order, whether each succeeded, with its answer or the reason.

    What job number n wrote lies in the folder `into`/n afterwards. A job whose process ends is tried once more; one
    whose executor is lost is repeated by Spark.
    """
    import pyarrow as pa

    if not jobs:
        return []
    rows = pa.Table.from_batches(list(_rows(jobs)))
    made = session.createDataFrame(rows).mapInArrow(partial(_run, uuid4().hex, pickle.dumps(setup)), MADE_COLUMNS)
    answers: dict[int, Answer] = {}
    for batch in made.toArrow().to_batches():
        for row in batch.to_pylist():
            if row["name"] is None:
                answers[row["number"]] = row["succeeded"], pickle.loads(row["answer"])
            else:
                place = into / str(row["number"])
                place.mkdir(parents=True, exist_ok=True)
                with (place / row["name"]).open("ab") as file:
                    file.write(pa.decompress(row["content"], row["size"], CODEC))
    return [answers[number] for number in range(len(jobs))]


def _rows(jobs: Sequence[Carried]) -> "Iterator[pa.RecordBatch]":
    """Yields a batch for each task of Spark's."""
    import pyarrow as pa

    content = pa.struct([("name", pa.string()), ("size", pa.int32()), ("content", pa.binary())])
    schema = pa.schema([("number", pa.int32()), ("job", pa.binary()), ("contents", pa.list_(content))])
    waiting: list[dict[str, Any]] = []
    size = 0
    for number, carried in enumerate(jobs):
        contents = [one._asdict() for one in carried.contents]
        waiting.append({"number": number, "job": pickle.dumps(carried.job), "contents": contents})
        size += carried.size
        if size >= TOGETHER_BYTES or len(waiting) >= TOGETHER_JOBS:
            yield pa.RecordBatch.from_pylist(waiting, schema)
            waiting, size = [], 0
    if waiting:
        yield pa.RecordBatch.from_pylist(waiting, schema)


def _packed(content: bytes) -> bytes:
    import pyarrow as pa

    packed: bytes = pa.compress(content, CODEC, asbytes=True)
    return packed


# --- in Spark's Python workers


def _run(run: str, setup: bytes, batches: "Iterator[pa.RecordBatch]") -> "Iterator[pa.RecordBatch]":
    for batch in batches:
        for row in batch.to_pylist():
            yield from _made(run, setup, row)


def _made(run: str, setup: bytes, row: dict[str, Any]) -> "Iterator[pa.RecordBatch]":
    import pyarrow as pa

    with TemporaryDirectory(prefix="opus-") as folder:
        made = Path(folder) / _MADE
        made.mkdir()
        for one in row["contents"]:
            (Path(folder) / one["name"]).write_bytes(pa.decompress(one["content"], one["size"], CODEC))
        succeeded, answer = _answer(run, setup, pickle.loads(row["job"]).at(Path(folder), made))
        for path in sorted(made.iterdir()) if succeeded else ():
            with path.open("rb") as file:
                while piece := file.read(_PIECE):
                    yield _batch(row["number"], True, None, (path.name, len(piece), _packed(piece)))
        yield _batch(row["number"], succeeded, pickle.dumps(answer), (None, None, None))


def _answer(run: str, setup: bytes, job: Job) -> Answer:
    reason = ""
    for _ in range(_TRIES):
        try:
            return True, worker_of(run, setup).do(job)
        except OpusError as error:
            reason = str(error)
    return False, reason


def _batch(
    number: int, succeeded: bool, answer: bytes | None, made: tuple[str | None, int | None, bytes | None]
) -> "pa.RecordBatch":
    import pyarrow as pa

    name, size, content = made
    return pa.RecordBatch.from_arrays(
        [
            pa.array([number], pa.int32()),
            pa.array([succeeded]),
            pa.array([answer], pa.binary()),
            pa.array([name], pa.string()),
            pa.array([size], pa.int32()),
            pa.array([content], pa.binary()),
        ],
        ["number", "succeeded", "answer", "name", "size", "content"],
    )
