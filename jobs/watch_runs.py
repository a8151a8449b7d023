"""The sensors that record each ended run of our jobs and send its alerts; runs of `opus` itself are recorded by it."""

from datetime import datetime
from typing import Any

import dagster as dg

from assets.tables import page_link
from jobs.run_record import FAILED, run_record
from opus_pipelines.core.settings import Settings
from opus_pipelines.lake import runs
from opus_pipelines.lake.layout import Lake
from opus_pipelines.lake.runs import RunRecord, is_recorded

ASSET = dg.AssetKey(["ops", "runs"])
SECONDS = 30


def recorded(settings: Settings) -> list[dg.SensorDefinition]:
    """Returns the sensors for runs that succeeded, failed or were stopped."""
    statuses = {
        "run_succeeded": dg.DagsterRunStatus.SUCCESS,
        "run_failed": dg.DagsterRunStatus.FAILURE,
        "run_stopped": dg.DagsterRunStatus.CANCELED,
    }
    return [_sensor(name, status, settings) for name, status in statuses.items()]


def _sensor(name: str, status: dg.DagsterRunStatus, settings: Settings) -> dg.SensorDefinition:
    @dg.run_status_sensor(
        run_status=status,
        name=name,
        minimum_interval_seconds=SECONDS,
        default_status=dg.DefaultSensorStatus.RUNNING,
        description="Record the run in ops/runs, write metrics, and send alerts where the settings ask for them.",
    )
    def sensor(context: dg.RunStatusSensorContext) -> None:
        report_run(context.instance, context.dagster_run.run_id, settings)

    return sensor


def report_run(instance: dg.DagsterInstance, run_id: str, settings: Settings) -> None:
    """Reports one ended run of our jobs, once."""
    if is_recorded(Lake(settings.paths.lake), run_id):
        return
    record = run_record(instance, run_id, settings)
    if record is not None and runs.report(settings, record) and record.job != "generate":
        instance.report_runless_asset_event(_event(record, settings.ops.pages_url))


def report_failed_since(instance: dg.DagsterInstance, since: datetime, settings: Settings) -> None:
    """Reports the runs that were marked as failed since then because their process had died."""
    filters = dg.RunsFilter(statuses=FAILED, updated_after=since)
    for record in instance.get_run_records(filters=filters):
        report_run(instance, record.dagster_run.run_id, settings)


def _event(record: RunRecord, pages_url: str) -> dg.AssetMaterialization:
    """The figures of a night, which Dagster draws as series over time."""
    figures = {
        "seconds": record.duration_ms / 1000,
        "items": record.items,
        "items_per_second": record.items_per_second,
        "rejects": record.rejects,
        "checks_failed": record.checks_failed,
        "drift_share": record.drift_share,
        "cpu_seconds": None if record.cpu_ms is None else record.cpu_ms / 1000,
        "peak_memory_mb": record.peak_memory_mb,
        "cost_usd": record.cost_usd,
        **{f"seconds_of_{stage.stage}": stage.duration_ms / 1000 for stage in record.stages},
    }
    told: dict[str, Any] = {"job": record.job, "status": record.status, "run": record.run}
    if pages_url:
        told["page"] = page_link(pages_url, "nights.html")
    told |= {name: value for name in ("reason", "evidence", "repeat") if (value := getattr(record, name)) is not None}
    return dg.AssetMaterialization(
        ASSET, metadata=told | {name: value for name, value in figures.items() if value is not None}
    )
