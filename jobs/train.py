"""The weekly training: a model learns from the current snapshot, and serves only where it is better."""

import dagster as dg

from opus_pipelines.core.settings import Schedule

WEEKLY = "weekly"  # the schedule's name
JOB = dg.define_asset_job(
    "train",
    selection=dg.AssetSelection.groups("training"),
    description="Train on the current snapshot, judge on held-out cases, promote only beyond the interval.",
)


def weekly(schedule: Schedule) -> dg.ScheduleDefinition:
    """Returns the schedule of opus.toml; it is on wherever the daemon runs, unless the settings turn it off."""
    status = dg.DefaultScheduleStatus.RUNNING if schedule.enabled else dg.DefaultScheduleStatus.STOPPED
    return dg.ScheduleDefinition(
        name=WEEKLY,
        job=JOB,
        cron_schedule=schedule.weekly,
        execution_timezone=schedule.timezone,
        default_status=status,
    )
