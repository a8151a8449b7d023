"""What the nightly rebuild leads to: the contracts that ask for it and are stale, and nothing else."""

import warnings
from pathlib import Path

import dagster as dg
import pytest

from jobs.generate import after_the_night, nightly_contracts
from jobs.rebuild import NIGHTLY
from jobs.spans import tags
from opus_pipelines.core.settings import Paths, Schedule, Settings
from opus_pipelines.generation.contract import result_id
from opus_pipelines.intakes.discover import discover
from opus_pipelines.lake.layout import Lake, write_json

POINTER = {"snapshot": "w2", "published_at": "2026-01-02T00:00:00+00:00"}


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    """Four contracts of Acme: one stale and current each of those that ask for the night, one that asks for changes,
    one for nothing.
    """
    write_json(tmp_path / "lake/wkg/current.json", POINTER)
    for contract, regenerate in {
        "Export": "nightly",
        "Orders": "nightly",
        "Retail": "on_change",
        "Sales": "never",
    }.items():
        folder = tmp_path / "intakes/Acme" / contract
        (folder / "one").mkdir(parents=True)
        (folder / "contract.toml").write_text(f'regenerate = "{regenerate}"\n')
    made = Settings(paths=Paths(lake=tmp_path / "lake", intakes=tmp_path / "intakes"))
    for found in discover(made.paths.intakes):
        publish(made, found.contract, "w2" if found.contract == "Orders" else "w1")
    return made


def publish(settings: Settings, contract: str, snapshot: str) -> None:
    (found,) = [c for c in discover(settings.paths.intakes) if c.contract == contract]
    result = result_id(found, snapshot, settings)
    write_json(
        Lake(settings.paths.lake).pointer_path("Acme", contract),
        {"client": "Acme", "contract": contract, "result": result},
    )


def look(settings: Settings, by: dict[str, str], known: tuple[str, ...] = ()) -> dg.SensorResult | dg.SkipReason:
    """What the sensor says to a rebuild that went well, with these tags."""

    @dg.job(name="rebuild")
    def rebuilt() -> None:
        """Nothing."""

    with dg.DagsterInstance.ephemeral() as instance:
        instance.add_dynamic_partitions("contract", list(known))
        done = rebuilt.execute_in_process(instance=instance, tags=by)
        event = done.get_run_success_event()
        context = dg.build_run_status_sensor_context("after_the_night", event, instance, done.dagster_run)
        return after_the_night(settings)(context)  # type: ignore[no-any-return]


BY_SCHEDULE = {"dagster/schedule_name": NIGHTLY}


def test_stale_contracts_that_ask_for_the_night_are_generated_in_one_range(settings: Settings) -> None:
    (settings.paths.intakes / "Acme/Orders/two").mkdir()
    (settings.paths.intakes / "Acme/Orders/two/note.txt").write_text("new")
    found = look(settings, BY_SCHEDULE, ("Acme__Export", "Acme__Orders", "Acme__Retail"))
    assert [run.tags for run in found.run_requests] == [tags("Acme__Export", "Acme__Orders")]
    assert found.dynamic_partitions_requests == []


def test_what_is_current_or_asks_for_something_else_is_left_alone(settings: Settings) -> None:
    assert nightly_contracts(settings) == ["Acme__Export"]
    found = look(settings, BY_SCHEDULE)
    assert [run.tags for run in found.run_requests] == [tags("Acme__Export", "Acme__Export")]
    assert [list(r.partition_keys) for r in found.dynamic_partitions_requests] == [["Acme__Export"]]


def test_nothing_is_asked_for_when_all_is_current(settings: Settings) -> None:
    publish(settings, "Export", "w2")
    assert look(settings, BY_SCHEDULE) == dg.SkipReason('no contract with regenerate = "nightly" is stale')


@pytest.mark.parametrize("by", [{}, {"dagster/schedule_name": "another"}, {"dagster/sensor_name": "history_changed"}])
def test_a_rebuild_by_hand_or_by_a_sensor_triggers_nothing(settings: Settings, by: dict[str, str]) -> None:
    assert look(settings, by) == dg.SkipReason("that rebuild was not the schedule's")


def test_a_broken_contract_and_a_lake_without_a_snapshot_ask_for_nothing(settings: Settings, tmp_path: Path) -> None:
    (settings.paths.intakes / "Acme/Export/contract.toml").write_text('regenerate = "nigthly"\n')
    assert nightly_contracts(settings) == []
    (tmp_path / "lake/wkg/current.json").unlink()
    assert nightly_contracts(settings) == []


def test_the_sensor_follows_the_schedule() -> None:
    assert after_the_night(Settings()).default_status == dg.DefaultSensorStatus.RUNNING
    assert after_the_night(Settings(schedule=Schedule(enabled=False))).default_status == dg.DefaultSensorStatus.STOPPED


def test_definitions_name_the_sensors_and_their_jobs(tmp_path: Path) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from opus_pipelines.definitions import build_defs

        repository = build_defs(Settings(paths=Paths(lake=tmp_path))).get_repository_def()
    assert {sensor.name: sensor.job_name for sensor in repository.sensor_defs} == {
        "after_the_night": "generate",
        "history_changed": "rebuild",
        "intakes_changed": "generate",
    }
