"""Random small workflows, and their success by the sum over all outcomes."""

import itertools
import random

import numpy as np

from opus_pipelines.workflow.model import InputNode, Node, OutputNode, TaskNode, Workflow


def any_workflow(rng: random.Random) -> Workflow:
    """Up to 12 nodes, sparse to dense, with certain and impossible ones among the uncertain."""
    share = lambda: rng.choice([0.0, 1.0, rng.random(), rng.random(), rng.random()])
    inputs, outputs = rng.randint(1, 3), rng.randint(1, 3)
    density = rng.random()
    nodes: list[Node] = [InputNode(f"i{k}", "In", share()) for k in range(inputs)]
    nodes += [TaskNode(f"t{k}", "t", "T", p=share(), q=share()) for k in range(rng.randint(0, 12 - inputs - outputs))]
    names = [n.id for n in nodes]
    edges = [(u, v) for u, v in itertools.combinations(names, 2) if v.startswith("t") and rng.random() < density]
    for k in range(outputs):
        nodes.append(OutputNode(f"o{k}", "Out", 1.0))
        edges += [(u, f"o{k}") for u in rng.sample(names, rng.randint(1, min(3, len(names))))]
    return Workflow.of(nodes, edges)


def enumerated(workflow: Workflow) -> tuple[dict[str, float], float]:
    """P(S_v) and P_succ by the sum over all 2^n outcomes."""
    order = workflow.topological()
    outcomes = np.array(list(itertools.product([False, True], repeat=len(order))))
    right = {node: outcomes[:, i] for i, node in enumerate(order)}
    weight = np.ones(len(outcomes))
    for node in order:
        data = workflow.by_id[node]
        condition = (
            np.logical_and.reduce([right[u] for u in workflow.predecessors(node)])
            if workflow.predecessors(node)
            else True
        )
        p, q = (
            (data.prior, 0.0)
            if isinstance(data, InputNode)
            else (data.p, data.q)
            if isinstance(data, TaskNode)
            else (1.0, 0.0)
        )
        chance = np.where(condition, p, q)
        weight *= np.where(right[node], chance, 1 - chance)
    whole = np.logical_and.reduce([right[n.id] for n in workflow.outputs])
    return {node: float(weight[right[node]].sum()) for node in order}, float(weight[whole].sum())
