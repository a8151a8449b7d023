"""The words of all activities of a catalogue as arrays, so that a clause is compared with all of them at once."""

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from opus_pipelines.flows.from_text.activities import ActivityCatalogue, acronyms, joined
from opus_pipelines.flows.from_text.applications import ApplicationNames
from opus_pipelines.flows.text.clauses import Clause
from opus_pipelines.flows.text.operations import UNKNOWN, lemma_of_verb, operations_of_verb
from opus_pipelines.language.word_stems import EMPTY, stem

if TYPE_CHECKING:
    import numpy as np

_WORD = re.compile(r"[^\W_]+(?:'s)?")
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
        self._any = _places((a.object_stems,) for a in activities)
        self._described = _places((a.described_stems[-1:], ["".join(a.described_stems[-2:])]) for a in activities)
        self._shorts = _places(
            (acronyms(list(a.described_stems)), (word[:_SHORT] for word in a.described_stems if len(word) > _SHORT))
            for a in activities
        )
        self._operations = _places(([a.operation],) for a in activities)
        self._things = [(activity.application, activity.object) for activity in activities]
        self._applications = _places(([a.application],) for a in activities)
        self._proper = _places((names.proper_names(activity),) for activity in activities)

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

        known = [(self._column[word], self._rarity[word]) for word in words.content if word in self._column]
        total = sum(self._rarity.get(word, 1.0) for word in words.content)
        if not known:
            return np.zeros(self._size, np.float32)
        columns, weights = zip(*known, strict=True)
        return self._has[:, columns] @ np.asarray(weights, np.float32) / total

    def object_match(self, words: ClauseWords) -> "np.ndarray":
        """Returns (activities, 4): head is the object, head is in it, head is as described, and the object's excess."""
        import numpy as np

        exact = self._marked(self._last.get(head, ()) for head in words.heads)
        exact = np.maximum(
            exact, self._marked(self._described.get(h, ()) for h in words.heads if h not in self._rarity)
        )
        some = self._marked(self._any.get(head, ()) for head in words.heads)
        told = self._marked(self._described.get(head, ()) for head in words.heads)
        told = np.maximum(told, self._marked([self._shorts.get(words.short, ())] if words.short else []))
        columns = [self._column[word] for word in words.all | words.heads if word in self._column]
        covered = np.maximum(self._objects[:, columns].sum(axis=1), self._told[:, columns].sum(axis=1))
        return np.stack([exact, some, told, 1.0 - covered], axis=1)

    def operation_match(self, words: ClauseWords) -> "np.ndarray":
        """Returns (activities, 3): the verb's usual operation, a possible one, another one; 0 where it is unknown."""
        import numpy as np

        usual = self._marked([self._operations.get(words.operations[0], ())] if words.operations else [])
        possible = self._marked(self._operations.get(name, ()) for name in words.operations)
        known = 1.0 - self._marked([self._operations.get(UNKNOWN, ())])
        other = known - possible if words.operations else np.zeros(self._size, np.float32)
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

    def excess_of_id(self, words: ClauseWords) -> "np.ndarray":
        """Returns the share of the object's words in the id that a clause does not have, weighted by rarity."""
        columns = [self._column[word] for word in words.all | words.heads if word in self._column]
        found: np.ndarray = 1.0 - self._objects[:, columns].sum(axis=1)
        return found

    def by_application(self, weights: Mapping[str, float]) -> "np.ndarray":
        """Returns for each activity the weight of its application; 0 for one that states none."""
        import numpy as np

        values = np.zeros(self._size, np.float32)
        for application, weight in weights.items():
            if application:
                values[list(self._applications.get(application, ()))] = weight
        return values

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


def singular_of(word: str) -> str:
    """Returns a noun in lower case without the s of the plural."""
    lower = word.lower()
    return lower[:-1] if lower.endswith("s") and not lower.endswith("ss") else lower


def _places(groups: Iterable[Sequence[Iterable[str]]]) -> Mapping[str, list[int]]:
    """Returns for each word the places of the activities that have it in one of their groups."""
    found: dict[str, list[int]] = defaultdict(list)
    for place, words in enumerate(groups):
        for word in {word for group in words for word in group}:
            found[word].append(place)
    return found
