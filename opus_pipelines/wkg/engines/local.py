"""Graph metrics in the driver: NumPy and SciPy, exact in whole numbers, the same for every order of rows."""

import numpy as np
from scipy.sparse import csr_array
from scipy.sparse.csgraph import connected_components

from opus_pipelines import settings
from opus_pipelines.wkg.engines import MODULUS, Graph, Metrics, draw, named_by_smallest


class Local:
    """The engine for graphs that fit into the driver: about 200 bytes an edge."""

    name = "local"

    def measure(self, graph: Graph, rules: settings.Graph) -> Metrics:
        """All metrics of the graph."""
        labels = propagated(graph, rules.community_rounds)
        within = labels[graph.src] == labels[graph.dst]
        in_degree, out_degree = (np.bincount(ends, minlength=graph.size) for ends in (graph.dst, graph.src))
        return Metrics(
            in_degree, out_degree, _pagerank(graph, out_degree, rules),
            components(graph.size, graph.src, graph.dst), components(graph.size, graph.src[within], graph.dst[within]),
        )


def components(size: int, src: np.ndarray, dst: np.ndarray) -> np.ndarray:
    """The smallest vertex of each vertex's weakly connected component."""
    edges = csr_array((np.ones(len(src), np.int8), (src, dst)), shape=(size, size))
    return named_by_smallest(connected_components(edges, directed=True, connection="weak")[1])


def propagated(graph: Graph, rounds: int) -> np.ndarray:
    """The label of each vertex after label propagation."""
    weights = _neighbours(graph)
    vertices = np.arange(graph.size)
    labels, wanted = vertices.copy(), vertices.copy()
    heard = np.flatnonzero(np.diff(weights.indptr))
    for round_ in range(1, rounds + 1):
        wanted[heard] = _wanted(weights[heard], labels, labels[heard])
        wanting = wanted != labels
        if not wanting.any():
            break
        moves = np.flatnonzero(wanting & ((vertices + 1) * draw(round_) % MODULUS % 2 == 1))
        labels[moves] = wanted[moves]
        heard = np.unique(weights[moves].indices)  # the others hear what they heard in this round
    return labels


def _neighbours(graph: Graph) -> csr_array:
    """Weights between vertices, both ways, without loops."""
    between = graph.src != graph.dst
    src, dst, weight = graph.src[between], graph.dst[between], graph.weight[between]
    ends = np.concatenate([src, dst]), np.concatenate([dst, src])
    return csr_array((np.concatenate([weight, weight]), ends), shape=(graph.size, graph.size))


def _wanted(weights: csr_array, labels: np.ndarray, own: np.ndarray) -> np.ndarray:
    """For each row of `weights` the label that weighs most; of equals the row's own, else the smallest. No row may be empty."""
    size = len(labels)
    votes = weights @ csr_array((np.ones(size, np.int64), labels, np.arange(size + 1)), shape=(size, size))
    if not votes.nnz:
        return own
    rows = np.repeat(np.arange(len(own)), np.diff(votes.indptr))
    starts = votes.indptr[:-1]
    heaviest = votes.data == np.maximum.reduceat(votes.data, starts)[rows]
    wanted = np.minimum.reduceat(np.where(heaviest, votes.indices, size), starts)
    content = rows[heaviest & (votes.indices == own[rows])]
    wanted[content] = own[content]
    return wanted


def _pagerank(graph: Graph, out_degree: np.ndarray, rules: settings.Graph) -> np.ndarray:
    share = 1.0 / out_degree[graph.src]
    received = csr_array((share, (graph.dst, graph.src)), shape=(graph.size, graph.size))
    rank = np.ones(graph.size)
    for _ in range(rules.pagerank_rounds):
        rank = (1 - rules.pagerank_damping) + rules.pagerank_damping * (received @ rank)
    return rank
