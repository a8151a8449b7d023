"""Infers success exactly on the Bayesian network of EVAL A2; the product form approximates it where branches meet.

Every node is a binary variable. An input is right with probability π. A task is right with p if all its parents are
right and with q otherwise. An output is right if all its parents are. Where parents share no uncertain ancestor, the
product of their probabilities is exact; elsewhere variables are eliminated.
"""

import heapq
import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from opus_pipelines.core.errors import WorkflowError
from opus_pipelines.evaluation.success import Forks, Success, disjoint, product_success
from opus_pipelines.workflow.model import InputNode, TaskNode, Workflow

WIDEST = 20
"""The most variables that one table of the elimination may hold: 2^20 numbers, 8 MB."""
LONGEST = 2_000_000
"""The most nodes that all eliminations of one workflow may look at together: half a minute."""

Factor = tuple[tuple[int, ...], NDArray[np.float64]]
"""Variables, ascending, and a table with one axis of two (wrong, right) for each."""

_ONE: Factor = (), np.array(1.0)
_BOTH = np.array([[[1.0, 0.0], [1.0, 0.0]], [[1.0, 0.0], [0.0, 1.0]]])
"""1 where the third is "the first and the second"."""


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
    variables (`WIDEST`), or where too many branches of too large a workflow meet (`LONGEST`).
    """
    success: dict[str, float] = {}
    forks = Forks(workflow)
    number = {node: i for i, node in enumerate(workflow.topological())}
    for node in workflow.topological():
        parents = workflow.predecessors(node)
        data = workflow.by_id[node]
        if isinstance(data, InputNode):
            success[node] = data.prior
        else:
            all_right = _all_right(workflow, parents, success, forks, number)
            # As in the product form, so that the two agree to the last bit wherever that one is exact.
            success[node] = (
                min(1.0, data.p * all_right + data.q * (1 - all_right)) if isinstance(data, TaskNode) else all_right
            )
    return Success(success, _all_right(workflow, [n.id for n in workflow.outputs], success, forks, number))


def _all_right(
    workflow: Workflow, nodes: Sequence[str], success: dict[str, float], forks: Forks, number: Mapping[str, int]
) -> float:
    """Returns P(all these nodes are right), given every P(S_u) up to them; `number` is the position of each node."""
    if disjoint([forks.above(u) for u in nodes]):
        return math.prod(success[u] for u in nodes)
    forks.spend(max(number[u] for u in nodes), LONGEST)
    return min(1.0, _sum_out(_network(workflow, nodes, success, number)))


def _network(
    workflow: Workflow, right: Collection[str], success: dict[str, float], number: Mapping[str, int]
) -> list[Factor]:
    """Returns the factors of these nodes, given that they are right, and of their uncertain ancestors.

    A node of many parents would need a table of 2^parents. Its condition is therefore built parent by parent, with a
    new variable for each step.
    """
    fresh = len(number)
    factors: list[Factor] = []
    seen, waiting = set(right), list(right)
    while waiting:
        node = waiting.pop()
        if success[node] == 1.0:
            continue
        parents = [u for u in workflow.predecessors(node) if success[u] < 1.0]
        waiting += [u for u in parents if u not in seen]
        seen.update(parents)
        data = workflow.by_id[node]
        p, q = (
            (data.p, data.q)
            if isinstance(data, TaskNode)
            else (data.prior, 0.0)
            if isinstance(data, InputNode)
            else (1.0, 0.0)
        )
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
            factors.append(((condition, own), table) if condition < own else ((own, condition), table.T))
    return factors


def _sum_out(factors: list[Factor]) -> float:
    """Returns the sum of the factors' product over all variables, each eliminated when it has the fewest neighbours."""
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
                'too many uncertain branches cross each other; set reward.inference = "product"'
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
    return math.prod(float(table) for _, table in factors)


def _joined(factors: list[Factor], scope: list[int]) -> NDArray[np.float64]:
    """Returns the product of the factors as one table over the scope."""
    table = np.ones((2,) * len(scope))
    for variables, values in factors:
        table *= values.reshape([2 if v in variables else 1 for v in scope])
    return table
