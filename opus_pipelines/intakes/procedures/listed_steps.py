"""The steps that a procedure lists by its headings, and how each sentence relates to each of them, as figures.

A procedure that lists the tools or actions of a house is a catalogue of its own: each heading names a step, known or
not. The figures use words and vectors alone, never a name as such, so a model of them that was fitted to one industry
holds for another (an inductive model; this project's own features).

Steps are kin where they are of one kind or about one thing, by the words of their names: "has licence" checks that
there is a record and "get licence details" reads it; "get vehicle details" does the same with another thing.
"""

import math
import re
from collections import Counter
from collections.abc import Sequence
from functools import cached_property

import numpy as np

from opus_pipelines.intakes.procedures.names import WORDS_WEIGHT, NameCoverage, text_words, words
from opus_pipelines.language.embedding.texts import Part, object_of, plain, verb_of
from opus_pipelines.language.reading.alignment import Encode

LEAST_STEPS = 3  # headings of steps from which a procedure lists steps
STEPS_SHARE = 0.5  # least share of the headings that must look like names of steps
_NO_SCORE = -9.0  # of a part's own step, for which it does not ask; far below every score
# first words of the names of steps that look something up and change nothing
READING_WORDS = frozenset(
    re.findall(
        r"\w+",
        """
    available check confirm exist exists fetch find get has have inspect is list lookup query read retrieve search see
    show valid validate verify view
""",
    )
)
# words that say that a record is looked up, not which one
RECORD_WORDS = frozenset(
    re.findall(
        r"\w+",
        """
    all check data detail get has history id info information internal list record show status user
""",
    )
)
# words of a name that say that something is tested; the other READING_WORDS say that a record is read
CHECKING_WORDS = frozenset(
    {"available", "check", "confirm", "exist", "has", "have", "is", "valid", "validate", "verify"}
)
# words of a sentence that says that there is a thing, and nothing about it
EXISTENCE_WORDS = frozenset({"exist", "exists", "existing", "null", "own", "owns"})
STATED_WORDS = 2  # least words of an object that a sentence states
_SUBJECT = re.compile(r"^(.*?)\b(must|is|are|has|have|falls|should|exists?|owns?|can|will)\b", re.IGNORECASE)

# The order of the last axis of `ListedSteps.features`.
FEATURES = (
    "one",  # the intercept
    "cosine",  # of sentence and name, less the mean cosine of the name with all sentences
    "shared",  # share of the name's words, by their rarity in sentences, that the sentence has
    "verb",  # share of the work of other industries in which names with this first word were steps on the way
    "lead",  # of cosine and shared words over the best other name
    "shared_lead",  # of `shared` over the best name, at most 0
    "covered",  # share of the sentence's words that the name has
    "best",  # whether the name is the best of all by cosine and shared words
    "reads",  # whether the name begins with one of READING_WORDS
    "object_shared",  # share of the words of the name's object that the sentence has, by their rarity in names
    "object_in_subject",  # the same for the words before the sentence's verb
    "object_in_rest",  # the same for the others
    "object_rarity",  # sum of the rarities of these shared words
    "no_object",  # whether the name has no object but RECORD_WORDS
    "object_cosine",  # of the sentence and the name's object
    "reads_shared",
    "reads_cosine",
    "object_cosine_lead",  # over the best reading name
    "object_shared_lead",
)


def lists_steps(parts: Sequence[Part], verbs: frozenset[str]) -> bool:
    """Return whether the headings of the parts are a list of steps.

    A heading looks like a step's name where it is an identifier (`register_vehicle`, `registerVehicle`), is the name of
    a declared tool, or begins with one of the `verbs` or of READING_WORDS. Declared tools are no headings.
    """
    heads = {part.name: part.head or "" for part in parts if part.name and not part.is_title and not part.is_declared}
    declared = {part.name for part in parts if part.is_declared}
    alike = [
        name
        for name, head in heads.items()
        if name in declared or _is_identifier(head) or name.split()[0] in verbs | READING_WORDS
    ]
    return len(alike) >= LEAST_STEPS and len(alike) >= STEPS_SHARE * len(heads)


def _is_identifier(head: str) -> bool:
    return " " not in head.strip() and len(plain(head).split()) > 1


class ListedSteps:
    """The headings of a procedure that are no titles of sections, as names of steps.

    Attributes:
        parts: the part of each name, in the order of the procedure; of two with one name, the first.
        names: the names in plain words [steps].
        verbs: the first word of each name [steps].
    """

    def __init__(self, parts: Sequence[Part], encode: Encode) -> None:
        """`parts` has at least one such heading; `encode` returns the unit vectors [n, d] of n texts."""
        self.parts: dict[str, Part] = {}
        for part in parts:
            if part.name and not part.is_title:
                self.parts.setdefault(part.name, part)
        self.names, self._encode = list(self.parts), encode
        self.verbs = [(name.split() or [""])[0] for name in self.names]
        sentences = sorted({s.text for part in parts for s in part.sentences})
        vectors = encode(sentences) if sentences else np.zeros((0, 0))
        self._coverage = NameCoverage(sentences, vectors)
        self._mean = vectors.mean(0) if sentences else np.float64(0)
        self._vectors = encode(self.names)
        self._objects = encode([object_of(name) for name in self.names])
        self._times = Counter(word for name in self.names for word in words(name))
        self._reads = np.array([verb_of(name) in READING_WORDS for name in self.names], dtype=float)
        self._object_words = [words(n) - RECORD_WORDS - {verb_of(n)} for n in self.names]

    def position(self, name: str) -> int | None:
        """Return the index of a name in plain words, None where the procedure does not list it."""
        return self.names.index(name) if name in self.parts else None

    def with_tests_of_existence(self, sentences: Sequence[str], probabilities: np.ndarray) -> np.ndarray:
        """Return the probabilities [sentences, steps], where a sentence of existence asks for a test of the record.

        Of a step that tests a record and one that reads it, such a sentence asks for the test at least as likely.
        """
        found = probabilities.copy()
        for row, sentence in zip(found, sentences, strict=True):
            for test, record in self._tests if states_existence(sentence) else ():
                row[[test, record]] = max(row[test], row[record]), min(row[test], row[record])
        return found

    @cached_property
    def _tests(self) -> list[tuple[int, int]]:
        """Return the pairs of a step that tests a record and a step that reads it."""
        return [
            (n, self.names.index(record))
            for n, name in enumerate(self.names)
            for record in records_of(name, self.names)
        ]

    def features(self, head: str, sentences: Sequence[str], verb_shares: np.ndarray) -> np.ndarray:
        """Return the figures [sentences, steps, features] of the sentences of the part `head`, in plain words.

        `verb_shares` [steps] is what other industries say about the verbs.
        """
        shape = len(sentences), len(self.names)
        vectors = self._encode(sentences)
        cosine = self._centred(vectors, self._vectors)
        shared = self._coverage.shares(sentences, self.names)
        score = cosine + WORDS_WEIGHT * shared
        own = self.position(head)
        if own is not None:
            score[:, own] = _NO_SCORE
        best, second = _two_best(score)
        lead = score - np.where(score >= best, second, best)
        reads = np.broadcast_to(self._reads, shape)
        object_cosine = self._centred(vectors, self._objects)
        in_all, in_subject, in_rest, rarity = self._of_objects(sentences)
        columns = (
            np.ones(shape),
            cosine,
            shared,
            np.broadcast_to(verb_shares, shape),
            np.clip(lead, -1, 1),
            np.clip(shared - shared.max(1, keepdims=True), -1, 0),
            self._coverage.covered(sentences, self.names),
            score >= best,
            reads,
            in_all,
            in_subject,
            in_rest,
            rarity / 5,
            np.broadcast_to(np.array([not w for w in self._object_words]), shape),
            object_cosine,
            reads * in_all,
            reads * object_cosine,
            np.clip(_lead_over_reading(object_cosine, reads), -1, 1),
            np.clip(_lead_over_reading(in_all, reads), -1, 1),
        )
        return np.stack(columns, axis=-1).astype(float)

    def _centred(self, vectors: np.ndarray, names: np.ndarray) -> np.ndarray:
        return np.asarray(vectors @ names.T - names @ np.broadcast_to(self._mean, names.shape[1:]))

    def _of_objects(self, sentences: Sequence[str]) -> np.ndarray:
        """Return [4, sentences, steps] how the words of the objects stand in the sentences (see FEATURES)."""
        found = np.zeros((4, len(sentences), len(self.names)))
        for row, sentence in enumerate(sentences):
            subject = _SUBJECT.match(sentence)
            cut = len(subject[1]) if subject else 0
            texts = text_words(sentence), text_words(sentence[:cut]), text_words(sentence[cut:])
            for column, of_object in enumerate(self._object_words):
                total = self._rarity(of_object)
                for n, present in enumerate(texts):
                    found[n, row, column] = self._rarity(of_object & present) / total if total else 0.0
                found[3, row, column] = self._rarity(of_object & texts[0])
        return found

    def _rarity(self, of: frozenset[str]) -> float:
        return sum(math.log((len(self.names) + 1) / (self._times[word] + 0.5)) for word in sorted(of))


def _two_best(score: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the best and the second best score of each row, [rows, 1] each; of one score only, both are it."""
    ordered = np.sort(score, axis=1)
    return ordered[:, -1:], ordered[:, -2:][:, :1]


def _lead_over_reading(values: np.ndarray, reads: np.ndarray) -> np.ndarray:
    """Return the values less the largest of a reading name; a name that reads nothing counts as -1 there."""
    return np.asarray(values - np.max(values * reads + (reads - 1), axis=1, keepdims=True))


def is_stated(name: str, sentence: str) -> bool:
    """Return whether the sentence has the object of a step that reads something, word for word.

    An object of a single word is too common to say that the step is meant.
    """
    name = plain(name)
    stated = object_of(name)
    return (
        verb_of(name) in READING_WORDS
        and len(stated.split()) >= STATED_WORDS
        and f" {stated} " in f" {plain(sentence)} "
    )


def states_existence(sentence: str) -> bool:
    """Return whether the sentence says that there is a thing, or that there is none."""
    return not EXISTENCE_WORDS.isdisjoint(plain(sentence).split())


def records_of(check: str, names: Sequence[str]) -> list[str]:
    """Return the names of steps that read the record which the step `check` tests; none where it tests nothing."""
    if not CHECKING_WORDS.intersection(plain(check).split()):
        return []
    thing = _thing(check)
    return [
        name
        for name in names
        if verb_of(plain(name)) in READING_WORDS
        and not CHECKING_WORDS.intersection(plain(name).split())
        and thing
        and _thing(name) == thing
    ]


def are_of_one_record(name: str, other: str) -> bool:
    """Return whether two steps read or test one record: all words of what one is about stand in the other's.

    "has credit card" and "get credit card details" are, and so are "get balance" and "get owed balance".
    """
    if verb_of(plain(name)) not in READING_WORDS or verb_of(plain(other)) not in READING_WORDS:
        return False
    of_name, of_other = _thing(name), _thing(other)
    return bool(of_name and of_other) and (of_name <= of_other or of_other <= of_name)


def states_output(outputs: Sequence[str], sentence: str) -> bool:
    """Return whether the sentence has every word of one of the outputs of a step, so that it speaks of its result."""
    present = text_words(sentence)
    return any(output <= present for output in map(words, outputs) if output)


def counterparts(name: str, its_sentence: str, sentence: str, names: Sequence[str]) -> list[str]:
    """Return the steps of the same kind about the thing of another sentence.

    `its_sentence` asks for `name` and speaks of its thing, and `sentence` does not; it speaks of theirs instead.
    """
    thing, its_words, new_words = _thing(name), text_words(its_sentence), text_words(sentence)
    if not thing or not thing <= its_words or thing <= new_words:
        return []
    kind = words(name) - thing
    return [
        other
        for other in names
        if (of := _thing(other)) and of != thing and words(other) - of == kind and of <= new_words
    ]


def _thing(name: str) -> frozenset[str]:
    """Return the words of a name that say what the step is about."""
    return words(name) - RECORD_WORDS - READING_WORDS
