"""Simulates a chain of tasks from truth.json, so that a generated workflow's Reward can be held against what would really happen."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from opus_pipelines.errors import InputError
from opus_pipelines.sample.model import normalise

Step = tuple[str, str, str | None]


@dataclass(frozen=True)
class SimResult:
    """Means over the runs; dollars, milliseconds of work (waiting is not in it), share of runs that succeeded."""

    mean_reward: float
    mean_cost: float
    success_rate: float
    mean_duration_ms: float


def simulate_chain(
    truth: dict[str, Any], industry: str, steps: Sequence[Step], gain_usd: float, runs: int = 10_000, seed: int = 0, kind: str | None = None
) -> SimResult:
    """Carry out `steps` - (task, actor kind, model) - `runs` times; reward = gain where it succeeded - cost.

    A needed task of the kind of case that `steps` lack damages a run with its probability. Without `kind` it is the kind whose regular
    tasks are nearest to the steps'. Tasks are canonical names, or anything that `step_of` knows.
    Raises InputError for an unknown task or way.
    """
    random = np.random.default_rng(seed)
    names = [step_of(truth, industry, name) for name, _, _ in steps]
    right, cost, duration = np.ones(runs, bool), np.zeros(runs), np.zeros(runs)
    for name, (_, actor_kind, model) in zip(names, steps, strict=True):
        way = way_of(truth, industry, name, actor_kind, model)
        right = random.random(runs) < np.where(right, way["p"], way["q"])
        spent, took = _spend(truth, way, random, runs)
        cost, duration = cost + spent, duration + took
    for needed in kind_of(truth, industry, names, kind)["needed"]:
        if needed["task"] not in names:
            right &= random.random(runs) >= needed["damage"]
    return SimResult(float(np.mean(gain_usd * right - cost)), float(cost.mean()), float(right.mean()), float(duration.mean()))


def step_of(truth: dict[str, Any], industry: str, title_or_key: str) -> str:
    """The canonical task behind a title or any source's raw key; raises InputError."""
    wanted = normalise(title_or_key)
    tasks = _industry(truth, industry)["tasks"]
    for task in tasks:
        if wanted == normalise(task["task"]) or wanted in task["nodes"]:
            return str(task["task"])
    known = ", ".join(t["task"] for t in tasks)
    raise InputError(f"{title_or_key!r} is no task of {industry} in the truth; it has {known}")


def way_of(truth: dict[str, Any], industry: str, task: str, actor_kind: str, model: str | None) -> dict[str, Any]:
    """The way of a canonical task by kind of actor and model; raises InputError naming the ways there are."""
    ways = next(t for t in _industry(truth, industry)["tasks"] if t["task"] == task)["ways"]
    for way in ways:
        if (way["actor_kind"], way["model"]) == (actor_kind, model):
            return dict(way)
    known = ", ".join(" ".join(filter(None, (w["actor_kind"], w["model"]))) for w in ways)
    raise InputError(f"{task} is never done by {actor_kind} {model or ''}; its ways are: {known}")


def kind_of(truth: dict[str, Any], industry: str, tasks: Sequence[str], kind: str | None = None) -> dict[str, Any]:
    """The named kind of case, or the one whose regular tasks overlap most (Jaccard) with `tasks`; raises InputError."""
    kinds = _industry(truth, industry)["kinds"]
    if kind is None:
        return dict(max(kinds, key=lambda k: len(set(k["always"]) & set(tasks)) / len(set(k["always"]) | set(tasks))))
    found = [k for k in kinds if k["kind"] == kind]
    if not found:
        raise InputError(f"{kind!r} is no kind of case of {industry}; it has {', '.join(k['kind'] for k in kinds)}")
    return dict(found[0])


def _industry(truth: dict[str, Any], industry: str) -> dict[str, Any]:
    if industry not in truth["industries"]:
        raise InputError(f"{industry!r} is no industry of the truth; it has {', '.join(truth['industries'])}")
    return dict(truth["industries"][industry])


def _spend(truth: dict[str, Any], way: dict[str, Any], random: np.random.Generator, runs: int) -> tuple[np.ndarray, np.ndarray]:
    """(dollars, milliseconds) of each run; people's and programs' cost follows their time, a model's its tokens."""
    shape = truth["variation"] ** -2
    took = random.gamma(shape, way["duration_ms_mean"] / shape, runs)
    if way["model"] is None:
        return took * (way["cost_usd_mean"] / way["duration_ms_mean"]), took
    tokens = sum(random.gamma(shape, way[f"tokens_{side}_mean"] / shape, runs) for side in ("in", "out"))
    return np.asarray(tokens) * truth["usd_per_million_tokens"][way["model"]] / 1e6, took
