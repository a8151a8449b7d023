"""Trains what serves in the end, on all cases, in a process of its own while what learnt from a part is judged here.

network of all cases, while that of three quarters is trained and judged → reader of all cases, while that of three
quarters is trained and judged. Both make the same bytes in either process.
"""

import os
from collections.abc import Collection, Mapping

from opus_pipelines.core.workers.jobs import NoSetup, Report
from opus_pipelines.core.workers.worker import Worker
from opus_pipelines.lwm.fine_tuning.checkpoints import Checkpoints
from opus_pipelines.lwm.fine_tuning.task_reader import TaskReader
from opus_pipelines.lwm.retrieval.case_memory import IndustryMemory
from opus_pipelines.lwm.training.train_network import LearntNetwork, NetworkJob
from opus_pipelines.lwm.training.train_reader import ReaderJob, cases_of, learn_reader

_LEAST_CASES = 1_500  # fewer are trained on in less time than a process takes to start


class Ahead:
    """Trains the network and the task reader of all cases, ahead where there are two processors.

    As a context manager it ends the process. A network of fewer than `least_cases` cases is not begun ahead.
    """

    def __init__(
        self,
        encoder: str,
        report: Report,
        checkpoints: Checkpoints | None = None,
        least_cases: int = _LEAST_CASES,
    ) -> None:
        self._encoder, self._report, self._checkpoints = encoder, report, checkpoints
        self._least_cases = least_cases
        self._worker = Worker(NoSetup(), report)
        self._has_two = len(os.sched_getaffinity(0)) > 1
        self._works_on_network = False
        self._network: LearntNetwork | None = None
        self._memories: Mapping[str, IndustryMemory] = {}
        self._works_on_reader = False

    def __enter__(self) -> "Ahead":
        return self

    def __exit__(self, *_: object) -> None:
        self._worker.end()

    def begin_network(self, job: NetworkJob) -> None:
        """Start to train the network, where it takes long enough."""
        cases = sum(len(memory.ids) for memory in job.memories.values())
        if self._has_two and cases >= self._least_cases:
            self._report("all cases: a network is trained")
            self._works_on_network = True
            self._worker.send(job)

    def network(self, job: NetworkJob) -> LearntNetwork:
        """Return the network that was begun, or train it now.

        Raises OpusError where the loss is not finite, or the process that trains it fails or ends.
        """
        self._receive_network()
        if self._network is None:
            self._report("all cases: a network is trained")
            self._network = job.run(None, self._report)
        return self._network

    def begin_reader(self, memories: Mapping[str, IndustryMemory]) -> None:
        """Start to train a reader of these industries, where any of them has names and two processors are there."""
        self._memories, cases = memories, cases_of(memories)
        if cases is not None and self._has_two:
            self._receive_network()
            self._works_on_reader = True
            self._worker.send(ReaderJob(cases, self._encoder, self._checkpoints, "all cases: "))

    def reader(self, industries: Collection[str]) -> TaskReader | None:
        """Return the reader that was begun, for the tasks of these of its industries; None where there is none.

        Which industries are read is known after the judging only. The reader learns from all that were judged with
        one, as the judged reader did, and keeps the tasks of those that are read. With one processor it is trained
        now. Raises OpusError where the process that trains it fails or ends.
        """
        read = [self._memories[name].memory for name in industries if self._memories[name].memory.has_names]
        if not read:
            self._worker.end()
            return None
        if self._works_on_reader:
            reader: TaskReader | None = self._worker.answer()
        else:
            reader = learn_reader(self._memories, self._encoder, self._report, self._checkpoints)
        return reader and reader.among({task for memory in read for task in memory.graph.tasks})

    def _receive_network(self) -> None:
        """Wait for the network, where the process works on it; it does one thing at a time."""
        if self._works_on_network:
            self._works_on_network = False
            self._network = self._worker.answer()
