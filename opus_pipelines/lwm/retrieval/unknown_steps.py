"""Steps that an intake's own documents ask for and that no case of history did, for a client without history.

A new client's work is seldom quite that of the other clients of its industry: vehicles are inspected where they
inspected houses. A sentence of the client's own procedure asks for a step where it obliges ("the vehicle must be
inspected"), orders ("have the vehicle inspected"), or tells who does what ("an engineer inspects the vehicle"). A
sentence that only tells what is done ("glass is assessed from photographs") does so where the client wants something
back that is about the same thing. A step that history knows by one of its names or by its meaning is no new one.

A new step takes its figures and its place from the known task that is most like it. The rules are this project's own,
and they read English.
"""

import math
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from opus_pipelines.core.ids import make_id
from opus_pipelines.intakes.intake import Intake
from opus_pipelines.intakes.requirements.rules import Sentence, sentences_of
from opus_pipelines.language.embedding.encoder import TextEncoder
from opus_pipelines.language.embedding.texts import plain
from opus_pipelines.language.grammar.modality import (
    MUST,
    PAST,
    coordinated,
    forbids,
    is_finite,
    is_imperative,
    is_participle,
    lemma_of,
    may_be_third_person,
    tells_only,
)
from opus_pipelines.language.reading.languages import ENGLISH, language_of
from opus_pipelines.language.word_stems import stem_set, stems, word_set
from opus_pipelines.lwm.retrieval.named_rules import NamedRule, NamedTasks, without_condition
from opus_pipelines.lwm.retrieval.requested_steps import as_estimate, estimated_mode
from opus_pipelines.lwm.retrieval.snapshot_index import SnapshotIndex
from opus_pipelines.wkg.graph import ExecutionMode, Task

UNKNOWN = "the client's own procedure asks for it, and no case of history did it"
_MOST_WORDS, _MOST_BEFORE = 3, 5  # of the object of a step; before the verb of a clause that tells who does it
_BREAKS = re.compile(r";|:\s|\s[–—-]\s|,\s(?:and|but|then)\s(?:then\s)?|\sand then\s", re.I)
_BEHIND = re.compile(
    r",|\b(?:before|after|until|when|once|while|because|so that|since|unless|if|where|whether|which|that|who|what|how"
    r"|all the same|at the same time|at once)\b"
)
_THEN = re.compile(r"\bbefore (?P<then>(?:(?!\b(?:if|when|unless|while)\b)[^,])+)")
_OBJECT_ENDS = re.compile(
    r"\b(?:of|on|in|by|with|for|from|to|at|as|into|against|over|between|within|without|during|through|via|per|item by"
    r" item|one by one|above|below|under|again|first|then|also|both|together|immediately|promptly|directly"
    r"|separately)\b|[(\d]"
)
_DETERMINER = re.compile(
    r"^(?:(?:the|only|an?|each|every|any|all|its|their|his|her|our|your|this|these|both|such)\s+)+"
)
_NO_OBJECT = word_set("it they them he she we you i this these those one nothing nobody anything everything work")
_NO_STEP = word_set("base call define describe know locate make name use need have be belong mean end cover")
_PASSIVE = re.compile(
    r"^(?P<what>.+?)\s(?:(?:must|shall|should|has to|have to|needs? to|is to|are to)\s(?:also\s)?)?"
    r"(?:is|are|be)\s(?:(?:always|also|then|first|\w+ly)\s)*(?P<verb>[a-z-]+)\b"
)
_HAVE_DONE = re.compile(r"^(?:have|get)\s(?P<what>(?:the|an?|each|every|its|their)\s.+?)\s(?P<verb>[a-z-]+ed|[a-z]+)$")
_ACTOR = re.compile(r"^(?:the|an?|each|every|one|two|our|somebody|someone)\b")
SURELY_KNOWN = 1.0  # cosine and share of words from which a clause means a task of history
_TOLD = 0.6  # of a word in the description or the instructions of a task, relative to one of its name
_NEIGHBOUR = 0.3  # of the task that mostly comes directly before what the sentence says comes next
_PERSON = "human"
_SOFTNESS = 0.25  # score that makes a known task count e times as much
_FIGURES = ("p", "q", "duration_ms_mean", "cost_usd_mean", "cost_compute_usd", "cost_model_usd", "cost_human_usd")


@dataclass(frozen=True)
class UnknownStep:
    """A step that no case of history did.

    `like`: the known task that is most like it, from which it takes its place. `task`: what is estimated of it.
    `then`: the known task that its sentence says comes behind it.
    """

    task: Task
    like: str
    sentence: Sentence
    document: str
    then: str | None = None

    @property
    def rules(self) -> list[NamedRule]:
        """The rules that demand the step, and say before which other one it comes."""
        task = self.task.task_id
        order = [NamedRule("before", (task, self.then), self.sentence, self.document)] if self.then else []
        return [NamedRule("must_contain", (task,), self.sentence, self.document, UNKNOWN), *order]


@dataclass(frozen=True)
class _Clause:
    """What a clause asks for: a step titled as history titles tasks, "Inspect vehicle".

    `is_sure`: it obliges, orders or tells who does it. `then`: what it says comes behind the step, "" where nothing.
    """

    text: str
    title: str
    is_sure: bool
    then: str


def texts_to_align(intake: Intake) -> list[str]:
    """Returns every text whose vector `unknown_steps` asks for."""
    return [text for *_, clause in _clauses(intake) for text in (clause.text, clause.then) if text]


def unknown_steps(intake: Intake, index: SnapshotIndex, encoder: TextEncoder) -> tuple[UnknownStep, ...]:
    """Returns the steps, in the order of the documents."""
    graph, passive = index.snapshot.graph, index.passive
    known = {t: k for t, k in graph.tasks.items() if intake.industry in k.industries and t not in passive}
    asked = [found for found in _clauses(intake) if _counts(found[2], intake)]
    if not known or not asked:
        return ()
    names = NamedTasks({task: known[task].title for task in known})
    texts = texts_to_align(intake)
    likeness = _Likeness(known, index, dict(zip(texts, encoder.encode(texts), strict=True)))
    found: dict[str, UnknownStep] = {}
    for document, sentence, clause in asked:
        task_id = make_id("t", "new", intake.industry or "", plain(clause.title))
        then = likeness.means(clause.then) if clause.then else None
        scores = likeness.scores(clause.text)
        is_known = max(likeness.scores(clause.text, then).values()) >= SURELY_KNOWN or names.named(clause.title)
        if task_id not in found and not is_known:
            task, like = _estimated(task_id, clause.title, known, scores), max(scores, key=lambda task: scores[task])
            found[task_id] = UnknownStep(task, like, sentence, document, then)
    return tuple(found.values())


def _counts(clause: _Clause, intake: Intake) -> bool:
    """Tells whether a clause asks for something by itself, or by what the client wants back."""
    wanted = stem_set(" ".join(e.text for e in intake.elements if e.role == "output" and e.text))
    return clause.is_sure or bool(wanted & set(stems(clause.title)[1:]))


class _Likeness:
    """How like known tasks a clause is: by vectors, by the words that history says of a task, and by its neighbour.

    Words of a task's name, and of what it takes and gives, count more than those of its description and instructions.
    """

    def __init__(self, known: Mapping[str, Task], index: SnapshotIndex, vectors: Mapping[str, np.ndarray]) -> None:
        self._tasks = sorted(task for task in known if task in index.task_vectors)
        self._of_tasks, self._of_texts = np.stack([index.task_vectors[task] for task in self._tasks]), vectors
        self._words = [_words_of(known[task]) for task in self._tasks]
        self._times = Counter(word for words in self._words for word in words)
        self._graph = index.graph

    def scores(self, text: str, then: str | None = None) -> dict[str, float]:
        """Returns by task how like it a clause is; `then`: the known task that it says comes behind the step."""
        weights = {word: math.log((1 + len(self._words)) / (self._times[word] + 0.5)) for word in stems(text)}
        whole = sum(weights.values()) or 1.0
        shares = [sum(weight * own.get(word, 0.0) for word, weight in weights.items()) / whole for own in self._words]
        before = np.array([self._graph.transitions((task, then)) if then else 0.0 for task in self._tasks])
        scores = self._of_tasks @ self._of_texts[text] + np.array(shares) + _NEIGHBOUR * before / (before.max() or 1.0)
        return dict(zip(self._tasks, scores.round(6).tolist(), strict=True))

    def means(self, text: str) -> str | None:
        """Returns the task that a clause means, None where it means none."""
        scores = self.scores(text)
        best = max(scores, key=lambda task: scores[task])
        return best if scores[best] >= SURELY_KNOWN else None


def _words_of(task: Task) -> dict[str, float]:
    told = stem_set(" ".join([task.description or "", *task.instructions]))
    names = stem_set(" ".join([plain(task.title), *task.inputs, *task.outputs]))
    return dict.fromkeys(told, _TOLD) | dict.fromkeys(names, 1.0)


def _estimated(task_id: str, title: str, known: Mapping[str, Task], scores: Mapping[str, float]) -> Task:
    """Returns a new task with estimated figures.

    A person does it where people do such work: nobody knows that a program could. Its figures are the means over the
    known tasks in the execution modes of people, else in their most frequent modes; the more like the new task one is,
    the more it counts.
    """
    usual = {task: one.execution_modes for task, one in known.items() if one.execution_modes}
    by_people = {t: [m for m in modes if m.actor_kind == _PERSON] for t, modes in usual.items()}
    modes = [(t, m) for t, found in by_people.items() for m in found] or [(t, modes[0]) for t, modes in usual.items()]
    weights = [math.exp(scores.get(task, 0.0) / _SOFTNESS) for task, _ in modes]
    means: dict[str, Any] = {name: _mean([getattr(m, name) for _, m in modes], weights) for name in _FIGURES}
    like = max(modes, key=lambda mode: scores.get(mode[0], 0.0))[1] if modes else ExecutionMode()
    mode = estimated_mode(replace(like, actor_group=None, clients=(), **means))
    p_basis, q_basis = as_estimate(mode.p, like.basis), as_estimate(mode.q, like.basis)
    return Task(task_id, title, p=mode.p, p_basis=p_basis, q=mode.q, q_basis=q_basis, execution_modes=(mode,))


def _mean(values: Sequence[float | None], weights: Sequence[float]) -> float | None:
    known = [(value, weight) for value, weight in zip(values, weights, strict=True) if value is not None]
    return sum(value * weight for value, weight in known) / sum(weight for _, weight in known) if known else None


def _clauses(intake: Intake) -> Iterator[tuple[str, Sentence, _Clause]]:
    """Yields the clauses of an intake's own procedures that may ask for a step, with their documents and sentences.

    A sentence with a condition counts where the title or the client input states it.
    """
    request = "\n".join([intake.title or "", *(e.text or "" for e in intake.elements if e.role == "input")])
    for element in intake.elements:
        if element.role == "process" and element.text and language_of(element.text) in (ENGLISH, None):
            for sentence in sentences_of(element):
                text = without_condition(sentence, request) if sentence.shape in ("prose", "item") else ""
                for clause in _asking(text):
                    yield f"{element.role}/{element.name}", sentence, clause


def _asking(text: str) -> Iterator[_Clause]:
    for piece in _BREAKS.split(text.strip().rstrip(".!")):
        clause = " ".join(piece.casefold().split())
        for part in () if tells_only(clause) or forbids(clause) or PAST.search(clause) else coordinated(clause):
            main, then = _BEHIND.split(part)[0].strip(), _THEN.search(part)
            found = _verb_and_object(main)
            if found is not None and (title := _title(*found[:2])):
                yield _Clause(main, title, found[2], then["then"].strip() if then else "")


def _verb_and_object(clause: str) -> tuple[str, str, bool] | None:
    """Returns the verb and the object of a clause, and whether it surely asks for the step."""
    if match := _HAVE_DONE.match(clause):
        return (match["verb"], match["what"], True) if is_participle(match["verb"]) else None
    if is_imperative(clause):
        verb, _, what = clause.partition(" ")
        return (verb, what, True) if _DETERMINER.match(what) else None
    if (match := _PASSIVE.match(clause)) and is_participle(match["verb"]):
        return match["verb"], match["what"], bool(MUST.search(clause))
    words = clause.split()
    for n in range(1, min(len(words) - 1, _MOST_BEFORE)):
        if may_be_third_person(words[n]) and _DETERMINER.match(f"{words[n + 1]} "):
            return (words[n], " ".join(words[n + 1 :]), True) if _ACTOR.match(clause) else None
    return None


def _title(verb: str, what: str) -> str | None:
    lemma, words = lemma_of(verb), _OBJECT_ENDS.split(_DETERMINER.sub("", what.strip()))[0].split()
    if not words or len(words) > _MOST_WORDS or words[-1] in _NO_OBJECT or words[0] == "no" or lemma in _NO_STEP:
        return None
    return None if is_finite(" ".join(words)) else f"{lemma} {' '.join(words)}".capitalize()
