"""Samples for the error analysis from a file of predicted plans and the task set that they answer."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from opus_pipelines.core.json_lines import read_records
from opus_pipelines.quality.error_features import Sample
from opus_pipelines.quality.task_set import Item, TaskSet, read_task_set
from opus_pipelines.workflow.metrics.plan_scores import Plan, plan_scores

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
