"""Jobs done side by side by Spark: each of its Python workers has a server of its own.

Spark is handed the jobs' numbers only. The jobs, and what they make, lie in files: so nothing large passes through the
JVM.
"""

import pickle
import threading
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from opus_pipelines.core.errors import OpusError
from opus_pipelines.workers.worker import Worker

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import SparkSession

_SETUP, _JOB, _ANSWER = "setup.pkl", "job-{}.pkl", "answer-{}.pkl"
_LOOK_SECONDS = 1.0


def on_spark(
    session: "SparkSession", setup: Any, jobs: Sequence[Any], folder: Path, progress: Callable[[int], None]
) -> list[Any]:
    """What each job comes to, in order. `folder` is for the jobs' files alone, and seen by all workers; `progress(jobs
    done)` is called now and then.

    Raises OpusError with the first job's reason that failed; the others are done all the same.
    """
    folder.mkdir(parents=True)
    (folder / _SETUP).write_bytes(pickle.dumps(setup))
    for number, job in enumerate(jobs):
        (folder / _JOB.format(number)).write_bytes(pickle.dumps(job))
    numbers = session.range(0, len(jobs), 1, numPartitions=len(jobs))
    with _Watching(folder, progress):
        numbers.mapInArrow(partial(_do_partition, str(folder)), "number long").collect()
    answers = [pickle.loads((folder / _ANSWER.format(number)).read_bytes()) for number in range(len(jobs))]
    for went_well, said in answers:
        if not went_well:
            raise OpusError(said)
    return [said for _, said in answers]


class _Watching:
    """Calls `progress` with the number of answers while the jobs are done."""

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
        while not self._over.wait(_LOOK_SECONDS):
            self._progress(sum(1 for _ in self._folder.glob(_ANSWER.format("*"))))


# --- in Spark's Python workers

_here: dict[str, Worker] = {}


def _do_partition(folder: str, batches: "Iterator[pa.RecordBatch]") -> "Iterator[pa.RecordBatch]":
    import pyarrow as pa

    for batch in batches:
        for number in batch.column(0).to_pylist():
            _do(Path(folder), number)
        yield pa.RecordBatch.from_arrays([batch.column(0)], ["number"])


def _do(folder: Path, number: int) -> None:
    try:
        answer = True, _server(folder).do(pickle.loads((folder / _JOB.format(number)).read_bytes()))
    except OpusError as error:
        answer = False, str(error)
    unfinished = folder / f"unfinished-{number}"
    unfinished.write_bytes(pickle.dumps(answer))
    unfinished.rename(folder / _ANSWER.format(number))


def _server(folder: Path) -> Worker:
    """This worker's server for the jobs of `folder`; an earlier folder's is ended."""
    key = str(folder)
    if key not in _here:
        for other in list(_here):
            _here.pop(other).end()
        _here[key] = Worker(pickle.loads((folder / _SETUP).read_bytes()))
    return _here[key]
