"""The pointer model: it points at the next task of a request, or at the end, given the steps so far.

Inductive, after pointer networks (Vinyals et al. 2015): the network sees no task's name or number, only how the
request, similar cases and the edges of the Work Knowledge Graph support a candidate. So one network serves all
industries, and a task that was not there in training can be chosen. It writes sequences as a sample of what it expects.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from opus_pipelines.lwm.fine_tuning.task_reader import TaskReader
from opus_pipelines.lwm.next_step import Network, Written, sampled
from opus_pipelines.lwm.pointer.candidates import FEATURES, Candidates, EncodedRequest
from opus_pipelines.lwm.pointer.memory import COVERED, CaseMemory

LEAST_CANDIDATES = 20  # tasks that a request may be given, at least
MOST_CANDIDATES = 60
READER_WEIGHT = 0.5  # power of the odds of a task reader beside the probabilities of the network
_STEP_FEATURES = 18  # features of a candidate that depend on the steps so far; see `next_step_features`
WIDTH = len(FEATURES) + _STEP_FEATURES  # features of a candidate
POINTER_VERSION = 7  # raise it when the features or the way of writing change: a network of another version is not used


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
