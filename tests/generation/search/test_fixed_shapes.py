"""Ways and reviews over a thousand random shapes against brute force, which scores every combination by itself, node
by node, in the product form.
"""

import random
from itertools import product

import pytest

from opus_pipelines.core.settings import Cost, Reward
from opus_pipelines.workflow.model import InputNode, OutputNode, TaskNode, Workflow
from tests.generation.search.chosen import best_choice

USD_PER_HOUR = 1.0
Edges = list[tuple[str, str]]


def random_shape(rng: random.Random) -> tuple[list[TaskNode], Edges, dict[str, list[TaskNode]]]:
    """Up to five tasks with one or two ways, behind up to three of them a place for a review by a model or a person;
    topological order.
    """
    tasks = [f"t{i}" for i in range(rng.randint(1, 5))]
    reviewed = rng.sample(tasks, min(len(tasks), rng.randint(0, 3)))
    last = {t: f"r{t}" if t in reviewed else t for t in tasks}
    edges = [(last[a], b) for j, b in enumerate(tasks) for a in tasks[:j] if rng.random() < 0.5] + [
        (t, last[t]) for t in reviewed
    ]
    nodes: list[TaskNode] = []
    options: dict[str, list[TaskNode]] = {}
    for task in tasks:
        options[task] = [way(rng, task, rng.uniform(0.5, 1), rng.uniform(0, 0.5)) for _ in range(rng.randint(1, 2))]
        nodes.append(options[task][0])
        if task in reviewed:
            nodes.append(TaskNode(last[task], task, "Review", p=1.0, q=0.0))
            options[last[task]] = [
                nodes[-1],
                *(way(rng, last[task], rng.uniform(0.9, 1), rng.uniform(0.3, 0.9)) for _ in range(2)),
            ]
    edges += [("in", n.id) for n in nodes if n.id not in {b for _, b in edges}]
    edges += [(n.id, "out") for n in nodes if n.id not in {a for a, _ in edges}]
    return nodes, edges, options


def way(rng: random.Random, name: str, p: float, q: float) -> TaskNode:
    return TaskNode(name, name, name, p=p, q=q, cost_usd=2 * rng.random(), duration_ms=4e6 * rng.random())


def reward(nodes: list[TaskNode], parents: dict[str, list[str]], gain: float) -> float:
    success, finish, cost = {"in": 0.9}, {"in": 0.0}, 0.0
    for node in nodes:
        right = 1.0
        for parent in parents[node.id]:
            right *= success[parent]
        success[node.id] = node.p * right + node.q * (1 - right)
        finish[node.id] = max(finish[parent] for parent in parents[node.id]) + node.duration_ms
        cost += node.cost_usd
    expected = gain
    for parent in parents["out"]:
        expected *= success[parent]
    return expected - cost - USD_PER_HOUR * max(finish.values()) / 3.6e6


@pytest.mark.parametrize("hundred", [0, 1, *(pytest.param(n, marks=pytest.mark.nightly) for n in range(2, 10))])
def test_a_thousand_random_shapes(hundred: int) -> None:
    for seed in range(hundred * 100, hundred * 100 + 100):
        rng = random.Random(seed)
        nodes, edges, options = random_shape(rng)
        gain = rng.choice([2.0, 20.0])
        parents = {v: [a for a, b in edges if b == v] for v in [*(n.id for n in nodes), "out"]}
        best = max(reward(list(picks), parents, gain) for picks in product(*(options[n.id] for n in nodes)))
        workflow = Workflow.of([InputNode("in", "In", 0.9), *nodes, OutputNode("out", "Out", gain)], edges)
        found = best_choice(
            workflow, options, Cost(usd_per_hour_of_duration=USD_PER_HOUR), None, Reward(inference="product")
        )
        assert found is not None
        assert found.exact
        assert found.worth == pytest.approx(best, abs=1e-9), seed
