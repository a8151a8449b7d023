"""Runs of programs: the trace, notes, branches, the limit of rounds, tools that fail, and runs as rows and history."""

import time
from pathlib import Path
from typing import Any

import pytest

from opus_pipelines.core.errors import InputError
from opus_pipelines.flows.programs.drafts import program_of
from opus_pipelines.flows.programs.executors import FastRuns, ToolExecutor
from opus_pipelines.flows.programs.interpreter import Choice, ProgramRun, choose, letter_cosine, run
from opus_pipelines.flows.programs.planning_set import MANUAL, tasks, toolbox
from opus_pipelines.flows.programs.records import (
    publish_runs,
    read_program,
    read_tasks,
    run_row,
    step_rows,
    task_of,
    write_history,
)
from opus_pipelines.flows.programs.tools import Tool, Toolbox, ToolError, TypedValue
from opus_pipelines.lake.layout import Lake
from opus_pipelines.reporting.views import connect
from opus_pipelines.workflow.blocks.formats.core_program import CoreProgram, CoreStep, parse_core

PLAN = """\
Step 1 ::: decision ::: call found = mentions(task=task, phrase="noisy") ::: Yes :: Use :: No :: Step 2
Use ::: process ::: call plan = add_model(plan=plan, model="image_denoising") ::: next :: Step 2
Step 2 ::: process ::: Use the tool count on the text. ::: next :: Step 3
Step 3 ::: decision ::: test step_2 > 3 ::: yes :: End :: no :: Step 2
End ::: terminal ::: Give the plan. :::
"""
NOISY = "Given a noisy image, what is to be done?"


def tools(*more: Tool) -> ToolExecutor:
    count = Tool("count", "letters of the text", lambda task: len(task), {"task": "text"}, "number", cost_usd=0.5)
    return ToolExecutor(Toolbox((*toolbox().tools.values(), count, *more)), letter_cosine)


def test_a_run_has_every_round_with_its_tool_and_its_branch() -> None:
    done = run(parse_core(PLAN), task_of(NOISY, "t1"), tools())
    assert [(v.step.name, v.outcome.tool, v.outcome.answer, v.next_step) for v in done.visits] == [
        ("Step 1", "mentions", "Yes", "Use"),
        ("Use", "add_model", "image_denoising", "Step 2"),
        ("Step 2", "count", "40", "Step 3"),
        ("Step 3", None, "yes", "End"),
        ("End", None, "yes", None),
    ]
    assert done.status == "ended"
    assert done.variables["plan"].content == ("image_denoising",)
    assert [v.choice.by if v.choice else None for v in done.visits] == ["key", "only", "only", "key", None]
    assert run(parse_core(PLAN), task_of(NOISY, "t1"), tools()) == done


def test_a_program_that_never_ends_is_stopped_and_has_a_record() -> None:
    endless = parse_core(PLAN.replace("step_2 > 3", "step_2 == 7"))
    done = run(endless, task_of(NOISY), tools(), max_rounds=20)
    assert (done.status, len(done.visits), done.is_ended) == ("max_rounds", 20, False)
    assert done.variables["plan"].content == ("image_denoising",)


def test_a_program_with_findings_is_not_run() -> None:
    with pytest.raises(InputError, match="dead_end"):
        run(CoreProgram((CoreStep("a", "process", "x"),)), task_of("t"), tools())


def test_a_run_of_many_steps_ends() -> None:
    steps = [CoreStep(f"s{i}", "process", "wait", (("next", f"s{i + 1}"),)) for i in range(2_000)]
    done = run(CoreProgram((*steps, CoreStep("s2000", "terminal", ""))), task_of("t"), tools(), max_rounds=10_000)
    assert (done.status, len(done.visits)) == ("ended", 2_001)


def _raise() -> str:
    raise ValueError("no")


@pytest.mark.parametrize(
    ("tool", "status"),
    [
        (Tool("bad", "hangs", lambda: time.sleep(2), seconds=0.05), "hanging"),
        (Tool("bad", "lies", lambda: 7, gives="text"), "wrong_type"),
        (Tool("bad", "lies", lambda: TypedValue("image", "x"), gives="text"), "wrong_type"),
        (Tool("bad", "lies", lambda: True, gives="number"), "wrong_type"),
        (Tool("bad", "fails", _raise), "failed"),
        (Tool("bad", "needs more", lambda: "", {"text": "text"}), "bad_arguments"),
    ],
)
def test_a_tool_that_fails_is_recorded_and_the_run_goes_on(tool: Tool, status: str) -> None:
    text = "a ::: process ::: call x = bad() ::: next :: e\ne ::: terminal ::: done :::"
    done = run(parse_core(text), task_of("t"), tools(tool))
    assert [(v.outcome.status, v.outcome.value) for v in done.visits[:1]] == [(status, None)]
    assert (done.status, run_row(done, "x")["failures"], "x" in done.variables) == ("ended", 1, False)


def test_a_tool_is_called_once_for_the_same_content() -> None:
    calls: list[str] = []

    def note(text: str) -> str:
        calls.append(text)
        return text

    executor = tools(Tool("note", "keeps", note, {"text": "text"}))
    text = 'a ::: process ::: call x = note(text="one") ::: next :: e\ne ::: terminal ::: done :::'
    for _ in range(3):
        run(parse_core(text), task_of("t"), executor)
    assert calls == ["one"]


def test_what_a_toolbox_refuses() -> None:
    with pytest.raises(InputError):
        Toolbox((Tool("a", "", str), Tool("a", "", str)))
    with pytest.raises(ToolError) as error:
        Toolbox().call("x", {})
    assert error.value.status == "bad_arguments"
    with pytest.raises(InputError):
        TypedValue("text", 7)


@pytest.mark.parametrize(
    ("answer", "keys", "place", "by"),
    [
        ("Yes", ("No", "Yes"), 1, "key"),
        ("yes, it does", ("No", "Yes"), 1, "key"),
        ("I think it is an image", ("text", "image"), 1, "key"),
        ("images", ("text", "image"), 1, "similar"),
        ("quite so", ("text", "other"), 1, "other"),
        ("", ("a", "b"), None, ""),
        ("neither no nor yes", ("No", "Yes"), None, ""),
    ],
)
def test_which_branch_an_answer_means(answer: str, keys: tuple[str, ...], place: int | None, by: str) -> None:
    similarity = letter_cosine if by == "similar" else None
    found = choose(answer, keys, similarity)
    assert found == (None if place is None else Choice(place, by))


def test_decisions_in_words_are_refused_before_a_run_without_a_model() -> None:
    text = (
        "Check ::: decision ::: Is the request complete? ::: Approve :: Pay :: Reject :: End\n"
        'Pay ::: process ::: call x = note(text="paid") ::: next :: End\nEnd ::: terminal ::: Say it. :::'
    )
    with pytest.raises(InputError, match="Check"):
        tools().check(parse_core(text))
    done = run(parse_core(text), task_of("t"), tools())
    assert (done.status, done.undecided, len(done.visits)) == ("undecided", "Check", 1)


def test_fast_runs_end_like_runs_with_a_trace() -> None:
    executor = ToolExecutor(toolbox())
    fast, program = FastRuns(executor), program_of(MANUAL)
    for task in tasks()[::7]:
        done = run(program, task.program_task, executor)
        final = fast.final(fast.compiled(program), task.program_task.variables, 100)
        assert (final.variables, final.is_ended, final.failures) == (done.variables, done.is_ended, 0)


@pytest.fixture
def done() -> ProgramRun:
    return run(parse_core(PLAN), task_of(NOISY, "t1"), tools())


@pytest.mark.long
def test_the_trace_is_in_the_lake_once(done: ProgramRun, tmp_path: Path) -> None:
    lake = Lake(tmp_path / "lake")
    with lake.lock():
        assert publish_runs(lake, [done], "plan") == 1
        assert publish_runs(lake, [done], "plan") == 0
    steps = connect(lake).execute("SELECT step, branch, cost_usd FROM programs_steps ORDER BY round").fetchall()
    assert steps == [
        ("Step 1", "Yes", None),
        ("Use", "next", None),
        ("Step 2", "next", 0.5),
        ("Step 3", "yes", None),
        ("End", None, None),
    ]
    assert connect(lake).execute("SELECT status, rounds, task FROM programs_runs").fetchall() == [("ended", 5, "t1")]
    assert len(step_rows(done)) == 5


def test_a_run_is_history_that_the_existing_reader_reads(done: ProgramRun, tmp_path: Path, bench: Any) -> None:
    folder = write_history(tmp_path / "programs", [done], {"industry": "workflow programs", "client": "Acme"})
    cases, _, _ = bench.one(
        "runs.jsonl", (folder / "runs.jsonl").read_text("utf-8"), (folder / "source.toml").read_text("utf-8")
    )
    case = cases[done.id]
    assert [task["task_key"] for task in case["tasks"]] == [
        "add_model image_denoising",
        "Use the tool count on the text.",
    ]
    assert (case["success"], case["client"], case["tasks"][1]["cost_usd"]) == (True, "Acme", 0.5)


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("{", "line 1"),
        ('{"id": 1}', "line 1"),
        ('{"text": "a", "variables": []}', "line 1"),
        ('{"id": 1, "text": "a"}\n{"id": 1, "text": "b"}', "id '1'"),
        ("", "no task"),
    ],
)
def test_a_file_of_tasks_that_cannot_be_read_is_named(text: str, what: str, tmp_path: Path) -> None:
    file = tmp_path / "tasks.jsonl"
    file.write_text(text)
    with pytest.raises(InputError, match=what):
        read_tasks(file)


def test_a_program_of_another_format_is_read_as_a_program(tmp_path: Path) -> None:
    file = tmp_path / "plan.py"
    file.write_text('a = user_task("Look.")\nwhile a == "again":\n  a = user_task("Look.")\n')
    assert [(s.name, s.kind) for s in read_program(file).steps] == [("s1", "decision"), ("End", "terminal")]
