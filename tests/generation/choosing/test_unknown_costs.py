"""A history of which some costs and times are unknown: what ranks first, and what the tables say of it."""

from itertools import pairwise
from types import SimpleNamespace
from typing import Any

import pytest

from opus_pipelines.generation.choosing.candidates import candidates
from opus_pipelines.generation.choosing.prices import Prices
from opus_pipelines.generation.choosing.situation import Situation
from opus_pipelines.generation.contract_settings import Review
from opus_pipelines.generation.experience.completeness import BY_OUTCOMES
from opus_pipelines.generation.experience.names import Names
from opus_pipelines.generation.intake import Intake
from opus_pipelines.generation.results.workflow_rows import workflow_rows
from opus_pipelines.optimization.baseline import Baseline, paid
from opus_pipelines.schemas import OPTIMIZED, WORKFLOW_TASKS
from opus_pipelines.settings import Cost, Settings
from opus_pipelines.wfg.algorithm1 import workflow_graph
from opus_pipelines.wfg.dag import chain
from opus_pipelines.wkg.graph import Edge, Task, Way, WorkGraph
from opus_pipelines.workflow.constraints import Constraints

SEQUENCES = {"q1": ("ask", "check", "pay"), "q2": ("ask", "guess", "pay")}
MINUTE = 60_000.0


def made(costs: dict[str, float | None], times: dict[str, float | None], k: int = 2, limits: Any = None,
         counted: int = 20) -> tuple[list[Any], list[Any]]:
    """Rows of workflows/optimized and workflows/tasks, of people's work that always succeeds and differs in costs and times alone."""
    tasks = [
        Task(t, t.title(), ways=(Way("human", implementations=20, p=1.0, p_n=counted, q=0.0, q_n=20, basis="observed", cost_usd_mean=usd,
                                     duration_ms_mean=times[t], cost_basis="observed", duration_basis="observed"),))
        for t, usd in costs.items()
    ]
    graph = WorkGraph.of(tasks, [Edge(a, b, 3, 1, 0.9, 0.1, 0.5) for a, b in sorted({p for s in SEQUENCES.values() for p in pairwise(s)})])
    settings, intake = Settings(generation={"k": k, "least_swaps": 1}), Intake("i", "f", "Claim", [], gain_usd=100.0)
    wfg = workflow_graph({i: chain(s) for i, s in SEQUENCES.items()}, graph)
    prices = Prices.of(graph, [n for n in wfg.nodes if n in graph.tasks], Cost(), settings)
    situation = Situation(
        intake=intake, intention_id="n", graph=graph, wfg=wfg, cases=[], sequences=SEQUENCES, needed=[], order=frozenset(),
        constraints=Constraints.model_validate(limits or {}), review=Review(), prices=prices, cost=Cost(), settings=settings,
        names=Names(graph, []),
    )
    history = [{"tasks": s, "task_cost_usd": [costs[t] for t in s], "task_duration_ms": [times[t] for t in s]} for s in SEQUENCES.values()]
    found: Any = SimpleNamespace(
        intention_id="n", ranked=candidates(situation), cases=[], prices=prices, wfg=wfg, graph=graph, nearest={}, subgraphs=[],
        sequences={i: SimpleNamespace(source="history") for i in SEQUENCES}, baseline=Baseline(), paid=paid(history),
        weights=SimpleNamespace(model_dump_json=lambda **_: "{}"),
        demands=SimpleNamespace(constraints=situation.constraints), baseline_lead_time_ms=None, complete=BY_OUTCOMES,
    )
    knowledge: Any = SimpleNamespace(
        graph=graph, in_history=lambda tasks: True, snapshot=SimpleNamespace(id="w"), raw_keys={}, passive=frozenset(),
    )
    rows = list(workflow_rows(intake, found, knowledge, SimpleNamespace(name="history", version="1")))  # type: ignore[arg-type]
    return [row for d, row in rows if d is OPTIMIZED], [row for d, row in rows if d is WORKFLOW_TASKS and row["kind"] == "task"]


TIMES = dict.fromkeys(("ask", "check", "guess", "pay"), MINUTE)


def test_unknown_is_null_in_the_tables_and_counted_beside_the_totals():
    (first, second), steps = made({"ask": 2.0, "check": 3.0, "guess": None, "pay": 9.0}, TIMES | {"pay": None})
    assert "Guess" not in first["title"] + "".join(s["title"] for s in steps if s["workflow_id"] == first["workflow_id"])
    assert (first["cost_usd"], first["cost_assumed_share"], first["cost_unknown_steps"]) == (14.0, 0.0, 0)
    assert (second["cost_usd"], second["cost_assumed_share"], second["cost_unknown_steps"]) == (11.0, 0.0, 1)
    assert (second["reward_usd"], second["path_cost_usd"]) == (89.0, 11.0)  # less what is known to be spent; nothing made up in it
    assert (first["duration_ms"], first["duration_unknown_steps"]) == (2 * MINUTE, 1)
    (guess,) = [s for s in steps if s["task_id"] == "guess"]
    assert [guess[name] for name in ("cost_usd", "cost_human_usd", "cost_basis", "baseline_cost_usd", "saving_usd")] == [None] * 5
    assert [(s["duration_ms"], s["duration_basis"]) for s in steps if s["task_id"] == "pay"] == [(None, None)] * 2
    assert (first["saving_usd"], first["baseline_cost_usd"], first["compared_steps"]) == (pytest.approx(-1.5), pytest.approx(12.5), 3)
    assert (second["saving_usd"], second["baseline_cost_usd"], second["compared_steps"]) == (0.0, 11.0, 2)


def test_where_nothing_is_known_totals_are_null_and_no_cost_decides():
    found, steps = made(dict.fromkeys(TIMES), dict.fromkeys(TIMES))
    for row in found:
        names = ("cost_usd", "cost_human_usd", "path_cost_usd", "duration_ms", "cost_assumed_share", "saving_usd", "baseline_cost_usd")
        assert [row[name] for name in names] == [None] * 7
        assert (row["cost_unknown_steps"], row["duration_unknown_steps"], row["reward_usd"]) == (3, 3, 100.0)
    assert {s["cost_usd"] for s in steps} == {None}


def test_a_step_begins_at_an_unknown_time_behind_one_of_unknown_duration():
    (first, _), steps = made({"ask": 2.0, "check": 3.0, "guess": None, "pay": 9.0}, TIMES | {"check": None})
    ends = {s["task_id"]: (s["start_ms"], s["finish_ms"]) for s in steps if s["workflow_id"] == first["workflow_id"]}
    assert ends == {"ask": (0.0, MINUTE), "check": (MINUTE, None), "pay": (None, None)}


@pytest.mark.parametrize(("counted", "success", "unknown"), [(20, 1.0, 0), (0, None, 3)])
def test_a_success_of_which_nothing_was_observed_is_unknown(counted: int, success: float | None, unknown: int):
    found, steps = made(dict.fromkeys(TIMES, 1.0), TIMES, counted=counted)
    assert [(row["success_probability"], row["success_unknown_steps"]) for row in found] == [(success, unknown)] * 2
    assert {step["success_probability"] for step in steps} == {success}


def test_a_limit_is_held_against_known_costs():
    (first, *_), _ = made({"ask": 2.0, "check": 3.0, "guess": None, "pay": 9.0}, TIMES, limits={"max_cost_usd": 12.0})
    assert (first["feasible"], first["violations"], first["cost_usd"], first["cost_unknown_steps"]) == (True, [], 11.0, 1)
