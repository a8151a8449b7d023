"""CoRE programs as text: what is read, what is refused with its place, and what the published parser does not see."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from opus_pipelines.workflow.blocks.expressions import FlowError
from opus_pipelines.workflow.blocks.formats.core_program import (
    CoreProgram,
    CoreStep,
    findings,
    is_valid,
    parse_core,
    read_core,
    write_core,
)

PLAN = """\
A comment without the separator is not read.
Step 1 ::: process ::: Find the input type. ::: next :: Step 2
Step 2 ::: Decision ::: Is it an image: yes or no? ::: Yes :: step 3 :: No :: Step 1
Step 3 ::: TERMINAL ::: Give the list. :::
"""


def test_a_program_is_read_with_places_and_written_again() -> None:
    program = parse_core(PLAN)
    assert [(step.name, step.kind, step.line) for step in program.steps] == [
        ("Step 1", "process", 2),
        ("Step 2", "decision", 3),
        ("Step 3", "terminal", 4),
    ]
    assert program.steps[1].branches == (("Yes", "step 3"), ("No", "Step 1"))
    assert program.steps[1].targets == ["step 3", "step 1"]
    assert write_core(program).splitlines()[1] == PLAN.splitlines()[2].replace("Decision", "decision")
    assert parse_core(write_core(program)) == program


@pytest.mark.parametrize(
    ("line", "code", "column"),
    [
        ("a ::: process ::: do it", "fields", 19),
        ("a ::: process ::: do ::: it ::: next :: b", "separator", 33),
        ("a ::: decision ::: ready? ::: Yes :: b ::: No :: c", "separator", 44),
        ("a ::: work ::: do it ::: next :: b", "type", 7),
        ("::: process ::: do it ::: next :: b", "name", 5),
        ("a ::: process ::: do it ::: next", "branch", 29),
        ("a ::: process ::: do it ::: next :: b :: more", "branch", 29),
        ("a ::: process ::: do it ::: next ::", "branch", 29),
    ],
)
def test_a_line_that_is_no_step_is_named_with_its_place(line: str, code: str, column: int) -> None:
    _, found = read_core("note\n" + line)
    assert [(one.code, one.line) for one in found] == [(code, 2)]
    assert found[0].column == column or code == "name"
    with pytest.raises(FlowError) as error:
        parse_core("note\n" + line)
    assert error.value.line == 2


END = "e ::: terminal ::: done :::"


@pytest.mark.parametrize(
    ("lines", "codes"),
    [
        ([], ["empty"]),
        (["a ::: process ::: x ::: next :: a"], ["no_end", "no_terminal"]),
        (["a ::: process ::: x ::: next :: b", END], ["target", "no_end", "unreachable"]),
        (["a ::: process ::: x :::", END], ["dead_end", "unreachable"]),
        (["a ::: process ::: x ::: then :: e", END], ["process_branch"]),
        (["a ::: process ::: x ::: next :: e :: also :: e", END], ["process_branch"]),
        (["a ::: decision ::: x ::: yes :: e", END], ["decision_branch"]),
        (["a ::: decision ::: x ::: yes :: e :: Yes :: a", END], ["duplicate_key"]),
        (["a ::: process ::: x ::: next :: e", "e ::: terminal ::: y ::: next :: a"], ["terminal_branch"]),
        (["a ::: process ::: x ::: next :: e", END, "A ::: process ::: y ::: next :: e"], ["duplicate"]),
        (["a ::: process ::: x ::: next :: e", "b ::: process ::: x ::: next :: e", END], ["unreachable"]),
        (
            ["a ::: decision ::: x ::: yes :: e :: no :: b", "b ::: process ::: x ::: next :: b", END],
            ["no_end"],
        ),
    ],
)
def test_the_checks_of_a_whole_program(lines: list[str], codes: list[str]) -> None:
    program, errors = read_core("\n".join(lines))
    assert errors == []
    assert sorted(one.code for one in findings(program)) == sorted(codes)
    assert is_valid(program) is False


def test_every_error_of_a_program_is_told_at_once() -> None:
    with pytest.raises(FlowError) as error:
        parse_core(f"a ::: process ::: x :::\nb ::: process ::: y ::: next :: c\n{END}")
    assert [code for code in ("dead_end", "target", "unreachable") if f"[{code}]" in str(error.value)] == [
        "dead_end",
        "target",
        "unreachable",
    ]


@pytest.mark.long
def test_a_program_of_10_000_steps_is_checked_and_written() -> None:
    last = 9_999
    steps = [CoreStep(f"s{i}", "process", "do", (("next", f"s{i + 1}"),)) for i in range(last)]
    program = CoreProgram((*steps, CoreStep(f"s{last}", "terminal", "")))
    assert findings(program) == []
    assert parse_core(write_core(program)) == program


def test_a_text_of_too_many_steps_is_refused_with_its_line() -> None:
    with pytest.raises(FlowError) as error:
        read_core("a ::: process ::: x ::: next :: a\n" * 20_001)
    assert error.value.line == 20_001


@pytest.mark.parametrize(
    "make",
    [
        lambda: CoreStep("a", "process", "one ::: two"),
        lambda: CoreStep("a", "process", "one\ntwo"),
        lambda: CoreStep("a :: b", "process", "one"),
        lambda: CoreStep("", "process", "one"),
        lambda: CoreStep("a", "process", "one", (("next", " b"),)),
    ],
)
def test_a_step_that_no_line_can_hold_is_refused(make: object) -> None:
    assert callable(make)
    with pytest.raises(FlowError):
        make()


WORDS = st.text(st.characters(codec="utf-8", exclude_characters="\r\n"), min_size=1, max_size=8).filter(
    lambda text: text == text.strip() and bool(text) and "::" not in text
)
LINES = st.text(st.characters(codec="utf-8", exclude_characters="\r\n"), max_size=20).filter(
    lambda text: text == text.strip() and ":::" not in text
)
STEPS = st.builds(
    CoreStep,
    WORDS,
    st.sampled_from(["process", "decision", "terminal"]),
    LINES,
    st.lists(st.tuples(WORDS, WORDS), max_size=3).map(tuple),
)


@given(st.lists(STEPS, max_size=4))
def test_what_is_written_is_read_again(steps: list[CoreStep]) -> None:
    program = CoreProgram(tuple(steps))
    assert read_core(write_core(program)) == (program, [])


@given(st.text(max_size=200))
def test_no_text_breaks_the_reader(text: str) -> None:
    program, found = read_core(text)
    assert len(program.steps) + len(found) == sum(":::" in line for line in text.removeprefix("\ufeff").split("\n"))
