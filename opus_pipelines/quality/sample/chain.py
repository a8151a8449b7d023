"""Describes a kind of case as a Markov chain over (node, state), and computes its exact expectations.

The simulation and the truth use the same chain.
"""

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import chain as flatten
from typing import Any

import numpy as np

from opus_pipelines.quality.sample.model import Check, Kind, Maybe, Needed, Task, Together

END = -1
Options = list[tuple[int, float]]


@dataclass
class Chain:
    """Nodes with their tasks, and where a case goes next when it is right and when it is wrong (END ends it)."""

    tasks: list[str] = field(default_factory=list)
    groups: list[int | None] = field(default_factory=list)
    right: list[Options] = field(default_factory=list)
    wrong: list[Options] = field(default_factory=list)
    start: Options = field(default_factory=lambda: [(END, 1.0)])

    def add(self, task: str, following: Options, group: int | None = None) -> int:
        """Adds a node whose case goes on to `following`, right or wrong."""
        self.tasks.append(task)
        self.groups.append(group)
        self.right.append(following)
        self.wrong.append(following)
        return len(self.tasks) - 1


def variants(kind: Kind) -> list[tuple[float, Chain, bool]]:
    """Returns (share of cases, their chain, whether it is the shortcut) for each variant of a kind."""
    needed = kind.needed
    full = (1 - needed.skipped if needed else 1.0, compile_chain(kind), False)
    return [full, (needed.skipped, compile_chain(kind, needed.task), True)] if needed else [full]


def compile_chain(kind: Kind, skip: str | None = None) -> Chain:
    """Returns the flow of a kind as a chain, without the task `skip`.

    It is built from the end, so that each element knows its successor.
    """
    chain = Chain()
    backs: list[tuple[int, Check]] = []
    for group, element in reversed(list(enumerate(kind.flow))):
        if isinstance(element, Together):
            chain.start = _together(chain, element, group)
        elif isinstance(element, Maybe):
            node = chain.add(element.task, chain.start)
            chain.start = [(node, element.share)] + [(n, pr * (1 - element.share)) for n, pr in chain.start]
        elif not (isinstance(element, Needed) and element.task == skip):
            node = chain.add(element.task, chain.start)
            chain.start = [(node, 1.0)]
            if isinstance(element, Check):
                backs.append((node, element))
    for node, check in backs:
        target = chain.tasks.index(check.back_to)
        chain.wrong[node] = [(target, check.share)] + [(n, pr * (1 - check.share)) for n, pr in chain.right[node]]
    return chain


def _together(chain: Chain, element: Together, group: int) -> Options:
    """Adds the nodes of a parallel block, one for each (task, tasks done before it). Returns how the block begins."""
    following = chain.start
    known: dict[tuple[str, frozenset[str]], int] = {}

    def begin(done: frozenset[str]) -> Options:
        rest = {t: w for t, w in element.weights.items() if t not in done}
        if not rest:
            return following
        return [(node(task, done), weight / sum(rest.values())) for task, weight in rest.items()]

    def node(task: str, done: frozenset[str]) -> int:
        if (task, done) not in known:
            known[task, done] = chain.add(task, begin(done | {task}), group)
        return known[task, done]

    return begin(frozenset())


@dataclass
class Expected:
    """Expectations for one case of a chain.

    They are counts of visits, starts, ends and transitions by task, and P(right at the end).
    """

    visits: dict[str, float]
    after_wrong: dict[str, float]
    starts: dict[str, float]
    ends: dict[str, float]
    transitions: dict[tuple[str, str], float]
    right: float


def expected(chain: Chain, tasks: Mapping[str, Task]) -> Expected:
    """Returns the exact expectations, from the linear system of the chain over (node, state before)."""
    size = len(chain.tasks)
    moves = np.zeros(
        (2 * size, 2 * size)
    )  # from (node, state before) to (next node, state before it); 2i is right, 2i + 1 wrong
    entry = np.zeros(2 * size)
    for target, probability in chain.start:
        entry[2 * target] += probability
    for node, before, after, options, chance in _steps(chain, tasks):
        for target, probability in options:
            if target != END:
                moves[2 * node + before, 2 * target + after] += chance * probability
    visits = np.linalg.solve((np.eye(2 * size) - moves).T, entry)
    return _by_task(chain, tasks, visits)


def _steps(chain: Chain, tasks: Mapping[str, Task]) -> list[tuple[int, int, int, Options, float]]:
    """Yields (node, wrong before, wrong after, next node, probability of that state after)."""
    steps = []
    for node, name in enumerate(chain.tasks):
        for before, chance in ((0, tasks[name].p), (1, tasks[name].q)):
            steps.append((node, before, 0, chain.right[node], chance))
            steps.append((node, before, 1, chain.wrong[node], 1 - chance))
    return steps


def _by_task(chain: Chain, tasks: Mapping[str, Task], visits: np.ndarray) -> Expected:
    sums: dict[str, dict[Any, Any]] = {
        name: defaultdict(float) for name in ("visits", "after_wrong", "starts", "ends", "transitions")
    }
    right = 0.0
    for node, name in enumerate(chain.tasks):
        sums["visits"][name] += visits[2 * node] + visits[2 * node + 1]
        sums["after_wrong"][name] += visits[2 * node + 1]
    for node, probability in chain.start:
        sums["starts"][chain.tasks[node]] += probability
    for node, before, after, options, chance in _steps(chain, tasks):
        for target, probability in options:
            flow = float(visits[2 * node + before] * chance * probability)
            if target == END:
                sums["ends"][chain.tasks[node]] += flow
                right += flow * (after == 0)
            else:
                sums["transitions"][chain.tasks[node], chain.tasks[target]] += flow
    return Expected(**{name: dict(values) for name, values in sums.items()}, right=right)


def mixed(parts: list[tuple[float, Expected]]) -> Expected:
    """Returns the weighted sum of expectations. `right` is meaningful only where the weights add up to 1."""

    def total(name: str) -> dict[Any, Any]:
        keys = dict.fromkeys(flatten.from_iterable(getattr(e, name) for _, e in parts))
        return {key: sum(w * getattr(e, name).get(key, 0.0) for w, e in parts) for key in keys}

    names = ("visits", "after_wrong", "starts", "ends", "transitions")
    return Expected(**{name: total(name) for name in names}, right=sum(w * e.right for w, e in parts))
