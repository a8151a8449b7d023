"""What is near an Intention Γ by its vector: tasks of the WKG and cases, both by FAISS, and sub-graphs.

Routing is that of LWM; the sub-graphs of the Work Knowledge Graph are those of LWM (6)-(8).
"""

import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from opus_pipelines.language.embedding.index import RowSearch, Selection, VectorIndex
from opus_pipelines.lwm.interface import SimilarCase
from opus_pipelines.wkg.graph import WorkGraph
from opus_pipelines.wkg.subgraphs import SubWKG, neighbourhoods, steiner

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


# A case whose cosine is lower by `sharpness` than that of the nearest model has 1/e of its weight; models are cases
# that did not fail. The sharpness is the difference of cosine between the nearest model and model number ENOUGH, within
# these bounds. So one case that is much nearer than the others has nearly all weight, and equally near cases share it.
ENOUGH = 10
SHARPEST, BLUNTEST = 0.005, 0.015
_IN_STEP = ("tasks", "task_keys", "task_cost_usd", "task_duration_ms", "actor_kinds", "models", "actor_groups")
_COLUMNS = [
    "implementation_id",
    "source",
    "success",
    "expected_outcome",
    "client",
    "kind_of_case",
    "lead_time_ms",
    "attributes",
    *_IN_STEP,
]
_KEPT_CASES = 10_000  # most cases in the cache, some kB each


class CaseRetriever:
    """The cases of a snapshot, ordered by their ids; those with a vector can be found by it."""

    def __init__(
        self,
        cases: pa.Table,
        vectors: pa.Table,
        passive: Collection[str] = (),
        by_activities: Collection[str] = (),
        index: VectorIndex | None = None,
    ) -> None:
        """Index the cases.

        Tasks in `passive` are no work steps: they are activities of a case, not tasks. `by_activities` names the
        sources whose outcomes the activities of a case decide. `index`: that of the vectors, where the night made one.
        """
        self._all, self._passive = cases.sort_by("implementation_id"), frozenset(passive)
        self._by_activities = frozenset(by_activities)
        with_vector = pc.is_in(self._all["implementation_id"], vectors["implementation_id"].combine_chunks())
        vectors = vectors.sort_by("implementation_id")
        column = vectors["vector"].combine_chunks()
        self._vectors = np.asarray(column.flatten(), dtype=np.float32).reshape(len(column), column.type.list_size)
        places = np.flatnonzero(with_vector.to_numpy())
        self._number = np.full(self._all.num_rows, -1)
        self._number[places] = np.arange(len(places))
        self.search = RowSearch(self._vectors, places, self._all.num_rows, index)
        self._selections: dict[str | None, Selection] = {}
        self._rows_of: dict[str | None, np.ndarray] = {}
        self._read: dict[int, SimilarCase] = {}

    def __len__(self) -> int:
        """Return the number of cases with a vector."""
        return len(self._vectors)

    def vectors_of(self, rows: np.ndarray) -> np.ndarray:
        """Return the vectors [rows, d] of these rows of `table`, each of which has one (`search.has_vector`)."""
        return np.asarray(self._vectors[self._number[rows]])

    def near(self, vector: np.ndarray, industry: str | None, top: int) -> list[SimilarCase]:
        """Return the `top` most similar cases of the industry, nearest first.

        `vector` [d] has unit length. Cases in which refusing was right are left out, because no workflow should
        follow them.
        """
        rows, cosines = self.search.nearest(vector, top, self._allowed(industry))
        if not len(rows[:top]):
            return []
        cases, nearest = self._at(rows[:top].tolist()), cosines[:top].tolist()
        weights = _weights(nearest, [case.success is not False for case in cases])
        return [case.weighed(cosine, weight) for case, cosine, weight in zip(cases, nearest, weights, strict=True)]

    def at(self, rows: Sequence[int], weights: Sequence[float], similarity: float | None) -> list[SimilarCase]:
        """Return the cases at these rows of `table` with these weights.

        `similarity` is that of the first case; that of the others falls with their weight.
        """
        top = 1.0 if similarity is None else similarity
        return [case.weighed(top * weight, weight) for case, weight in zip(self._at(rows), weights, strict=True)]

    def rows_of(self, industry: str | None) -> np.ndarray:
        """Return the rows of `table` of the industry's cases (None: all), without those in which refusing was right."""
        if industry not in self._rows_of:
            taken = pc.fill_null(self._all["expected_outcome"], True)
            if industry is not None:
                taken = pc.and_(taken, pc.fill_null(pc.equal(self._all["industry"], industry), False))
            self._rows_of[industry] = np.flatnonzero(taken.to_numpy())
        return self._rows_of[industry]

    @property
    def table(self) -> pa.Table:
        """Return all cases, ordered by id."""
        return self._all

    def near_case_with(self, task: str, vector: np.ndarray, industry: str | None, top: int) -> list[SimilarCase]:
        """Return the cases similar to the most similar case that did the task and did not fail.

        Returns an empty list where no such case exists.
        """
        models = self.search.among(self._allowed(industry).mask & self._models_of(task))
        rows, _ = self.search.nearest(vector, 1, models)
        return self.near(self.vectors_of(rows[:1])[0], industry, top) if len(rows) else []

    def _at(self, places: Sequence[int]) -> list[SimilarCase]:
        """Return the cases at these rows; cases that were read once are kept, because many intakes need the same."""
        unread = [place for place in places if place not in self._read]
        if len(self._read) + len(unread) > _KEPT_CASES:
            self._read, unread = {}, list(places)
        if unread:
            self._read |= self._cases_at(unread)
        return [self._read[place] for place in places]

    def _cases_at(self, places: Sequence[int]) -> dict[int, SimilarCase]:
        rows = (
            self._all.select([c for c in _COLUMNS if c in self._all.schema.names])
            .take(pa.array(places, pa.int64()))
            .to_pylist()
        )
        cases = (_case(row, self._passive, row.get("source") in self._by_activities) for row in rows)
        return dict(zip(places, cases, strict=True))

    def _allowed(self, industry: str | None) -> Selection:
        """Return the cases with a vector that are of the industry, where refusing was not right."""
        if industry not in self._selections:
            mask = np.zeros(self._all.num_rows, bool)
            mask[self.rows_of(industry)] = True
            self._selections[industry] = self.search.among(mask & self.search.has_vector)
        return self._selections[industry]

    def _models_of(self, task: str) -> np.ndarray:
        """Return, for each case [cases], whether it did the task and did not fail."""
        done = pc.list_parent_indices(self._all["tasks"]).filter(pc.equal(pc.list_flatten(self._all["tasks"]), task))
        did_task = np.zeros(self._all.num_rows, dtype=bool)
        did_task[done.to_numpy()] = True
        did_task &= pc.fill_null(self._all["success"], True).to_numpy()
        return did_task


def _weights(cosines: Sequence[float], is_model: Sequence[bool]) -> list[float]:
    """Return a weight in ]0, 1] for every case, nearest first; it is 1 down to the similarity of the first model."""
    models = [cosine for cosine, model in zip(cosines, is_model, strict=True) if model] or [cosines[0]]
    sharpness = min(max(models[0] - models[min(ENOUGH, len(models)) - 1], SHARPEST), BLUNTEST)
    return [min(1.0, math.exp((cosine - models[0]) / sharpness)) for cosine in cosines]


def _case(row: dict[str, Any], passive: frozenset[str], outcome_by_activities: bool) -> SimilarCase:
    activities: Sequence[str] = row["tasks"] or ()
    steps = [place for place, task in enumerate(activities) if task not in passive]
    values = {name: tuple(row[name][place] for place in steps) if row.get(name) else () for name in _IN_STEP}
    return SimilarCase(
        implementation_id=row["implementation_id"],
        similarity=1.0,
        weight=1.0,
        success=row["success"],
        expected_outcome=row["expected_outcome"],
        client=row["client"],
        kind_of_case=row["kind_of_case"],
        tasks=values["tasks"],
        task_keys=values["task_keys"],
        task_cost_usd=values["task_cost_usd"],
        task_duration_ms=values["task_duration_ms"],
        actor_kinds=values["actor_kinds"],
        activities=tuple(activities),
        models=values["models"],
        actor_groups=values["actor_groups"],
        lead_time_ms=row.get("lead_time_ms"),
        outcome_by_activities=outcome_by_activities,
        attributes=tuple((name, value) for name, value in row.get("attributes") or () if value is not None),
    )


# Similar cases whose first and last task an SWKG must reach, so that a sequence in it can begin and end.
ENDS_OF_CASES = 3


def subgraphs_of(graph: WorkGraph, routed: Sequence[Routed], cases: Sequence[SimilarCase]) -> list[SubWKG]:
    """Return one SWKG for each neighbourhood of the routed tasks and of the first and last tasks of similar cases."""
    seeds = {r.id: r.similarity for r in routed}
    for case in [c for c in cases if c.tasks][:ENDS_OF_CASES]:
        for task in (case.tasks[0], case.tasks[-1]):
            seeds.setdefault(task, min([r.similarity for r in routed], default=0.0))
    near = neighbourhoods(graph, sorted(seeds.items()))
    return [steiner(graph, n.terminals, n.tasks) for n in near]


def whole_of(graph: WorkGraph, industry: str | None) -> SubWKG:
    """Return all tasks of an industry with their edges, as an evaluation has them in place of the SWKGs."""
    tasks = [task for task, known in sorted(graph.tasks.items()) if industry is None or industry in known.industries]
    inside = set(tasks)
    edges = tuple(edge for pair, edge in graph.edges.items() if inside.issuperset(pair))
    return SubWKG(dict.fromkeys(tasks, "terminal"), edges)
