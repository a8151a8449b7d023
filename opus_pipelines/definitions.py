"""Everything Dagster is told: assets, checks, jobs, schedules and resources put together. A table of contents, no
logic.
"""

from collections.abc import Mapping
from datetime import timedelta
from typing import Any

import dagster as dg

import opus_pipelines.core.checkout  # noqa: F401  in a wheel, the imports below need it

# isort: split
from assets import flows, forecasts, generation, history, inputs, training, wkg
from assets.specs import key, spec
from jobs import nightly_contracts, sensors, stages
from opus_pipelines.core.settings import Settings
from resources.encoder import EncoderResource
from resources.lake import WAIT_SECONDS, LakeRun
from resources.settings import SettingsResource, of_environment
from resources.spark import SparkResource


def build_defs(
    settings: Settings,
    resources: Mapping[str, Any] | None = None,
    executor: dg.ExecutorDefinition = dg.in_process_executor,
) -> dg.Definitions:
    """Definitions for these settings; `resources` replaces single ones.

    The steps of a run find each other's results in the lake, so any executor will do. One process a run costs least: a
    step of its own process loads Dagster, and Spark or the encoder, again.
    """
    fresh = dg.FreshnessPolicy.time_window(fail_window=timedelta(hours=settings.schedule.fresh_hours))
    watched = key("wkg/snapshot")
    snapshot = wkg.snapshot.map_asset_specs(
        lambda spec: dg.apply_freshness_policy(spec, fresh) if spec.key == watched else spec
    )
    after_the_night = nightly_contracts.condition(settings)
    contracts = generation.generate.map_asset_specs(
        lambda spec: spec.replace_attributes(automation_condition=after_the_night)
    )
    return dg.Definitions(
        assets=[
            inputs.observe_history,
            inputs.observe_intakes,
            history.history,
            wkg.mine,
            wkg.embed,
            snapshot,
            forecasts.forecasts,
            contracts,
            training.train_pointer,
            flows.write_flows,
            spec("ops/runs", "ops"),
        ],
        asset_checks=[wkg.check_mined, wkg.check_embedded],
        jobs=[stages.REBUILD_JOB, stages.GENERATE_JOB, stages.TRAIN_JOB, stages.FLOWS_JOB],
        schedules=stages.schedules(settings.schedule),
        sensors=[
            sensors.history_changed(settings),
            sensors.intakes_changed(settings),
            sensors.flows_changed(settings),
            nightly_contracts.sensor(settings.schedule),
            *sensors.recorded(settings),
        ],
        resources={
            "settings": SettingsResource.of(settings),
            "run": LakeRun.of(settings),
            "spark": SparkResource.of(settings),
            "encoder": EncoderResource.of(settings),
            **(resources or {}),
        },
        executor=executor,
    )


@dg.definitions
def defs() -> dg.Definitions:
    """The definitions of a deployment. The schedules and sensors are those of the settings when Dagster loads them.

    The resources read the settings in the process that runs: importing this module reads no environment.
    """
    resources = {
        "settings": SettingsResource(),
        "run": LakeRun(wait_seconds=WAIT_SECONDS),
        "spark": SparkResource(),
        "encoder": EncoderResource(),
    }
    return build_defs(of_environment(), resources)
