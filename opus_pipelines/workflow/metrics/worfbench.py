"""f1_chain and f1_graph of WorFBench (arXiv 2410.07869), in two modes.

`official` gives the figures of the published program, with its deviations from the paper: a prediction without any
match still counts a chain of one, only twenty topological orders of the reference are tried, and f1_graph compares the
predicted numbers of nodes with those of the reference without the match. Only this mode is comparable with published
tables, and only with the same sentence encoder.

`strict` is the paper's definition: nodes are matched first, START and END do not count, nothing matched gives 0, the
chain is the longest one that agrees with some topological order of both graphs, and the common subgraph is the largest
connected one that is induced in both. It does not depend on how nodes are numbered, but where two texts of a workflow
are equal.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import islice

import networkx as nx
import numpy as np

from opus_pipelines.workflow.metrics.opus_metrics import THRESHOLD, best_matches

START, END = "START", "END"
OFFICIAL_ORDERS = 20
OFFICIAL_LISTED = 10  # from this number of nodes on, START and END included, the published program tries no order
MAX_CHAIN_STATES = 200_000
_Edge = tuple[int, int]


@dataclass(frozen=True)
class WorkflowText:
    """A workflow graph as texts: `tasks` are numbered from 1; in `edges` 0 is START and len(tasks) + 1 is END."""

    tasks: tuple[str, ...]
    edges: frozenset[_Edge]

    @classmethod
    def chain(cls, tasks: Sequence[str]) -> "WorkflowText":
        """Returns the graph of tasks that follow one another."""
        return cls(tuple(tasks), frozenset((n, n + 1) for n in range(len(tasks) + 1)))

    @property
    def labels(self) -> list[str]:
        """The texts with START and END."""
        return [START, *self.tasks, END]


@dataclass(frozen=True)
class OverlapScores:
    """Precision, recall and F1 of an overlap of `size` nodes."""

    precision: float
    recall: float
    f1: float
    size: int


def chain_scores(
    predicted: WorkflowText,
    reference: WorkflowText,
    similarity: np.ndarray,
    official: bool = False,
    threshold: float = THRESHOLD,
) -> OverlapScores:
    """Returns f1_chain with its precision and recall.

    Args:
        predicted: the generated workflow.
        reference: the gold workflow.
        similarity: cosines of all labels, START and END included, [len(predicted) + 2, len(reference) + 2].
        official: whether to compute what the published program computes.
        threshold: cosine that a match must exceed.

    Raises ValueError where a graph has a cycle.
    """
    n, m = len(predicted.tasks), len(reference.tasks)
    if official:
        if not n:
            return OverlapScores(0.0, 0.0, 0.0, 0)
        best = max(_official_chain(similarity, chain, n, threshold) for chain in _official_orders(reference))
        return _scores(best[1], n, best[2])
    matches = best_matches(similarity[1 : n + 1, 1 : m + 1], threshold)
    return _scores(_common_chain(matches, _before(predicted), _before(reference)), n, m)


def graph_scores(
    predicted: WorkflowText,
    reference: WorkflowText,
    similarity: np.ndarray,
    official: bool = False,
    threshold: float = THRESHOLD,
) -> OverlapScores:
    """Returns f1_graph with its precision and recall; the arguments are those of `chain_scores`."""
    n, m = len(predicted.tasks), len(reference.tasks)
    if official:
        matched = set(_official_match(similarity, threshold))
        own = {(a, b) for a, b in predicted.edges if a in matched and b in matched}
        common = nx.Graph(list(own & set(reference.edges)))
        common.add_nodes_from(range(n + 2))
        return _scores(max(len(c) for c in nx.connected_components(common)), n + 2, m + 2)
    matches = best_matches(similarity[1 : n + 1, 1 : m + 1], threshold)
    return _scores(_common_subgraph(matches, predicted, reference), n, m)


def _scores(size: int, predicted: int, reference: int) -> OverlapScores:
    if not size:
        return OverlapScores(0.0, 0.0, 0.0, 0)
    return OverlapScores(size / predicted, size / reference, 2 * size / (predicted + reference), size)


# --- the published program


def _official_match(similarity: np.ndarray, threshold: float) -> dict[int, int]:
    graph = nx.Graph()
    for i, j in zip(*np.nonzero(similarity > threshold), strict=True):
        graph.add_edge(int(i), f"g{j}", weight=float(min(1.0, similarity[i, j])))
    pairs = (sorted(pair, key=lambda node: isinstance(node, str)) for pair in nx.max_weight_matching(graph))
    return {int(own): int(gold[1:]) for own, gold in pairs}


def _official_orders(reference: WorkflowText) -> Iterable[list[int]]:
    size = len(reference.tasks) + 2
    if size >= OFFICIAL_LISTED:
        return [list(range(size))]
    orders = islice(nx.all_topological_sorts(_digraph(reference)), OFFICIAL_ORDERS)
    return [[node for node in order if 0 < node < size - 1] for order in orders]


def _official_chain(
    similarity: np.ndarray, chain: Sequence[int], tasks: int, threshold: float
) -> tuple[float, int, int]:
    """Returns F1, the length of the longest increasing run, and the length of the reference chain."""
    match = _official_match(similarity[np.ix_(range(1, tasks + 1), list(chain))], threshold)
    longest = [1] * tasks
    for i in range(tasks):
        for j in range(i):
            if i in match and j in match and match[i] > match[j]:
                longest[i] = max(longest[i], longest[j] + 1)
    size = max(longest)
    return 2 * size / (tasks + len(chain)), size, len(chain)


# --- the paper's definition


def _digraph(workflow: WorkflowText) -> nx.DiGraph:
    graph = nx.DiGraph(sorted(workflow.edges))
    graph.add_nodes_from(range(len(workflow.tasks) + 2))
    if not nx.is_directed_acyclic_graph(graph):
        raise ValueError("a workflow graph has a cycle")
    return graph


def _before(workflow: WorkflowText) -> set[_Edge]:
    """Pairs (a, b) of tasks such that a path leads from a to b; START and END are left out."""
    last = len(workflow.tasks)
    closed = nx.transitive_closure_dag(_digraph(workflow))
    return {(a, b) for a, b in closed.edges if 0 < a <= last and 0 < b <= last}


def _common_chain(matches: Sequence[tuple[int, int]], own: set[_Edge], gold: set[_Edge]) -> int:
    """The largest number of matched tasks that one order can hold which contradicts neither graph.

    Tasks fit into one order where the two relations together have no cycle among them. Cycles lie within strongly
    connected components, so each is searched on its own.
    """
    relation = nx.DiGraph()
    relation.add_nodes_from(range(len(matches)))
    for a, (own_a, gold_a) in enumerate(matches):
        for b, (own_b, gold_b) in enumerate(matches):
            if (own_a + 1, own_b + 1) in own or (gold_a + 1, gold_b + 1) in gold:
                relation.add_edge(a, b)
    return sum(_largest_acyclic(relation, sorted(part)) for part in nx.strongly_connected_components(relation))


def _largest_acyclic(relation: nx.DiGraph, nodes: list[int]) -> int:
    """The size of the largest set of nodes without a cycle; sets grow by a node that leads to none of them."""
    after = {v: sum(1 << nodes.index(w) for w in relation.successors(v) if w in nodes) for v in nodes}
    layer, size = {0}, 0
    while layer:
        larger = {
            kept | 1 << n for kept in layer for n, v in enumerate(nodes) if not kept >> n & 1 and not after[v] & kept
        }
        if not larger:
            return size
        layer, size = set(islice(sorted(larger), MAX_CHAIN_STATES)), size + 1
    return size


def _common_subgraph(matches: Sequence[tuple[int, int]], own: WorkflowText, gold: WorkflowText) -> int:
    """The size of the largest connected set of matched tasks on which both graphs have the same edges.

    START and END connect tasks where both graphs have the edge, but they do not count and their edges contradict
    nothing: parallel tasks are connected, and a workflow that lacks the first task keeps the rest.
    """
    first, second = (
        {(of[a], of[b]) for a, b in graph.edges if a in of and b in of}
        for of, graph in zip(_numbers(matches, own, gold), (own, gold), strict=True)
    )
    tasks = frozenset(range(len(matches)))
    common, conflicts = (
        nx.Graph(list(first & second)),
        [pair for e in first ^ second if (pair := frozenset(e)) <= tasks],
    )
    common.add_nodes_from(tasks)
    seen: set[frozenset[int]] = set()

    def largest(nodes: frozenset[int], bound: int) -> int:
        """The number of tasks of the largest such set within `nodes`, or `bound` where none is larger."""
        for connected in sorted(map(frozenset, nx.connected_components(common.subgraph(nodes))), key=len, reverse=True):
            part = connected & tasks
            if len(part) <= bound or part in seen:
                continue
            seen.add(part)
            conflict = next((pair for pair in conflicts if pair <= part), None)
            if conflict is None:
                bound = len(part)
                continue
            for node in sorted(conflict):
                bound = largest(connected - {node}, bound)
        return bound

    return largest(frozenset(common.nodes), 0)


def _numbers(
    matches: Sequence[tuple[int, int]], own: WorkflowText, gold: WorkflowText
) -> tuple[dict[int, int], dict[int, int]]:
    """For each graph the number of the match of a task, -1 for START and -2 for END."""
    ends = [{0: -1, len(graph.tasks) + 1: -2} for graph in (own, gold)]
    tasks = {i + 1: n for n, (i, _) in enumerate(matches)}, {j + 1: n for n, (_, j) in enumerate(matches)}
    return tasks[0] | ends[0], tasks[1] | ends[1]
