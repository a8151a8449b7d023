"""CoRE programs in and out of the block model: decisions are ifs, back edges are whiles."""

import pytest
from hypothesis import given, settings

from opus_pipelines.workflow.blocks.expressions import FlowError
from opus_pipelines.workflow.blocks.formats import python_ir
from opus_pipelines.workflow.blocks.formats.core_flow import flow_program, program_flow
from opus_pipelines.workflow.blocks.formats.core_program import CoreProgram, CoreStep, findings, parse_core, write_core
from opus_pipelines.workflow.blocks.model import Flow, Parallel, Statement, walk
from tests.workflow.blocks.random_flows import FLOWS

MANUAL = """\
Step 1 ::: process ::: Find the input type. ::: next :: Step 2
Step 2 ::: process ::: Pick a model. ::: next :: Step 3
Step 3 ::: decision ::: Do the types fit? ::: Yes :: Step 4 :: No :: Step 2
Step 4 ::: decision ::: Is the output type right? ::: Yes :: Step 5 :: No :: Step 2
Step 5 ::: terminal ::: Give the list of models. :::
"""
MANUAL_AS_BLOCKS = """\
step_1 = user_task("Find the input type.")
step_2 = user_task("Pick a model.")
step_3 = user_task("Do the types fit?")
if step_3 == "Yes":
  step_4 = user_task("Is the output type right?")
while (step_3 == "Yes" and step_4 == "No") or step_3 == "No":
  step_2 = user_task("Pick a model.")
  step_3 = user_task("Do the types fit?")
  if step_3 == "Yes":
    step_4 = user_task("Is the output type right?")
step_5 = user_task("Give the list of models.")"""


def test_two_back_edges_into_one_loop_become_one_while() -> None:
    flow = program_flow(parse_core(MANUAL))
    assert python_ir.write_ir(flow) == MANUAL_AS_BLOCKS
    assert next(iter(flow.body)).id == "Step 1"


def test_a_flow_becomes_a_program_that_reads_like_it() -> None:
    flow = python_ir.parse_ir(
        "issues = Jira_list()\nfor issue in issues:\n  if issue.open == True:\n    x = Box_File()"
    )
    expected = (
        "s1 ::: process ::: call issues = Jira_list() ::: next :: s2\n"
        "s2 ::: decision ::: for each issue in issues ::: item :: s3 :: done :: End\n"
        "s3 ::: decision ::: test issue.open == True ::: yes :: s5 :: no :: s2\n"
        "s5 ::: process ::: call x = Box_File() ::: next :: s2\n"
        "End ::: terminal ::: End of the flow. :::\n"
    )
    assert write_core(flow_program(flow)) == expected


@pytest.mark.parametrize(
    ("program", "blocks"),
    [
        (  # a loop whose first step decides
            "a ::: decision ::: More? ::: yes :: b :: no :: e\nb ::: process ::: Work. ::: next :: a\n"
            "e ::: terminal ::: End of the flow. :::",
            'a = user_task("More?")\nwhile a == "yes":\n  b = user_task("Work.")\n  a = user_task("More?")',
        ),
        (  # three ways that join again
            "a ::: decision ::: Which? ::: x :: b :: y :: c :: other :: e\nb ::: process ::: B ::: next :: e\n"
            "c ::: process ::: C ::: next :: e\ne ::: terminal ::: End of the flow. :::",
            'a = user_task("Which?")\nif a == "x":\n  b = user_task("B")\nelif a == "y":\n  c = user_task("C")',
        ),
        (  # two terminals
            "a ::: decision ::: Fine? ::: yes :: b :: no :: c\nb ::: terminal ::: Say yes. :::\n"
            "c ::: terminal ::: Say no. :::",
            'a = user_task("Fine?")\nif a == "yes":\n  b = user_task("Say yes.")\nelse:\n  c = user_task("Say no.")',
        ),
        (  # a way out in the middle of a loop
            "a ::: process ::: A ::: next :: b\nb ::: decision ::: Done? ::: yes :: e :: no :: c\n"
            "c ::: process ::: C ::: next :: a\ne ::: terminal ::: End of the flow. :::",
            'a = user_task("A")\nb = user_task("Done?")\nif b == "no":\n  c = user_task("C")\n'
            'while b == "no":\n  a = user_task("A")\n  b = user_task("Done?")\n  if b == "no":\n'
            '    c = user_task("C")',
        ),
    ],
)
def test_programs_as_blocks(program: str, blocks: str) -> None:
    flow = program_flow(parse_core(program))
    assert python_ir.write_ir(flow) == blocks
    assert program_flow(flow_program(flow)) == flow


@pytest.mark.parametrize(
    ("program", "line"),
    [
        (  # a loop that two steps lead out of, to two places
            "a ::: process ::: A ::: next :: b\nb ::: decision ::: B? ::: x :: e :: y :: c\n"
            "c ::: decision ::: C? ::: x :: f :: y :: a\ne ::: process ::: E ::: next :: f\nf ::: terminal ::: F :::",
            1,
        ),
        (  # a jump into a loop past its first step
            "a ::: decision ::: A? ::: x :: b :: y :: c\nb ::: process ::: B ::: next :: c\n"
            "c ::: decision ::: C? ::: x :: b :: y :: e\ne ::: terminal ::: E :::",
            None,
        ),
        ("a ::: process ::: call x = f( ::: next :: e\ne ::: terminal ::: E :::", 1),
        ("a ::: process ::: A ::: next :: b\nb ::: terminal ::: B :::\nc ::: terminal ::: C :::", 3),
    ],
)
def test_what_blocks_cannot_tell_is_refused_with_its_line(program: str, line: int | None) -> None:
    from opus_pipelines.workflow.blocks.formats.core_program import read_core

    with pytest.raises(FlowError) as error:
        program_flow(read_core(program)[0])
    assert line is None or error.value.line == line


def test_a_parallel_has_no_form_in_a_program() -> None:
    one = python_ir.parse_ir("a = f()").body
    with pytest.raises(FlowError):
        flow_program(Flow((Parallel((one, one)),)))


def test_a_program_with_many_shared_tails_is_refused_and_does_not_fill_the_memory() -> None:
    lines = [
        CoreStep(f"s{i}", "decision", "?", (("a", f"s{i + 1}"), ("b", f"s{i + 2}"), ("c", f"s{i + 3}")))
        for i in range(60)
    ]
    ends = [CoreStep(f"s{i}", "process", "w", (("next", f"s{i + 1}"),)) for i in range(60, 63)]
    program = CoreProgram((*lines, *ends, CoreStep("s63", "terminal", "")))
    assert findings(program) == []
    with pytest.raises(FlowError):
        program_flow(program)


def _has_parallel(flow: Flow) -> bool:
    found: list[Statement] = list(walk(flow.body))
    return any(isinstance(one, Parallel) for one in found)


@pytest.mark.long
@settings(max_examples=60, deadline=None)
@given(FLOWS.filter(lambda flow: not _has_parallel(flow)))
def test_a_flow_comes_back_from_its_program(flow: Flow) -> None:
    program = flow_program(flow)
    assert findings(program) == []
    assert parse_core(write_core(program)) == program
    assert program_flow(parse_core(write_core(program))) == flow
