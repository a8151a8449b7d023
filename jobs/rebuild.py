"""The nightly rebuild: from history to a published snapshot."""

import dagster as dg

from opus_pipelines.core.settings import Schedule

NIGHTLY = "nightly"  # the schedule's name
JOB = dg.define_asset_job(
    "rebuild",
    selection=dg.AssetSelection.groups("history", "wkg", "forecasts")
    | dg.AssetSelection.assets(["inputs", "history"], ["inputs", "settings"]),
    description="Read what changed, mine, embed, check, publish a snapshot, forecast the open cases.",
)


def nightly(schedule: Schedule) -> dg.ScheduleDefinition:
    """Returns the schedule of opus.toml; it is on wherever the daemon runs, unless the settings turn it off."""
    status = dg.DefaultScheduleStatus.RUNNING if schedule.enabled else dg.DefaultScheduleStatus.STOPPED
    return dg.ScheduleDefinition(
        name=NIGHTLY,
        job=JOB,
        cron_schedule=schedule.nightly,
        execution_timezone=schedule.timezone,
        default_status=status,
    )
