"""The models of procedures that history teaches: which sentences ask for which tasks.

P(step done | part) = 1 - (1 - chance) * prod over the part's sentences of (1 - sigmoid(x · θ)): a noisy-or (Pearl 1988)
whose causes are logistic regressions on `listed_steps.FEATURES`. θ is fitted by maximum likelihood with an L2 penalty
to the parts that cases of history followed, of all industries together. History seldom has more than a few industries,
so one fit varies; the mean of two fits is used, of which the second has a stronger penalty and no figure of verbs.
Where no case of history followed a list of steps, names alone decide.

The sentence-task model of an industry: which sentences of procedures asked for which tasks, and the order of tasks.

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
from typing import Any

import numpy as np
import pyarrow as pa
from scipy.special import expit, log_expit

from opus_pipelines.intakes.procedures.listed_steps import FEATURES, ListedSteps, states_output
from opus_pipelines.intakes.procedures.names import WORDS_WEIGHT, NameCoverage, fit_probability
from opus_pipelines.language.embedding.texts import Part, Sentence, plain
from opus_pipelines.wkg.graph import WorkGraph

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


@dataclass(frozen=True)
class StepKnowledge:
    """What history of other industries says about steps.

    Attributes:
        scorer: the model of which listed steps a sentence asks for.
        sentences: the sentences of all procedures of history, and the tasks that they asked for; None without any.
        verbs: the first words of the titles of all tasks, in plain words.
    """

    scorer: StepScorer
    sentences: SentenceTaskModel | None
    verbs: frozenset[str]


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


Row = dict[str, Any]


class ProcedureIndex:
    """The tables `wkg/procedures`, `wkg/procedure_vectors` and `wkg/cases`.

    `named` returns the ids of the tasks that have a name.
    """

    def __init__(
        self,
        procedures: pa.Table,
        vectors: pa.Table,
        cases: pa.Table,
        graph: WorkGraph,
        named: Callable[[str], frozenset[str]],
    ) -> None:
        self._rows, self._cases, self._graph, self._named = procedures, cases, graph, named
        self._vector_table = vectors
        self._models: dict[str | None, SentenceTaskModel | None] = {}

    def __bool__(self) -> bool:
        return bool(self._rows.num_rows)

    def model(self, industry: str | None) -> SentenceTaskModel | None:
        """Return the sentence-task model of an industry (None: of all industries).

        Returns None where no case of the industry followed a procedure.
        """
        if industry not in self._models:
            self._models[industry] = self._fit(industry) if self else None
        return self._models[industry]

    def successes(self, part: Part, industry: str | None) -> list[tuple[str, ...]]:
        """Return the tasks of every success of the industry under this very part, in the order of the cases' ids.

        A part is the same where heading and sentences have the same words. A case that was right to refuse is none.
        """
        same = self._rows_by_words.get(_words(part), ())
        cases = sorted({i for row in same for i in row["implementations"] if i in self._case})
        return [
            tuple(case["tasks"])
            for case in (self._case[i] for i in cases)
            if case["success"] and case["expected_outcome"] is not False and case["tasks"]
            if industry is None or case["industry"] == industry
        ]

    def knows(self, industry: str | None) -> bool:
        """Return whether a task of history is of the industry; None stands for all industries."""
        return industry is None or industry in self._graph.industries

    @cached_property
    def step_knowledge(self) -> StepKnowledge:
        """Return what the procedures of all industries say about lists of steps of an industry that has none."""
        verbs = frozenset(words[0] for t in self._graph.tasks.values() if (words := plain(t.title).split()))
        return StepKnowledge(self._scorer, self.model(None), verbs)

    @cached_property
    def _scorer(self) -> StepScorer:
        return StepScorer(self._followed_parts())

    def load(self) -> None:
        """Fit the models of all industries now."""
        industries = sorted({of["industry"] for of in self._case.values() if of["industry"] is not None})
        for industry in industries if len(industries) < 2 else (*industries, None):
            if model := self.model(industry):
                model.fit()

    def load_for_lists(self) -> None:
        """Fit now what reading lists of steps of an unknown industry needs."""
        if self.step_knowledge.sentences:
            self.step_knowledge.sentences.fit()

    def _fit(self, industry: str | None) -> SentenceTaskModel | None:
        parts_by_procedure: dict[str, list[tuple[Row, list[Row]]]] = defaultdict(list)
        for row in self._parts:
            cases = [self._case[i] for i in row["implementations"] if i in self._case]
            parts_by_procedure[row["procedure_id"]].append(
                (row, [c for c in cases if industry is None or c["industry"] == industry])
            )
        rows = [part for parts in parts_by_procedure.values() if any(cases for _, cases in parts) for part in parts]
        if not rows:
            return None
        parts_with_cases = [(_part(row), cases) for row, cases in rows]
        units = units_of(
            (part, c["expected_outcome"] is False, c["tasks"])
            for part, cases in parts_with_cases
            for c in cases
            if _is_usable(c)
        )
        requests = old_requests_of((_part(row).name, row["requests"]) for row, cases in rows if cases)
        titles = {
            t: self._graph.tasks[t].title
            for t in {t for _, cases in parts_with_cases for c in cases for t in c["tasks"] or ()}
        }
        return SentenceTaskModel(
            units,
            [part for part, _ in parts_with_cases],
            requests,
            self._vectors,
            TaskCatalogue(
                titles,
                lambda head: self._task(head, industry),
                lambda: self._scorer,
                lambda: self.model(None),
                {task: self._graph.tasks[task].outputs for task in titles},
            ),
        )

    def _followed_parts(self) -> dict[str, list[FollowedPart]]:
        """Return, by industry, the distinct parts that cases followed, each with the steps that its procedure lists."""
        by_procedure: dict[str, list[Row]] = defaultdict(list)
        for row in self._parts:
            by_procedure[row["procedure_id"]].append(row)
        found: dict[tuple[str, str, tuple[str, ...], tuple[str, ...]], tuple[ListedSteps, list[Row]]] = {}
        for rows in by_procedure.values():
            if not any(_part(row).name and not row["is_title"] for row in rows):
                continue  # prose lists no steps
            steps = ListedSteps([_part(row) for row in rows], self._encoded)
            for row in rows:
                part = _part(row)
                for case in (self._case[i] for i in row["implementations"] if i in self._case):
                    if _is_usable(case) and steps.position(part.name) is not None and part.sentences:
                        texts = tuple(s.text for s in part.sentences)
                        key = case["industry"] or "", part.name, texts, tuple(steps.names)
                        found.setdefault(key, (steps, []))[1].append(case)
        parts: dict[str, list[FollowedPart]] = defaultdict(list)
        for industry, head, sentences, names in sorted(found):
            steps, cases = found[industry, head, sentences, names]
            done, weight = self._done(steps, cases)
            parts[industry].append(FollowedPart(steps, head, sentences, done, weight))
        return parts

    def _done(self, steps: ListedSteps, cases: list[Row]) -> tuple[np.ndarray, np.ndarray]:
        """Return [steps] the share of the cases that did each step, and how much that tells."""
        of_name = [self._named(name) for name in steps.names]
        did = np.array([[bool(tasks & {*case["tasks"]}) for tasks in of_name] for case in cases], dtype=float)
        refused = np.array([case["expected_outcome"] is False for case in cases], dtype=bool)
        return evidence_of(did[~refused].sum(0), did[refused].sum(0), int((~refused).sum()), int(refused.sum()))

    def _encoded(self, texts: Sequence[str]) -> np.ndarray:
        return np.stack([self._vectors[text] for text in texts])

    def _task(self, head: str, industry: str | None) -> str | None:
        """Return the task of the industry with that name; of several the one that was done most often."""
        tasks = self._graph.tasks
        matches = [t for t in self._named(head) if t in tasks and (industry is None or industry in tasks[t].industries)]
        return min(matches, key=lambda t: (-tasks[t].implementations, t), default=None)

    @cached_property
    def _parts(self) -> list[Row]:
        rows: list[Row] = self._rows.sort_by([("procedure_id", "ascending"), ("part", "ascending")]).to_pylist()
        return rows

    @cached_property
    def _rows_by_words(self) -> dict[tuple[str, frozenset[str]], list[Row]]:
        rows: dict[tuple[str, frozenset[str]], list[Row]] = defaultdict(list)
        for row in self._parts:
            rows[_words(_part(row))].append(row)
        return rows

    @cached_property
    def _case(self) -> dict[str, Row]:
        wanted = {i for row in self._parts for i in row["implementations"]}
        columns = ["implementation_id", "industry", "success", "expected_outcome", "tasks"]
        return {
            row["implementation_id"]: row
            for row in self._cases.select(columns).to_pylist()
            if row["implementation_id"] in wanted
        }

    @cached_property
    def _vectors(self) -> dict[str, np.ndarray]:
        column = self._vector_table["vector"].combine_chunks()
        rows = column.flatten().to_numpy().reshape(len(column), column.type.list_size)
        return dict(zip(self._vector_table["text"].to_pylist(), rows, strict=True))


def _is_usable(case: Row) -> bool:
    """Return whether the case has tasks and did not fail."""
    return bool(case["tasks"]) and case["success"] is not False


def _words(part: Part) -> tuple[str, frozenset[str]]:
    return part.name, frozenset(plain(sentence.text) for sentence in part.sentences)


def _part(row: Row) -> Part:
    sentences = tuple(Sentence(text, either) for text, either in zip(row["sentences"], row["either"], strict=True))
    return Part(row["head"], sentences, row["is_title"])
