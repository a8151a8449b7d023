#!/usr/bin/env python3
"""Compares both graph engines on one random graph: seconds, CPU seconds, their ratio, and differences of results.

    .venv/bin/python benchmarks/graph_engines.py [--tasks 20000] [--edges 200000] [--rounds 50]

`graphframes` needs its JVM half: OPUS_GRAPHFRAMES_JARS, or graph.graphframes_package from the registry. The session is
started before the clock; the Python process and the JVM are counted together.
"""

import argparse
import sys
import tempfile
import time
from typing import Any

import numpy as np

from opus_pipelines.core.settings import Graph as Rules
from opus_pipelines.core.settings import Settings
from opus_pipelines.wkg.graph_metrics import Engine, Graph, GraphFrames, Local, Metrics
from resources.spark import SparkResource


def main() -> int:
    """Measure both, print a line each and the comparison."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tasks", type=int, default=20_000)
    parser.add_argument("--edges", type=int, default=200_000)
    parser.add_argument("--rounds", type=int, default=50, help="of PageRank")
    arguments = parser.parse_args()
    graph, rules = random_graph(arguments.tasks, arguments.edges), Rules(pagerank_rounds=arguments.rounds)
    print(f"{graph.size:,} tasks, {len(graph.src):,} edges, {arguments.rounds} rounds of PageRank", flush=True)
    own, own_seconds = measured(Local(), graph, rules)
    with tempfile.TemporaryDirectory(prefix="opus-graph-") as lake:
        spark = SparkResource.of(Settings.model_validate({"paths": {"lake": lake}})).graph_session()
        theirs, their_seconds = measured(GraphFrames(spark), graph, rules, spark)
        spark.stop()
    print(f"graphframes takes {their_seconds / own_seconds:,.0f} times as long as local; {comparison(own, theirs)}")
    return 0


def random_graph(tasks: int, edges: int) -> Graph:
    """Ends drawn evenly, weights from 1 to 99; pairs drawn twice count once."""
    rng = np.random.default_rng(0)
    pairs = np.unique(rng.integers(0, tasks, (edges, 2)), axis=0)
    return Graph(tasks, pairs[:, 0], pairs[:, 1], rng.integers(1, 100, len(pairs)))


def measured(engine: Engine, graph: Graph, rules: Rules, spark: Any = None) -> tuple[Metrics, float]:
    """The metrics, and the seconds that they took; prints both kinds of seconds."""
    cpu, wall = cpu_seconds(spark), time.perf_counter()
    metrics = engine.measure(graph, rules)
    seconds = time.perf_counter() - wall
    print(f"{engine.name}: {seconds:.2f} s ({cpu_seconds(spark) - cpu:.2f} CPU s)", flush=True)
    return metrics, seconds


def cpu_seconds(spark: Any) -> float:
    """Of this process, and of the session's JVM where there is one."""
    jvm = (
        spark._jvm.java.lang.ProcessHandle.current().info().totalCpuDuration().get().toMillis() / 1000 if spark else 0.0
    )
    return time.process_time() + jvm


def comparison(own: Metrics, theirs: Metrics) -> str:
    """What differs between two engines' metrics."""
    whole = ("in_degree", "out_degree", "component", "community")
    differing = [name for name in whole if not np.array_equal(getattr(own, name), getattr(theirs, name))]
    apart = np.abs((theirs.pagerank / theirs.pagerank.sum()) / (own.pagerank / own.pagerank.sum()) - 1).max()
    return f"{', '.join(differing) or 'nothing'} differs; PageRank by {apart:.1e} at most, relative"


if __name__ == "__main__":
    sys.exit(main())
