"""Steps that all successes under a procedure's part did and that its reading lacks."""

from dataclasses import replace

import pytest

from opus_pipelines.intakes.procedures.reading import ParsedProcedure, ProcedureStep
from opus_pipelines.lwm.retrieval.requested_steps import required_groups, required_reason, with_unanimous_steps
from opus_pipelines.wkg.graph import Task

TASKS = {t: Task(t, t.upper()) for t in "abcxg"}
READING = ParsedProcedure("g", (ProcedureStep("a", "a", "Do a.", 0.9), ProcedureStep("g", "g", None, 1.0)), 1.0)


def test_a_step_that_every_success_did_is_a_step_in_its_place_with_its_evidence() -> None:
    found = with_unanimous_steps(READING, ["bag"] * 16, TASKS)
    assert found.tasks == ("b", "a", "g")
    assert found.has_goal
    assert (found.steps[0].by_history, found.steps[0].name) == (True, "B")
    assert required_groups(found, []) == [{"a"}, {"b"}, {"g"}]
    assert "all 16 successes" in required_reason(frozenset("b"), found)
    assert with_unanimous_steps(READING, ["abg"] * 16, TASKS).tasks == ("a", "b", "g")


@pytest.mark.parametrize(
    "successes",
    [
        ["abg"] * 15,  # too few
        ["abg"] * 52 + ["ag"],  # not all
        ["ab"] * 52,  # never reached the goal
        ["agb"] * 52,  # behind the goal
        ["ayg"] * 52,  # y is no task of the graph
        [],
    ],
)
def test_less_than_that_leaves_the_reading_as_it_is(successes: list[str]) -> None:
    assert with_unanimous_steps(READING, successes, TASKS) == READING


def test_prose_without_a_goal_stays_as_it_is() -> None:
    prose = replace(READING, steps=READING.steps[:1])
    assert with_unanimous_steps(prose, ["abg"] * 52, TASKS) == prose
