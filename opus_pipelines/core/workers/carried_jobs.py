"""Runs jobs in parallel on Spark executors that share no folder with the run: a job's files travel with its row.

A row of Arrow holds the job and the files that it reads; the answer's rows hold what it wrote, piece by piece, and
then what it answered. Jobs, setups and answers are JSON of declared records (`record_json`), and everything travels
compressed: what an executor answers cannot run code in the driver, nor write a file outside of the job's folder. Only
functions and the names of types are pickled, by Spark, on the way to executors. Each Python worker of Spark has one
worker process of its own, which a job that fails or is killed does not take along.

The archive by which Spark brings this package to its executors, so that they need only what the package depends on.
Spark unpacks it in the working directory of each executor, whose Python finds it there first.
"""

import os
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path, PurePosixPath
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, Protocol
from uuid import uuid4
from zipfile import ZIP_DEFLATED, ZipFile, ZipInfo

from opus_pipelines.core.checkout import PACKAGE, SQL
from opus_pipelines.core.errors import OpusError
from opus_pipelines.core.workers.pool import Answer, Job, Setup, Worker
from opus_pipelines.core.workers.record_json import RecordError, record_json, record_of

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import SparkSession


FOLDER = "opus_package"  # in the working directory of an executor
ARCHIVES, PYTHON_PATH, SAFE_PATH = "spark.archives", "spark.executorEnv.PYTHONPATH", "spark.executorEnv.PYTHONSAFEPATH"
_EPOCH = (1980, 1, 1, 0, 0, 0)  # the first moment that a zip file can state


def write_archive(path: Path) -> Path:
    """Writes the files of this package to an archive and returns its path. The same package gives the same bytes."""
    path.parent.mkdir(parents=True, exist_ok=True)
    made = path.with_name(f"{path.name}.{os.getpid()}")
    with ZipFile(made, "w", ZIP_DEFLATED) as archive:
        for name, file in _files():
            archive.writestr(ZipInfo(name, _EPOCH), file.read_bytes(), ZIP_DEFLATED)
    made.replace(path)
    return path


def executor_conf(archive: Path, conf: Mapping[str, str]) -> dict[str, str]:
    """Returns the Spark settings that bring the archive to executors, added to what `conf` states already."""
    archives = [one for one in (conf.get(ARCHIVES), f"{archive}#{FOLDER}") if one]
    paths = [FOLDER, *(one for one in (conf.get(PYTHON_PATH),) if one)]
    return {ARCHIVES: ",".join(archives), PYTHON_PATH: os.pathsep.join(paths), SAFE_PATH: "1"}


def _files() -> Iterator[tuple[str, Path]]:
    for root in (PACKAGE, SQL):
        for file in sorted(root.rglob("*")):
            if file.is_file() and not {"__pycache__", "_checkout"} & set(file.relative_to(root).parts):
                yield f"{root.name}/{file.relative_to(root).as_posix()}", file


_POLL_SECONDS = 1.0


class TaskCounter:
    """Calls `progress` about once a second with the number of finished tasks of the running stage of `count` tasks."""

    def __init__(self, session: "SparkSession", count: int, progress: Callable[[int], None]) -> None:
        self._tracker = session.sparkContext.statusTracker()
        self._count, self._progress = count, progress
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)

    def __enter__(self) -> None:
        self._thread.start()

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()

    def _watch(self) -> None:
        while not self._over.wait(_POLL_SECONDS):
            stages = (self._tracker.getStageInfo(stage) for stage in self._tracker.getActiveStageIds())
            for stage in stages:
                if stage is not None and stage.numTasks == self._count:
                    self._progress(stage.numCompletedTasks)


MADE_COLUMNS = "number int, succeeded boolean, name string, size int, content binary"
CODEC = "zstd"
_PIECE = 8 << 20  # bytes of a made file in one row
_MADE = "made"
_TRIES = 2


class CarriedSetup(Protocol):
    """A declared record from which executors make the setup of their worker processes."""

    def there(self) -> Setup:
        """Returns the setup, on an executor."""
        ...


class CarriedJob(Protocol):
    """A declared record that names the contents that a job reads, and can be laid out in any folder."""

    ANSWER: ClassVar[Any]  # the declared type of what the job answers

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
    setup: CarriedSetup,
    jobs: Sequence[Carried],
    into: Sequence[Path],
    tasks: Tasks | None = None,
) -> list[Answer]:
    """Runs the jobs on Spark and returns, in order, whether each succeeded, with its answer or the reason.

    What a job wrote lies afterwards in its folder of `into`, under the same names. A job whose process ends is tried
    once more; one whose executor is lost is repeated by Spark. Raises OpusError where an executor answers something
    that is no answer of the job.
    """
    import pyarrow as pa

    if not jobs:
        return []
    tasks = tasks or Tasks()
    rows = list(_rows(jobs, tasks))
    asked = session.createDataFrame(pa.Table.from_batches(rows))
    kinds = {type(carried.job).__name__: type(carried.job) for carried in jobs}
    there = _There(tasks.run, type(setup), record_json(setup, type(setup)), kinds)
    made = asked.mapInArrow(partial(_run, there), MADE_COLUMNS)
    answers: dict[int, Answer] = {}
    with TaskCounter(session, len(rows), tasks.progress):
        found = made.toArrow()
    for batch in found.to_batches():
        for row in batch.to_pylist():
            number, content = row["number"], _unpacked(row)
            if row["name"] is not None:
                place = _place(into[number], row["name"])
                place.parent.mkdir(parents=True, exist_ok=True)
                with place.open("ab") as file:
                    file.write(content)
            elif row["succeeded"]:
                answers[number] = True, record_of(content, jobs[number].job.ANSWER)
            else:
                answers[number] = False, record_of(content, str)
    if set(answers) != set(range(len(jobs))):
        raise OpusError(f"executors answered {len(answers):,} of {len(jobs):,} jobs")
    return [answers[number] for number in range(len(jobs))]


def _place(folder: Path, name: str) -> Path:
    """Returns where a file that a job wrote belongs. Raises OpusError for a place outside of the folder."""
    path = PurePosixPath(name)
    if path.is_absolute() or ".." in path.parts or not path.parts or "\0" in name:
        raise OpusError(f"an executor wrote a file called {name[:200]!r}, which is outside of its folder")
    return folder / path


def _rows(jobs: Sequence[Carried], tasks: Tasks) -> "Iterator[pa.RecordBatch]":
    """Yields a batch for each task of Spark's."""
    import pyarrow as pa

    content = pa.struct([("name", pa.string()), ("size", pa.int32()), ("content", pa.binary())])
    schema = pa.schema([("number", pa.int32()), ("job", content), ("contents", pa.list_(content))])
    waiting: list[dict[str, Any]] = []
    size = 0
    for number, carried in enumerate(jobs):
        kind = type(carried.job)
        text = record_json(carried.job, kind).encode()
        job = Content(kind.__name__, len(text), _packed(text))
        contents = [one._asdict() for one in carried.contents]
        waiting.append({"number": number, "job": job._asdict(), "contents": contents})
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


def _unpacked(one: Mapping[str, Any]) -> bytes:
    import pyarrow as pa

    content: bytes = pa.decompress(one["content"], one["size"], CODEC, asbytes=True)
    return content


# --- in Spark's Python workers


@dataclass(frozen=True)
class _There:
    """What Spark pickles with the function: the types of what is sent as JSON, by name, and the setup."""

    run: str
    setup_kind: type[CarriedSetup]
    setup: str
    job_kinds: Mapping[str, type[CarriedJob]]


_workers: dict[str, Worker] = {}  # that of the latest run


def _run(there: _There, batches: "Iterator[pa.RecordBatch]") -> "Iterator[pa.RecordBatch]":
    for batch in batches:
        for row in batch.to_pylist():
            yield from _made(there, row)


def _made(there: _There, row: dict[str, Any]) -> "Iterator[pa.RecordBatch]":
    kind = there.job_kinds[row["job"]["name"]]
    with TemporaryDirectory(prefix="opus-") as folder:
        made = Path(folder) / _MADE
        made.mkdir()
        for one in row["contents"]:
            (Path(folder) / one["name"]).write_bytes(_unpacked(one))
        try:
            job = record_of(_unpacked(row["job"]), kind).at(Path(folder), made)
            succeeded, answer = _answer(there, job)
        except RecordError as error:  # settings may name what this machine does not know
            succeeded, answer = False, str(error)
        for path in sorted(path for path in made.rglob("*") if path.is_file()) if succeeded else ():
            name = path.relative_to(made).as_posix()
            with path.open("rb") as file:
                while piece := file.read(_PIECE):
                    yield _batch(row["number"], True, name, piece)
        yield _batch(row["number"], succeeded, None, record_json(answer, kind.ANSWER if succeeded else str).encode())


def _answer(there: _There, job: Job) -> Answer:
    reason = ""
    for _ in range(_TRIES):
        try:
            return True, _worker_of(there).do(job)
        except OpusError as error:
            reason = str(error)
    return False, reason


def _worker_of(there: _There) -> Worker:
    """Returns this process's worker for the jobs of a run; ends the worker of an earlier one."""
    if there.run not in _workers:
        for other in list(_workers):
            _workers.pop(other).end()
        _workers[there.run] = Worker(record_of(there.setup, there.setup_kind).there())
    return _workers[there.run]


def _batch(number: int, succeeded: bool, name: str | None, content: bytes) -> "pa.RecordBatch":
    """Returns a row: a piece of a file that the job wrote, or its answer, which has no name."""
    import pyarrow as pa

    return pa.RecordBatch.from_arrays(
        [
            pa.array([number], pa.int32()),
            pa.array([succeeded]),
            pa.array([name], pa.string()),
            pa.array([len(content)], pa.int32()),
            pa.array([_packed(content)], pa.binary()),
        ],
        ["number", "succeeded", "name", "size", "content"],
    )
