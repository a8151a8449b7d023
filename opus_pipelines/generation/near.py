"""The cases of history near an Intention, looked up in one snapshot: vectors and cases joined once, then searched often."""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from opus_pipelines.intention.routing import Routed, nearest_cases
from opus_pipelines.lwm.interface import NearCase

SHARPNESS = 0.02  # a case this much less similar than the nearest that did not fail weighs 1/e of it


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

    def near(self, vector: np.ndarray, industry: str | None) -> list[NearCase]:
        """The nearest cases of the industry, nearest first; cases where refusing was right are no models to follow."""
        if not self._ids:
            return []
        allowed = ~self._refusal if industry is None else ~self._refusal & (self._industry == industry)
        hits = nearest_cases(self._ids, self._vectors, vector, allowed)
        if not hits:
            return []
        where = {i: n for n, i in enumerate(self._ids)}
        rows = self._cases.take([where[h.id] for h in hits]).to_pylist()
        model = next((hit for hit, row in zip(hits, rows, strict=True) if row["success"] is not False), hits[0])
        return [_case(row, hit, model.similarity) for row, hit in zip(rows, hits, strict=True)]


def _case(row: dict[str, Any], hit: Routed, near: float) -> NearCase:
    tasks: Sequence[str] = row["tasks"] or ()
    return NearCase(
        implementation_id=hit.id, similarity=hit.similarity, weight=min(1.0, math.exp((hit.similarity - near) / SHARPNESS)),
        success=row["success"], expected_outcome=row["expected_outcome"], client=row["client"], kind_of_case=row["kind_of_case"],
        tasks=tuple(tasks), task_keys=tuple(row["task_keys"] or ()), task_cost_usd=tuple(row["task_cost_usd"] or ()),
        task_duration_ms=tuple(row["task_duration_ms"] or ()), actor_kinds=tuple(row["actor_kinds"] or ()),
    )
