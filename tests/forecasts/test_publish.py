"""Forecasts from the lake's rows: which cases are open, what is written, and which action is advised."""

from pathlib import Path

import pytest

from opus_pipelines.core.errors import InputError
from opus_pipelines.core.schemas import FORECAST_CASES, FORECAST_LIMITS, FORECAST_STEPS, IMPLEMENTATIONS
from opus_pipelines.forecasts.forecaster import StepOutlook
from opus_pipelines.forecasts.limits import COST, LEAD_TIME, SERVICE_LEVEL, STEPS, Limit
from opus_pipelines.forecasts.publish import (
    ForecastOptions,
    LimitSources,
    advice,
    forecast_source,
    publish,
    request_of,
    sources_of,
)
from opus_pipelines.forecasts.traces import END, history_records
from opus_pipelines.lake.layout import Lake, read_table
from opus_pipelines.wkg.estimates.next_activity import OpenRule
from tests.forecast_fixtures import BEGIN, claims_lake


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    return claims_lake(tmp_path / "lake")


def test_an_attribute_says_which_cases_are_open(lake: Lake) -> None:
    folder = lake.folder(IMPLEMENTATIONS, source_key="claims", content="h1")

    records = history_records(folder, OpenRule.of("state"))

    assert [r.trace.case_id for r in records if r.trace.is_open] == ["c040"]
    assert records[0].trace.times == [BEGIN.timestamp() + n * 3600 for n in range(3)]


@pytest.mark.parametrize(
    ("rules", "value", "p_ended"),
    [
        (["s"], "Yes", 0.0),
        (["s"], "no", 1.0),
        (["s=late"], "late", 0.0),
        (["s=late"], "1", 1.0),
        (["none"], "Yes", 1.0),
        (["end: pay"], "Yes", 1.0),
        (["end: archive", "s"], "Yes", 0.0),
        (["end: archive"], "Yes", None),
        (["t"], "Yes", None),
    ],
)
def test_what_settings_state_of_open_cases(rules: list[str], value: str, p_ended: float | None) -> None:
    found = OpenRule.of(*rules).p_ended({"s": value}, ["check", "pay"])
    assert (None if found != found else found) == p_ended


def test_a_missing_attribute_is_named(lake: Lake) -> None:
    folder = lake.folder(IMPLEMENTATIONS, source_key="claims", content="h1")
    with pytest.raises(InputError, match=r"'status'.*state"):
        history_records(folder, OpenRule.of("status"))


@pytest.mark.long
def test_the_open_cases_of_history_are_forecast_and_published(lake: Lake) -> None:
    made = forecast_source(
        lake,
        request_of(
            lake, "claims", None, ForecastOptions(OpenRule.of("state"), LimitSources((Limit(LEAD_TIME, 86400.0),)))
        ),
    )
    publish(lake, made)

    (row,) = read_table(
        FORECAST_CASES, lake.folder(FORECAST_CASES, source_key="claims", forecast_key=made.id)
    ).to_pylist()
    assert {k: row[k] for k in ("case_id", "client", "last_activity", "next_activity", "rest", "do_next", "steps")} == {
        "case_id": "c040",
        "client": "Northwind",
        "last_activity": "b",
        "next_activity": "c",
        "rest": ["c"],
        "do_next": "c",
        "steps": 2,
    }
    assert (row["remaining_ms"], row["remaining_cost_usd"], row["p_late"], row["snapshot"]) == (
        3_600_000.0,
        1.0,
        0.0,
        "w1",
    )
    assert row["p_success"] > 0.99


@pytest.mark.long
def test_a_new_forecast_replaces_the_one_before(lake: Lake) -> None:
    for limit_s in (60.0, 120.0):
        publish(
            lake,
            made := forecast_source(
                lake,
                request_of(
                    lake,
                    "claims",
                    None,
                    ForecastOptions(OpenRule.of("state"), LimitSources((Limit(LEAD_TIME, limit_s),))),
                ),
            ),
        )

    for dataset in (FORECAST_CASES, FORECAST_LIMITS, FORECAST_STEPS):
        folders = [f.name for f in lake.folder(dataset, source_key="claims").iterdir()]
        assert folders == [f"forecast_key={made.id}"]


def test_no_running_case_gives_empty_rows(lake: Lake) -> None:
    made = forecast_source(lake, request_of(lake, "claims", [], ForecastOptions(OpenRule.of("state"))))

    assert (made.cases, made.next_steps) == ([], [])


def test_a_source_that_does_not_exist(lake: Lake) -> None:
    with pytest.raises(InputError, match=r"'loans'.*claims"):
        forecast_source(lake, request_of(lake, "loans", None, ForecastOptions()))


def test_every_limit_of_a_case_has_a_row_and_the_most_probably_broken_stands_first(lake: Lake) -> None:
    """The open case did `a b`; all others go on with `c` after an hour, each activity for a dollar."""
    limits = LimitSources(
        command=(Limit(STEPS, 2.0),),
        contracts={("Northwind", ""): (Limit(COST, 3.0), Limit(STEPS, 9.0), Limit(SERVICE_LEVEL, 5400.0, "C", "B"))},
        source=(Limit(COST, 1.0), Limit(SERVICE_LEVEL, 5400.0, "c")),
    )
    made = forecast_source(lake, request_of(lake, "claims", None, ForecastOptions(OpenRule.of("state"), limits)))

    keys = ("kind", "activity", "after", "unit", "limit_value", "so_far", "expected", "p_broken", "stated_by")
    assert [tuple(row[key] for key in keys) for row in made.limits] == [
        ("steps", None, None, "steps", 2.0, 2.0, 3.0, 1.0, "command"),
        ("service level", "c", None, "ms", 5_400_000.0, 3_600_000.0, 7_200_000.0, 1.0, "settings"),
        ("cost", None, None, "usd", 3.0, 2.0, 3.0, 0.0, "contract"),
        ("service level", "C", "B", "ms", 5_400_000.0, 0.0, 3_600_000.0, 0.0, "contract"),
    ]
    assert (made.cases[0]["p_limit"], made.cases[0]["p_late"]) == (1.0, None)


def test_a_limit_of_the_settings_that_names_no_activity_is_refused(lake: Lake) -> None:
    limits = LimitSources(source=(Limit(SERVICE_LEVEL, 60.0, "pay"),))

    with pytest.raises(InputError, match=r"'pay'.*a, b, c"):
        forecast_source(lake, request_of(lake, "claims", None, ForecastOptions(OpenRule.of("state"), limits)))


@pytest.mark.parametrize(
    ("shares", "advised"),
    [
        ((0.6, 0.8, 0.2, 0.8), ("call", "fewer broken limits")),
        ((0.6, 0.8, 0.58, 0.8), ("pay", "most probable")),  # hardly fewer
        ((0.6, 0.8, 0.2, 0.79), ("pay", "most probable")),  # less success
        ((0.6, None, 0.2, None), ("call", "fewer broken limits")),
        ((None, 0.8, None, 0.8), ("pay", "most probable")),  # no limit
    ],
)
def test_advice_by_limits(shares: tuple[float | None, ...], advised: tuple[str, str]) -> None:
    pay, call = (
        StepOutlook(name, p, success, 60.0, 90, limit)
        for name, p, limit, success in (("pay", 0.7, *shares[:2]), ("call", 0.2, *shares[2:]))
    )

    assert advice([pay, call]) == advised


@pytest.mark.parametrize(
    ("following", "advised"),
    [
        ([("pay", 0.7, 0.8, 90), ("call", 0.2, 0.9, 40)], ("call", "higher success")),
        ([("pay", 0.7, 0.8, 90), ("call", 0.2, 0.9, 10)], ("pay", "most probable")),  # too few cases
        ([("pay", 0.7, 0.8, 90), ("call", 0.05, 0.9, 40)], ("pay", "most probable")),  # too unusual
        ([("pay", 0.7, None, 90), ("call", 0.2, None, 40)], ("pay", "most probable")),
        ([(END, 0.9, 0.8, 90), ("call", 0.1, 0.9, 40)], (None, "most probable")),
    ],
)
def test_advice(following: list[tuple[str, float, float | None, int]], advised: tuple[str | None, str]) -> None:
    steps = [StepOutlook(name, p, success, 60.0, similar) for name, p, success, similar in following]

    assert advice(steps) == advised


@pytest.mark.model
def test_the_sources_are_those_that_a_rebuild_names(sample_lake: Lake) -> None:
    folders = sources_of(sample_lake)
    assert folders
    assert all(folder.is_dir() for folder in folders.values())
