"""Trains the parts of the pointer model, its network and its task reader, here or ahead in a process of its own.

What serves in the end is trained on all cases while what learnt from a part is judged here: the network of all cases,
while that of three quarters is trained and judged, then the reader of all cases, while that of three quarters is. Both
make the same bytes in either process.

The task reader is one for all industries whose tasks have names that cases share. Where most steps are words of one
case alone, no task has a second case to be learnt from, and there is no reader. The judging says which industries are
read; the reader of all cases is one of their tasks alone.
"""

import os
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from threadpoolctl import threadpool_limits

from opus_pipelines.core.settings import Lwm
from opus_pipelines.core.workers.pool import NoSetup, Report, Worker
from opus_pipelines.language.embedding.encoder import float32_of
from opus_pipelines.lwm.fine_tuning.task_reader import ReadCases, ReaderFitting, TaskReader, fit_reader
from opus_pipelines.lwm.pointer.candidates import EncodedRequest
from opus_pipelines.lwm.pointer.learning import NEW_SETS, POINTER_SEED, Learning, train_pointer
from opus_pipelines.lwm.pointer.model import PointerModel
from opus_pipelines.lwm.retrieval.case_memory import IndustryMemory


@dataclass(frozen=True)
class LearntNetwork:
    """A network without a task reader, and the mean loss in nats of every epoch."""

    model: PointerModel
    loss: list[float]


@dataclass(frozen=True)
class NetworkJob:
    """One training of a network, here or in another process.

    Attributes:
        memories: the cases of each industry.
        requests: their requests.
        lwm: how it is trained.
    """

    memories: Mapping[str, IndustryMemory]
    requests: Mapping[str, Sequence[EncodedRequest]]
    lwm: Lwm

    def run(self, _state: None, _report: Report) -> LearntNetwork:
        """Returns the network. Raises TrainingError where the loss is not finite."""
        loss: list[float] = []
        how = Learning(
            lambda _, mean: loss.append(round(mean, 6)),
            POINTER_SEED,
            NEW_SETS,
            perceptrons=self.lwm.perceptrons,
        )
        histories = [(memory.memory, self.requests[name]) for name, memory in self.memories.items()]
        # more threads add up in another order: the bytes would depend on the number of cores
        with threadpool_limits(1, user_api="blas"):
            return LearntNetwork(train_pointer(histories, how), loss)

    def __str__(self) -> str:
        return "the network"


@dataclass(frozen=True)
class ReaderJob:
    """One training of a task reader, here or in another process; it has one thread, so both make the same bytes.

    Attributes:
        cases: what is learnt from.
        encoder: name of the sentence encoder.
        of: what stands before the lines of progress.
    """

    cases: ReadCases
    encoder: str
    of: str = ""

    def run(self, _state: None, report: Report) -> TaskReader:
        """Returns the reader.

        Raises FineTuningError where the loss is not finite, and SettingsError where the encoder cannot be fine-tuned.
        """
        report(f"{self.of}the sentence encoder is fine-tuned on {len(self.cases.texts):,} cases")
        told = lambda epoch, loss: report(f"{self.of}epoch {epoch}: {loss:.3f} nats a case")
        return fit_reader(self.cases, float32_of(self.encoder), ReaderFitting(told))

    def __str__(self) -> str:
        return "the task reader"


def learn_reader(
    memories: Mapping[str, IndustryMemory],
    encoder: str,
    report: Callable[[str], None],
) -> TaskReader | None:
    """Returns a task reader of the cases of these industries; None where none of them has names that cases share.

    `encoder` names the sentence encoder. Raises FineTuningError
    where the loss is not finite, and SettingsError where the encoder cannot be fine-tuned.
    """
    cases = cases_of(memories)
    return None if cases is None else ReaderJob(cases, encoder).run(None, report)


def cases_of(memories: Mapping[str, IndustryMemory]) -> ReadCases | None:
    """Returns the cases of the industries whose tasks have names that cases share; None where there is none."""
    named = [memories[name].memory for name in sorted(memories) if memories[name].memory.has_names]
    return joined([memory.read_cases for memory in named]) if named else None


def joined(industries: list[ReadCases]) -> ReadCases:
    """Returns the cases of several industries as one set; a task of several industries is one task."""
    vectors = {task: v for one in industries for task, v in zip(one.tasks, one.vectors, strict=True)}
    place = {task: n for n, task in enumerate(vectors)}
    holds = np.zeros((sum(len(one.texts) for one in industries), len(place)), np.float32)
    begin = 0
    for one in industries:
        holds[begin : begin + len(one.texts), [place[task] for task in one.tasks]] = one.holds
        begin += len(one.texts)
    texts = [text for one in industries for text in one.texts]
    return ReadCases(texts, holds, tuple(place), np.stack(list(vectors.values())))


_LEAST_CASES = 1_500  # fewer are trained on in less time than a process takes to start


class Ahead:
    """Trains the network and the task reader of all cases, ahead where there are two processors.

    As a context manager it ends the process. A network of fewer than `least_cases` cases is not begun ahead.
    """

    def __init__(
        self,
        encoder: str,
        report: Report,
        least_cases: int = _LEAST_CASES,
    ) -> None:
        self._encoder, self._report = encoder, report
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
            self._worker.send(ReaderJob(cases, self._encoder, "all cases: "))

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
            reader = learn_reader(self._memories, self._encoder, self._report)
        return reader and reader.among({task for memory in read for task in memory.graph.tasks})

    def _receive_network(self) -> None:
        """Wait for the network, where the process works on it; it does one thing at a time."""
        if self._works_on_network:
            self._works_on_network = False
            self._network = self._worker.answer()
