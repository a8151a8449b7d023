"""Rows of nights for tests."""

from datetime import UTC, datetime, timedelta
from typing import Any

from opus_pipelines.lake.runs import RunRecord, Stage

BEGIN = datetime(2026, 1, 1, 2, tzinfo=UTC)


def night(number: int, seconds: float = 60.0, **more: Any) -> RunRecord:
    """The rebuild of one night, 40 seconds of which were mining."""
    at = BEGIN + timedelta(days=number)
    stages = (Stage("read_history", 5_000.0), Stage("mine", 40_000.0))
    known: dict[str, Any] = {
        "status": "success",
        "stages": stages,
        "items": 1_000,
        "items_per_second": 20.0,
        "rejects": 3,
    }
    return RunRecord(
        run=f"run-{number:03}",
        job="rebuild",
        started_at=at,
        ended_at=at + timedelta(seconds=seconds),
        duration_ms=seconds * 1000,
        **known | {"checks": 9, "cpu_ms": 1_800_000.0, "peak_memory_mb": 2_048.0, "drift_share": 0.125} | more,
    )


def failed_night(number: int, **more: Any) -> RunRecord:
    """A night that failed."""
    told = {"reason": "the disk is full", "evidence": "runs/7.db (`opus ui`, run 7)", "repeat": "opus rebuild"}
    return night(number, status="failure", **told | more)
