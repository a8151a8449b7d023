"""Defines the Workflow: input, task and output nodes, the edges between them, and the checks of its form.

`workflow.evaluation` computes its worth; `generation.search` finds the best one.
"""

import heapq
import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, NamedTuple

from opus_pipelines.core.errors import WorkflowError

REVIEW = "review"  # the kind of a task node that looks at another's work
UNKNOWN = "unknown"  # the basis of a cost or a time that nobody knows


@dataclass(frozen=True)
class InputNode:
    """An input from the client; `prior` is π, the probability that it is right."""

    id: str
    title: str
    prior: float = 1.0
    data_type: str | None = None
    kind = "input"


class Actor(NamedTuple):
    """Who or what carries out a task: kind of actor, model and group (the role of a person); None where unknown."""

    kind: str | None = None
    model: str | None = None
    group: str | None = None

    @property
    def label(self) -> str:
        """The actor as text."""
        return " ".join(filter(None, self)) or "nobody known"


# The fields of a TaskNode that a row of workflows/tasks and a workflow file have under the same names.
TASK_FIGURES = (
    "actor_kind",
    "model",
    "actor_group",
    "p",
    "p_basis",
    "q",
    "q_basis",
    "cost_usd",
    "cost_compute_usd",
    "cost_model_usd",
    "cost_human_usd",
    "cost_basis",
    "duration_ms",
    "duration_basis",
    "memory_gb",
    "threads",
)


@dataclass(frozen=True)
class TaskNode:
    """One task in one execution mode. The defaults are those of a deterministic task (EVAL A1).

    `p` and `q` are P(it succeeds) given that all its parents did, and that at least one did not. The three parts of
    `cost_usd` may be unknown (None); `workflow.evaluation.cost.split_cost` then splits the cost. `consumes` and
    `holds`: other cumulative and releasable resources by name, r^(g) and r^(r), except dollars, memory and threads.

    A cost or a duration with the basis `unknown` is 0 here, so that totals are sums of known figures; `known_cost_usd`
    and `known_duration_ms` read it. `imputed_usd` stands for the unknown figures where workflows are compared
    (`generation.search.imputed_figures`), and is never part of a total. `paid_by_time`: nobody observed the cost, which
    is the observed duration at a stated price, so that it changes with the duration.
    """

    id: str
    task_id: str
    title: str
    p: float = 1.0
    p_basis: str = "prior"
    q: float = 0.0
    q_basis: str = "prior"
    cost_usd: float = 0.0
    cost_compute_usd: float | None = None
    cost_model_usd: float | None = None
    cost_human_usd: float | None = None
    cost_basis: str = "prior"
    duration_ms: float = 0.0
    duration_basis: str = "prior"
    memory_gb: float = 0.0
    threads: float = 0.0
    actor_kind: str | None = None
    model: str | None = None
    kind: str = "task"
    consumes: Mapping[str, float] = field(default_factory=dict, hash=False)
    holds: Mapping[str, float] = field(default_factory=dict, hash=False)
    inputs: tuple[str, ...] = ()
    outputs: tuple[str, ...] = ()
    objective: str | None = None
    success_criterion: str | None = None
    instructions: tuple[str, ...] = ()
    actor_group: str | None = None
    imputed_usd: float = 0.0
    paid_by_time: bool = False

    @property
    def actor(self) -> Actor:
        """Who or what carries out the task."""
        return Actor(self.actor_kind, self.model, self.actor_group)

    @property
    def known_cost_usd(self) -> float | None:
        """The cost in dollars; None where it is unknown."""
        return None if self.cost_basis == UNKNOWN else self.cost_usd

    @property
    def known_duration_ms(self) -> float | None:
        """The working time in ms; None where it is unknown."""
        return None if self.duration_basis == UNKNOWN else self.duration_ms

    @property
    def is_review(self) -> bool:
        """Whether the node checks the result of the step before it instead of being a task of its own."""
        return self.kind == REVIEW

    @property
    def bases(self) -> tuple[str, str, str, str]:
        """The bases of its p, q, cost and duration."""
        return self.p_basis, self.q_basis, self.cost_basis, self.duration_basis

    @property
    def held(self) -> dict[str, float]:
        """r^(r): the amount of every releasable resource by name, memory in GB and threads included."""
        return {"memory_gb": self.memory_gb, "threads": self.threads, **self.holds}


@dataclass(frozen=True)
class OutputNode:
    """An output to the client; `gain_usd` is g, earned if it is right.

    None means that no gain is stated; then there is no Reward.
    """

    id: str
    title: str
    gain_usd: float | None
    data_type: str | None = None
    kind = "output"


Node = InputNode | TaskNode | OutputNode
_ORDER = (InputNode, TaskNode, OutputNode)


@dataclass(frozen=True)
class Workflow:
    """W = (G, Φ). `Workflow.of` creates it and rejects a graph that is not well formed."""

    nodes: tuple[Node, ...]
    edges: tuple[tuple[str, str], ...]

    @classmethod
    def of(cls, nodes: Iterable[Node], edges: Iterable[tuple[str, str]]) -> "Workflow":
        """Returns a checked workflow, its edges sorted and each once; raises WorkflowError with every defect."""
        workflow = cls(tuple(nodes), tuple(sorted(set(edges))))
        if defects := validate(workflow):
            raise WorkflowError("not a workflow: " + "; ".join(defects))
        return workflow

    @cached_property
    def _hash(self) -> int:
        return hash((self.nodes, self.edges))

    def __hash__(self) -> int:
        """Returns the hash, which is computed once: caches of plans ask for it often."""
        return self._hash

    def __getstate__(self) -> dict[str, Any]:
        """Leaves the hash out of a pickle: that of a text differs in another process."""
        return {"nodes": self.nodes, "edges": self.edges}

    def without_imputed(self) -> "Workflow":
        """Returns the same workflow with its known costs alone; itself where nothing is imputed."""
        if not any(task.imputed_usd for task in self.tasks):
            return self
        known = (replace(n, imputed_usd=0.0) if isinstance(n, TaskNode) else n for n in self.nodes)
        return Workflow(tuple(known), self.edges)

    @cached_property
    def by_id(self) -> dict[str, Node]:
        """Each node by its id."""
        return {n.id: n for n in self.nodes}

    @property
    def inputs(self) -> list[InputNode]:
        """V_in, in the given order."""
        return [n for n in self.nodes if isinstance(n, InputNode)]

    @property
    def tasks(self) -> list[TaskNode]:
        """V_task, in the given order."""
        return [n for n in self.nodes if isinstance(n, TaskNode)]

    @property
    def outputs(self) -> list[OutputNode]:
        """V_out, in the given order."""
        return [n for n in self.nodes if isinstance(n, OutputNode)]

    @property
    def states_gain(self) -> bool:
        """Whether every output states its gain; otherwise there is no Reward."""
        return all(n.gain_usd is not None for n in self.outputs)

    @cached_property
    def _parents(self) -> dict[str, list[str]]:
        parents = defaultdict(list)
        for src, dst in sorted(self.edges):
            parents[dst].append(src)
        return parents

    @cached_property
    def _children(self) -> dict[str, list[str]]:
        children = defaultdict(list)
        for src, dst in sorted(self.edges):
            children[src].append(dst)
        return children

    def predecessors(self, node: str) -> list[str]:
        """Returns pa(v), sorted by id."""
        return list(self._parents.get(node, ()))

    def successors(self, node: str) -> list[str]:
        """Returns the nodes that v leads to, sorted by id."""
        return list(self._children.get(node, ()))

    def before(self, nodes: Iterable[str]) -> frozenset[str]:
        """Returns these nodes and all nodes from which one of them can be reached."""
        ancestors, left = set(nodes), list(nodes)
        while left:
            new = [n for n in self.predecessors(left.pop()) if n not in ancestors]
            ancestors.update(new)
            left += new
        return frozenset(ancestors)

    def has_fork(self, node: str) -> bool:
        """Returns whether the node leads to two nodes or more."""
        return len(self._children.get(node, ())) > 1

    @cached_property
    def _order(self) -> tuple[str, ...]:
        waiting = {n: sum(u in self.by_id for u in self.predecessors(n)) for n in self.by_id}
        key = {n.id: (_ORDER.index(type(n)), n.id) for n in self.nodes}
        ready = [key[n] for n, parents in waiting.items() if not parents]
        heapq.heapify(ready)
        order: list[str] = []
        while ready:
            order.append(heapq.heappop(ready)[1])
            for child in filter(waiting.__contains__, self.successors(order[-1])):
                waiting[child] -= 1
                if not waiting[child]:
                    heapq.heappush(ready, key[child])
        return tuple(order)

    def topological(self) -> list[str]:
        """Returns the id of every node, parents first; of those that are ready, inputs first, outputs last, then by id.

        Nodes on a cycle or behind one are left out; `validate` rejects them.
        """
        return list(self._order)


def validate(workflow: Workflow) -> list[str]:
    """Returns every defect of the workflow, each a sentence that names node or edge; an empty list means none."""
    defects = [f"node {i!r} occurs {n} times" for i, n in Counter(n.id for n in workflow.nodes).items() if n > 1]
    for node in workflow.nodes:
        defects += _figures(node)
    strangers = [(edge, end) for edge in workflow.edges for end in edge if end not in workflow.by_id]
    defects += [f"edge {src!r} -> {dst!r}: no node {end!r}" for (src, dst), end in strangers]
    defects += [f"input {n.id!r} has parents" for n in workflow.inputs if workflow.predecessors(n.id)]
    defects += [f"output {n.id!r} has children" for n in workflow.outputs if workflow.successors(n.id)]
    defects += [
        f"output {n.id!r} has no parents: nothing makes it" for n in workflow.outputs if not workflow.predecessors(n.id)
    ]
    if not workflow.states_gain:
        defects += [
            f"output {n.id!r} states gain_usd and another output does not"
            for n in workflow.outputs
            if n.gain_usd is not None
        ]
    return defects + _cycle(workflow)


def _figures(node: Node) -> list[str]:
    """Returns the defects of the node's own numbers."""
    if isinstance(node, OutputNode):
        if node.gain_usd is None or math.isfinite(node.gain_usd):
            return []
        return [f"output {node.id!r}: gain_usd is {node.gain_usd}, not a finite number"]
    shares = {"prior": node.prior} if isinstance(node, InputNode) else {"p": node.p, "q": node.q}
    defects = [
        f"{node.kind} {node.id!r}: {name} is {x}, not in [0, 1]" for name, x in shares.items() if not 0 <= x <= 1
    ]
    if isinstance(node, TaskNode):
        amounts = {name: getattr(node, name) for name in _AMOUNTS}
        amounts |= {
            f"{vector} {name}": x for vector in ("consumes", "holds") for name, x in getattr(node, vector).items()
        }
        defects += [
            f"{node.kind} {node.id!r}: {name} is {x}, not finite and at least 0"
            for name, x in amounts.items()
            if x is not None and not (math.isfinite(x) and x >= 0)
        ]
    return defects


_AMOUNTS = (
    "cost_usd",
    "cost_compute_usd",
    "cost_model_usd",
    "cost_human_usd",
    "imputed_usd",
    "duration_ms",
    "memory_gb",
    "threads",
)


def _cycle(workflow: Workflow) -> list[str]:
    """Returns one cycle from its smallest id on, if there is any.

    It walks back from a node outside the topological order over parents outside it.
    """
    stuck = set(workflow.by_id).difference(workflow.topological())
    if not stuck:
        return []
    walk = {min(stuck): 0}
    while True:
        parent = next(u for u in workflow.predecessors(next(reversed(walk))) if u in stuck)
        if parent in walk:
            ring = list(walk)[walk[parent] :][::-1]
            first = ring.index(min(ring))
            return ["cycle " + " -> ".join(repr(n) for n in [*ring[first:], *ring[:first], ring[first]])]
        walk[parent] = len(walk)
