"""The cases of history near an Intention, looked up in one snapshot: vectors and cases joined once, then searched often."""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from opus_pipelines.intention.routing import nearest_cases
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
        column = vectors["vector"].combine_chunks()
        self._vectors = np.asarray(column.flatten(), dtype=np.float32).reshape(len(column), column.type.list_size)
        self._industry = np.array(self._cases["industry"].to_pylist(), dtype=object)
        self._refusal = np.array([x is False for x in self._cases["expected_outcome"].to_pylist()], dtype=bool)

    def __len__(self) -> int:
        return self._cases.num_rows

    def near(self, vector: np.ndarray, industry: str | None, top: int) -> list[NearCase]:
        """The `top` nearest cases of the industry, nearest first; cases where refusing was right are no models to follow."""
        if not len(self):
            return []
        allowed = ~self._refusal if industry is None else ~self._refusal & (self._industry == industry)
        hits = nearest_cases(self._vectors, vector, allowed, top)
        if not hits:
            return []
        rows = self._cases.take([place for place, _ in hits]).to_pylist()
        cosines = [cosine for _, cosine in hits]
        weights = _weights(cosines, [row["success"] is not False for row in rows])
        return [_case(row, cosine, weight) for row, cosine, weight in zip(rows, cosines, weights, strict=True)]


def _weights(cosines: Sequence[float], is_model: Sequence[bool]) -> list[float]:
    """A weight in ]0, 1] for every case, nearest first; 1 down to the nearest model's similarity."""
    models = [cosine for cosine, model in zip(cosines, is_model, strict=True) if model] or [cosines[0]]
    sharpness = min(max(models[0] - models[min(ENOUGH, len(models)) - 1], SHARPEST), BLUNTEST)
    return [min(1.0, math.exp((cosine - models[0]) / sharpness)) for cosine in cosines]


def _case(row: dict[str, Any], similarity: float, weight: float) -> NearCase:
    tasks: Sequence[str] = row["tasks"] or ()
    return NearCase(
        implementation_id=row["implementation_id"], similarity=similarity, weight=weight,
        success=row["success"], expected_outcome=row["expected_outcome"], client=row["client"], kind_of_case=row["kind_of_case"],
        tasks=tuple(tasks), task_keys=tuple(row["task_keys"] or ()), task_cost_usd=tuple(row["task_cost_usd"] or ()),
        task_duration_ms=tuple(row["task_duration_ms"] or ()), actor_kinds=tuple(row["actor_kinds"] or ()),
    )
