"""The step writer: it points at the text that is the next step of a request, or at the end, given the steps so far.

The network is that of the pointer model; its candidates are texts instead of tasks of a catalogue. It sees no word of a
text, only where the text comes from and how it is like the request, the steps of similar cases and the steps so far. So
one network serves all industries.

A lake keeps a writer as safetensors, with a card that says which industries it serves.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from opus_pipelines.core.errors import LakeError
from opus_pipelines.core.ids import make_id
from opus_pipelines.lake.models import CARD, STEP_WRITER, ModelKind, content_of
from opus_pipelines.lwm.next_step import Fitting, Network, fit_network
from opus_pipelines.lwm.pointer.model import WEIGHTS, PointerModel, read_network, save_pointer
from opus_pipelines.lwm.step_writing.memory import (
    CLAUSE,
    SENTENCE,
    TEXT_FEATURES,
    Encode,
    StepText,
    TextCandidates,
    TextMemory,
    encoded,
)
from opus_pipelines.workflow.metrics.opus_metrics import THRESHOLD

_LONGEST = 14  # steps of a written workflow, at most
_SEED = 0
_STEP_FEATURES = 14  # features of a candidate that depend on the steps so far
WRITER_WIDTH = TEXT_FEATURES + _STEP_FEATURES
# places of features that the row of the end uses for figures of its own
_SUPPORT, _COSINE, _SENTENCES, _EXPECTED, _MEAN_STEPS = 12, 14, 21, 22, 26


@dataclass(frozen=True)
class WrittenStep:
    """A step that was written, and how likely the model held it to be the next one."""

    text: StepText
    probability: float


@dataclass(frozen=True)
class WrittenSteps:
    """The steps of one request in order, and whether each follows the one before; otherwise they are independent."""

    steps: tuple[WrittenStep, ...]
    is_chain: bool


@dataclass(frozen=True)
class StepWriter:
    """A trained network, and the search for the steps of a request."""

    network: Network

    def written(self, request: str, context: str, memory: TextMemory, encode: Encode) -> WrittenSteps:
        """Return the steps of a request: the likeliest next text, until the end is likelier.

        `context`: what is listed beside the request. `encode`: returns the unit vectors [n, d] of n texts.
        """
        candidates = memory.candidates(request, context, encode)
        done: list[int] = []
        steps: list[WrittenStep] = []
        while len(steps) < min(_LONGEST, len(candidates.texts)):
            scores = self.network.scores(text_features(candidates, done)).astype(np.float64)
            scores[done] = -np.inf
            if not done:
                scores[-1] = -np.inf
            best = int(scores.argmax())
            if best == len(candidates.texts):
                break
            probability = 1.0 / float(np.exp(scores - scores[best]).sum())
            done.append(best)
            steps.append(WrittenStep(candidates.texts[best], probability))
        return WrittenSteps(tuple(steps), candidates.is_chain)


def train_step_writer(
    memories: Sequence[TextMemory],
    encode: Encode,
    report: Callable[[int, float], None] | None = None,
    seed: int = _SEED,
) -> StepWriter:
    """Train one writer on the cases of all memories, each case hidden from its own memory.

    Args:
        memories: the cases of each industry.
        encode: returns the unit vectors [n, d] of n texts.
        report: called after every epoch with its number and the mean loss in nats.
        seed: of the initial weights, the order of the examples and dropout.

    Raises TrainingError where no case has a step that is like a candidate, or the loss is not finite.
    """
    lists: list[np.ndarray] = []
    chosen: list[int] = []
    for memory in memories:
        for case in range(len(memory.cases)):
            for rows, place in text_examples(memory, case, encode):
                lists.append(rows)
                chosen.append(place)
    return StepWriter(fit_network(lists, chosen, Fitting(seed, report)))


def text_examples(memory: TextMemory, case: int, encode: Encode) -> list[tuple[np.ndarray, int]]:
    """Return for each prefix of a case the features of what may come next, and the place of what came.

    What came is the candidate that is most similar to the step; a step that no candidate is like teaches nothing.
    """
    own = memory.cases[case]
    candidates = memory.candidates(own.request, own.context, encode, case)
    similar = encoded([text.text for text in candidates.texts], encode) @ encoded(own.steps, encode).T
    done: list[int] = []
    found = []
    for step in range(len(own.steps)):
        cosines = similar[:, step].copy()
        cosines[done] = -1.0
        best = int(cosines.argmax())
        if cosines[best] > THRESHOLD:
            found.append(_example(candidates, done, best))
            done.append(best)
    return [*found, _example(candidates, done, len(candidates.texts))] if done else []


def _example(candidates: TextCandidates, done: Sequence[int], place: int) -> tuple[np.ndarray, int]:
    rows = text_features(candidates, done)
    open_ = [n for n in range(len(rows)) if n not in done]
    return rows[open_], open_.index(place)


def text_features(candidates: TextCandidates, done: Sequence[int]) -> np.ndarray:
    """Return the features [n + 1, WIDTH] of every text, and of the end, as the next step after the texts `done`.

    Rows of texts in `done` have no meaning.
    """
    n, done = len(candidates.texts), list(done)
    unknown = np.full(n, np.nan)
    if done:
        last, covered = done[-1], candidates.alike[:, done].max(1)
        same = np.array([_is_of(text, candidates.texts[last]) for text in candidates.texts])
        offset = np.array([float(text.place - candidates.texts[last].place) for text in candidates.texts])
        dynamic = [
            covered,
            candidates.alike[:, last],
            same.astype(float),
            np.where(same, offset, np.nan),
            _followers(candidates, last),
            candidates.place - candidates.place[last],
            candidates.request_place - candidates.request_place[last],
            _follows_alike(candidates, last),
            np.full(n, float(len(done))),
            np.full(n, len(done) - candidates.expected_steps),
            np.array([float(text.origin == candidates.texts[done[0]].origin) for text in candidates.texts]),
        ]
    else:
        covered = np.zeros(n)
        dynamic = [*[unknown] * 5, candidates.place, candidates.request_place, np.zeros(n), np.zeros(n)]
        dynamic += [np.full(n, -candidates.expected_steps), unknown]
    left = candidates.support * (covered <= THRESHOLD)
    dynamic += [left, np.full(n, left.max(initial=0.0)), np.zeros(n)]
    rows = np.concatenate([candidates.features, np.stack(dynamic, 1)], 1)
    return np.concatenate([rows, _end(candidates, done, left, rows)[None]])


def _end(candidates: TextCandidates, done: Sequence[int], left: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """Return the features [WIDTH] of the end: how much of the request and of similar cases is done."""
    end = np.full(WRITER_WIDTH, np.nan)
    end[:4] = 0.0
    end[-3:] = left.mean(), left.max(initial=0.0), 1.0
    end[-6:-4] = len(done), len(done) - candidates.expected_steps
    for place, origin in ((4, SENTENCE), (5, CLAUSE)):
        if own := candidates.rows_of(origin):
            end[place] = (candidates.alike[np.ix_(own, done)].max(1) > THRESHOLD).mean() if done else 0.0
    if done:
        last = done[-1]
        end[-8:-6] = candidates.request_place[last], candidates.place[last]
        end[-10] = max((w for w, s in _cases(candidates) if s[-1] == last), default=0.0)
        end[_SUPPORT] = candidates.support[done].mean()
        end[_COSINE] = rows[done, _COSINE].max()
    end[[_SENTENCES, _EXPECTED, _MEAN_STEPS]] = rows[0, [_SENTENCES, _EXPECTED, _MEAN_STEPS]]
    return end


def _cases(candidates: TextCandidates) -> list[tuple[float, tuple[int, ...]]]:
    return list(zip(candidates.case_weights.tolist(), candidates.case_steps, strict=True))


def _is_of(text: StepText, other: StepText) -> bool:
    return (text.origin, text.case) == (other.origin, other.case)


def _followers(candidates: TextCandidates, last: int) -> np.ndarray:
    """Return the share of the similar cases, by weight, in which each text directly follows the last one [n]."""
    found = np.zeros(len(candidates.texts))
    for weight, steps in _cases(candidates):
        for a, b in pairwise(steps):
            if a == last:
                found[b] += weight
    return found


def _follows_alike(candidates: TextCandidates, last: int) -> np.ndarray:
    """Return how much each text is like what follows a step like the last one in a similar case [n], in [0, 1]."""
    found = np.zeros(len(candidates.texts))
    for weight, steps in _cases(candidates):
        for a, b in pairwise(steps):
            like = max(0.0, 2.0 * (float(candidates.alike[last, a]) - 0.5)) * weight
            found = np.maximum(found, like * np.clip(2.0 * (candidates.alike[:, b] - 0.5), 0.0, None))
    return found


WRITER_VERSION = 2  # raise it when the features or the way of writing change: a network of another version is not used


@dataclass(frozen=True)
class WriterChampion:
    """The writer that serves.

    Attributes:
        model_id: its id, a hash of its weights and of the version of its features.
        writer: the writer.
        rates: for each industry that it serves, the rates of its cases (`TextMemory`).
    """

    model_id: str
    writer: StepWriter
    rates: Mapping[str, Mapping[str, Sequence[float]]]


@dataclass(frozen=True)
class IndustryWriter:
    """The writer that serves an industry, and the rates of the industry's cases."""

    writer: StepWriter
    rates: Mapping[str, Sequence[float]]

    def written(self, request: str, context: str, memory: TextMemory, encode: Encode) -> WrittenSteps:
        """Return the steps of a request, see `StepWriter.written`."""
        return self.writer.written(request, context, memory, encode)


def writer_id(writer: StepWriter) -> str:
    """Returns the id of a writer; equal weights have the same id."""
    return make_id("m", STEP_WRITER, WRITER_VERSION, *content_of(writer.network.tensors()))


def _write(writer: StepWriter, folder: Path) -> dict[str, Any]:
    save_pointer(PointerModel(writer.network), folder / WEIGHTS)
    return {}


def _read(folder: Path, name: str, card: Mapping[str, Any]) -> WriterChampion:
    if card.get("version") != WRITER_VERSION:
        raise LakeError(
            f"its features are of version {card.get('version')}, and {WRITER_VERSION} is used; run `opus train`"
        )
    writer = StepWriter(read_network(folder / WEIGHTS, WRITER_WIDTH))
    if writer_id(writer) != name:
        raise LakeError(f"{WEIGHTS} was changed after it was written; run `opus train`")
    industries = card.get("industries")
    if not isinstance(industries, dict) or not all(
        isinstance(one, dict) and isinstance(one.get("rates"), dict) for one in industries.values()
    ):
        raise LakeError(f"{CARD} does not say which industries it serves; run `opus train`")
    return WriterChampion(name, writer, {industry: one["rates"] for industry, one in industries.items()})


# The card of a writer has `industries`: for each one that it may serve an object with `rates`.
WRITERS: ModelKind[StepWriter, WriterChampion] = ModelKind(STEP_WRITER, WRITER_VERSION, writer_id, _write, _read)
