"""Every format: what it declares comes back exactly, the rest is a listed loss, and errors have a place."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from opus_pipelines.core.errors import InputError
from opus_pipelines.workflow.blocks.expressions import FlowError, Literal
from opus_pipelines.workflow.blocks.formats.registry import ALL, FLOW_FORMATS, Feature, flow_format, reduced, written
from opus_pipelines.workflow.blocks.model import Call, Flow, Parallel, identified
from tests.campaigns import examples
from tests.workflow.blocks.random_flows import FLOWS

TREES = ["python", "bpmn", "camunda", "json", "yaml", "mermaid", "n8n"]
FREE = Flow(
    (
        Call("Send mail", "mail", (("to", Literal("me")),)),
        Parallel(((Call("A", "x"),), (Call("B", "y"),))),
    ),
    "Leads",
)


@pytest.mark.long
@settings(max_examples=examples(60), deadline=None)
@given(FLOWS, st.sampled_from(TREES))
def test_what_a_format_declares_comes_back(flow: Flow, name: str) -> None:
    form = flow_format(name)
    kept, losses = reduced(identified(flow), form.features)
    content, listed = written(flow, name)
    back = form.parse(content, "")
    assert back == kept
    assert listed == losses
    assert back.name == kept.name
    assert (kept == flow and kept.name == flow.name) == (losses == [])


def test_losses_are_listed_by_step() -> None:
    content, losses = written(FREE, "python")
    assert content == b"mail = Send_mail()\nx = A()\ny = B()\n"
    assert [(loss.id, loss.feature) for loss in losses] == [
        ("", Feature.TITLE),
        ("s1", Feature.ARGUMENTS),
        ("s1", Feature.FREE_NAMES),
        ("s2", Feature.PARALLEL),
    ]
    assert reduced(FREE, ALL) == (FREE, [])


def test_two_activities_do_not_get_one_name() -> None:
    with pytest.raises(FlowError, match="Send_mail"):
        written(Flow((Call("Send mail", "x"), Call("Send_mail", "y"))), "python")


def test_an_unknown_format_is_an_error_that_names_the_known() -> None:
    with pytest.raises(InputError, match="python, core, bpmn"):
        flow_format("visio")
    assert FLOW_FORMATS.names()[0] == "python"


@pytest.mark.parametrize(
    ("name", "content", "line", "said"),
    [
        ("json", b'{"steps": [\n{"call": }]}', 2, "JSON"),
        ("yaml", b"steps:\n- call: [", 3, "YAML"),
        ("yaml", b"steps: &a\n- *a", 2, "aliases"),
        ("json", b'{"steps": [{"call": "A", "variable": "x"}, {"call": "A"}]}', None, r"steps\[1\]: variable"),
        (
            "json",
            b'{"steps": [{"if": [{"condition": "a", "steps": [{"x": 1}]}]}]}',
            None,
            r"steps\[0\].if\[0\].steps\[0\]",
        ),
        ("json", b'{"steps": [{"while": "a <", "steps": []}]}', None, r"steps\[0\]"),
        ("json", b'{"steps": [{"call": "A", "variable": "import"}]}', None, "import"),
        ("json", b'{"steps": 3}', None, "steps"),
        ("json", b'{"steps": [], "more": 1}', None, "more"),
        ("json", b"\xff\xfe", 1, "UTF-8"),
        ("json", b"[" * 100_000, None, "JSON"),
        ("python", b"x = A()\nimport os", 2, "import"),
        ("bpmn", b"<a>\n</b>", 2, "XML"),
        ("bpmn", b"<!DOCTYPE a [<!ENTITY b 'c'>]><a>&b;</a>", 1, "BPMN"),
    ],
)
def test_errors_have_a_place(name: str, content: bytes, line: int | None, said: str) -> None:
    with pytest.raises(FlowError, match=said) as caught:
        flow_format(name).parse(content, "")
    assert caught.value.line == line
