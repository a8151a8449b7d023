"""A realistic procedure over the activities of a real travel log, with the encoder that comes with the system."""

from typing import Any

import pytest

from opus_pipelines.intakes.elements import Element
from opus_pipelines.intakes.requirements.rules import rule_clauses, rules_of
from opus_pipelines.language.embedding.encoder import Encoder
from opus_pipelines.lwm.interface import ProcessDemand, SimilarCase
from opus_pipelines.lwm.retrieval.rule_constraints import (
    IntakeStatements,
    ProcessHistory,
    ResolutionContext,
    rule_constraints,
)
from opus_pipelines.lwm.retrieval.task_names import TaskMatcher, TaskNames
from opus_pipelines.lwm.workflow_graph import chain, workflow_graph
from opus_pipelines.wkg.graph import Edge, Task, WorkGraph
from opus_pipelines.workflow.constraints import Constraints

TITLES = {
    "a": "Declaration SUBMITTED by EMPLOYEE",
    "b": "Declaration APPROVED by ADMINISTRATION",
    "c": "Declaration APPROVED by BUDGET OWNER",
    "d": "Declaration FINAL_APPROVED by SUPERVISOR",
    "e": "Request Payment",
    "f": "Payment Handled",
    "g": "Declaration APPROVED by PRE_APPROVER",
}
WAYS = ("abdef", "abcdef", "agdef")
PROCEDURE = """# Travel declarations

The administration must approve the declaration before the supervisor gives the final approval.
Payment is handled within 10 working days.
Declarations above EUR 5,000 must also be approved by the budget owner.
The pre-approver must not approve declarations.
"""


def case(tasks: Any) -> Any:
    empty = (None,) * len(tasks)
    return SimilarCase(tasks, 0.9, 1.0, True, None, None, None, tuple(tasks), tuple(tasks), empty, empty, empty)


@pytest.mark.model
@pytest.mark.parametrize(
    ("said", "decided"),
    [
        ("Please pay my trip to Vienna, total EUR 6.200,00.", "in force"),
        ("Please pay my trip to Graz, total EUR 180.", "other cases"),
    ],
)
def test_the_four_sentences_that_failed_are_read(said: Any, decided: Any) -> None:
    element = Element("e1", "process", "text", "sop.md", "text/markdown", PROCEDURE, len(PROCEDURE), "", None)
    graph = WorkGraph.of(
        [Task(i, title) for i, title in TITLES.items()],
        [Edge(x, y, 9, 3, 0.9, 0.1, 0.5) for x, y in ("ab", "bc", "bd", "cd", "de", "ef", "ag", "gd")],
    )
    rules, encoder = rules_of([element]), Encoder()
    clauses, names = rule_clauses(rules), [title.replace("_", " ").casefold() for title in TITLES.values()]
    vectors = dict(zip(clauses, encoder.encode(clauses), strict=True))
    tasks = dict(zip(TITLES, encoder.encode(names), strict=True))
    wfg = workflow_graph({f"q{n}": chain(tuple(way)) for n, way in enumerate(WAYS)}, graph)
    meaning = TaskMatcher(TaskNames(graph, []), graph, sorted(TITLES), tasks, vectors)
    work = ProcessDemand([case(way) for way in WAYS], [])
    statements = IntakeStatements(said, Constraints(), {"e1": "process/sop.md"})
    found = rule_constraints(rules, ResolutionContext(statements, meaning, wfg, ProcessHistory([work])))
    budget = TITLES["c"] if decided == "in force" else "Declarations approved by the budget owner".casefold()
    assert [(d.kind, d.value, d.status) for d in found.rules] == [
        ("before", f"{TITLES['b']} before {TITLES['d']}", "in force"),
        ("must_contain", TITLES["b"], "in force"),
        ("deadlines", "'Payment Handled' within 10 working days of the start", "in force"),
        ("must_contain", budget, decided),
        ("must_not_contain", TITLES["g"], "in force"),
    ]
    assert found.not_applied == 0
