"""Runs jobs in parallel on Spark: each Python worker of Spark has one worker process of its own.

Spark receives the numbers of the jobs only. The jobs and their answers lie in files, so nothing large passes through
the JVM.
"""

import pickle
import threading
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from opus_pipelines.core.errors import OpusError
from opus_pipelines.workers.jobs import Job, Setup
from opus_pipelines.workers.worker import Worker

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import SparkSession

_SETUP, _JOB, _ANSWER = "setup.pkl", "job-{}.pkl", "answer-{}.pkl"
_POLL_SECONDS = 1.0


def on_spark(
    session: "SparkSession", setup: Setup, jobs: Sequence[Job], folder: Path, progress: Callable[[int], None]
) -> list[Any]:
    """Runs the jobs on Spark and returns their answers in order.

    `folder` must be empty and visible to all workers; it holds the files of the jobs. `progress` is called about once a
    second with the number of jobs done. Raises OpusError with the reason of the first job that failed, after all jobs
    have run.
    """
    folder.mkdir(parents=True)
    (folder / _SETUP).write_bytes(pickle.dumps(setup))
    for number, job in enumerate(jobs):
        (folder / _JOB.format(number)).write_bytes(pickle.dumps(job))
    numbers = session.range(0, len(jobs), 1, numPartitions=len(jobs))
    with _ProgressWatcher(folder, progress):
        numbers.mapInArrow(partial(_do_partition, str(folder)), "number long").collect()
    answers = [pickle.loads((folder / _ANSWER.format(number)).read_bytes()) for number in range(len(jobs))]
    for succeeded, answer in answers:
        if not succeeded:
            raise OpusError(answer)
    return [answer for _, answer in answers]


class _ProgressWatcher:
    """Calls `progress` with the number of answers while the jobs run."""

    def __init__(self, folder: Path, progress: Callable[[int], None]) -> None:
        self._folder, self._progress = folder, progress
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)

    def __enter__(self) -> None:
        self._thread.start()

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()

    def _watch(self) -> None:
        while not self._over.wait(_POLL_SECONDS):
            self._progress(sum(1 for _ in self._folder.glob(_ANSWER.format("*"))))


# --- in Spark's Python workers

_workers: dict[str, Worker] = {}


def _do_partition(folder: str, batches: "Iterator[pa.RecordBatch]") -> "Iterator[pa.RecordBatch]":
    import pyarrow as pa

    for batch in batches:
        for number in batch.column(0).to_pylist():
            _do(Path(folder), number)
        yield pa.RecordBatch.from_arrays([batch.column(0)], ["number"])


def _do(folder: Path, number: int) -> None:
    try:
        answer = True, _worker_of(folder).do(pickle.loads((folder / _JOB.format(number)).read_bytes()))
    except OpusError as error:
        answer = False, str(error)
    unfinished = folder / f"unfinished-{number}"
    unfinished.write_bytes(pickle.dumps(answer))
    unfinished.rename(folder / _ANSWER.format(number))


def _worker_of(folder: Path) -> Worker:
    """Returns this process's worker for the jobs of `folder`; ends the worker of an earlier folder."""
    key = str(folder)
    if key not in _workers:
        for other in list(_workers):
            _workers.pop(other).end()
        _workers[key] = Worker(pickle.loads((folder / _SETUP).read_bytes()))
    return _workers[key]
