"""What generation makes of a read procedure: needs, order, and the steps that the catalogue lacks."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from opus_pipelines.core.settings import Cost, Priors
from opus_pipelines.generation.search.costs import node_cost
from opus_pipelines.intakes.procedures.reading import ParsedProcedure, ProcedureStep
from opus_pipelines.lwm.history_backend import HistoryBackend
from opus_pipelines.lwm.interface import LwmRequest, SimilarCase
from opus_pipelines.lwm.precedence import precedence_counts, predecessors
from opus_pipelines.lwm.retrieval.requested_steps import (
    required_groups,
    required_precedence,
    required_reason,
    with_new_steps,
)
from opus_pipelines.wkg.graph import ExecutionMode, Task, WorkGraph
from opus_pipelines.wkg.subgraphs import SubWKG

WAY = ExecutionMode(
    "human",
    implementations=9,
    p=0.9,
    p_n=9,
    q=0.3,
    q_n=4,
    basis="observed",
    duration_ms_mean=60_000.0,
    cost_usd_mean=4.0,
    cost_basis="observed",
    duration_basis="observed",
    instructions=("By hand.",),
)
GRAPH = WorkGraph.of(
    [Task(t, t, p=0.9, p_n=9, q=0.3, q_n=4, implementations=9, execution_modes=(WAY,)) for t in "abc"], []
)
STEPS = (
    ProcedureStep("a", "a", "Do a first.", 0.9),
    ProcedureStep("tnew", "do it", "It is done.", 0.8, True, ("Do it well.",)),
    ProcedureStep("b", "b", None, 1.0),
)
READING = ParsedProcedure("d", STEPS, 1.0)


def case(tasks: str, success: bool = True) -> Any:
    nothing = (None,) * len(tasks)
    return SimilarCase(
        "i" + tasks, 0.9, 1.0, success, None, None, None, tuple(tasks), tuple(tasks), nothing, nothing, nothing
    )


def test_every_step_is_needed_by_itself_and_in_its_order() -> None:
    assert required_groups(READING, [frozenset("c")]) == [{"a"}, {"b"}, {"tnew"}]
    assert required_groups(None, [frozenset("c")]) == [{"c"}]
    own = {("a", "tnew"), ("a", "b"), ("tnew", "b")}
    assert required_precedence(READING, frozenset({("b", "a"), ("c", "a")}), "ab") == own | {("c", "a")}
    assert required_precedence(None, frozenset({("b", "a")}), "abc") == {("b", "a")}


def test_prose_adds_to_what_near_cases_needed() -> None:
    prose = ParsedProcedure("", STEPS[:1], 1.0)
    assert required_groups(prose, [frozenset("ab"), frozenset("bc")]) == [{"a"}, {"b", "c"}]


def test_nothing_comes_after_what_the_procedure_is_for() -> None:
    assert required_precedence(READING, frozenset({("b", "c")}), "abc") == {
        ("a", "tnew"),
        ("a", "b"),
        ("tnew", "b"),
        ("c", "b"),
    }
    assert required_precedence(ParsedProcedure("d", STEPS[:2], 1.0), frozenset({("b", "c")}), "abc") == {
        ("a", "tnew"),
        ("b", "c"),
    }


@pytest.mark.parametrize(
    ("group", "why"),
    [
        ({"a"}, "the procedure asks for it: Do a first."),
        ({"b"}, "it is what the procedure's part is for"),
        ({"c"}, "history failed without it"),
    ],
)
def test_why_a_task_is_needed(group: set[str], why: str) -> None:
    assert required_reason(frozenset(group), READING) == why
    assert required_reason(frozenset(group), None) == "history failed without it"


def test_a_new_step_borrows_the_figures_of_the_nearest_known_task_as_estimates() -> None:
    made = with_new_steps(GRAPH, READING.steps, {"tnew": "a"})
    task = made.tasks["tnew"]
    assert (task.title, task.instructions, task.implementations, task.p_n) == ("do it", ("Do it well.",), 0, 0)
    figures = node_cost(task, task.execution_modes[0], Cost(), Priors())
    assert (figures.cost_usd, figures.cost_basis, figures.duration_basis) == (4.0, "estimated", "estimated")
    assert (figures.p, figures.p_basis) == (0.9, "estimated")
    assert "tnew" not in GRAPH.tasks
    known = replace(GRAPH.tasks["a"], p_basis="prior")
    unjudged = with_new_steps(WorkGraph.of([known], []), READING.steps, {"tnew": "a"}).tasks["tnew"]
    assert unjudged.p_basis == "prior"  # of work whose outcome nobody saw nothing can be estimated
    assert with_new_steps(GRAPH, READING.steps[:1], {}) is GRAPH


def test_a_new_step_like_nothing_has_no_figures() -> None:
    task = with_new_steps(GRAPH, READING.steps, {}).tasks["tnew"]
    assert (task.title, task.execution_modes, task.p) == ("do it", (), None)


def test_the_history_backend_puts_the_reading_first() -> None:
    request = LwmRequest(
        np.ones(2),
        GRAPH,
        [SubWKG({"a": "terminal", "b": "terminal"}, ())],
        [case("ab"), case("abc")],
        procedure=READING,
    )
    found = HistoryBackend().generate(request)
    assert (found[0].tasks, found[0].source) == (("a", "tnew", "b"), "procedure")
    assert [s.source for s in found].count("procedure") == 1


def test_a_reading_that_a_near_case_did_stays_that_cases_sequence() -> None:
    same = ParsedProcedure("b", tuple(ProcedureStep(t, t, None, 1.0) for t in "abc"), 1.0)
    request = LwmRequest(
        np.ones(2), GRAPH, [SubWKG({"a": "terminal", "b": "terminal"}, ())], [case("ab"), case("abc")], procedure=same
    )
    found = HistoryBackend().generate(request)
    assert (found[0].tasks, found[0].source) == (("a", "b", "c"), "history")
    assert [s.tasks for s in found].count(("a", "b", "c")) == 1


def test_steps_that_history_does_either_way_wait_for_the_same() -> None:
    either, one = precedence_counts(["abc", "bac"]), precedence_counts(["abc"])
    assert predecessors({"q": ("a", "b", "c")}, either, GRAPH, frozenset()) == {"q": [[], [], [0, 1]]}
    assert predecessors({"q": ("a", "b", "c")}, one, GRAPH, frozenset()) == {"q": [[], [0], [1]]}
