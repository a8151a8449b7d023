"""Routing of LWM: the tasks of the WKG that are near Γ (by FAISS); and the cases of history near it."""

from dataclasses import dataclass

import numpy as np

from opus_pipelines.language.embedding.index import VectorIndex
from opus_pipelines.wkg.graph import WorkGraph

_SPARE = 8  # hits for each wanted task, because hits of other industries are dropped


@dataclass(frozen=True)
class Routed:
    """A task id and the cosine of the task with Γ."""

    id: str
    similarity: float


@dataclass(frozen=True)
class Router:
    """Routes vectors to the work steps of an industry (None: of all)."""

    index: VectorIndex
    graph: WorkGraph
    industry: str | None

    def route(self, vector: np.ndarray, top: int, threshold: float) -> list[Routed]:
        """Return V of LWM: the `top` work steps with cos(emb(v), Γ) >= threshold.

        They are ordered by cosine, nearest first, then by id. `vector` is Γ [d].
        """
        hits = self.index.search(vector[None, :], min(len(self.graph.tasks), top * _SPARE))[0]
        near = [Routed(i, s) for i, s in hits if s >= threshold and self._is_work_step(i)]
        return sorted(near, key=lambda r: (-r.similarity, r.id))[:top]

    def _is_work_step(self, task_id: str) -> bool:
        task = self.graph.tasks[task_id]
        return task.activity_kind == "step" and (self.industry is None or self.industry in task.industries)


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
