"""Trains the task reader of the pointer model, one for all industries whose tasks have names that cases share.

Where most steps are words of one case alone, no task has a second case to be learnt from, and there is no reader.
"""

from collections.abc import Callable, Mapping

import numpy as np

from opus_pipelines.embedding.encoder import float32_of
from opus_pipelines.fine_tuning.checkpoints import Checkpoints
from opus_pipelines.fine_tuning.task_reader import TaskReader
from opus_pipelines.fine_tuning.training import ReadCases, ReaderFitting, fit
from opus_pipelines.retrieval.case_memory import IndustryMemory


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
    named = [memories[name].memory for name in sorted(memories) if memories[name].memory.has_names]
    if not named:
        return None
    cases = joined([memory.read_cases for memory in named])
    report(f"the sentence encoder is fine-tuned on {len(cases.texts):,} cases")
    told = lambda epoch, loss: report(f"epoch {epoch}: {loss:.3f} nats a case")
    return fit(cases, float32_of(encoder), ReaderFitting(told, checkpoints=checkpoints))


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
