#!/usr/bin/env python3
"""The cheapest path of a large Workflow Graph: seconds and peak memory, beside rustworkx and networkx where they are installed.

    benchmarks/paths.py [--nodes 100000] [--edges 1000000] [--seed N]

Every line is a process of its own: `arrays` builds the CSR arrays from edge columns and searches them, `wfg` does it from a WFG of Python
objects as `optimization.paths.k_best` takes it, the others search the same graph with their own Dijkstra. Prints seconds to build and to
search (wall, and CPU in brackets), peak resident memory, what the graph took of it, and the path's cost, which must be the same.
"""

import argparse
import importlib.util
import itertools
import json
import resource
import subprocess
import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from opus_pipelines.optimization.large import Arrays, cheapest_path
from opus_pipelines.optimization.paths import k_best
from opus_pipelines.wfg.algorithm1 import INPUT, OUTPUT, WFG, WfgEdge, WfgNode

KAPPA = 0.0001
Graph = tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray, np.ndarray]  # src, dst, C by node, 1 - γ and transitions by edge


def main() -> None:
    """Measure each in a child, print a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--nodes", type=int, default=100_000)
    parser.add_argument("--edges", type=int, default=1_000_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--one", choices=MEASURES, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.one:
        print(json.dumps(measured(MEASURES[given.one], random_graph(given.nodes, given.edges, given.seed))))
        return
    own = [f"--{key}={getattr(given, key)}" for key in ("nodes", "edges", "seed")]
    rows = {}
    for name in MEASURES:
        if name in ("rustworkx", "networkx") and importlib.util.find_spec(name) is None:
            print(f"{name:10} not installed")
            continue
        rows[name] = json.loads(subprocess.run([sys.executable, __file__, *own, "--one", name], check=True, capture_output=True).stdout)
        row = rows[name]
        times = [f"{step} {row[step + '_s']:6.2f} s ({row[step + '_cpu_s']:.2f})" for step in ("build", "search")]
        print(f"{name:10} {'  '.join(times)}  peak {row['peak_mb']:6.0f} MB, graph and search {row['grown_mb']:6.0f} MB  "
              f"cost {row['cost_usd']:.6f}  {row['steps']} steps")
    for name in rows.keys() - {"arrays"}:
        assert abs(rows[name]["cost_usd"] - rows["arrays"]["cost_usd"]) < 1e-9, f"{name} found another cost"
    for name in sorted(rows.keys() & {"rustworkx", "networkx"}):
        print(f"search over {name}'s: {rows['arrays']['search_cpu_s'] / rows[name]['search_cpu_s']:.2f} (CPU seconds)")


def random_graph(nodes: int, edges: int, seed: int) -> Graph:
    """Node 0 is the input, 1 the output; edges go anywhere but into the input and out of the output, each once."""
    draw = np.random.default_rng(seed)
    src, dst = draw.integers(0, nodes, edges + edges // 20), draw.integers(1, nodes, edges + edges // 20)
    fit = (src != dst) & (src != 1)
    keys = np.unique(src[fit] * nodes + dst[fit])
    keys = np.sort(draw.permutation(keys)[:edges])
    return keys // nodes, keys % nodes, draw.gamma(2.0, 1.0, nodes), draw.random(len(keys)), draw.integers(0, 1000, len(keys))


def measured(measure: Callable[[Graph], tuple[float, float, float, float, float, int]], graph: Graph) -> dict[str, Any]:
    """One way's seconds, memory and path."""
    before = _peak_mb()
    built_s, built_cpu_s, found_s, found_cpu_s, cost, steps = measure(graph)
    return {
        "build_s": built_s, "build_cpu_s": built_cpu_s, "search_s": found_s, "search_cpu_s": found_cpu_s, "cost_usd": cost, "steps": steps,
        "peak_mb": _peak_mb(), "grown_mb": _peak_mb() - before,
    }


def by_arrays(graph: Graph) -> tuple[float, float, float, float, float, int]:
    """`optimization.large`."""
    src, dst, node_usd, rest, counts = graph
    arrays, *built = _timed(lambda: Arrays.of(src.astype(np.int32), dst.astype(np.int32), _free_ends(node_usd), KAPPA * rest, counts))
    found, *searched = _timed(lambda: cheapest_path(arrays, 0, 1))
    assert found is not None
    return *built, *searched, found[1], len(found[0]) - 1


def by_wfg(graph: Graph) -> tuple[float, float, float, float, float, int]:
    """`optimization.paths.k_best` over Python objects; building means making these objects."""
    src, dst, node_usd, rest, counts = graph
    names = [INPUT, OUTPUT, *(f"t{i:07}" for i in range(2, len(node_usd)))]

    def build() -> WFG:
        columns = (src.tolist(), dst.tolist(), rest.tolist(), counts.tolist())
        edges = (WfgEdge(names[a], names[b], "history", None, r, n, ()) for a, b, r, n in zip(*columns, strict=True))
        return WFG({n: WfgNode(n, n, "history", ()) for n in sorted(names)}, {(e.src, e.dst): e for e in edges})

    wfg, *built = _timed(build)
    cost = dict(zip(names, node_usd.tolist(), strict=True))
    (path,), *searched = _timed(lambda: k_best(wfg, cost.__getitem__, KAPPA, 1).paths)
    return *built, *searched, path.cost, len(path.nodes) - 1


def by_rustworkx(graph: Graph) -> tuple[float, float, float, float, float, int]:
    """rustworkx' Dijkstra from input to output."""
    import rustworkx as rx

    def build() -> Any:
        made = rx.PyDiGraph(multigraph=False)
        made.add_nodes_from(range(len(graph[2])))
        made.add_edges_from(_weighted(graph))
        return made

    made, *built = _timed(build)
    paths, *searched = _timed(lambda: rx.dijkstra_shortest_paths(made, 0, target=1, weight_fn=float))
    nodes = list(paths[1])
    return *built, *searched, sum(made.get_edge_data(a, b) for a, b in itertools.pairwise(nodes)), len(nodes) - 1


def by_networkx(graph: Graph) -> tuple[float, float, float, float, float, int]:
    """networkx' Dijkstra from input to output."""
    import networkx as nx

    def build() -> Any:
        made = nx.DiGraph()
        made.add_weighted_edges_from(_weighted(graph))
        return made

    made, *built = _timed(build)
    (cost, nodes), *searched = _timed(lambda: nx.single_source_dijkstra(made, 0, 1))
    return *built, *searched, cost, len(nodes) - 1


MEASURES = {"arrays": by_arrays, "wfg": by_wfg, "rustworkx": by_rustworkx, "networkx": by_networkx}


def _weighted(graph: Graph) -> list[tuple[int, int, float]]:
    src, dst, node_usd, rest, _ = graph
    return list(zip(src.tolist(), dst.tolist(), (_free_ends(node_usd)[dst] + KAPPA * rest).tolist(), strict=True))


def _free_ends(node_usd: np.ndarray) -> np.ndarray:
    return np.concatenate(([0.0, 0.0], node_usd[2:]))


def _timed(do: Callable[[], Any]) -> tuple[Any, float, float]:
    wall, cpu = time.perf_counter(), time.process_time()
    made = do()
    return made, time.perf_counter() - wall, time.process_time() - cpu


def _peak_mb() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


if __name__ == "__main__":
    main()
