"""Judges pointer models on held-out cases of an industry: F1 of the tasks, beside that of similar cases.

A quarter of the cases is held out by hash of the request. Where a task reader was trained, the model is judged with it
and without it, and the better of the two counts.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from opus_pipelines.core.ids import digest
from opus_pipelines.lwm.fine_tuning.task_reader import TaskReader
from opus_pipelines.lwm.next_step.writing import Written
from opus_pipelines.lwm.pointer.backend import named_sequences
from opus_pipelines.lwm.pointer.clauses import EncodedRequest
from opus_pipelines.lwm.pointer.model import PointerModel, weighted
from opus_pipelines.lwm.retrieval.case_memory import IndustryMemory
from opus_pipelines.lwm.retrieval.consensus import Consensus, consensus, f1
from opus_pipelines.lwm.retrieval.similar_cases import weights_by_text
from opus_pipelines.lwm.training.promotion import Figures, Judged, is_held_out
from opus_pipelines.workflow.metrics.intervals import interval

_MOST_ASKED = 300  # held-out cases of an industry that are asked
GOOD = 0.95  # mean F1 of the network alone from which a task reader is not trained


@dataclass(frozen=True)
class HeldOut:
    """The cases of an industry, of which a quarter is held out.

    Attributes:
        part: the cases that are learnt from.
        known: their requests.
        asked: the held-out cases that are asked: their requests and the places of their tasks.
    """

    part: IndustryMemory
    known: Sequence[EncodedRequest]
    asked: Sequence[tuple[EncodedRequest, Sequence[int]]]

    @classmethod
    def of(cls, memory: IndustryMemory, requests: Sequence[EncodedRequest]) -> "HeldOut":
        """Return the parts of an industry; `requests` are those of its cases."""
        gone = set(held_out(memory))
        asked = sorted(gone, key=lambda n: digest("asked", memory.ids[n]))[:_MOST_ASKED]
        known = [request for n, request in enumerate(requests) if n not in gone]
        cases = [(requests[n], memory.memory.traces[n]) for n in asked]
        return cls(memory.without(sorted(gone)), known, cases)

    def written_by(self, model: PointerModel) -> list[list[Written]]:
        """Return the sequences [asked] that a model writes for the requests, without its task reader."""
        network = replace(model, reader=None)
        return [network.sequences(request, self.part.memory) for request, _ in self.asked]

    def f1_of(self, written: Sequence[Sequence[Written]], reader: TaskReader | None = None) -> np.ndarray:
        """Return the F1 [asked] of the tasks that these sequences agree on, weighed by a task reader or not."""
        return np.array(
            [
                f1(self._agreed(own if reader is None else self._weighed(own, request, reader)), gold)
                for own, (request, gold) in zip(written, self._with_gold, strict=True)
            ]
        )

    def judged(self, alone: np.ndarray, with_reader: np.ndarray | None, by_champion: np.ndarray | None) -> Judged:
        """Return the verdict by the F1 [asked] of the new network alone, with its task reader, and of the champion.

        The latter two are None where there is no reader, or no champion.
        """
        reads = with_reader is not None and is_better(with_reader, alone)
        model = with_reader if with_reader is not None and reads else alone
        scores = np.stack(
            [model, self._by_similar_cases, by_champion if by_champion is not None else self._by_similar_cases], 1
        )
        texts = tuple(request.text for request, _ in self.asked)
        if len(texts) < 2:
            return Judged(Figures(len(self.part.ids), len(texts), 0.0, 0.0, 0.0, 0.0), scores, texts)
        low, high = interval((scores[:, 0] - scores[:, 1]).tolist(), texts)
        means = scores.mean(0).round(6).tolist()
        figures = Figures(len(self.part.ids), len(texts), means[0], means[1], round(low, 6), round(high, 6))
        return Judged(figures, scores, texts, reads)

    @cached_property
    def _by_similar_cases(self) -> np.ndarray:
        """The F1 [asked] of what the most similar cases agree on; it is asked for before and after the reader."""
        return np.array(
            [
                f1(frozenset(by_similar_cases(self.part, request.vector).tasks), gold)
                for request, gold in self._with_gold
            ]
        )

    @property
    def _with_gold(self) -> list[tuple[EncodedRequest, frozenset[str]]]:
        tasks = self.part.memory.graph.tasks
        return [(request, frozenset(tasks[task] for task in trace)) for request, trace in self.asked]

    def _weighed(self, written: Sequence[Written], request: EncodedRequest, reader: TaskReader) -> list[Written]:
        return weighted(written, self.part.memory.log_odds(reader, request.text))

    def _agreed(self, written: Sequence[Written]) -> frozenset[str]:
        named = named_sequences(written, self.part.memory.graph.tasks)
        traces = [self.part.trace(one.tasks) for one in named]
        return frozenset(consensus(traces, np.array([one.probability for one in named])).tasks)


def held_out(memory: IndustryMemory) -> list[int]:
    """Returns the cases that are held out: a quarter by hash of the request, so that equal requests stay together.

    None are where nothing would be left to learn from.
    """
    held = [n for n, text in enumerate(memory.texts) if is_held_out(text)]
    return held if len(held) < len(memory.texts) else []


def is_improvable(alone: Judged) -> bool:
    """Return whether a task reader is worth its training, by the verdict on the network alone.

    It takes minutes and makes good answers a little better. So the network must serve, and leave something to improve.
    """
    return alone.figures.serves and alone.figures.model < GOOD


def is_better(scores: np.ndarray, others: np.ndarray) -> bool:
    """Return whether there are two cases or more, and the mean of the scores is higher."""
    return len(scores) > 1 and float(scores.mean()) > float(others.mean())


def by_similar_cases(part: IndustryMemory, vector: np.ndarray) -> Consensus:
    """Returns what the most similar cases agree on; `vector` [d] is that of the request."""
    weights = weights_by_text((part.memory.vectors @ vector).round(6))
    kept = np.flatnonzero(weights)
    tasks = part.memory.graph.tasks
    return consensus([part.trace([tasks[t] for t in part.memory.traces[n]]) for n in kept], weights[kept])
