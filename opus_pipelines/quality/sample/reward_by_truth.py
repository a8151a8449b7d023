"""Computes what planned work really earns, exactly, by the truth of a sample: truth.json knows what no history tells.

Tasks are done one after the other in the order in which they start, and each sees what the last one left: that is how
the truth draws cases, and how history records work that overlaps.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from opus_pipelines.core.errors import InputError
from opus_pipelines.language.word_stems import stems
from opus_pipelines.quality.sample.model import normalise

Truth = Mapping[str, Any]
Step = tuple[str, str, str | None]


@dataclass(frozen=True)
class PlannedStep:
    """A step of a workflow. What the truth does not know of it (a review, a new task) has the figures of the plan.

    Attributes:
        title: of the task; `mode`: the kind of actor and the model, None where any way of the task may be taken.
        start_ms, finish_ms: when it is done; steps in parallel overlap.
        is_review: whether it only looks at what another step left.
        p, q, cost_usd: of the plan.
        is_estimated: whether history lacks the step, so that the plan may have a way that the truth does not know.
    """

    title: str
    mode: tuple[str, str | None] | None = None
    start_ms: float = 0.0
    finish_ms: float = 0.0
    is_review: bool = False
    p: float = 1.0
    q: float = 0.0
    cost_usd: float = 0.0
    is_estimated: bool = False


def earned_usd(truth: Truth, industry: str, kind: str, gain_usd: float, steps: Sequence[PlannedStep]) -> float:
    """Returns the expected Reward of steps in the order in which they start.

    Raises InputError for an unknown industry, kind or way of a known task.
    """
    right, cost, known = 1.0, 0.0, _industry(truth, industry)
    done: dict[str, PlannedStep] = {}
    for step in steps:
        task = None if step.is_review else found_task(known, step.title)
        p, q, spent = (step.p, step.q, step.cost_usd) if task is None else _means(truth, industry, task, step)
        right, cost = p * right + q * (1 - right), cost + spent
        if task is not None:
            done.setdefault(task["task"], step)
    return gain_usd * right * _undamaged(kind_of(truth, industry, list(done), kind), done) - cost


def _undamaged(kind: Mapping[str, Any], done: Mapping[str, PlannedStep]) -> float:
    """Returns the probability that a case with these tasks is not damaged."""
    left = 1.0
    for needed in kind["needed"]:
        left *= 1.0 if needed["task"] in done else 1 - needed["damage"]
    for pair in kind.get("orders", ()):
        first, second = map(done.get, pair["tasks"])
        if second is not None and (first is None or second.start_ms < first.finish_ms):
            left *= 1 - pair["damage"]
    return left


def _means(truth: Truth, industry: str, task: Mapping[str, Any], step: PlannedStep) -> tuple[float, float, float]:
    """Returns p, q and the mean dollars of a task in the step's mode; of all ways by their shares where it has none."""
    if step.mode is None:
        return task["p"], task["q"], task["cost_usd_mean"]
    if step.is_estimated and not any((way["actor_kind"], way["model"]) == step.mode for way in task["ways"]):
        return step.p, 0.0, step.cost_usd
    way = way_of(truth, industry, task["task"], *step.mode)
    return way["p"], way["q"], way["cost_usd_mean"]


def best_steps(truth: Truth, industry: str, kind: str, gain_usd: float) -> tuple[list[Step], float]:
    """Returns the best that the truth allows without reviews: (task, actor kind, model) of every regular task, in the
    order of the flow, and their expected Reward in dollars.

    Each state of the search is P(right) and cost so far; one that costs more and is less often right than another leads
    nowhere, since p is at least q. Raises InputError for an unknown kind.
    """
    tasks = {t["task"]: t["ways"] for t in _industry(truth, industry)["tasks"]}
    found: list[tuple[float, float, list[Step]]] = [(1.0, 0.0, [])]
    for task in kind_of(truth, industry, (), kind)["always"]:
        longer = [
            (
                way["p"] * right + way["q"] * (1 - right),
                cost + way["cost_usd_mean"],
                [*steps, (task, way["actor_kind"], way["model"])],
            )
            for right, cost, steps in found
            for way in tasks[task]
        ]
        found = _undominated(longer)
    right, cost, steps = max(found, key=lambda point: gain_usd * point[0] - point[1])
    return steps, gain_usd * right - cost


def _undominated(points: list[tuple[float, float, list[Step]]]) -> list[tuple[float, float, list[Step]]]:
    kept: list[tuple[float, float, list[Step]]] = []
    for point in sorted(points, key=lambda p: (p[1], -p[0])):
        if not kept or point[0] > kept[-1][0]:
            kept.append(point)
    return kept


def found_task(industry: Mapping[str, Any], title_or_key: str) -> Mapping[str, Any] | None:
    """Returns the task of the industry's truth behind a title or any source's raw key, None where there is none.

    A title that nobody writes so ("Check receipt") is the only task with its verb whose words hold its own, or are
    among them: a client without history names its steps itself.
    """
    wanted = normalise(title_or_key)
    tasks = industry["tasks"]
    exact = next((t for t in tasks if wanted == normalise(t["task"]) or wanted in t["nodes"]), None)
    own = stems(wanted)
    alike = [t for t in tasks if own[:1] == (names := stems(normalise(t["task"])))[:1] and _holds(names, own)]
    return exact or (alike[0] if len(alike) == 1 and len(own) > 1 else None)


def _holds(one: Sequence[str], other: Sequence[str]) -> bool:
    return set(one) <= set(other) or set(other) <= set(one)


def step_of(truth: Truth, industry: str, title_or_key: str) -> str:
    """Returns the canonical task behind a title or any source's raw key; raises InputError where there is none."""
    known = _industry(truth, industry)
    if (task := found_task(known, title_or_key)) is not None:
        return str(task["task"])
    names = ", ".join(t["task"] for t in known["tasks"])
    raise InputError(f"{title_or_key!r} is no task of {industry} in the truth; it has {names}")


def way_of(truth: Truth, industry: str, task: str, actor_kind: str, model: str | None) -> dict[str, Any]:
    """Returns the way of a canonical task by kind of actor and model; raises InputError naming the ways there are."""
    ways = next(t for t in _industry(truth, industry)["tasks"] if t["task"] == task)["ways"]
    for way in ways:
        if (way["actor_kind"], way["model"]) == (actor_kind, model):
            return dict(way)
    known = ", ".join(" ".join(filter(None, (w["actor_kind"], w["model"]))) for w in ways)
    raise InputError(f"{task} is never done by {actor_kind} {model or ''}; its ways are: {known}")


def kind_of(truth: Truth, industry: str, tasks: Sequence[str], kind: str | None = None) -> dict[str, Any]:
    """Returns the named kind of case, or of history's the one whose regular tasks overlap most (Jaccard) with `tasks`.

    Raises InputError where there is none of that name.
    """
    kinds = _industry(truth, industry)["kinds"]
    if kind is None:
        seen, done = [k for k in kinds if k["cases"]], set(tasks)
        return dict(max(seen, key=lambda k: len(set(k["always"]) & done) / len(set(k["always"]) | done)))
    found = [k for k in kinds if k["kind"] == kind]
    if not found:
        raise InputError(f"{kind!r} is no kind of case of {industry}; it has {', '.join(k['kind'] for k in kinds)}")
    return dict(found[0])


def _industry(truth: Truth, industry: str) -> dict[str, Any]:
    if industry not in truth["industries"]:
        raise InputError(f"{industry!r} is no industry of the truth; it has {', '.join(truth['industries'])}")
    return dict(truth["industries"][industry])
