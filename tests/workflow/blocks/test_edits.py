"""Edits by id, and the difference of two flows; every error names the step or the operations."""

import pytest
from hypothesis import given, settings

from opus_pipelines.workflow.blocks.difference import cost, difference
from opus_pipelines.workflow.blocks.edits import (
    AddElse,
    Delete,
    DeleteElse,
    Insert,
    NegateCondition,
    Operation,
    Replace,
    SetCondition,
    SetLoopHeader,
    Unwrap,
    Wrap,
    applied,
    described,
)
from opus_pipelines.workflow.blocks.expressions import FlowError
from opus_pipelines.workflow.blocks.formats.python_ir import parse_condition, parse_ir, parse_steps, write_ir
from opus_pipelines.workflow.blocks.model import Call, Flow, UserTask, identified, ids
from tests.campaigns import examples
from tests.workflow.blocks.flow_bench import bench_tests, needs_data
from tests.workflow.blocks.random_flows import FLOWS

BUCKETS = """\
buckets = Retrieve()
if buckets != None:
  bucket = Create()
else:
  objects = List()"""  # s1, s2 (branch s3), s4, s5
LOOP = """\
folder = A()
items = B()
for item in items:
  file = C()"""  # s1, s2, s3, s4


def edited(text: str, *operations: Operation) -> str:
    return write_ir(applied(parse_ir(text), operations))


def test_deleting_the_body_of_an_if_with_an_else_negates_its_condition() -> None:
    expected = "buckets = Retrieve()\nif buckets == None:\n  objects = List()"
    assert edited(BUCKETS, Delete("s4")) == expected
    assert edited(BUCKETS, Delete("s4"), Delete("s5")) == "buckets = Retrieve()"
    assert edited(BUCKETS, DeleteElse("s3")) == "buckets = Retrieve()\nif buckets != None:\n  bucket = Create()"


@pytest.mark.parametrize(
    ("operation", "expected"),
    [
        (Insert(parse_steps("x = X()")), LOOP + "\nx = X()"),
        (Insert(parse_steps("x = X()"), "before", "s1"), "x = X()\n" + LOOP),
        (Insert(parse_steps("x = X()"), "append", "s3"), LOOP + "\n  x = X()"),
        (Insert(parse_steps("x = X()"), "after", "s3"), LOOP + "\nx = X()"),
        (Delete("s4"), "folder = A()\nitems = B()"),
        (Delete("s2"), LOOP.replace("items = B()\n", "")),
        (Replace("s4", Call("D", "copy")), LOOP.replace("file = C", "copy = D")),
        (Replace("s1", UserTask("look", "task")), LOOP.replace("folder = A()", 'task = user_task("look")')),
        (
            SetLoopHeader("s3", parse_condition("folder.parts"), "part"),
            LOOP.replace("item in items", "part in folder.parts"),
        ),
        (Unwrap("s3"), "folder = A()\nitems = B()\nfile = C()"),
        (
            Wrap("s4", "s4", parse_condition("item.type != 'secret'")),
            LOOP.replace("  file = C()", '  if item.type != "secret":\n    file = C()'),
        ),
        (
            Wrap("s1", "s2", parse_condition("xs"), "x"),
            LOOP.replace("folder = A()\nitems = B()", "for x in xs:\n  folder = A()\n  items = B()"),
        ),
        (
            Wrap("s1", "s1", parse_condition("a > 1"), loop=True),
            LOOP.replace("folder = A()", "while a > 1:\n  folder = A()"),
        ),
    ],
    ids=lambda value: type(value).__name__ if not isinstance(value, str) else "",
)
def test_operations(operation: Operation, expected: str) -> None:
    assert edited(LOOP, operation) == expected
    assert described(operation)


def test_conditions_are_set_negated_and_given_an_else() -> None:
    text = "if a == 1:\n  x = X()\nelif b:\n  y = Y()"
    flow = parse_ir(text)
    branch = next(ident for ident in ids(flow.body) if ident == "s3")
    assert edited(text, NegateCondition("s1"), SetCondition(branch, parse_condition("c"))) == (
        "if a != 1:\n  x = X()\nelif c:\n  y = Y()"
    )
    assert edited(text, AddElse(branch, parse_steps("z = Z()"))) == text + "\nelse:\n  z = Z()"
    assert edited(text, AddElse(branch, parse_steps("if d:\n  z = Z()"))) == text + "\nelif d:\n  z = Z()"
    assert edited(text, Delete(branch)) == "if a == 1:\n  x = X()"


def test_what_is_not_named_keeps_its_id() -> None:
    flow = parse_ir(LOOP)
    after = applied(flow, [Delete("s1"), Insert(parse_steps("x = X()"), "before", "s4")])
    assert list(ids(after.body)) == ["s2", "s3", "s5", "s4"]


@pytest.mark.parametrize(
    ("operations", "named"),
    [
        ([Delete("s9")], "s9"),
        ([Insert(parse_steps("x = X()"), "after", "step_7")], "step_7"),
        ([Delete("s1"), Delete("s1")], "1 and 2"),
        ([Delete("s1"), Replace("s1", Call("A", "b"))], "1 and 2"),
        ([Replace("s1", Call("A", "b")), Delete("s1")], "1 and 2"),
        ([Delete("s1"), Insert(parse_steps("x = X()"), "after", "s1")], "1 and 2"),
        ([Replace("s1", Call("A", "b")), Replace("s1", Call("A", "c"))], "1 and 2"),
        ([SetLoopHeader("s3", parse_condition("a"), "b"), SetLoopHeader("s3", parse_condition("c"), "b")], "1 and 2"),
        ([NegateCondition("s3")], "s3"),
        ([Insert(parse_steps("x = X()"), "append", "s1")], "s1"),
        ([Wrap("s2", "s1", parse_condition("a"))], "s2"),
        ([Wrap("s1", "s4", parse_condition("a"))], "s4"),
        ([Unwrap("s1")], "s1"),
        ([AddElse("s3", parse_steps("x = X()"))], "s3"),
        ([Replace("s3", Call("A", "b"))], "s3"),
        ([Insert(())], "no step"),
        ([Insert(parse_steps("x = X()"), "append", "s3.else")], "s3"),
    ],
)
def test_missing_steps_and_contradictions_are_errors(operations: list[Operation], named: str) -> None:
    with pytest.raises(FlowError, match=named):
        applied(parse_ir(LOOP), operations)


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        (LOOP, LOOP, []),
        (LOOP, LOOP + "\nx = X()", ["insert after s3: x = X()"]),
        (LOOP, "items = B()\nfor item in items:\n  file = C()", ["delete s1"]),
        (LOOP, LOOP.replace("C()", "D()"), ["replace s4: file = D()"]),
        (LOOP, LOOP.replace("  file = C()", "  if item.a:\n    file = C()"), ["wrap s4 to s4: if item.a"]),
        (BUCKETS, "buckets = Retrieve()\nif buckets == None:\n  objects = List()", ["delete s4"]),
        (BUCKETS, "buckets = Retrieve()\nif buckets != None:\n  bucket = Create()", ["delete the else of s3"]),
        (LOOP, "folder = A()\nitems = B()\nfile = C()", ["unwrap s3"]),
        ("if a:\n  x = X()", "if a:\n  x = X()\nelse:\n  y = Y()", ["add else to s2: y = Y()"]),
        ("if a < 1:\n  x = X()", "if a >= 1:\n  x = X()", ["negate the condition of s2"]),
    ],
)
def test_the_difference_is_the_edit_that_a_person_would_name(before: str, after: str, expected: list[str]) -> None:
    assert [described(operation) for operation in difference(parse_ir(before), parse_ir(after))] == expected


@pytest.mark.long
@settings(max_examples=examples(40), deadline=None)
@given(FLOWS, FLOWS)
def test_applying_the_difference_gives_the_other_flow(before: Flow, after: Flow) -> None:
    before = identified(before)
    assert applied(before, difference(before, after)) == after
    assert difference(before, before) == []
    assert cost(before, before) == 0


class TestFlowBench:
    pytestmark = needs_data

    def test_updates_are_few_operations(self) -> None:
        counts = []
        for test in bench_tests():
            for prior in test["input"]["prior_sequence"] or ():
                before, after = parse_ir(prior), parse_ir(test["expected_output"]["sequence"][0])
                operations = difference(before, after)
                assert applied(before, operations) == after
                counts.append(len(operations))
        assert len(counts) == 21
        assert sum(counts) <= 30
