"""Language models as generators: the in-context loop with a scripted model, and the LoRA policy with a tiny one."""

from dataclasses import dataclass, field
from pathlib import Path

import pytest

from opus_pipelines.core.errors import SettingsError
from opus_pipelines.core.settings_sections import CausalLm
from opus_pipelines.flows.programs.drafts import Item, program_of
from opus_pipelines.flows.programs.executors import ToolExecutor
from opus_pipelines.flows.programs.language_generator import LoraEdits, improve_in_context
from opus_pipelines.flows.programs.planning_set import MANUAL, bank, plan_score, split, tasks, toolbox
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


def test_a_lora_policy_without_a_model_is_refused() -> None:
    with pytest.raises(SettingsError):
        LoraEdits(bank(), 0, CausalLm())


@pytest.mark.model
def test_the_adapter_makes_an_edit_that_gained_likelier(tmp_path: Path) -> None:
    from tests.lwm.language_models.tiny_model import write_tiny_model

    settings = CausalLm(path=write_tiny_model(tmp_path), learning_rate=1e-2, max_prompt_tokens=128)
    policy = LoraEdits(bank(), 0, settings, candidates=3)
    for gain in (0.0, 0.1, 0.0):
        policy.propose(MANUAL)
        policy.learn(gain)
    assert len(policy.propose(MANUAL)) in (4, 5, 6)
    before = policy.chance()
    policy.learn(1.0)
    policy.learn(1.0)
    assert policy.chance() > before
