#!/usr/bin/env python3
"""Where generation fails: the effect of each feature of a sample on a score, with intervals and a correction.

    PYTHONPATH=. .venv/bin/python benchmarks/errors.py SAMPLES.jsonl [--score NAME] [--gold TASKSET [--history TASKSET]]

SAMPLES is a JSONL file, one sample a line: {"id", "scores": {name: number}, "request"?, "gold"?: {"plan": [names],
"links"?} or flow JSON, "tags"?, "features"?: {name: true or false}, "group"?}. `opus evaluate --samples` writes such
files. With --gold, SAMPLES has predictions: {"id" or "task_key", "plan" or "actions": [names], "links"?}.

A feature is a function of a sample that holds or does not: the 24 of 2505.24189 (section 3.5) and those of any plan. It
returns None where the sample does not say.

The effect is the difference of the mean scores of samples with and without a feature. Its 95 % interval is a bootstrap
over groups of alike samples; its p-value a permutation test of group means (scipy), corrected over all features by the
procedure of Benjamini and Hochberg. An effect is an association: features hang together, and none need be a cause.
"""

import argparse
import re
import sys
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from opus_pipelines.core.errors import InputError
from opus_pipelines.core.json_lines import read_records
from opus_pipelines.language.word_stems import stem_set, stems, within
from opus_pipelines.quality.task_set import Item, TaskSet, read_task_set
from opus_pipelines.workflow.metrics.plan_scores import Plan, plan_scores

_VAGUE = re.compile(
    r"\b(?:some(?:thing|one|body|how)?|etc|and so on|appropriate(?:ly)?|relevant|as needed|whatever|maybe|probably|"
    r"stuff|things?|proper(?:ly)?)\b",
    re.IGNORECASE,
)
_NEGATED = re.compile(r"\b(?:not|no|never|nothing|don't|doesn't|without|except|instead|scratch)\b", re.IGNORECASE)
_DYNAMIC = re.compile(r"DYNAMIC|javascript:")
_REQUESTOR = re.compile(r"requested_(?:for|by)|caller|requester")
_NOTES = re.compile(r"work_notes|description=")
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


_Holds = Callable[[Sample], bool | None]


def _of_flow(test: Callable[[Mapping[str, Any]], bool]) -> _Holds:
    return lambda s: None if s.flow is None else test(s.flow)


def _of_steps(test: Callable[[Sequence[str]], bool]) -> _Holds:
    return lambda s: test(s.steps) if s.steps else None


def _of_request(test: Callable[[str], bool], tag: str = "") -> _Holds:
    return lambda s: True if tag in s.tags else None if s.request is None else test(s.request)


def _tag(name: str) -> _Holds:
    return lambda s: name in s.tags if s.tags else None


def _trigger(*kinds: str) -> _Holds:
    return _of_flow(lambda flow: (flow.get("trigger") or {}).get("type") in kinds)


def _step(pattern: str) -> _Holds:
    known = re.compile(pattern, re.IGNORECASE)
    return _of_steps(lambda steps: any(known.search(name) for name in steps))


def _inputs(flow: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Returns name and value of all inputs of the trigger and the components."""
    parts = [flow.get("trigger") or {}, *(flow.get("components") or ())]
    return [(str(i.get("name")), str(i.get("value"))) for part in parts for i in part.get("inputs") or ()]


def _input(test: Callable[[str, str], object]) -> _Holds:
    return _of_flow(lambda flow: any(test(name, value) for name, value in _inputs(flow)))


def _has_condition(flow: Mapping[str, Any]) -> bool:
    trigger = flow.get("trigger") or {}
    return any(i.get("name") == "condition" and i.get("value") for i in trigger.get("inputs") or ())


def _implicit(sample: Sample) -> bool | None:
    """Whether some step shares fewer than half of its stems with the request."""
    if "implicit" in sample.tags:
        return True
    if sample.request is None or not sample.steps:
        return None
    given = tuple(stem_set(sample.request))
    return any(
        own and sum(within((s,), given) for s in own) < _STATED * len(own)
        for own in (stems(step.replace("_", " ")) for step in sample.steps)
    )


def _nested(flow: Mapping[str, Any]) -> bool:
    """Whether a component stands in a block that stands in a block."""
    parents = {c.get("order"): c.get("block") for c in flow.get("components") or ()}
    return any(block is not None and parents.get(block) is not None for block in parents.values())


_FEATURES: dict[str, dict[str, tuple[str, _Holds]]] = {  # by theme: what it is about, and whether it holds
    "not in training": {
        "trigger null": ("the flow has no trigger", _of_flow(lambda flow: not flow.get("trigger"))),
        "trigger service catalog": ("a catalog item starts the flow", _trigger("service_catalog")),
        "get catalog variables": ("reads catalog variables", _step("catalog_?variables")),
        "ask for approval": ("asks for approval", _step("approv")),
        "encoded query": (
            "an input is a query of two conditions or more",
            _input(lambda name, value: "^" in value.removesuffix("^EQ")),
        ),
        "dynamic value": ("a value is dynamic (ME, TODAY)", _input(lambda name, value: _DYNAMIC.search(value))),
    },
    "uncommon": {
        "trigger SLA": ("a service level starts the flow", _trigger("sla_task")),
        "trigger conditional": ("the trigger has a condition", _of_flow(_has_condition)),
        "trigger weekly": ("starts every week", _trigger("weekly")),
        "requestor input": ("an input is who asked", _input(lambda name, value: _REQUESTOR.search(value))),
    },
    "flow logic": {
        "DOUNTIL": ("repeats until", _step(r"^DOUNTIL$")),
        "PARALLEL": ("steps at the same time", _step(r"^PARALLEL$")),
        "FOREACH": ("a loop", _step(r"^FOREACH$")),
        "TRY CATCH": ("catches errors", _step(r"^(?:TRY|CATCH)$")),
    },
    "common": {
        "message": ("sends a Teams or Slack message", _step("teams|slack")),
        "e-mail": ("sends an e-mail", _step("e_?mail")),
        "log": ("writes a log entry", _step(r"^log$")),
        "work notes": (
            "sets work notes or a description",
            _input(lambda name, value: name == "note" or _NOTES.search(value)),
        ),
        "complex inputs": (
            "a step has three inputs or more",
            _of_flow(lambda flow: any(len(c.get("inputs") or ()) >= 3 for c in flow.get("components") or ())),
        ),
    },
    "difficult": {
        "out of scope": ("asks for what no step does", _tag("out of scope")),
        "ambiguous": (
            "tagged ambiguous, or has vague words",
            _of_request(lambda t: bool(_VAGUE.search(t)), "ambiguous"),
        ),
        "implicit actions": ("tagged, or a step shares less than half of its words with the request", _implicit),
        "misleading": (
            "tagged, or says what is not to be done",
            _of_request(lambda text: bool(_NEGATED.search(text)), "misleading"),
        ),
        "incorrect or incomplete": ("tagged so", _tag("incomplete")),
    },
    "size and shape": {
        "many steps": ("six steps or more", _of_steps(lambda steps: len(steps) >= 6)),
        "one step": ("a single step", _of_steps(lambda steps: len(steps) == 1)),
        "nested": ("blocks inside blocks", _of_flow(_nested)),
        "branches": (
            "a step leads to several",
            lambda s: None if s.links is None else len({a for a, _ in s.links}) < len(s.links),
        ),
        "conditional steps": ("has IF", _step(r"^(?:IF|ELSEIF|ELSE)$")),
        "repeated step": ("a step stands twice", _of_steps(lambda steps: len(set(steps)) < len(steps))),
        "several tables": (
            "two tables or more",
            _of_flow(lambda flow: len({value for name, value in _inputs(flow) if name == "table"}) >= 2),
        ),
        "many tools": ("forty names or more to choose from", lambda s: None if s.tools is None else s.tools >= 40),
        "long request": ("sixty words or more", _of_request(lambda text: len(text.split()) >= 60)),
        "short request": ("fewer than twelve words", _of_request(lambda text: len(text.split()) < 12)),
    },
}
ERROR_FEATURES: dict[str, ErrorFeature] = {
    name: ErrorFeature(theme, about, holds) for theme, own in _FEATURES.items() for name, (about, holds) in own.items()
}


def matrix(samples: Sequence[Sample]) -> dict[str, list[bool | None]]:
    """Returns for each feature whether it holds, sample by sample; features that a source states are among them."""
    found = {name: [feature.holds(s) for s in samples] for name, feature in ERROR_FEATURES.items()}
    for name in dict.fromkeys(name for sample in samples for name in sample.features):
        own = found.get(name, [None] * len(samples))
        found[name] = [sample.features.get(name, known) for sample, known in zip(samples, own, strict=True)]
    return found


def theme_of(name: str) -> str:
    """Returns the theme of a feature; "stated" for one that only a source states."""
    return ERROR_FEATURES[name].theme if name in ERROR_FEATURES else "stated"


LEAST = 3  # samples with a feature, and without it, from which an effect is computed
DRAWS = 2_000
LEVEL = 0.05  # of the false discovery rate at which an effect is called clear
_WORST = 5
_LOGIC = "flowlogic"


@dataclass(frozen=True)
class Effect:
    """The effect of a feature on a score; `q` is the corrected p-value. `worst` are ids of samples with the feature."""

    feature: str
    theme: str
    n: int
    mean: float
    mean_without: float
    difference: float
    low: float
    high: float
    p: float
    q: float
    worst: tuple[str, ...]

    @property
    def is_clear(self) -> bool:
        """Whether the corrected p-value is below the level."""
        return self.q < LEVEL


@dataclass(frozen=True)
class Analysis:
    """The effects on one score, the worst first; means of themes over the union of their samples; rare features."""

    score: str
    n: int
    mean: float
    effects: tuple[Effect, ...]
    themes: Mapping[str, tuple[int, float]]
    too_few: Mapping[str, int]


def analyse(samples: Sequence[Sample], score: str) -> Analysis:
    """Returns the effects of all features on a score. Raises InputError where fewer than two samples have the score."""
    scored = [sample for sample in samples if score in sample.scores]
    if len(scored) < 2:
        names = sorted({name for sample in samples for name in sample.scores})
        raise InputError(f"{len(scored)} samples have the score {score!r}; the scores are {', '.join(names) or 'none'}")
    values = np.array([sample.scores[score] for sample in scored])
    groups = [sample.group or sample.id for sample in scored]
    found: list[tuple[str, np.ndarray, np.ndarray]] = []
    too_few: dict[str, int] = {}
    themes: dict[str, set[int]] = {}
    for name, holds in matrix(scored).items():
        known = np.array([h is not None for h in holds])
        has = np.array([bool(h) for h in holds])
        themes.setdefault(theme_of(name), set()).update(np.flatnonzero(has).tolist())
        if min((has & known).sum(), (~has & known).sum()) < LEAST:
            too_few[name] = int(has.sum())
        else:
            found.append((name, has, known))
    raw = [_effect(values, groups, has, known) for _, has, known in found]
    corrected = _corrected([p for *_, p in raw])
    effects = []
    for (name, has, known), (difference, low, high, p), q in zip(found, raw, corrected, strict=True):
        place = np.flatnonzero(has)
        order = sorted(place.tolist(), key=lambda n: (values[n], scored[n].id))[:_WORST]
        means = float(values[has].mean()), float(values[~has & known].mean())
        worst = tuple(scored[n].id for n in order)
        effects.append(Effect(name, theme_of(name), len(place), *means, difference, low, high, p, q, worst))
    effects.sort(key=lambda e: (e.difference, e.feature))
    unions = {t: (len(own), float(values[sorted(own)].mean())) for t, own in themes.items() if own}
    return Analysis(score, len(scored), float(values.mean()), tuple(effects), unions, too_few)


def _effect(
    values: np.ndarray, groups: Sequence[str], has: np.ndarray, known: np.ndarray
) -> tuple[float, float, float, float]:
    """The difference of means, its interval over groups, and the p-value of a permutation test of group means."""
    from scipy.stats import permutation_test

    difference = float(values[has].mean() - values[~has & known].mean())
    place = {group: n for n, group in enumerate(dict.fromkeys(groups))}
    of = np.array([place[group] for group in groups])
    sums = np.zeros((len(place), 4))
    for column, chosen in ((0, has), (2, ~has & known)):
        np.add.at(sums[:, column], of[chosen], values[chosen])
        np.add.at(sums[:, column + 1], of[chosen], 1)
    drawn = np.random.default_rng(0).integers(0, len(place), (DRAWS, len(place)))
    totals = sums[drawn].sum(1)
    totals = totals[(totals[:, 1] > 0) & (totals[:, 3] > 0)]
    low, high = np.percentile(totals[:, 0] / totals[:, 1] - totals[:, 2] / totals[:, 3], [2.5, 97.5])
    own = [sums[:, c][sums[:, c + 1] > 0] / sums[:, c + 1][sums[:, c + 1] > 0] for c in (0, 2)]
    if np.ptp(np.concatenate(own)) == 0.0 or min(map(len, own)) < 2:
        return difference, float(low), float(high), 1.0
    seeded = np.random.default_rng(0)
    test = permutation_test(own, _difference, vectorized=True, n_resamples=DRAWS, rng=seeded)
    return difference, float(low), float(high), float(test.pvalue)


def _difference(one: np.ndarray, other: np.ndarray, axis: int) -> np.ndarray:
    return np.asarray(one.mean(axis) - other.mean(axis))


def _corrected(pvalues: Sequence[float]) -> list[float]:
    from scipy.stats import false_discovery_control

    return [float(q) for q in false_discovery_control(list(pvalues))] if pvalues else []


def read_samples(path: Path) -> tuple[list[Sample], list[str]]:
    """Returns the samples of a JSONL file, and the lines that cannot be used with their reasons.

    A line is {"id", "scores": {name: number}, "request"?, "gold"?: {"plan": [names], "links"?: [[a, b]]} or flow JSON,
    "tags"?: [texts], "features"?: {name: bool}, "group"?, "tools"?: number}. Raises InputError where
    no line can be used.
    """

    def parse(row: Any, _: str) -> tuple[str, Sample]:
        sample = sample_of(row)
        return sample.id, sample

    return read_records(path, parse)


def sample_of(row: Any) -> Sample:
    """Returns a sample of a parsed line. Raises ValueError with what is wrong."""
    if not isinstance(row, dict) or row.get("id") in (None, ""):
        raise ValueError('it has no "id"')
    scores = row.get("scores")
    if not isinstance(scores, dict) or not all(v is None or _is_number(v) for v in scores.values()):
        raise ValueError('it has no "scores", an object of finite numbers')
    gold = row.get("gold") or {}
    if not isinstance(gold, dict):
        raise ValueError('"gold" is no object')
    flow = gold if "components" in gold or "trigger" in gold else None
    plan = [_name(c) for c in gold.get("components") or ()] if flow else gold.get("plan") or ()
    links, features = gold.get("links"), row.get("features") or {}
    if not isinstance(features, dict) or not all(isinstance(v, bool) for v in features.values()):
        raise ValueError('"features" is no object of true and false')
    tools = row.get("tools")
    if tools is not None and (not isinstance(tools, int) or isinstance(tools, bool)):
        raise ValueError('"tools" is no whole number')
    return Sample(
        str(row["id"]),
        None if row.get("request") is None else str(row["request"]),
        tuple(map(str, plan)),
        {str(k): float(v) for k, v in scores.items() if v is not None},
        None if links is None else frozenset((str(a), str(b)) for a, b in links),
        flow,
        tuple(map(str, row.get("tags") or ())),
        features,
        str(row.get("group") or ""),
        tools,
    )


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and bool(np.isfinite(value))


def _name(component: Any) -> str:
    if not isinstance(component, dict):
        raise ValueError("a component is no object")
    name = str(component.get("definition") or component.get("name") or "")
    return name.upper() if component.get("category") == _LOGIC else name


def scores_of(samples: Sequence[Sample]) -> list[str]:
    """Returns the names of the scores that any sample has, in the order of their first sample."""
    return list(dict.fromkeys(name for sample in samples for name in sample.scores))


RARE = 3  # plans of history that have a step, up to which the step is called rare
_KEYS = ("id", "task_key", "uid")


def prediction_samples(predictions: Path, gold: Path, history: Path | None = None) -> tuple[list[Sample], list[str]]:
    """Returns a sample with the scores of each prediction, and the lines left out with their reasons.

    A prediction is {"id" or "task_key" or "uid", "plan" or "actions": [step names], "links"?}; `gold` is a task set. A
    prediction without a reference is left out; a reference without a prediction is not asked. `history` is a task set,
    too: plans that the system has learnt from, for the features "step not in history" and "rare step".
    Raises InputError where a file cannot be read, or no prediction has a reference.
    """
    answers = read_task_set(gold)
    items = {item.id: item for item in answers.items}
    features = history_features(read_task_set(history)) if history else None

    def parse(row: Any, _: str) -> tuple[str, Sample]:
        identity, plan = _prediction(row)
        if identity not in items:
            raise ValueError(f"{gold.name} has no {identity!r}")
        item = items[identity]
        return identity, sample_of_plan(item, plan, features(item) if features else {})

    found, rejected = read_records(predictions, parse)
    return found, [*answers.rejected, *rejected]


def sample_of_plan(item: Item, plan: Plan, features: Mapping[str, bool]) -> Sample:
    """Returns the sample of a plan that answers an item, with the scores of `plan_scores`."""
    scores = {name: value for name, value in asdict(plan_scores(plan, item.gold)).items() if value is not None}
    stated = {"no plan": not plan.steps, **features}
    tools = len(item.catalogue) or None
    return Sample(
        item.id,
        item.request,
        item.gold.steps,
        scores,
        item.gold.all_links,
        features=stated,
        group=item.group,
        tools=tools,
    )


def history_features(history: TaskSet) -> Callable[[Item], dict[str, bool]]:
    """Returns the features of an item that depend on what was learnt from."""
    seen = Counter(step for item in history.items for step in set(item.gold.steps))
    sets = {frozenset(item.gold.steps) for item in history.items}

    def features(item: Item) -> dict[str, bool]:
        counts: Sequence[int] = [seen[step] for step in item.gold.steps]
        return {
            "step not in history": 0 in counts,
            "rare step": min(counts) <= RARE,
            "new set of steps": frozenset(item.gold.steps) not in sets,
        }

    return features


def _prediction(row: Any) -> tuple[str, Plan]:
    if not isinstance(row, dict):
        raise ValueError("the line is no JSON object")
    identity = next((str(row[key]) for key in _KEYS if row.get(key) not in (None, "")), "")
    if not identity:
        raise ValueError(f"it has none of {', '.join(_KEYS)}")
    steps, links = row.get("plan", row.get("actions")), row.get("links")
    if not isinstance(steps, list):
        raise ValueError('it has no "plan", a list of step names')
    if links is None:
        return identity, Plan(tuple(map(str, steps)))
    if not isinstance(links, list) or not all(isinstance(link, list) and len(link) == 2 for link in links):
        raise ValueError('"links" are no pairs of step names')
    return identity, Plan(tuple(map(str, steps)), frozenset((str(a), str(b)) for a, b in links))


def main(arguments: Sequence[str] | None = None) -> int:
    """Prints for each score the features with the largest effects."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("samples", type=Path)
    parser.add_argument("--gold", type=Path)
    parser.add_argument("--history", type=Path)
    parser.add_argument("--score", action="append", default=[])
    given = parser.parse_args(arguments)
    found, rejected = (
        prediction_samples(given.samples, given.gold, given.history) if given.gold else read_samples(given.samples)
    )
    print(f"{len(rejected)} lines left out", *rejected[:1], sep="; ", file=sys.stderr)
    for score in given.score or scores_of(found)[:1]:
        analysis = analyse(found, score)
        print(f"{score}: {analysis.mean:.3f} over {analysis.n:,} samples; * q < {LEVEL}")
        for e in analysis.effects[:15]:
            name = e.feature + (" *" if e.is_clear else "")
            bounds = f"{e.difference:+.3f} [{e.low:+.3f}, {e.high:+.3f}]"
            print(f"{name:32}{e.theme:20}{e.n:6}{e.mean:8.3f}{e.mean_without:8.3f}  {bounds}  q {e.q:.3f}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
