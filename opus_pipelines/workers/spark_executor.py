"""Runs jobs in parallel on Spark: rows with jobs go in, rows with answers come out, both as Arrow batches.

Each Python worker of Spark has one worker process of its own, which a job that fails or is killed does not take along.
Nothing but what the jobs themselves name must lie on storage that all executors see.
"""

import pickle
import threading
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from opus_pipelines.core.errors import OpusError
from opus_pipelines.workers.jobs import Job, Setup
from opus_pipelines.workers.worker import Worker

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import SparkSession

ANSWER_COLUMNS = "number int, succeeded boolean, answer binary"
_POLL_SECONDS = 1.0


def on_spark(session: "SparkSession", setup: Setup, jobs: Sequence[Job], progress: Callable[[int], None]) -> list[Any]:
    """Runs the jobs on Spark, a partition each, and returns their answers in order.

    `progress` is called about once a second with the number of jobs done. Raises OpusError with the reason of the first
    job that failed, after all jobs have run. Spark repeats a job whose executor was lost, so that a job must be able to
    write its files again.
    """
    import pyarrow as pa

    rows = pa.table(
        {
            "number": pa.array(range(len(jobs)), pa.int32()),
            "job": pa.array([pickle.dumps(job) for job in jobs], pa.binary()),
        }
    )
    run = uuid4().hex
    asked = session.createDataFrame(rows).repartitionById(len(jobs), "number")
    answers = asked.mapInArrow(partial(_answers, run, pickle.dumps(setup)), ANSWER_COLUMNS)
    with TaskCounter(session, len(jobs), progress):
        found = answers.toArrow().sort_by("number").to_pylist()
    for row in found:
        if not row["succeeded"]:
            raise OpusError(pickle.loads(row["answer"]))
    return [pickle.loads(row["answer"]) for row in found]


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


# --- in Spark's Python workers

_workers: dict[str, Worker] = {}


def _answers(run: str, setup: bytes, batches: "Iterator[pa.RecordBatch]") -> "Iterator[pa.RecordBatch]":
    import pyarrow as pa

    for batch in batches:
        for number, job in zip(*(column.to_pylist() for column in batch.columns), strict=True):
            succeeded, answer = _answer(run, setup, job)
            yield pa.RecordBatch.from_arrays(
                [pa.array([number], pa.int32()), pa.array([succeeded]), pa.array([answer], pa.binary())],
                ["number", "succeeded", "answer"],
            )


def _answer(run: str, setup: bytes, job: bytes) -> tuple[bool, bytes]:
    try:
        return True, pickle.dumps(worker_of(run, setup).do(pickle.loads(job)))
    except OpusError as error:
        return False, pickle.dumps(str(error))


def worker_of(run: str, setup: bytes) -> Worker:
    """Returns this process's worker for the jobs of a run; ends the worker of an earlier one."""
    if run not in _workers:
        for other in list(_workers):
            _workers.pop(other).end()
        _workers[run] = Worker(pickle.loads(setup))
    return _workers[run]
