"""Dreyfus and Wagner against enumeration, and the approximation against them."""

import random

import pytest

from opus_pipelines.wkg.graph import Edge, Task, WorkGraph
from opus_pipelines.wkg.subgraphs import steiner
from tests.wkg.subgraphs.exact_steiner_tree import least_weight, steiner_weight


def graph(links: dict[str, float], alone: str = "") -> WorkGraph:
    edges = [Edge(a, b, 1, 1, 1 - cost, cost, 1.0) for (a, b), cost in links.items()]
    return WorkGraph.of([Task(n, n) for n in sorted({n for pair in links for n in pair} | set(alone))], edges)


def random_graph(rng: random.Random, tasks: int) -> WorkGraph:
    names = [f"t{n:02}" for n in range(tasks)]
    pairs = {(rng.choice(names), rng.choice(names)) for _ in range(3 * tasks)}
    edges = [Edge(a, b, 1, 1, 0.0, rng.random(), 1.0) for a, b in sorted(pairs) if a != b]
    return WorkGraph.of([Task(n, n) for n in names], edges)


def test_a_star_beats_the_paths_between_its_ends() -> None:
    wkg = graph({"am": 0.5, "bm": 0.5, "cm": 0.5, "ab": 0.9, "bc": 0.9})
    assert least_weight(wkg, "abc", "m") == pytest.approx(1.5)
    assert least_weight(wkg, "abc", "") == pytest.approx(1.8)
    assert steiner_weight(wkg, steiner(wkg, "abc", "m").tree) == pytest.approx(1.8)


def test_one_terminal_weighs_nothing_and_what_nothing_joins_has_no_tree() -> None:
    assert least_weight(graph({"ab": 0.5}), "a", "b") == 0
    assert least_weight(graph({"ab": 0.5}, alone="z"), "az", "b") is None


@pytest.mark.parametrize("seed", range(12))
def test_the_approximation_is_within_twice_the_optimum(seed: int) -> None:
    rng = random.Random(seed)
    wkg = random_graph(rng, 20)
    found = steiner(wkg, rng.sample(sorted(wkg.tasks), 5), wkg.tasks)
    terminals = [t for t, role in found.tasks.items() if role == "terminal"]
    best = least_weight(wkg, terminals, wkg.tasks)
    assert best is None or best - 1e-9 <= steiner_weight(wkg, found.tree) <= 2 * best + 1e-9
