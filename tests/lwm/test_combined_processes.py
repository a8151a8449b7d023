"""Kinds of work beside what near cases did: looked up where history did what the documents demand."""

from types import SimpleNamespace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from opus_pipelines.core.settings import Generation
from opus_pipelines.intakes.elements import Element
from opus_pipelines.intakes.requirements.rules import rules_of
from opus_pipelines.lwm.interface import ProcessDemand
from opus_pipelines.lwm.retrieval.routing import CaseRetriever
from opus_pipelines.lwm.retrieval.task_names import TaskNames
from opus_pipelines.lwm.stitching import combined_precedence, combined_processes, critical_groups
from opus_pipelines.wkg.graph import Task, WorkGraph
from opus_pipelines.workflow.constraints import Constraints

TITLES = {
    "r": "Register Claim",
    "w": "Check Weather Record",
    "d": "Arrange Drying",
    "i": "Inspect Property",
    "e": "Estimate Repair Cost",
    "s": "Send Satisfaction Survey",
    "t": "Tow Vehicle",
}
GRAPH = WorkGraph.of(
    [Task(i, title, industries=("motor",) if i == "t" else ("home",)) for i, title in TITLES.items()], []
)
STORM, WATER = (1.0, 0.0), (0.0, 1.0)
HISTORY = [
    *[("rwie", STORM, True)] * 20,
    *[("rwe", STORM, False)] * 5,
    *[("rdie", WATER, True)] * 16,
    *[("rdies", WATER, True)] * 4,
]


def book(history: list[Any] = HISTORY) -> Any:
    ids = [f"c{n:02}" for n in range(len(history))]
    tasks = [list(tasks) for tasks, *_ in history]
    nothing = [[None] * len(t) for t in tasks]
    cases = pa.table(
        {
            "implementation_id": ids,
            "industry": ["home"] * len(ids),
            "expected_outcome": pa.array([None] * len(ids), pa.bool_()),
            "success": pa.array([success for *_, success in history], pa.bool_()),
            "client": ["acme"] * len(ids),
            "kind_of_case": pa.array([None] * len(ids), pa.string()),
            "tasks": tasks,
            "task_keys": tasks,
            "task_cost_usd": nothing,
            "task_duration_ms": nothing,
            "actor_kinds": nothing,
            "models": nothing,
            "actor_groups": nothing,
        }
    )
    vectors = pa.table(
        {
            "implementation_id": ids,
            "vector": pa.array([list(v) for _, v, _ in history], pa.list_(pa.float32(), 2)),
        }
    )
    return CaseRetriever(cases, vectors)


def works(
    text: str,
    role: str = "process",
    must_contain: tuple[Any, ...] = (),
    industry: str = "home",
    history: list[Any] = HISTORY,
) -> Any:
    element = Element("e1", role, "text", "rules.md", "text/markdown", text, len(text), "", None)
    found = book(history)
    index = SimpleNamespace(
        graph=GRAPH,
        names=TaskNames(GRAPH, []),
        task_vectors={},
        cases=found,
        critical_task_rows=lambda industry: [],
        counts={},
    )
    intake = SimpleNamespace(
        industry=industry,
        client="acme",
        title="Storm claim",
        elements=[element],
        constraints=Constraints(must_contain=must_contain),
        answers={},
    )
    vector = np.array([0.98, 0.2], np.float32)
    vector /= np.linalg.norm(vector)
    near = ProcessDemand(
        found.near(vector, industry, 25), [frozenset("r"), frozenset("w"), frozenset("i"), frozenset("e")]
    )
    intention = SimpleNamespace(decoded=SimpleNamespace(rules=rules_of([element])), texts={}, vector=vector)
    return combined_processes(near, intention, intake, index, Generation(near_cases=25))


def told(found: list[ProcessDemand]) -> Any:
    return ["".join(sorted("".join(sorted(g)) for g in work.critical)) for work in found]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Drying must be arranged.", ["eirw", "deir"]),  # all of that work is asked for
        ("The satisfaction survey must be sent.", ["eirw", "s"]),  # an extra there is one here
        ("The weather record must be checked.", ["eirw"]),  # near cases did it
        ("Drying may be arranged.", ["eirw"]),
        ("If it is wet, drying must be arranged.", ["eirw"]),
        ("The vehicle must be towed: tow vehicle.", ["eirw"]),  # no step of this industry
        ("Something else must be done.", ["eirw"]),
    ],
)
def test_what_is_demanded_beside_near_work_brings_its_own(text: str, expected: list[str]) -> None:
    assert told(works(text)) == expected


@pytest.mark.parametrize("role", ["contract", "input", "output"])
def test_only_the_intakes_own_process_asks_for_further_work(role: str) -> None:
    assert told(works("Drying must be arranged.", role)) == ["eirw"]


def test_settings_ask_for_it_too() -> None:
    assert told(works("", must_contain=("Arrange Drying",))) == ["eirw", "deir"]
    assert told(works("", must_contain=("Fly a Kite",))) == ["eirw"]


def test_what_nobody_did_without_failing_is_no_model() -> None:
    failed = [(tasks, vector, success and "d" not in tasks) for tasks, vector, success in HISTORY]
    assert told(works("Drying must be arranged.", history=failed)) == ["eirw"]


def test_goals_that_no_case_did_together_are_two_processes() -> None:
    found = works("", must_contain=("Check Weather Record", "Arrange Drying"))
    assert [sorted(demand.goals) for demand in found] == [["w"], ["d"]]
    together = [*[("rwdie", STORM, True)] * 3, *HISTORY]
    found = works("", must_contain=("Check Weather Record", "Arrange Drying"), history=together)
    assert [sorted(demand.goals) for demand in found] == [["d", "w"]]


def test_no_pair_of_the_precedence_contradicts_the_stitched_plan() -> None:
    found = works("Drying must be arranged.")
    assert ("r", "d") not in combined_precedence(found, 0.9, "dr")
    assert ("d", "i") in combined_precedence(found, 0.9, "dr")


def test_groups_are_counted_once_and_the_first_works_order_stays() -> None:
    found = works("Drying must be arranged.")
    assert ["".join(g) for g in critical_groups(found)] == ["d", "e", "i", "r", "w"]
    order = combined_precedence(found, 0.9)
    assert {("r", "w"), ("r", "d"), ("d", "i"), ("w", "i"), ("i", "e")} <= order
    assert ("w", "d") not in order
    assert ("d", "w") not in order
    assert combined_precedence(found[:1], 0.9) <= order
