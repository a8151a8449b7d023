"""From Dagster's record of a run to its row, on small runs of jobs with the names of ours."""

import warnings
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

import dagster as dg
import pytest

from assets.checks import NOT_LOOKED_AT
from jobs.run_record import COMMANDS, JOBS, repeat_of, run_record
from jobs.sensors import report_run
from opus_pipelines.core.errors import CheckFailed
from opus_pipelines.core.settings import ObjectStore, Paths, Settings
from opus_pipelines.lake.layout import Lake, write_json
from opus_pipelines.lake.object_store.folders import ORIGIN, origin_of
from opus_pipelines.lake.runs import latest
from resources.lake import LakeRun

CASES, REJECTS = dg.AssetKey(["history", "implementations"]), dg.AssetKey(["history", "rejects"])
SNAPSHOT = dg.AssetKey(["wkg", "snapshot"])


@dg.multi_asset(
    name="read_history",
    specs=[dg.AssetSpec(CASES), dg.AssetSpec(REJECTS)],
    check_specs=[dg.AssetCheckSpec("records_add_up", asset=CASES), dg.AssetCheckSpec("schema", asset=CASES)],
)
def read(run: LakeRun) -> Iterator[Any]:
    yield dg.MaterializeResult(asset_key=CASES, metadata={"dagster/row_count": 40})
    yield dg.MaterializeResult(asset_key=REJECTS, metadata={"dagster/row_count": 2})
    said = "3 of 7\nrecords"
    yield dg.AssetCheckResult(asset_key=CASES, check_name="records_add_up", passed=False, description=said)
    unseen = {"passed": False, "description": NOT_LOOKED_AT}  # it counts neither as a check nor as a failed one
    yield dg.AssetCheckResult(asset_key=CASES, check_name="schema", **unseen)
    if (run.lake.root / "bad").exists():
        raise CheckFailed("the records do not add up")


@dg.asset(key=SNAPSHOT, deps=[CASES])
def publish(run: LakeRun) -> dg.MaterializeResult:
    return dg.MaterializeResult(metadata={"drift": {"task_share": 0.25}})


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    (tmp_path / "lake").mkdir()
    return Settings(paths=Paths(lake=tmp_path / "lake", history=tmp_path, intakes=tmp_path))


def rebuild(settings: Settings, instance: dg.DagsterInstance) -> str:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        job = dg.define_asset_job("rebuild", selection="*")
        defs = dg.Definitions([read, publish], jobs=[job], resources={"run": LakeRun.of(settings)})
        quiet = {"loggers": {"console": {"config": {"log_level": "CRITICAL"}}}}
        result = defs.resolve_job_def("rebuild").execute_in_process(
            instance=instance, raise_on_error=False, run_config=quiet
        )
    return result.run_id


@pytest.fixture
def instance() -> Iterator[dg.DagsterInstance]:
    with dg.DagsterInstance.ephemeral() as made:
        yield made


@pytest.mark.long
def test_a_run_has_its_stages_counts_checks_drift_and_use(settings: Settings, instance: dg.DagsterInstance) -> None:
    run_id = rebuild(settings, instance)
    found = run_record(instance, run_id, settings)
    assert found is not None
    assert (found.job, found.status, found.items, found.rejects, found.drift_share) == (
        "rebuild",
        "success",
        40,
        2,
        0.25,
    )
    assert [stage.stage for stage in found.stages] == ["read_history", "wkg__snapshot"]
    assert (found.checks, found.failed_checks) == (1, ("history/implementations records_add_up: 3 of 7 records",))
    assert found.cpu_ms is not None
    assert 0 <= found.cpu_ms < 60_000
    assert found.peak_memory_mb is not None
    assert found.peak_memory_mb > 20
    assert (found.reason, found.evidence, found.repeat) == (None, None, None)
    assert found.items_per_second == pytest.approx(40_000 / sum(stage.duration_ms for stage in found.stages))


def test_a_failed_run_says_what_failed_where_the_evidence_is_and_what_repeats_it(
    settings: Settings, instance: dg.DagsterInstance
) -> None:
    (settings.paths.lake / "bad").touch()
    run_id = rebuild(settings, instance)
    found = run_record(instance, run_id, settings)
    assert found is not None
    assert (found.status, found.reason) == ("failure", "the records do not add up")
    assert found.repeat == f"opus --lake {settings.paths.lake} rebuild"
    assert run_id in (found.evidence or "")
    assert found.checks_failed == 1


def test_it_is_reported_once_to_the_lake_and_as_a_series_to_dagster(
    settings: Settings, instance: dg.DagsterInstance
) -> None:
    run_id = rebuild(settings, instance)
    report_run(instance, run_id, settings)
    report_run(instance, run_id, settings)
    assert [one.run for one in latest(Lake(settings.paths.lake), "rebuild", 9)] == [run_id]
    (event,) = instance.fetch_materializations(dg.AssetKey(["ops", "runs"]), limit=9).records
    metadata = event.asset_materialization.metadata
    assert (metadata["items"].value, metadata["drift_share"].value, metadata["job"].value) == (40, 0.25, "rebuild")
    assert metadata["seconds_of_read_history"].value > 0
    (settings.paths.lake / "bad").touch()
    failed = rebuild(settings, instance)
    report_run(instance, failed, settings)
    (event,) = instance.fetch_materializations(dg.AssetKey(["ops", "runs"]), limit=1).records
    told = event.asset_materialization.metadata
    assert failed in told["evidence"].value
    assert told["repeat"].value.endswith("rebuild")


def test_a_run_that_has_not_ended_or_is_of_another_job_has_no_row(
    settings: Settings, instance: dg.DagsterInstance
) -> None:
    other = dg.Definitions([publish], resources={"run": LakeRun.of(settings)}).resolve_implicit_global_asset_job_def()
    done = other.execute_in_process(instance=instance)
    assert run_record(instance, done.run_id, settings) is None
    assert run_record(instance, "none", settings) is None


def test_the_command_that_repeats_a_run_names_lake_and_contract(tmp_path: Path) -> None:
    lake = Path("/srv/a lake")
    assert repeat_of("generate", {"dagster/partition": "Bolt_20_26_20Sons__Claims"}, lake) == (
        "opus --lake '/srv/a lake' generate --client 'Bolt & Sons' --contract Claims"
    )
    assert repeat_of("generate", {}, lake) == "opus --lake '/srv/a lake' generate"
    assert repeat_of("flows", {"dagster/partition": "Acme__Mail"}, Path("/srv/lake")) == (
        "opus --lake /srv/lake flow batch --client Acme --contract Mail"
    )
    assert repeat_of("rebuild", {"opus/settings": "/etc/my opus.toml"}, Path("/srv/lake")) == (
        "opus --lake /srv/lake --settings '/etc/my opus.toml' rebuild"
    )
    assert [repeat_of(job, {}, Path("/srv/lake")) for job in JOBS] == [
        f"opus --lake /srv/lake {command.removeprefix('opus ')}" for command in COMMANDS.values()
    ]
    write_json(tmp_path / ORIGIN, asdict(origin_of("s3://bucket/nights", ObjectStore())))
    assert repeat_of("rebuild", {}, tmp_path) == "opus --lake s3://bucket/nights rebuild"
