"""Computes the graph metrics of the WKG: one interface, and the choice between its two engines with the same answer.

`local` works in the driver, in NumPy and SciPy, until a graph outgrows the machine; `graphframes` on Spark beyond. Both
compute, over distinct directed edges (an edge from a task to itself is one of them):

- degrees: edges into a task, edges out of it;
- component: weakly connected, named by its smallest task id;
- PageRank (Brin and Page 1998), an edge an edge whatever its weight: `rounds` steps of r' = (1 - d) + d·Σ r(j) / out(j)
  from r = 1, divided by their sum. The rank that reaches tasks without successors is spread evenly by that division, at
  the fixed point exactly;
- communities: label propagation (Raghavan, Albert and Kumara 2007) over undirected edges, weighted by transitions,
  without loops. Every task starts as its own label. In a round a task wants the label that weighs most among its
  neighbours; of equals its own, else the smallest. It takes it if it is awake, which is drawn anew each round (`draw`):
  if all moved at once, two colours could swap for ever. It ends when no task wants another label, or after `rounds`. A
  community is a connected part of one label, named by its smallest task id.

Generation reads the communities, and pictures of the WKG the communities and the components. The degrees and PageRank
are columns of `wkg/tasks` for analysts, which no code reads.

Graph metrics on Spark: GraphFrames, and Spark SQL for the rounds of label propagation. GraphFrames computes degrees,
components and PageRank. Its own label propagation has no weights and does not end when all vertices move at once, so
the rounds are ours (sql/wkg/labels.sql).
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from opus_pipelines.core import settings
from opus_pipelines.core.checkout import SQL
from opus_pipelines.core.errors import LakeError
from opus_pipelines.core.registry import Registry, takes

if TYPE_CHECKING:
    from graphframes import GraphFrame
    from pyspark.sql import DataFrame, SparkSession
    from scipy.sparse import csr_array


DIGITS = 12  # decimals of a PageRank that is kept: what lies beyond depends on the order in which an engine adds
MODULUS, MULTIPLIER = 2**31 - 1, 48_271  # Park, Miller and Stockmeyer's generator


@dataclass(frozen=True)
class Graph:
    """`size` vertices, numbered by ascending task id; edge i leads from src[i] to dst[i], weight[i] times. int64,
    sorted, no pair twice.
    """

    size: int
    src: np.ndarray
    dst: np.ndarray
    weight: np.ndarray

    @classmethod
    def of(cls, tasks: pa.Array, edges: pa.Table) -> "Graph":
        """Tasks in ascending order; `edges` with src, dst and transitions, in any order. Raises LakeError for a pair
        that comes twice, and for one that ends outside the tasks.
        """
        ends = [pc.index_in(edges[name], tasks) for name in ("src", "dst")]
        if any(end.null_count for end in ends):
            raise LakeError("an edge ends outside the tasks; `opus rebuild --full` makes both anew")
        src, dst = (end.to_numpy().astype(np.int64) for end in ends)
        order = np.lexsort((dst, src))
        graph = cls(len(tasks), src[order], dst[order], edges["transitions"].to_numpy().astype(np.int64)[order])
        if (np.diff(graph.src * graph.size + graph.dst) == 0).any():
            raise LakeError("a pair of tasks has two edges; `opus rebuild --full` makes them anew")
        return graph


@dataclass(frozen=True)
class Metrics:
    """One value a vertex, by its number; component and community are the number of their smallest vertex."""

    in_degree: np.ndarray
    out_degree: np.ndarray
    pagerank: np.ndarray
    component: np.ndarray
    community: np.ndarray


class Engine(Protocol):
    """What computes the metrics of a graph with at least one edge; `name` stands in the manifest."""

    name: str

    def measure(self, graph: Graph, rules: settings.Graph) -> Metrics:
        """All metrics. `pagerank` need not be scaled."""
        ...


class EngineFactory(Protocol):
    """Makes an engine. `session` starts Spark when it is called: an engine that needs no Spark does not call it."""

    def __call__(self, session: "Callable[[], SparkSession]") -> Engine:
        """Returns the engine."""
        ...


def choose(edges: int, rules: settings.Graph, session: "Callable[[], SparkSession]") -> Engine:
    """Returns the engine of the settings; `auto` takes `local` up to local_max_edges.

    `session` is called only for `graphframes`, and by an added engine that needs it.
    """
    small = "local" if edges <= rules.local_max_edges else "graphframes"
    return GRAPH_ENGINES.get(small if rules.engine == "auto" else rules.engine)(session)


def task_metrics(tasks: Any, edges: pa.Table, rules: settings.Graph, engine: Engine) -> pa.Table:
    """task_id, in_degree, out_degree, pagerank (sums to 1), component, community (task ids), by task id. `tasks`: ids,
    in any order.
    """
    ids = pa.array(sorted(tasks.to_pylist()), pa.string())
    graph = Graph.of(ids, edges)
    found = engine.measure(graph, rules) if len(graph.src) else _alone(graph.size)
    return pa.table(
        {
            "task_id": ids,
            "in_degree": found.in_degree,
            "out_degree": found.out_degree,
            "pagerank": np.round(found.pagerank / (found.pagerank.sum() or 1.0), DIGITS),
            "component": ids.take(pa.array(found.component)),
            "community": ids.take(pa.array(found.community)),
        }
    )


def named_by_smallest(groups: np.ndarray) -> np.ndarray:
    """The number of the smallest vertex that has the same value, for each vertex."""
    _, first, group = np.unique(groups, return_index=True, return_inverse=True)
    return first[group].astype(np.int64)


def draw(round_: int) -> int:
    """The factor of a round, from 1: vertex i is awake when (i + 1) · factor mod 2³¹ − 1, the round-th number of the
    generator seeded with i + 1, is odd. Whole numbers below 2⁶², so that every engine draws the same.
    """
    return pow(MULTIPLIER, round_, MODULUS)


def _alone(size: int) -> Metrics:
    nothing, own = np.zeros(size, np.int64), np.arange(size, dtype=np.int64)
    return Metrics(nothing, nothing, np.ones(size), own, own)


class Local:
    """The engine for graphs that fit into the driver: about 200 bytes an edge."""

    name = "local"

    def measure(self, graph: Graph, rules: settings.Graph) -> Metrics:
        """All metrics of the graph."""
        labels = propagated(graph, rules.community_rounds)
        within = labels[graph.src] == labels[graph.dst]
        in_degree, out_degree = (np.bincount(ends, minlength=graph.size) for ends in (graph.dst, graph.src))
        return Metrics(
            in_degree,
            out_degree,
            _pagerank(graph, out_degree, rules),
            components(graph.size, graph.src, graph.dst),
            components(graph.size, graph.src[within], graph.dst[within]),
        )


BUILT_IN: dict[str, EngineFactory] = {
    "local": lambda session: Local(),
    "graphframes": lambda session: GraphFrames(session()),
}
GRAPH_ENGINES: Registry[EngineFactory] = Registry(
    "graph_engines", BUILT_IN, lambda name, value: takes(value, "session")
)


def components(size: int, src: np.ndarray, dst: np.ndarray) -> np.ndarray:
    """The smallest vertex of each vertex's weakly connected component."""
    from scipy.sparse import csr_array
    from scipy.sparse.csgraph import connected_components

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


def _neighbours(graph: Graph) -> "csr_array":
    """Weights between vertices, both ways, without loops."""
    from scipy.sparse import csr_array

    between = graph.src != graph.dst
    src, dst, weight = graph.src[between], graph.dst[between], graph.weight[between]
    ends = np.concatenate([src, dst]), np.concatenate([dst, src])
    return csr_array((np.concatenate([weight, weight]), ends), shape=(graph.size, graph.size))


def _wanted(weights: "csr_array", labels: np.ndarray, own: np.ndarray) -> np.ndarray:
    """For each row of `weights` the label that weighs most; of equals the row's own, else the smallest. No row may be
    empty.
    """
    from scipy.sparse import csr_array

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
    from scipy.sparse import csr_array

    share = 1.0 / out_degree[graph.src]
    received = csr_array((share, (graph.dst, graph.src)), shape=(graph.size, graph.size))
    rank = np.ones(graph.size)
    for _ in range(rules.pagerank_rounds):
        rank = (1 - rules.pagerank_damping) + rules.pagerank_damping * (received @ rank)
    return rank


JVM_HALF = "org.graphframes.GraphFramePythonAPI"


class GraphFrames:
    """The engine for graphs that outgrow the driver's work, though not its memory: 24 bytes an edge pass through it."""

    name = "graphframes"

    def __init__(self, spark: "SparkSession") -> None:
        self.spark = spark

    def measure(self, graph: Graph, rules: settings.Graph) -> Metrics:
        """All metrics of the graph."""
        vertices, edges = frames(self.spark, graph)
        frame = _graph(vertices, edges)
        ranked = frame.pageRank(resetProbability=1 - rules.pagerank_damping, maxIter=rules.pagerank_rounds)
        metrics = Metrics(
            _column(frame.inDegrees, "inDegree", graph.size),
            _column(frame.outDegrees, "outDegree", graph.size),
            _column(ranked.vertices, "pagerank", graph.size),
            _components(vertices, edges, graph.size),
            _components(vertices, self._within(vertices, edges, rules.community_rounds), graph.size),
        )
        for used in (ranked.vertices, ranked.edges, vertices, edges):
            used.unpersist()
        return metrics

    def _within(self, vertices: "DataFrame", edges: "DataFrame", rounds: int) -> "DataFrame":
        """The edges between vertices of one label."""
        labels = propagated_by_spark(vertices, edges, rounds)
        return self.spark.sql(
            "SELECT src, dst FROM {edges} JOIN {labels} AS a ON a.id = src JOIN {labels} AS b ON b.id = "
            "dst WHERE a.label = b.label",
            edges=edges,
            labels=labels,
        ).localCheckpoint()


def has_jvm_half(spark: "SparkSession") -> bool:
    """Can this session's JVM load GraphFrames?"""
    from py4j.protocol import Py4JJavaError

    try:
        spark._jvm.Thread.currentThread().getContextClassLoader().loadClass(JVM_HALF)  # type: ignore[union-attr]
    except Py4JJavaError:
        return False
    return True


def propagated_by_spark(vertices: "DataFrame", edges: "DataFrame", rounds: int) -> "DataFrame":
    """Id and label after label propagation; needs nothing of GraphFrames."""
    spark = vertices.sparkSession
    query = (SQL / "wkg" / "labels.sql").read_text("utf-8")
    heard = (
        spark.sql(
            "SELECT src AS id, dst AS neighbour, weight FROM {edges} WHERE src <> dst UNION ALL "
            "SELECT dst, src, weight FROM {edges} WHERE src <> dst UNION ALL SELECT id, id, 0 FROM {vertices}",
            edges=edges,
            vertices=vertices,
        )
        .repartition("neighbour")
        .persist()
    )
    labels = vertices.selectExpr("id", "id AS label")
    for round_ in range(1, rounds + 1):
        # written out each round: a plan that holds all rounds before it would grow with them
        labels = spark.sql(query, args={"factor": draw(round_)}, heard=heard, labels=labels).localCheckpoint()
        if labels.filter("moving").isEmpty():
            break
    heard.unpersist()
    return labels


def frames(spark: "SparkSession", graph: Graph) -> tuple["DataFrame", "DataFrame"]:
    """Vertices (id) and edges (src, dst, weight), persisted."""
    vertices = spark.createDataFrame(pa.table({"id": np.arange(graph.size, dtype=np.int64)}))
    edges = spark.createDataFrame(pa.table({"src": graph.src, "dst": graph.dst, "weight": graph.weight}))
    return vertices.persist(), edges.persist()


def _graph(vertices: "DataFrame", edges: "DataFrame") -> "GraphFrame":
    from graphframes import GraphFrame

    return GraphFrame(vertices, edges)


def _components(vertices: "DataFrame", edges: "DataFrame", size: int) -> np.ndarray:
    if edges.isEmpty():
        return np.arange(size, dtype=np.int64)
    # -1: no broadcasts of its own, which its documentation recommends
    found = _graph(vertices, edges).connectedComponents(
        algorithm="two_phase", broadcastThreshold=-1, use_local_checkpoints=True
    )
    component = _column(found, "component", size)
    found.unpersist()
    return named_by_smallest(component)


def _column(frame: "DataFrame", name: str, size: int) -> np.ndarray:
    """A frame's column by vertex; 0 where it has no row."""
    rows: Any = frame.select("id", name).toArrow()
    values = rows[name].to_numpy()
    column = np.zeros(size, np.int64 if values.dtype.kind == "i" else values.dtype)
    column[rows["id"].to_numpy()] = values
    return column
