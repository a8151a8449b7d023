"""What the nightly rebuild leads to: the contracts that ask for it and are stale, and nothing else."""

import warnings
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import dagster as dg
import pytest

from assets.generation import LINEAGE
from jobs.nightly_contracts import GENERATED, nightly_contracts, sensor
from opus_pipelines.core.settings import Paths, Schedule, Settings
from opus_pipelines.generation.results.ids import result_id
from opus_pipelines.intakes.intake import discover
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


class Nights:
    """The conditions of the night, evaluated again and again, with their cursor."""

    def __init__(self, settings: Settings, instance: dg.DagsterInstance) -> None:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            from opus_pipelines.definitions import build_defs

            self.defs, self.instance = build_defs(settings), instance
        self.cursor: Any = None

    def look(self, at: datetime) -> dict[str, list[str]]:
        """The partitions that are asked for, by asset, where there are any."""
        found = dg.evaluate_automation_conditions(
            self.defs, self.instance, asset_selection=GENERATED, evaluation_time=at, cursor=self.cursor
        )
        self.cursor = found.cursor
        keys = [node.key for node in self.defs.resolve_asset_graph().asset_nodes if node.automation_condition]
        asked = {key.to_user_string(): sorted(found.get_requested_partitions(key) - {None}) for key in keys}
        return {name: partitions for name, partitions in asked.items() if partitions}

    def rebuilt(self) -> None:
        """What a rebuild, or a night with nothing new, reports."""
        self.instance.report_runless_asset_event(dg.AssetMaterialization(["wkg", "snapshot"]))


@pytest.fixture
def nights(settings: Settings) -> Iterator[Nights]:
    with dg.DagsterInstance.ephemeral() as instance:
        instance.add_dynamic_partitions("contract", ["Acme__Export", "Acme__Orders", "Acme__Retail", "Acme__Sales"])
        yield Nights(settings, instance)


BEFORE = (datetime.now(UTC) - timedelta(days=1)).replace(hour=1, minute=50)
NIGHT = BEFORE + timedelta(minutes=20)


@pytest.mark.long
def test_after_the_rebuild_of_the_night_the_stale_contracts_that_ask_for_it_are_generated(nights: Nights) -> None:
    assert nights.look(BEFORE) == {}
    assert nights.look(NIGHT) == {}, "the night has begun, and its rebuild has not ended"
    nights.rebuilt()
    later = datetime.now(UTC) + timedelta(seconds=1)
    asked = nights.look(later)
    assert set(asked) == {f"{group}/{name}" for group, name in (key.split("/") for key in LINEAGE)}
    assert set(map(tuple, asked.values())) == {("Acme__Export",)}
    assert nights.look(later + timedelta(minutes=1)) == {}


@pytest.mark.long
def test_a_rebuild_by_hand_later_in_the_day_asks_for_nothing(nights: Nights, settings: Settings) -> None:
    publish(settings, "Export", "w2")
    nights.look(BEFORE)
    nights.look(NIGHT)
    nights.rebuilt()
    later = datetime.now(UTC) + timedelta(seconds=1)
    assert nights.look(later) == {}, "all is current"
    publish(settings, "Export", "w1")
    nights.rebuilt()
    assert nights.look(later + timedelta(minutes=1)) == {}


def test_what_is_current_or_asks_for_something_else_is_left_alone(settings: Settings) -> None:
    assert nightly_contracts(settings) == ["Acme__Export"]


def test_a_broken_contract_and_a_lake_without_a_snapshot_ask_for_nothing(settings: Settings, tmp_path: Path) -> None:
    (settings.paths.intakes / "Acme/Export/contract.toml").write_text('regenerate = "nigthly"\n')
    assert nightly_contracts(settings) == []
    (tmp_path / "lake/wkg/current.json").unlink()
    assert nightly_contracts(settings) == []


def test_the_sensor_follows_the_schedule() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # evaluating a condition of our own is in beta
        on, off = sensor(Schedule()), sensor(Schedule(enabled=False))
    assert (on.default_status, off.default_status) == (dg.DefaultSensorStatus.RUNNING, dg.DefaultSensorStatus.STOPPED)


def test_definitions_name_the_sensors_and_their_jobs(tmp_path: Path) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from opus_pipelines.definitions import build_defs

        repository = build_defs(Settings(paths=Paths(lake=tmp_path))).get_repository_def()
    assert {one.name for one in repository.sensor_defs} == {
        "after_the_night",
        "flows_changed",
        "history_changed",
        "intakes_changed",
        "run_failed",
        "run_stopped",
        "run_succeeded",
    }
