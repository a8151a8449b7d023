"""k best paths against brute force over every loopless path of small random graphs."""

import itertools
import random

import pytest

from opus_pipelines.errors import WorkflowError
from opus_pipelines.optimization import search
from opus_pipelines.optimization.paths import k_best
from opus_pipelines.wfg.algorithm1 import INPUT, OUTPUT, WFG, WfgEdge, WfgNode, workflow_graph
from opus_pipelines.wfg.dag import chain
from opus_pipelines.wkg.graph import Edge, Task, WorkGraph


def wfg_of(edges: dict[tuple[str, str], tuple[float, int]]) -> WFG:
    names = sorted({n for pair in edges for n in pair} | {INPUT, OUTPUT})
    return WFG({n: WfgNode(n, n, "history", ()) for n in names},
               {(a, b): WfgEdge(a, b, "history", None, cost, count, ()) for (a, b), (cost, count) in sorted(edges.items())})


def random_wfg(rng: random.Random) -> tuple[WFG, dict[str, float]]:
    names = [INPUT, *"abcdefg"[: rng.randint(1, 7)], OUTPUT]
    pairs = [(a, b) for a, b in itertools.product(names, names) if a != OUTPUT and b != INPUT and rng.random() < 0.35]
    wfg = wfg_of({pair: (rng.choice([0.0, 0.5, 1.0]), rng.randint(0, 3)) for pair in pairs})
    return wfg, {n: rng.choice([0.0, 0.1, 0.2, 1.0]) for n in names}


def brute_force(wfg: WFG, cost: dict[str, float], kappa: float, required, forbidden) -> list[tuple[str, ...]]:
    """Every fitting loopless path, by cost, then by how trodden, then by nodes, on sums rounded to where rounding errors end."""
    inner = sorted(set(wfg.nodes) - {INPUT, OUTPUT} - set(forbidden))
    found = []
    for n in range(len(inner) + 1):
        for middle in itertools.permutations(inner, n):
            nodes = (INPUT, *middle, OUTPUT)
            edges = [wfg.edges.get(pair) for pair in itertools.pairwise(nodes)]
            if None not in edges and all(set(group) & set(nodes) for group in required):
                price = sum(cost[m] for m in middle) + kappa * sum(e.one_minus_gamma for e in edges)
                found.append((round(price, 9), round(sum(1 / (1 + e.transitions) for e in edges), 9), nodes))
    return [nodes for _, _, nodes in sorted(found)]


@pytest.mark.parametrize("seed", range(300))
def test_against_brute_force(seed, monkeypatch):
    rng = random.Random(seed)
    wfg, cost = random_wfg(rng)
    inner = sorted(set(wfg.nodes) - {INPUT, OUTPUT})
    groups = rng.choice([0, 0, 1, 2, 4]) if inner else 0
    required = [frozenset(rng.sample(inner, min(len(inner), rng.randint(1, 3)))) for _ in range(groups)]
    forbidden = [n for n in inner if rng.random() < 0.1]
    # The groups beyond the guiding ones are only verified: the answer must not depend on how many guide.
    monkeypatch.setattr(search, "MAX_STATES", rng.choice([0, 12, 100_000]))
    k = rng.randint(1, 6)
    result = k_best(wfg, cost.__getitem__, 0.1, k, required, forbidden)
    expected = brute_force(wfg, cost, 0.1, required, forbidden)
    assert [p.nodes for p in result.paths] == expected[:k]
    assert result.complete
    for path in result.paths:
        edges = [wfg.edges[pair] for pair in itertools.pairwise(path.nodes)]
        assert path.cost == pytest.approx(sum(cost[n] for n in path.tasks) + 0.1 * sum(e.one_minus_gamma for e in edges))
        assert path.transitions == sum(e.transitions for e in edges)


SHORTCUT = wfg_of({
    (INPUT, "a"): (1, 0), ("a", "check"): (0.1, 9), ("check", "pay"): (0.1, 9), ("a", "pay"): (0.5, 2), ("pay", OUTPUT): (1, 0),
})


def test_a_needed_task_closes_the_shortcut():
    price = lambda node: 1.0
    assert k_best(SHORTCUT, price, 0.0001, 1).paths[0].tasks == ("a", "pay")
    assert [p.tasks for p in k_best(SHORTCUT, price, 0.0001, 2, [{"check", "audit"}]).paths] == [("a", "check", "pay")]
    assert [p.tasks for p in k_best(SHORTCUT, price, 0.0001, 2, forbidden=["check"]).paths] == [("a", "pay")]


def test_a_group_that_no_path_meets_is_named():
    result = k_best(SHORTCUT, lambda node: 1.0, 0.0, 3, [{"check"}, {"audit"}, {"check", "x"}], forbidden=["check"])
    assert (result.paths, result.complete) == ([], True)
    assert result.unmet == (frozenset({"check"}), frozenset({"audit"}), frozenset({"check", "x"}))


def test_among_equals_the_trodden_way_then_the_ids():
    twins = wfg_of({(INPUT, n): (1, 0) for n in "abc"} | {(n, OUTPUT): (1, {"a": 1, "b": 7, "c": 1}[n]) for n in "abc"})
    assert [p.tasks for p in k_best(twins, lambda node: 0.1, 0.1, 3).paths] == [("b",), ("a",), ("c",)]


def test_no_way_through_is_no_path():
    assert k_best(wfg_of({(INPUT, "a"): (1, 0)}), lambda node: 0.0, 0.1, 2).paths == []
    assert k_best(SHORTCUT, lambda node: 0.0, 0.1, 0).paths == []


def test_the_bound_is_told():
    result = k_best(SHORTCUT, lambda node: 1.0, 0.0001, 2, max_expansions=3)
    assert (result.paths, result.complete) == ([], False)


def test_past_the_bound_fitting_paths_still_come_back():
    names = "abcdefgh"
    wkg = WorkGraph.of([Task(n, n) for n in names], [Edge(a, b, 3, 1, 0.9, 0.1, 0.5) for a, b in itertools.permutations(names, 2)])
    wfg = workflow_graph({"s1": chain("abcdefgh"), "s2": chain("ah")}, wkg)
    result = k_best(wfg, lambda node: 1.0, 0.0, 2, [{"c"}, {"e", "f"}, {"g"}], max_expansions=2)
    assert not result.complete
    assert [path.tasks for path in result.paths] == [tuple(names)]


@pytest.mark.parametrize("cost", [-1.0, float("nan"), float("inf")])
def test_a_cost_that_is_no_cost_is_refused(cost):
    with pytest.raises(WorkflowError, match="finite costs"):
        k_best(SHORTCUT, lambda node: cost, 0.1, 1)


@pytest.mark.long
def test_many_groups_stay_within_bounds():
    rng = random.Random(7)
    names = [f"n{i:02}" for i in range(24)]
    wkg = WorkGraph.of([Task(n, n) for n in names],
                       [Edge(a, b, 3, 1, 0.9, 0.1, 0.5) for a, b in itertools.permutations(names, 2) if rng.random() < 0.2])
    wfg = workflow_graph({f"s{i}": chain([names[0], *rng.sample(names[1:-1], 14), names[-1]]) for i in range(8)}, wkg)
    required = [frozenset(rng.sample(names, 3)) for _ in range(20)]
    result = k_best(wfg, lambda node: 1.0, 0.0001, 3, required)
    assert all(group & set(path.nodes) for path in result.paths for group in required)
    assert result.paths
