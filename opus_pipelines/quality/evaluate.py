"""Evaluates a backend on a task set: the whole system and controls, scored item by item.

task set -> intakes -> plans of every system -> scores by item -> evaluations/items -> means with intervals
"""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from typing import Any

import numpy as np

from opus_pipelines.core.ids import digest, make_id
from opus_pipelines.core.versions import versions_of
from opus_pipelines.generation.records import GenerationContext
from opus_pipelines.language.embedding.encoder import TextEncoder
from opus_pipelines.quality.score_rows import Evaluation, Mean, Row, by_system
from opus_pipelines.quality.systems import WHOLE, Prediction, controls, predict
from opus_pipelines.quality.task_set import Item, TaskSet
from opus_pipelines.workflow.metrics.opus_metrics import AXES, MAX_AREA, area_of, opus_metrics
from opus_pipelines.workflow.metrics.plan_scores import Plan, drawn_means, graph_edit_distance, plan_scores
from opus_pipelines.workflow.metrics.worfbench import WorkflowText, chain_scores, graph_scores

MAX_GRAPH_TASKS = 24  # of either workflow; chains and subgraphs in common of larger ones would take too long


@dataclass
class TextVectors:
    """Unit vectors of texts by an encoder; a text is encoded once."""

    encoder: TextEncoder

    def __post_init__(self) -> None:
        self._known: dict[str, np.ndarray] = {}

    def __call__(self, texts: Sequence[str]) -> np.ndarray:
        """Returns the vectors of the texts, [n, d] float64."""
        if new := [text for text in dict.fromkeys(texts) if text not in self._known]:
            vectors = np.asarray(self.encoder.encode(new), dtype=np.float64)
            vectors /= np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-12)
            self._known.update(zip(new, vectors, strict=True))
        return np.stack([self._known[text] for text in texts])


def item_scores(plan: Plan, item: Item, vectors: TextVectors) -> dict[str, Any]:
    """Returns the scores by the names of their columns in evaluations/items; None where a score does not apply.

    Scores by name compare the names of steps; scores by text compare vectors of names with the catalogue's
    descriptions. Chains and subgraphs are None where a workflow has a cycle or more than `MAX_GRAPH_TASKS` tasks.
    """
    own, gold = _workflow_text(plan), _workflow_text(item.gold)
    texts = [[_described(label, item.catalogue) for label in workflow.labels] for workflow in (own, gold)]
    similarity = vectors(texts[0]) @ vectors(texts[1]).T
    opus = opus_metrics(texts[0][1:-1], texts[1][1:-1], similarity[1:-1, 1:-1])
    edits = graph_edit_distance(plan, item.gold)
    outside = [step for step in plan.steps if step not in item.catalogue]
    return {
        **asdict(plan_scores(plan, item.gold)),
        "graph_edit_similarity": edits.similarity,
        "graph_edit_is_exact": edits.is_exact,
        **{name: getattr(opus, name) for name in ("coverage", "kendall", "dtw", "bleu", "cosine")},
        "outside_catalogue": len(outside) / len(plan.steps) if item.catalogue and plan.steps else None,
        **_overlaps(own, gold, similarity),
    }


def _overlaps(own: WorkflowText, gold: WorkflowText, similarity: np.ndarray) -> dict[str, float | None]:
    names = "f1_chain", "f1_graph", "f1_chain_official", "f1_graph_official"
    if max(len(own.tasks), len(gold.tasks)) > MAX_GRAPH_TASKS:
        return dict.fromkeys(names)
    try:
        scores = [
            score(own, gold, similarity, official).f1
            for official in (False, True)
            for score in (chain_scores, graph_scores)
        ]
    except ValueError:  # a cycle: the reference repeats work
        return dict.fromkeys(names)
    return dict(zip(names, scores, strict=True))


def _workflow_text(plan: Plan) -> WorkflowText:
    """The plan as numbered texts; START leads to what has no predecessor, and what has no successor to END."""
    steps = tuple(dict.fromkeys(plan.steps))
    number = {step: n for n, step in enumerate(steps, 1)}
    inner = {(number[a], number[b]) for a, b in plan.all_links if a in number and b in number}
    starts = {(0, n) for n in number.values() if not any(b == n for _, b in inner)}
    ends = {(n, len(steps) + 1) for n in number.values() if not any(a == n for a, _ in inner)}
    return WorkflowText(steps, frozenset(inner | starts | ends))


def _described(name: str, catalogue: Mapping[str, str]) -> str:
    title = " ".join(name.replace("_", " ").split()) or name
    return f"{title}. {catalogue[name]}" if catalogue.get(name) else title


_Report = Callable[[str, int, int], None]
# Scores that the table shows; evaluations/items has all.
SHOWN_OF_ITEMS = ("node_f1", "link_f1", "order", "exact", "first", "f1_chain", "f1_graph", "graph_edit_similarity")
COMPARED = ("node_f1", "link_f1")


def evaluate(
    task_set: TaskSet,
    context: GenerationContext,
    report: _Report = lambda name, n, of: None,
) -> Evaluation:
    """Returns the rows of the whole system and of the controls on a task set.

    `report` is called with the name of a system, the items done and their number.
    """
    items, vectors = task_set.items, TextVectors(context.encoder)
    identity = digest(
        task_set.sha256,
        [item.id for item in items],
        context.index.snapshot.id,
        context.model.version,
        versions_of("result"),
        context.settings.model_dump_json(exclude={"paths"}),
    )
    identifier = make_id("v", identity)
    head = {
        "evaluation": identifier,
        "task_set": task_set.name,
        "snapshot": context.index.snapshot.id,
        "model_version": context.model.version,
    }
    made = predict(items, context, partial(report, WHOLE))
    rows = _rows(head | {"system": WHOLE, "role": "system"}, items, made, vectors)
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


def item_samples(task_set: TaskSet, rows: Sequence[Row]) -> list[str]:
    """Returns the whole system's scores by item as the lines of a file for `benchmarks/errors.py`."""
    own = {row["item"]: row for row in by_system(rows)[WHOLE]}
    lines = []
    for item in task_set.items:
        row = own[item.id]
        scores = {name: row[name] for name in SHOWN_OF_ITEMS if row[name] is not None}
        gold = {"plan": list(item.gold.steps), "links": sorted(map(list, item.gold.all_links))}
        about = {"request": item.request, "group": item.group, "tools": len(item.catalogue) or None}
        lines.append(json.dumps({"id": item.id, "scores": scores, "gold": gold, **about}, ensure_ascii=False))
    return lines


def areas(rows: Sequence[Row]) -> dict[str, Mean]:
    """Returns for each system the area of the five mean metrics of the Opus paper, as a share of the largest area."""
    found: dict[str, Mean] = {}
    for system, own in by_system(rows).items():
        values = np.array([[row[axis] for axis in AXES] for row in own], dtype=np.float64)
        drawn = area_of(drawn_means(values, [row["item_group"] for row in own])) / MAX_AREA
        low, high = np.percentile(drawn, [2.5, 97.5])
        found[system] = Mean(float(area_of(values.mean(axis=0)) / MAX_AREA), float(low), float(high), len(own))
    return found


def differences(rows: Sequence[Row], score: str) -> dict[str, Mean]:
    """Returns for each other system the mean of the whole system's score minus its own, item by item."""
    systems = by_system(rows)
    whole = {row["item"]: row for row in systems[WHOLE]}
    found: dict[str, Mean] = {}
    for system, own in systems.items():
        pairs = [(whole[row["item"]], row) for row in own if system != WHOLE]
        pairs = [(a, b) for a, b in pairs if a[score] is not None and b[score] is not None]
        if pairs:
            values = [float(a[score]) - float(b[score]) for a, b in pairs]
            found[system] = Mean.of(values, [a["item_group"] for a, _ in pairs])
    return found
