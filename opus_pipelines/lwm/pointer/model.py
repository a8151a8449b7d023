"""The pointer model: it points at the next task of a request, or at the end, given the steps so far.

Inductive, after pointer networks (Vinyals et al. 2015): the network sees no task's name or number, only how the
request, similar cases and the edges of the Work Knowledge Graph support a candidate. So one network serves all
industries, and a task that was not there in training can be chosen. It writes sequences as a sample of what it
expects; see `writing` for why, and for beam search.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from opus_pipelines.lwm.fine_tuning.checkpoints import Checkpoints
from opus_pipelines.lwm.fine_tuning.task_reader import TaskReader
from opus_pipelines.lwm.next_step.network import Fitting, Network
from opus_pipelines.lwm.next_step.network import train as train_network
from opus_pipelines.lwm.next_step.writing import Rules, Written, by_beam, sampled
from opus_pipelines.lwm.pointer.candidates import FEATURES, Candidates
from opus_pipelines.lwm.pointer.clauses import EncodedRequest
from opus_pipelines.lwm.pointer.hiding import Hiding, memories, seen, unknown_tasks, without_their_sets
from opus_pipelines.lwm.pointer.memory import COVERED, CaseMemory

LEAST_CANDIDATES = 20  # tasks that a request may be given, at least
MOST_CANDIDATES = 60
MOST_LISTS = 18_000  # prefixes that the network is trained on, at most
READER_WEIGHT = 0.5  # power of the odds of a task reader beside the probabilities of the network
NEW_SETS = 0.5  # share of the cases that are asked the second time as if no case had their set of tasks
SEED = 0
STEP_FEATURES = 18  # features of a candidate that depend on the steps so far; see `next_step_features`
WIDTH = len(FEATURES) + STEP_FEATURES  # features of a candidate
VERSION = 7  # raise it when the features or the way of writing change: a network of another version is not used
Histories = Sequence[tuple[CaseMemory, Sequence[EncodedRequest]]]


@dataclass(frozen=True)
class PointerModel:
    """A trained network; `reader`: the task reader beside it, None without one; `decoding`: sample or beam."""

    network: Network
    reader: TaskReader | None = None
    decoding: str = "sample"

    def sequences(self, request: EncodedRequest, memory: CaseMemory, hidden: int | None = None) -> list[Written]:
        """Return sequences for a request, most frequent first; their probabilities sum to 1, see `writing`.

        `hidden` is the case of the memory that is left out, None for none.
        """
        candidates = memory.candidates(request, most_candidates(memory), hidden)
        next_step = lambda prefixes: self.probabilities(candidates, prefixes)
        write = by_beam if self.decoding == "beam" else sampled
        written = write(next_step, Rules(max(map(len, memory.traces))))
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


@dataclass(frozen=True)
class Learning:
    """How a model learns.

    Attributes:
        report: called after every epoch with its number and the mean loss in nats.
        seed: of the draw of cases, the initial weights, the order of the examples and dropout.
        checkpoints: where an interrupted training goes on from; None: it starts anew.
        hiding: what is hidden from cases beyond themselves; None: tasks alone, see `hiding.unknown_tasks`.
        new_sets: share of the cases that are asked the second time as if no case had their set of tasks.
        clients: for each history the client of each case, None where nobody knows it.
        links: for each history the links of each case, see `lwm.retrieval.case_memory`; () where they are consecutive.
        most_prefixes: prefixes that are learnt from, at most.
        epochs: passes of the transformer over the cases; None: as many as their number asks for.
        perceptrons: how many perceptrons make the network, see `lwm.next_step.network`.
    """

    report: Callable[[int, float], None] | None = None
    seed: int = SEED
    checkpoints: Checkpoints | None = None
    hiding: Hiding | None = None
    new_sets: float = 0.0
    clients: Sequence[Sequence[str | None]] = ()
    links: Sequence[Sequence[frozenset[tuple[int, int]]]] = ()
    most_prefixes: int = MOST_LISTS
    epochs: int | None = None
    perceptrons: int = 1


def train(histories: Histories, how: Learning = Learning()) -> PointerModel:
    """Train one model on the cases of all histories, each case hidden from its own memory.

    Every prefix of every case is an example: its candidates, and which of them, or the end, came next. A case with a
    task that is not among its candidates teaches its steps up to that task. Of very many prefixes, cases drawn with
    the seed are kept. `histories` has for each industry its cases and their requests, in the same order.

    Raises TrainingError where no case has a prefix, or the loss is not finite.
    """
    draw = np.random.default_rng(how.seed)
    order = draw.permutation(sum(len(memory.traces) for memory, _ in histories)).tolist()
    lists: list[np.ndarray] = []
    chosen: list[int] = []
    for case, candidates in asked_cases(histories, order, how, draw):
        trace = histories[case[0]][0].traces[case[1]]
        for features, place in examples_of(candidates, trace):
            lists.append(features.astype(np.float32))
            chosen.append(place)
        if how.hiding is None and len(lists) >= how.most_prefixes:
            break
    fitting = Fitting(how.seed, how.report, checkpoints=how.checkpoints, perceptrons=how.perceptrons)
    return PointerModel(train_network(lists, chosen, fitting))


def asked_cases(
    histories: Histories, order: Sequence[int], how: Learning, draw: np.random.Generator
) -> Iterator[tuple[tuple[int, int], Candidates]]:
    """Yield each case, as the number of its history and its own there, with its candidates as they are seen.

    `order` numbers the cases of all histories. A case comes a second time: a share of them without the cases of their
    set of tasks, which come first, and the others with unknown tasks, if any are drawn. Where more than the case itself
    is hidden, each comes once, so many cases are asked that they have `most_prefixes`, and the order is by what is
    hidden.
    """
    if how.hiding is None:
        twice = set()
        if how.new_sets:
            for case, candidates in _of_new_sets(
                histories, _first(histories, order, how.most_prefixes // 2), how, draw
            ):
                twice.add(case)
                yield case, candidates
        for history, n in _first(histories, order):
            memory, requests = histories[history]
            most = most_candidates(memory)
            yield (history, n), memory.candidates(requests[n], most, n)
            if (history, n) not in twice and (unknown := unknown_tasks(memory, draw)).any():
                yield (history, n), memory.candidates(requests[n], most, n, unknown)
        return
    taken = _first(histories, order, how.most_prefixes)
    kinds = how.hiding.drawn(len(taken), draw)
    for history, (memory, requests) in enumerate(histories):
        hidden = {n: kind for (own, n), kind in zip(taken, kinds, strict=True) if own == history}
        clients = (how.clients[history] if how.clients else ()) or [None] * len(memory.traces)
        for view, kind, places in memories(memory, clients, hidden):
            for n, place in places.items():
                candidates = view.candidates(requests[n], most_candidates(memory), place)
                yield (history, n), seen(candidates, kind, draw)


def _first(histories: Histories, order: Sequence[int], most_prefixes: float = np.inf) -> list[tuple[int, int]]:
    """Return the first cases in this order that have so many prefixes, as the number of their history and their own."""
    cases = [(history, n) for history, (memory, _) in enumerate(histories) for n in range(len(memory.traces))]
    prefixes = np.cumsum([1 + len(histories[cases[n][0]][0].traces[cases[n][1]]) for n in order])
    return [cases[n] for n, before in zip(order, [0, *prefixes.tolist()], strict=False) if before < most_prefixes]


def _of_new_sets(
    histories: Histories, cases: Sequence[tuple[int, int]], how: Learning, draw: np.random.Generator
) -> Iterator[tuple[tuple[int, int], Candidates]]:
    """Yield a share of the cases, with their candidates as they are seen where no case has their set of tasks."""
    for history, (memory, requests) in enumerate(histories):
        if not memory.has_names:
            continue
        own, most = [n for number, n in cases if number == history], most_candidates(memory)
        new = [n for n, number in zip(own, draw.random(len(own)), strict=True) if number < how.new_sets]
        for view, asked in without_their_sets(memory, new):
            for n in asked:
                unknown = unknown_tasks(view, draw) | view.declared
                yield (history, n), view.candidates(requests[n], most, None, unknown)


def examples(memory: CaseMemory, request: EncodedRequest, case: int) -> list[tuple[np.ndarray, int]]:
    """Return for each prefix of a case the features of what may come next, and the place of what came."""
    return examples_of(memory.candidates(request, most_candidates(memory), case), memory.traces[case])


def examples_of(candidates: Candidates, trace: Sequence[int]) -> list[tuple[np.ndarray, int]]:
    """Return the `examples` of a case of these tasks with these candidates."""
    place_of = {task: n for n, task in enumerate(candidates.tasks.tolist())}
    done: list[int] = []
    found = []
    for task in [*trace, None]:
        if task is not None and task not in place_of:
            break
        rows = next_step_features(candidates, done)
        open_ = [n for n in range(len(rows)) if n not in done]
        place = len(rows) - 1 if task is None else place_of[task]
        found.append((rows[open_], open_.index(place)))
        if task is not None:
            done.append(place)
    return found


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
