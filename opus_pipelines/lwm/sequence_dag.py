"""A sequence as its dag_s of LWM (10). Here each is a chain: a task waits for the one before it."""

import itertools
from collections.abc import Sequence
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
