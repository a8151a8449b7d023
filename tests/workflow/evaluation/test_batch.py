"""The batch gives what the single path gives, on random workflows."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from opus_pipelines.core.settings import Cost, Reward
from opus_pipelines.workflow.evaluation.reward import ROWS, Figures, evaluate, evaluate_batch
from opus_pipelines.workflow.evaluation.score import case_study
from opus_pipelines.workflow.model import InputNode, OutputNode, TaskNode, Workflow

PRICES = Cost(
    usd_per_hour_of_duration=3.0,
    usd_per_gb_held=0.5,
    usd_per_thread_held=0.25,
    usd_per_held={"desk": 2.0},
    usd_per_unit={"kwh": 0.3},
)


def random_workflow(seed: int, tasks: int) -> Workflow:
    draw = np.random.default_rng(seed)
    nodes = [
        TaskNode(
            f"t{i}",
            f"t{i}",
            f"T{i}",
            p=draw.random(),
            q=draw.random(),
            cost_usd=draw.random() * 9,
            duration_ms=float(draw.integers(0, 4)) * 1e5,
            memory_gb=draw.random(),
            threads=float(draw.integers(0, 3)),
            holds={"desk": 1.0} if draw.random() < 0.5 else {},
            consumes={"kwh": draw.random()} if draw.random() < 0.5 else {},
        )
        for i in range(tasks)
    ]
    edges = [(f"t{i}", f"t{j}") for j in range(tasks) for i in range(j) if draw.random() < 0.4]
    edges += [("in", f"t{j}") for j in range(tasks) if not any(dst == f"t{j}" for _, dst in edges)]
    ends = {f"t{i}" for i in range(tasks)} - {src for src, _ in edges}
    edges += [(end, "out") for end in ends] + [("t0", "second")]
    outputs = OutputNode("out", "Out", 50 * draw.random()), OutputNode("second", "Second", 5.0)
    return Workflow.of([InputNode("in", "In", draw.random()), *nodes, *outputs], edges)


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 10**6), st.integers(1, 12))
def test_one_row_is_the_single_path(seed: int, tasks: int) -> None:
    workflow = random_workflow(seed, tasks)
    single = evaluate(workflow, PRICES, Reward())
    batch = evaluate_batch(workflow, Figures.of(workflow, PRICES), PRICES)
    for name in ("worth", "success_probability", "cost_usd", "duration_ms"):
        assert getattr(batch, name)[0] == pytest.approx(getattr(single, name), rel=1e-12, abs=1e-12)


def test_without_a_stated_gain_a_row_is_worth_its_success() -> None:
    workflow = random_workflow(7, 6)
    unstated = Workflow.of(
        [*workflow.inputs, *workflow.tasks, *(replace(n, gain_usd=None) for n in workflow.outputs)], workflow.edges
    )
    batch = evaluate_batch(unstated, Figures.of(unstated, PRICES), PRICES)
    assert (
        batch.worth.tolist()
        == batch.success_probability.tolist()
        == [pytest.approx(evaluate(unstated, PRICES, Reward()).worth)]
    )


def test_rows_beyond_one_pass_are_the_single_path_each() -> None:
    workflow, n = random_workflow(7, 6), ROWS + 3
    draw = np.random.default_rng(0)
    p, duration = draw.random((n, 6)), draw.random((n, 6)) * 1e6
    one = Figures.of(workflow, PRICES)
    batch = evaluate_batch(workflow, replace(one, p=p, duration_ms=duration), PRICES)
    assert batch.worth.shape == (n,)
    for row in (0, ROWS - 1, ROWS, n - 1):
        tasks = [replace(t, p=p[row, i], duration_ms=duration[row, i]) for i, t in enumerate(workflow.tasks)]
        single = evaluate(Workflow.of([*workflow.inputs, *tasks, *workflow.outputs], workflow.edges), PRICES, Reward())
        assert batch.worth[row] == pytest.approx(single.reward_usd, abs=1e-12 * abs(single.cost_usd))


def test_the_papers_case() -> None:
    rewards = [evaluate_batch(s.workflow, Figures.of(s.workflow, Cost()), Cost()).worth[0] for s in case_study()]
    assert [round(r, 4) for r in rewards] == [0.8495, 0.85, 0.85]
