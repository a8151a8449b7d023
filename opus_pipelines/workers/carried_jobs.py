"""Runs jobs in parallel on Spark executors that share no folder with the run: a job's files travel with its row.

A row of Arrow holds the job and the files that it reads; the answer's rows hold what it wrote, piece by piece, and then
what it answered. All files travel compressed. Each Python worker of Spark has one worker process of its own, which a
job that fails or is killed does not take along.
"""

import pickle
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol
from uuid import uuid4

from opus_pipelines.core.errors import OpusError
from opus_pipelines.workers.jobs import Job, Setup
from opus_pipelines.workers.spark_tasks import TaskCounter
from opus_pipelines.workers.worker import Answer, Worker

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import SparkSession

MADE_COLUMNS = "number int, succeeded boolean, answer binary, name string, size int, content binary"
CODEC = "zstd"
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


@dataclass(frozen=True)
class Tasks:
    """How jobs become tasks of Spark's: so many of them are one, and no more once their files have so many bytes.

    `progress` is called about once a second with the number of finished tasks. Jobs of one `run` have the same worker
    processes, and one setup.
    """

    jobs: int = 256
    bytes: int = 32 << 20
    progress: Callable[[int], None] = lambda done: None
    run: str = field(default_factory=lambda: uuid4().hex)


def carry(
    session: "SparkSession",
    setup: Callable[[], Setup],
    jobs: Sequence[Carried],
    into: Sequence[Path],
    tasks: Tasks | None = None,
) -> list[Answer]:
    """Runs the jobs on Spark and returns, in order, whether each succeeded, with its answer or the reason.

    `setup` is called on the executors. What a job wrote lies afterwards in its folder of `into`, under the same names.
    A job whose process ends is tried once more; one whose executor is lost is repeated by Spark.
    """
    import pyarrow as pa

    if not jobs:
        return []
    tasks = tasks or Tasks()
    rows = list(_rows(jobs, tasks))
    asked = session.createDataFrame(pa.Table.from_batches(rows))
    made = asked.mapInArrow(partial(_run, tasks.run, pickle.dumps(setup)), MADE_COLUMNS)
    answers: dict[int, Answer] = {}
    with TaskCounter(session, len(rows), tasks.progress):
        found = made.toArrow()
    for batch in found.to_batches():
        for row in batch.to_pylist():
            if row["name"] is None:
                answers[row["number"]] = row["succeeded"], pickle.loads(row["answer"])
            else:
                place = into[row["number"]] / row["name"]
                place.parent.mkdir(parents=True, exist_ok=True)
                with place.open("ab") as file:
                    file.write(pa.decompress(row["content"], row["size"], CODEC))
    return [answers[number] for number in range(len(jobs))]


def _rows(jobs: Sequence[Carried], tasks: Tasks) -> "Iterator[pa.RecordBatch]":
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
        if size >= tasks.bytes or len(waiting) >= tasks.jobs:
            yield pa.RecordBatch.from_pylist(waiting, schema)
            waiting, size = [], 0
    if waiting:
        yield pa.RecordBatch.from_pylist(waiting, schema)


def _packed(content: bytes) -> bytes:
    import pyarrow as pa

    packed: bytes = pa.compress(content, CODEC, asbytes=True)
    return packed


# --- in Spark's Python workers

_workers: dict[str, Worker] = {}  # that of the latest run


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
        for path in sorted(path for path in made.rglob("*") if path.is_file()) if succeeded else ():
            name = path.relative_to(made).as_posix()
            with path.open("rb") as file:
                while piece := file.read(_PIECE):
                    yield _batch(row["number"], True, None, (name, len(piece), _packed(piece)))
        yield _batch(row["number"], succeeded, pickle.dumps(answer), (None, None, None))


def _answer(run: str, setup: bytes, job: Job) -> Answer:
    reason = ""
    for _ in range(_TRIES):
        try:
            return True, _worker_of(run, setup).do(job)
        except OpusError as error:
            reason = str(error)
    return False, reason


def _worker_of(run: str, setup: bytes) -> Worker:
    """Returns this process's worker for the jobs of a run; ends the worker of an earlier one."""
    if run not in _workers:
        for other in list(_workers):
            _workers.pop(other).end()
        _workers[run] = Worker(pickle.loads(setup)())
    return _workers[run]


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
