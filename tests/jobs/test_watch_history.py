"""The schedule, the freshness of the snapshot, and the sensor over the history folder."""

import json
import os
import warnings
from datetime import timedelta
from pathlib import Path

import dagster as dg
import pytest

from jobs.sensors import history_changed
from jobs.stages import schedules
from opus_pipelines.core.settings import Paths, Schedule, Settings
from opus_pipelines.history.ingestion.plan import fingerprint


@pytest.fixture
def history(tmp_path: Path) -> Path:
    source = tmp_path / "history" / "claims"
    source.mkdir(parents=True)
    (source / "a.csv").write_text("case,activity\n1,A\n")
    return tmp_path / "history"


class Ticks:
    """A sensor looked at again and again, with its cursor."""

    def __init__(self, history: Path, cursor: str | None = None) -> None:
        self.sensor = history_changed(Settings(paths=Paths(history=history)))
        self.cursor = cursor

    def look(self) -> tuple[int, str | None]:
        """Runs asked for, and why none was."""
        found = self.sensor.evaluate_tick(dg.build_sensor_context(cursor=self.cursor))
        self.cursor = found.cursor or self.cursor
        return len(found.run_requests or []), found.skip_message


def test_a_change_asks_for_one_rebuild_once_it_has_come_to_rest(history: Path) -> None:
    ticks = Ticks(history)
    assert ticks.look() == (0, "nothing changed")
    (history / "claims" / "b.csv").write_text("case,activity\n2,A\n")
    assert ticks.look() == (0, "files are still changing")
    assert ticks.look() == (1, None)
    assert ticks.look() == (0, "nothing changed")


def test_a_folder_back_in_an_earlier_state_is_read_again(history: Path) -> None:
    ticks = Ticks(history)
    ticks.look()
    added = history / "claims" / "b.csv"
    added.write_text("case,activity\n2,A\n")
    assert [ticks.look()[0] for _ in range(3)] == [0, 1, 0]
    added.unlink()
    assert [ticks.look()[0] for _ in range(3)] == [0, 1, 0]


def test_the_cursor_outlives_the_daemon(history: Path) -> None:
    ticks = Ticks(history)
    ticks.look()
    assert set(json.loads(ticks.cursor or "")) == {"seen", "asked"}
    (history / "claims" / "source.toml").write_text('industry = "claims"\n')
    later = Ticks(history, ticks.cursor)
    assert [later.look()[0] for _ in range(2)] == [0, 1]


def test_without_a_history_folder_the_sensor_says_so(tmp_path: Path) -> None:
    assert Ticks(tmp_path / "none").look() == (0, f"{tmp_path / 'none'}: no such history folder")


def test_the_fingerprint_sees_settings_pins_sizes_and_times_but_not_notes(history: Path) -> None:
    before = fingerprint(history)
    (history / "claims" / "README.md").write_text("a note")
    (history / ".git").mkdir()
    assert fingerprint(history) == before
    (history.parent / "pins.toml").write_text("")
    pinned = fingerprint(history)
    assert pinned != before
    os.utime(history / "claims" / "a.csv", ns=(1, 1))
    assert fingerprint(history) not in (before, pinned)


def test_schedule_on_and_sensor_off_unless_the_settings_say_otherwise(tmp_path: Path) -> None:
    on, off = dg.DefaultScheduleStatus.RUNNING, dg.DefaultScheduleStatus.STOPPED
    assert [one.default_status for one in schedules(Schedule())] == [on, on]
    assert [one.default_status for one in schedules(Schedule(enabled=False))] == [off, off]
    assert history_changed(Settings()).default_status == dg.DefaultSensorStatus.STOPPED
    watching = history_changed(Settings(schedule=Schedule(watch_history=True, watch_seconds=30)))
    assert (watching.default_status, watching.minimum_interval_seconds) == (dg.DefaultSensorStatus.RUNNING, 30)


def test_a_snapshot_older_than_the_settings_allow_is_overdue(tmp_path: Path) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from opus_pipelines.definitions import build_defs

        defs = build_defs(Settings(paths=Paths(lake=tmp_path), schedule=Schedule(fresh_hours=30)))
        node = defs.resolve_asset_graph().get(dg.AssetKey(["wkg", "snapshot"]))
        policies = [n.freshness_policy for n in defs.resolve_asset_graph().asset_nodes if n.key != node.key]
    assert node.freshness_policy == dg.FreshnessPolicy.time_window(fail_window=timedelta(hours=30))
    assert policies == [None] * len(policies)
