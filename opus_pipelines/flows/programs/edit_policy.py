"""The stochastic policy over edits, trained by REINFORCE with a running baseline (Williams 1992; AutoFlow 1.5, 1.9).

An edit is drawn part by part: the operator, the phrase with its model, and the place. Each part is a softmax over
logits, mixed with a fixed distribution so that nothing is ever given up, and the gradient of the log-probability is

    grad J = E[(R - b) grad log pi(edits)],  b the running mean of R.

R is the square root of what an edit gains, 0 where it gains nothing: gains are rare and differ by two orders of
magnitude. (R - b) is not clipped: clipping a rare large gain makes every edit look worse than the mean, so that the
policy turns away from what helps. The logits fall back to where they began by a small share at each step, which keeps
the entropy up. One policy serves all walks of a search, so that a later walk begins with what earlier ones learnt.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from opus_pipelines.flows.programs.drafts import OPERATORS, PRIOR, Bank, Draft, Edit, Item, applied

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
class Choice:
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
    ) -> Choice:
        """Returns the option that is drawn. `fixed`: the fixed distribution, even where it is not given."""
        features = np.zeros((len(entries), 0)) if features is None else features
        logits = self.table[entries] + features @ self.weights[: features.shape[1]]
        shares = np.exp(logits - logits.max())
        shares /= shares.sum()
        mixed = (1 - EVEN) * shares + EVEN * (1 / len(shares) if fixed is None else fixed)
        total = np.cumsum(mixed)
        chosen = int(np.searchsorted(total, generator.uniform(0.0, total[-1]), side="right").clip(0, len(total) - 1))
        share = float((1 - EVEN) * shares[chosen] / mixed[chosen])
        return Choice(self.name, chosen, logits, entries, features, share)

    def learn(self, choice: Choice, advantage: float) -> None:
        """Takes one step of the gradient of the log-probability of a choice."""
        moved = direction(choice.logits, choice.chosen, advantage * choice.share)
        np.add.at(self.table, choice.entries, self.rates[0] * moved)
        self.weights[: choice.features.shape[1]] += self.rates[1] * (moved @ choice.features)

    def fall_back(self) -> None:
        """Moves the table towards where it began."""
        self.table += FALL * (self._begin - self.table)


@dataclass
class EditPolicy:
    """The parts of an edit over a bank of phrases and models."""

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

    def propose(self, draft: Draft, generator: np.random.Generator, most: int = 2) -> tuple[Draft, list[list[Choice]]]:
        """Returns a draft that is 1 to `most` edits away, and for each edit the choices that led to it."""
        edits = []
        for _ in range(1 + int(most > 1 and generator.random() < TWO)):
            edit, choices = self._edit(draft, generator)
            draft = applied(draft, edit)
            edits.append(choices)
        return draft, edits

    def learn(self, edits: Sequence[Sequence[Choice]], gain: float) -> None:
        """Takes one step of the gradient for an episode with this gain, then moves the baseline."""
        reward = float(np.sqrt(gain))
        advantage = SCALE * self.baseline.advantage(reward) / len(edits)
        self.baseline.add(reward)
        for choice in (one for edit in edits for one in edit):
            if advantage:
                self.parts[choice.part].learn(choice, advantage)
        for part in self.parts.values():
            part.fall_back()

    def _edit(self, draft: Draft, generator: np.random.Generator) -> tuple[Edit, list[Choice]]:
        operator = self.parts["operator"].draw(generator, np.arange(len(OPERATORS)), fixed=self._prior)
        name = OPERATORS[operator.chosen]
        if name not in ("add", "alternative", "replace") or (name == "replace" and not draft):
            place = int(generator.integers(len(draft) + 1))
            return Edit(name, place, self.bank.phrases[int(generator.integers(len(self.bank.phrases)))]), [operator]
        pair = self._pair(draft, generator, is_replaced=name == "replace")
        phrase, model = divmod(pair.chosen, len(self.bank.models))
        self._tried[phrase, model] += 1
        at = self._item(draft, phrase, model, generator) if name == "replace" else self._place(draft, model, generator)
        return Edit(name, at.chosen, self.bank.phrases[phrase], self.bank.models[model]), [operator, pair, at]

    def _pair(self, draft: Draft, generator: np.random.Generator, *, is_replaced: bool) -> Choice:
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

    def _item(self, draft: Draft, phrase: int, model: int, generator: np.random.Generator) -> Choice:
        kind = self.bank.kinds[model]
        same = [
            (item.phrase == self.bank.phrases[phrase], item.model == self.bank.models[model], self._kind(item) == kind)
            for item in draft
        ]
        return self.parts["item"].draw(generator, np.zeros(len(draft), np.int64), np.array(same, float))

    def _place(self, draft: Draft, model: int, generator: np.random.Generator) -> Choice:
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
