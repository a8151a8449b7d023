"""A sequence as its dag_s of LWM (10): a chain, in which a task waits for the one before it, or a partial order."""

import itertools
from collections.abc import Collection, Sequence
from dataclasses import dataclass

from opus_pipelines.core.errors import WorkflowError


@dataclass(frozen=True)
class Dag:
    """V_dag_s and E_dag_s; the nodes are task ids in the order of the sequence."""

    nodes: tuple[str, ...]
    edges: tuple[tuple[str, str], ...] = ()

    @property
    def first(self) -> list[str]:
        """Return the nodes without a predecessor."""
        targets = {dst for _, dst in self.edges}
        return [n for n in self.nodes if n not in targets]

    @property
    def last(self) -> list[str]:
        """Return the nodes without a successor."""
        sources = {src for src, _ in self.edges}
        return [n for n in self.nodes if n not in sources]


def chain(sequence: Sequence[str]) -> Dag:
    """Return the chain of the sequence's tasks, each at its first occurrence.

    A loop is planned once: history repeats a task because it failed, and the cost of a failure is in p, q and the
    figures of the task. Raises WorkflowError for a sequence without tasks.
    """
    tasks = tuple(dict.fromkeys(sequence))
    if not tasks:
        raise WorkflowError("a sequence without tasks makes no dag: leave it out")
    return Dag(tasks, tuple(itertools.pairwise(tasks)))


def linear_extensions(sequence: Sequence[str], waits: Collection[tuple[str, str]]) -> Dag:
    """Return the tasks with an edge for every two that can be direct neighbours in an order that keeps `waits`.

    `waits` are pairs (a, b) such that b waits for a; only pairs in the order of the sequence count. A path through all
    tasks exists for every order that keeps them, the sequence itself included, so two tasks of which neither waits for
    the other have edges in both directions. Raises WorkflowError for a sequence without tasks.
    """
    tasks = chain(sequence).nodes
    place = {task: n for n, task in enumerate(tasks)}
    after = {task: set[str]() for task in tasks}
    for a, b in waits:
        if a in place and b in place and place[a] < place[b]:
            after[a].add(b)
    for task in reversed(tasks):  # the transitive closure: a task is also before what waits for its followers
        after[task] |= set[str]().union(*(after[later] for later in after[task]))
    edges = [
        (a, b)
        for a in tasks
        for b in tasks
        if a != b and a not in after[b] and not any(b in after[between] for between in after[a])
    ]
    return Dag(tasks, tuple(edges))
