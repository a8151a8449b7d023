"""Files that other programs write, and files of ours that a person changed, are read by what they say."""

import json
import os
import tarfile
from pathlib import Path
from typing import Any

import pytest

from opus_pipelines.workflow.blocks.expressions import FlowError
from opus_pipelines.workflow.blocks.formats.dmn import read_dmn, write_dmn
from opus_pipelines.workflow.blocks.formats.mermaid import read_mermaid, write_mermaid
from opus_pipelines.workflow.blocks.formats.n8n import read_n8n, write_n8n
from opus_pipelines.workflow.blocks.formats.python_ir import parse_ir, write_ir, write_steps
from opus_pipelines.workflow.blocks.model import Flow

FLOW = (
    'xs = A()\nfor x in xs:\n  if x.a == "b":\n    y = B()\n  else:\n    z = user_task("look")\nwhile xs.c:\n  w = C()'
)


def test_a_chart_that_a_person_drew() -> None:
    text = """flowchart LR
    %% a comment
    start([Start]) --> fetch[Fetch leads] --> hot{lead.rating == #34;hot#34;}
    hot -- yes --> mail[Send mail]
    hot -->|no| done((End))
    mail --> done
"""
    assert [line.partition(" = ")[2] or line for line in write_steps(read_mermaid(text.encode()).body).split("\n")] == [
        'call("Fetch leads")',
        'if lead.rating == "hot":',
        'call("Send mail")',
    ]


@pytest.mark.parametrize(
    ("text", "line", "column"),
    [
        ("flowchart TD\n  a[A] b[B]", 2, 7),
        ("flowchart TD\n  a[A] --> ", 2, 12),
        ("flowchart TD\n  a{what now} --> b[B]", 2, 3),
        ("flowchart TD\n  a[A] --> b[B]\n  b --> a", 1, 1),
    ],
)
def test_an_error_of_a_chart_has_a_place(text: str, line: int, column: int) -> None:
    with pytest.raises(FlowError) as caught:
        read_mermaid(text.encode())
    assert (caught.value.line, caught.value.column) == (line, column)


def test_a_changed_chart_says_the_change() -> None:
    content = write_mermaid(parse_ir(FLOW)).replace(b"B#40;#41;", b"D#40;#41;")
    assert write_ir(read_mermaid(content)) == FLOW.replace("B()", "D()")


def test_a_changed_n8n_node_says_the_change() -> None:
    data = json.loads(write_n8n(parse_ir(FLOW)))
    for node in data["nodes"]:
        if node["parameters"].get("workflowId") == "B":
            node["parameters"]["workflowId"] = "n8n/D"
        node.pop("notes", None)
    found = write_steps(read_n8n(json.dumps(data).encode()).body)
    assert '= call("n8n/D")' in found
    assert 'if x.a == "b":' in found
    assert "while xs.c:" in found


@pytest.mark.parametrize(
    ("data", "said"),
    [
        ({}, "nodes"),
        ({"nodes": [{"name": "a"}], "connections": {}}, r"nodes\[0\]"),
        ({"nodes": [{"name": "a", "type": "x.if2"}] * 2, "connections": {}}, r"nodes\[1\]"),
        ({"nodes": [], "connections": {"a": 3}}, "'a'"),
        ({"nodes": [{"name": "I", "type": "n8n-nodes-base.if"}], "connections": {}}, "'I'"),
        ({"nodes": [{"name": "a", "type": "x.y"}, {"name": "b", "type": "x.y"}], "connections": {}}, "a, b"),
    ],
)
def test_an_error_of_an_n8n_file_names_the_node(data: Any, said: str) -> None:
    with pytest.raises(FlowError, match=said):
        read_n8n(json.dumps(data).encode())


RULES = 'if a.b == "c" and d > 5:\n  x = A()\nelif a.b != "e":\n  y = user_task("look \\"here\\"")\nelse:\n  z = B()'


def test_a_decision_table_comes_back() -> None:
    flow = Flow(parse_ir(RULES).body, "Routing <1>")
    back = read_dmn(write_dmn(flow))
    assert back == flow
    assert back.name == flow.name
    assert b'hitPolicy="FIRST"' in write_dmn(flow)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("x = A()\ny = B()", "2 steps"),
        ("if a:\n  x = A()", "compares"),
        ("if a == 1:\n  x = A()\n  y = B()", "one step"),
        ("if a == 1 and a == 2:\n  x = A()", "one comparison of a"),
        ('if "b" in a:\n  x = A()', "compares"),
    ],
)
def test_what_no_decision_table_can_say_is_an_error(text: str, said: str) -> None:
    with pytest.raises(FlowError, match=said):
        write_dmn(parse_ir(text))


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("FIRST", "COLLECT", "COLLECT"),
        ("<text>&gt; 5</text>", "<text>&gt; a</text>", "constant"),
        ("<text>d</text>", "<text>3</text>", "variable"),
        ('"look', "look", "out_2_step"),
        ("</definitions>", "", "XML"),
    ],
)
def test_an_error_of_a_decision_table_has_its_place(old: str, new: str, said: str) -> None:
    content = write_dmn(parse_ir(RULES)).decode()
    assert old in content
    with pytest.raises(FlowError, match=said) as caught:
        read_dmn(content.replace(old, new).encode())
    assert caught.value.line


DATA = Path(os.environ.get("OPUS_TEST_DATA", Path(__file__).parents[4] / "shared" / "data")) / "n8n"
MOST = 300


@pytest.mark.data
@pytest.mark.skipif(not DATA.is_dir(), reason=f"no real data in {DATA}; OPUS_TEST_DATA says where it is")
def test_real_n8n_files_are_read_or_refused_with_a_reason() -> None:
    read, refused = 0, 0
    with tarfile.open(DATA / "workflows.tar.gz") as archive:
        for member in archive:
            file = archive.extractfile(member)
            if file is not None and member.name.endswith(".json") and read + refused < MOST:
                try:
                    flow = read_n8n(file.read())
                except FlowError:
                    refused += 1
                else:
                    assert read_n8n(write_n8n(flow)) == flow
                    read += 1
    assert read + refused == MOST
    assert read >= 60
