"""What proposes programs: a policy over edits, a policy over whole programs, and a generator that follows its history.

Both policies are trained by REINFORCE with a running baseline (Williams 1992; AutoFlow 1.5, 1.9); `EditPolicy` and
`TaskPolicy` give their gradients. `HistoryGenerator` needs no gradient and no language model.
"""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from opus_pipelines.flows.programs.drafts import (
    ALWAYS,
    EDIT_OPERATORS,
    MOST_ITEMS,
    PRIOR,
    Bank,
    Draft,
    Edit,
    Item,
    applied,
    random_edit,
    typed,
)
from opus_pipelines.flows.programs.executors import ToolExecutor
from opus_pipelines.flows.programs.rewards import Harness

EVEN = 0.2  # share of the fixed distribution in every draw
FALL = 0.0003  # share by which logits fall back at each step
SCALE = 4.0  # of the step, since the square roots of gains are about a tenth
TWO = 0.3  # probability that an episode has two edits
# What the weights of features begin at: of a pair of a phrase and a model: the draft has the pair, the model, the
# phrase (for an item that is added), the phrase (for one that is replaced), log(1 + times tried).
OF_PAIRS = (-3.0, -0.5, -0.5, 1.0, -0.5)
OF_ITEMS = (1.0, 0.0, 0.0)  # of the item that is replaced: it has the phrase, the model, a model of the same kind
Logits = NDArray[np.float64]


@dataclass
class RunningMoments:
    """The running mean and deviation of rewards, with a memory of about 1 / (1 - keep) rewards."""

    keep: float = 0.95
    mean: float = 0.0
    square: float = 0.0
    count: int = 0

    def add(self, reward: float) -> None:
        """Takes one reward into the moments."""
        self.count += 1
        keep = min(self.keep, 1 - 1 / self.count)
        self.mean = keep * self.mean + (1 - keep) * reward
        self.square = keep * self.square + (1 - keep) * reward * reward

    @property
    def deviation(self) -> float:
        """The running standard deviation."""
        return float(np.sqrt(max(0.0, self.square - self.mean * self.mean)))

    def advantage(self, reward: float) -> float:
        """Returns (reward - mean) / deviation, clipped to 3; 0 where rewards do not differ."""
        if self.count < 2 or self.deviation < 1e-9:
            return 0.0
        return float(np.clip((reward - self.mean) / self.deviation, -3.0, 3.0))


@dataclass
class RunningMean:
    """The running mean of rewards, with a memory of about 1 / (1 - keep) rewards: the baseline of REINFORCE."""

    keep: float = 0.98
    least: int = 20
    mean: float = 0.0
    count: int = 0

    def advantage(self, reward: float) -> float:
        """Returns the reward less the mean; 0 before there are enough rewards for a mean."""
        return reward - self.mean if self.count > self.least else 0.0

    def add(self, reward: float) -> None:
        """Takes one reward into the mean."""
        self.count += 1
        keep = min(self.keep, 1 - 1 / self.count)
        self.mean = keep * self.mean + (1 - keep) * reward


@dataclass(frozen=True)
class DrawnPart:
    """One draw of a part, for its gradient.

    `entries`: the entry of the part's table of each option. `features`: (options, weights). `share`: the part of the
    probability of the chosen option that is the softmax's; the rest comes from the fixed distribution.
    """

    part: str
    chosen: int
    logits: Logits
    entries: NDArray[np.int64]
    features: Logits
    share: float


@dataclass
class Part:
    """One part of an edit: a softmax over options whose logits are entries of a table plus weighted features."""

    name: str
    table: Logits
    weights: Logits
    rates: tuple[float, float]  # of the table and of the weights

    def __post_init__(self) -> None:
        self._begin = self.table.copy()

    def draw(
        self,
        generator: np.random.Generator,
        entries: NDArray[np.int64],
        features: Logits | None = None,
        fixed: Logits | None = None,
    ) -> DrawnPart:
        """Returns the option that is drawn. `fixed`: the fixed distribution, even where it is not given."""
        features = np.zeros((len(entries), 0)) if features is None else features
        logits = self.table[entries] + features @ self.weights[: features.shape[1]]
        shares = np.exp(logits - logits.max())
        shares /= shares.sum()
        mixed = (1 - EVEN) * shares + EVEN * (1 / len(shares) if fixed is None else fixed)
        total = np.cumsum(mixed)
        chosen = int(np.searchsorted(total, generator.uniform(0.0, total[-1]), side="right").clip(0, len(total) - 1))
        share = float((1 - EVEN) * shares[chosen] / mixed[chosen])
        return DrawnPart(self.name, chosen, logits, entries, features, share)

    def learn(self, choice: DrawnPart, advantage: float) -> None:
        """Takes one step of the gradient of the log-probability of a choice."""
        moved = direction(choice.logits, choice.chosen, advantage * choice.share)
        np.add.at(self.table, choice.entries, self.rates[0] * moved)
        self.weights[: choice.features.shape[1]] += self.rates[1] * (moved @ choice.features)

    def fall_back(self) -> None:
        """Moves the table towards where it began."""
        self.table += FALL * (self._begin - self.table)


@dataclass
class EditPolicy:
    """The stochastic policy over edits of a bank of phrases and models.

    An edit is drawn part by part: the operator, the phrase with its model, and the place. Each part is a softmax over
    logits, mixed with a fixed distribution so that nothing is ever given up, and the gradient of the log-probability is

        grad J = E[(R - b) grad log pi(edits)],  b the running mean of R.

    R is the square root of what an edit gains, 0 where it gains nothing: gains are rare and differ by two orders of
    magnitude. (R - b) is not clipped: clipping a rare large gain makes every edit look worse than the mean, so that the
    policy turns away from what helps. The logits fall back to where they began by a small share at each step, which
    keeps the entropy up. One policy serves all walks of a search, so that a later walk begins with what earlier ones
    learnt.
    """

    bank: Bank
    baseline: RunningMean = field(default_factory=RunningMean)

    def __post_init__(self) -> None:
        phrases, models, kinds = len(self.bank.phrases), len(self.bank.models), max(self.bank.kinds) + 1
        none = np.zeros(0)
        self._kinds = kinds
        self._tried = np.zeros((phrases, models))
        self._phrase = {name: i for i, name in enumerate(self.bank.phrases)}
        self._model = {name: i for i, name in enumerate(self.bank.models)}
        self._prior = np.array(PRIOR)
        # The place depends on the kinds of the new model, of the item before and of the item behind.
        self.parts = {
            "operator": Part("operator", np.log(self._prior), none, (0.1, 0.0)),
            "pair": Part("pair", np.zeros(phrases * models), np.array(OF_PAIRS), (0.3, 0.1)),
            "place": Part("place", np.zeros(kinds * (kinds + 2) ** 2), none.copy(), (1.0, 0.0)),
            "item": Part("item", np.zeros(1), np.array(OF_ITEMS), (0.0, 0.1)),
        }

    def propose(
        self, draft: Draft, generator: np.random.Generator, most: int = 2
    ) -> tuple[Draft, list[list[DrawnPart]]]:
        """Returns a draft that is 1 to `most` edits away, and for each edit the choices that led to it."""
        edits = []
        for _ in range(1 + int(most > 1 and generator.random() < TWO)):
            edit, choices = self._edit(draft, generator)
            draft = applied(draft, edit)
            edits.append(choices)
        return draft, edits

    def learn(self, edits: Sequence[Sequence[DrawnPart]], gain: float) -> None:
        """Takes one step of the gradient for an episode with this gain, then moves the baseline."""
        reward = float(np.sqrt(gain))
        advantage = SCALE * self.baseline.advantage(reward) / len(edits)
        self.baseline.add(reward)
        for choice in (one for edit in edits for one in edit):
            if advantage:
                self.parts[choice.part].learn(choice, advantage)
        for part in self.parts.values():
            part.fall_back()

    def _edit(self, draft: Draft, generator: np.random.Generator) -> tuple[Edit, list[DrawnPart]]:
        operator = self.parts["operator"].draw(generator, np.arange(len(EDIT_OPERATORS)), fixed=self._prior)
        name = EDIT_OPERATORS[operator.chosen]
        if name not in ("add", "alternative", "replace") or (name == "replace" and not draft):
            place = int(generator.integers(len(draft) + 1))
            return Edit(name, place, self.bank.phrases[int(generator.integers(len(self.bank.phrases)))]), [operator]
        pair = self._pair(draft, generator, is_replaced=name == "replace")
        phrase, model = divmod(pair.chosen, len(self.bank.models))
        self._tried[phrase, model] += 1
        at = self._item(draft, phrase, model, generator) if name == "replace" else self._place(draft, model, generator)
        return Edit(name, at.chosen, self.bank.phrases[phrase], self.bank.models[model]), [operator, pair, at]

    def _pair(self, draft: Draft, generator: np.random.Generator, *, is_replaced: bool) -> DrawnPart:
        shape = self._tried.shape
        has, has_model, has_phrase = np.zeros(shape), np.zeros(shape), np.zeros(shape)
        for item in draft:
            has_phrase[self._phrase[item.phrase]] = 1
            if item.model:
                has[self._phrase[item.phrase], self._model[item.model]] = 1
                has_model[:, self._model[item.model]] = 1
        added, replaced = has_phrase * (not is_replaced), has_phrase * is_replaced
        features = np.stack([one.ravel() for one in (has, has_model, added, replaced, np.log1p(self._tried))], 1)
        return self.parts["pair"].draw(generator, np.arange(has.size), features)

    def _item(self, draft: Draft, phrase: int, model: int, generator: np.random.Generator) -> DrawnPart:
        kind = self.bank.kinds[model]
        same = [
            (item.phrase == self.bank.phrases[phrase], item.model == self.bank.models[model], self._kind(item) == kind)
            for item in draft
        ]
        return self.parts["item"].draw(generator, np.zeros(len(draft), np.int64), np.array(same, float))

    def _place(self, draft: Draft, model: int, generator: np.random.Generator) -> DrawnPart:
        around = [self._kinds, *map(self._kind, draft), self._kinds + 1]
        size, kind = self._kinds + 2, self.bank.kinds[model]
        entries = [(kind * size + before) * size + behind for before, behind in pairwise(around)]
        return self.parts["place"].draw(generator, np.array(entries))

    def _kind(self, item: Item) -> int:
        """The kind of an item's model; that of the beginning for a repeat, which has none."""
        return self.bank.kinds[self._model[item.model]] if item.model else self._kinds


def direction(logits: Logits, chosen: int, step: float) -> Logits:
    """Returns the gradient of the log-probability of `chosen` by the logits, times the step."""
    shares = np.exp(logits - logits.max())
    moved: Logits = -step * shares / shares.sum()
    moved[chosen] += step
    return moved


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


HOPE = 0.02  # change of the reward that is expected of what was not tried
SHARP = 200.0  # how strongly the expected change decides
FEWEST = 12  # candidates that a proposal is chosen from


class HistoryGenerator:
    """Proposes one edit at a time by what the history of (program, reward) shows, without a language model.

    Like a model that reads its history, it tries what it has not tried yet, leaves what did not help, and comes back to
    what helped elsewhere. Of an edit it remembers the phrase with its model, and the mean change of the reward.
    """

    crosses: ClassVar[bool] = True

    def __init__(self, bank: Bank, seed: int) -> None:
        self._bank, self._generator = bank, np.random.default_rng(seed)
        self._sums: dict[tuple[str, str, str], float] = defaultdict(float)
        self._counts: dict[tuple[str, str, str], int] = defaultdict(int)
        self._last: tuple[str, str, str] | None = None

    def propose(self, best: Draft) -> Draft:
        """Returns the best draft after the edit drawn by expected change among some random candidates."""
        candidates = [random_edit(best, self._bank, self._generator) for _ in range(FEWEST)]
        keys = [_key(edit, best) for edit in candidates]
        expected = np.array([self._expected(key) for key in keys])
        weights = np.exp(SHARP * (expected - expected.max()))
        place = int(self._generator.choice(len(keys), p=weights / weights.sum()))
        self._last = keys[place]
        return applied(best, candidates[place])

    def learn(self, gain: float) -> None:
        """Adds a gain to the history of the last edit."""
        if self._last is not None:
            self._counts[self._last] += 1
            self._sums[self._last] += gain

    def _expected(self, key: tuple[str, str, str]) -> float:
        count = self._counts.get(key, 0)
        return (HOPE + self._sums.get(key, 0.0)) / (1 + count)


def _key(edit: Edit, best: Draft) -> tuple[str, str, str]:
    if edit.operator in ("add", "alternative", "replace"):
        return edit.operator, edit.phrase, edit.model
    at = best[edit.place] if edit.place < len(best) else None
    return edit.operator, at.phrase if at else "", at.model if at else ""
