"""The cases of history near an Intention, looked up in one snapshot: vectors and cases joined once, then searched often."""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from opus_pipelines.intention.routing import Routed, nearest_cases
from opus_pipelines.lwm.interface import NearCase

# A case `sharpness` less similar than the nearest model weighs 1/e of it; models are cases that did not fail. The sharpness is
# the distance to the ENOUGH-th model, within these bounds: one good text decides alone, many alike decide together.
ENOUGH = 10
SHARPEST, BLUNTEST = 0.005, 0.015


class CaseBook:
    """The cases of a snapshot that have a vector, in the order of their ids."""

    def __init__(self, cases: pa.Table, vectors: pa.Table) -> None:
        with_vector = pc.is_in(cases["implementation_id"], vectors["implementation_id"].combine_chunks())
        self._cases = cases.filter(with_vector).sort_by("implementation_id")
        vectors = vectors.sort_by("implementation_id")
        self._ids: list[str] = self._cases["implementation_id"].to_pylist()
        column = vectors["vector"].combine_chunks()
        self._vectors = np.asarray(column.flatten(), dtype=np.float32).reshape(len(column), column.type.list_size)
        self._industry = np.array(self._cases["industry"].to_pylist(), dtype=object)
        self._refusal = np.array([x is False for x in self._cases["expected_outcome"].to_pylist()], dtype=bool)

    def __len__(self) -> int:
        return len(self._ids)

    def near(self, vector: np.ndarray, industry: str | None, top: int) -> list[NearCase]:
        """The `top` nearest cases of the industry, nearest first; cases where refusing was right are no models to follow."""
        if not self._ids:
            return []
        allowed = ~self._refusal if industry is None else ~self._refusal & (self._industry == industry)
        hits = nearest_cases(self._ids, self._vectors, vector, allowed, top)
        if not hits:
            return []
        where = {i: n for n, i in enumerate(self._ids)}
        rows = self._cases.take([where[h.id] for h in hits]).to_pylist()
        weights = _weights(hits, [row["success"] is not False for row in rows])
        return [_case(row, hit, weight) for row, hit, weight in zip(rows, hits, weights, strict=True)]


def _weights(hits: Sequence[Routed], is_model: Sequence[bool]) -> list[float]:
    """A weight in ]0, 1] for every hit, nearest first; 1 down to the nearest model's similarity."""
    models = [hit.similarity for hit, model in zip(hits, is_model, strict=True) if model] or [hits[0].similarity]
    sharpness = min(max(models[0] - models[min(ENOUGH, len(models)) - 1], SHARPEST), BLUNTEST)
    return [min(1.0, math.exp((hit.similarity - models[0]) / sharpness)) for hit in hits]


def _case(row: dict[str, Any], hit: Routed, weight: float) -> NearCase:
    tasks: Sequence[str] = row["tasks"] or ()
    return NearCase(
        implementation_id=hit.id, similarity=hit.similarity, weight=weight,
        success=row["success"], expected_outcome=row["expected_outcome"], client=row["client"], kind_of_case=row["kind_of_case"],
        tasks=tuple(tasks), task_keys=tuple(row["task_keys"] or ()), task_cost_usd=tuple(row["task_cost_usd"] or ()),
        task_duration_ms=tuple(row["task_duration_ms"] or ()), actor_kinds=tuple(row["actor_kinds"] or ()),
    )
