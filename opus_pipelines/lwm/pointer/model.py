"""The pointer model: it points at the next task of a request, or at the end, given the steps so far.

Inductive, after pointer networks (Vinyals et al. 2015): the network sees no task's name or number, only how the
request, similar cases and the edges of the Work Knowledge Graph support a candidate. So one network serves all
industries, and a task that was not there in training can be chosen. It writes sequences as a sample of what it expects.

A lake keeps a model as safetensors, with a card that says how it did on held-out cases.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from opus_pipelines.core.errors import LakeError
from opus_pipelines.core.ids import make_id
from opus_pipelines.core.versions import POINTER_VERSION
from opus_pipelines.lake.models import (
    CARD,
    POINTER,
    ModelKind,
    content_of,
    read_tensors,
    save_tensors,
    served_industries,
)
from opus_pipelines.lwm.fine_tuning.task_reader import TaskReader
from opus_pipelines.lwm.next_step import Network, Written, sampled
from opus_pipelines.lwm.pointer.candidates import FEATURES, Candidates, EncodedRequest
from opus_pipelines.lwm.pointer.memory import COVERED, CaseMemory

LEAST_CANDIDATES = 20  # tasks that a request may be given, at least
MOST_CANDIDATES = 60
READER_WEIGHT = 0.5  # power of the odds of a task reader beside the probabilities of the network
_STEP_FEATURES = 18  # features of a candidate that depend on the steps so far; see `next_step_features`
WIDTH = len(FEATURES) + _STEP_FEATURES  # features of a candidate


@dataclass(frozen=True)
class PointerModel:
    """A trained network; `reader`: the task reader beside it, None without one."""

    network: Network
    reader: TaskReader | None = None

    def sequences(self, request: EncodedRequest, memory: CaseMemory, hidden: int | None = None) -> list[Written]:
        """Return sequences for a request, most frequent first; their probabilities sum to 1.

        `hidden` is the case of the memory that is left out, None for none.
        """
        candidates = memory.candidates(request, most_candidates(memory), hidden)
        written = sampled(lambda prefixes: self.probabilities(candidates, prefixes), max(map(len, memory.traces)))
        named = [replace(one, tasks=tuple(int(candidates.tasks[n]) for n in one.tasks)) for one in written]
        return named if self.reader is None else weighted(named, memory.log_odds(self.reader, request.text))

    def probabilities(self, candidates: Candidates, prefixes: Sequence[tuple[int, ...]]) -> np.ndarray:
        """Return the probabilities [prefixes, candidates + 1] of every next step, and of the end."""
        rows = np.concatenate([next_step_features(candidates, chosen) for chosen in prefixes])
        scores = self.network.scores(rows).reshape(len(prefixes), -1).astype(np.float64)
        for own, chosen in zip(scores, prefixes, strict=True):
            own[list(chosen)] = -np.inf
            if not chosen:
                own[-1] = -np.inf
        weights = np.exp(scores - scores.max(1, keepdims=True))
        return np.asarray(weights / weights.sum(1, keepdims=True))


def weighted(written: Sequence[Written], log_odds: np.ndarray) -> list[Written]:
    """Return the sequences, most probable first, with what a task reader reads; their probabilities sum to 1.

    `log_odds` [tasks] are those of P(the request asks for the task). If tasks were asked for independently of each
    other, the probability of a set would be proportional to the product of the odds of its tasks. A probability is
    multiplied by this product to the power `READER_WEIGHT`: a product of experts (Hinton 2002) with one weight.
    Where nothing is read, they stay as they are.
    """
    if not log_odds.any():
        return list(written)
    scores = np.array([np.log(one.probability) + READER_WEIGHT * log_odds[list(one.tasks)].sum() for one in written])
    shares = np.exp(scores - scores.max())
    shares /= shares.sum()
    found = [replace(one, probability=float(share)) for one, share in zip(written, shares, strict=True)]
    return sorted(found, key=lambda one: (-one.probability, one.tasks))


def most_candidates(memory: CaseMemory) -> int:
    """Return how many tasks a request of this history may be given: twice the length of long cases."""
    long = float(np.quantile([len(trace) for trace in memory.traces], 0.95))
    return int(min(len(memory.graph.tasks), MOST_CANDIDATES, max(LEAST_CANDIDATES, 2 * long)))


def next_step_features(candidates: Candidates, chosen: Sequence[int]) -> np.ndarray:
    """Return the features [k + 1, f] of every candidate, and of the end, as the next step after `chosen`.

    `chosen` has places of candidates. Rows of candidates that were chosen already have no meaning.
    """
    k, done = len(candidates.tasks), list(chosen)
    left = candidates.likelihood.copy()
    left[done] = 0.0
    total, most = left.sum(), left.max(initial=0.0)
    if done:
        ahead, behind = candidates.before[done], candidates.before[:, done].T
        order, share = np.log((ahead + 0.3) / (behind + 0.3)), (ahead + behind) / (candidates.counts[done, None] + 2)
        last = done[-1]
        follows = candidates.direct[last] / (candidates.counts[last] + 2)
        pairs = [order.mean(0), order[-1], share.mean(0), share.max(0), share[-1]]
        offsets = [candidates.place - candidates.place[last], candidates.mean_place - candidates.mean_place[last]]
        covered = np.maximum(COVERED, candidates.similarity[:, done].max(1))
    else:
        follows = candidates.begins / (candidates.counts + 2)
        pairs = [np.zeros(k)] * 5
        offsets = [candidates.place, candidates.mean_place]
        covered = np.full(len(candidates.similarity), COVERED)
    gain = np.maximum(0.0, candidates.similarity - covered[:, None]).mean(0)
    columns = [
        candidates.likelihood,
        left / max(1e-6, total),
        candidates.likelihood / max(1e-6, most),
        np.full(k, len(done)),
        np.full(k, total),
        np.full(k, candidates.likelihood.sum()),
        follows,
        *pairs,
        *offsets,
        (left @ candidates.precedes) / max(1e-6, total),
        np.zeros(k),
        gain,
        gain / max(1e-6, gain.max(initial=0.0)),
    ]
    rows = np.concatenate([candidates.features, np.stack(columns, 1)], 1)
    end = np.full(rows.shape[1], np.nan)
    ordered = np.sort(left)
    still_open = [n for n in range(k) if n not in done]
    end[len(FEATURES) :] = [
        ordered[-2] if k > 1 else 0.0,
        candidates.likelihood[done].min() if done else 1.0,
        most,
        len(done),
        total,
        candidates.likelihood.sum(),
        candidates.ends[done[-1]] / (candidates.counts[done[-1]] + 2) if done else 0.0,
        *[np.nan] * 8,
        1.0,
        gain[still_open].max(initial=0.0),
        np.maximum(0.0, candidates.similarity.max(1) - covered).mean(),
    ]
    return np.concatenate([rows, end[None]])


WEIGHTS, READER = "model.safetensors", "reader.safetensors"


@dataclass(frozen=True)
class Champion:
    """The model that serves.

    Attributes:
        model_id: its id, a hash of its weights and of the version of its features.
        model: the model.
        industries: the industries on which it was better than the look-up of similar cases, beyond the 95 % interval.
    """

    model_id: str
    model: PointerModel
    industries: frozenset[str]


def model_id_of(model: PointerModel) -> str:
    """Returns the id of a model; equal weights have the same id."""
    reader = content_of(dict(sorted(model.reader.weights.items()))) if model.reader else ()
    return make_id("m", POINTER_VERSION, *content_of(model.network.tensors()), *reader)


def save_pointer(model: PointerModel, file: Path) -> None:
    """Writes the weights of a model as safetensors."""
    save_tensors(model.network.tensors(), file)


def _write(model: PointerModel, folder: Path) -> dict[str, Any]:
    save_pointer(model, folder / WEIGHTS)
    if model.reader is None:
        return {}
    save_tensors(model.reader.weights, folder / READER)
    return {"reader": {"encoder": model.reader.encoder, "tasks": list(model.reader.tasks)}}


def _read(folder: Path, name: str, card: Mapping[str, Any]) -> Champion:
    if card.get("version") != POINTER_VERSION:
        raise LakeError(
            f"its features are of version {card.get('version')}, and {POINTER_VERSION} is used; run `opus train`"
        )
    if "transformer" in card:
        raise LakeError("it is a transformer, which is gone since version 0.1.0; run `opus train`")
    model = PointerModel(read_network(folder / WEIGHTS), _read_reader(folder, card))
    if model_id_of(model) != name:
        raise LakeError(f"{WEIGHTS} was changed after it was written; run `opus train`")
    return Champion(name, model, served_industries(card))


def _read_reader(folder: Path, card: Mapping[str, Any]) -> TaskReader | None:
    """Returns the task reader of a model, None where it was trained without one."""
    beside = card.get("reader")
    if beside is None:
        return None
    try:
        encoder, tasks = str(beside["encoder"]), tuple(str(task) for task in beside["tasks"])
    except (KeyError, TypeError):
        raise LakeError(f"{CARD} does not say what its task reader learnt; run `opus train`") from None
    return TaskReader(encoder, tasks, read_tensors(folder / READER, "a task reader"))


def read_network(file: Path, width: int = WIDTH) -> Network:
    """Reads the weights of a network of `width` features.

    Raises OpusError where the file is damaged or is of another network.
    """
    network = Network.of(read_tensors(file, "a pointer model"))
    if len(network.center) != width:
        raise LakeError(f"{file.name} is of a network of {len(network.center)} features, and there are {width}")
    return network


POINTERS: ModelKind[PointerModel, Champion] = ModelKind(POINTER, POINTER_VERSION, model_id_of, _write, _read)
