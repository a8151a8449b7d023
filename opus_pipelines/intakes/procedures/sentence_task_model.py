"""The sentence-task model of an industry: which sentences of procedures asked for which tasks, and the order of tasks.

A sentence of a procedure is a cause of the tasks that it asks for. A noisy-or model (Pearl 1988) is fitted by
expectation-maximisation (Dempster, Laird, Rubin 1977): P(task done) = 1 - prod over the present causes of (1 - w[cause,
task]).

A case that succeeded tells for every task whether its part asked for it. A case that was rightly refused ended early:
the tasks that it did were asked for; the tasks that it did not do say little.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import combinations

import numpy as np

from opus_pipelines.intakes.procedures.listed_steps import states_output
from opus_pipelines.intakes.procedures.name_coverage import NameCoverage, fit_probability
from opus_pipelines.intakes.procedures.step_scorer import StepScorer
from opus_pipelines.language.embedding.text_parts import Part, plain

NOISY_OR_ROUNDS = 60
CEILING = 0.999
PRIOR_OBSERVATIONS = 1.5


def fit_noisy_or(
    holds: np.ndarray, did: np.ndarray, weight: np.ndarray, prior: np.ndarray, most_last: float = CEILING
) -> np.ndarray:
    """Return w [causes, tasks] in ]0, 1[, fitted to units of cases.

    `holds` [units, causes] is 0 or 1; `did` [units, tasks] is the share of a unit's cases that did the task;
    `weight` [units, tasks] is the amount of evidence (0: none); `prior` [causes, tasks] in [0, 1] counts as
    `PRIOR_OBSERVATIONS` further observations. The last cause stands for chance; its weights never exceed `most_last`.
    """
    weights = np.clip(0.2 + 0.5 * prior, 0.02, 0.9)
    evidence = holds.T @ weight
    for _ in range(NOISY_OR_ROUNDS):
        chance = np.maximum(1 - np.exp(holds @ np.log1p(-np.minimum(weights, CEILING))), 1e-6)
        credit = weights * (holds.T @ (did / chance * weight))
        weights = np.clip((credit + PRIOR_OBSERVATIONS * prior) / (evidence + PRIOR_OBSERVATIONS), 1e-4, CEILING)
        weights[-1] = np.minimum(weights[-1], most_last)
    return weights


REFUSAL_WEIGHT = 0.2  # weight of a rightly refused case, relative to one that succeeded
REFUSAL_WITHOUT = 0.2  # share of that weight, for the tasks that the refused case did not do
ENOUGH = 8.0  # most cases of one part that count
MEANS_SHARE = 0.5  # a task that is the last one of a larger share of its cases is an end of work, not intermediate
# share of intermediate tasks among those with the same first word, from which one that is an end may be a step too
LIKE_MEANS = 0.5
BY_CHANCE = 0.02  # prior probability that a task is done although no sentence asks for it
MOST_BY_CHANCE = 0.1
OUTPUT_WEIGHT = 0.3  # of an output of a task that a sentence states, in the score of the task's name for the sentence
_Pair = tuple[str, str]
Vectors = Mapping[str, np.ndarray]


@dataclass
class Unit:
    """Cases that followed parts with the same heading and sentences: their distinct tasks in order, by outcome."""

    head: str
    sentences: tuple[str, ...]
    done: list[tuple[str, ...]] = field(default_factory=list)
    refused: list[tuple[str, ...]] = field(default_factory=list)


@dataclass(frozen=True)
class TaskCatalogue:
    """The known tasks of an industry: `title_of` has their titles, `named` returns the task that a heading names.

    `outputs_of` has what tasks return, by task, as names: "expiry date".
    `scorer` returns the model of which listed steps a sentence asks for, `all_industries` the model of all industries
    together; None where there is none.
    """

    title_of: Mapping[str, str]
    named: Callable[[str], str | None]
    scorer: Callable[[], StepScorer] | None = None
    all_industries: "Callable[[], SentenceTaskModel | None] | None" = None
    outputs_of: Mapping[str, Sequence[str]] = field(default_factory=dict)


class SentenceTaskModel:
    """The model of one industry, fitted to units of cases; `requests` has earlier requests by heading."""

    def __init__(
        self,
        units: Sequence[Unit],
        all_parts: Iterable[Part],
        requests: Mapping[str, Sequence[str]],
        vectors: Vectors,
        catalogue: TaskCatalogue,
    ) -> None:
        self.units, self.vectors, self.title_of, self.task_named = units, vectors, catalogue.title_of, catalogue.named
        self.step_scorer, self.all_industries = catalogue.scorer, catalogue.all_industries
        self.outputs_of = catalogue.outputs_of
        self.requests = {head: np.stack([vectors[r] for r in texts]) for head, texts in requests.items() if texts}
        sentences = sorted({s.text for part in all_parts for s in part.sentences})
        self.name_coverage = NameCoverage(
            sentences, np.stack([vectors[s] for s in sentences]) if sentences else np.zeros((0, 0))
        )

    def fit(self) -> None:
        """Fit now what is otherwise fitted when it is first used."""
        assert self.cause_weights is not None
        assert self.order_weights is not None
        if self.step_scorer:
            self.step_scorer()

    @cached_property
    def tasks(self) -> list[str]:
        """Return every task that a case of a unit did, sorted."""
        return sorted({task for unit in self.units for tasks in (*unit.done, *unit.refused) for task in tasks})

    @cached_property
    def causes(self) -> list[str]:
        """Return the distinct sentences of the units, sorted.

        A heading that is no task's name counts as a sentence.
        """
        return sorted({cause for unit in self.units for cause in self.causes_of(unit.head, unit.sentences)})

    @cached_property
    def cause_vectors(self) -> np.ndarray:
        """Return the unit vectors [causes, d] of the causes."""
        return np.stack([self.vectors[c] for c in self.causes]) if self.causes else np.zeros((0, 0))

    def nearest_cause(self, vector: np.ndarray) -> tuple[int, float]:
        """Return the cause most similar to a sentence of this unit vector [d], and the cosine; -1 where there is none.

        The first among equals counts.
        """
        if not len(self.causes):
            return 0, -1.0
        cosines = (self.cause_vectors @ vector).round(6)
        nearest = int(cosines.argmax())
        return nearest, float(cosines[nearest])

    def causes_of(self, head: str, sentences: Sequence[str]) -> list[str]:
        """Return the texts of a part that may ask for tasks."""
        return [*sentences] if not head or self.task_named(head) else [head, *sentences]

    @cached_property
    def is_intermediate(self) -> np.ndarray:
        """Return, for each task [tasks], whether cases do it on the way rather than as their last task."""
        number = {task: n for n, task in enumerate(self.tasks)}
        times, last = np.zeros(len(number)), np.zeros(len(number))
        for unit in self.units:
            for tasks in unit.done:
                for task in tasks:
                    times[number[task]] += 1
                last[number[tasks[-1]]] += 1
            for tasks in unit.refused:
                for task in tasks:
                    times[number[task]] += REFUSAL_WEIGHT
        return np.asarray(last < MEANS_SHARE * times)

    @cached_property
    def may_be_step(self) -> np.ndarray:
        """Return, for each task [tasks], whether a new sentence may ask for it as a step.

        Such a task is intermediate, or its name begins with a word with which at least the share `LIKE_MEANS`
        of the names are of intermediate tasks: "get the balance" may be a step of another case even where it
        was always the last task in history.
        """
        verbs = [(plain(self.title_of[t]).split() or [""])[0] for t in self.tasks]
        share = {
            verb: np.mean([m for v, m in zip(verbs, self.is_intermediate, strict=True) if v == verb])
            for verb in set(verbs)
        }
        return np.asarray(
            [m or share[v] >= LIKE_MEANS for v, m in zip(verbs, self.is_intermediate, strict=True)], dtype=bool
        )

    @cached_property
    def order_weights(self) -> dict[_Pair, float]:
        """Return the weight of the cases in which the first of two tasks came before the second."""
        weights: dict[_Pair, float] = defaultdict(float)
        for unit in self.units:
            for weight, cases in ((1.0, unit.done), (REFUSAL_WEIGHT, unit.refused)):
                for tasks in cases:
                    for pair in combinations(tasks, 2):
                        weights[pair] += weight
        return weights

    @cached_property
    def task_vectors(self) -> np.ndarray:
        """Return the unit vectors [tasks, d] of the tasks' names."""
        return np.stack([self.vectors[plain(self.title_of[t])] for t in self.tasks])

    def states_outputs(self, sentence: str) -> list[bool]:
        """Return, for each task, whether the sentence states one of its outputs."""
        return [states_output(self.outputs_of.get(task, ()), sentence) for task in self.tasks]

    @cached_property
    def cause_weights(self) -> np.ndarray:
        """Return w [causes, tasks]: the probability that a sentence asks for a task."""
        if not self.causes:
            return np.zeros((0, len(self.tasks)))
        place, number = {c: n for n, c in enumerate(self.causes)}, {task: n for n, task in enumerate(self.tasks)}
        shape = len(self.units), len(self.tasks)
        present, did, weight = np.zeros((len(self.units), len(place) + 1)), np.zeros(shape), np.zeros(shape)
        present[:, -1] = 1
        for row, unit in enumerate(self.units):
            present[row, [place[c] for c in self.causes_of(unit.head, unit.sentences)]] = 1
            done, refused = (_counts(cases, number) for cases in (unit.done, unit.refused))
            did[row], weight[row] = evidence_of(done, refused, len(unit.done), len(unit.refused))
            if (own := self.task_named(unit.head)) in number:
                weight[row, number[str(own)]] = 0  # the heading asks for it, not a sentence
        titles = [self.title_of[t] for t in self.tasks]
        scores = self.name_coverage.scores(self.causes, self.cause_vectors, titles, self.task_vectors)
        scores += OUTPUT_WEIGHT * np.array([self.states_outputs(cause) for cause in self.causes])
        likely = fit_probability(scores) * self.is_intermediate
        return fit_noisy_or(
            present, did, weight, np.vstack([likely, np.full((1, len(number)), BY_CHANCE)]), most_last=MOST_BY_CHANCE
        )[:-1]


def _counts(cases: Iterable[Sequence[str]], number: Mapping[str, int]) -> np.ndarray:
    counts = np.zeros(len(number))
    for tasks in cases:
        for task in tasks:
            counts[number[task]] += 1
    return counts


def evidence_of(done: np.ndarray, refused: np.ndarray, times: int, refusals: int) -> tuple[np.ndarray, np.ndarray]:
    """Return [tasks] the share of a part's cases that did each task, and the weight of that evidence.

    `done` and `refused` [tasks] count the cases that did each task among those that succeeded (`times` in all) and
    those that were rightly refused (`refusals` in all).
    """
    against = REFUSAL_WITHOUT * (refusals - refused)
    evidence = times + REFUSAL_WEIGHT * (refused + against)
    return (done + REFUSAL_WEIGHT * refused) / np.maximum(evidence, 1e-9), np.sqrt(np.minimum(evidence, ENOUGH))


def units_of(cases: Iterable[tuple[Part, bool, Sequence[str]]]) -> list[Unit]:
    """Group cases, given as (part, rightly refused, tasks), into units in the order of their texts."""
    units: dict[tuple[str, tuple[str, ...]], Unit] = {}
    for part, refused, tasks in cases:
        key = part.name, tuple(s.text for s in part.sentences)
        unit = units.setdefault(key, Unit(*key))
        (unit.refused if refused else unit.done).append(tuple(dict.fromkeys(tasks)))
    return [units[key] for key in sorted(units)]


def old_requests_of(rows: Iterable[tuple[str, Sequence[str]]]) -> dict[str, list[str]]:
    """Group requests by heading, distinct and sorted."""
    by_heading: dict[str, set[str]] = defaultdict(set)
    for head, requests in rows:
        by_heading[head].update(requests)
    return {head: sorted(texts) for head, texts in by_heading.items()}
