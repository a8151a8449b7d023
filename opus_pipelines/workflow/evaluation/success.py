"""Computes success probabilities of EVAL A2: in the paper's product form, and exactly on its Bayesian network.

Every node is a binary variable. An input is right with probability π. A task is right with p if all its parents are
right and with q otherwise. An output is right if all its parents are. Where parents share no uncertain ancestor, the
product of their probabilities is exact; elsewhere variables are eliminated.
The forks above each node show where the product form is not exact.
"""

import heapq
import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

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


WIDEST = 14
"""The most variables that one table of the elimination may hold: 2^14 numbers for each row, 128 kB."""
_LONGEST = 20_000
"""The most nodes that all eliminations of one workflow may look at together: a third of a second."""
RUNS = 1 << 16
"""Runs of a simulation: the standard error of a probability is at most 0.5 / sqrt(65536) = 0.002."""

Floats = NDArray[np.float64]
Chances = Mapping[str, tuple[Floats, Floats]]
"""p and q by node, each (n,) or (1,); p is π of an input and 1 of an output, q is 0 of both."""
Factor = tuple[tuple[int, ...], Floats]
"""Variables, ascending, and a table with one axis of two (wrong, right) for each; the last axis is the rows."""

_ONE: Factor = (), np.ones(1)
_BOTH = np.array([[[1.0, 0.0], [1.0, 0.0]], [[1.0, 0.0], [0.0, 1.0]]])[..., np.newaxis]
"""1 where the third is "the first and the second"."""


class Inferred(NamedTuple):
    """Success as the settings ask for it, beside the paper's product form.

    `method` is exact, product (because the settings ask for it) or simulated (because exact inference is too wide).
    """

    success: Success
    method: Literal["exact", "product", "simulated"]
    product: Success


def inferred_success(workflow: Workflow, inference: Literal["exact", "product"]) -> Inferred:
    """Returns the success of a workflow; a seeded simulation of `RUNS` runs where exact inference is too wide."""
    product = product_success(workflow)
    if inference == "product":
        return Inferred(product, "product", product)
    try:
        return Inferred(exact_success(workflow), "exact", product)
    except WorkflowError:
        return Inferred(simulated_success(workflow), "simulated", product)


@dataclass(frozen=True)
class Difference:
    """The two results for one node; `node` is None for P_succ(W)."""

    node: str | None
    product: float
    exact: float


def differences(workflow: Workflow, tolerance: float = 1e-12) -> list[Difference]:
    """Returns the product form and the exact result wherever they differ, P_succ(W) last."""
    product, exact = product_success(workflow), exact_success(workflow)
    pairs = [Difference(node, product.nodes[node], exact.nodes[node]) for node in workflow.topological()]
    pairs.append(Difference(None, product.workflow, exact.workflow))
    return [pair for pair in pairs if abs(pair.product - pair.exact) > tolerance]


def exact_success(workflow: Workflow) -> Success:
    """Returns P(S_v) of every node and P_succ(W) = P(all outputs are right), EVAL (4).

    It uses neither assumption (i) nor independent outputs. Raises WorkflowError where a table would have too many
    variables (`WIDEST`), or where too many branches of too large a workflow meet (`_LONGEST`).
    """
    chances = chances_of(workflow)
    network = ExactInference(workflow, chances)
    success: dict[str, Floats] = {}
    for node in workflow.topological():
        all_right = network.all_right(workflow.predecessors(node), success)
        p, q = chances[node]
        # As in the product form, so that the two agree to the last bit wherever that one is exact.
        is_task = isinstance(workflow.by_id[node], TaskNode)
        success[node] = np.minimum(1.0, p * all_right + q * (1 - all_right)) if is_task else p * all_right
    whole = network.all_right([n.id for n in workflow.outputs], success)
    return Success({node: float(right[0]) for node, right in success.items()}, float(whole[0]))


def simulated_success(workflow: Workflow, runs: int = RUNS, seed: int = 0) -> Success:
    """Returns the shares of seeded runs in which each node, and in which all outputs, are right."""
    draw = np.random.default_rng(seed)
    right: dict[str, NDArray[np.bool_]] = {}
    for node, (p, q) in chances_of(workflow).items():
        all_right = np.ones(runs, bool)
        for parent in workflow.predecessors(node):
            all_right &= right[parent]
        right[node] = draw.random(runs) < np.where(all_right, p, q)
    whole = np.ones(runs, bool)
    for output in workflow.outputs:
        whole &= right[output.id]
    return Success({node: float(found.mean()) for node, found in right.items()}, float(whole.mean()))


def chances_of(workflow: Workflow) -> dict[str, tuple[Floats, Floats]]:
    """Returns p and q of every node of one workflow, each (1,), in topological order."""

    def of(node: str) -> tuple[float, float]:
        data = workflow.by_id[node]
        if isinstance(data, TaskNode):
            return data.p, data.q
        return (data.prior if isinstance(data, InputNode) else 1.0), 0.0

    return {node: (np.array([p]), np.array([q])) for node in workflow.topological() for p, q in [of(node)]}


class ExactInference:
    """The Bayesian network of n workflows that share nodes and edges; each row of the figures is one of them."""

    def __init__(self, workflow: Workflow, chances: Chances) -> None:
        self._workflow = workflow
        self._chances = chances
        self._number = {node: i for i, node in enumerate(workflow.topological())}
        self._forks = Forks(workflow, frozenset(n for n, (p, q) in chances.items() if _uncertain(p) or _uncertain(q)))

    @property
    def is_product(self) -> bool:
        """Whether no node, and no pair of outputs, depends on one uncertain ancestor twice: the product is exact."""
        workflow = self._workflow
        groups = [*map(workflow.predecessors, workflow.by_id), [n.id for n in workflow.outputs]]
        return all(disjoint([self._forks.above(u) for u in group]) for group in groups)

    def all_right(self, nodes: Sequence[str], success: Mapping[str, Floats]) -> Floats:
        """Returns P(all these nodes are right), (n,) or (1,), given every P(S_u) up to them.

        Raises WorkflowError where the elimination is too wide or too long.
        """
        if disjoint([self._forks.above(u) for u in nodes]):
            together = np.ones(1)
            for node in nodes:
                together = together * success[node]
            return together
        self._forks.spend(max(self._number[u] for u in nodes), _LONGEST)
        return np.minimum(1.0, _sum_out(self._network(nodes, success)))

    def _network(self, right: Collection[str], success: Mapping[str, Floats]) -> list[Factor]:
        """Returns the factors of these nodes, given that they are right, and of their uncertain ancestors.

        A node of many parents would need a table of 2^parents. Its condition is therefore built parent by parent, with
        a new variable for each step.
        """
        number, fresh = self._number, len(self._number)
        factors: list[Factor] = []
        seen, waiting = set(right), list(right)
        while waiting:
            node = waiting.pop()
            if (success[node] == 1.0).all():
                continue
            parents = [u for u in self._workflow.predecessors(node) if (success[u] < 1.0).any()]
            waiting += [u for u in parents if u not in seen]
            seen.update(parents)
            p, q = np.broadcast_arrays(*self._chances[node])
            open_parents = sorted(number[u] for u in parents if u not in right)
            while len(open_parents) > 1:
                first, second, *rest = open_parents
                factors.append(((first, second, fresh), _BOTH) if first < second else ((second, first, fresh), _BOTH))
                open_parents, fresh = [fresh, *rest], fresh + 1
            table = np.array([[1 - q, q], [1 - p, p]])
            if node in right:
                table = table[:, 1]
            if not open_parents:
                factors.append(((), table[1]) if node in right else ((number[node],), table[1]))
            elif node in right:
                factors.append(((open_parents[0],), table))
            else:
                condition, own = open_parents[0], number[node]
                is_ascending = condition < own
                factors.append(((condition, own), table) if is_ascending else ((own, condition), table.swapaxes(0, 1)))
        return factors


def _uncertain(share: Floats) -> bool:
    return bool(((share > 0) & (share < 1)).any())


def _sum_out(factors: list[Factor]) -> Floats:
    """Returns for each row the sum of the factors' product over all variables.

    Each variable is eliminated when it has the fewest neighbours.
    """
    holding: dict[int, list[int]] = {}
    near: dict[int, set[int]] = {}
    for i, (variables, _) in enumerate(factors):
        for variable in variables:
            holding.setdefault(variable, []).append(i)
            near.setdefault(variable, set()).update(variables)
    heap = [(len(around), variable) for variable, around in near.items()]
    heapq.heapify(heap)
    while near:
        size, variable = heapq.heappop(heap)
        if variable not in near or len(near[variable]) != size:
            continue  # an outdated entry: the variable is eliminated, or its neighbours have changed
        if size > WIDEST:
            raise WorkflowError(
                f"exact success would need a table of 2^{size} numbers, the most is 2^{WIDEST}: "
                "too many uncertain branches cross each other"
            )
        scope = sorted(near.pop(variable))
        rest = tuple(v for v in scope if v != variable)
        touched = holding.pop(variable)
        factors.append((rest, _joined([factors[i] for i in touched], scope).sum(axis=scope.index(variable))))
        for i in touched:
            factors[i] = _ONE  # joined factors are released
        for neighbour in rest:
            near[neighbour] = (near[neighbour] | set(rest)) - {variable}
            holding[neighbour].append(len(factors) - 1)
            heapq.heappush(heap, (len(near[neighbour]), neighbour))
    total = np.ones(1)
    for _, table in factors:
        total = total * table
    return total


def _joined(factors: list[Factor], scope: list[int]) -> Floats:
    """Returns the product of the factors as one table over the scope."""
    table = np.ones((2,) * len(scope) + (1,))
    for variables, values in factors:
        table = table * values.reshape([*(2 if v in variables else 1 for v in scope), values.shape[-1]])
    return table
