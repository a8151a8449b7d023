"""What speaks for an activity being the one that a clause means: one row of features for each activity.

The features are figures in [0, 1] or small whole numbers, each with a weight. The words of all
activities stand in arrays, so that a clause is compared with all of them at once.
"""

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING

from opus_pipelines.flows.from_text.activities import (
    Activity,
    ActivityCatalogue,
    ApplicationNames,
    acronyms,
    joined,
    split_words,
)
from opus_pipelines.flows.text.clauses import Clause
from opus_pipelines.flows.text.operations import UNKNOWN, lemma_of_verb, operations_of_verb
from opus_pipelines.language.word_stems import EMPTY, stem

if TYPE_CHECKING:
    import numpy as np

    from opus_pipelines.language.embedding.encoder import TextEncoder


_WORD = re.compile(r"[^\W_]+(?:'s)?")
# Operations that cannot be taken back, each with the verbs that ask for it and for nothing else.
_STRICT: Mapping[str, frozenset[str]] = {
    "delete": frozenset("delete remove cancel erase destroy drop discard eliminate trash kill".split()),
    "purge": frozenset("purge empty clear flush clean".split()),
    "redact": frozenset(["redact"]),
    "send": frozenset(
        "send email mail text message notify inform write forward alert tell remind ping announce share".split()
    ),
    "publish": frozenset("publish post send push notify broadcast announce tell alert".split()),
}
_MONEY = frozenset("pay transfer refund reimburse charge wire disburse".split())
# Verbs of talk: what they make is a message, whatever stands behind them.
SPEAKING = frozenset("email mail notify inform alert remind message text ping tell announce".split())
_LETTERS = frozenset(map(stem, "mail email message text sms notification note alert".split()))
_EVIDENCE = ("application", "carried_application", "application_in_utterance", "application_in_prior")
_OWN_OBJECT = ("object_head", "object_described", "object_of_verb")
_QUALIFIERS = frozenset(
    ["new", "another", "existing", "latest", "available", "corresponding", "first", "second", "last", "called", "named"]
)
MAKING = frozenset(["create", "send", "upload", "publish", "put", "add", "append"])
# What verbs of communication make where they name no object: "notify the team in Slack".
_IMPLIED = {
    **dict.fromkeys("notify inform alert ping tell remind announce broadcast post text share".split(), ("message",)),
    **dict.fromkeys(["email", "mail"], ("email", "mail", "message")),
    **dict.fromkeys(["schedule", "meet"], ("event", "meeting")),
}
# What people call the objects of business applications, with the usual words of catalogues.
_SYNONYMS = {
    "meeting": ("event",),
    "appointment": ("event",),
    "repo": ("repository",),
    "person": ("user",),
    "people": ("person", "user"),
    "staff": ("employee",),
    "worker": ("employee",),
    "client": ("customer",),
    "document": ("file",),
    "picture": ("file",),
    "bill": ("invoice",),
    "vendor": ("supplier",),
    "dm": ("im",),
    "msg": ("message",),
    "deal": ("opportunity",),
}
_SHORT = 4  # letters of the longest short form, such as "pr" or "acct"


@dataclass(frozen=True)
class NounPhrase:
    """The words of a clause's object before the first preposition; `head` is the stem of its noun."""

    words: tuple[str, ...]

    @property
    def head(self) -> str:
        """The stem of the last word; "" where there is no word."""
        return stem(self.words[-1]) if self.words else ""


@dataclass(frozen=True)
class ClauseWords:
    """The stems of a clause without its verb: in order, with joined neighbours, and those of the head noun."""

    content: tuple[str, ...]
    all: frozenset[str]
    heads: frozenset[str]
    short: str
    operations: tuple[str, ...]
    verb: str = ""

    @classmethod
    def of(cls, clause: Clause, phrase: NounPhrase) -> "ClauseWords":
        """Returns the words of a clause with this object."""
        verb = clause.verb.lower()
        words = [word.lower() for word in _WORD.findall(clause.text) if word.lower() not in _QUALIFIERS]
        content = [stem(w.removesuffix("'s")) for w in words if w not in EMPTY and w != verb]
        stems_of_phrase = [stem(word) for word in phrase.words]
        heads = frozenset([phrase.head, *joined(stems_of_phrase[-2:])]) if phrase.head else frozenset[str]()
        heads |= frozenset(stem(other) for word in phrase.words[-1:] for other in _SYNONYMS.get(singular_of(word), ()))
        short = phrase.head if len(phrase.head) <= _SHORT else ""
        everything = frozenset(content) | joined(content)
        return cls(
            tuple(dict.fromkeys(content)), everything, heads, short, operations_of_verb(verb), lemma_of_verb(verb)
        )


class ActivityIndex:
    """Arrays over the activities of a catalogue, in its order."""

    def __init__(self, catalogue: ActivityCatalogue, names: ApplicationNames) -> None:
        import numpy as np

        activities = catalogue.activities
        self.place = {activity.id: i for i, activity in enumerate(activities)}
        self._size, self._rarity = len(activities), catalogue.rarity
        self._column = {word: i for i, word in enumerate(sorted(self._rarity))}
        self._has = np.zeros((len(activities), len(self._column)), np.float32)
        for i, activity in enumerate(activities):
            self._has[i, [self._column[word] for word in activity.stems if word in self._column]] = 1.0
        self._objects = self._weighted([activity.object_stems for activity in activities])
        self._told = self._weighted([activity.described_stems for activity in activities])
        self._last = _places((a.object_stems[-1:], ["".join(a.object_stems)]) for a in activities)
        self._described = _places((a.described_stems[-1:], ["".join(a.described_stems[-2:])]) for a in activities)
        self._shorts = _places(
            (acronyms(list(a.described_stems)), (word[:_SHORT] for word in a.described_stems if len(word) > _SHORT))
            for a in activities
        )
        self._operations = _places(([a.operation],) for a in activities)
        self._things = [(activity.application, activity.object) for activity in activities]
        self._applications = _places(([a.application],) for a in activities)
        self._proper = _places((names.proper_names(activity),) for activity in activities)
        self._first = _places(([lemma_of_verb(w) for w in _first_words(activity)],) for activity in activities)

    def _weighted(self, words: Sequence[Sequence[str]]) -> "np.ndarray":
        """An array (activities, stems) with the share that each stem has of the rarity of its activity's words."""
        import numpy as np

        table = np.zeros((self._size, len(self._column)), np.float32)
        for i, stems in enumerate(words):
            for word in stems:
                if word in self._column:
                    table[i, self._column[word]] = self._rarity[word]
        total = table.sum(axis=1, keepdims=True)
        return np.divide(table, total, out=np.zeros_like(table), where=total > 0)

    def _marked(self, groups: Iterable[Sequence[int]]) -> "np.ndarray":
        import numpy as np

        marks = np.zeros(self._size, np.float32)
        for places in groups:
            marks[list(places)] = 1.0
        return marks

    def coverage(self, words: ClauseWords) -> "np.ndarray":
        """Returns the share of the clause's words, weighted by rarity, that each activity has."""
        import numpy as np

        weighted = [(self._column[word], self._rarity[word]) for word in words.content if word in self._column]
        total = sum(self._rarity.get(word, 1.0) for word in words.content)
        if not weighted:
            return np.zeros(self._size, np.float32)
        columns, weights = zip(*weighted, strict=True)
        return self._has[:, columns] @ np.asarray(weights, np.float32) / total

    def object_match(self, words: ClauseWords) -> "np.ndarray":
        """Returns (activities, 3): head is the object, head is as described, and the object's excess."""
        import numpy as np

        exact = self._marked(self._last.get(head, ()) for head in words.heads)
        exact = np.maximum(
            exact, self._marked(self._described.get(h, ()) for h in words.heads if h not in self._rarity)
        )
        told = self._marked(self._described.get(head, ()) for head in words.heads)
        told = np.maximum(told, self._marked([self._shorts.get(words.short, ())] if words.short else []))
        columns = [self._column[word] for word in words.all | words.heads if word in self._column]
        covered = np.maximum(self._objects[:, columns].sum(axis=1), self._told[:, columns].sum(axis=1))
        return np.stack([exact, told, 1.0 - covered], axis=1)

    def operation_match(self, words: ClauseWords) -> "np.ndarray":
        """Returns (activities, 3): the verb's usual operation, a possible one, another one; 0 where it is unknown."""
        import numpy as np

        usual = self._marked([self._operations.get(words.operations[0], ())] if words.operations else [])
        possible = self._marked(self._operations.get(name, ()) for name in words.operations)
        has_operation = 1.0 - self._marked([self._operations.get(UNKNOWN, ())])
        other = has_operation - possible if words.operations else np.zeros(self._size, np.float32)
        return np.stack([usual, possible, other], axis=1)

    def object_of_verb(self, words: ClauseWords) -> "np.ndarray":
        """Returns 1 for each activity that makes what the verb names: a message of "notify", a comment of "comment"."""
        own = stem(words.verb)
        implied = {stem(thing) for thing in _IMPLIED.get(words.verb, ())}
        alike = {word for word in self._last if word == own or (len(own) > 5 and word[:6] == own[:6])}
        made = self._marked(self._last.get(word, ()) for word in implied | (alike if words.verb else set()))
        return made * self.operations_in(MAKING)

    def operations_in(self, operations: frozenset[str]) -> "np.ndarray":
        """Returns 1 for each activity with one of these operations."""
        return self._marked(self._operations.get(name, ()) for name in operations)

    def by_application(self, weights: Mapping[str, float]) -> "np.ndarray":
        """Returns for each activity the weight of its application; 0 for one that states none."""
        import numpy as np

        values = np.zeros(self._size, np.float32)
        for application, weight in weights.items():
            if application:
                values[list(self._applications.get(application, ()))] = weight
        return values

    def risks(self, verb: str) -> "tuple[np.ndarray, np.ndarray]":
        """Returns 1 for each activity that deletes, sends, publishes or pays, and 1 where the verb asks for that."""
        import numpy as np

        agreed = [operation for operation, verbs in _STRICT.items() if verb in verbs]
        money = self._marked(self._first.get(word, ()) for word in _MONEY)
        risky = np.maximum(self.operations_in(frozenset(_STRICT)), money)
        own = self._marked([self._first.get(verb, ())] if verb in _MONEY else [])
        return risky, np.maximum(self.operations_in(frozenset(agreed)), own)

    def letters(self) -> "np.ndarray":
        """Returns 1 for each activity that makes or sends a message."""
        made = self._marked(
            [*(self._last.get(w, ()) for w in _LETTERS), *(self._described.get(w, ()) for w in _LETTERS)]
        )
        return made * self.operations_in(MAKING) + (1 - made) * self.operations_in(frozenset(["send", "publish"]))

    def siblings(self, used: Iterable[str]) -> "np.ndarray":
        """Returns 1 for each activity of the same application and object as one of these activities, itself apart."""
        import numpy as np

        things = {self._things[self.place[activity]] for activity in used if activity in self.place}
        marks = np.asarray([float(thing in things) for thing in self._things], np.float32)
        marks[[self.place[activity] for activity in used if activity in self.place]] = 0.0
        return marks

    def described(self, words: ClauseWords) -> "np.ndarray":
        """Returns 1 for each activity with a proper name in its description that the clause has."""
        return self._marked(self._proper.get(word, ()) for word in words.all)


def _first_words(activity: Activity) -> list[str]:
    """The first words of an id and of a description, which are their verbs."""
    return [split_words(activity.id)[:1], activity.description.lower().split()[:1]][activity.application != ""]


def singular_of(word: str) -> str:
    """Returns a noun in lower case without the s of the plural."""
    lower = word.lower()
    return lower[:-1] if lower.endswith("s") and not lower.endswith("ss") else lower


def _places(groups: Iterable[Sequence[Iterable[str]]]) -> Mapping[str, list[int]]:
    """Returns for each word the places of the activities that have it in one of their groups."""
    places: dict[str, list[int]] = defaultdict(list)
    for place, words in enumerate(groups):
        for word in {word for group in words for word in group}:
            places[word].append(place)
    return places


# The features with their weights, each with the sign that its meaning has
WEIGHTS = {
    "cosine": 7.8,  # of the clause and the activity's text
    "cosine_in_context": 4.2,  # of the clause with the application that is carried over
    "coverage": 3.5,  # share of the clause's words that the activity has, weighted by rarity
    "object_head": 1,  # whether the clause's head noun is the last word of the object
    "object_described": 1.4,  # whether the head noun is the described object, or a short form of it
    "object_excess": -1.5,  # share of the object's words that the clause and its context do not have
    "usual_operation": 1.3,  # whether the verb usually asks for the activity's operation
    "possible_operation": 1.4,  # whether the verb may ask for it
    "other_operation": -2.4,  # whether the verb is known and asks for others
    "application": 3.4,  # how distinctly the clause names the application
    "other_application": -2.5,  # how distinctly it names another one
    "carried_application": 3,  # it names none, and the application is the last one that was used
    "application_in_utterance": 1.6,  # the application is named elsewhere in the utterance
    "application_in_prior": 2,  # it names none, and the flow that is edited uses the application
    "used_before": -1.8,  # the activity is a step already
    "sibling_of_step": 2,  # a step of the flow that is edited does something else to the same object
    "object_of_verb": 2.4,  # the verb names the object that the activity makes: "comment on it", "notify the team"
    "like_learnt": 2.1,  # how near the nearest clause is that was learnt for this activity
}
FEATURES = tuple(WEIGHTS)
_OBJECTS = ("object_head", "object_described", "object_excess")
_OPERATIONS = ("usual_operation", "possible_operation", "other_operation")
_NEAR = 0.4  # the cosine from which a learnt clause counts
_PLACES = frozenset(
    (
        "to from in on of for at by with within into about using via through under as inside across between "
        "against regarding called named when where that which who if so before after"
    ).split()
)
# What verbs make that have it as no object: "comment on the issue", "tag the case".
_NOMINAL = {
    "comment": "comment",
    "reply": "reply",
    "respond": "reply",
    "subscribe": "subscription",
    "post": "message",
    "tag": "tag",
    "label": "label",
}
_LIGHT = frozenset(
    (
        "copy list set number detail details kind type all some each one information info content contents new entry "
        "version series couple group page status"
    ).split()
)


@dataclass(frozen=True)
class Query:
    """A step clause and what is known where it stands.

    `carried` is the application that was used last, `named` those that the utterance names with their distinctness,
    `prior` those of the flow that is edited, and `used` the activities of the steps before.
    """

    clause: Clause
    carried: str = ""
    named: Mapping[str, float] = field(default_factory=dict)
    prior: frozenset[str] = frozenset()
    used: frozenset[str] = frozenset()


@lru_cache(maxsize=4096)
def noun_phrase(clause: Clause) -> NounPhrase:
    """Returns the object of a clause: "create a copy of the zendesk ticket" → zendesk, ticket."""
    words = list(clause.words if clause.shares_verb else clause.words[1:])
    verb = clause.verb.lower()
    if verb in _NOMINAL and words and (words[0].lower() in _PLACES or verb in ("tag", "label")):
        return NounPhrase((_NOMINAL[verb],))
    if words and words[0].lower() in ("out", "up", "back", "off", "down", "on", "in", "at", "for", "into", "to"):
        words = words[1:]
    for _ in range(2):
        end = next((i for i, word in enumerate(words) if word.lower() in _PLACES), len(words))
        phrase = [word for word in words[:end] if word.lower() not in EMPTY and _WORD.fullmatch(word.replace("-", ""))]
        light = not phrase or phrase[-1].lower() in _LIGHT
        if light and end < len(words) and words[end].lower() in ("of", "for", "from", "in", "to"):
            rest = [word.lower() for word in words[end + 1 :]]
            if phrase and words[end].lower() != "of":
                break
            if rest:
                words = words[end + 1 :]
                continue
        break
    return NounPhrase(tuple(phrase))


class FeatureTable:
    """Computes the features of all activities of a catalogue for a query, as a float32 array (activities, features)."""

    def __init__(self, catalogue: ActivityCatalogue, encoder: "TextEncoder") -> None:
        self.catalogue, self.encoder = catalogue, encoder
        self.names = ApplicationNames(catalogue)
        self._vectors: dict[str, np.ndarray] = {}
        self._learnt: tuple[list[str], list[int]] = ([], [])

    def with_examples(self, examples: Sequence[tuple[str, str]]) -> "FeatureTable":
        """Returns a table that knows clauses with their activities, for the feature `like_learnt`."""
        place = self._index.place
        learnt = [(text, place[activity]) for text, activity in examples if activity in place]
        table = copy(self)
        known = [text for text, _ in learnt], [at for _, at in learnt]
        table.__dict__.update(texts=self.texts, _index=self._index, _learnt=known)
        return table

    @cached_property
    def texts(self) -> "np.ndarray":
        """The unit vectors of the activities' texts, in the catalogue's order."""
        return self.encoder.encode([activity.text for activity in self.catalogue.activities])

    @cached_property
    def _index(self) -> "ActivityIndex":
        return ActivityIndex(self.catalogue, self.names)

    @property
    def places(self) -> Mapping[str, int]:
        """The place of each activity in the catalogue's order."""
        return self._index.place

    def vectors(self, texts: Sequence[str]) -> "np.ndarray":
        """Returns the unit vectors of texts; each text is encoded once."""
        import numpy as np

        missing = [text for text in dict.fromkeys(texts) if text not in self._vectors]
        if missing:
            self._vectors.update(zip(missing, self.encoder.encode(missing), strict=True))
        return np.stack([self._vectors[text] for text in texts])

    def encode(self, queries: Sequence[Query]) -> None:
        """Encodes the texts of many queries at once, so that `rows` finds their vectors."""
        self.vectors([text for query in queries for text in self._texts_of(query)] or ["nothing"])

    def _texts_of(self, query: Query) -> list[str]:
        clause = query.clause
        carried = query.carried if not _best(self.names.named(clause.text)) else ""
        in_context = f"{clause.text} in {self.names.shown(carried)}" if carried else clause.text
        return [clause.text, in_context]

    def rows(self, query: Query) -> "np.ndarray":
        """Returns the features of every activity, float32 (activities, features), in the catalogue's order."""
        import numpy as np

        clause, index = query.clause, self._index
        text, context = self.vectors(self._texts_of(query))
        words = ClauseWords.of(clause, noun_phrase(clause))
        named = self.names.named(clause.text)
        best = _best(named)
        table = np.zeros((len(self.catalogue.activities), len(FEATURES)), np.float32)
        columns = {name: table[:, place] for place, name in enumerate(FEATURES)}
        columns["cosine"][:] = self.texts @ text
        columns["cosine_in_context"][:] = self.texts @ context
        columns["coverage"][:] = index.coverage(words)
        own = np.maximum(index.by_application(named), index.described(words))
        columns["application"][:] = own
        columns["other_application"][:] = np.maximum(0.0, best - own)
        columns["application_in_utterance"][:] = index.by_application(query.named)
        if not best:
            columns["carried_application"][:] = index.by_application({query.carried: 1.0})
            columns["application_in_prior"][:] = index.by_application(dict.fromkeys(query.prior, 1.0))
        columns["used_before"][[index.place[used] for used in query.used if used in index.place]] = 1.0
        columns["sibling_of_step"][:] = index.siblings(query.used)
        columns["object_of_verb"][:] = index.object_of_verb(words)
        columns["like_learnt"][:] = self._like_learnt(text)
        for names, values in ((_OBJECTS, index.object_match(words)), (_OPERATIONS, index.operation_match(words))):
            for name, value in zip(names, values.T, strict=True):
                columns[name][:] = value
        return table

    def allowed(self, query: Query) -> "np.ndarray":
        """Returns which activities a clause may mean at all, as booleans in the catalogue's order.

        What deletes, sends, publishes or pays needs a verb that asks for that and an object that is its own; a verb of
        talk makes a message. What sends may also be told by its application: "send the report with Outlook".
        """
        import numpy as np

        clause, index = query.clause, self._index
        rows, verb = self.rows(query), lemma_of_verb(clause.verb)
        phrase = noun_phrase(clause)
        risky, asked = index.risks(verb)
        own = rows[:, [FEATURES.index(name) for name in _OWN_OBJECT]].max(axis=1)
        sends = index.letters()
        told = verb in SPEAKING or phrase.head in _LETTERS
        own = np.maximum(own, sends * np.maximum(rows[:, FEATURES.index("application")] >= 0.5, float(told)))
        fits = (risky == 0) | ((asked > 0) & (own > 0))
        speaks = verb in SPEAKING
        fits &= (rows[:, FEATURES.index("other_operation")] == 0) | (speaks & (sends > 0))  # 0: the verb is unknown
        if speaks:  # who is told says nothing of how
            fits &= np.maximum(sends, rows[:, FEATURES.index("object_of_verb")]) > 0
            fits &= rows[:, [FEATURES.index(name) for name in _EVIDENCE]].max(axis=1) > 0
        return fits

    def _like_learnt(self, vector: "np.ndarray") -> "np.ndarray":
        """How near the nearest learnt clause of each activity is, from 0 at `_NEAR` to 1."""
        import numpy as np

        near = np.zeros(len(self.catalogue.activities), np.float32)
        texts, places = self._learnt
        if texts:
            cosines = self.vectors(texts) @ vector
            np.maximum.at(near, places, np.clip((cosines - _NEAR) / (1 - _NEAR), 0.0, 1.0).astype(np.float32))
        return near


def _best(named: Mapping[str, float]) -> float:
    return max(named.values(), default=0.0)
