"""The policy that proposes whole programs, trained by REINFORCE (Williams 1992; AutoFlow 1.5, 1.9)."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from opus_pipelines.flows.programs.drafts import ALWAYS, MOST_ITEMS, Bank, Draft, Item, typed
from opus_pipelines.flows.programs.executors import ToolExecutor
from opus_pipelines.flows.programs.rewards import Harness

Array = NDArray[np.float64]
NONE = 5.0  # the logit of no model at the beginning
BEGIN = 2.0  # by how much a choice of the first program is above it
RANGE = (5.7, 6.5)  # between the logits of a phrase, at the first call and at the last
RATE, ORDER_RATE = 0.7, 0.05
KEEP = 0.95  # of the baseline at each program
MOST_LIKELY = 25  # every so manieth program is the most likely one, which teaches nothing
BOUNDS = (8.0, 4.0, 6.0)  # of the order's scores of models, phrases and kinds


@dataclass(frozen=True)
class Drawn:
    """A program that was drawn: its phrases and models in order, and the order of the kinds."""

    phrases: NDArray[np.int64]
    models: NDArray[np.int64]
    kinds: NDArray[np.int64]


class TaskPolicy:
    """A policy over whole programs of a bank of phrases and models, which sees the tasks.

    A program decides for each phrase which model it uses, or none; models of one kind stand together, and those that
    change the type of what they take are alternatives of each other, because a plan changes a type once at a time. This
    is the grammar that programs are drawn from:

        pi(program) = prod over phrases softmax(logits of the phrase) x PL(order of kinds) x prod over kinds PL(order)

    PL is the model of Plackett and Luce (1975): its marginal on a part of the items has the same form. So a task earns
    reward by those choices alone whose phrases it mentions, and the gradient sums over the tasks (Williams 1992):

        grad J = sum over tasks t of (R_t - b_t) grad log pi(the choices whose phrases t mentions),  b_t a running mean.

    What a phrase is worth adds up over all tasks that mention it, also over those that were never solved together. A
    phrase's step is a mean over its tasks, so that rare phrases learn as fast as frequent ones. The logits keep within
    a range, so that no option is ever given up; the range grows, which lowers the entropy.

    `mentions`: (tasks, phrases), whether a task mentions a phrase. `rewards`: those of the first program, by task.
    """

    def __init__(self, bank: Bank, mentions: NDArray[np.bool_], begin: Draft, rewards: Sequence[float]) -> None:
        self._bank, self._mentions = bank, mentions
        self._kinds = np.array(bank.kinds)
        self._tasks = np.maximum(mentions.sum(0), 1)  # that mention each phrase
        phrases, models = len(bank.phrases), len(bank.models)
        self._none = models
        self.logits: Array = np.zeros((phrases, models + 1))
        self.logits[:, models] = NONE
        self._of_models, self._of_phrases = np.zeros(models), np.zeros(phrases)
        self._of_kinds: Array = np.zeros(int(self._kinds.max()) + 1)
        self._baseline = np.array(rewards, float)
        steps = [(bank.phrases.index(item.phrase), bank.models.index(item.model)) for item in begin if item.model]
        for place, (phrase, model) in enumerate(steps):
            self.logits[phrase, model] = NONE + BEGIN
            self._of_models[model] = (len(steps) / 2 - place) / 2

    def draw(self, generator: np.random.Generator, progress: float) -> tuple[Draft, Drawn]:
        """Returns a program. `progress`: the share of the calls that are used up."""
        shares = self._shares(progress)
        chosen = (shares.cumsum(1) < generator.random((len(shares), 1))).sum(1).clip(0, self._none)
        noise = [generator.gumbel(size=size) for size in (len(self._of_kinds), len(chosen))]
        return self._program(chosen, noise[0], noise[1])

    def most_likely(self) -> Draft:
        """Returns the program of the highest probability."""
        chosen = self.logits.argmax(1)
        return self._program(chosen, np.zeros(len(self._of_kinds)), np.zeros(len(chosen)))[0]

    def learn(self, drawn: Drawn, rewards: Sequence[float], progress: float) -> None:
        """Takes one step of the gradient for a program with these rewards of the tasks, then moves the baselines."""
        advantages = np.array(rewards, float) - self._baseline
        self._baseline += (1 - KEEP) * advantages
        shares, rows = self._shares(progress), np.arange(len(self.logits))
        chosen = np.full(len(rows), self._none)
        chosen[drawn.phrases] = drawn.models
        direction = -shares
        direction[rows, chosen] += 1
        self.logits += RATE * ((advantages @ self._mentions) / self._tasks)[:, None] * direction
        self._learn_order(drawn, advantages)

    def _shares(self, progress: float) -> Array:
        span = RANGE[0] + (RANGE[1] - RANGE[0]) * min(1.0, progress)
        most = self.logits.max(1, keepdims=True)
        np.maximum(self.logits, most - span, out=self.logits)
        shares: Array = np.exp(self.logits - most)
        return shares / shares.sum(1, keepdims=True)

    def _program(self, chosen: NDArray[np.int64], of_kinds: Array, of_phrases: Array) -> tuple[Draft, Drawn]:
        phrases = np.nonzero(chosen < self._none)[0][:MOST_ITEMS]
        models = chosen[phrases]
        kinds = self._of_kinds + of_kinds
        scores = self._of_models[models] + self._of_phrases[phrases] + of_phrases[phrases]
        order = np.lexsort((-scores, -kinds[self._kinds[models]]))
        phrases, models = phrases[order], models[order]
        drawn = Drawn(phrases, models, np.array(list(dict.fromkeys(self._kinds[models].tolist())), np.int64))
        items = tuple(Item(self._bank.phrases[p], self._bank.models[m]) for p, m in zip(phrases, models, strict=True))
        return typed(items, self._bank), drawn

    def _learn_order(self, drawn: Drawn, advantages: Array) -> None:
        phrases, models = drawn.phrases, drawn.models
        mentioned, kinds = self._mentions[:, phrases], self._kinds[models]
        of_models, of_phrases = np.zeros_like(self._of_models), np.zeros_like(self._of_phrases)
        for kind in drawn.kinds:
            own = np.nonzero(kinds == kind)[0]
            scores = self._of_models[models[own]] + self._of_phrases[phrases[own]]
            moved = advantages @ order_direction(scores, mentioned[:, own])
            np.add.at(of_models, models[own], moved)
            np.add.at(of_phrases, phrases[own], moved / 2)
        if len(drawn.kinds):
            any_of = np.stack([mentioned[:, kinds == kind].any(1) for kind in drawn.kinds], 1)
            moved = advantages @ order_direction(self._of_kinds[drawn.kinds], any_of)
            self._of_kinds[drawn.kinds] += ORDER_RATE * moved
        self._of_models += ORDER_RATE * of_models
        self._of_phrases += ORDER_RATE * of_phrases
        for scores, bound in zip((self._of_models, self._of_phrases, self._of_kinds), BOUNDS, strict=True):
            np.clip(scores, -bound, bound, out=scores)


def mentioned_phrases(harness: Harness, bank: Bank) -> NDArray[np.bool_]:
    """Returns whether each task mentions each phrase of the bank: (tasks, phrases).

    A program's own tool reads the tasks where tools carry programs out, else their letters are compared. It reads no
    reward and no reference.
    """
    tool = harness.executor.toolbox.tools.get("mentions") if isinstance(harness.executor, ToolExecutor) else None

    def is_in(phrase: str, text: str) -> bool:
        if phrase == ALWAYS:
            return True
        return phrase.lower() in text.lower() if tool is None else tool.run(task=text, phrase=phrase) == "Yes"

    return np.array([[is_in(phrase, task.text) for phrase in bank.phrases] for task in harness.tasks])


def order_direction(scores: Array, present: NDArray[np.bool_]) -> Array:
    """Returns the gradient of the log-probability of an order by the scores, for each task: (tasks, items).

    `scores`: those of the items in their order. `present`: which of them count for a task (Plackett and Luce).
    """
    weights = np.exp(scores - scores.max(initial=0.0))
    rest = np.cumsum((present * weights)[:, ::-1], 1)[:, ::-1]
    drawn_before = np.cumsum(np.where(present, 1 / np.maximum(rest, 1e-12), 0.0), 1)
    return np.where(present, 1 - weights * drawn_before, 0.0)
