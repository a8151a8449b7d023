"""Routing of LWM: the tasks of the WKG that are near Γ (by FAISS); and the cases of history near it."""

from dataclasses import dataclass

import numpy as np

from opus_pipelines.embedding.index import VectorIndex
from opus_pipelines.wkg.graph import WorkGraph

_SPARE = 8  # hits asked of the index for each task wanted, since those of other industries fall away


@dataclass(frozen=True)
class Routed:
    """A task id and the cosine of the task with Γ."""

    id: str
    similarity: float


def route(
    index: VectorIndex, graph: WorkGraph, vector: np.ndarray, industry: str | None, top: int, threshold: float
) -> list[Routed]:
    """Return V of LWM: the `top` work steps of the industry with cos(emb(v), Γ) >= threshold.

    They are ordered by cosine, nearest first, then by id. `vector` is Γ [d].
    """
    hits = index.search(vector[None, :], min(len(graph.tasks), top * _SPARE))[0]
    near = [Routed(i, s) for i, s in hits if s >= threshold and _belongs(graph, i, industry)]
    return sorted(near, key=lambda r: (-r.similarity, r.id))[:top]


def nearest_cases(vectors: np.ndarray, vector: np.ndarray, allowed: np.ndarray, top: int) -> list[tuple[int, float]]:
    """Return rows and cosines of the `top` nearest among the allowed cases, by exact search.

    `vectors` is [n, d], `vector` is Γ [d], `allowed` is boolean [n]. The nearest is first; rows decide between
    equal ones.
    """
    similarity = np.where(allowed, vectors @ vector, -np.inf).round(6)
    near = (
        np.flatnonzero(similarity >= np.partition(similarity, -top)[-top])
        if 0 < top < len(similarity)
        else np.arange(len(similarity))
    )
    order = near[np.argsort(-similarity[near], kind="stable")][:top]
    return [(int(row), float(similarity[row])) for row in order if np.isfinite(similarity[row])]


def _belongs(graph: WorkGraph, task_id: str, industry: str | None) -> bool:
    task = graph.tasks[task_id]
    return task.activity_kind == "step" and (industry is None or industry in task.industries)
