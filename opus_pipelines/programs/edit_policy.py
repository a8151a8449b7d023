"""The stochastic policy over edits, trained by REINFORCE with a running baseline (Williams 1992; AutoFlow 1.5, 1.9).

An edit is drawn part by part: operator, phrase, model given the phrase, place. Each part is a softmax over logits, so
that the gradient of the log-probability is the one-hot vector less the probabilities:

    grad J = E[(R - b) grad log pi(edits)],  b the running mean of the rewards.

R is what an episode gains over the program before it, so that an edit without effect earns nothing. The logit of a
phrase or a model is a sum of features that all edits share: whether the program has it already, how often it was tried,
and how often its model gained. A logit for each pair was tried and was worse than an even draw, because it brings
again what the program has. The step is scaled by the running deviation of the gains: programs that differ in one step
differ by hundredths. A reward that is always the same has no deviation and changes nothing.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from opus_pipelines.programs.drafts import OPERATORS, PRIOR, Bank, Draft, Edit, applied

PLACES = 4  # quarters of a program
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


@dataclass(frozen=True)
class Choice:
    """The indices that an edit was drawn by, for its gradient."""

    operator: int
    phrase: int
    model: int
    place: int
    phrase_features: Logits
    model_features: Logits


@dataclass
class EditPolicy:
    """The logits of the parts of an edit; `learning_rate` of the gradient's steps."""

    bank: Bank
    learning_rate: float = 0.1
    moments: RunningMoments = field(default_factory=RunningMoments)

    def __post_init__(self) -> None:
        phrases, models = len(self.bank.phrases), len(self.bank.models)
        self.operators: Logits = np.log(np.array(PRIOR))
        self.places: Logits = np.zeros((max(self.bank.kinds) + 1, PLACES))
        self.of_phrases: Logits = np.zeros(2)  # weights of: the program has the phrase, how often it was tried
        self.of_models: Logits = np.zeros(3)  # of: the program has the model, tries of the pair, gains of the model
        self._tried = np.zeros((phrases, models))
        self._gained = np.zeros(models)

    def propose(self, draft: Draft, generator: np.random.Generator, most: int = 2) -> tuple[Draft, list[Choice]]:
        """Returns a draft that is 1 to `most` edits away, and the choices that led to it."""
        choices = []
        for _ in range(int(generator.integers(1, most + 1))):
            edit, choice = self._edit(draft, generator)
            draft = applied(draft, edit)
            choices.append(choice)
        return draft, choices

    def learn(self, choices: Sequence[Choice], gain: float) -> None:
        """Takes one step of the gradient for an episode with this gain, then moves the baseline."""
        advantage = self.moments.advantage(gain)
        self.moments.add(gain)
        for choice in choices:
            self._tried[choice.phrase, choice.model] += 1
            self._gained[choice.model] += gain > 0
        if advantage == 0.0:
            return
        step = self.learning_rate * advantage / len(choices)
        for choice in choices:
            _ascend(self.operators, self.operators, choice.operator, step)
            self.of_phrases += direction(choice.phrase_features @ self.of_phrases, choice.phrase, step) @ (
                choice.phrase_features
            )
            self.of_models += direction(choice.model_features @ self.of_models, choice.model, step) @ (
                choice.model_features
            )
            places = self.places[self.bank.kinds[choice.model]]
            _ascend(places, places, choice.place, step)

    def _edit(self, draft: Draft, generator: np.random.Generator) -> tuple[Edit, Choice]:
        operator = draw(self.operators, generator)
        has_phrase, has_model = {item.phrase for item in draft}, {item.model for item in draft}
        has = [float(phrase in has_phrase) for phrase in self.bank.phrases]
        of_phrases = np.column_stack([has, np.log1p(self._tried.sum(axis=1))])
        phrase = draw(of_phrases @ self.of_phrases, generator)
        known = [float(model in has_model) for model in self.bank.models]
        of_models = np.column_stack([known, np.log1p(self._tried[phrase]), np.log1p(self._gained)])
        model = draw(of_models @ self.of_models, generator)
        part = draw(self.places[self.bank.kinds[model]], generator)
        low, high = part * (len(draft) + 1) / PLACES, (part + 1) * (len(draft) + 1) / PLACES
        place = min(len(draft), int(generator.uniform(low, high)))
        edit = Edit(OPERATORS[operator], place, self.bank.phrases[phrase], self.bank.models[model])
        return edit, Choice(operator, phrase, model, part, of_phrases, of_models)


def draw(logits: Logits, generator: np.random.Generator) -> int:
    """Returns an index drawn by the softmax of the logits."""
    weights = np.exp(logits - logits.max())
    total = np.cumsum(weights)
    return int(np.searchsorted(total, generator.uniform(0.0, total[-1]), side="right").clip(0, len(logits) - 1))


def _ascend(weights: Logits, logits: Logits, chosen: int, step: float) -> None:
    """Moves weights that are logits themselves along the gradient of the log-probability of `chosen`."""
    weights += direction(logits, chosen, step)


def direction(logits: Logits, chosen: int, step: float) -> Logits:
    """Returns the gradient of the log-probability of `chosen` by the logits, times the step."""
    shares = np.exp(logits - logits.max())
    moved: Logits = -step * shares / shares.sum()
    moved[chosen] += step
    return moved
