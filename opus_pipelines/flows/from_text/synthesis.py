"""Makes step clauses for activities by a seeded grammar, so that the ranker learns from the whole catalogue.

The sentences come from the catalogue's own descriptions and the verbs of the operation classes, and from nothing else.
"""

import random
import re
from collections.abc import Sequence
from dataclasses import dataclass

from opus_pipelines.flows.from_text.activities import Activity, ActivityCatalogue, split_words
from opus_pipelines.flows.from_text.activity_features import Query
from opus_pipelines.flows.text.clauses import STEP, Clause

_VERBS = {
    "retrieve": ("retrieve", "get", "fetch", "list", "find", "look up", "check", "pull"),
    "create": ("create", "add", "make", "open", "submit", "post", "set up"),
    "update": ("update", "change", "modify", "edit", "adjust"),
    "delete": ("delete", "remove", "cancel", "erase"),
    "send": ("send", "write"),
    "upsert": ("upsert", "upload", "put", "store"),
    "upload": ("upload", "attach", "add"),
}
_DETERMINERS = {
    "retrieve": ("all the", "all", "the", "every", "the latest", "my", "available", "existing"),
    "create": ("a", "a new", "new", "another", "the", "one", "a corresponding"),
}
_OTHERS = ("the", "an existing", "the old", "this", "a")
_PLACES = re.compile(r"\s(?:in|from|to|on|of|for|at|by|using|with|into|across|that|which|so)\s")


@dataclass(frozen=True)
class Example:
    """A query with the activity that is meant."""

    query: Query
    activity: str


def examples(catalogue: ActivityCatalogue, count: int, seed: int) -> list[Example]:
    """Returns `count` clauses for activities drawn at random; the same seed gives the same clauses."""
    draw = random.Random(seed)
    applications = sorted({activity.application for activity in catalogue.activities})
    found = []
    for _ in range(count):
        activity = draw.choice(catalogue.activities)
        found.append(_example(activity, applications, draw))
    return found


def shown_object(activity: Activity) -> list[str]:
    """Returns the words of the object as the description writes them, or as the id does."""
    if activity.description != activity.id:
        words = _PLACES.split(activity.description.partition(" ")[2].strip(". "))[0].split()
        plain = [word for word in words if word.lower() not in ("a", "an", "the", "all", "new", "details")]
        if 1 <= len(plain) <= 3:
            return [word.strip(",\"'.") for word in plain]
    return split_words(activity.object.removesuffix("_model"))[-3:]


def _example(activity: Activity, applications: Sequence[str], draw: random.Random) -> Example:
    verb = draw.choice(_VERBS.get(activity.operation, (activity.operation,)))
    determiners = _DETERMINERS.get(activity.operation, _OTHERS)
    thing = shown_object(activity)
    if draw.random() < 0.3 and len(thing) > 1:
        thing = thing[-1:]
    application = _shown(activity.application, draw)
    place = draw.random()
    words = [*verb.split(), *draw.choice(determiners).split()]
    named, carried = {activity.application: 1.0}, ""
    other = draw.choice(applications)
    if not application or place < 0.25:  # the application is carried over from an earlier clause
        carried = activity.application
        words += thing
        named = {activity.application: 1.0, other: 1.0} if draw.random() < 0.5 else named
    elif place < 0.6:
        words += [*application, *thing]
        carried = other
    else:
        words += [*thing, draw.choice(("in", "from", "on", "using", "to")), *application]
        carried = other if draw.random() < 0.7 else ""
    prior = frozenset([activity.application]) if draw.random() < 0.3 else frozenset()
    clause = Clause(STEP, tuple(words), verb=words[0])
    return Example(Query(clause, carried, named, prior), activity.id)


def _shown(application: str, draw: random.Random) -> list[str]:
    parts = [part for part in application.split("_") if part]
    if len(parts) > 1 and draw.random() < 0.5:
        parts = parts[-1:] if parts[0] in ("Microsoft", "Amazon", "AWS", "Google", "IBM") else parts[:1]
    return [part.lower() if draw.random() < 0.5 else part for part in parts]
