"""Trains the task reader of the pointer model, one for all industries whose tasks have names that cases share.

Where most steps are words of one case alone, no task has a second case to be learnt from, and there is no reader.

network of three quarters → the industries that a reader may help → reader of three quarters here, and at the same time
reader of all cases in a process of its own (`ahead`) → the judging says which industries are read → the reader of all
cases, of their tasks alone
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from opus_pipelines.core.workers.jobs import Report
from opus_pipelines.language.embedding.encoder import float32_of
from opus_pipelines.lwm.fine_tuning.checkpoints import Checkpoints
from opus_pipelines.lwm.fine_tuning.task_reader import TaskReader
from opus_pipelines.lwm.fine_tuning.training import ReadCases, ReaderFitting, fit_reader
from opus_pipelines.lwm.retrieval.case_memory import IndustryMemory


@dataclass(frozen=True)
class ReaderJob:
    """One training of a task reader, here or in another process; it has one thread, so both make the same bytes.

    Attributes:
        cases: what is learnt from.
        encoder: name of the sentence encoder.
        checkpoints: where an interrupted training goes on from; None: it starts anew.
        of: what stands before the lines of progress.
    """

    cases: ReadCases
    encoder: str
    checkpoints: Checkpoints | None = None
    of: str = ""

    def run(self, _state: None, report: Report) -> TaskReader:
        """Returns the reader.

        Raises FineTuningError where the loss is not finite, and SettingsError where the encoder cannot be fine-tuned.
        """
        report(f"{self.of}the sentence encoder is fine-tuned on {len(self.cases.texts):,} cases")
        told = lambda epoch, loss: report(f"{self.of}epoch {epoch}: {loss:.3f} nats a case")
        return fit_reader(self.cases, float32_of(self.encoder), ReaderFitting(told, checkpoints=self.checkpoints))

    def __str__(self) -> str:
        return "the task reader"


def learn_reader(
    memories: Mapping[str, IndustryMemory],
    encoder: str,
    report: Callable[[str], None],
    checkpoints: Checkpoints | None = None,
) -> TaskReader | None:
    """Returns a task reader of the cases of these industries; None where none of them has names that cases share.

    `encoder` names the sentence encoder; an interrupted training goes on from its checkpoint. Raises FineTuningError
    where the loss is not finite, and SettingsError where the encoder cannot be fine-tuned.
    """
    cases = cases_of(memories)
    return None if cases is None else ReaderJob(cases, encoder, checkpoints).run(None, report)


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
