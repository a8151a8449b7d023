"""A failed run says its reason first: in Dagster's failure, and in `opus status`."""

import warnings
from collections.abc import Iterator
from pathlib import Path

import pytest

from opus_pipelines.cli.runs import prepare
from opus_pipelines.core.errors import STOPPED, LakeError
from opus_pipelines.core.settings import Paths, Settings
from opus_pipelines.lake.layout import Lake
from opus_pipelines.reporting.status import failure_reason, last_runs, reason_of, with_failed_checks


@pytest.fixture
def settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Settings:
    monkeypatch.setenv("DAGSTER_HOME", "")
    made = Settings(paths=Paths(lake=tmp_path / "lake", history=tmp_path / "history", intakes=tmp_path / "intakes"))
    prepare(made)
    return made


@pytest.mark.long
@pytest.mark.parametrize(
    ("error", "first", "told"),
    [
        (
            LakeError("the lake has no room: 3 MB are left"),
            "dagster._core.definitions.events.Failure: the lake has no room: 3 MB are left",
            "the lake has no room: 3 MB are left",
        ),
        (
            KeyError("weight"),
            "dagster._core.definitions.events.Failure: unexpected KeyError: 'weight'",
            "unexpected KeyError: 'weight'",
        ),
    ],
)
def test_the_first_line_is_the_reason(settings: Settings, error: Exception, first: str, told: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # Dagster's own beta and deprecation notices
        import dagster as dg

        from assets.specs import reason_first

        @dg.multi_asset(name="fails", specs=[dg.AssetSpec("a")])
        @reason_first
        def fails() -> Iterator[dg.MaterializeResult]:
            yield dg.MaterializeResult(asset_key="a")
            raise error

        with dg.DagsterInstance.get() as instance:
            result = dg.materialize([fails], instance=instance, raise_on_error=False)
            failures = [event for event in result.all_events if event.event_type_value == "PIPELINE_FAILURE"]
    assert failures[0].event_specific_data.error.message.splitlines()[0] == first
    (row,) = last_runs(Lake(settings.paths.lake))
    assert (row[1], row[-1]) == ("failure", told)


@pytest.mark.long
def test_a_run_whose_process_died_and_one_without_a_record(settings: Settings) -> None:
    import dagster as dg

    with dg.DagsterInstance.get() as instance:
        run = instance.create_run_for_job(dg.job(name="night")(lambda: None), status=dg.DagsterRunStatus.STARTED)
        instance.report_run_failed(run, message="Its process ended before it did.")
    lake = Lake(settings.paths.lake)
    assert last_runs(lake)[0][-1] == "Its process ended before it did."
    assert failure_reason(lake, "no-such-run") is None


@pytest.mark.long
def test_a_lake_that_another_run_holds_is_the_reason(settings: Settings) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        import dagster as dg

        from opus_pipelines.definitions import build_defs

        lake = Lake(settings.paths.lake)
        with dg.DagsterInstance.get() as instance, lake.lock():
            result = (
                build_defs(settings)
                .resolve_job_def("rebuild")
                .execute_in_process(instance=instance, raise_on_error=False)
            )
    assert not result.success
    reason = last_runs(lake)[0][-1]
    assert reason is not None
    assert reason.startswith("another run (process ")
    assert f"is writing to {lake.root};" in reason


@pytest.mark.parametrize("name", ["DagsterExecutionInterruptedError", "KeyboardInterrupt"])
def test_a_run_that_somebody_stopped_is_no_failure_with_a_class_of_python(name: str) -> None:
    assert reason_of([("DagsterError", "the step failed"), (name, f"{name}: ")]) == [STOPPED]


def test_a_night_that_held_a_source_back_does_not_look_like_one_that_used_all() -> None:
    runs = [("rebuild", "success", "02:00", 9.0, "r1", None), ("rebuild", "failure", "02:00", 9.0, "r2", "no room")]
    held, failed = with_failed_checks(runs, {"r1": 1, "r2": 2})
    assert (held[:5], held[-1][:14], failed) == (runs[0][:5], "1 check failed", runs[1])
    assert with_failed_checks(runs, {}) == runs
