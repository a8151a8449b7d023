"""Each asset of a rebuild can be made alone, again after a failure, and in a process of its own, with the same rows."""

import json
import os
import shutil
import subprocess
import sys
import warnings
from collections.abc import Iterator
from pathlib import Path

import dagster as dg
import pytest

from opus_pipelines.cli.runs import failure_of
from opus_pipelines.core.settings import Paths, Settings
from opus_pipelines.lake.layout import Lake
from tests.nightly_jobs import (
    QUIET,
    REFUSED,
    SETTINGS,
    many_processes,
    one_process,
    reported,
    run,
    steps_of,
    write_history,
)

pytestmark = pytest.mark.long
WHOLE = [
    "observe_history",
    "read_history",
    "mine",
    "check_mined",
    "embed",
    "check_embedded",
    "publish_snapshot",
    "forecast_open_cases",
]


def settings_of(root: Path) -> Settings:
    return Settings(paths=Paths(lake=root / "lake", history=root / "history", intakes=root / "intakes"))


def tables_of(lake: Lake) -> dict[str, bytes]:
    """The tables of the current snapshot and its index, by name."""
    folder = lake.snapshot_folder(lake.current_snapshot() or "")
    files = (f for f in folder.rglob("*") if f.is_file() and (f.suffix == ".parquet" or f.parent.name == "index"))
    return {f.relative_to(folder).as_posix(): f.read_bytes() for f in files}


@pytest.fixture
def instance() -> Iterator[dg.DagsterInstance]:
    with dg.DagsterInstance.ephemeral() as made:
        yield made


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Settings:
    """A lake after the whole job."""
    root = tmp_path_factory.mktemp("whole")
    write_history(root / "history", 8)
    with dg.DagsterInstance.ephemeral() as instance:
        result = run(settings_of(root), instance)
    assert steps_of(result) == WHOLE
    assert not list((root / "lake" / ".staged").glob("w*"))
    return settings_of(root)


@pytest.fixture
def fresh(tmp_path: Path, whole: Settings) -> Settings:
    """The same history, and a lake that holds only what keeps ids and hashes the same."""
    settings = settings_of(tmp_path)
    shutil.copytree(whole.paths.history, settings.paths.history)
    (settings.paths.lake / "wkg" / "kept").mkdir(parents=True)
    shutil.copy(whole.paths.lake / "wkg" / "kept" / "private.key", settings.paths.lake / "wkg" / "kept")
    return settings


def test_assets_made_one_by_one_give_the_same_bytes(
    fresh: Settings, whole: Settings, instance: dg.DagsterInstance
) -> None:
    order = ["history/implementations", "wkg/edges", "wkg/index", "wkg/procedures", "wkg/implementation_vectors"]
    for name in order:
        result = run(fresh, instance, [name])
        assert result.success, failure_of(result)
        assert reported(result) == {name}
        assert Lake(fresh.paths.lake).current_snapshot() is None
    assert run(fresh, instance, ["wkg/snapshot"]).success
    assert tables_of(Lake(fresh.paths.lake)) == tables_of(Lake(whole.paths.lake))


def test_what_is_published_is_made_again_as_nothing_new(whole: Settings, instance: dg.DagsterInstance) -> None:
    before = tables_of(Lake(whole.paths.lake))
    result = run(whole, instance, ["wkg/embeddings"])
    assert result.success
    assert reported(result) == {"wkg/embeddings"}
    (event,) = result.asset_materializations_for_node("embed")
    assert event.metadata["dagster/row_count"].value > 0, "a series over nights has no gap where nothing is new"
    assert tables_of(Lake(whole.paths.lake)) == before


@pytest.mark.parametrize(
    ("name", "lacks"),
    [("wkg/tasks", "history/implementations"), ("wkg/embeddings", "wkg/tasks"), ("wkg/snapshot", "wkg/embeddings")],
)
def test_a_step_whose_input_is_missing_names_it(
    fresh: Settings, instance: dg.DagsterInstance, name: str, lacks: str
) -> None:
    ready = {"wkg/tasks": [], "wkg/embeddings": ["history/sources"], "wkg/snapshot": ["history/sources", "wkg/tasks"]}
    for earlier in ready[name]:
        assert run(fresh, instance, [earlier]).success
    result = run(fresh, instance, [name])
    assert not result.success
    failure = next(event for event in result.all_events if event.event_type_value == "PIPELINE_FAILURE")
    assert f"materialize {lacks} first" in failure.event_specific_data.error.message


def test_a_change_of_the_settings_after_mining_is_not_published(fresh: Settings, instance: dg.DagsterInstance) -> None:
    for name in ("history/sources", "wkg/tasks", "wkg/embeddings", "wkg/procedures", "wkg/implementation_vectors"):
        assert run(fresh, instance, [name]).success
    other = fresh.model_copy(update={"priors": fresh.priors.model_copy(update={"strength": 9.0})})
    assert not run(other, instance, ["wkg/snapshot"]).success
    assert Lake(fresh.paths.lake).current_snapshot() is None
    assert run(fresh, instance, ["wkg/snapshot"]).success


def test_from_failure_goes_on_where_the_run_failed(
    fresh: Settings, whole: Settings, instance: dg.DagsterInstance, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(SETTINGS, fresh.model_dump_json(by_alias=True))
    (fresh.paths.lake / REFUSED).touch()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        job = dg.reconstructable(one_process)
        with dg.execute_job(job, instance, run_config=QUIET) as failed:
            assert steps_of(failed) == WHOLE[:4]
        (fresh.paths.lake / REFUSED).unlink()
        options = dg.ReexecutionOptions.from_failure(failed.run_id, instance)
        with dg.execute_job(job, instance, run_config=QUIET, reexecution_options=options) as retried:
            assert steps_of(retried) == WHOLE[4:]
    assert tables_of(Lake(fresh.paths.lake)) == tables_of(Lake(whole.paths.lake))


@pytest.mark.nightly
def test_a_process_for_each_step_gives_the_same_bytes(
    fresh: Settings, whole: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(SETTINGS, fresh.model_dump_json(by_alias=True))
    monkeypatch.setenv("PYTHONPATH", str(Path.cwd()))
    with warnings.catch_warnings(), dg.DagsterInstance.local_temp(str(tmp_path)) as instance:
        warnings.simplefilter("ignore")
        with dg.execute_job(dg.reconstructable(many_processes), instance, run_config=QUIET) as result:
            assert result.success, failure_of(result)
            assert steps_of(result) == WHOLE
    assert tables_of(Lake(fresh.paths.lake)) == tables_of(Lake(whole.paths.lake))


def test_a_process_for_each_step_shares_the_right_to_write(
    whole: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(SETTINGS, whole.model_dump_json(by_alias=True))
    monkeypatch.setenv("PYTHONPATH", str(Path.cwd()))
    chosen = [dg.AssetKey(["history", "implementations"]), dg.AssetKey(["wkg", "tasks"])]
    with warnings.catch_warnings(), dg.DagsterInstance.local_temp(str(tmp_path)) as instance:
        warnings.simplefilter("ignore")
        job = dg.reconstructable(many_processes).get_subset(asset_selection=frozenset(chosen))
        with dg.execute_job(job, instance, run_config=QUIET) as result:
            assert result.success, failure_of(result)
            assert steps_of(result)[:2] == ["read_history", "mine"]  # what they are made from was not chosen


def test_the_command_of_dagster_makes_one_asset(whole: Settings, tmp_path: Path) -> None:
    paths = whole.paths
    environment = os.environ | {
        "OPUS_LAKE": str(paths.lake),
        "OPUS_HISTORY": str(paths.history),
        "DAGSTER_HOME": str(tmp_path),
    }
    (tmp_path / "dagster.yaml").write_text("telemetry: {enabled: false}\n")
    command = ["dagster", "asset", "materialize", "-m", "opus_pipelines.definitions", "--select", "key:wkg/embeddings"]
    done = subprocess.run(
        [sys.executable, "-m", *command], env=environment, capture_output=True, text=True, timeout=300, check=False
    )
    assert done.returncode == 0, done.stderr[-2000:]
    with dg.DagsterInstance.from_config(str(tmp_path)) as instance:
        event = instance.get_latest_materialization_event(dg.AssetKey(["wkg", "embeddings"]))
        assert event.asset_materialization.tags["dagster/data_version"] == Lake(paths.lake).current_snapshot()
        assert not instance.get_latest_materialization_event(dg.AssetKey(["wkg", "tasks"]))


def test_importing_the_definitions_reads_no_environment_and_loads_no_library_of_models(tmp_path: Path) -> None:
    """They hold what generates, too: every process of a run pays for what they load."""
    environment = os.environ | {"OPUS_SETTINGS": str(tmp_path / "none.toml"), "OPUS_SPARK_CONF": "no JSON"}
    code = (
        "import json, sys, opus_pipelines.definitions as d\n"
        "loaded = sorted({'sklearn', 'pandas', 'scipy.stats', 'torch'} & sys.modules.keys())\n"
        "print(json.dumps([type(d.defs).__name__, loaded]))"
    )
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", code], env=environment, capture_output=True, text=True, check=True
    )
    name, loaded = json.loads(done.stdout)
    assert name != "Definitions"
    assert loaded == []
