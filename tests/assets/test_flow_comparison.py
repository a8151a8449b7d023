"""The asset that compares writers of flows: its rows, and that an unknown writer fails with the known ones."""

import warnings
from pathlib import Path

import dagster as dg
import pytest

from assets.experiments import compare_flows
from opus_pipelines.core.settings import Paths, Settings
from opus_pipelines.reporting.views import connect
from resources.lake import LakeRun

pytestmark = pytest.mark.long


def materialized(settings: Settings, models: list[str]) -> dg.ExecuteInProcessResult:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # Dagster's own beta and deprecation notices
        return dg.materialize(
            [compare_flows],
            resources={"run": LakeRun.of(settings)},
            run_config={
                "ops": {"compare_flows": {"config": {"models": models}}},
                "loggers": {"console": {"config": {"log_level": "CRITICAL"}}},
            },
            raise_on_error=False,
        )


def test_the_asset_writes_a_row_for_each_requirement(tmp_path: Path) -> None:
    settings = Settings(paths=Paths(lake=tmp_path / "lake"))
    assert materialized(settings, ["frequent"]).success
    lake = LakeRun.of(settings).lake
    counted = connect(lake).execute("SELECT part, count(*) FROM evaluations_flows GROUP BY 1 ORDER BY 1").fetchall()
    assert counted == [("held out", 204), ("tune", 196)]
    assert not materialized(settings, ["oracle"]).success
