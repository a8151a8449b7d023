"""Judges models on held-out cases, and decides whether a new one replaces the champion.

A quarter of the cases is held out by hash of the request. Pointer models are judged by the F1 of the tasks of each
industry, beside that of similar cases. Where a task reader was trained, the model is judged with it and without it, and
the better of the two counts. A new model replaces the champion only when it is better beyond the interval. What is
compared is what a request would get: the model where it serves an industry, and similar cases elsewhere.
"""

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from opus_pipelines.core.ids import digest
from opus_pipelines.lwm.fine_tuning.task_reader import TaskReader
from opus_pipelines.lwm.next_step import Written
from opus_pipelines.lwm.pointer.candidates import EncodedRequest
from opus_pipelines.lwm.pointer.model import PointerModel, weighted
from opus_pipelines.lwm.pointer_backend import named_sequences
from opus_pipelines.lwm.retrieval.case_memory import IndustryMemory
from opus_pipelines.lwm.retrieval.consensus import Consensus, consensus, f1
from opus_pipelines.lwm.retrieval.similar_cases import weights_by_text
from opus_pipelines.workflow.metrics.plan_scores import interval

HELD_OUT = 4  # one case of so many is held out, by the hash of its request


def is_held_out(request: str) -> bool:
    """Returns whether cases with this request are held out: a quarter by hash, so that equal requests stay together."""
    return int(digest("held out", request)[:8], 16) % HELD_OUT == 0


class ServesBeyond:
    """Figures of a model with `low`, the lower end of the 95 % interval of its difference to what it would replace."""

    low: float

    @property
    def serves(self) -> bool:
        """Whether the model is better beyond the interval."""
        return self.low > 0


@dataclass(frozen=True)
class Figures(ServesBeyond):
    """How the model and the look-up of similar cases do on held-out cases of one industry.

    Attributes:
        cases: cases that the held-out model learnt from.
        asked: held-out cases that both were asked.
        model, similar_cases: mean F1 of the tasks.
        low, high: 95 % interval of the mean difference of the F1 of tasks, model minus similar cases.
    """

    cases: int
    asked: int
    model: float
    similar_cases: float
    low: float
    high: float


@dataclass(frozen=True)
class Judged:
    """The held-out cases of one industry, case by case.

    Attributes:
        figures: the means.
        scores: F1 [cases, 3] of the new model, of similar cases and of the champion; the last is that of similar cases
            where no champion serves the industry.
        texts: the requests; equal ones are one group of the bootstrap.
        reads: whether the new model has its task reader there, because its mean is better with it.
    """

    figures: Figures
    scores: np.ndarray
    texts: tuple[str, ...]
    reads: bool = False


@dataclass(frozen=True)
class Promotion:
    """The verdict.

    Attributes:
        promoted: whether the new model becomes the champion.
        reason: why, in words.
        against: the champion that it was compared with, None where there was none.
        difference: mean F1 of what would serve minus what serves now; None where nothing was compared.
        low, high: its 95 % interval.
    """

    promoted: bool
    reason: str
    against: str | None = None
    difference: float | None = None
    low: float | None = None
    high: float | None = None


def promotion(judged: Mapping[str, Judged], champion: str | None, serves: frozenset[str]) -> Promotion:
    """Returns whether the judged model replaces the champion, which `serves` these industries."""
    if champion is None:
        return against_history({name: one.figures for name, one in judged.items()})
    if left_out := sorted(serves - judged.keys()):
        return Promotion(False, f"the champion also serves {', '.join(left_out)}, which was not judged", champion)
    values, groups = list[float](), list[Hashable]()
    for name, one in judged.items():
        would = one.scores[:, 0] if one.figures.serves else one.scores[:, 1]
        values += (would - one.scores[:, 2]).tolist()
        groups += [(name, text) for text in one.texts]
    return beyond(values, groups, champion)


def against_history(figures: Mapping[str, Figures]) -> Promotion:
    """Returns the verdict on a model where no model serves: similar cases of history do."""
    if better := sorted(name for name, one in figures.items() if one.serves):
        return Promotion(True, f"better than similar cases beyond the 95 % interval in {', '.join(better)}")
    return Promotion(False, "in no industry better than similar cases beyond the 95 % interval, so history serves")


def beyond(values: Sequence[float], groups: Sequence[Hashable], champion: str | None) -> Promotion:
    """Returns the verdict on paired differences of F1, what would serve minus what serves now, by groups of cases."""
    if len(values) < 2:
        return Promotion(False, "fewer than two held-out cases", champion)
    low, high = interval(values, groups)
    reason = "better than what served beyond the 95 % interval" if low > 0 else "not better beyond the 95 % interval"
    return Promotion(low > 0, reason, champion, round(float(np.mean(values)), 6), round(low, 6), round(high, 6))


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
