"""Trains the task reader of the pointer model, one for all industries, and tells P(task) by readers without the case.

cases → two halves by hash of the request → P(task) of each half by a reader of the other one → reader of all cases

No case is read by a reader that learnt from it or from an equal request, so that what the pointer model learns from the
probabilities, and how it does on held-out cases, is what a new request will see. It is a little less: there a reader of
all cases reads.
"""

from collections.abc import Callable, Mapping

import numpy as np

from opus_pipelines.core.ids import digest
from opus_pipelines.core.settings import Encoder as EncoderSettings
from opus_pipelines.embedding.encoder import Encoder
from opus_pipelines.fine_tuning.checkpoints import Checkpoints
from opus_pipelines.fine_tuning.task_reader import TaskReader
from opus_pipelines.fine_tuning.training import ReadCases, ReaderFitting, fit, out_of_fold
from opus_pipelines.retrieval.case_memory import IndustryMemory


def learn_reader(
    memories: Mapping[str, IndustryMemory],
    encoder: str,
    report: Callable[[str], None],
    checkpoints: Checkpoints | None = None,
) -> tuple[TaskReader, dict[str, np.ndarray]]:
    """Returns a task reader of all cases, and for each industry P(task) [cases, tasks] of its cases out of fold.

    `encoder` names the sentence encoder; an interrupted training goes on from its checkpoint. Raises FineTuningError
    where there is nothing to learn or the loss is not finite, and SettingsError where the encoder cannot be fine-tuned.
    """
    names, sentence = sorted(memories), Encoder(EncoderSettings(model=encoder))
    cases = joined([memories[name].memory.read_cases for name in names])
    folds = np.array([int(digest("reader", text)[:8], 16) % 2 for text in cases.texts])
    report(f"the sentence encoder is fine-tuned on {len(cases.texts):,} cases, on each half of them first")
    likely = out_of_fold(cases, folds, sentence, ReaderFitting(checkpoints=checkpoints))
    told = lambda epoch, loss: report(f"epoch {epoch}: {loss:.3f} nats a case")
    reader = fit(cases, sentence, ReaderFitting(told, checkpoints=checkpoints))
    found, place, begin = {}, {task: n for n, task in enumerate(cases.tasks)}, 0
    for name in names:
        memory = memories[name].memory
        own = likely[begin : begin + len(memory.traces)]
        found[name] = own[:, [place[task] for task in memory.graph.tasks]]
        begin += len(memory.traces)
    return reader, found


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
