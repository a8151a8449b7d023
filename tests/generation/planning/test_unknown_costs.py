"""A history of which some costs and times are unknown, or no gain is stated: what ranks first, and what the tables say
of it.
"""

from collections.abc import Mapping
from itertools import pairwise
from types import SimpleNamespace
from typing import Any

import pytest

from opus_pipelines.core.schemas import OPTIMIZED, WORKFLOW_TASKS
from opus_pipelines.core.settings import Cost, Settings
from opus_pipelines.generation.planning.candidates import plan_candidates, rank_candidates
from opus_pipelines.generation.planning.context import Draft, Evidence, RankingContext, Requirements
from opus_pipelines.generation.planning.prices import LeadTimes, Prices
from opus_pipelines.generation.records import (
    ContractTerms,
    Drafted,
    GenerationContext,
    Planned,
    Ranked,
    Request,
    Retrieved,
)
from opus_pipelines.generation.results.workflow_rows import workflow_rows
from opus_pipelines.generation.search.costs import Baseline, task_baselines
from opus_pipelines.intakes.contract_settings import Review
from opus_pipelines.intakes.intake import Intake
from opus_pipelines.lwm.interface import TaskSequence
from opus_pipelines.lwm.retrieval.rule_constraints import RuleConstraints
from opus_pipelines.lwm.retrieval.task_names import TaskNames
from opus_pipelines.lwm.workflow_graph import chain, workflow_graph
from opus_pipelines.wkg.estimates.times import StepTimes
from opus_pipelines.wkg.graph import Edge, ExecutionMode, Task, WorkGraph
from opus_pipelines.workflow.constraints import Constraints
from opus_pipelines.workflow.evaluation.lead_time import DurationQuantiles
from opus_pipelines.workflow.files import Weights

SEQUENCES = {"q1": ("ask", "check", "pay"), "q2": ("ask", "guess", "pay")}
MINUTE = 60_000.0
NOTHING: Any = None  # a part of a record that no row under test reads


def made(
    costs: Mapping[str, float | None],
    times: Mapping[str, float | None],
    k: int = 2,
    limits: Any = None,
    gain: float | None = 100.0,
    p: dict[str, float] | None = None,
    lead_times: LeadTimes | None = None,
    counted: int = 20,
) -> tuple[list[Any], list[Any]]:
    """Rows of workflows/optimized and workflows/tasks, of people's work that always succeeds and differs in costs and
    times alone.
    """
    tasks = [
        Task(
            t,
            t.title(),
            execution_modes=(
                ExecutionMode(
                    "human",
                    implementations=20,
                    p=(p or {}).get(t, 1.0),
                    p_n=counted,
                    q=0.0,
                    q_n=20,
                    basis="observed",
                    cost_usd_mean=usd,
                    duration_ms_mean=times[t],
                    cost_basis="observed",
                    duration_basis="observed",
                ),
            ),
        )
        for t, usd in costs.items()
    ]
    graph = WorkGraph.of(
        tasks,
        [Edge(a, b, 3, 1, 0.9, 0.1, 0.5) for a, b in sorted({p for s in SEQUENCES.values() for p in pairwise(s)})],
    )
    settings, intake = Settings(generation={"k": k, "least_swaps": 1}), Intake("i", "f", "Claim", [], gain_usd=gain)
    wfg = workflow_graph({i: chain(s) for i, s in SEQUENCES.items()}, graph)
    prices = Prices.of(graph, [n for n in wfg.nodes if n in graph.tasks], Cost(), settings)
    situation = RankingContext(
        intake=intake,
        intention_id="n",
        draft=Draft(graph, wfg, SEQUENCES, prices, lead_times),
        evidence=Evidence([]),
        requirements=Requirements(
            [], frozenset(), RuleConstraints(Constraints.model_validate(limits or {})), TaskNames(graph, [])
        ),
        review=Review(),
        cost=Cost(),
        settings=settings,
    )
    history = [
        {"tasks": s, "task_cost_usd": [costs[t] for t in s], "task_duration_ms": [times[t] for t in s]}
        for s in SEQUENCES.values()
    ]
    retrieved = Retrieved(
        request=Request(intake, "n", NOTHING, is_only=True),
        routed=[],
        subgraphs=[],
        evidence=Evidence([]),
        processes=[],
        precedence=frozenset(),
    )
    drafted = Drafted(retrieved, {i: TaskSequence(0, s, 1.0, "history") for i, s in SEQUENCES.items()}, wfg, graph, {})
    planned = Planned(drafted, situation, plan_candidates(situation), {})
    ranked = rank_candidates(situation, planned.candidates)
    weights = Weights.of(Cost(), settings.reward)
    index: Any = SimpleNamespace(
        graph=graph,
        is_known_variant=lambda tasks: True,
        snapshot=SimpleNamespace(id="w"),
        raw_keys={},
        passive=frozenset(),
    )
    model: Any = SimpleNamespace(name="history", version="1")
    context = GenerationContext(index, NOTHING, model, settings, ContractTerms(Cost()))
    rows = list(workflow_rows(Ranked(planned, ranked, Baseline(), None, task_baselines(history), weights), context))
    return [row for d, row in rows if d is OPTIMIZED], [
        row for d, row in rows if d is WORKFLOW_TASKS and row["kind"] == "task"
    ]


TIMES = dict.fromkeys(("ask", "check", "guess", "pay"), MINUTE)


def test_unknown_is_null_in_the_tables_and_counted_beside_the_totals() -> None:
    (first, second), steps = made({"ask": 2.0, "check": 3.0, "guess": None, "pay": 9.0}, TIMES | {"pay": None})
    assert "Guess" not in first["title"] + "".join(
        s["title"] for s in steps if s["workflow_id"] == first["workflow_id"]
    )
    assert (first["cost_usd"], first["cost_assumed_share"], first["cost_unknown_steps"]) == (14.0, 0.0, 0)
    assert (second["cost_usd"], second["cost_assumed_share"], second["cost_unknown_steps"]) == (11.0, 0.0, 1)
    assert (second["reward_usd"], second["path_cost_usd"]) == (
        89.0,
        11.0,
    )  # less what is known to be spent; nothing made up in it
    assert (first["duration_ms"], first["duration_unknown_steps"]) == (2 * MINUTE, 1)
    (guess,) = [s for s in steps if s["task_id"] == "guess"]
    assert [
        guess[name] for name in ("cost_usd", "cost_human_usd", "cost_basis", "baseline_cost_usd", "saving_usd")
    ] == [None] * 5
    assert [(s["duration_ms"], s["duration_basis"]) for s in steps if s["task_id"] == "pay"] == [(None, None)] * 2
    assert (first["saving_usd"], first["baseline_cost_usd"], first["compared_steps"]) == (0.0, 14.0, 3)
    assert (first["left_out_usd"], first["cheaper_usd"]) == (-1.5, -1.5)  # half of the cases did without a check
    assert (second["saving_usd"], second["baseline_cost_usd"], second["compared_steps"]) == (0.0, 11.0, 2)


def test_where_nothing_is_known_totals_are_null_and_no_cost_decides() -> None:
    found, steps = made(dict.fromkeys(TIMES), dict.fromkeys(TIMES))
    for row in found:
        names = (
            "cost_usd",
            "cost_human_usd",
            "path_cost_usd",
            "duration_ms",
            "cost_assumed_share",
            "saving_usd",
            "baseline_cost_usd",
        )
        assert [row[name] for name in names] == [None] * 7
        assert (row["cost_unknown_steps"], row["duration_unknown_steps"], row["reward_usd"]) == (3, 3, 100.0)
    assert {s["cost_usd"] for s in steps} == {None}


def test_a_step_begins_at_an_unknown_time_behind_one_of_unknown_duration() -> None:
    (first, _), steps = made({"ask": 2.0, "check": 3.0, "guess": None, "pay": 9.0}, TIMES | {"check": None})
    ends = {s["task_id"]: (s["start_ms"], s["finish_ms"]) for s in steps if s["workflow_id"] == first["workflow_id"]}
    assert ends == {"ask": (0.0, MINUTE), "check": (MINUTE, None), "pay": (None, None)}


@pytest.mark.parametrize(("counted", "success", "unknown"), [(20, 1.0, 0), (0, None, 3)])
def test_a_success_of_which_nothing_was_observed_is_unknown(counted: int, success: float | None, unknown: int) -> None:
    found, steps = made(dict.fromkeys(TIMES, 1.0), TIMES, counted=counted)
    assert [(row["success_probability"], row["success_unknown_steps"]) for row in found] == [(success, unknown)] * 2
    assert {step["success_probability"] for step in steps} == {success}


def test_a_limit_is_held_against_known_costs() -> None:
    (first, *_), _ = made({"ask": 2.0, "check": 3.0, "guess": None, "pay": 9.0}, TIMES, limits={"max_cost_usd": 12.0})
    assert (first["feasible"], first["violations"], first["cost_usd"], first["cost_unknown_steps"]) == (
        True,
        [],
        11.0,
        1,
    )


PRICED = {"ask": 2.0, "check": 3.0, "guess": 1.0, "pay": 9.0}
DOLLARS = ("reward_usd", "reward_usd_p05", "reward_usd_p95", "gain_usd", "gap_usd")


def test_without_a_stated_gain_success_ranks_and_nothing_is_said_in_dollars_of_reward() -> None:
    (first, second), steps = made(PRICED, TIMES, gain=None, p={"guess": 0.8})
    assert "Check" in {s["title"] for s in steps if s["workflow_id"] == first["workflow_id"]}
    assert [row[name] for row in (first, second) for name in DOLLARS if row.get(name) is not None] == []
    assert (first["cost_usd"], second["cost_usd"]) == (14.0, 12.0)  # costs are known all the same
    assert (first["ranked_by"], first["ahead_by"]) == (["success", "conformity", "lead time", "Penalty"], "success")
    assert (second["ahead_by"], first["gap_success"]) == (None, 0.0)
    assert (first["success_probability"], second["success_probability"]) == (1.0, pytest.approx(0.8))


def test_with_a_stated_gain_the_reward_ranks() -> None:
    (first, second), _ = made(PRICED, TIMES)
    assert (first["ranked_by"], first["ahead_by"]) == (["Reward", "Penalty"], "Reward")
    assert (first["reward_usd"], second["reward_usd"]) == (88.0, 86.0)
    assert (first["gap_usd"], first.get("gap_success")) == (0.0, None)


def waits(**hours: float) -> LeadTimes:
    """Waiting before each task, whatever it follows and whoever does it."""
    known = {("task", (task,)): DurationQuantiles.constant(h * 60 * MINUTE) for task, h in hours.items()}
    return LeadTimes(
        StepTimes(known, {(t, None): DurationQuantiles.constant(MINUTE) for t in TIMES}), tasks=tuple(TIMES)
    )


def test_equal_success_is_decided_by_lead_time() -> None:
    (first, second), steps = made(PRICED, TIMES, gain=None, lead_times=waits(check=5.0, guess=2.0, pay=1.0))
    assert "Guess" in {s["title"] for s in steps if s["workflow_id"] == first["workflow_id"]}
    assert (first["ahead_by"], first["lead_time_ms_p50"]) == ("lead time", pytest.approx(3 * 60 * MINUTE + 3 * MINUTE))
    assert second["lead_time_ms_p50"] == pytest.approx(6 * 60 * MINUTE + 3 * MINUTE)


@pytest.mark.parametrize(
    ("hours", "best"), [({"check": 5.0, "pay": 1.0}, "Guess"), ({"check": 2.0, "pay": 4.0}, "Check")]
)
def test_an_unknown_wait_counts_as_the_mean_of_the_known_ones_and_is_shown_as_unknown(
    hours: dict[str, float], best: str
) -> None:
    """The wait before guess is unknown: as the mean of the others it is 3 hours, against 5 and 2 before check."""
    (first, second), steps = made(PRICED, TIMES, gain=None, lead_times=waits(**hours))
    assert best in {s["title"] for s in steps if s["workflow_id"] == first["workflow_id"]}
    assert first["ahead_by"] == "lead time"
    assert [row["lead_time_ms_p50"] is None for row in (first, second)] == [best == "Guess", best != "Guess"]


def test_a_deadline_of_a_step_makes_a_workflow_infeasible_and_an_unknown_one_is_not_applied() -> None:
    limits = {"deadlines": [{"step": "Pay", "within": 1, "unit": "working_days"}], "must_contain": ["Check"]}
    (late, *_), _ = made(PRICED, TIMES, limits=limits, lead_times=waits(check=30.0, guess=2.0, pay=10.0))
    pay = "'Pay' within 1 working day of the start: "
    assert [line.startswith(f"deadlines: {pay}") for line in late["violations"]] == [True]
    assert ["kept with probability 0.000 (" in line for line in late["step_deadlines"]] == [True]
    (kept, *_), _ = made(PRICED, TIMES, limits=limits, lead_times=waits(check=20.0, guess=2.0, pay=10.0))
    assert kept["feasible"]
    assert ["kept with probability 1.000 (" in line for line in kept["step_deadlines"]] == [True]
    (unknown, *_), _ = made(PRICED, TIMES, limits=limits, lead_times=waits(guess=2.0, pay=10.0))
    assert unknown["feasible"]
    assert [line.startswith(f"{pay}rule not applied") for line in unknown["step_deadlines"]] == [True]
