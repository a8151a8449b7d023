from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from opus_pipelines.generation.search.costs import Paid, Saved, task_baselines
from opus_pipelines.reporting.contract_tables import cost_rows, reward_rows
from opus_pipelines.workflow.model import TaskNode


def case(tasks: Any, costs: Any) -> Any:
    return {"tasks": tuple(tasks), "task_cost_usd": tuple(costs)}


def step(workflow: Any, task: Any, cost: Any, kind: Any = "task", baseline: Any = None) -> Any:
    bases = {"p_basis": "prior", "q_basis": "prior", "cost_basis": "observed", "duration_basis": "prior"}
    parts = dict.fromkeys(("cost_compute_usd", "cost_model_usd"), None if cost is None else 0.0) | {
        "cost_human_usd": cost
    }
    return {
        "workflow_id": workflow,
        "kind": kind,
        "task_id": task,
        "title": task.upper(),
        "cost_usd": cost,
        "duration_ms": 1000.0,
        "baseline_cost_usd": baseline,
        "saving_usd": None if baseline is None or cost is None else baseline - cost,
        "actor_kind": "human",
        **bases,
        **parts,
    }


def best(workflow: Any, rank: Any = 1) -> Any:
    return {"workflow_id": workflow, "rank": rank}


def ranked(rank: Any, reward: Any, intention: Any = "n1", **more: Any) -> Any:
    return {
        "intake_id": "k1",
        "intention_id": intention,
        "rank": rank,
        "reward_usd": reward,
        "penalty": 0.25,
        "feasible": True,
        "gain_usd": 10.0,
        "case_cost_usd": 2.0,
        "baseline_success": 0.5,
        "tasks": 4,
        "new_tasks": 1,
        "cost_assumed_share": 0.25,
        "cost_unknown_steps": 1,
        "duration_unknown_steps": 2,
        "verdict": "undecided",
        **more,
    }


def test_what_near_cases_paid_for_a_task_once_needs_one_stated_cost() -> None:
    found = task_baselines([case("aba", [1.0, 5.0, 2.0]), case("b", [5.0])])
    assert [found.of(task) for task in ("a", "b", "done by none", None)] == [1.5, 5.0, None, None]
    assert found.paid["a"] == Paid(1.5, 1.0, 0.5)  # twice in one of two cases
    assert task_baselines([case("a", [None])]).of("a") is None
    assert task_baselines([]).of("a") is None


def test_known_payments_stand_for_the_unknown_ones_of_the_same_task() -> None:
    found = task_baselines([case("a", [4.0]), case("aa", [None, 8.0]), case("b", [1.0]), case("b", [1.0])])
    assert found.paid["a"] == Paid(6.0, 0.75, 0.5)


def test_a_difference_is_price_repetition_and_steps_left_out_and_they_sum() -> None:
    """Two cases: a twice for 4 and c for 9; a for 4 and b for 10. The workflow does a for 3, b for 10 and d for 1."""
    found = task_baselines([case("aac", [4.0, 4.0, 9.0]), case("ab", [4.0, 10.0])])
    steps = [TaskNode("n1", "a", "A", cost_usd=3.0), TaskNode("n2", "b", "B", cost_usd=10.0)]
    steps.append(TaskNode("n3", "d", "D", cost_usd=1.0))
    saved = found.saved(steps)
    assert saved == {
        "n1": Saved(4.0, 1.0, 2.0, 0.0),
        "n2": Saved(10.0, 0.0, 0.0, -5.0),
        "n3": Saved(None, None, None, -1.0),
    }
    assert found.left_out({"a", "b", "d"}) == {"c": 4.5}
    parts = [usd for one in saved.values() for usd in one[1:] if usd is not None] + [4.5]
    assert sum(parts) == (17.0 + 14.0) / 2 - 14.0


@settings(max_examples=50, deadline=None)
@given(
    st.lists(st.lists(st.tuples(st.sampled_from("abcd"), st.integers(0, 9)), max_size=6), min_size=1, max_size=5),
    st.lists(st.tuples(st.sampled_from("abcde"), st.integers(0, 9)), max_size=6),
)
def test_the_three_parts_always_sum_to_the_difference(cases: Any, plan: Any) -> None:
    found = task_baselines([case("".join(t for t, _ in one), [float(c) for _, c in one]) for one in cases])
    steps = [TaskNode(f"n{n}", task, task, cost_usd=float(cost)) for n, (task, cost) in enumerate(plan)]
    parts = [usd for one in found.saved(steps).values() for usd in one[1:] if usd is not None]
    parts += found.left_out({task for task, _ in plan}).values()
    difference = sum(cost for one in cases for _, cost in one) / len(cases) - sum(cost for _, cost in plan)
    assert sum(parts) == pytest.approx(difference, abs=1e-9)


def test_costs_are_summed_over_rank_one_workflows_and_shares_add_up() -> None:
    tasks = [step("f1", "a", 1.0, baseline=2.0), step("f1", "b", 3.0, baseline=4.0), step("f2", "b", 4.0, baseline=4.0)]
    tasks.append(step("f3", "c", 9.0))
    tasks.append({"workflow_id": "f1", "kind": "input", "task_id": None})
    rows = cost_rows([best("f1"), best("f2"), best("f3", rank=2)], tasks)
    assert [(r["task_id"], r["workflows"], r["cost_usd"], r["cost_human_usd"], r["share"]) for r in rows] == [
        ("a", 1, 1.0, 1.0, 0.125),
        ("b", 2, 7.0, 7.0, 0.875),
    ]
    assert [(r["baseline_cost_usd"], r["saving_usd"]) for r in rows] == [(2.0, 1.0), (8.0, 1.0)]
    assert rows[0]["observed_share"] == 0.25


def test_sums_do_not_depend_on_the_order_of_rows() -> None:
    tasks = [step(f"f{i}", "a", 0.1 * i, baseline=0.3 * i) for i in range(1, 12)]
    heads = [best(f"f{i}") for i in range(1, 12)]
    assert cost_rows(heads, tasks) == cost_rows(heads[::-1], tasks[::-1])


def test_an_unknown_baseline_stays_unknown() -> None:
    (row,) = cost_rows([best("f1"), best("f2")], [step("f1", "a", 1.0, baseline=2.0), step("f2", "a", 1.0)])
    assert (row["cost_usd"], row["baseline_cost_usd"], row["saving_usd"], row["compared_steps"]) == (2.0, 2.0, 1.0, 1)
    (row,) = cost_rows([best("f2")], [step("f2", "a", 1.0)])
    assert (row["baseline_cost_usd"], row["saving_usd"], row["compared_steps"]) == (None, None, 0)
    (row,) = reward_rows([ranked(1, 5.0, baseline_success=None)])
    assert (row["baseline_reward_usd"], row["uplift_usd"]) == (None, None)


def test_unknown_costs_are_in_no_sum_and_are_counted() -> None:
    rows = cost_rows(
        [best("f1"), best("f2")],
        [
            step("f1", "a", 1.0, baseline=2.0),
            step("f2", "a", None, baseline=2.0),
            step("f1", "b", None),
            step("f2", "b", None),
        ],
    )
    assert [
        (r["cost_usd"], r["cost_human_usd"], r["share"], r["cost_unknown_steps"], r["cost_assumed_share"]) for r in rows
    ] == [
        (1.0, 1.0, 1.0, 1, 0.0),
        (None, None, None, 2, None),
    ]
    assert [(r["baseline_cost_usd"], r["saving_usd"]) for r in rows] == [(2.0, 1.0), (None, None)]
    assert [(r["duration_ms"], r["duration_assumed_share"], r["duration_unknown_steps"]) for r in rows] == [
        (2000.0, 1.0, 0)
    ] * 2


def test_reward_against_the_runner_up_and_history() -> None:
    (row,) = reward_rows([ranked(2, 4.5), ranked(1, 5.0), ranked(3, 1.0)])
    assert (row["reward_usd"], row["rank2_reward_usd"], row["distance"], row["penalty"]) == (5.0, 4.5, 0.5, 0.25)
    assert (row["baseline_reward_usd"], row["uplift_usd"], row["wkg_coverage"]) == (3.0, 2.0, 0.75)
    assert (row["cost_assumed_share"], row["cost_unknown_steps"], row["duration_unknown_steps"]) == (0.25, 1, 2)


def test_a_single_workflow_has_no_runner_up() -> None:
    (row,) = reward_rows([ranked(1, 5.0)])
    assert (row["rank2_reward_usd"], row["distance"]) == (None, None)


@pytest.mark.parametrize("verdict", ["clear", "undecided", "rule at risk", "not answered", None])
def test_the_verdict_is_that_of_the_first_workflow(verdict: Any) -> None:
    rows = reward_rows([ranked(1, 5.0, verdict=verdict), ranked(2, 4.0, verdict=None)])
    assert [row["verdict"] for row in rows] == [verdict]


def test_without_a_stated_gain_there_are_no_dollars_of_reward() -> None:
    (row,) = reward_rows([ranked(1, None, gain_usd=None), ranked(2, None, gain_usd=None)])
    assert [
        row[name] for name in ("reward_usd", "rank2_reward_usd", "distance", "baseline_reward_usd", "uplift_usd")
    ] == [None] * 5
    assert row["verdict"] == "undecided"
