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
from statistics import fmean
from typing import Any

import numpy as np
import pyarrow.compute as pc

from opus_pipelines.core.ids import make_id
from opus_pipelines.intakes.elements import Element
from opus_pipelines.intakes.intake import Intake
from opus_pipelines.intakes.requirements.rules import Sentence, sentences_of
from opus_pipelines.language.embedding.encoder import TextEncoder
from opus_pipelines.language.embedding.texts import plain
from opus_pipelines.language.grammar.modality import (
    MUST,
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
from opus_pipelines.lwm.retrieval.named_rules import NamedRule, NamedTasks, holds_for
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


LEAST_KNOWN = 1.0  # cosine and share of words from which a clause means a task of history
_PERSON = "human"
_FIGURES = ("p", "q", "duration_ms_mean", "cost_usd_mean", "cost_compute_usd", "cost_model_usd", "cost_human_usd")


@dataclass(frozen=True)
class UnknownStep:
    """A step that no case of history did.

    `like`: the known task that is most like it, from which it takes its place. `task`: what is estimated of it.
    """

    task: Task
    like: str
    sentence: Sentence
    document: str

    @property
    def rule(self) -> NamedRule:
        """The rule that demands the step."""
        return NamedRule("must_contain", (self.task.task_id,), self.sentence, self.document, UNKNOWN)


@dataclass(frozen=True)
class _Clause:
    """What a clause asks for: a step titled as history titles tasks, "Inspect vehicle".

    `is_sure`: it obliges, orders or tells who does it.
    """

    text: str
    title: str
    is_sure: bool


def is_new_client(intake: Intake, index: SnapshotIndex) -> bool:
    """Tells whether history has no case of the intake's client in its industry."""
    cases = index.cases.table
    own = pc.and_(pc.equal(cases["client"], intake.client or ""), pc.equal(cases["industry"], intake.industry or ""))
    return not pc.any(own).as_py()


def texts_to_align(elements: Sequence[Element]) -> list[str]:
    """Returns every text whose vector `unknown_steps` asks for."""
    return [clause.text for _, _, clause in _clauses(elements)]


def unknown_steps(intake: Intake, index: SnapshotIndex, encoder: TextEncoder) -> tuple[UnknownStep, ...]:
    """Returns the steps, in the order of the documents; none where history has cases of the client."""
    request = "\n".join([intake.title or "", *(e.text or "" for e in intake.elements if e.role == "input")])
    graph, passive = index.snapshot.graph, index.passive
    known = {t: k for t, k in graph.tasks.items() if intake.industry in k.industries and t not in passive}
    asked = [c for c in _clauses(intake.elements) if _counts(c[2], intake) and holds_for(c[1], request)]
    if not known or not asked or not is_new_client(intake, index):
        return ()
    names = NamedTasks({task: known[task].title for task in known})
    likeness = _Likeness(known, index)
    vectors = encoder.encode([clause.text for *_, clause in asked])
    found: dict[str, UnknownStep] = {}
    for (document, sentence, clause), vector in zip(asked, vectors, strict=True):
        task_id = make_id("t", "new", intake.industry or "", plain(clause.title))
        score, like = likeness.best(clause.text, vector)
        if task_id not in found and score < LEAST_KNOWN and not names.named(clause.title):
            task = _estimated(task_id, clause.title, known[like], list(known.values()))
            found[task_id] = UnknownStep(task, like, sentence, document)
    return tuple(found.values())


def _counts(clause: _Clause, intake: Intake) -> bool:
    """Tells whether a clause asks for something by itself, or by what the client wants back."""
    wanted = stem_set(" ".join(e.text for e in intake.elements if e.role == "output" and e.text))
    return clause.is_sure or bool(wanted & set(stems(clause.title)[1:]))


class _Likeness:
    """How like known tasks a clause is: by vectors, and by its words in all that history says of a task."""

    def __init__(self, known: Mapping[str, Task], index: SnapshotIndex) -> None:
        self._tasks = sorted(task for task in known if task in index.task_vectors)
        self._vectors = np.stack([index.task_vectors[task] for task in self._tasks])
        self._words = [_words_of(known[task]) for task in self._tasks]
        self._times = Counter(word for words in self._words for word in words)

    def best(self, text: str, vector: np.ndarray) -> tuple[float, str]:
        """Returns the score of the task that is most like a clause, and that task."""
        weights = {word: math.log((1 + len(self._words)) / (self._times[word] + 0.5)) for word in stems(text)}
        whole = sum(weights.values()) or 1.0
        shares = [sum(weight for word, weight in weights.items() if word in own) / whole for own in self._words]
        scores = (self._vectors @ vector + np.array(shares)).round(6)
        return float(scores.max()), self._tasks[int(scores.argmax())]


def _words_of(task: Task) -> frozenset[str]:
    return stem_set(
        " ".join([plain(task.title), task.description or "", *task.instructions, *task.inputs, *task.outputs])
    )


def _estimated(task_id: str, title: str, like: Task, known: Sequence[Task]) -> Task:
    """Returns a new task with estimated figures.

    A person does it where people do such work: nobody knows that a program could. Its figures are those of the people
    who do the task that is like it, else the mean of all people's; else it takes those of the task that is like it.
    """
    by_people = [mode for mode in like.execution_modes if mode.actor_kind == _PERSON]
    modes = by_people or [m for task in known for m in task.execution_modes if m.actor_kind == _PERSON]
    modes = modes or list(like.execution_modes[:1])
    means: dict[str, Any] = {name: _mean([getattr(mode, name) for mode in modes]) for name in _FIGURES}
    mode = estimated_mode(replace(modes[0], **means) if modes else ExecutionMode())
    p, q = (mode.p, mode.q) if mode.p is not None else (like.p, like.q)
    return Task(
        task_id,
        title,
        industries=like.industries,
        p=p,
        p_basis=as_estimate(p, mode.basis),
        q=q,
        q_basis=as_estimate(q, mode.basis),
        execution_modes=(replace(mode, actor_group=None, clients=()),),
    )


def _mean(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return fmean(known) if known else None


def _clauses(elements: Sequence[Element]) -> Iterator[tuple[str, Sentence, _Clause]]:
    """Yields the clauses of an intake's own procedures that may ask for a step, with their documents and sentences."""
    for element in elements:
        if element.role == "process" and element.text and language_of(element.text) in (ENGLISH, None):
            for sentence in sentences_of(element):
                if sentence.shape in ("prose", "item"):
                    for clause in _asking(sentence.text):
                        yield f"{element.role}/{element.name}", sentence, clause


def _asking(text: str) -> Iterator[_Clause]:
    for piece in _BREAKS.split(text.strip().rstrip(".!")):
        clause = " ".join(piece.casefold().split())
        for part in () if tells_only(clause) or forbids(clause) else coordinated(clause):
            main = _BEHIND.split(part)[0].strip()
            found = _verb_and_object(main)
            if found is not None and (title := _title(*found[:2])):
                yield _Clause(main, title, found[2])


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
