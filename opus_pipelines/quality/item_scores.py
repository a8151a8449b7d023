"""All scores of one prediction against the reference of its item."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from opus_pipelines.language.embedding.encoder import TextEncoder
from opus_pipelines.quality.task_set import Item
from opus_pipelines.workflow.metrics.opus_metrics import opus_metrics
from opus_pipelines.workflow.metrics.plan_scores import Plan, graph_edit_distance, plan_scores
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
