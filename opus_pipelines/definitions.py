"""Everything Dagster is told: assets, checks, jobs, schedules and resources put together. A table of contents, no
logic.
"""

import os
from collections.abc import Mapping
from datetime import timedelta
from pathlib import Path
from typing import Any

import dagster as dg

from assets import forecasts, generation, history, training, wkg
from assets.specs import key
from jobs import generate, rebuild, train, watch_history, watch_intakes
from opus_pipelines.core.settings import Settings, load
from opus_pipelines.lake.layout import Lake
from resources.encoder import EncoderResource
from resources.lake import LakeRun
from resources.spark import SparkResource


def build_defs(settings: Settings, resources: Mapping[str, Any] | None = None) -> dg.Definitions:
    """Definitions for these settings; `resources` replaces single ones (tests)."""
    fresh = dg.FreshnessPolicy.time_window(fail_window=timedelta(hours=settings.schedule.fresh_hours))
    watched = key("wkg/snapshot")
    snapshot = wkg.snapshot.map_asset_specs(
        lambda spec: dg.apply_freshness_policy(spec, fresh) if spec.key == watched else spec
    )
    return dg.Definitions(
        assets=[
            history.history,
            wkg.mine,
            wkg.embed,
            snapshot,
            forecasts.forecasts,
            generation.generate,
            training.train_pointer,
        ],
        asset_checks=[wkg.check_mined, wkg.check_embedded],
        jobs=[rebuild.JOB, generate.JOB, train.JOB],
        schedules=[rebuild.nightly(settings.schedule), train.weekly(settings.schedule)],
        sensors=[
            watch_history.history_changed(settings),
            watch_intakes.intakes_changed(settings),
            generate.after_the_night(settings),
        ],
        resources={
            "run": LakeRun.of(settings),
            "spark": SparkResource.of(settings),
            "encoder": EncoderResource.of(settings.encoder, Lake(settings.paths.lake)),
            **(resources or {}),
        },
        executor=dg.in_process_executor,  # one process, one Spark session, state handed on in memory
    )


def _settings() -> Settings:
    """As the command line would have them: OPUS_SETTINGS or opus.toml in OPUS_FOLDER (`opus ui` names the folder in
    which it was started), OPUS_* variables; paths absolute.
    """
    file = os.environ.get("OPUS_SETTINGS")
    settings = load(Path(file) if file else None, folder=Path(os.environ.get("OPUS_FOLDER", ".")))
    paths = settings.paths.model_copy(update={name: path.expanduser().absolute() for name, path in settings.paths})
    return settings.model_copy(update={"paths": paths})


defs = build_defs(_settings())
