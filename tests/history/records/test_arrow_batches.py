"""content_hash: equal rows have equal hashes, whatever batch they stand in, and every change shows."""

from copy import deepcopy
from datetime import UTC, datetime
from typing import Any

import pyarrow as pa
import pytest

from opus_pipelines.core.schemas import IMPLEMENTATIONS
from opus_pipelines.history.records.arrow_arrays import content_hashes

SCHEMA = pa.schema([f for f in IMPLEMENTATIONS.schema if f.name != "content_hash"])
TASK: dict[str, Any] = {
    "position": 0,
    "task_key": "A",
    "title": "A",
    "started_at": datetime(2026, 1, 1, tzinfo=UTC),
    "duration_ms": 1.5,
    "success": True,
    "inputs": ["x", "y"],
    "predecessors": [],
    "attributes": [("a", "1"), ("b", "2")],
}
ROW: dict[str, Any] = {
    "implementation_id": "i1",
    "source": "s",
    "case_id": "1",
    "attributes": [("k", "v")],
    "weight": 1,
    "cost_usd": 0.0,
    "success": False,
    "description": "long " * 100,
    "tasks": [TASK, TASK | {"position": 1, "task_key": "B" * 9}],
}


def hashes(*rows: dict[str, Any]) -> list[str]:
    return content_hashes(pa.RecordBatch.from_pylist(list(rows), schema=SCHEMA)).to_pylist()


def test_the_hash_is_this() -> None:
    assert hashes(ROW) == ["100c4045858802851b96da2379e8f03e"]


def test_it_does_not_depend_on_the_batch() -> None:
    others = [ROW | {"case_id": str(n), "tasks": [TASK] * (n % 4)} for n in range(2000)]
    (alone,) = hashes(ROW)
    together = hashes(*others, ROW, *others)
    assert together[2000] == alone
    assert together[:2000] == together[2001:]
    assert together[5] == hashes(others[5])[0]
    assert len(set(together)) == 2001
    batch = pa.RecordBatch.from_pylist([*others, ROW], schema=SCHEMA)
    assert content_hashes(batch.slice(1990, 11)).to_pylist() == together[1990:2001]


def changed(**values: Any) -> dict[str, Any]:
    row = deepcopy(ROW)
    row["tasks"][0] |= values
    return row


@pytest.mark.parametrize(
    "other",
    [
        ROW | {"case_id": "2"},
        ROW | {"case_id": None},
        ROW | {"title": ""},
        ROW | {"success": True},
        ROW | {"success": None},
        ROW | {"cost_usd": None},
        ROW | {"cost_usd": 1e-300},
        ROW | {"description": "long " * 99 + "lonG "},
        ROW | {"attributes": [("k", "w")]},
        ROW | {"attributes": [("k", "v"), ("l", "")]},
        ROW | {"attributes": []},
        ROW | {"source": "1", "case_id": "s"},
        ROW | {"tasks": ROW["tasks"][:1]},
        ROW | {"tasks": ROW["tasks"][::-1]},
        ROW | {"tasks": []},
        changed(task_key="A\0"),
        changed(title="B", task_key="A"),
        changed(inputs=["y", "x"]),
        changed(inputs=["xy"]),
        changed(inputs=[]),
        changed(inputs=None),
        changed(predecessors=None),
        changed(predecessors=[0]),
        changed(duration_ms=1.5000000000000002),
        changed(attributes=[("a", "1b"), ("b", "2")]),
        changed(started_at=datetime(2026, 1, 1, 0, 0, 0, 1, tzinfo=UTC)),
        changed(ended_at=datetime(2026, 1, 1, tzinfo=UTC), started_at=None),
    ],
)
def test_every_change_shows(other: dict[str, Any]) -> None:
    assert hashes(other) != hashes(ROW)


def test_a_zero_is_a_zero() -> None:
    assert hashes(ROW | {"cost_usd": -0.0}) == hashes(ROW)


def test_no_rows_have_no_hashes() -> None:
    assert content_hashes(pa.RecordBatch.from_pylist([], schema=SCHEMA)).to_pylist() == []
