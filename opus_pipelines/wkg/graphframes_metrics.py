"""Graph metrics on Spark: GraphFrames, and Spark SQL for the rounds of label propagation.

GraphFrames computes degrees, components and PageRank. Its own label propagation has no weights and does not end when
all vertices move at once, so the rounds are ours (sql/wkg/labels.sql).
"""

from importlib.resources import files
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from opus_pipelines.core import settings
from opus_pipelines.wkg.graph_metrics import Graph, Metrics, draw, named_by_smallest

if TYPE_CHECKING:
    from graphframes import GraphFrame
    from pyspark.sql import DataFrame, SparkSession

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
    query = (files("sql") / "wkg" / "labels.sql").read_text("utf-8")
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
