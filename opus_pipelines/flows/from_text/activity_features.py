"""What speaks for an activity being the one that a clause means: one row of features for each activity.

The features are figures in [0, 1] or small whole numbers; `activity_ranker` learns their weights.
"""

import re
from collections.abc import Mapping, Sequence
from copy import copy
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING

from opus_pipelines.flows.from_text.activities import Activity, ActivityCatalogue
from opus_pipelines.flows.from_text.activity_index import MAKING, ActivityIndex, ClauseWords, NounPhrase
from opus_pipelines.flows.from_text.applications import ApplicationNames
from opus_pipelines.flows.text.clauses import Clause
from opus_pipelines.language.word_stems import EMPTY

if TYPE_CHECKING:
    import numpy as np

    from opus_pipelines.language.embedding.encoder import TextEncoder

FEATURES = (
    "cosine",  # of the clause and the activity's text
    "cosine_in_context",  # of the clause with the application that is carried over
    "cosine_of_objects",  # of the clause's noun phrase and the activity's object
    "coverage",  # share of the clause's words that the activity has, weighted by rarity
    "object_head",  # whether the clause's head noun is the last word of the object
    "object_word",  # whether the head noun is any word of the object
    "object_described",  # whether the head noun is the described object, or a short form of it
    "object_excess",  # share of the object's words that the clause and its context do not have
    "usual_operation",  # whether the verb usually asks for the activity's operation
    "possible_operation",  # whether the verb may ask for it
    "other_operation",  # whether the verb is known and asks for others
    "application",  # how distinctly the clause names the application
    "other_application",  # how distinctly it names another one
    "carried_application",  # it names none, and the application is the last one that was used
    "application_in_utterance",  # the application is named elsewhere in the utterance
    "application_in_prior",  # it names none, and the flow that is edited uses the application
    "application_learnt",  # how often flows of the learning set use the application
    "activity_learnt",  # how often they use the activity
    "used_before",  # the activity is a step already
    "sibling_of_step",  # a step of the flow that is edited does something else to the same object
    "object_of_verb",  # the verb names the object that the activity makes: "comment on it", "notify the team"
    "made_new",  # the clause speaks of something new, and the activity makes something
    "retrieved_whole",  # it speaks of all things or a list, and the activity retrieves
    "object_excess_of_id",  # share of the words of the object in the id that the clause does not have
    "like_learnt",  # how near the nearest clause is that was learnt for this activity
)
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
    [
        "copy",
        "list",
        "set",
        "number",
        "detail",
        "details",
        "kind",
        "type",
        "all",
        "some",
        "each",
        "one",
        "information",
        "info",
        "content",
        "contents",
        "new",
        "entry",
        "version",
        "series",
        "couple",
        "group",
        "page",
        "status",
    ]
)
_WORD = re.compile(r"[^\W_]+(?:'s)?")


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


@dataclass(frozen=True)
class Habits:
    """How often the flows of the learning set use each activity and each application, as shares of the flows."""

    activities: Mapping[str, float] = field(default_factory=dict)
    applications: Mapping[str, float] = field(default_factory=dict)


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

    def __init__(self, catalogue: ActivityCatalogue, encoder: "TextEncoder", habits: Habits | None = None) -> None:
        self.catalogue, self.encoder = catalogue, encoder
        self.habits = habits or Habits()
        self.names = ApplicationNames(catalogue)
        self._vectors: dict[str, np.ndarray] = {}
        self._learnt: tuple[list[str], list[int]] = ([], [])
        self.leaves_out = False

    def with_examples(self, examples: Sequence[tuple[str, str]]) -> "FeatureTable":
        """Returns a table that knows clauses with their activities, for the feature `like_learnt`."""
        place = self._index.place
        known = [(text, place[activity]) for text, activity in examples if activity in place]
        return self._copy(self.habits, ([text for text, _ in known], [at for _, at in known]))

    def with_habits(self, habits: Habits) -> "FeatureTable":
        """Returns a table with other habits that shares the vectors."""
        return self._copy(habits, self._learnt)

    def _copy(self, habits: Habits, learnt: tuple[list[str], list[int]]) -> "FeatureTable":
        table = copy(self)
        table.__dict__.update(texts=self.texts, _objects=self._objects, _index=self._index)
        table.__dict__.pop("_habits", None)
        table.__dict__.update(habits=habits, _learnt=learnt)
        return table

    @cached_property
    def texts(self) -> "np.ndarray":
        """The unit vectors of the activities' texts, in the catalogue's order."""
        return self.encoder.encode([activity.text for activity in self.catalogue.activities])

    @cached_property
    def _objects(self) -> "np.ndarray":
        return self.encoder.encode([" ".join(_object_words(activity)) for activity in self.catalogue.activities])

    @cached_property
    def _index(self) -> "ActivityIndex":
        return ActivityIndex(self.catalogue, self.names)

    @cached_property
    def _habits(self) -> "tuple[np.ndarray, np.ndarray]":
        """The shares of each activity's application and of the activity itself."""
        import numpy as np

        activities = self.catalogue.activities
        applications = [self.habits.applications.get(activity.application, 0.0) for activity in activities]
        return np.asarray(applications), np.asarray([self.habits.activities.get(a.id, 0.0) for a in activities])

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
        return [clause.text, in_context, " ".join(noun_phrase(clause).words) or clause.text]

    def rows(self, query: Query) -> "np.ndarray":
        """Returns the features of every activity, float32 (activities, features), in the catalogue's order."""
        import numpy as np

        clause, index = query.clause, self._index
        text, context, thing = self.vectors(self._texts_of(query))
        words = ClauseWords.of(clause, noun_phrase(clause))
        named = self.names.named(clause.text)
        best = _best(named)
        table = np.zeros((len(self.catalogue.activities), len(FEATURES)), np.float32)
        table[:, 0] = self.texts @ text
        table[:, 1] = self.texts @ context
        table[:, 2] = self._objects @ thing
        table[:, 3] = index.coverage(words)
        table[:, 4:8] = index.object_match(words)
        table[:, 8:11] = index.operation_match(words)
        own = np.maximum(index.by_application(named), index.described(words))
        table[:, 11] = own
        table[:, 12] = np.maximum(0.0, best - own)
        table[:, 14] = index.by_application(query.named)
        if not best:
            table[:, 13] = index.by_application({query.carried: 1.0})
            table[:, 15] = index.by_application(dict.fromkeys(query.prior, 1.0))
        table[:, 16], table[:, 17] = self._habits
        table[[index.place[used] for used in query.used if used in index.place], 18] = 1.0
        table[:, 19] = index.siblings(query.used)
        table[:, 20] = index.object_of_verb(words)
        lower = [word.lower() for word in clause.words[:5]]
        making = index.operations_in(MAKING)
        table[:, 21] = making if "new" in lower or "another" in lower else 0.0
        whole = (
            not {"all", "every"}.isdisjoint(lower) or lower[1:4] == ["a", "list", "of"] or lower[1:3] == ["list", "of"]
        )
        table[:, 22] = index.operations_in(frozenset(["retrieve"])) if whole else 0.0
        table[:, 23] = index.excess_of_id(words)
        table[:, 24] = self._like_learnt(clause.text, text)
        return table

    def _like_learnt(self, text: str, vector: "np.ndarray") -> "np.ndarray":
        """How near the nearest learnt clause of each activity is, from 0 at `_NEAR` to 1; while the weights are learnt,
        a clause is not compared with itself.
        """
        import numpy as np

        near = np.zeros(len(self.catalogue.activities), np.float32)
        texts, places = self._learnt
        if texts:
            cosines = self.vectors(texts) @ vector
            if self.leaves_out:
                cosines[[i for i, other in enumerate(texts) if other == text]] = 0.0
            np.maximum.at(near, places, np.clip((cosines - _NEAR) / (1 - _NEAR), 0.0, 1.0).astype(np.float32))
        return near


def _best(named: Mapping[str, float]) -> float:
    return max(named.values(), default=0.0)


def _object_words(activity: Activity) -> list[str]:
    return list(activity.described_stems or activity.object_stems) or [activity.id]
