import pytest

from opus_pipelines.optimization.baseline import paid
from opus_pipelines.reports.cost import cost_rows
from opus_pipelines.reports.reward import reward_rows


def case(tasks, costs):
    return {"tasks": tuple(tasks), "task_cost_usd": tuple(costs)}


def step(workflow, task, cost, kind="task", baseline=None):
    bases = {"p_basis": "prior", "q_basis": "prior", "cost_basis": "observed", "duration_basis": "prior"}
    parts = {"cost_compute_usd": 0.0, "cost_model_usd": 0.0, "cost_human_usd": cost}
    return {
        "workflow_id": workflow, "kind": kind, "task_id": task, "title": task.upper(), "cost_usd": cost, "duration_ms": 1000.0,
        "baseline_cost_usd": baseline, "actor_kind": "human", **bases, **parts,
    }


def best(workflow, rank=1):
    return {"workflow_id": workflow, "rank": rank}


def ranked(rank, reward, intention="n1", **more):
    return {
        "intake_id": "k1", "intention_id": intention, "rank": rank, "reward_usd": reward, "penalty": 0.25, "feasible": True,
        "best_share": 0.7, "gain_usd": 10.0, "baseline_cost_usd": 2.0, "baseline_success": 0.5, "tasks": 4, "new_tasks": 1, **more,
    }


def test_what_near_cases_paid_counts_repetitions_and_needs_one_stated_cost():
    assert paid([case("aba", [1.0, 5.0, 2.0]), case("b", [5.0])]) == {"a": 1.5, "b": 5.0}
    assert paid([case("a", [None])]) == {}
    assert paid([]) == {}


def test_costs_are_summed_over_rank_one_workflows_and_shares_add_up():
    tasks = [step("f1", "a", 1.0, baseline=2.0), step("f1", "b", 3.0, baseline=4.0), step("f2", "b", 4.0, baseline=4.0)]
    tasks.append(step("f3", "c", 9.0))
    tasks.append({"workflow_id": "f1", "kind": "input", "task_id": None})
    rows = cost_rows([best("f1"), best("f2"), best("f3", rank=2)], tasks)
    assert [(r["task_id"], r["workflows"], r["cost_usd"], r["cost_human_usd"], r["share"]) for r in rows] == [
        ("a", 1, 1.0, 1.0, 0.125), ("b", 2, 7.0, 7.0, 0.875),
    ]
    assert [(r["baseline_cost_usd"], r["saving_usd"]) for r in rows] == [(2.0, 1.0), (8.0, 1.0)]
    assert rows[0]["observed_share"] == 0.25


def test_sums_do_not_depend_on_the_order_of_rows():
    tasks = [step(f"f{i}", "a", 0.1 * i, baseline=0.3 * i) for i in range(1, 12)]
    heads = [best(f"f{i}") for i in range(1, 12)]
    assert cost_rows(heads, tasks) == cost_rows(heads[::-1], tasks[::-1])


def test_an_unknown_baseline_stays_unknown():
    (row,) = cost_rows([best("f1"), best("f2")], [step("f1", "a", 1.0, baseline=2.0), step("f2", "a", 1.0)])
    assert (row["baseline_cost_usd"], row["saving_usd"]) == (None, None)
    (row,) = reward_rows([ranked(1, 5.0, baseline_success=None)], 0.8)
    assert (row["baseline_reward_usd"], row["uplift_usd"]) == (None, None)


def test_reward_against_the_runner_up_and_history():
    (row,) = reward_rows([ranked(2, 4.5), ranked(1, 5.0), ranked(3, 1.0)], 0.8)
    assert (row["reward_usd"], row["rank2_reward_usd"], row["distance"], row["penalty"]) == (5.0, 4.5, 0.5, 0.25)
    assert (row["baseline_reward_usd"], row["uplift_usd"], row["wkg_coverage"]) == (3.0, 2.0, 0.75)


def test_a_single_workflow_has_no_runner_up():
    (row,) = reward_rows([ranked(1, 5.0)], 0.8)
    assert (row["rank2_reward_usd"], row["distance"]) == (None, None)


@pytest.mark.parametrize(("share", "verdict"), [(0.79, "undecided"), (0.8, "clear"), (None, None)])
def test_a_ranking_is_clear_where_its_first_is_surely_enough_the_best(share, verdict):
    assert reward_rows([ranked(1, 5.0, best_share=share)], 0.8)[0]["verdict"] == verdict
