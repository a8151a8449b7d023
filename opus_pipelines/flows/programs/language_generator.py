"""Generators that are language models: the in-context loop (AutoFlow 1.4), and a LoRA policy over edits (1.5).

The in-context loop shows a model the grammar, the program at the beginning and every (program, reward) so far, and asks
for a better one. What it writes is run as it is: a text that is no valid program has the reward -2, and its errors go
into the history. The LoRA policy lets a causal language model choose among edits by the likelihood of their words, so
that every choice is a valid program, and trains an adapter by REINFORCE with a running baseline.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import accumulate
from typing import Any, ClassVar

import numpy as np

from opus_pipelines.core.errors import OpusError, SettingsError
from opus_pipelines.core.settings import Settings
from opus_pipelines.core.settings_sections import CausalLm
from opus_pipelines.flows.programs import planning_set
from opus_pipelines.flows.programs.drafts import Bank, Draft, Edit, applied, draft_of, program_of, random_edit
from opus_pipelines.flows.programs.policies import RunningMoments
from opus_pipelines.flows.programs.rewards import INVALID, BudgetSpent, Harness
from opus_pipelines.flows.programs.search import Searched, improve_with
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


class LoraEdits:
    """A method of `search.improve_with`: a causal language model with a LoRA adapter chooses among random edits."""

    crosses: ClassVar[bool] = True

    def __init__(self, bank: Bank, seed: int, settings: CausalLm, candidates: int = 8) -> None:
        if settings.path is None:
            raise SettingsError("the LoRA policy needs [causal_lm] path, a folder with a model")
        import torch

        from opus_pipelines.lwm.language_models.causal_model import load, with_adapter

        torch.manual_seed(seed)
        self._base = load(settings.path, settings.max_prompt_tokens)
        self._model: Any = with_adapter(self._base.model, settings.lora_rank)
        weights = [weight for weight in self._model.parameters() if weight.requires_grad]
        self._optimizer = torch.optim.AdamW(weights, lr=settings.learning_rate)
        self._bank, self._generator = bank, np.random.default_rng(seed)
        self._candidates, self._moments = candidates, RunningMoments()
        self._last: tuple[list[list[int]], int, int] | None = None

    def propose(self, best: Draft) -> Draft:
        """Returns the draft after the edit that the model drew by the likelihood of its words."""
        import torch

        edits = [random_edit(best, self._bank, self._generator) for _ in range(self._candidates)]
        rows, prompt = self._rows(best, edits)
        with torch.no_grad():
            weights = torch.softmax(self._scores(rows, prompt), 0).double().numpy()
        chosen = int(self._generator.choice(len(edits), p=weights / weights.sum()))
        self._last = rows, prompt, chosen
        return applied(best, edits[chosen])

    def chance(self) -> float:
        """Returns the probability that the model gives now to the edit that it chose last; 0 before the first."""
        import torch

        if self._last is None:
            return 0.0
        rows, prompt, chosen = self._last
        with torch.no_grad():
            return float(torch.softmax(self._scores(rows, prompt), 0)[chosen])

    def learn(self, gain: float) -> None:
        """Takes one step of the gradient for the last choice. Raises OpusError where the loss is not finite."""
        import torch

        advantage = self._moments.advantage(gain)
        self._moments.add(gain)
        if self._last is None or advantage == 0.0:
            return
        rows, prompt, chosen = self._last
        loss = -advantage * torch.log_softmax(self._scores(rows, prompt), 0)[chosen]
        if not torch.isfinite(loss):
            raise OpusError("the loss of the LoRA policy is not finite; lower [causal_lm] learning_rate")
        self._optimizer.zero_grad()
        loss.backward()
        self._optimizer.step()

    def _rows(self, best: Draft, edits: Sequence[Edit]) -> tuple[list[list[int]], int]:
        """The tokens of the prompt with those of each edit, and the number of the prompt's tokens."""
        tokenizer = self._base.tokenizer
        text = f"Program:\n{write_core(program_of(best))[-2_000:]}Edit: "
        prompt = list(tokenizer(text, add_special_tokens=True)["input_ids"])[-self._base.max_prompt_tokens :]
        words = [f"{e.operator} {e.place} {e.phrase} {e.model}" for e in edits]
        return [[*prompt, *tokenizer(one, add_special_tokens=False)["input_ids"]] for one in words], len(prompt)

    def _scores(self, rows: list[list[int]], prompt: int) -> Any:
        """The mean log-probability of the tokens of each edit, (candidates,)."""
        import torch

        from opus_pipelines.lwm.language_models.causal_model import quiet

        longest = max(map(len, rows))
        ids = torch.tensor([row + [self._base.end] * (longest - len(row)) for row in rows], device=self._model.device)
        mask = torch.tensor([[1] * len(row) + [0] * (longest - len(row)) for row in rows], device=self._model.device)
        with quiet():
            logits = self._model(input_ids=ids, attention_mask=mask).logits
        shares = torch.log_softmax(logits[:, prompt - 1 : -1], -1)
        taken = shares.gather(2, ids[:, prompt:, None])[..., 0] * mask[:, prompt:]
        return (taken.sum(1) / mask[:, prompt:].sum(1)).cpu()


Generator = Callable[[CoreProgram, Harness, int], Searched]
LORA = "lora"


def model_generators(settings: Settings, lake: Lake, client: str = "") -> dict[str, Generator]:
    """Returns the generators that are language models, by name: the in-context loop of each model, and the LoRA policy.

    A model is loaded when its generator is first used. Its answers are kept in the lake by content.
    """

    def in_context(name: str) -> Generator:
        def generator(begin: CoreProgram, harness: Harness, seed: int) -> Searched:
            model = KeptText(TEXT_MODELS[name](settings, lake), lake, client)
            return improve_in_context(model, begin, harness, (harness.most_calls or 1) - 1, seed).searched()

        return generator

    def lora(begin: CoreProgram, harness: Harness, seed: int) -> Searched:
        policy = LoraEdits(planning_set.bank(), seed, settings.causal_lm)
        return improve_with(policy, LORA, draft_of(begin), harness, seed).searched()

    return {name: in_context(name) for name in TEXT_MODELS} | {LORA: lora}
