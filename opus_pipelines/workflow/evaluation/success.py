"""Computes success probabilities of EVAL A2 in the paper's product form.

It also finds the forks above each node, which show where the product form is not exact.
"""

import math
from collections.abc import Sequence
from typing import NamedTuple

from opus_pipelines.core.errors import WorkflowError
from opus_pipelines.workflow.model import InputNode, OutputNode, TaskNode, Workflow


class Success(NamedTuple):
    """P(S_v) of every node and P_succ(W)."""

    nodes: dict[str, float]
    workflow: float


def success_probabilities(workflow: Workflow) -> dict[str, float]:
    """Returns P(S_v) of every node with independent parents: assumption (i) of EVAL A2."""
    success: dict[str, float] = {}
    for node in workflow.topological():
        parents = math.prod(success[u] for u in workflow.predecessors(node))
        data = workflow.by_id[node]
        if isinstance(data, InputNode):
            success[node] = data.prior
        elif isinstance(data, TaskNode):
            # The two products may round to a hair above 1.
            success[node] = min(1.0, data.p * parents + data.q * (1 - parents))
        else:
            success[node] = parents
    return success


def workflow_success(workflow: Workflow, success: dict[str, float] | None = None) -> float:
    """Returns P_succ(W), EVAL (4): the product over its outputs."""
    known = success_probabilities(workflow) if success is None else success
    return math.prod(known[n.id] for n in workflow.outputs)


def product_success(workflow: Workflow) -> Success:
    """Returns P(S_v) of every node and P_succ(W) in the product form."""
    nodes = success_probabilities(workflow)
    return Success(nodes, workflow_success(workflow, nodes))


class Forks:
    """For every node, the forks at or above it that depend on an uncertain node; a fork has two or more successors.

    Two nodes share an uncertain ancestor exactly where they share such a fork, at which their paths separate. Without
    forks nothing is stored, so a long chain costs no more than its length. Raises WorkflowError where the sets become
    too large.
    """

    MOST = 20_000_000  # most entries that are held at once, some gigabytes; beyond it exact inference is refused

    def __init__(self, workflow: Workflow, uncertain_nodes: frozenset[str] | None = None) -> None:
        """`uncertain_nodes` are those that have a chance of their own; None derives them from the workflow."""
        own = uncertain_nodes
        if own is None:
            own = frozenset(node for node in workflow.by_id if is_uncertain(workflow, node))
        self._above: dict[str, frozenset[str]] = {}
        self._spent, uncertain = 0, dict[str, bool]()
        for node in workflow.topological():
            parents = workflow.predecessors(node)
            uncertain[node] = node in own or any(uncertain[u] for u in parents)
            sets = {id(s): s for s in (self._above[u] for u in parents) if s}
            if uncertain[node] and workflow.has_fork(node):
                sets[0] = frozenset({node})
            self._above[node] = next(iter(sets.values())) if len(sets) == 1 else frozenset().union(*sets.values())
            self.spend(len(self._above[node]) if len(sets) > 1 else 0, self.MOST)
        self._spent = 0

    def above(self, node: str) -> frozenset[str]:
        """Returns the forks at or above a node."""
        return self._above[node]

    def spend(self, steps: int, most: int) -> None:
        """Counts work on one workflow; raises WorkflowError where the sum exceeds `most`."""
        self._spent += steps
        if self._spent > most:
            raise WorkflowError("too many branches meet in so large a workflow for exact success")


def is_uncertain(workflow: Workflow, node: str) -> bool:
    """Returns whether the node has a chance of its own; where π, p and q are 0 or 1, its parents alone decide."""
    data = workflow.by_id[node]
    shares = (data.prior,) if isinstance(data, InputNode) else () if isinstance(data, OutputNode) else (data.p, data.q)
    return any(0 < share < 1 for share in shares)


def disjoint(sets: Sequence[frozenset[str]]) -> bool:
    """Returns whether no two of the sets share an element."""
    return len(frozenset().union(*sets)) == sum(len(s) for s in sets)
