"""The activities that a flow may call: a catalogue file, what an activity's id and description say of it, and the names
of applications that a text mentions.
"""

import json
import math
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from pathlib import Path

from lemminflect import getAllLemmas

from opus_pipelines.core.errors import OpusError
from opus_pipelines.flows.text.clauses import Clause, clauses_of
from opus_pipelines.flows.text.operations import UNKNOWN, operation_of, operation_of_verb
from opus_pipelines.language.word_stems import EMPTY, stem

MAX_ACTIVITIES = 20_000  # of one catalogue
MAX_DESCRIPTION = 4_000  # characters; more is left out
_ID = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,399}")
_VERSIONED = re.compile(r"(?P<head>.+?)__(?P<version>\d+_\d+_\d+)__(?P<tail>.+)")
HTTP_NAME = re.compile(r"(?:get|post|put|patch|delete)[A-Z]\w*")
_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+")
_TEXT_WORD = re.compile(r"[^\W_]+")
_PLACE = re.compile(r"\b(?:in|from|to|on|of|for|at|by|using|with|into|across|that|which|so)\b", re.IGNORECASE)


class CatalogueError(OpusError):
    """A catalogue of activities that cannot be used; the message names the entry and what to do."""


def is_activity_id(name: str) -> bool:
    """Tells whether a name may be the id of an activity: letters, digits and underscores, not the user task's name."""
    return bool(_ID.fullmatch(name)) and name != "user_task"


def split_words(name: str) -> list[str]:
    """Returns the words of an identifier in lower case: `PullRequest_model` → pull, request, model."""
    return [word.lower() for word in _WORD.findall(name)]


def content_stems(text: str) -> list[str]:
    """Returns the stems of the words of a text that carry meaning, with repetitions, in order."""
    return [stem(word) for word in _TEXT_WORD.findall(text) if word.casefold() not in EMPTY]


@dataclass(frozen=True)
class Activity:
    """One activity. `application` and `object` are words that its id states, or "" where it states none.

    An id of the form `<Application>_<Object>__<d>_<d>_<d>__<operation>_<Object>` (Flow-Bench) states all of them; of
    any other id the words are taken whole as the object, and the operation from the first verb of the description.
    """

    id: str
    description: str
    application: str
    object: str
    operation: str
    version: str

    @cached_property
    def application_stems(self) -> frozenset[str]:
        """The stems of the application's words."""
        return frozenset(stem(word) for word in split_words(self.application) if word not in EMPTY)

    @cached_property
    def object_stems(self) -> tuple[str, ...]:
        """The stems of the object's words, in order: the words of the id, or of the description where the id has the
        name of a HTTP resource.
        """
        named = self.object.removesuffix("_model")
        if named and not HTTP_NAME.fullmatch(named):
            words = [stem(word) for word in split_words(named)]
            return tuple(word for word in words if word not in self.application_stems) or tuple(words)
        return self.described_stems

    @cached_property
    def described_stems(self) -> tuple[str, ...]:
        """The stems of the object as the description names it: its words after the verb, up to a preposition."""
        words = content_stems(_PLACE.split(self.description.partition(" ")[2])[0])
        return tuple(word for word in words if word not in self.application_stems)

    @cached_property
    def text(self) -> str:
        """The text that is encoded: the application's words, and the description."""
        described = self.description if self.description != self.id else " ".join(split_words(self.id))
        return f"{' '.join(split_words(self.application))}: {described}" if self.application else described

    @cached_property
    def stems(self) -> frozenset[str]:
        """All stems of the id and the description, with the acronyms and the joined pairs of neighbouring words."""
        words = [*split_words(self.application), *split_words(self.object), *_TEXT_WORD.findall(self.description)]
        plain = {stem(word) for word in words if word.casefold() not in EMPTY}
        described = content_stems(self.description)
        return frozenset(plain | joined(described) | acronyms(described))


def joined(words: list[str]) -> set[str]:
    """Returns neighbouring words written as one: pull, request → pullrequest."""
    return {one + other for one, other in pairwise(words)}


def acronyms(words: list[str]) -> set[str]:
    """Returns the initial letters of two and three neighbouring words: pull, request → pr."""
    initials = set()
    for size in (2, 3):
        for start in range(len(words) - size + 1):
            initials.add("".join(word[0] for word in words[start : start + size]))
    return initials


def activity_of(name: str, description: str) -> Activity:
    """Returns the activity with what its id and description say."""
    described = description.strip()[:MAX_DESCRIPTION] or name
    match = _VERSIONED.fullmatch(name)
    if match is None:
        words = split_words(name)
        operation = operation_of_verb(words[0]) if words else UNKNOWN
        if operation == UNKNOWN:
            operation = operation_of(described)
        rest = words[1:] if words and operation_of_verb(words[0]) != UNKNOWN else words
        return Activity(name, described, "", "_".join(rest), operation, "")
    head, tail = match["head"], match["tail"]
    parts = head.split("_")
    shared = next((n for n in range(len(parts) - 1, 0, -1) if tail.endswith("_" + "_".join(parts[-n:]))), 0)
    thing = "_".join(parts[-shared:]) if shared else tail.rpartition("_")[2]
    application = "_".join(parts[:-shared]) if shared else head
    verb = tail.removesuffix(f"_{thing}")
    operation = operation_of_verb(re.split(r"with|_", verb)[0].lower())
    if operation == UNKNOWN or HTTP_NAME.fullmatch(verb):
        operation = operation_of(described)
    if operation == UNKNOWN:
        operation = operation_of_verb(split_words(verb)[0]) if split_words(verb) else UNKNOWN
    return Activity(name, described, application, thing, operation, match["version"].replace("_", "."))


@dataclass(frozen=True)
class ActivityCatalogue:
    """The activities by id, in the order of their file."""

    activities: tuple[Activity, ...]

    @cached_property
    def by_id(self) -> Mapping[str, Activity]:
        """The activities by their id."""
        return {activity.id: activity for activity in self.activities}

    @cached_property
    def rarity(self) -> Mapping[str, float]:
        """For each stem the logarithm of (activities / activities that have it), at least 0."""
        counts = Counter(word for activity in self.activities for word in activity.stems)
        return {word: math.log(1 + len(self.activities) / count) for word, count in counts.items()}


def catalogue_of(entries: Iterable[Mapping[str, object]]) -> ActivityCatalogue:
    """Returns the catalogue of entries with `id` and `description`.

    Raises CatalogueError where an id is no identifier, occurs twice, or there are none or too many.
    """
    by_id: dict[str, Activity] = {}
    for number, entry in enumerate(entries, 1):
        name, description = entry.get("id"), entry.get("description") or ""
        if not isinstance(name, str) or not _ID.fullmatch(name):
            raise CatalogueError(f"activity {number} has the id {name!r}; an id is letters, digits and underscores")
        if not isinstance(description, str):
            raise CatalogueError(f"the description of activity {name} is no text; state a sentence, or leave it out")
        if name in by_id:
            raise CatalogueError(f"the activity {name} occurs twice; remove one of its entries")
        if name == "user_task":
            raise CatalogueError("user_task is the name of the user task; give the activity another id")
        if len(by_id) >= MAX_ACTIVITIES:
            raise CatalogueError(f"the catalogue has more than {MAX_ACTIVITIES:,} activities; leave some out")
        by_id[name] = activity_of(name, description)
    if not by_id:
        raise CatalogueError("the catalogue has no activities; state at least one entry with `id` and `description`")
    return ActivityCatalogue(tuple(by_id.values()))


def catalogue_of_tasks(tasks: Iterable[tuple[str, str]]) -> ActivityCatalogue:
    """Returns the catalogue of tasks of the Work Knowledge Graph, given as (title, description), with ids from titles.

    Titles that would have the same id get numbers, in the order of the tasks. A task without a letter is left out.
    """
    entries: dict[str, dict[str, object]] = {}
    for title, description in tasks:
        words = "_".join(re.findall(r"[A-Za-z0-9]+", title))[:200]
        if not any(c.isalpha() for c in words):
            continue
        name = base = words if words[0].isalpha() else f"task_{words}"
        number = 2
        while name in entries:
            name, number = f"{base}_{number}", number + 1
        text = title if not description or description == title else f"{title}: {description}"
        entries[name] = {"id": name, "description": text}
    return catalogue_of(entries.values())


def read_catalogue(path: Path) -> ActivityCatalogue:
    """Reads a JSON file with a list of {"id", "description"}. Raises CatalogueError where it is none."""
    try:
        value = json.loads(path.read_text("utf-8"))
    except OSError as error:
        raise CatalogueError(f"{path} cannot be read: {error.strerror}") from None
    except (ValueError, RecursionError) as error:
        raise CatalogueError(f"{path} is no JSON ({error}); it must be a list of objects") from None
    if isinstance(value, dict):
        value = value.get("actions")
    if not isinstance(value, list) or not all(isinstance(entry, dict) for entry in value):
        raise CatalogueError(f"{path} must be a list of objects with `id` and `description`")
    return catalogue_of(value)


_NAME_WORD = re.compile(r"[^\W_]+")
_LONGEST = 5  # words of a name
_ORDINARY = 0.3  # what one ordinary word of a longer name counts ("teams" of Microsoft Teams)
_ACRONYM = 0.7
DISTINCT = 0.5  # the weight from which a name means its application


class ApplicationNames:
    """The names of a catalogue's applications. A name that several applications share counts less for each."""

    def __init__(self, catalogue: ActivityCatalogue) -> None:
        self._catalogue = catalogue

    @cached_property
    def _weights(self) -> Mapping[str, Mapping[str, float]]:
        """For each name, written as one word in lower case: applications and weights."""
        by_name: dict[str, dict[str, float]] = defaultdict(dict)
        for application in dict.fromkeys(a.application for a in self._catalogue.activities if a.application):
            for name, weight in _names(application.split("_")).items():
                by_name[name][application] = max(weight, by_name[name].get(application, 0.0))
        return {
            name: {application: weight / (1 + 0.5 * (len(weights) - 1)) for application, weight in weights.items()}
            for name, weights in by_name.items()
        }

    @cached_property
    def _described(self) -> Mapping[str, frozenset[str]]:
        """For each activity, the stems of proper names that its description has beside those of its id."""
        common = Counter(
            stem(word)
            for activity in self._catalogue.activities
            for word in set(_NAME_WORD.findall(activity.description))
            if word.islower()
        )
        names = {}
        for activity in self._catalogue.activities:
            own = activity.application_stems | {stem(word) for word in split_words(activity.object)}
            words = _NAME_WORD.findall(activity.description)[1:] if activity.description != activity.id else []
            proper = {stem(word) for word in words if word[0].isupper()}
            names[activity.id] = frozenset(word for word in proper - own if not common[word])
        return names

    @cached_property
    def spoken(self) -> frozenset[str]:
        """The names that distinctly mean an application, each in lower case and written as one word."""
        distinct = {name for name, weights in self._weights.items() if max(weights.values()) >= DISTINCT}
        return frozenset(distinct.union(*self._described.values()))

    def clauses(self, text: str) -> list[Clause]:
        """Returns the clauses of a text; a name such as "Finance and Operations" is not split."""
        return clauses_of(text, self.spoken)

    def proper_names(self, activity: Activity) -> frozenset[str]:
        """Returns the stems of proper names that only the description of the activity states: "Outlook"."""
        return self._described[activity.id]

    def named(self, text: str) -> dict[str, float]:
        """Returns the applications that a text names, with a distinctness in (0, 1]."""
        words = [word.lower() for word in _NAME_WORD.findall(text)]
        applications: dict[str, float] = {}
        for size in range(1, _LONGEST + 1):
            for start in range(len(words) - size + 1):
                window = words[start : start + size]
                name = "".join(window)
                weights = self._weights.get(name) or (self._weights.get(name.removesuffix("s")) if size == 1 else None)
                for application, weight in (weights or {}).items():
                    longer = min(1.0, weight * (1 + 0.3 * (size - 1)))
                    applications[application] = max(applications.get(application, 0.0), longer)
        return applications

    def positions(self, text: str) -> list[tuple[int, str]]:
        """Returns (place of the word, application) for each distinct mention, in order."""
        words = [word.lower() for word in _NAME_WORD.findall(text)]
        places = []
        for start in range(len(words)):
            for size in range(min(_LONGEST, len(words) - start), 0, -1):
                weights = self._weights.get("".join(words[start : start + size]), {})
                best = max(weights, key=lambda application: weights[application], default=None)
                if best is not None and weights[best] >= 0.5:
                    places.append((start, best))
                    break
        return places

    def shown(self, application: str) -> str:
        """Returns the application's words for a text."""
        return " ".join(split_words(application))


def _is_ordinary(word: str) -> bool:
    return len(word) <= 2 or bool(getAllLemmas(word.lower()))


def _names(parts: list[str]) -> dict[str, float]:
    """Returns the names of an application and what each counts."""
    names: dict[str, float] = {}
    for start in range(len(parts)):
        for end in range(start + 1, len(parts) + 1):
            words = parts[start:end]
            if words[0].lower() in EMPTY - {"to"} or words[-1].lower() in EMPTY - {"do"}:
                continue
            name = "".join(words).lower()
            if len(words) == len(parts):
                weight = 1.0
            elif len(words) > 1:
                weight = 0.9
            elif words[0].isdigit() or (_is_ordinary(words[0]) and not words[0].isupper()):
                weight = _ORDINARY
            else:
                weight = 0.9
            names[name] = max(weight, names.get(name, 0.0))
    letters = [part[0].lower() for part in parts if part.lower() not in EMPTY]
    for start in range(len(letters)):
        for end in range(start + 3, len(letters) + 1):
            names.setdefault("".join(letters[start:end]), _ACRONYM)
    return names
