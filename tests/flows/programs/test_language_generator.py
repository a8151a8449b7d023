"""A language model as generator: the in-context loop with a scripted model."""

from dataclasses import dataclass, field

import pytest

from opus_pipelines.flows.programs.drafts import Item, program_of
from opus_pipelines.flows.programs.executors import ToolExecutor
from opus_pipelines.flows.programs.language_generator import improve_in_context
from opus_pipelines.flows.programs.planning_set import MANUAL, plan_score, split, tasks, toolbox
from opus_pipelines.flows.programs.rewards import INVALID, Harness
from opus_pipelines.lwm.language_models.text_answers import Question, TextAnswer
from opus_pipelines.workflow.blocks.formats.core_program import write_core

SELECT = split(tasks())[0][:12]
BETTER = (Item("blurry", "image_deblurring"), *MANUAL)


@dataclass
class Writer:
    """A model that gives its answers in turn."""

    answers: list[str]
    name: str = "writer"
    version: str = "1"
    asked: list[Question] = field(default_factory=list)

    def ask(self, question: Question) -> TextAnswer:
        self.asked.append(question)
        return TextAnswer(self.answers.pop(0))


def harness(calls: int | None = None) -> Harness:
    return Harness(SELECT, plan_score, ToolExecutor(toolbox()), "test", calls)


def test_the_loop_keeps_the_best_answer_and_shows_errors_and_rewards() -> None:
    model = Writer(["no program", write_core(program_of(BETTER)), write_core(program_of(MANUAL[:1]))])
    found = improve_in_context(model, program_of(MANUAL), harness(), 3)
    assert (found.best, found.answers[0][0], found.valid_share) == (program_of(BETTER), INVALID, pytest.approx(2 / 3))
    assert "[empty]" in model.asked[1].user
    assert f"{found.reward:.4f}" in model.asked[2].user
    assert {question.temperature for question in model.asked} == {1.0}


def test_the_loop_ends_where_the_calls_are_used_up() -> None:
    model = Writer([write_core(program_of(BETTER)), write_core(program_of(MANUAL[:2]))])
    found = improve_in_context(model, program_of(MANUAL), harness(2), 2)
    assert len(found.answers) == 1
