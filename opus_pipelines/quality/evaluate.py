"""Evaluates a backend on a task set: the whole system, ablations and controls, scored item by item.

task set -> intakes -> plans of every system -> scores by item -> evaluations/items -> means with intervals
"""

import json
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from statistics import fmean
from typing import Any

import numpy as np

from opus_pipelines.core.ids import digest, make_id
from opus_pipelines.core.schemas import EVALUATION_ITEMS
from opus_pipelines.core.versions import versions_of
from opus_pipelines.generation.records import GenerationContext
from opus_pipelines.lake.layout import Lake, table_of, write_table
from opus_pipelines.quality.ablations import ABLATIONS
from opus_pipelines.quality.item_scores import TextVectors, item_scores
from opus_pipelines.quality.systems import NO_ABLATION, Prediction, controls, predict
from opus_pipelines.quality.task_set import Item, TaskSet
from opus_pipelines.workflow.metrics.intervals import drawn_means, interval
from opus_pipelines.workflow.metrics.opus_metrics import AXES, MAX_AREA, area_of

Row = dict[str, Any]
Report = Callable[[str, int, int], None]
# Scores that the table shows; evaluations/items has all.
SHOWN = ("node_f1", "link_f1", "order", "exact", "first", "f1_chain", "f1_graph", "graph_edit_similarity")
COMPARED = ("node_f1", "link_f1")


@dataclass(frozen=True)
class Evaluation:
    """The rows of an evaluation, one for each system and item, and its id, which names all that they depend on."""

    id: str
    rows: list[Row]


@dataclass(frozen=True)
class Mean:
    """The mean of a score with its 95 % interval; n is the number of items that have the score."""

    mean: float
    low: float
    high: float
    n: int


def evaluate(
    task_set: TaskSet,
    context: GenerationContext,
    ablations: Sequence[str] = (),
    report: Report = lambda name, n, of: None,
) -> Evaluation:
    """Returns the rows of the whole system, of each ablation and of the controls on a task set.

    `report` is called with the name of a system, the items done and their number. Raises KeyError for an ablation that
    does not exist.
    """
    items, vectors = task_set.items, TextVectors(context.encoder)
    identity = digest(
        task_set.sha256,
        [item.id for item in items],
        context.index.snapshot.id,
        context.model.version,
        versions_of("result"),
        context.settings.model_dump_json(exclude={"paths"}),
        list(ablations),
    )
    identifier = make_id("v", identity)
    head = {
        "evaluation": identifier,
        "task_set": task_set.name,
        "snapshot": context.index.snapshot.id,
        "model_version": context.model.version,
    }
    rows: list[Row] = []
    for ablation in (NO_ABLATION, *(ABLATIONS[name] for name in ablations)):
        role = "system" if ablation is NO_ABLATION else "ablation"
        made = predict(items, context, ablation, partial(report, ablation.name))
        rows += _rows(head | {"system": ablation.name, "role": role}, items, made, vectors)
    for name, made in controls(items, context).items():
        role = "control" if name.startswith("control") else "bound"
        rows += _rows(head | {"system": name, "role": role}, items, made, vectors)
    return Evaluation(identifier, rows)


def _rows(head: Row, items: Sequence[Item], predictions: Sequence[Prediction], vectors: TextVectors) -> list[Row]:
    return [
        head
        | {"item": item.id, "item_group": item.group, "status": made.status, "reason": made.reason}
        | {"steps": list(made.plan.steps), "gold_steps": list(item.gold.steps)}
        | item_scores(made.plan, item, vectors)
        for item, made in zip(items, predictions, strict=True)
    ]


def publish(lake: Lake, evaluation: Evaluation) -> None:
    """Writes the rows into the lake in one step; the same evaluation is written once."""
    lake.ensure_empty()  # an older lake has no empty file of this dataset, which its view needs
    with lake.staging() as staged:
        write_table(EVALUATION_ITEMS, table_of(EVALUATION_ITEMS, evaluation.rows), staged / "rows")
        final = lake.folder(EVALUATION_ITEMS, evaluation_key=evaluation.id)
        final.parent.mkdir(parents=True, exist_ok=True)
        lake.publish(staged / "rows", final)


def sample_lines(task_set: TaskSet, rows: Sequence[Row]) -> list[str]:
    """Returns the whole system's scores by item as the lines of a file for `error_analysis.read_samples`."""
    own = {row["item"]: row for row in _by_system(rows)[NO_ABLATION.name]}
    lines = []
    for item in task_set.items:
        row = own[item.id]
        scores = {name: row[name] for name in SHOWN if row[name] is not None}
        gold = {"plan": list(item.gold.steps), "links": sorted(map(list, item.gold.all_links))}
        about = {"request": item.request, "group": item.group, "tools": len(item.catalogue) or None}
        lines.append(json.dumps({"id": item.id, "scores": scores, "gold": gold, **about}, ensure_ascii=False))
    return lines


def means(rows: Sequence[Row], score: str) -> dict[str, Mean]:
    """Returns for each system the mean of a score over the items that have it, in the order of the rows."""
    found: dict[str, Mean] = {}
    for system, own in _by_system(rows).items():
        scored = [row for row in own if row[score] is not None]
        if scored:
            values = [float(row[score]) for row in scored]
            found[system] = Mean(fmean(values), *interval(values, [row["item_group"] for row in scored]), len(scored))
    return found


def areas(rows: Sequence[Row]) -> dict[str, Mean]:
    """Returns for each system the area of the five mean metrics of the Opus paper, as a share of the largest area."""
    found: dict[str, Mean] = {}
    for system, own in _by_system(rows).items():
        values = np.array([[row[axis] for axis in AXES] for row in own], dtype=np.float64)
        drawn = area_of(drawn_means(values, [row["item_group"] for row in own])) / MAX_AREA
        low, high = np.percentile(drawn, [2.5, 97.5])
        found[system] = Mean(float(area_of(values.mean(axis=0)) / MAX_AREA), float(low), float(high), len(own))
    return found


def differences(rows: Sequence[Row], score: str) -> dict[str, Mean]:
    """Returns for each other system the mean of the whole system's score minus its own, item by item."""
    systems = _by_system(rows)
    whole = {row["item"]: row for row in systems[NO_ABLATION.name]}
    found: dict[str, Mean] = {}
    for system, own in systems.items():
        pairs = [(whole[row["item"]], row) for row in own if system != NO_ABLATION.name]
        pairs = [(a, b) for a, b in pairs if a[score] is not None and b[score] is not None]
        if pairs:
            values = [float(a[score]) - float(b[score]) for a, b in pairs]
            found[system] = Mean(fmean(values), *interval(values, [a["item_group"] for a, _ in pairs]), len(pairs))
    return found


def changed(rows: Sequence[Row]) -> dict[str, float]:
    """Returns for each ablation the share of items whose plan differs from that of the whole system."""
    systems = _by_system(rows)
    whole = {row["item"]: row["steps"] for row in systems[NO_ABLATION.name]}
    return {
        system: fmean(float(row["steps"] != whole[row["item"]]) for row in own)
        for system, own in systems.items()
        if own[0]["role"] == "ablation"
    }


def _by_system(rows: Sequence[Row]) -> dict[str, list[Row]]:
    systems: dict[str, list[Row]] = defaultdict(list)
    for row in rows:
        systems[row["system"]].append(row)
    return systems
