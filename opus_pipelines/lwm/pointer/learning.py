"""The training of the pointer model: every prefix of every case is an example, the case hidden from its own memory.

A case that is hidden alone often has near ones that did the same work, so that a model learns to follow them. So a case
is asked twice: as it is, and a second time in one of two ways. With a few rare tasks that history knows nothing of, a
model learns when to choose a tool that only a contract's catalogue has. Of a memory without the cases of its set of
tasks, it learns to trust the words where similar cases did other work.
"""

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from opus_pipelines.core.ids import digest
from opus_pipelines.lwm.next_step import Fitting, fit_network
from opus_pipelines.lwm.pointer.candidates import Candidates, EncodedRequest
from opus_pipelines.lwm.pointer.memory import CaseMemory
from opus_pipelines.lwm.pointer.model import PointerModel, most_candidates, next_step_features

MOST_LISTS = 18_000  # prefixes that the network is trained on, at most
NEW_SETS = 0.5  # share of the cases that are asked the second time as if no case had their set of tasks
POINTER_SEED = 0
FOLDS = 4  # one set of tasks of so many is hidden at once
UNKNOWN_RATE = 0.2  # share of the tasks of one case that are unknown at once; of n cases the n-th part of it
LEAST_LEFT = 20  # cases that a memory must have left; of a smaller one nothing more is hidden
Histories = Sequence[tuple[CaseMemory, Sequence[EncodedRequest]]]


@dataclass(frozen=True)
class Learning:
    """How a model learns.

    Attributes:
        report: called after every epoch with its number and the mean loss in nats.
        seed: of the draw of cases, the initial weights, the order of the examples and dropout.
        new_sets: share of the cases that are asked the second time as if no case had their set of tasks.
        most_prefixes: prefixes that are learnt from, at most.
        perceptrons: how many perceptrons make the network, see `lwm.next_step`.
    """

    report: Callable[[int, float], None] | None = None
    seed: int = POINTER_SEED
    new_sets: float = 0.0
    most_prefixes: int = MOST_LISTS
    perceptrons: int = 1


def train_pointer(histories: Histories, how: Learning = Learning()) -> PointerModel:
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
    for case, candidates in seen_cases(histories, order, how, draw):
        trace = histories[case[0]][0].traces[case[1]]
        for features, place in examples_of(candidates, trace):
            lists.append(features.astype(np.float32))
            chosen.append(place)
        if len(lists) >= how.most_prefixes:
            break
    fitting = Fitting(how.seed, how.report, perceptrons=how.perceptrons)
    return PointerModel(fit_network(lists, chosen, fitting))


def seen_cases(
    histories: Histories, order: Sequence[int], how: Learning, draw: np.random.Generator
) -> Iterator[tuple[tuple[int, int], Candidates]]:
    """Yield each case, as the number of its history and its own there, with its candidates as they are seen.

    `order` numbers the cases of all histories. A case comes a second time: a share of them without the cases of their
    set of tasks, which come first, and the others with unknown tasks, if any are drawn.
    """
    twice = set()
    if how.new_sets:
        for case, candidates in _of_new_sets(histories, _first(histories, order, how.most_prefixes // 2), how, draw):
            twice.add(case)
            yield case, candidates
    for history, n in _first(histories, order):
        memory, requests = histories[history]
        most = most_candidates(memory)
        yield (history, n), memory.candidates(requests[n], most, n)
        if (history, n) not in twice and (unknown := unknown_tasks(memory, draw)).any():
            yield (history, n), memory.candidates(requests[n], most, n, unknown)


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


def without_their_sets(memory: CaseMemory, cases: Collection[int]) -> Iterator[tuple[CaseMemory, list[int]]]:
    """Yield memories that lack every case of some sets of tasks, a quarter of the sets at once, with the cases of them.

    Tasks that none of the other cases did count as declared there. Tasks must have names: where they are words, every
    set is new, and the words of a hidden case may be from the very request.
    """
    names = [" ".join(map(str, sorted(trace))) for trace in memory.traces]
    folds = [int(digest("fold", name)[:8], 16) % FOLDS for name in names]
    for fold in range(FOLDS):
        asked = [case for case in cases if folds[case] == fold]
        gone = [n for n, other in enumerate(folds) if other == fold]
        if asked and len(folds) - len(gone) >= LEAST_LEFT:
            view = memory.without(gone)
            view.declared = view.counts == 0.0
            yield view, asked


def unknown_tasks(memory: CaseMemory, draw: np.random.Generator) -> np.ndarray:
    """Return which tasks [tasks] a case is asked without, as if a catalogue declared them and no case had done them.

    A task of n cases is drawn with `UNKNOWN_RATE` / n, because what history lacks is rare. Where tasks are words
    instead of names, those of one case are not drawn: their titles may be from the very request.
    """
    drawn = draw.random(len(memory.counts)) * memory.counts < UNKNOWN_RATE
    return np.asarray(drawn & (memory.counts > (0.0 if memory.has_names else 1.0)))
