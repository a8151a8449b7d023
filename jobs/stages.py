"""The jobs that people, schedules and sensors start, and the schedules of the nightly rebuild and the weekly training.

The jobs `generate` and `flows` have a partition for each contract, and each run takes one of them.
"""

from collections.abc import Iterable

import dagster as dg

from assets.specs import CONTRACTS
from opus_pipelines.core.settings import Schedule

PARTITION = "dagster/partition"  # the tag by which Dagster knows the contract of a run
REBUILD_JOB = dg.define_asset_job(
    "rebuild",
    selection=dg.AssetSelection.groups("history", "wkg", "forecasts")
    | dg.AssetSelection.assets(["inputs", "history"], ["inputs", "settings"]),
    description="Read what changed, mine, embed, check, publish a snapshot, forecast the open cases.",
)
TRAIN_JOB = dg.define_asset_job(
    "train",
    selection=dg.AssetSelection.groups("training"),
    description="Train on the current snapshot, judge on held-out cases, promote only beyond the interval.",
)
GENERATE_JOB = dg.define_asset_job(
    "generate",
    selection=dg.AssetSelection.groups("generation", "workflows", "reports")
    | dg.AssetSelection.assets(["inputs", "intakes"]),
    description="Make the ranked workflows of the chosen contracts; what is up to date is skipped.",
)
FLOWS_JOB = dg.define_asset_job(
    "flows",
    selection=dg.AssetSelection.groups("flows"),
    description="Write the flows of the chosen contracts' utterances; what is up to date is skipped.",
)


def schedules(schedule: Schedule) -> list[dg.ScheduleDefinition]:
    """Returns the schedules of opus.toml: the nightly rebuild and the weekly training.

    They are on wherever the daemon runs, unless the settings turn them off.
    """
    status = dg.DefaultScheduleStatus.RUNNING if schedule.enabled else dg.DefaultScheduleStatus.STOPPED
    return [
        dg.ScheduleDefinition(
            name=name,
            job=job,
            cron_schedule=cron,
            execution_timezone=schedule.timezone,
            default_status=status,
        )
        for name, job, cron in (("nightly", REBUILD_JOB, schedule.nightly), ("weekly", TRAIN_JOB, schedule.weekly))
    ]


def requests(
    known: Iterable[str], wanted: Iterable[str]
) -> tuple[list[dg.RunRequest], list[dg.AddDynamicPartitionsRequest]]:
    """Returns one run for each wanted contract, in order, and the keys that Dagster must know first."""
    keys = sorted(set(wanted))
    new = [key for key in keys if key not in set(known)]
    return [dg.RunRequest(tags={PARTITION: key}) for key in keys], [CONTRACTS.build_add_request(new)] if new else []
