"""The SWKG: terminals joined at no more than twice the least weight."""

import itertools
import random
from typing import Any

import pytest

from opus_pipelines.core.errors import LakeError
from opus_pipelines.wkg.graph import Edge, Task, WorkGraph
from opus_pipelines.wkg.subgraphs import steiner


def edge(src: str, dst: str, cost: float, transitions: int = 1) -> Edge:
    return Edge(src, dst, transitions, 1, 1 - cost, cost, 1.0)


def graph(*edges: Edge, alone: tuple[str, ...] = ()) -> WorkGraph:
    return WorkGraph.of(
        [Task(n, n) for n in sorted({n for e in edges for n in (e.src, e.dst)} | set(alone))], list(edges)
    )


def weight(wkg: WorkGraph, tree: list[Any] | tuple[Any, ...]) -> float:
    return sum(min(wkg.edges[pair].one_minus_gamma for pair in [(a, b), (b, a)] if pair in wkg.edges) for a, b in tree)


def spanning(wkg: WorkGraph, tasks: set[str]) -> float | None:
    """Weight of the minimum spanning tree of what lies among `tasks` (Prim); None when that is not connected."""
    links = {
        (a, b): weight(wkg, [(a, b)])
        for a, b in itertools.permutations(tasks, 2)
        if (a, b) in wkg.edges or (b, a) in wkg.edges
    }
    reached, total = {min(tasks)}, 0.0
    while reached != tasks:
        out = [(cost, b) for (a, b), cost in links.items() if a in reached and b not in reached]
        if not out:
            return None
        cost, task = min(out)
        reached.add(task)
        total += cost
    return total


def optimum(wkg: WorkGraph, terminals: set[str]) -> float | None:
    others = sorted(set(wkg.tasks) - terminals)
    trees = [
        spanning(wkg, terminals | set(more))
        for n in range(len(others) + 1)
        for more in itertools.combinations(others, n)
    ]
    return min((t for t in trees if t is not None), default=None)


def random_graph(rng: random.Random) -> WorkGraph:
    names = "abcdefg"[: rng.randint(3, 7)]
    chosen = [pair for pair in itertools.permutations(names, 2) if rng.random() < 0.3]
    return graph(*(edge(a, b, rng.choice([0.0, 0.25, 0.5, 1.0, rng.random()])) for a, b in chosen), alone=tuple(names))


@pytest.mark.parametrize("seed", range(120))
def test_against_brute_force(seed: int) -> None:
    rng = random.Random(seed)
    wkg = random_graph(rng)
    terminals = set(rng.sample(sorted(wkg.tasks), rng.randint(1, 4) if len(wkg.tasks) > 3 else 2))
    best = optimum(wkg, terminals)
    found = steiner(wkg, terminals, set(wkg.tasks))
    assert terminals == {t for t, role in found.tasks.items() if role == "terminal"}
    assert found == steiner(wkg, sorted(terminals, reverse=True), sorted(wkg.tasks))
    if best is None:
        assert len(found.tree) < len(found.tasks) - 1
    else:
        assert len(found.tree) == len(found.tasks) - 1
        assert weight(wkg, found.tree) <= 2 * best + 1e-12


def test_a_connector_joins_and_every_directed_edge_between_the_chosen_is_kept() -> None:
    costs = {"am": 0.1, "mb": 0.1, "bm": 0.4, "ab": 0.9, "md": 0.0, "mm": 0.2}
    wkg = graph(*(edge(src, dst, cost) for (src, dst), cost in costs.items()))
    found = steiner(wkg, ["b", "a"], set(wkg.tasks))
    assert found.tasks == {"a": "terminal", "b": "terminal", "m": "connector"}
    assert found.tree == (("a", "m"), ("b", "m"))
    assert [(e.src, e.dst) for e in found.edges] == [("a", "b"), ("a", "m"), ("b", "m"), ("m", "b"), ("m", "m")]
    assert found.graph(wkg).successors["a"] == ["b", "m"]


def test_connectors_come_from_within_only() -> None:
    wkg = graph(edge("a", "m", 0.1), edge("m", "b", 0.1), edge("a", "b", 0.9))
    assert list(steiner(wkg, ["a", "b"], set()).tasks) == ["a", "b"]


def test_what_nothing_connects_yields_a_forest() -> None:
    wkg = graph(edge("a", "m", 0.1), edge("m", "b", 0.1), edge("x", "y", 0.1))
    found = steiner(wkg, ["a", "b", "x"], set(wkg.tasks))
    assert found.tasks == {"a": "terminal", "b": "terminal", "m": "connector", "x": "terminal"}


def test_where_gamma_saturates_the_trodden_way_is_taken() -> None:
    ways = [edge("a", "m", 0.0, 900), edge("m", "b", 0.0, 900), edge("a", "n", 0.0, 100), edge("n", "b", 0.0, 100)]
    assert list(steiner(graph(*ways), ["a", "b"], {"m", "n"}).tasks) == ["a", "b", "m"]


def test_a_terminal_of_another_snapshot_is_refused() -> None:
    with pytest.raises(LakeError, match="ghost"):
        steiner(graph(edge("a", "b", 0.1)), ["a", "ghost"], {"a"})
