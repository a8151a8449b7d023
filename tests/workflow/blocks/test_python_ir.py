"""The Python IR: what the grammar knows comes back exactly, and everything else is an error with its place."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from opus_pipelines.workflow.blocks.expressions import And, Comparison, FlowError, Literal, Not, Or, Path
from opus_pipelines.workflow.blocks.formats.python_ir import (
    parse_condition,
    parse_ir,
    quoted,
    write_condition,
    write_ir,
)
from opus_pipelines.workflow.blocks.model import Branch, Call, Flow, For, If, Parallel, UserTask, While, walk
from tests.workflow.blocks.flow_bench import needs_data, sequences
from tests.workflow.blocks.random_flows import CONDITIONS, TEXTS

CASE = """\
leads = Salesforce_Lead__5_0_0__retrievewithwhere_Lead()
for lead in leads:
  if lead.rating == 'hot' and not lead.closed:
    issue = Jira_Issue__2_0_0__create_Issue()
  elif lead.score > -1.5:
    task = user_task("call \\"them\\"")
  else:
    while lead.open != Null:
      lead = Salesforce_Lead__5_0_0__updatewithwhere_Lead()
"""


def test_a_flow_with_every_form() -> None:
    hot = Comparison(Path(("lead", "rating")), "==", Literal("hot"))
    assert parse_ir(CASE) == Flow(
        (
            Call("Salesforce_Lead__5_0_0__retrievewithwhere_Lead", "leads"),
            For(
                "lead",
                Path(("leads",)),
                (
                    If(
                        (
                            Branch(
                                And((hot, Not(Path(("lead", "closed"))))),
                                (Call("Jira_Issue__2_0_0__create_Issue", "issue"),),
                            ),
                            Branch(
                                Comparison(Path(("lead", "score")), ">", Literal(-1.5)),
                                (UserTask('call "them"', "task"),),
                            ),
                        ),
                        (
                            While(
                                Comparison(Path(("lead", "open")), "!=", Literal(None)),
                                (Call("Salesforce_Lead__5_0_0__updatewithwhere_Lead", "lead"),),
                            ),
                        ),
                    ),
                ),
            ),
        )
    )


def test_it_is_written_with_double_quotes_and_python_constants() -> None:
    assert write_ir(parse_ir(CASE)) == CASE.replace("'hot'", '"hot"').replace("Null", "None").rstrip("\n")


def test_every_statement_has_an_id_of_its_own() -> None:
    flow = parse_ir(CASE)
    found = [statement.id for statement in walk(flow.body)]
    assert len(set(found)) == 7
    assert "" not in found


def test_an_empty_text_is_a_flow_without_a_step() -> None:
    assert parse_ir("  \n# nothing\n") == Flow(())
    assert write_ir(Flow(())) == ""


def test_an_else_that_holds_an_if_alone_is_an_elif() -> None:
    nested = parse_ir("if a:\n  x = A()\nelse:\n  if b:\n    x = B()\n  else:\n    x = C()")
    assert nested == parse_ir("if a:\n  x = A()\nelif b:\n  x = B()\nelse:\n  x = C()")
    (statement,) = nested.body
    assert isinstance(statement, If)
    assert len(statement.branches) == 2


@pytest.mark.parametrize("text", ["true", "True"])
def test_constants_of_both_languages(text: str) -> None:
    assert parse_condition(f"a == {text}") == Comparison(Path(("a",)), "==", Literal(True))
    assert parse_condition(f"a == {text}") != Comparison(Path(("a",)), "==", Literal(1))


@pytest.mark.parametrize(
    ("text", "line", "column"),
    [
        ("import os", 1, 1),
        ("x = A()\nfrom os import path", 2, 1),
        ("x = os.system()", 1, 5),
        ("x = A.__class__()", 1, 5),
        ("if x.__class__:\n  y = A()", 1, 4),
        ("if __import__:\n  y = A()", 1, 4),
        ("x = [a() for a in b]", 1, 5),
        ("for x in [a for a in b]:\n  y = A()", 1, 10),
        ("A()", 1, 1),
        ("x = A(1)", 1, 7),
        ("x = A(b=1)", 1, 9),
        ("x = user_task()", 1, 5),
        ("x = user_task(f'{y}')", 1, 5),
        ("x = 1", 1, 5),
        ("x = y = A()", 1, 1),
        ("x, y = A()", 1, 1),
        ("x.y = A()", 1, 1),
        ("größe = A(); y = 2", 1, 18),
        ("if a < b < c:\n  y = A()", 1, 4),
        ("if a is None:\n  y = A()", 1, 4),
        ("if a():\n  y = A()", 1, 4),
        ("if a[0]:\n  y = A()", 1, 4),
        ("if x == 1e999:\n  y = A()", 1, 9),
        ("if x == b'1':\n  y = A()", 1, 9),
        ("if x == 0x1ffffffffffffffff:\n  y = A()", 1, 9),
        ("if (lambda: 1):\n  y = A()", 1, 5),
        ("for x in y:\n  z = A()\nelse:\n  z = B()", 4, 3),
        ("if a:\n  pass", 2, 3),
        ("def f():\n  x = A()", 1, 1),
        ("x = A(", 1, 6),
        ("true = A()", 1, 1),
    ],
)
def test_what_the_grammar_does_not_know_is_an_error_with_its_place(text: str, line: int, column: int) -> None:
    with pytest.raises(FlowError) as caught:
        parse_ir(text)
    assert (caught.value.line, caught.value.column) == (line, column)


@pytest.mark.parametrize(
    "text",
    [
        "x = A()\n" * 20_000,
        "if " + "(" * 5_000 + "a" + ")" * 5_000 + ":\n  x = A()",
        "if " + "not " * 20_000 + "a:\n  x = A()",
        "if " + "not " * 100 + "a:\n  x = A()",
        "if a" + ".b" * 40_000 + "():\n  x = A()",
        "".join(" " * i + "if a:\n" for i in range(60)) + " " * 60 + "x = A()",
        "".join(" " * i + "if a:\n" for i in range(120)) + " " * 120 + "x = A()",
        "x = A()\0",
        "\ud800 = A()",
    ],
    ids=range(9),
)
def test_large_deep_and_broken_texts_are_errors(text: str) -> None:
    with pytest.raises(FlowError):
        parse_ir(text)


def test_many_elifs_and_long_paths_are_read() -> None:
    text = "if a:\n  x = A()\n" + "elif a:\n  x = A()\n" * 200
    assert write_ir(parse_ir(text)) + "\n" == text
    assert write_condition(parse_condition("a" + ".b" * 300)) == "a" + ".b" * 300


@pytest.mark.parametrize(
    "flow",
    [
        Flow((Parallel(((Call("A", "x"),), (Call("B", "y"),))),)),
        Flow((Call("A", "x", (("to", Literal("me")),)),)),
        Flow((Call("Send mail", "x"),)),
    ],
)
def test_what_the_grammar_cannot_express_is_not_written(flow: Flow) -> None:
    with pytest.raises(FlowError):
        write_ir(flow)


@given(CONDITIONS)
def test_conditions_come_back(condition: object) -> None:
    assert isinstance(condition, Literal | Path | Comparison | Not | And | Or)
    assert parse_condition(write_condition(condition)) == condition


@given(st.one_of(TEXTS, st.text()))
def test_texts_come_back(text: str) -> None:
    assert "\n" not in quoted(text)
    assert parse_condition(quoted(text)) == Literal(text)


class TestFlowBench:
    pytestmark = needs_data

    def test_every_sequence_comes_back(self) -> None:
        assert len(sequences()) == 63
        for _, _, text in sequences():
            assert parse_ir(write_ir(parse_ir(text))) == parse_ir(text)

    def test_the_text_differs_in_quotes_and_constants_alone(self) -> None:
        for _, _, text in sequences():
            plain = re.sub(r"[ \t]+$", "", text.replace("'", '"'), flags=re.MULTILINE)
            plain = plain.replace("Null", "None").replace("true", "True").replace("false", "False")
            assert write_ir(parse_ir(text)).split("\n") == [line for line in plain.split("\n") if line]
