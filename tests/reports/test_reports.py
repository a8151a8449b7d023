import itertools
from types import SimpleNamespace

import pytest

from opus_pipelines.lwm.interface import NearCase
from opus_pipelines.optimization.baseline import Baseline
from opus_pipelines.reports.cost import cost_rows, paid_for
from opus_pipelines.reports.reward import reward_rows
from opus_pipelines.workflow.model import InputNode, OutputNode, TaskNode, Workflow


def case(tasks, costs):
    nothing = (None,) * len(tasks)
    return NearCase("i", 0.9, 1.0, True, None, None, None, tuple(tasks), tuple(tasks), tuple(costs), nothing, nothing)


def generated(tasks, rewards=(5.0,), cases=(), baseline=None):
    nodes = [TaskNode(t, t, t.upper(), cost_usd=c, cost_human_usd=c, cost_basis="observed", duration_ms=1000.0) for t, c in tasks.items()]
    steps = ["input", *tasks, "output"]
    workflow = Workflow.of([InputNode("input", "in"), *nodes, OutputNode("output", "out", 9.0)], itertools.pairwise(steps))
    ranked = [(n, SimpleNamespace(workflow=workflow, reward_usd=r, penalty=None, feasible=True)) for n, r in enumerate(rewards, start=1)]
    return SimpleNamespace(intention_id="n1", ranked=ranked, cases=list(cases), baseline=baseline or Baseline(2.0, 1000.0, 0.5))


INTAKE = SimpleNamespace(intake_id="k1", gain_usd=10.0)


def test_what_near_cases_paid_counts_repetitions_and_needs_one_stated_cost():
    assert paid_for("a", [case("aba", [1.0, 5.0, 2.0]), case("b", [5.0])]) == pytest.approx(1.5)
    assert paid_for("a", [case("a", [None])]) is None
    assert paid_for("a", []) is None


def test_costs_are_summed_over_rank_one_workflows_and_shares_add_up():
    near = [case("ab", [2.0, 4.0])]
    rows = cost_rows([(INTAKE, generated({"a": 1.0, "b": 3.0}, cases=near)), (INTAKE, generated({"b": 4.0}, cases=near))])
    assert [(r["task_id"], r["workflows"], r["cost_usd"], r["cost_human_usd"], r["share"]) for r in rows] == [
        ("a", 1, 1.0, 1.0, 0.125), ("b", 2, 7.0, 7.0, 0.875),
    ]
    assert [(r["baseline_cost_usd"], r["saving_usd"]) for r in rows] == [(2.0, 1.0), (8.0, 1.0)]
    assert rows[0]["observed_share"] == 0.25


def test_an_unknown_baseline_stays_unknown():
    (row,) = cost_rows([(INTAKE, generated({"a": 1.0}))])
    assert (row["baseline_cost_usd"], row["saving_usd"]) == (None, None)
    (row,) = reward_rows([(INTAKE, generated({"a": 1.0}, baseline=Baseline(2.0, 1.0, None)))])
    assert (row["baseline_reward_usd"], row["uplift_usd"]) == (None, None)


def test_reward_against_the_runner_up_and_history():
    (row,) = reward_rows([(INTAKE, generated({"a": 1.0}, rewards=(5.0, 4.5)))])
    assert (row["reward_usd"], row["rank2_reward_usd"], row["distance"]) == (5.0, 4.5, 0.5)
    assert (row["baseline_reward_usd"], row["uplift_usd"]) == (3.0, 2.0)


def test_a_single_workflow_has_no_runner_up():
    (row,) = reward_rows([(INTAKE, generated({"a": 1.0}))])
    assert (row["rank2_reward_usd"], row["distance"]) == (None, None)
