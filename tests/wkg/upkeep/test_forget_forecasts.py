"""`opus forget` removes forecasts of the sources that hold the client, and no others."""

from pathlib import Path

import pytest

from opus_pipelines.core.schemas import FORECAST_CASES, FORECAST_LIMITS, FORECAST_STEPS
from opus_pipelines.forecasts.publish import ForecastOptions, forecast_source, publish, request_of
from opus_pipelines.wkg.estimates.next_activity import OpenRule
from opus_pipelines.wkg.upkeep.erasure import remove_forecasts
from tests.forecast_fixtures import claims_lake


@pytest.mark.long
def test_forecasts_of_a_source_are_removed(tmp_path: Path) -> None:
    lake = claims_lake(tmp_path / "lake")
    publish(lake, forecast_source(lake, request_of(lake, "claims", None, ForecastOptions(OpenRule.of("state")))))

    assert remove_forecasts(lake, ["loans"]) == 0
    assert remove_forecasts(lake, ["claims"]) == 1
    for dataset in (FORECAST_CASES, FORECAST_LIMITS, FORECAST_STEPS):
        assert not list(lake.folder(dataset).rglob("*.parquet"))
