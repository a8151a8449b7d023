"""Which applications a text names, and how distinctly: full names, distinctive words, acronyms, and described names."""

import re
from collections import Counter, defaultdict
from collections.abc import Mapping
from functools import cached_property

from lemminflect import getAllLemmas

from opus_pipelines.flows.from_text.activities import Activity, ActivityCatalogue, split_words
from opus_pipelines.flows.text.clauses import Clause, clauses_of
from opus_pipelines.language.word_stems import EMPTY, stem

_WORD = re.compile(r"[^\W_]+")
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
        found: dict[str, dict[str, float]] = defaultdict(dict)
        for application in dict.fromkeys(a.application for a in self._catalogue.activities if a.application):
            for name, weight in _names(application.split("_")).items():
                found[name][application] = max(weight, found[name].get(application, 0.0))
        return {
            name: {application: weight / (1 + 0.5 * (len(weights) - 1)) for application, weight in weights.items()}
            for name, weights in found.items()
        }

    @cached_property
    def _described(self) -> Mapping[str, frozenset[str]]:
        """For each activity, the stems of proper names that its description has beside those of its id."""
        common = Counter(
            stem(word)
            for activity in self._catalogue.activities
            for word in set(_WORD.findall(activity.description))
            if word.islower()
        )
        names = {}
        for activity in self._catalogue.activities:
            own = activity.application_stems | {stem(word) for word in split_words(activity.object)}
            words = _WORD.findall(activity.description)[1:] if activity.description != activity.id else []
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
        words = [word.lower() for word in _WORD.findall(text)]
        found: dict[str, float] = {}
        for size in range(1, _LONGEST + 1):
            for start in range(len(words) - size + 1):
                window = words[start : start + size]
                name = "".join(window)
                weights = self._weights.get(name) or (self._weights.get(name.removesuffix("s")) if size == 1 else None)
                for application, weight in (weights or {}).items():
                    longer = min(1.0, weight * (1 + 0.3 * (size - 1)))
                    found[application] = max(found.get(application, 0.0), longer)
        return found

    def positions(self, text: str) -> list[tuple[int, str]]:
        """Returns (place of the word, application) for each distinct mention, in order."""
        words = [word.lower() for word in _WORD.findall(text)]
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
