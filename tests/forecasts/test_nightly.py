"""The night forecasts the open cases of history again where something changed, and never fails for it."""

import shutil
from pathlib import Path

import pytest

from opus_pipelines.core.schemas import CASES, FORECAST_CASES, FORECAST_LIMITS, IMPLEMENTATIONS
from opus_pipelines.core.settings import Forecasts
from opus_pipelines.forecasts.limits import COST, Limit
from opus_pipelines.forecasts.publish import refresh
from opus_pipelines.lake.layout import Lake, dataset_folder, read_table, table_of, write_json, write_table
from tests.forecast_fixtures import claims_lake

BY_STATE = Forecasts(open_cases={"claims": "state"})


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    return claims_lake(tmp_path / "lake")


def published(lake: Lake) -> list[str]:
    folders = sorted(lake.folder(FORECAST_CASES, source_key="claims").glob("forecast_key=*"))
    return [row["case_id"] for folder in folders for row in read_table(FORECAST_CASES, folder).to_pylist()]


@pytest.mark.long
def test_open_cases_are_forecast_once(lake: Lake) -> None:
    first, second = refresh(lake, BY_STATE), refresh(lake, BY_STATE)

    assert (first.cases, first.unchanged) == ({"claims": 1}, ())
    assert (second.cases, second.unchanged) == ({}, ("claims",))
    assert published(lake) == ["c040"]


@pytest.mark.long
def test_limits_of_the_source_and_of_contracts_are_forecast_and_new_ones_forecast_again(lake: Lake) -> None:
    limited = Forecasts.model_validate({"open_cases": {"claims": "state"}, "limits": {"claims": {"steps": 2}}})

    assert refresh(lake, BY_STATE).cases == refresh(lake, limited).cases == {"claims": 1}
    assert refresh(lake, limited, {("Northwind", ""): (Limit(COST, 9.0),)}).cases == {"claims": 1}

    (folder,) = lake.folder(FORECAST_LIMITS, source_key="claims").glob("forecast_key=*")
    rows = read_table(FORECAST_LIMITS, folder).to_pylist()
    assert [(row["kind"], row["p_broken"], row["stated_by"]) for row in rows] == [
        ("steps", 1.0, "settings"),
        ("cost", 0.0, "contract"),
    ]


@pytest.mark.long
@pytest.mark.parametrize(("history", "is_unchanged"), [("h1", True), ("h2", False)])
def test_a_new_snapshot_forecasts_only_sources_whose_history_changed(
    lake: Lake, history: str, is_unchanged: bool
) -> None:
    refresh(lake, BY_STATE)
    old = lake.folder(IMPLEMENTATIONS, source_key="claims", content="h1")
    folder = lake.folder(IMPLEMENTATIONS, source_key="claims", content=history)
    if folder != old:
        shutil.copytree(old, folder)
    manifest = {"inputs": {"sources": [{"source": "claims", "folder": folder.relative_to(lake.root).as_posix()}]}}
    write_json(lake.snapshot_folder("w2") / "manifest.json", manifest)
    write_json(lake.root / "wkg" / "current.json", {"snapshot": "w2"})

    done = refresh(lake, BY_STATE)

    assert (done.unchanged, done.cases) == ((("claims",), {}) if is_unchanged else ((), {"claims": 1}))
    assert published(lake) == ["c040"]


@pytest.mark.long
def test_a_source_that_fails_keeps_its_forecasts(lake: Lake) -> None:
    refresh(lake, BY_STATE)

    done = refresh(lake, Forecasts(open_cases={"claims": "no_such_attribute"}))

    assert "no_such_attribute" in done.failed["claims"]
    assert published(lake) == ["c040"]


@pytest.mark.parametrize("p_ended", [0.9, None])
def test_history_is_not_read_where_all_cases_have_ended(lake: Lake, p_ended: float | None) -> None:
    cases = table_of(CASES, [{"implementation_id": "i1", "source": "claims", "p_ended": p_ended}])
    write_table(CASES, cases, dataset_folder(lake.snapshot_folder("w1"), CASES))

    done = refresh(lake, Forecasts())

    assert (done.cases, done.unchanged, done.failed) == ({}, (), {})
    assert published(lake) == []
