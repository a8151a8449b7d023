"""Exact inference against the sum over all outcomes, closed forms, and what it refuses."""

import itertools
import math
import random

import pytest

from opus_pipelines.core.errors import WorkflowError
from opus_pipelines.workflow.evaluation.success import (
    Difference,
    Forks,
    differences,
    disjoint,
    exact_success,
    is_uncertain,
    product_success,
)
from opus_pipelines.workflow.model import InputNode, OutputNode, TaskNode, Workflow
from tests.workflow.evaluation.random_workflows import any_workflow, enumerated


@pytest.mark.long
def test_equals_the_sum_over_all_outcomes_on_500_random_workflows() -> None:
    rng = random.Random(5)
    entangled = 0
    for _ in range(500):
        workflow = any_workflow(rng)
        assert len(workflow.nodes) <= 12
        nodes, whole = enumerated(workflow)
        bayesian_network = exact_success(workflow)
        assert bayesian_network.nodes == pytest.approx(nodes, abs=1e-12)
        assert bayesian_network.workflow == pytest.approx(whole, abs=1e-12)
        if forks_say_exact(workflow):
            assert bayesian_network == product_success(workflow)
        entangled += not forks_say_exact(workflow)
    assert entangled > 200


def fan(width: int, prior: float, p: float, q: float) -> Workflow:
    """One input, `width` tasks beside each other, one that needs them all."""
    names = [f"t{i:02}" for i in range(width)]
    tasks = [TaskNode(n, n, n, p=p, q=q) for n in names]
    edges = [*(("in", n) for n in names), *((n, "out") for n in names)]
    return Workflow.of([InputNode("in", "In", prior), *tasks, OutputNode("out", "Out", 1.0)], edges)


@pytest.mark.parametrize("width", [2, 12, 60])
def test_many_branches_of_one_input_have_a_closed_form(width: int) -> None:
    bayesian_network = exact_success(fan(width, 0.9, 0.99, 0.95))
    assert bayesian_network.workflow == pytest.approx(0.9 * 0.99**width + 0.1 * 0.95**width, abs=1e-12)


def test_both_answers_stand_side_by_side_only_where_they_differ() -> None:
    workflow = fan(2, 0.5, 1.0, 0.0)
    assert differences(workflow) == [Difference("out", 0.25, 0.5), Difference(None, 0.25, 0.5)]
    assert differences(fan(2, 1.0, 0.5, 0.5)) == []


def test_outputs_of_one_uncertain_task_are_right_together() -> None:
    nodes = [
        InputNode("in", "In"),
        TaskNode("a", "a", "A", p=0.5),
        OutputNode("x", "X", 1.0),
        OutputNode("y", "Y", 2.0),
    ]
    workflow = Workflow.of(nodes, [("in", "a"), ("a", "x"), ("a", "y")])
    assert exact_success(workflow).workflow == 0.5
    assert differences(workflow) == [Difference(None, 0.25, 0.5)]


def layers(width: int, depth: int) -> Workflow:
    """Every task of a layer needs all of the layer before."""
    ranks = [["in"], *([f"t{d:02}-{i:02}" for i in range(width)] for d in range(depth)), ["out"]]
    tasks = [TaskNode(n, n, n, p=0.95, q=0.5) for rank in ranks[1:-1] for n in rank]
    edges = [pair for above, below in itertools.pairwise(ranks) for pair in itertools.product(above, below)]
    return Workflow.of([InputNode("in", "In", 0.9), *tasks, OutputNode("out", "Out", 1.0)], edges)


@pytest.mark.long
def test_a_long_ladder_is_done_and_a_wide_tangle_is_refused() -> None:
    # A layer is all right with a = P(all of the layer before): x -> .95^2 a + .5^2 (1 - a).
    all_right = 0.9
    for _ in range(40):
        all_right = 0.95**2 * all_right + 0.5**2 * (1 - all_right)
    assert exact_success(layers(2, 40)).workflow == pytest.approx(all_right, abs=1e-12)
    rng = random.Random(0)
    nodes = [f"t{i:03}" for i in range(140)]
    tasks = [TaskNode(n, n, n, p=0.9, q=0.4) for n in nodes]
    edges = [("in", n) for n in nodes[:40]] + [
        (u, v) for i, v in enumerate(nodes[40:], 40) for u in rng.sample(nodes[:i], 4)
    ]
    edges += [(n, "out") for n in nodes[100:]]
    tangle = Workflow.of([InputNode("in", "In", 0.9), *tasks, OutputNode("out", "Out", 1.0)], edges)
    with pytest.raises(WorkflowError, match="too many uncertain branches cross"):
        exact_success(tangle)
    assert math.isfinite(product_success(tangle).workflow)


def forks_say_exact(workflow: Workflow) -> bool:
    """No node, and no pair of outputs, hangs on one uncertain ancestor by two ways: then the product form is exact."""
    forks = Forks(workflow)
    sets = [[forks.above(u) for u in workflow.predecessors(node)] for node in workflow.topological()]
    return all(map(disjoint, [*sets, [forks.above(n.id) for n in workflow.outputs]]))


def by_all_ancestors(workflow: Workflow) -> bool:
    """`forks_say_exact` by its definition: the sets of all uncertain ancestors."""
    above: dict[str, frozenset[str]] = {}
    for node in workflow.topological():
        sets = [above[u] for u in workflow.predecessors(node)]
        if not disjoint(sets):
            return False
        above[node] = frozenset({node} if is_uncertain(workflow, node) else ()).union(*sets)
    return disjoint([above[n.id] for n in workflow.outputs])


def test_forks_tell_the_same_as_all_ancestors_on_500_random_workflows() -> None:
    rng = random.Random(6)
    found = [(forks_say_exact(w), by_all_ancestors(w)) for w in (any_workflow(rng) for _ in range(500))]
    assert all(a == b for a, b in found)
    assert 50 < sum(a for a, _ in found) < 450


@pytest.mark.long
def test_a_chain_of_10000_keeps_nothing_and_a_large_mesh_is_refused() -> None:
    names = ["in", *(f"t{i}" for i in range(10_000)), "out"]
    ends = InputNode("in", "In"), OutputNode("out", "Out", 1.0)
    tasks = [TaskNode(n, "t", "T", p=0.9999) for n in names[1:-1]]
    line = Workflow.of([*ends, *tasks], itertools.pairwise(names))
    assert differences(line) == []

    def mesh(size: int) -> Workflow:
        edges = [*itertools.pairwise([*names[: size + 1], "out"]), *((names[i], names[i + 2]) for i in range(size - 1))]
        return Workflow.of([*ends, *tasks[:size]], edges)

    assert len(differences(mesh(40))) > 30
    with pytest.raises(WorkflowError, match="too many branches meet"):
        exact_success(mesh(220))
