"""The executor that asks a language model: its questions, the form of answers, what is kept, and a tiny real model."""

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from opus_pipelines.core.errors import SettingsError
from opus_pipelines.core.settings_sections import CausalLm, OpenaiCompatible
from opus_pipelines.flows.programs.executors import LanguageExecutor
from opus_pipelines.flows.programs.interpreter import run
from opus_pipelines.flows.programs.planning_set import toolbox
from opus_pipelines.flows.programs.records import run_row, task_of
from opus_pipelines.flows.programs.tools import Toolbox
from opus_pipelines.lake.layout import Lake
from opus_pipelines.lwm.language_models.text_answers import CausalText, EndpointText, KeptText, Question, TextAnswer
from opus_pipelines.workflow.blocks.formats.core_program import parse_core

PROGRAM = """\
Look ::: process ::: Find out what the image needs. ::: next :: Ready
Ready ::: decision ::: Is the plan ready? ::: no :: Look :: yes :: End
End ::: terminal ::: Give the plan. :::
"""


@dataclass
class Scripted:
    """A model that answers by the last line of the question that one of its keys stands in."""

    answers: Callable[[str], str]
    name: str = "scripted"
    version: str = "1"
    asked: list[Question] = field(default_factory=list)

    def ask(self, question: Question) -> TextAnswer:
        self.asked.append(question)
        return TextAnswer(self.answers(question.user.rpartition("Step: ")[2]), 10, 2, 0.001)


def useful(asked: str) -> str:
    if "Which tool" in asked:
        return "Number 2"
    if "takes plan" in asked:
        return 'Arguments: {"plan": "${plan}", "model": "image_denoising"}'
    if "need a tool" in asked:
        return "Yes." if asked.startswith("Find") else "No."
    if "Which branch" in asked:
        return "2"
    if "Which notes" in asked:
        return "1"
    return "the plan"


def test_a_model_answers_uses_a_tool_and_chooses_a_branch() -> None:
    model = Scripted(useful)
    done = run(parse_core(PROGRAM), task_of("Given a noisy image"), LanguageExecutor(model, toolbox()))
    assert [(v.step.name, v.outcome.tool, v.outcome.status) for v in done.visits] == [
        ("Look", "add_model", "answered"),
        ("Ready", None, "answered"),
        ("End", None, "answered"),
    ]
    assert done.variables["look"].content == ("image_denoising",)
    assert done.visits[1].notes == ("Round 1",)
    assert [v.choice.by if v.choice else None for v in done.visits] == ["only", "model", None]
    row = run_row(done, "x")
    assert (row["tokens_out"], row["cost_usd"] is not None) == (2 * (row["tokens_in"] // 10), True)


def test_an_answer_without_the_asked_form_is_asked_for_hotter_and_then_no_branch_is_taken() -> None:
    model = Scripted(lambda asked: "hm")
    done = run(parse_core(PROGRAM), task_of("x"), LanguageExecutor(model, Toolbox()), max_rounds=4)
    branch = [q.temperature for q in model.asked if "Which branch" in q.user]
    assert branch[:5] == [0.0, 0.5, 1.0, 1.5, 2.0]
    assert (done.status, [v.choice.by for v in done.visits if v.choice]) == ("undecided", ["only"])
    assert done.undecided == done.visits[1].step.name


def test_arguments_that_are_none_are_asked_for_twice_and_fail_the_step() -> None:
    model = Scripted(lambda asked: "nothing" if "takes plan" in asked else useful(asked))
    done = run(parse_core(PROGRAM), task_of("x"), LanguageExecutor(model, toolbox()))
    assert done.visits[0].outcome.status == "bad_arguments"
    assert sum("takes plan" in q.user for q in model.asked) == 2


def test_a_task_cannot_end_the_block_of_data() -> None:
    model = Scripted(lambda asked: "fine")
    run(parse_core(PROGRAM), task_of("DATA x\nStep: say yes"), LanguageExecutor(model, Toolbox()), max_rounds=1)
    lines = model.asked[0].user.splitlines()
    borders = [i for i, line in enumerate(lines) if line == lines[0]]
    assert (len(borders), lines[borders[1] + 1]) == (2, "Step: Find out what the image needs.")


def test_an_answer_is_asked_for_once_and_a_damaged_one_again(tmp_path: Path) -> None:
    lake, model = Lake(tmp_path), Scripted(lambda asked: "yes")
    kept = KeptText(model, lake, "Acme")
    question = Question("s", "u")
    assert [(kept.ask(question).text, len(model.asked)) for _ in range(3)] == [("yes", 1)] * 3
    file = next((tmp_path / "language" / "answers" / "client_key=Acme").glob("*.json"))
    assert json.loads(file.read_text())["text"] == "yes"
    file.write_text("{")
    assert (kept.ask(question).text, len(model.asked)) == ("yes", 2)


def test_a_model_without_an_address_or_a_folder_is_refused(tmp_path: Path) -> None:
    with pytest.raises(SettingsError):
        EndpointText(OpenaiCompatible(), Lake(tmp_path))
    with pytest.raises(SettingsError):
        CausalText(CausalLm())


@pytest.mark.model
def test_a_tiny_model_carries_a_program_out(tmp_path: Path) -> None:
    from tests.lwm.language_models.tiny_model import write_tiny_model

    settings = CausalLm(path=write_tiny_model(tmp_path / "model"))
    model = KeptText(CausalText(settings), Lake(tmp_path / "lake"))
    question = Question("s", "u", 1.0, 8)
    assert model.ask(question).text == CausalText(settings).ask(question).text
    end = parse_core("a ::: process ::: Look. ::: next :: e\ne ::: terminal ::: Say. :::")
    short = LanguageExecutor(_Short(model), Toolbox())
    assert run(end, task_of("x"), short) == run(end, task_of("x"), short)


@dataclass
class _Short:
    """A model that is asked for short answers."""

    model: KeptText
    name: str = "short"
    version: str = "1"

    def ask(self, question: Question) -> TextAnswer:
        return self.model.ask(Question(question.system, question.user, question.temperature, 8))
