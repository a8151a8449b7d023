"""Runs jobs in several worker processes at once, where the jobs' order does not matter and their number is known.

`side_by_side` runs them on workers that stay for the next jobs. `WorkerPool` has workers of its own: a job that fails
costs only itself. It is tried once more while no other job runs, because two large jobs may need more memory together
than there is.
"""

from collections import deque
from collections.abc import Callable, Hashable, Mapping, Sequence
from multiprocessing.connection import Connection, wait
from typing import Any, Generic, TypeVar, cast

from opus_pipelines.core.errors import OpusError
from opus_pipelines.core.workers.jobs import Job, Report, Setup
from opus_pipelines.core.workers.sandbox import LostWorker
from opus_pipelines.core.workers.worker import Answer, Worker

Key = TypeVar("Key", bound=Hashable)


def side_by_side(workers: Sequence[Worker], jobs: Sequence[Job], progress: Callable[[int], None]) -> list[Any]:
    """Runs the jobs on the workers, one at a time on each, and returns their answers in order.

    `progress` is called with the number of jobs done. Raises OpusError with the reason of the first job that failed,
    after all jobs have run.
    """
    waiting, idle = deque(enumerate(jobs)), list(workers)
    busy: dict[Connection, tuple[Worker, int]] = {}
    answers: dict[int, Answer] = {}
    try:
        while len(answers) < len(jobs):
            while waiting and idle:
                number, job = waiting.popleft()
                worker = idle.pop(0)
                busy[worker.send(job)] = worker, number
            for connection in wait(list(busy)):
                worker, number = busy[cast(Connection, connection)]
                if (answer := worker.receive()) is not None:
                    del busy[cast(Connection, connection)]
                    idle.append(worker)
                    answers[number] = answer
                    progress(len(answers))
    finally:  # the answer of a job that was interrupted must not be taken for that of the next one
        for worker, _ in busy.values():
            worker.end()
    in_order = [answers[number] for number in range(len(jobs))]
    for succeeded, reason in in_order:
        if not succeeded:
            raise OpusError(reason)
    return [answer for _, answer in in_order]


class WorkerPool(Generic[Key]):
    """At most `count` worker processes and their jobs by key. As a context manager it ends all processes on exit."""

    def __init__(self, setup: Setup, jobs: Mapping[Key, Job], count: int, report: Report) -> None:
        self._jobs = jobs
        self._waiting = deque(jobs)
        self._failed: deque[Key] = deque()  # to be tried once more, alone
        self._idle = [Worker(setup, report) for _ in range(min(count, len(jobs)))]
        self._busy: dict[Connection, tuple[Worker, Key]] = {}
        self._answers: dict[Key, Answer] = {}

    def __enter__(self) -> "WorkerPool[Key]":
        self._assign_jobs()
        return self

    def __exit__(self, *_: object) -> None:
        for worker in [*self._idle, *(worker for worker, _ in self._busy.values())]:
            worker.end()

    def __contains__(self, key: object) -> bool:
        return key in self._jobs

    def result(self, key: Key) -> Any:
        """Waits for a job and returns its result, once. Raises LostWorker where the job failed twice."""
        while key not in self._answers:
            for connection in wait(list(self._busy)):
                self._receive(cast(Connection, connection))
            self._assign_jobs()
        succeeded, result = self._answers.pop(key)
        if not succeeded:
            raise LostWorker(result)
        return result

    def _receive(self, connection: Connection) -> None:
        worker, key = self._busy[connection]
        if (answer := worker.receive()) is None:
            return
        del self._busy[connection]
        self._idle.append(worker)
        is_second = key in self._failed
        if not answer[0]:
            worker.end()  # the next job needs a process with free memory
        if not answer[0] and not is_second:
            self._failed.append(key)
            return
        if is_second:
            self._failed.remove(key)
        self._answers[key] = answer

    def _assign_jobs(self) -> None:
        while self._waiting and self._idle:
            self._start(self._waiting.popleft())
        if self._failed and not self._busy:
            self._start(self._failed[0])

    def _start(self, key: Key) -> None:
        worker = self._idle.pop()
        self._busy[worker.send(self._jobs[key])] = worker, key
