"""Language models as generators of programs: the in-context loop (AutoFlow 1.4).

The loop shows a model the grammar, the program at the beginning and every (program, reward) so far, and asks for a
better one. What it writes is run as it is: a text that is no valid program has the reward -2, and its errors go into
the history.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import accumulate

from opus_pipelines.core.settings import Settings
from opus_pipelines.flows.programs.rewards import INVALID, BudgetSpent, Harness
from opus_pipelines.flows.programs.search import Searched
from opus_pipelines.lake.layout import Lake
from opus_pipelines.lwm.language_models.text_answers import TEXT_MODELS, KeptText, Question, TextModel
from opus_pipelines.workflow.blocks.expressions import FlowError
from opus_pipelines.workflow.blocks.formats.core_program import CoreProgram, parse_core, write_core

MOST_SHOWN = 8_000  # characters of the history that is shown, the newest kept
_SYSTEM = (
    "You design workflow programs and revise them by how well they do. An executor follows a program step by step. "
    "Performance is a number; higher is better. A program has one step a line: name ::: process, decision or terminal "
    "::: instruction ::: branches. Branches are pairs 'key :: step name': one 'next' for a process, two or more for a "
    "decision, none for a terminal. Answer with a program only."
)


@dataclass
class ContextRun:
    """The best program of an in-context loop, and (reward, error) of every answer."""

    best: CoreProgram
    reward: float
    begin: float
    answers: list[tuple[float, str]] = field(default_factory=list)

    def searched(self) -> Searched:
        """Returns it as the record that searches of any kind share; the curve is over answers."""
        rewards = [self.begin, *(reward for reward, _ in self.answers)]
        curve = [(call, best) for call, best in enumerate(accumulate(rewards, max), start=1)]
        return Searched(self.best, self.begin, self.reward, self.valid_share, len(set(rewards)) > 1, curve)

    @property
    def valid_share(self) -> float:
        """The share of the answers that are valid programs."""
        return sum(reward != INVALID for reward, _ in self.answers) / max(1, len(self.answers))


def improve_in_context(
    model: TextModel, begin: CoreProgram, harness: Harness, epochs: int, seed: int = 0
) -> ContextRun:
    """Returns the best program after so many answers, or where the calls of the harness are used up.

    The seed stands in the question, so that the answers of another seed are asked for, and not those that were kept.
    """
    found = ContextRun(begin, first := harness.score(begin), first)
    history = f"{write_core(begin)}\nperformance {found.reward:.4f}\n"
    for epoch in range(epochs):
        user = f"{history[-MOST_SHOWN:]}\nGive a new workflow in the same form. Attempt {epoch + 1}, series {seed + 1}."
        text = model.ask(Question(_SYSTEM, user, temperature=1.0, max_tokens=1_024)).text
        try:
            program, error = parse_core(text), ""
            reward = harness.score(program)
        except FlowError as failed:
            reward, error = INVALID, str(failed)[:300]
        except BudgetSpent:
            break
        found.answers.append((reward, error))
        history += f"{text[:2_000]}\nperformance {reward:.4f} {error}\n"
        if reward > found.reward:
            found.best, found.reward = program, reward
    return found


Generator = Callable[[CoreProgram, Harness, int], Searched]


def model_generators(settings: Settings, lake: Lake, client: str = "") -> dict[str, Generator]:
    """Returns the generators that are language models, by name: the in-context loop of each model.

    A model is loaded when its generator is first used. Its answers are kept in the lake by content.
    """

    def in_context(name: str) -> Generator:
        def generator(begin: CoreProgram, harness: Harness, seed: int) -> Searched:
            model = KeptText(TEXT_MODELS[name](settings, lake), lake, client)
            return improve_in_context(model, begin, harness, (harness.most_calls or 1) - 1, seed).searched()

        return generator

    return {name: in_context(name) for name in TEXT_MODELS}
