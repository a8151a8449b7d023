"""A model of which listed steps a sentence asks for, which holds for industries that history does not know.

P(step done | part) = 1 - (1 - chance) * prod over the part's sentences of (1 - sigmoid(x · θ)): a noisy-or (Pearl 1988)
whose causes are logistic regressions on `listed_steps.FEATURES`. θ is fitted by maximum likelihood with an L2 penalty
to the parts that cases of history followed, of all industries together. History seldom has more than a few industries,
so one fit varies; the mean of two fits is used, of which the second has a stronger penalty and no figure of verbs.
Where no case of history followed a list of steps, names alone decide.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from scipy.special import expit, log_expit

from opus_pipelines.intakes.procedures.listed_steps import FEATURES, ListedSteps
from opus_pipelines.intakes.procedures.name_coverage import WORDS_WEIGHT, fit_probability

CHANCE = 0.01  # probability that a step is done although no sentence asks for it
ROUNDS = 300
MOST_PARTS = 2_000  # parts to which θ is fitted; of more, these are taken evenly
_FITS = ((1.0, ()), (5.0, ("verb",)))  # L2 penalty, and the figures that are left out


@dataclass(frozen=True)
class FollowedPart:
    """A part of a procedure, and what the cases that followed it did.

    Attributes:
        steps: the steps that the procedure lists.
        head: the part's heading in plain words.
        sentences: its sentences.
        done: [steps] the share of its cases that did each step.
        weight: [steps] how much that share tells; 0 where nothing is known.
    """

    steps: ListedSteps
    head: str
    sentences: tuple[str, ...]
    done: np.ndarray
    weight: np.ndarray


class StepScorer:
    """The model, fitted when it is made; `is_fitted` says whether there was anything to fit to."""

    def __init__(self, followed: Mapping[str, Sequence[FollowedPart]]) -> None:
        """Fit the model to the parts that cases of each industry followed."""
        self._shares = _VerbShares(p for parts in followed.values() for p in parts)
        examples = list(_examples(followed))
        self._fits = [_Fit.of(examples, penalty, without) for penalty, without in _FITS] if examples else []

    @property
    def is_fitted(self) -> bool:
        """Return whether there was anything to fit to; names alone decide otherwise."""
        return bool(self._fits)

    def probabilities(self, steps: ListedSteps, head: str, sentences: Sequence[str]) -> np.ndarray:
        """Return [sentences, steps] how likely each sentence of the part `head` asks for each step.

        The part's own step has 0.
        """
        features = steps.features(head, sentences, self._shares.of(steps))
        found = np.mean([fit.probabilities(features) for fit in self._fits] or [_by_names(features)], axis=0)
        found = steps.with_tests_of_existence(sentences, found)
        own = steps.position(head)
        if own is not None:
            found[:, own] = 0.0
        return np.asarray(found)


def _by_names(features: np.ndarray) -> np.ndarray:
    """Return [sentences, steps] how well each name fits, of the steps that look something up and fit it best."""
    of = dict(zip(FEATURES, np.moveaxis(features, -1, 0), strict=True))
    is_best = (of["object_cosine_lead"] >= 0) | (of["object_shared_lead"] >= 0)
    return np.asarray(fit_probability(of["cosine"] + WORDS_WEIGHT * of["shared"]) * of["reads"] * is_best)


class _VerbShares:
    """The share of the work, by the first word of a step's name, in which it was a step on the way and not the goal."""

    def __init__(self, parts: Iterable[FollowedPart]) -> None:
        self._way: dict[str, float] = defaultdict(float)
        self._all: dict[str, float] = defaultdict(float)
        for part in parts:
            amount = float(part.weight.max(initial=0.0))
            for name, verb, done in zip(part.steps.names, part.steps.verbs, part.done, strict=True):
                self._all[verb] += float(done) * amount
                self._way[verb] += float(done) * amount * (name != part.head)

    def of(self, steps: ListedSteps) -> np.ndarray:
        return np.array([(self._way.get(v, 0.0) + 0.5) / (self._all.get(v, 0.0) + 1.0) for v in steps.verbs])


@dataclass(frozen=True)
class _Example:
    """One part: figures [sentences, steps, features], and `done`, `weight` [steps] without the part's own step."""

    features: np.ndarray
    done: np.ndarray
    weight: np.ndarray


def _examples(followed: Mapping[str, Sequence[FollowedPart]]) -> list[_Example]:
    """Return the parts as examples; what is said about verbs comes from the other industries."""
    with_sentences = [(i, p) for i in sorted(followed) for p in followed[i] if p.sentences and p.weight.any()]
    kept = with_sentences[:: max(1, -(-len(with_sentences) // MOST_PARTS))]
    shares = {i: _VerbShares([p for o in followed if o != i for p in followed[o]]) for i in followed}
    examples = []
    for industry, part in kept:
        others = np.array([name != part.head for name in part.steps.names])
        if others.any():
            figures = part.steps.features(part.head, part.sentences, shares[industry].of(part.steps))
            examples.append(_Example(figures[:, others], part.done[others], part.weight[others]))
    return examples


@dataclass(frozen=True)
class _Fit:
    """θ [features], and mean and deviation of the figures [features] in what it was fitted to."""

    theta: np.ndarray
    mean: np.ndarray
    deviation: np.ndarray

    @classmethod
    def of(cls, examples: Sequence[_Example], penalty: float, without: Sequence[str]) -> "_Fit":
        """Fit θ by L-BFGS. The figures `without` are not used: their θ stays 0."""
        from scipy.optimize import minimize  # it loads most of SciPy

        whole = np.concatenate([e.features.reshape(-1, len(FEATURES)) for e in examples])
        mean, deviation = whole.mean(0), whole.std(0) + 1e-6
        mean[0], deviation[0] = 0.0, 1.0  # the intercept
        scaled = [(e.features - mean) / deviation for e in examples]
        used = np.array([name not in without for name in FEATURES], dtype=float)
        penalties = np.where(np.arange(len(FEATURES)) == 0, 0.0, penalty)

        def loss(theta: np.ndarray) -> tuple[float, np.ndarray]:
            total, gradient = float(penalties @ theta**2), 2 * penalties * theta
            for figures, example in zip(scaled, examples, strict=True):
                score = figures @ theta
                done = np.clip(1 - (1 - CHANCE) * np.exp(log_expit(-score).sum(0)), 1e-6, 1 - 1e-6)
                total -= example.weight @ (example.done * np.log(done) + (1 - example.done) * np.log(1 - done))
                towards = example.weight * (example.done * (1 - done) / done - (1 - example.done))
                gradient -= np.einsum("st,stf->f", expit(score) * towards, figures)
            return total, gradient * used

        start = np.zeros(len(FEATURES))
        start[0] = -2.0
        found = minimize(loss, start, jac=True, method="L-BFGS-B", options={"maxiter": ROUNDS})
        return cls(found.x, mean, deviation)

    def probabilities(self, features: np.ndarray) -> np.ndarray:
        return np.asarray(expit((features - self.mean) / self.deviation @ self.theta))
