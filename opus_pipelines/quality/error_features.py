"""What may make a sample hard: features that hold or do not, the 24 of 2505.24189 (section 3.5) and those of any plan.

A feature is a function of a sample; it returns None where the sample does not say. Distributions add features of their
own under the entry point group `opus_pipelines.error_features`.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from opus_pipelines.core.registry import Registry, lacks
from opus_pipelines.language.word_stems import stem_set, stems, within

_VAGUE = re.compile(
    r"\b(?:some(?:thing|one|body|how)?|etc|and so on|appropriate(?:ly)?|relevant|as needed|whatever|maybe|probably|"
    r"stuff|things?|proper(?:ly)?)\b",
    re.IGNORECASE,
)
_NEGATED = re.compile(r"\b(?:not|no|never|nothing|don't|doesn't|without|except|instead|scratch)\b", re.IGNORECASE)
_DYNAMIC = re.compile(r"DYNAMIC|javascript:")
_REQUESTOR = re.compile(r"requested_(?:for|by)|caller|requester")
_NOTES = re.compile(r"work_notes|description=")
_LONG_PLAN, _LONG_TEXT, _SHORT_TEXT, _MANY_TOOLS, _LARGE_INPUT = 6, 60, 12, 40, 3
_STATED = 0.5  # share of a step's stems that the request must have for the step to be stated


@dataclass(frozen=True)
class Sample:
    """One request with what was wanted and how good the answer was.

    Attributes:
        id: its name.
        request: the text; None: not known.
        steps: names of the reference's steps, in order.
        links: pairs of steps of the reference; None: a sequence, or not known.
        flow: the reference as flow JSON, where it is a flow.
        scores: by name; higher is better.
        tags: what people say of the request.
        features: features that the source itself states.
        group: samples of one group are alike.
        tools: the number of names to choose from; None: not known.
    """

    id: str
    request: str | None
    steps: tuple[str, ...]
    scores: Mapping[str, float]
    links: frozenset[tuple[str, str]] | None = None
    flow: Mapping[str, Any] | None = None
    tags: tuple[str, ...] = ()
    features: Mapping[str, bool] = field(default_factory=dict)
    group: str = ""
    tools: int | None = None


@dataclass(frozen=True)
class ErrorFeature:
    """A feature: the theme that it belongs to, one line about it, and whether it holds for a sample."""

    theme: str
    about: str
    holds: Callable[[Sample], bool | None]


def _trigger(*kinds: str) -> Callable[[Sample], bool | None]:
    return lambda s: None if s.flow is None else (s.flow.get("trigger") or {}).get("type") in kinds


def _no_trigger(sample: Sample) -> bool | None:
    return None if sample.flow is None else not sample.flow.get("trigger")


def _step(pattern: str) -> Callable[[Sample], bool | None]:
    known = re.compile(pattern, re.IGNORECASE)
    return lambda s: any(known.search(name) for name in s.steps) if s.steps else None


def _input(test: Callable[[str, str], bool]) -> Callable[[Sample], bool | None]:
    def holds(sample: Sample) -> bool | None:
        if sample.flow is None:
            return None
        parts = [sample.flow.get("trigger") or {}, *(sample.flow.get("components") or ())]
        return any(test(str(i.get("name")), str(i.get("value"))) for part in parts for i in part.get("inputs") or ())

    return holds


def _most_inputs(sample: Sample) -> bool | None:
    if sample.flow is None:
        return None
    return any(len(c.get("inputs") or ()) >= _LARGE_INPUT for c in sample.flow.get("components") or ())


def _tag(name: str) -> Callable[[Sample], bool | None]:
    return lambda s: name in s.tags if s.tags else None


def _or_tag(name: str, test: Callable[[Sample], bool | None]) -> Callable[[Sample], bool | None]:
    return lambda s: True if name in s.tags else test(s)


def _request(test: Callable[[str], bool]) -> Callable[[Sample], bool | None]:
    return lambda s: None if s.request is None else test(s.request)


def _matching(pattern: re.Pattern[str]) -> Callable[[Sample], bool | None]:
    return _request(lambda text: pattern.search(text) is not None)


def _implicit(sample: Sample) -> bool | None:
    """Whether some step shares fewer than half of its stems with the request."""
    if sample.request is None or not sample.steps:
        return None
    given = tuple(stem_set(sample.request))
    return any(
        own and sum(within((s,), given) for s in own) < _STATED * len(own)
        for own in (stems(step.replace("_", " ")) for step in sample.steps)
    )


def _depth(sample: Sample) -> int | None:
    if sample.flow is None:
        return None
    parents = {c.get("order"): c.get("block") for c in sample.flow.get("components") or ()}
    deepest = 0
    for order in parents:
        seen, block = set[Any](), parents[order]
        while block is not None and block not in seen:
            seen.add(block)
            block = parents.get(block)
        deepest = max(deepest, len(seen))
    return deepest


def _nested(sample: Sample) -> bool | None:
    depth = _depth(sample)
    return None if depth is None else depth >= 2


def _tables(sample: Sample) -> bool | None:
    if sample.flow is None:
        return None
    parts = [sample.flow.get("trigger") or {}, *(sample.flow.get("components") or ())]
    named = {str(i.get("value")) for p in parts for i in p.get("inputs") or () if i.get("name") == "table"}
    return len(named) >= 2


def _branches(sample: Sample) -> bool | None:
    if sample.links is None:
        return None
    first = [a for a, _ in sample.links]
    return len(set(first)) < len(first)


def _count(most: int, of: Callable[[Sample], int | None]) -> Callable[[Sample], bool | None]:
    def holds(sample: Sample) -> bool | None:
        number = of(sample)
        return None if number is None else number >= most

    return holds


NOT_TRAINED, UNCOMMON, LOGIC, COMMON, DIFFICULT, SIZE = (
    "not in training",
    "uncommon",
    "flow logic",
    "common",
    "difficult",
    "size and shape",
)
BUILT_IN: dict[str, ErrorFeature | str] = {
    "trigger null": ErrorFeature(NOT_TRAINED, "the flow has no trigger", _no_trigger),
    "trigger service catalog": ErrorFeature(NOT_TRAINED, "a catalog item starts the flow", _trigger("service_catalog")),
    "get catalog variables": ErrorFeature(NOT_TRAINED, "reads catalog variables", _step("catalog_?variables")),
    "ask for approval": ErrorFeature(NOT_TRAINED, "asks for approval", _step("approv")),
    "encoded query": ErrorFeature(
        NOT_TRAINED, "an input is a query of two conditions or more", _input(lambda n, v: "^" in v.removesuffix("^EQ"))
    ),
    "dynamic value": ErrorFeature(
        NOT_TRAINED, "a value is dynamic (ME, TODAY)", _input(lambda n, v: bool(_DYNAMIC.search(v)))
    ),
    "trigger SLA": ErrorFeature(UNCOMMON, "a service level starts the flow", _trigger("sla_task")),
    "trigger conditional": ErrorFeature(
        UNCOMMON, "the trigger has a condition", lambda s: None if s.flow is None else _has_condition(s.flow)
    ),
    "trigger weekly": ErrorFeature(UNCOMMON, "starts every week", _trigger("weekly")),
    "requestor input": ErrorFeature(
        UNCOMMON,
        "an input is who asked",
        _input(lambda n, v: bool(_REQUESTOR.search(v))),
    ),
    "DOUNTIL": ErrorFeature(LOGIC, "repeats until", _step(r"^DOUNTIL$")),
    "PARALLEL": ErrorFeature(LOGIC, "steps at the same time", _step(r"^PARALLEL$")),
    "FOREACH": ErrorFeature(LOGIC, "a loop", _step(r"^FOREACH$")),
    "TRY CATCH": ErrorFeature(LOGIC, "catches errors", _step(r"^(?:TRY|CATCH)$")),
    "message": ErrorFeature(COMMON, "sends a Teams or Slack message", _step("teams|slack")),
    "e-mail": ErrorFeature(COMMON, "sends an e-mail", _step("e_?mail")),
    "log": ErrorFeature(COMMON, "writes a log entry", _step(r"^log$")),
    "work notes": ErrorFeature(
        COMMON,
        "sets work notes or a description",
        _input(lambda n, v: n == "note" or bool(_NOTES.search(v))),
    ),
    "complex inputs": ErrorFeature(COMMON, "a step has three inputs or more", _most_inputs),
    "out of scope": ErrorFeature(DIFFICULT, "asks for what no step does", _tag("out of scope")),
    "ambiguous": ErrorFeature(
        DIFFICULT,
        "tagged ambiguous, or has vague words",
        _or_tag("ambiguous", _matching(_VAGUE)),
    ),
    "implicit actions": ErrorFeature(
        DIFFICULT,
        "tagged, or a step shares less than half of its words with the request",
        _or_tag("implicit", _implicit),
    ),
    "misleading": ErrorFeature(
        DIFFICULT,
        "tagged, or says what is not to be done",
        _or_tag("misleading", _matching(_NEGATED)),
    ),
    "incorrect or incomplete": ErrorFeature(DIFFICULT, "tagged so", _tag("incomplete")),
    "many steps": ErrorFeature(SIZE, "six steps or more", _count(_LONG_PLAN, lambda s: len(s.steps) or None)),
    "one step": ErrorFeature(SIZE, "a single step", lambda s: len(s.steps) == 1 if s.steps else None),
    "nested": ErrorFeature(SIZE, "blocks inside blocks", _nested),
    "branches": ErrorFeature(SIZE, "a step leads to several", _branches),
    "conditional steps": ErrorFeature(SIZE, "has IF", _step(r"^(?:IF|ELSEIF|ELSE)$")),
    "repeated step": ErrorFeature(
        SIZE, "a step stands twice", lambda s: len(set(s.steps)) < len(s.steps) if s.steps else None
    ),
    "several tables": ErrorFeature(SIZE, "two tables or more", _tables),
    "many tools": ErrorFeature(SIZE, "forty names or more to choose from", _count(_MANY_TOOLS, lambda s: s.tools)),
    "long request": ErrorFeature(
        SIZE, "sixty words or more", _count(_LONG_TEXT, lambda s: None if s.request is None else len(s.request.split()))
    ),
    "short request": ErrorFeature(SIZE, "fewer than twelve words", _request(lambda t: len(t.split()) < _SHORT_TEXT)),
}


def _has_condition(flow: Mapping[str, Any]) -> bool:
    trigger = flow.get("trigger") or {}
    return any(i.get("name") == "condition" and i.get("value") for i in trigger.get("inputs") or ())


ERROR_FEATURES: Registry[ErrorFeature] = Registry(
    "error_features", BUILT_IN, lambda name, value: lacks(value, "theme", "about", "holds")
)


def matrix(samples: Sequence[Sample]) -> dict[str, list[bool | None]]:
    """Returns for each feature whether it holds, sample by sample; features that a source states are among them."""
    found = {name: [feature.holds(s) for s in samples] for name, feature in ERROR_FEATURES.entries().items()}
    for name in dict.fromkeys(name for sample in samples for name in sample.features):
        own = found.get(name, [None] * len(samples))
        found[name] = [sample.features.get(name, known) for sample, known in zip(samples, own, strict=True)]
    return found


def theme_of(name: str) -> str:
    """Returns the theme of a feature; "stated" for one that only a source states."""
    return ERROR_FEATURES.get(name).theme if name in ERROR_FEATURES.names() else "stated"
