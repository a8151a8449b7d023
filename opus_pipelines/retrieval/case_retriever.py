"""The cases of history near an Intention, looked up in one snapshot: vectors and cases joined once, then searched
often.
"""

import math
from collections.abc import Collection, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from opus_pipelines.lwm.interface import SimilarCase
from opus_pipelines.retrieval.routing import nearest_cases

# A case `sharpness` less similar than the nearest model weighs 1/e of it; models are cases that did not fail. The
# sharpness is
# the distance to the ENOUGH-th model, within these bounds: one good text decides alone, many alike decide together.
ENOUGH = 10
SHARPEST, BLUNTEST = 0.005, 0.015
_IN_STEP = ("tasks", "task_keys", "task_cost_usd", "task_duration_ms", "actor_kinds", "models", "actor_groups")
_COLUMNS = ["implementation_id", "success", "expected_outcome", "client", "kind_of_case", "lead_time_ms", *_IN_STEP]
KEPT = 10_000  # cases that are remembered once they were read: some kB each


class CaseRetriever:
    """The cases of a snapshot in the order of their ids, those that have a vector to be searched by it."""

    def __init__(self, cases: pa.Table, vectors: pa.Table, passive: Collection[str] = ()) -> None:
        """`passive`: tasks that are no work steps; they stand in a case's `course` and not among its tasks."""
        self._all, self._passive = cases.sort_by("implementation_id"), frozenset(passive)
        with_vector = pc.is_in(self._all["implementation_id"], vectors["implementation_id"].combine_chunks())
        self._cases = self._all.filter(with_vector)
        self._place = np.flatnonzero(with_vector.to_numpy())
        vectors = vectors.sort_by("implementation_id")
        column = vectors["vector"].combine_chunks()
        self._vectors = np.asarray(column.flatten(), dtype=np.float32).reshape(len(column), column.type.list_size)
        self._industry = np.array(self._cases["industry"].to_pylist(), dtype=object)
        self._masks: dict[str | None, np.ndarray] = {}
        self._read: dict[int, SimilarCase] = {}
        self._refusal = np.array([x is False for x in self._cases["expected_outcome"].to_pylist()], dtype=bool)

    def __len__(self) -> int:
        """How many have a vector."""
        return self._cases.num_rows

    def near(self, vector: np.ndarray, industry: str | None, top: int) -> list[SimilarCase]:
        """The `top` nearest cases of the industry, nearest first; cases where refusing was right are no models to
        follow.
        """
        if not len(self):
            return []
        allowed = self._allowed(industry)
        hits = nearest_cases(self._vectors, vector, allowed, top)
        if not hits:
            return []
        cases = self._at([int(self._place[place]) for place, _ in hits])
        cosines = [cosine for _, cosine in hits]
        weights = _weights(cosines, [case.success is not False for case in cases])
        return [
            replace(case, similarity=cosine, weight=weight)
            for case, cosine, weight in zip(cases, cosines, weights, strict=True)
        ]

    def at(self, rows: Sequence[int], weights: Sequence[float], similarity: float | None) -> list[SimilarCase]:
        """The cases at these rows of the table by id, with these weights. `similarity`: of the first; it falls with
        the weight.
        """
        top = 1.0 if similarity is None else similarity
        return [
            replace(case, similarity=top * weight, weight=weight)
            for case, weight in zip(self._at(rows), weights, strict=True)
        ]

    def scope(self, industry: str | None) -> np.ndarray:
        """Rows of the table by id: cases of the industry (None: of all), but those where refusing was right."""
        refusal = np.array([x is False for x in self._all["expected_outcome"].to_pylist()], dtype=bool)
        mine = (
            np.array(self._all["industry"].to_pylist(), dtype=object) == industry if industry is not None else ~refusal
        )
        return np.flatnonzero(~refusal & mine)

    @property
    def table(self) -> pa.Table:
        """All cases by id."""
        return self._all

    def near_case_with(self, task: str, vector: np.ndarray, industry: str | None, top: int) -> list[SimilarCase]:
        """The cases `near` that one of them which is nearest to the vector among those that did the task and did not
        fail; else none.
        """
        allowed = self._allowed(industry) & self._models_of(task) if len(self) else np.zeros(0, bool)
        hits = nearest_cases(self._vectors, vector, allowed, 1) if allowed.any() else []
        return self.near(self._vectors[hits[0][0]], industry, top) if hits else []

    def _at(self, places: Sequence[int]) -> list[SimilarCase]:
        """The cases at these places, as near as can be; many intakes ask for the same ones."""
        unread = [place for place in places if place not in self._read]
        if len(self._read) + len(unread) > KEPT:
            self._read, unread = {}, list(places)
        rows = (
            self._all.select([c for c in _COLUMNS if c in self._all.schema.names])
            .take(pa.array(unread, pa.int64()))
            .to_pylist()
        )
        self._read |= zip(unread, (_case(row, self._passive) for row in rows), strict=True)
        return [self._read[place] for place in places]

    def _allowed(self, industry: str | None) -> np.ndarray:
        """[cases]: of the industry, and such that refusing was not right."""
        if industry not in self._masks:
            self._masks[industry] = (
                ~self._refusal if industry is None else ~self._refusal & (self._industry == industry)
            )
        return self._masks[industry]

    def _models_of(self, task: str) -> np.ndarray:
        """[cases]: did it, and did not fail."""
        done = pc.list_parent_indices(self._cases["tasks"]).filter(
            pc.equal(pc.list_flatten(self._cases["tasks"]), task)
        )
        found = np.zeros(self._cases.num_rows, dtype=bool)
        found[done.to_numpy()] = True
        return found & pc.fill_null(self._cases["success"], True).to_numpy()


def _weights(cosines: Sequence[float], is_model: Sequence[bool]) -> list[float]:
    """A weight in ]0, 1] for every case, nearest first; 1 down to the nearest model's similarity."""
    models = [cosine for cosine, model in zip(cosines, is_model, strict=True) if model] or [cosines[0]]
    sharpness = min(max(models[0] - models[min(ENOUGH, len(models)) - 1], SHARPEST), BLUNTEST)
    return [min(1.0, math.exp((cosine - models[0]) / sharpness)) for cosine in cosines]


def _case(row: dict[str, Any], passive: frozenset[str]) -> SimilarCase:
    course: Sequence[str] = row["tasks"] or ()
    steps = [place for place, task in enumerate(course) if task not in passive]
    of = {name: tuple(row[name][place] for place in steps) if row.get(name) else () for name in _IN_STEP}
    return SimilarCase(
        implementation_id=row["implementation_id"],
        similarity=1.0,
        weight=1.0,
        success=row["success"],
        expected_outcome=row["expected_outcome"],
        client=row["client"],
        kind_of_case=row["kind_of_case"],
        tasks=of["tasks"],
        task_keys=of["task_keys"],
        task_cost_usd=of["task_cost_usd"],
        task_duration_ms=of["task_duration_ms"],
        actor_kinds=of["actor_kinds"],
        activities=tuple(course),
        models=of["models"],
        actor_groups=of["actor_groups"],
        lead_time_ms=row.get("lead_time_ms"),
    )
