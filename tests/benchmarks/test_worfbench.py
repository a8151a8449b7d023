"""The form of WorFBench's records: requests, lists of tools, answers that are read, and answers that are written."""

import sys
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))

import worfbench  # type: ignore[import-not-found]


def task(user: str, answer: str = "") -> dict[str, Any]:
    """Return a record."""
    roles = [("system", "plan"), ("user", user), ("assistant", answer)]
    return {"source": "s", "id": "s_1", "conversations": [{"role": r, "content": c} for r, c in roles]}


@pytest.mark.parametrize(
    ("user", "request_text", "context"),
    [
        (
            "You see a bed.\n\nYour task is to: move it.The action list you can take: 1. go",
            "move it.",
            "You see a bed.\n- 1. go",
        ),
        ("Task: How to sew\nThe action list you can take: ['Cut.\\n', 'Cut.']", "How to sew", "- Cut."),
        ("Task: add\nThe api list you can use: {'Sum(a)': 'adds'}", "add", "- Sum(a): adds"),
        ("Task: x\napi_list:[{'name': 'f', 'description': 'does f'}]", "x", "- f: does f"),
        ("Task: x\napi_list:[{'name': 'f', 'description': 'does f', 'cut", "x", "- f: does f"),
        ("Task: x", "x", ""),
    ],
    ids=["a place", "actions", "functions", "tools", "tools cut off", "nothing beside"],
)
def test_a_task_is_read_without_its_answer(user: str, request_text: str, context: str) -> None:
    assert worfbench.asked(task(user)) == (request_text, context)


def test_a_solved_task_is_a_case_with_predecessors() -> None:
    answer = "Node:\n1: cut\n2. sew\n3: iron\nGraph:\nEdge: (START,1) (START, 2) (1,3) (2,3) (3,END)"
    steps = worfbench.record(task("Task: x", answer), 7)["steps"]
    assert [(step["subtask"], step["predecessors"]) for step in steps] == [("cut", []), ("sew", []), ("iron", [0, 1])]


def test_an_answer_has_the_form_that_the_data_has() -> None:
    row = worfbench.answered(task("Task: x"), {"plan": ["cut", "sew", "iron"], "links": [["cut", "iron"]]})
    assert row["edges"] == [(0, 1), (0, 2), (1, 3), (2, 4), (3, 4)]
    nodes, edges = worfbench.workflow_of(row["conversations"][2]["content"])
    assert nodes == {"1": "cut", "2": "sew", "3": "iron"}
    assert edges == [("START", "1"), ("START", "2"), ("1", "3"), ("2", "END"), ("3", "END")]


def test_a_task_without_a_workflow_has_no_nodes() -> None:
    row = worfbench.answered(task("Task: x"), {"plan": [], "links": []})
    assert (row["nodes"], row["edges"], row["source"]) == ([], [], "s")
