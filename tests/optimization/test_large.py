"""The one cheapest path over flat arrays: the same path as the search over objects finds, ties included."""

import random

import numpy as np
import pytest

from opus_pipelines.errors import WorkflowError
from opus_pipelines.optimization import paths
from opus_pipelines.optimization.large import Arrays, cheapest_path
from opus_pipelines.optimization.paths import k_best
from opus_pipelines.wfg.algorithm1 import INPUT, OUTPUT, WFG, WfgEdge, WfgNode


def arrays_of(
    nodes: int, edges: list[tuple[int, int, float]], node_usd: list[float] | None = None, counts: list[int] | None = None
) -> Arrays:
    src, dst, usd = (np.array(column) for column in zip(*edges, strict=True))
    transitions = np.array(counts or [0] * len(edges), np.int64)
    return Arrays.of(src.astype(np.int32), dst.astype(np.int32), np.array(node_usd or [0.0] * nodes), usd.astype(float), transitions)


def test_the_same_path_as_over_objects_ties_included(monkeypatch):
    for seed in range(500):
        rng = random.Random(seed)
        names = [INPUT, *"abcdefgh"[: rng.randint(1, 8)], OUTPUT]
        pairs = [(a, b) for a in names for b in names if a != OUTPUT and b != INPUT and rng.random() < 0.4]
        wfg = WFG({n: WfgNode(n, n, "history", ()) for n in sorted(names)},
                  {p: WfgEdge(*p, "history", None, rng.choice([0.0, 0.5, 1.0]), rng.randint(0, 2), ()) for p in sorted(pairs)})
        cost = {n: rng.choice([0.0, 0.1, 0.2, 0.3]) for n in names}
        forbidden = [n for n in names[1:-1] if rng.random() < 0.1]
        found = []
        for large in (10**9, -1):
            monkeypatch.setattr(paths, "LARGE", large)
            found.append(k_best(wfg, cost.__getitem__, 0.1, 1, forbidden=forbidden).paths)
        small, flat = found
        assert [(p.nodes, p.transitions) for p in small] == [(p.nodes, p.transitions) for p in flat], seed
        assert [p.cost for p in small] == pytest.approx([p.cost for p in flat])


def test_costs_of_nodes_and_edges_add_up():
    arrays = arrays_of(4, [(0, 1, 0.5), (0, 2, 0.0), (1, 3, 0.0), (2, 3, 0.0)], [0.0, 1.0, 2.0, 0.25])
    assert cheapest_path(arrays, 0, 3) == ([0, 1, 3], 1.75)


def test_steps_that_cost_nothing_are_steps():
    assert cheapest_path(arrays_of(3, [(0, 1, 0.0), (1, 2, 0.0)]), 0, 2) == ([0, 1, 2], 0.0)
    assert cheapest_path(arrays_of(3, [(0, 1, 0.0), (1, 0, 0.0)]), 0, 2) is None


def test_of_parallel_edges_the_cheapest_counts():
    assert cheapest_path(arrays_of(2, [(0, 1, 3.0), (0, 1, 1.0), (0, 1, 2.0)]), 0, 1) == ([0, 1], 1.0)


def test_among_equals_the_trodden_way_then_the_lower_numbers():
    edges = [(0, n, 1.0) for n in (3, 1, 2)] + [(n, 4, 1.0) for n in (1, 2, 3)]
    assert cheapest_path(arrays_of(5, edges, counts=[9, 1, 1, 1, 1, 9]), 0, 4) == ([0, 3, 4], 2.0)
    assert cheapest_path(arrays_of(5, edges), 0, 4) == ([0, 1, 4], 2.0)


@pytest.mark.parametrize(("edges", "costs", "said"), [
    ([(0, 1, float("nan"))], [0.0, 0.0], "edge 0: its cost is nan"),
    ([(0, 1, -1.0)], [0.0, 0.0], "edge 0: its cost is -1.0"),
    ([(0, 1, 0.0)], [0.0, float("inf")], "node 1: its cost is inf"),
    ([(0, 7, 0.0)], [0.0, 0.0], "an edge ends at node 7; the nodes are 0 to 1"),
])
def test_what_is_no_graph_is_refused(edges, costs, said):
    with pytest.raises(WorkflowError, match=said):
        arrays_of(2, edges, costs)
