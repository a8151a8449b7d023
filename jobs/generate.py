"""The job that generates contracts, started by a person, a sensor or a successful nightly rebuild.

Each contract is a partition, and one run takes a contiguous range of them.
"""

from collections.abc import Iterable

import dagster as dg

from assets.partitions import CONTRACT, CONTRACTS
from jobs.rebuild import JOB as REBUILD
from jobs.rebuild import NIGHTLY
from jobs.spans import order_with, ranges, tags
from opus_pipelines.core.settings import Settings
from opus_pipelines.generation.contracts import contracts_of
from opus_pipelines.generation.results.staleness import is_current
from opus_pipelines.lake.layout import Lake

SCHEDULE_TAG = "dagster/schedule_name"
JOB = dg.define_asset_job(
    "generate",
    selection=dg.AssetSelection.groups("generation", "workflows", "reports"),
    description="Make the ranked workflows of the chosen contracts; what is up to date is skipped.",
)


def requests(
    known: Iterable[str], wanted: Iterable[str]
) -> tuple[list[dg.RunRequest], list[dg.AddDynamicPartitionsRequest]]:
    """Returns one run for each span of the wanted contracts, and the keys that Dagster must know first."""
    order, new = order_with(known, wanted)
    runs = [dg.RunRequest(tags=tags(first, last)) for first, last in ranges(order, wanted)]
    return runs, [CONTRACTS.build_add_request(new)] if new else []


def after_the_night(settings: Settings) -> dg.SensorDefinition:
    """Returns the sensor that follows a successful nightly rebuild.

    It generates the stale contracts that state `regenerate = "nightly"`.
    """

    @dg.run_status_sensor(
        name="after_the_night",
        run_status=dg.DagsterRunStatus.SUCCESS,
        monitored_jobs=[REBUILD],
        request_job=JOB,
        minimum_interval_seconds=settings.schedule.watch_seconds,
        default_status=dg.DefaultSensorStatus.RUNNING if settings.schedule.enabled else dg.DefaultSensorStatus.STOPPED,
        description='After a nightly rebuild: generate the contracts with regenerate = "nightly" whose results are '
        "stale.",
    )
    def sensor(context: dg.RunStatusSensorContext) -> dg.SensorResult | dg.SkipReason:
        if context.dagster_run.tags.get(SCHEDULE_TAG) != NIGHTLY:
            return dg.SkipReason("that rebuild was not the schedule's")
        wanted = nightly_contracts(settings)
        if not wanted:
            return dg.SkipReason('no contract with regenerate = "nightly" is stale')
        runs, new = requests(context.instance.get_dynamic_partitions(CONTRACT), wanted)
        return dg.SensorResult(run_requests=runs, dynamic_partitions_requests=new)

    return sensor


def nightly_contracts(settings: Settings) -> list[str]:
    """Returns the keys of contracts to generate each night whose result is not current."""
    lake = Lake(settings.paths.lake)
    snapshot = lake.current_snapshot()
    if snapshot is None or not settings.paths.intakes.is_dir():
        return []
    found = [
        c
        for c in contracts_of(lake, settings.paths.intakes)
        if c.problem is None and c.settings.regenerate == "nightly"
    ]
    return [c.key for c in found if not is_current(lake, c, snapshot, settings)]
