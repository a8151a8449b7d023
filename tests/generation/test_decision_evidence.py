"""Decisions among the near cases: an accepted workflow counts for similar intakes, a rejected one never does."""

from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import numpy as np
import pytest

from opus_pipelines.core.settings import Settings
from opus_pipelines.generation.decisions import accepted_elsewhere, agreed_with, with_accepted_workflows
from opus_pipelines.intakes.decisions.record import Decision, Decisions, WorkflowContent, steps_of
from opus_pipelines.lwm.interface import SimilarCase
from opus_pipelines.lwm.retrieval.completeness import OUTCOMES, SUPPORT, Completeness, critical_tasks
from opus_pipelines.lwm.retrieval.consensus import Trace, consensus
from opus_pipelines.workflow.model import Actor
from tests.generation.planning.test_proposals import GRAPH, TASKS

SETTINGS = Settings()
TITLES = {task.task_id: task.title for task in TASKS}
VECTOR = np.array([1.0, 0.0, 0.0], np.float32)
DONE = ("ask", "note", "pay")
OWN = WorkflowContent(DONE, frozenset({("ask", "note"), ("note", "pay")}), dict.fromkeys(DONE, Actor("human")))


def case(name: str, similarity: float, weight: float, *tasks: str) -> SimilarCase:
    nothing = (None,) * len(tasks)
    return SimilarCase(name, similarity, weight, True, None, None, None, tasks, tasks, nothing, nothing, nothing)


CASES = [case("m1", 0.9, 1.0, "ask", "check", "pay"), case("m2", 0.7, 0.4, "ask", "pay")]


def decision(
    kind: str = "accept",
    vector: tuple[float, ...] = (0.8, 0.6, 0.0),
    number: int = 1,
    intention: str = "other",
    **more: Any,
) -> Decision:
    made = Decision(
        "Acme",
        "Claims",
        kind,
        "k2",
        "two",
        intention,
        "f2",
        "r1",
        1,
        steps_of(OWN, TITLES),
        datetime(2026, 1, 31, tzinfo=UTC),  # type: ignore[arg-type]
        vector=vector,
        encoder=SETTINGS.encoder.model,
        number=number,
    )
    return replace(made, **more)


def near(*made: Decision, settings: Settings = SETTINGS, cases: list[SimilarCase] = CASES) -> list[SimilarCase]:
    accepted = accepted_elsewhere(Decisions(tuple(made)), "n", GRAPH.tasks.keys())
    return with_accepted_workflows(cases, accepted, VECTOR, settings)


def test_an_accepted_workflow_is_a_successful_case_between_those_it_is_as_similar_as() -> None:
    found = near(decision())
    assert [c.implementation_id for c in found] == ["m1", decision().decision_id, "m2"]
    one = found[1]
    assert (one.similarity, one.weight) == (pytest.approx(0.8), pytest.approx(5.0 * 0.4))
    assert (one.success, one.is_informative, one.is_decision, one.tasks) == (True, True, True, ("ask", "note", "pay"))


def test_the_weight_is_a_setting() -> None:
    settings = Settings(generation={"decided_weight": 2.0})
    assert near(decision(vector=(1.0, 0.0, 0.0)), settings=settings)[0].weight == pytest.approx(2.0)


@pytest.mark.parametrize(
    "made",
    [
        decision("reject"),
        decision(vector=(0.0, 1.0, 0.0)),
        decision(intention="n"),
        decision(encoder="another"),
        decision(vector=(1.0,)),
        decision(vector=(0.0, 0.0, 0.0)),
    ],
)
def test_a_rejected_a_dissimilar_and_the_own_decision_never_count(made: Decision) -> None:
    assert near(made) == CASES


def test_an_acceptance_that_was_taken_back_counts_no_more() -> None:
    assert near(decision(), decision("reject", number=2)) == CASES


def test_a_workflow_with_a_task_that_is_gone_never_counts() -> None:
    gone = WorkflowContent(("ask", "fax"), frozenset(), {"ask": Actor("human"), "fax": Actor("human")})
    assert near(decision(steps=steps_of(gone, {"ask": "Ask", "fax": "Fax"}))) == CASES


def test_what_a_person_accepted_elsewhere_becomes_what_one_does() -> None:
    history = [case(f"m{n}", 0.9, 1.0, "ask", "pay") for n in range(4)]
    knobs = Settings(generation={"decided_weight": 5.0}).generation
    assert frozenset({"note"}) not in critical_tasks(history, [], None, knobs)
    found = near(decision(vector=(1.0, 0.0, 0.0)), cases=history)
    assert frozenset({"note"}) in critical_tasks(found, [], None, knobs)


def test_where_support_decides_the_decided_workflow_is_among_what_the_cases_agree_on() -> None:
    history = [case(f"m{n}", 0.9, 1.0, "ask", "pay") for n in range(4)]
    agreed = consensus([Trace.of(c.tasks) for c in history], np.ones(4))
    before = Completeness(SUPPORT, None, None, agreed, frozenset({"ask", "pay"}))
    after = agreed_with(before, near(decision(vector=(1.0, 0.0, 0.0)), cases=history))
    assert after.consensus.support["note"] == pytest.approx(5 / 9)
    assert (after.consensus_tasks, before.consensus_tasks) == (("ask", "note", "pay"), ("ask", "pay"))
    assert after.conformity(("ask", "note", "pay")) > before.conformity(("ask", "note", "pay"))
    assert after.consensus.cases == agreed.cases  # a decision is no case of history: it makes no verdict surer
    assert agreed_with(before, history) == before
    by_outcomes = replace(before, rule=OUTCOMES, steps=frozenset())
    assert agreed_with(by_outcomes, near(decision(vector=(1.0, 0.0, 0.0)), cases=history)).consensus == agreed


def test_without_a_gain_a_decided_workflow_is_a_case_that_conformity_is_told_against() -> None:
    history = [case(f"m{n}", 0.9, 1.0, "ask", "pay") for n in range(4)]
    before = Completeness(
        OUTCOMES, None, None, consensus([Trace.of(c.tasks) for c in history], np.ones(4)), frozenset({"ask", "pay"})
    )
    after = agreed_with(before, near(decision(vector=(1.0, 0.0, 0.0)), cases=history))
    assert (after.consensus_tasks, before.consensus_tasks) == ((), ())  # outcomes tell what may be left out
    assert after.conformity(("ask", "note", "pay")) > before.conformity(("ask", "note", "pay"))
