"""The sensor that starts a rebuild when the history folder changed.

It is off unless the settings or a person in the UI turn it on.
"""

import json
from pathlib import Path

import dagster as dg

from jobs.rebuild import JOB
from opus_pipelines.core.settings import Settings
from opus_pipelines.history.ingestion.plan import fingerprint


def history_changed(settings: Settings) -> dg.SensorDefinition:
    """Returns the sensor: one rebuild for each state of the folder that two successive evaluations found equal.

    So half-copied files wait.
    """

    @dg.sensor(
        name="history_changed",
        job=JOB,
        minimum_interval_seconds=settings.schedule.watch_seconds,
        default_status=dg.DefaultSensorStatus.RUNNING
        if settings.schedule.watch_history
        else dg.DefaultSensorStatus.STOPPED,
        description="Start a rebuild when the files of the history folder changed and no longer change.",
    )
    def sensor(context: dg.SensorEvaluationContext) -> dg.SensorResult | dg.SkipReason:
        return _look(settings.paths.history, context.cursor)

    return sensor


def _look(history: Path, cursor: str | None) -> dg.SensorResult | dg.SkipReason:
    """Decides on a rebuild; `cursor` holds the last state seen and the last state for which a rebuild was requested.

    The first evaluation only stores the state. The request has no run key: Dagster would remember it for ever, and a
    folder that returned to an earlier state would never be read.
    """
    if not history.is_dir():
        return dg.SkipReason(f"{history}: no such history folder")
    now = fingerprint(history)
    before = json.loads(cursor) if cursor else {"seen": now, "asked": now}
    settled = now == before["seen"]
    wanted = settled and now != before["asked"]
    after = json.dumps({"seen": now, "asked": now if wanted else before["asked"]})
    reason = None if wanted else dg.SkipReason("nothing changed" if settled else "files are still changing")
    return dg.SensorResult(run_requests=[dg.RunRequest()] if wanted else [], skip_reason=reason, cursor=after)
