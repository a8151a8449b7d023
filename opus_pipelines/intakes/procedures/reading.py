"""Reads an intake's procedure for one request: the part that is about the request, and the steps of its sentences.

A sentence that is similar to one of history asks for the tasks that cases did because of that one. A new sentence asks
for the task whose name fits it and for further steps about the same thing or of the same kind; where no name fits and
the procedure lists steps, for what `models.StepScorer` or a similar sentence of another industry says. A step
that has a part of its own in the procedure adds the steps of that part. The rules and their figures are this project's
own.
"""

import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np

from opus_pipelines.core.ids import SameObject, make_id
from opus_pipelines.intakes.procedures.listed_steps import (
    ListedSteps,
    are_of_one_record,
    counterparts,
    is_stated,
    lists_steps,
    records_of,
)
from opus_pipelines.intakes.procedures.models import OUTPUT_WEIGHT, SentenceTaskModel
from opus_pipelines.intakes.procedures.names import fit_probability
from opus_pipelines.intakes.procedures.relevant_parts import (
    RequestText,
    branch_relevance,
    counting_sentences,
    relevant_part,
)
from opus_pipelines.language.embedding.texts import Part, Sentence, object_of, plain, verb_of
from opus_pipelines.language.reading.alignment import Encode
from opus_pipelines.language.reading.reader import SentenceReading

LIKELY = 0.5  # probability from which a sentence asks for a task, or a tool


class CandidateNames:
    """Scores names for a sentence, once for all questions about it.

    `bare` has the headings of a procedure that have no text: names of steps that history may not know. `encode` returns
    the unit vectors [n, d] of n texts.
    """

    def __init__(self, bare: Sequence[str], model: SentenceTaskModel, encode: Encode) -> None:
        self._model, self._encode = model, encode
        self._new = [head for head in bare if model.task_named(head) not in model.tasks]
        self._names = [*(model.title_of[task] for task in model.tasks), *self._new]
        self._tasks = [*model.tasks, *map(model.task_named, self._new)]
        self._scored: dict[str, np.ndarray] = {}

    def best(self, sentence: str, without: Collection[str]) -> tuple[str | None, float]:
        """Return the name that fits the sentence best, and its probability.

        Candidates are the intermediate tasks of history and the headings, but no task `without`. Where none is likely,
        the final tasks that may be a step are tried too (`SentenceTaskModel.may_be_step`).
        """
        best: tuple[str | None, float] = (None, 0.0)
        for may_be in (self._model.is_intermediate, self._model.may_be_step):
            if candidates := self._candidates(without, may_be):
                best = self._best_of(candidates, sentence, 0.0)
            if best[1] >= LIKELY:
                break
        return best

    def fits(self, sentence: str, without: Collection[str]) -> dict[str, float]:
        """Return how likely each name is what the sentence asks for, without the tasks `without`."""
        scores = self._scores(sentence)
        found: dict[str, float] = {}
        for n in self._candidates(without, self._model.may_be_step):
            found.setdefault(self._names[n], float(fit_probability(scores[n])))
        return found

    def that_returns(self, sentence: str, without: Collection[str]) -> tuple[str, float] | None:
        """Return the best name among the tasks of which the sentence states an output, and its probability."""
        stated = set(np.flatnonzero(self._model.states_outputs(sentence)).tolist())
        candidates = [n for n in self._candidates(without, self._model.may_be_step) if n in stated]
        return self._best_of(candidates, sentence, OUTPUT_WEIGHT) if candidates else None

    def _best_of(self, candidates: Sequence[int], sentence: str, bonus: float) -> tuple[str, float]:
        """Return the candidate of the highest score, the first among equals, and its probability with the bonus."""
        scores = self._scores(sentence)
        n = max(candidates, key=lambda name: round(float(scores[name]), 6))
        return self._names[n], float(fit_probability(scores[n] + bonus))

    def _candidates(self, without: Collection[str], may_be: np.ndarray) -> list[int]:
        """Return the indices of the names that are no task `without`; of the model's tasks those that `may_be` a step.

        `may_be` has a flag for each of the model's tasks.
        """
        return [n for n, task in enumerate(self._tasks) if task not in without and (n >= len(may_be) or may_be[n])]

    def _scores(self, sentence: str) -> np.ndarray:
        """Return the scores [names] of all names for a sentence, or for one of its clauses."""
        if not self._names:
            return np.zeros(0)
        if sentence not in self._scored:
            vector, coverage = self._encode([sentence]), self._model.name_coverage
            self._scored[sentence] = coverage.scores([sentence], vector, self._names, self._vectors)[0]
        return self._scored[sentence]

    @cached_property
    def _vectors(self) -> np.ndarray:
        known = self._model.task_vectors if self._model.tasks else ()
        new = self._encode([plain(name) for name in self._new]) if self._new else ()
        return np.stack([*known, *new])


SAME_MEANING = 0.9  # cosine from which two sentences ask for the same tasks
UNLIKE_MEANING = 0.6  # cosine up to which a sentence of history says nothing about a new one
# cosine from which a sentence that nothing in its industry explains asks for what one of another industry asked for
MEANING_ABROAD = 0.65
CLAUSE_LIKELY = 0.6  # probability from which a clause of a sentence asks for a step of its own
NEGLIGIBLE = 0.3  # probabilities below it are noise and do not add up
DEPTH = 3  # levels of parts that are followed from step to step
# share of a procedure's headings that name known tasks, from which an unknown heading names a new step
STEP_HEADINGS = 0.25
CLAUSE_WORDS = 3
_PROCEDURES_KEPT = 32  # procedures whose steps are kept: all intakes of a contract inherit its documents
_CLAUSE_ENDS = re.compile(r"(?<=[.;])\s+|,?\s+and\s+(?:then\s+)?|,\s+then\s+")


@dataclass(frozen=True)
class ProcedureStep:
    """One step of a procedure, why it is one, and how likely it is.

    The step is a task of the catalogue or, where `is_new`, one that the procedure names and no case of history did.
    `sentence` asks for it; None for the goal of the whole part. `instructions` are the sentences of the step's own
    part. `by_history`: no sentence asks for it, but all similar successes did it; `sentence` then says how many.
    """

    task_id: str
    name: str
    sentence: str | None
    probability: float
    is_new: bool = False
    instructions: tuple[str, ...] = ()
    by_history: bool = False


@dataclass(frozen=True)
class ParsedProcedure:
    """The steps of the part `head`, in order.

    `explained_share`: the share of the part's sentences that history or the name of a task explains.
    `similar_share`: the share that is similar to a sentence of history. `is_of_request`: no procedure asks for the
    steps, the words of the request alone do. `sentences`: the record of each sentence, where the texts were read with
    the contract's catalogue; `doubts`: what a second reader did not read of them, or reads differently.
    """

    head: str
    steps: tuple[ProcedureStep, ...]
    explained_share: float
    similar_share: float = 1.0
    is_of_request: bool = False
    sentences: tuple[SentenceReading, ...] = ()
    doubts: tuple[str, ...] = ()

    @property
    def has_goal(self) -> bool:
        """Return whether the part describes one step, which is then the last of the steps."""
        return self.steps[-1].sentence is None

    @property
    def tasks(self) -> tuple[str, ...]:
        """Return the task ids of the steps."""
        return tuple(step.task_id for step in self.steps)


def clauses(sentence: str) -> list[str]:
    """Return the clauses of a sentence, each of at least `CLAUSE_WORDS` words; none where it has only one."""
    found = [clause.strip() for clause in _CLAUSE_ENDS.split(sentence)]
    found = [clause for clause in found if len(clause.split()) >= CLAUSE_WORDS]
    return found if len(found) > 1 else []


def texts_to_embed(parts: Sequence[Part]) -> list[str]:
    """Return every text whose vector `parse_procedure` may ask for, sorted."""
    texts = {s.text for part in parts for s in part.sentences}
    texts |= {clause for text in texts for clause in clauses(text)}
    texts |= {t for part in parts if part.name for t in (part.name, part.text, object_of(part.name))}
    return sorted(texts - {""})


Steps = tuple[list[ProcedureStep], float, float]  # the steps of a part, and its explained and similar share


@lru_cache(_PROCEDURES_KEPT)
def _steps_by_part(
    parts: tuple[Part, ...], industry: str | None, model: SameObject[SentenceTaskModel]
) -> dict[Part, Steps]:
    """Return what was read of these parts before: an empty dictionary, to be filled, for parts that are new."""
    return {}


def parse_procedure(
    request: RequestText, parts: Sequence[Part], industry: str | None, model: SentenceTaskModel, encode: Encode
) -> ParsedProcedure | None:
    """Return the steps that the parts ask for, for a request.

    `encode` returns the vectors [n, d] of n texts by the encoder of the model. What was read is kept for the next
    request with the same parts and model. Returns None where the parts ask for no step that can be identified.
    """
    if not parts:
        return None
    reader = _Reader(request, parts, industry, model, encode)
    own = [part for part in parts if not part.is_declared]
    part = relevant_part(request, parts if reader.listed else own, model.requests, encode)
    known = _steps_by_part(tuple(parts), industry, SameObject(model))
    found = known.get(part) or reader.steps(part)
    if not reader.has_compared:
        known[part] = found
    steps, explained_share, similar_share = found
    return ParsedProcedure(part.head or "", tuple(steps), explained_share, similar_share) if steps else None


class _Reader:
    def __init__(
        self,
        request: RequestText,
        parts: Sequence[Part],
        industry: str | None,
        model: SentenceTaskModel,
        encode: Encode,
    ) -> None:
        self.request = request
        self.parts, self.industry, self.model, self.encode = parts, industry, model, encode
        self.has_compared = False  # whether the request decided between branches
        self.of_name: dict[str, Part] = {}
        for part in parts:
            if part.name:
                self.of_name.setdefault(part.name, part)
        bare = [p.head or "" for p in self.of_name.values() if not p.sentences and not p.is_title]
        self.names = CandidateNames(bare, model, encode)
        verbs = frozenset(verb_of(plain(title)) for title in model.title_of.values())
        self.listed = ListedSteps(parts, encode) if model.step_scorer and lists_steps(parts, verbs) else None

    def steps(self, part: Part) -> Steps:
        """Return the steps of the part in order, with its goal last.

        The two figures are the explained and the similar share of its sentences.
        """
        goal = self._goal(part)
        steps_by_task: dict[str, ProcedureStep] = {}
        shares, queue, depth = [], [part], {part.name: 0}
        while queue:
            current = queue.pop(0)
            asked, *share = self._likely_steps(current, {goal.task_id} if goal else set())
            shares.append(share)
            for step in asked:
                if step.task_id not in steps_by_task and (goal is None or step.task_id != goal.task_id):
                    steps_by_task[step.task_id] = step
                    own = self.of_name.get(plain(step.name))
                    if own and own.sentences and own.name not in depth and depth[current.name] < DEPTH:
                        depth[own.name] = depth[current.name] + 1
                        queue.append(own)
        return self._ordered(list(steps_by_task.values())) + ([goal] if goal else []), shares[0][0], shares[0][1]

    def _goal(self, part: Part) -> ProcedureStep | None:
        """Return the task that the heading of the part names, known or new.

        The heading of a section names none. An unknown heading names a new task only where enough headings of
        the procedure name known tasks.
        """
        if not part.head:
            return None
        if part.is_declared:
            return self._step(part.head, None, 1.0)
        heads = [p.head or "" for p in self.of_name.values() if not p.is_title and not p.is_declared]
        unknown = self.model.task_named(part.head) is None
        if unknown and (
            part.is_title or sum(self.model.task_named(h) is not None for h in heads) < STEP_HEADINGS * len(heads)
        ):
            return None
        return self._step(part.head, None, 1.0)

    def _step(self, name: str, sentence: str | None, chance: float) -> ProcedureStep:
        known = self.model.task_named(name)
        own = self.of_name.get(plain(name))
        instructions = tuple(s.text for s in own.sentences) if own else ()
        if known is not None:
            return ProcedureStep(known, name, sentence, chance, instructions=instructions)
        return ProcedureStep(
            make_id("t", "new", self.industry or "", plain(name)), name, sentence, chance, True, instructions
        )

    def _likely_steps(self, part: Part, without: Collection[str]) -> Steps:
        """Return the likely steps of the part's sentences in order, and the explained and the similar share.

        Of alternatives ("either ... or"), the sentences of one branch count (`counting_sentences`).
        """
        causes = [*part.sentences]
        own = self.model.task_named(part.head or "")
        if part.head and own is None:
            causes.insert(0, Sentence(part.name))
        others = {*without, own} if own else {*without}
        by_cause = [self._steps_of(cause, part.name, others) for cause in causes]
        known = {s.task_id for steps, _, is_similar in by_cause if is_similar for s in steps if s.probability >= LIKELY}
        for cause, (steps, _, is_similar) in zip(causes, by_cause, strict=True):
            if steps and not is_similar:
                # Two sentences of a part seldom ask for the same step.
                if known.issuperset(s.task_id for s in steps):
                    steps += self._further_steps(cause, {*others, *(s.task_id for s in steps)})
                steps += self._kin_steps(cause, known, {*others, *(s.task_id for s in steps)})
        steps_by_task: dict[str, ProcedureStep] = {}
        probability: dict[str, float] = {}
        for n in counting_sentences(
            causes,
            [[s.task_id for s in steps if s.probability >= LIKELY] for steps, *_ in by_cause],
            lambda branch: self._relevance([causes[n].text for n in branch]),
        ):
            for step in by_cause[n][0]:
                steps_by_task.setdefault(step.task_id, step)
                probability[step.task_id] = 1 - (1 - probability.get(step.task_id, 0.0)) * (1 - step.probability)
        steps = [s for s in steps_by_task.values() if probability[s.task_id] >= LIKELY]
        of_sentences = by_cause[len(causes) - len(part.sentences) :] or [([], True, True)]
        explained = sum(is_explained for _, is_explained, _ in of_sentences) / len(of_sentences)
        similar = sum(is_similar for *_, is_similar in of_sentences) / len(of_sentences)
        return steps, explained, similar

    def _relevance(self, sentences: Sequence[str]) -> float:
        """Return how relevant a branch is to the request."""
        self.has_compared = True
        return branch_relevance(self.request, sentences, self.encode)

    def _steps_of(self, cause: Sentence, head: str, without: Collection[str]) -> tuple[list[ProcedureStep], bool, bool]:
        """Return the steps that one sentence of the part `head`, in plain words, asks for.

        The two flags tell whether the sentence was explained, and whether it is similar to one of history.
        """
        vector = self.encode([cause.text])[0]
        nearest, cosine = self.model.nearest_cause(vector)
        if cosine >= SAME_MEANING:
            return self._asked_by(nearest, 1.0, cause.text, without), True, True
        if cause.text in self.of_name:  # a new heading is no sentence: its name is its own
            return [], False, False
        steps: dict[str, ProcedureStep] = {}
        for text in (cause.text, *clauses(cause.text)):
            name, probability = self.names.best(text, without)
            if name and probability >= (LIKELY if text == cause.text else CLAUSE_LIKELY):
                step = self._step(name, cause.text, probability)
                steps.setdefault(step.task_id, step)
        found = list(steps.values()) or self._listed_steps(cause, head, without) or self._steps_abroad(cause, without)
        return found, bool(found), False

    def _listed_steps(self, cause: Sentence, head: str, without: Collection[str]) -> list[ProcedureStep]:
        """Return the listed steps that a sentence of the part `head` asks for by the model of all industries."""
        if self.listed is None or self.model.step_scorer is None:
            return []
        scores = self.model.step_scorer().probabilities(self.listed, head, [cause.text])[0]
        likely = [(float(p), self.listed.parts[n].head or n) for n, p in zip(self.listed.names, scores, strict=True)]
        found = [self._step(name, cause.text, p) for p, name in likely if p >= LIKELY]
        return [step for step in found if step.task_id not in without]

    def _steps_abroad(self, cause: Sentence, without: Collection[str]) -> list[ProcedureStep]:
        """Return what a similar sentence of another industry asked for, as steps of this one.

        There are none where the industry has a sentence as similar, or where the procedure does not list all of them.
        """
        model = self.model.all_industries() if self.model.all_industries and self.listed else None
        if model is None:
            return []
        vector = self.encode([cause.text])[0]
        nearest, cosine = model.nearest_cause(vector)
        if cosine < MEANING_ABROAD or cosine <= self.model.nearest_cause(vector)[1]:
            return []
        weights = model.cause_weights[nearest]
        likely = [(model.title_of[model.tasks[n]], float(weights[n])) for n in np.flatnonzero(weights >= LIKELY)]
        if any(plain(name) not in self.of_name for name, _ in likely):
            return []
        found = [self._step(name, cause.text, probability) for name, probability in likely]
        return [step for step in found if step.task_id not in without]

    def _further_steps(self, cause: Sentence, without: Collection[str]) -> list[ProcedureStep]:
        """Return the likely steps of a new sentence by the most similar sentence of history.

        Their probability falls with the cosine, to 0 at `UNLIKE_MEANING`.
        """
        nearest, cosine = self.model.nearest_cause(self.encode([cause.text])[0])
        share = (cosine - UNLIKE_MEANING) / (SAME_MEANING - UNLIKE_MEANING)
        steps = self._asked_by(nearest, share, cause.text, without) if share > 0 else []
        return [step for step in steps if step.probability >= LIKELY]

    def _kin_steps(self, cause: Sentence, known: set[str], without: Collection[str]) -> list[ProcedureStep]:
        """Return the steps that a new sentence asks for beside the one whose name fits it best.

        These are steps whose object or output it states, records of which other sentences ask to test that they are
        `known`, and what a similar sentence of history asked for about another thing.
        """
        fits = self.names.fits(cause.text, ())
        names = list(self.names.fits(cause.text, without))
        found = {name: fits[name] for name in names if is_stated(name, cause.text)}
        if stated := self.names.that_returns(cause.text, without):
            found.setdefault(*stated)
        nearest, cosine = self.model.nearest_cause(self.encode([cause.text])[0])
        share = (cosine - UNLIKE_MEANING) / (SAME_MEANING - UNLIKE_MEANING)
        similar = self._asked_by(nearest, share, cause.text, ()) if share > 0 else []
        tested = known - {step.task_id for step in similar if step.probability >= LIKELY}
        for name in fits:
            if fits[name] >= LIKELY and self.model.task_named(name) in tested and (of_it := records_of(name, names)):
                found.setdefault(max(of_it, key=lambda record: fits[record]), fits[name])
        for step in similar:
            for name in counterparts(step.name, self.model.causes[nearest], cause.text, names):
                found.setdefault(name, step.probability)
        return [self._step(name, cause.text, p) for name, p in found.items() if p >= LIKELY]

    def _asked_by(self, cause: int, share: float, sentence: str, without: Collection[str]) -> list[ProcedureStep]:
        """Return the steps that a sentence of history asked for, likeliest first, with this share of their probability.

        Those of a negligible probability are left out. Of steps that read or test one record the likeliest alone
        counts: cases that do both do one of them for its own sake.
        """
        model = self.model
        weights = share * model.cause_weights[cause]
        likely = [
            (float(weights[n]), task)
            for n, task in enumerate(model.tasks)
            if weights[n] >= NEGLIGIBLE and task not in without
        ]
        found: list[ProcedureStep] = []
        for p, task in sorted(likely, reverse=True):
            name = model.title_of[task]
            if not any(are_of_one_record(name, step.name) for step in found):
                found.append(ProcedureStep(task, name, sentence, p))
        return found

    def _ordered(self, steps: list[ProcedureStep]) -> list[ProcedureStep]:
        """Return the steps in the order of history where it is consistent, else in that of the procedure."""
        before = self.model.order_weights

        def lead(a: ProcedureStep, b: ProcedureStep) -> float:
            return before.get((a.task_id, b.task_id), 0.0) - before.get((b.task_id, a.task_id), 0.0)

        remaining, ordered = [*steps], []
        while remaining:
            first = next((a for a in remaining if all(lead(a, b) >= 0 for b in remaining if b is not a)), None)
            first = first or max(remaining, key=lambda a: sum(lead(a, b) for b in remaining if b is not a))
            ordered.append(first)
            remaining.remove(first)
        return ordered
