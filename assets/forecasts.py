"""After the snapshot: the cases that are still open in history are forecast."""

import logging
from collections.abc import Iterator
from typing import Any

import dagster as dg

from assets.specs import POOL, made, reason_first, spec
from opus_pipelines.core.formatting import Ticker
from opus_pipelines.core.versions import FORECASTS_VERSION
from resources.lake import LakeRun

GROUP = "forecasts"
logger = logging.getLogger("opus_pipelines.rebuild")
DATASETS = ("forecasts/cases", "forecasts/next_steps", "forecasts/limits")


@dg.multi_asset(
    name="forecast_open_cases",
    can_subset=True,
    pool=POOL,
    specs=[spec(name, GROUP, ["wkg/snapshot"], code_version=f"forecasts={FORECASTS_VERSION}") for name in DATASETS],
)
@reason_first
def forecasts(context: dg.AssetExecutionContext, run: LakeRun) -> Iterator[dg.MaterializeResult[None]]:
    """Refreshes the forecasts of open cases; a source that fails keeps its earlier forecasts and fails nothing."""
    from opus_pipelines.forecasts import publish
    from opus_pipelines.forecasts.limits import contract_limits

    progress = Ticker("forecasts of sources", logger.info)
    settings, current = run.typed.forecasts, run.lake.current_snapshot()
    done = publish.Refreshed({}, (), {})
    if settings.nightly and current is not None:
        done = publish.refresh(run.lake, settings, contract_limits(run.typed.paths.intakes), progress)
    facts: dict[str, Any] = {"cases": done.cases, "unchanged": list(done.unchanged), "failed": done.failed}
    results = [made(name, current or "", **(facts if name == DATASETS[0] else {})) for name in DATASETS]
    yield from (one for one in results if one.asset_key in context.selected_asset_keys)
