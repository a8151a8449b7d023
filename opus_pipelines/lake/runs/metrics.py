"""Metrics of the latest run of a job, in the text format of Prometheus, one file for each job.

A node exporter reads the files by its textfile collector, so no port is opened.
"""

from pathlib import Path

from opus_pipelines.lake.runs.runs import RunRecord

_GAUGES = (
    ("success", "1 where the latest run succeeded, 0 where it failed"),
    ("end_timestamp_seconds", "when the latest run ended, in seconds since 1970"),
    ("duration_seconds", "duration of the latest run"),
    ("items", "cases or intakes of the latest run"),
    ("rejects", "records rejected, or intakes failed"),
    ("checks_failed", "checks of the latest run that failed"),
    ("cpu_seconds", "processor time of the latest run"),
    ("peak_memory_bytes", "memory of the latest run at its peak"),
    ("drift_share", "share of tasks that came or went"),
    ("cost_usd", "cost of the latest run"),
)


def write(run: RunRecord, file: Path) -> None:
    """Writes the metrics of a run in one atomic step. A figure that is unknown is left out."""
    from prometheus_client import CollectorRegistry, Gauge, write_to_textfile

    registry = CollectorRegistry()
    values = _values(run)
    for name, about in _GAUGES:
        if (value := values[name]) is not None:
            Gauge(f"opus_run_{name}", about, ["job"], registry=registry).labels(run.job).set(value)
    stages = Gauge("opus_run_stage_seconds", "duration of a step", ["job", "stage"], registry=registry)
    for stage in run.stages:
        stages.labels(run.job, stage.stage).set(stage.duration_ms / 1000)
    file.parent.mkdir(parents=True, exist_ok=True)
    write_to_textfile(str(file), registry)


def _values(run: RunRecord) -> dict[str, float | None]:
    return {
        "success": float(not run.has_failed),
        "end_timestamp_seconds": run.ended_at.timestamp(),
        "duration_seconds": run.duration_ms / 1000,
        "items": run.items,
        "rejects": run.rejects,
        "checks_failed": run.checks_failed,
        "cpu_seconds": None if run.cpu_ms is None else run.cpu_ms / 1000,
        "peak_memory_bytes": None if run.peak_memory_mb is None else run.peak_memory_mb * 1e6,
        "drift_share": run.drift_share,
        "cost_usd": run.cost_usd,
    }
