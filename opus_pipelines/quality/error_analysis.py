"""Where generation fails: the effect of each feature on a score, with intervals and a correction for multiple tests.

The effect is the difference of the mean scores of samples with and without a feature. Its 95 % interval is a bootstrap
over groups of alike samples; its p-value a permutation test of group means (scipy), corrected over all features by the
procedure of Benjamini and Hochberg. An effect is an association: features hang together, and none need be a cause.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from opus_pipelines.core.errors import InputError
from opus_pipelines.core.json_lines import read_records
from opus_pipelines.quality.error_features import Sample, matrix, theme_of

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
