"""What training hides from a case beyond the case itself: tasks, near cases, whole clients and the whole industry.

A case that is hidden alone often has near ones that did the same work, so that a model learns to follow them. What it
should do where there are none is learnt from cases that are seen without them:

    near cases   a quarter of the groups of similar requests is unknown to the memory that the case is asked of
    client       a quarter of the clients is
    tasks        history knows nothing of a quarter of the tasks: they have a name and a text alone
    industry     history knows nothing of any task

Without any of these, a case is asked twice: as it is, and a second time in one of two ways. With a few rare tasks that
history knows nothing of, a model learns when to choose a tool that only a contract's catalogue has. Of a memory without
the cases of its set of tasks, it learns to trust the words where similar cases did other work.
"""

from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from opus_pipelines.core.ids import digest
from opus_pipelines.lwm.pointer.candidates import FEATURES, Candidates
from opus_pipelines.lwm.pointer.memory import CaseMemory

NEAR = 0.75  # cosine of two requests from which they are of one group
FOLDS = 4  # one group, or client, of so many is hidden at once
UNKNOWN_TASKS = 0.25  # share of the tasks that are hidden at once
UNKNOWN_RATE = 0.2  # share of the tasks of one case that are unknown at once; of n cases the n-th part of it
LEAST_LEFT = 20  # cases that a memory must have left; of a smaller one nothing more is hidden
OWN, NEAR_CASES, CLIENT, TASKS, INDUSTRY = "own", "near cases", "client", "tasks", "industry"

OF_TEXTS = (  # features that no history is needed for
    "cosine",
    "cosine of the best clause",
    "common words",
    "words of the title",
    "beginnings of the title",
    "letters of the title",
    "rarest word of the title",
)
OF_THE_REQUEST = ("nearest case", "rank", "expected steps")  # they are computed anew, or are of the request


@dataclass(frozen=True)
class Hiding:
    """The shares of the cases that are seen without near cases, their client, some tasks, or all of the industry.

    The other cases are seen without themselves alone.
    """

    near_cases: float = 0.5
    clients: float = 0.1
    tasks: float = 0.1
    industry: float = 0.1

    def drawn(self, count: int, draw: np.random.Generator) -> list[str]:
        """Return what is hidden from each of `count` cases."""
        shares = [self.near_cases, self.clients, self.tasks, self.industry]
        kinds = [NEAR_CASES, CLIENT, TASKS, INDUSTRY, OWN]
        return [str(kind) for kind in draw.choice(kinds, count, p=[*shares, max(0.0, 1.0 - sum(shares))])]


def groups_of(vectors: np.ndarray) -> list[int]:
    """Return for each unit vector [n, d] the group of similar ones that it is in.

    Each joins the first vector before it that founded a group and has a cosine of at least `NEAR`; where there is
    none, it founds one.
    """
    founders: list[int] = []
    groups = []
    for n, vector in enumerate(vectors):
        near = np.flatnonzero(vectors[founders] @ vector >= NEAR) if founders else np.array([], int)
        if len(near):
            groups.append(int(near[0]))
        else:
            groups.append(len(founders))
            founders.append(n)
    return groups


def folds_of(names: Sequence[object]) -> list[int]:
    """Return for each case the fold of its group or client, by hash."""
    return [int(digest("fold", name)[:8], 16) % FOLDS for name in names]


def memories(
    memory: CaseMemory, clients: Sequence[str | None], hidden: Mapping[int, str]
) -> Iterator[tuple[CaseMemory, str, dict[int, int | None]]]:
    """Yield the memories that cases are asked of, one after the other, with what is hidden there and the cases.

    `clients` has the client of each case, None where nobody knows it; `hidden` tells what is hidden from which cases.
    Each case comes with its place in the memory, None where it is not in it.
    """
    known: dict[str, list[int]] = defaultdict(list)
    for case, kind in hidden.items():
        known[kind].append(case)
    for kind in (OWN, TASKS, INDUSTRY):
        if known[kind]:
            yield memory, kind, {case: case for case in known[kind]}
    for kind, names in ((NEAR_CASES, groups_of(memory.vectors)), (CLIENT, list(clients))):
        folds = [None if name is None else fold for fold, name in zip(folds_of(names), names, strict=True)]
        for fold in (None, *range(FOLDS)):
            cases = [case for case in known[kind] if folds[case] == fold]
            gone = [n for n, other in enumerate(folds) if other == fold]
            if cases and (fold is None or len(folds) - len(gone) < LEAST_LEFT):
                yield memory, OWN, {case: case for case in cases}
            elif cases:
                yield memory.without(gone), kind, dict.fromkeys(cases)


def without_their_sets(memory: CaseMemory, cases: Collection[int]) -> Iterator[tuple[CaseMemory, list[int]]]:
    """Yield memories that lack every case of some sets of tasks, a quarter of the sets at once, with the cases of them.

    Tasks that none of the other cases did count as declared there. Tasks must have names: where they are words, every
    set is new, and the words of a hidden case may be from the very request.
    """
    folds = folds_of([" ".join(map(str, sorted(trace))) for trace in memory.traces])
    for fold in range(FOLDS):
        asked = [case for case in cases if folds[case] == fold]
        gone = [n for n, other in enumerate(folds) if other == fold]
        if asked and len(folds) - len(gone) >= LEAST_LEFT:
            view = memory.without(gone)
            view.declared = view.counts == 0.0
            yield view, asked


def blinded(candidates: Candidates, tasks: np.ndarray) -> Candidates:
    """Return the candidates as if no case had done some of them; `tasks` [k] says which."""
    found = candidates.without_history_of(tasks)
    features, likelihood = found.features, found.likelihood
    features[:, FEATURES.index("rank")] = (-likelihood).argsort(kind="stable").argsort(kind="stable")
    features[:, FEATURES.index("expected steps")] = likelihood.sum()
    if tasks.all():
        features[:, FEATURES.index("nearest case")] = -1.0
    return found


def unknown_tasks(memory: CaseMemory, draw: np.random.Generator) -> np.ndarray:
    """Return which tasks [tasks] a case is asked without, as if a catalogue declared them and no case had done them.

    A task of n cases is drawn with `UNKNOWN_RATE` / n, because what history lacks is rare. Where tasks are words
    instead of names, those of one case are not drawn: their titles may be from the very request.
    """
    drawn = draw.random(len(memory.counts)) * memory.counts < UNKNOWN_RATE
    return np.asarray(drawn & (memory.counts > (0.0 if memory.has_names else 1.0)))


def seen(candidates: Candidates, kind: str, draw: np.random.Generator) -> Candidates:
    """Return the candidates of a case as it is seen where `kind` is hidden."""
    if kind == INDUSTRY:
        return blinded(candidates, np.ones(len(candidates.tasks), bool))
    if kind == TASKS:
        return blinded(candidates, draw.random(len(candidates.tasks)) < UNKNOWN_TASKS)
    return candidates
