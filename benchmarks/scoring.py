#!/usr/bin/env python3
"""Workflows scored a second: one NumPy pass over a shape against a Python loop over single workflows.

benchmarks/scoring.py [--workflows 1000000] [--tasks 20] [--loop 2000]
"""

import argparse
import time
from dataclasses import replace
from itertools import pairwise

import numpy as np

from opus_pipelines.core.settings import Cost, Reward
from opus_pipelines.workflow.evaluation.reward import Figures, evaluate, evaluate_batch
from opus_pipelines.workflow.model import InputNode, OutputNode, TaskNode, Workflow


def main() -> None:
    """Score, compare, print both rates and their ratio."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--workflows", type=int, default=1_000_000)
    parser.add_argument("--tasks", type=int, default=20)
    parser.add_argument("--loop", type=int, default=2_000, help="workflows that the loop scores")
    arguments = parser.parse_args()
    draw, n, k = np.random.default_rng(0), arguments.workflows, arguments.tasks
    for name, cost in (
        ("dollars", Cost()),
        ("dollars, time and memory held", Cost(usd_per_hour_of_duration=1.0, usd_per_gb_held=0.1)),
    ):
        workflow = shape(k)
        one = Figures.of(workflow, cost)
        held = {"memory_gb": draw.random((1, k))}
        random = {name: draw.random((n, k)) for name in ("p", "q", "cost_usd", "duration_ms")}
        figures = replace(one, **random, held=held)
        start = time.perf_counter()
        batch = evaluate_batch(workflow, figures, cost)
        many = n / (time.perf_counter() - start)
        start = time.perf_counter()
        rewards = [evaluate(of_row(workflow, figures, row), cost, Reward()).reward_usd for row in range(arguments.loop)]
        single = arguments.loop / (time.perf_counter() - start)
        off = float(np.abs(batch.worth[: arguments.loop] - rewards).max())
        print(
            f"{name}: {many:,.0f} a second in one pass, {single:,.0f} in a loop: {many / single:,.0f} times; they "
            f"differ by {off:.1e}"
        )


def shape(tasks: int) -> Workflow:
    """A chain with a branch of every third task."""
    nodes = [TaskNode(f"t{i:02}", f"t{i}", f"T{i}") for i in range(tasks)]
    main_line = ["in", *(t.id for i, t in enumerate(nodes) if i % 3 != 2), "out"]
    edges = list(pairwise(main_line))
    for i, task in enumerate(nodes):
        if i % 3 == 2:
            edges += [(nodes[i - 2].id, task.id), (task.id, nodes[i + 1].id if i + 1 < tasks else "out")]
    return Workflow.of([InputNode("in", "In"), *nodes, OutputNode("out", "Out", 10.0)], edges)


def of_row(workflow: Workflow, figures: Figures, row: int) -> Workflow:
    """One row of the figures as a workflow of its own."""
    columns = ("p", "q", "cost_usd", "duration_ms")
    tasks = [
        replace(
            t, memory_gb=figures.held["memory_gb"][0, i], **{name: getattr(figures, name)[row, i] for name in columns}
        )
        for i, t in enumerate(workflow.tasks)
    ]
    return Workflow((*workflow.inputs, *tasks, *workflow.outputs), workflow.edges)


if __name__ == "__main__":
    main()
