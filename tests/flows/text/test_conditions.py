"""Conditions as text."""

import pytest

from opus_pipelines.flows.text.clauses import CONDITION, Clause
from opus_pipelines.flows.text.conditions import described, read_condition
from opus_pipelines.workflow.blocks.formats.python_ir import write_ir
from opus_pipelines.workflow.blocks.model import Branch, Call, Flow, If


def shown(text: str) -> str:
    condition = read_condition(Clause(CONDITION, tuple(text.split()))).expression("x")
    return write_ir(Flow((If((Branch(condition, (Call("act", "a"),)),)),))).splitlines()[0]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("there are more than 10", "if x > 10:"),
        ('the title contains "urgent"', 'if "urgent" in x.title:'),
        ('the title does not contain "urgent"', 'if "urgent" not in x.title:'),
        ("the ticket is closed", 'if x.status == "closed":'),
        ("the device is compliant", "if x.compliant:"),
        ("it is larger than 100", "if x.size > 100:"),
        ("one of them is closed", 'if x.status == "closed":'),
        ("any of the devices is compliant", "if x.compliant:"),
        ("one has more than 5 issues", "if x.issues > 5:"),
        ("the lead is from Canada", 'if x.country == "Canada":'),
    ],
)
def test_a_condition_is_read(text: str, expected: str) -> None:
    assert shown(text) == expected


def test_adjectives_before_a_noun_are_a_condition() -> None:
    found = described(["low", "priority", "incidents"])
    assert found is not None
    assert (found.attribute, found.value) == ("priority", "low")
    assert described(["github", "issue"]) is None
