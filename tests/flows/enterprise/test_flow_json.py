"""Flow JSON: both forms are read, what is written is read back, and what is no flow is an error with its place."""

import json
from typing import Any

import pytest

from opus_pipelines.flows.enterprise.documents import (
    Component,
    FlowDocument,
    FlowDocumentError,
    Input,
    Trigger,
    document_of,
    document_text,
    json_of,
    read_document,
)
from tests.flows.enterprise.flow_texts import flow, step


def test_the_form_of_the_figure_and_that_of_starflow_are_read() -> None:
    trigger = {"type": "daily", "annotation": "every day", "inputs": [{"name": "time", "value": "06:00"}]}
    figure = {"trigger": trigger, "components": [{"annotation": "log it", "name": "log", "step": 1, "inputs": []}]}
    expected = FlowDocument(
        (Trigger("daily", (Input("time", "06:00"),), "every day"),), (Component("log", 1, annotation="log it"),)
    )
    assert document_of(figure) == expected
    tree = {"category": "flowlogic", "definition": "if", "scope": "global", "order": 1}
    inner = {"category": "subflow", "definition": "tell", "scope": "x_hr", "order": "2", "block": 1}
    read_back = document_of({"trigger": None, "components": [tree, inner]})
    assert [(c.name, c.category, c.order, c.block, c.scope) for c in read_back.components] == [
        ("IF", "flowlogic", 1, None, "global"),
        ("tell", "subflow", 2, 1, "x_hr"),
    ]


def test_what_is_written_is_read_back() -> None:
    own = flow(step("IF", 1, condition="a=1"), step("log", 2, 1, message='hé "q" {{x.y}}', level=None))
    document = FlowDocument(own.triggers, own.components, ({"name": "u", "type": "record", "reference": "sys_user"},))
    assert read_document(document_text(document)) == document
    assert json_of(FlowDocument()) == {"trigger": None, "components": []}


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("{", "line 1, column 2"),
        ("[]", "object"),
        ('{"steps": []}', "'steps'"),
        ('{"trigger": {}}', "trigger"),
        ('{"trigger": {"type": "daily"}, "components": {}}', "components"),
        ('{"components": [{"definition": "log"}, 7]}', "number 2"),
        ('{"components": [{"definition": "log", "order": 1.5}]}', "order"),
        ('{"components": [{"definition": "log", "category": "magic"}]}', "'magic'"),
        ('{"components": [{"definition": "log", "inputs": [{"value": 1}]}]}', "number 1"),
        ('{"components": [], "components": []}', "twice"),
        ('{"trigger": {"type": "x"}, "components": NaN}', "NaN"),
        ("[" * 100_000, "deep"),
    ],
)
def test_what_is_no_flow_is_an_error_with_its_place(text: str, words: str) -> None:
    with pytest.raises(FlowDocumentError, match=words):
        read_document(text)


def test_two_triggers_are_both_seen() -> None:
    both: Any = read_document('{"trigger": {"type": "daily"}, "trigger": {"type": "weekly"}, "components": []}')
    assert [t.type for t in both.triggers] == ["daily", "weekly"]
    assert len(document_of(json_of(both)).triggers) == 2


def test_nesting_is_walked_without_end_in_circles() -> None:
    circle = flow(step("IF", 1, 2), step("IF", 2, 1), step("log", 3), step("FOREACH", 4), step("log", 5, 4))
    assert [(depth, c.order) for depth, c in circle.nested()] == [(0, 3), (0, 4), (1, 5)]
    assert json.loads(document_text(circle))["components"][0]["block"] == 2
