"""Defines the Workflow: nodes (inputs, tasks, outputs), edges, the checks of its form, and its TaskOrder.

`workflow.evaluation` computes its worth; `generation.search` finds the best one. A TaskOrder says which tasks wait for
which, as a strict partial order, and names review nodes.
"""

import heapq
import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
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
    (`generation.search.costs`), and is never part of a total. `paid_by_time`: nobody observed the cost, which
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


INPUT, OUTPUT = "input", "output"
Pair = tuple[str, str]


@dataclass(frozen=True)
class TaskOrder:
    """A strict partial order of tasks that their sequence keeps.

    Bit j of `after[i]` is set where task j waits for task i, directly or not; then j stands behind i in `tasks`.
    """

    tasks: tuple[str, ...]
    after: tuple[int, ...]

    @classmethod
    def chain(cls, tasks: Sequence[str]) -> "TaskOrder":
        """Returns the order in which each task waits for all before it."""
        n = len(tasks)
        return cls(tuple(tasks), tuple((1 << n) - (2 << i) for i in range(n)))

    @classmethod
    def of(cls, tasks: Sequence[str], pairs: Iterable[Pair]) -> "TaskOrder":
        """Returns the transitive closure of pairs, each of which the sequence keeps."""
        place = {t: i for i, t in enumerate(tasks)}
        after = [0] * len(tasks)
        for a, b in pairs:
            after[place[a]] |= 1 << place[b]
        return cls(tuple(tasks), _closed(after))

    @property
    def is_chain(self) -> bool:
        """Whether every task waits for the one before it."""
        return all(mask >> (i + 1) & 1 for i, mask in enumerate(self.after[:-1]))

    def pairs(self) -> list[Pair]:
        """Returns every pair of which the second task waits for the first."""
        return [(self.tasks[i], self.tasks[j]) for i, mask in enumerate(self.after) for j in bits(mask)]

    def covers(self) -> list[Pair]:
        """Returns the transitive reduction: the direct waits."""
        return [(self.tasks[i], self.tasks[j]) for i in range(len(self.tasks)) for j in bits(self._direct(i))]

    def unordered_pairs(self) -> list[Pair]:
        """Returns the pairs, in the order of the sequence, of which neither task waits for the other."""
        n = len(self.tasks)
        return [(self.tasks[i], self.tasks[j]) for i in range(n) for j in range(i + 1, n) if not self.after[i] >> j & 1]

    def without_wait(self, a: str, b: str) -> "TaskOrder":
        """Returns the order without one direct wait; all other waits stay."""
        i, j = self.tasks.index(a), self.tasks.index(b)
        return TaskOrder(self.tasks, tuple(mask & ~(1 << j) if k == i else mask for k, mask in enumerate(self.after)))

    def with_wait(self, a: str, b: str) -> "TaskOrder":
        """Returns the order with one more wait, and with the waits that follow from it."""
        i, j = self.tasks.index(a), self.tasks.index(b)
        more = 1 << j | self.after[j]
        return TaskOrder(
            self.tasks, tuple(mask | more if k == i or mask >> i & 1 else mask for k, mask in enumerate(self.after))
        )

    def edges(self) -> list[Pair]:
        """Returns the direct waits with input and output.

        The input comes before the tasks that wait for nothing, the output behind those that nothing waits for.
        """
        direct = self.covers()
        waiting, waited_for = {b for _, b in direct}, {a for a, _ in direct}
        return [
            *((INPUT, t) for t in self.tasks if t not in waiting),
            *direct,
            *((t, OUTPUT) for t in self.tasks if t not in waited_for),
        ]

    def _direct(self, i: int) -> int:
        mask = self.after[i]
        for j in bits(mask):
            mask &= ~self.after[j]
        return mask


def review_id(task: str) -> str:
    """Returns the node id of the review behind a task's node."""
    return f"{task}_{REVIEW}"


def reviewed_task(node: str) -> str:
    """Returns the task whose review has this node id."""
    return node.removesuffix(f"_{REVIEW}")


def bits(mask: int) -> Iterator[int]:
    """Yields the numbers of the bits that are set, lowest first."""
    while mask:
        low = mask & -mask
        yield low.bit_length() - 1
        mask ^= low


def _closed(after: list[int]) -> tuple[int, ...]:
    """Returns the transitive closure; tasks stand behind those they wait for, so one backward pass is enough."""
    for i in reversed(range(len(after))):
        for j in bits(after[i]):
            after[i] |= after[j]
    return tuple(after)
