"""What happens after each run: its row, the metrics, and the alerts; each once, and none of it fails a run."""

import logging
from dataclasses import replace

from opus_pipelines.core.errors import OpusError
from opus_pipelines.core.settings import Settings
from opus_pipelines.lake.layout import Lake
from opus_pipelines.lake.runs import alerts, metrics
from opus_pipelines.lake.runs.runs import RunRecord, record

_MS_PER_HOUR = 3_600_000.0
logger = logging.getLogger("opus_pipelines.lake.runs")


def report(settings: Settings, run: RunRecord) -> bool:
    """Records the run, writes the metrics and sends the alerts. Returns False where this was done before."""
    lake, wanted = Lake(settings.paths.lake), settings.ops
    if run.cpu_ms is not None and wanted.usd_per_cpu_hour is not None:
        run = replace(run, cost_usd=run.cpu_ms / _MS_PER_HOUR * wanted.usd_per_cpu_hour)
    try:
        if not record(lake, run, wanted.keep_runs):
            return False
        if wanted.metrics_folder is not None:
            metrics.write(run, wanted.metrics_folder / f"opus_{run.job}.prom")
    except (OSError, OpusError) as error:
        logger.warning("run %s is not in ops/runs or in the metrics: %s", run.run, error)
    for line in alerts.send(run, settings.alerts):
        logger.warning("%s", line)
    return True
