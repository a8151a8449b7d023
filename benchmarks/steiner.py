#!/usr/bin/env python3
"""How near the SWKG's tree comes to the lightest one: the approximation against Dreyfus and Wagner on random graphs.

PYTHONPATH=. .venv/bin/python benchmarks/steiner.py [--graphs 200] [--tasks 40] [--terminals 6]
"""

import argparse
import random
import statistics
import sys

from opus_pipelines.wkg.graph import Edge, Task, WorkGraph
from opus_pipelines.wkg.subgraphs import steiner
from tests.wkg.subgraphs.exact_steiner_tree import least_weight, steiner_weight


def main() -> int:
    """Print mean and largest ratio of the two weights."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--graphs", type=int, default=200)
    parser.add_argument("--tasks", type=int, default=40)
    parser.add_argument("--terminals", type=int, default=6)
    arguments = parser.parse_args()
    order, ratios = random.Random(0), []
    for _ in range(arguments.graphs):
        names = [f"t{n:03}" for n in range(arguments.tasks)]
        pairs = {(order.choice(names), order.choice(names)) for _ in range(3 * arguments.tasks)}
        graph = WorkGraph.of(
            [Task(n, n) for n in names],
            [Edge(a, b, 1, 1, 0.0, order.random(), 1.0) for a, b in sorted(pairs) if a != b],
        )
        terminals = order.sample(names, arguments.terminals)
        best = least_weight(graph, terminals, names)
        if best:
            ratios.append(steiner_weight(graph, steiner(graph, terminals, names).tree) / best)
    exact = sum(ratio < 1 + 1e-9 for ratio in ratios)
    print(
        f"{len(ratios)} graphs: mean ratio {statistics.mean(ratios):.4f}, largest {max(ratios):.4f}, optimal in {exact}"
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
