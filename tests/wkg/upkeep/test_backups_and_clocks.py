"""An old backup restored into place, and a clock that jumps: no mixture is answered from, and nothing is lost."""

import json
import os
import shutil
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from opus_pipelines.core.errors import LakeError
from opus_pipelines.core.settings_sections import Retention
from opus_pipelines.lake.layout import Lake
from opus_pipelines.reporting.views import connect
from opus_pipelines.wkg.upkeep.retention import prune
from opus_pipelines.wkg.upkeep.rollback import choices
from opus_pipelines.wkg.upkeep.verify import repair, verify
from tests.published_lake import CONTRACTS, NOW, SNAPSHOT, publish, publish_snapshot

LATER = NOW + timedelta(days=40)
NEXT = "w" + "2" * 16


@pytest.fixture(scope="module")
def ages(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """A lake as it was, and the same lake 40 days and one snapshot later."""
    folder = tmp_path_factory.mktemp("ages")
    lake = Lake(folder / "now")
    publish(lake)
    with lake.lock():  # a snapshot before it, so that old and new pointers have the same length
        publish_snapshot(lake, "w" + "0" * 16)
        publish_snapshot(lake)
    shutil.copytree(lake.root, folder / "backup")
    with lake.lock():
        publish_snapshot(lake, NEXT, LATER)
    return folder / "backup", folder / "now"


@pytest.fixture
def lake(ages: tuple[Path, Path], tmp_path: Path) -> Lake:
    shutil.copytree(ages[1], tmp_path / "lake")
    return Lake(tmp_path / "lake")


@pytest.mark.long
@pytest.mark.parametrize("copy", [shutil.copy, shutil.copy2], ids=["with a new time", "with its old time"])
def test_an_old_pointer_is_named_and_repaired(lake: Lake, ages: tuple[Path, Path], copy: object) -> None:
    pointer = lake.root / "wkg" / "current.json"
    assert callable(copy)
    copy(ages[0] / "wkg" / "current.json", pointer)
    os.utime(pointer, None if copy is shutil.copy else (NOW.timestamp(), NOW.timestamp()))
    with pytest.raises(LakeError, match="other content than was published"):
        connect(lake)
    with lake.lock():
        repair(lake, verify(lake).damage, LATER)
    assert lake.current_snapshot() == NEXT


def test_an_old_graph_beside_newer_results_is_read_as_it_is(lake: Lake, ages: tuple[Path, Path]) -> None:
    shutil.rmtree(lake.root / "wkg")
    shutil.copytree(ages[0] / "wkg", lake.root / "wkg")
    assert verify(lake).damage == []
    connection = connect(lake)
    ((snapshot, published),) = connection.sql("SELECT snapshot, published_at FROM current_snapshot").fetchall()
    assert (snapshot, published.astimezone(UTC)) == (SNAPSHOT, NOW)
    assert len(connection.sql("FROM current_results").fetchall()) == len(CONTRACTS)


def test_an_old_lake_says_how_old_it_is(lake: Lake, ages: tuple[Path, Path]) -> None:
    shutil.rmtree(lake.root)
    shutil.copytree(ages[0], lake.root)
    assert verify(lake).damage == []
    assert [one.published_at for one in choices(lake) if one.is_current] == [NOW.isoformat()]


@pytest.mark.long
@pytest.mark.parametrize("jump", [timedelta(days=-3650), timedelta(days=3650)], ids=["back", "forward"])
def test_a_jump_of_the_clock_removes_nothing_that_is_named(lake: Lake, jump: timedelta) -> None:
    with lake.lock():
        publish_snapshot(lake, "w" + "3" * 16, LATER + jump)
        prune(lake, Retention(snapshots=1), LATER + jump + timedelta(hours=1))
    current = lake.current_snapshot()
    assert current == "w" + "3" * 16
    named = {current, SNAPSHOT}  # the results were made from the second
    assert named <= {path.parent.name for path in (lake.root / "wkg").glob("*/manifest.json")}
    assert verify(lake).damage == []
    assert connect(lake).sql("SELECT snapshot FROM current_snapshot").fetchall() == [(current,)]


def test_times_in_the_future_are_hashed_and_cost_no_answer(lake: Lake) -> None:
    future = datetime(2050, 1, 1, tzinfo=UTC).timestamp()
    for path in lake.root.rglob("*"):
        os.utime(path, (future, future))
    assert connect(lake).sql("SELECT snapshot FROM current_snapshot").fetchall() == [(NEXT,)]
    file = lake.snapshot_folder(NEXT) / "manifest.json"
    content = json.loads(file.read_text())
    file.write_text(json.dumps(content | {"lambda": 0.75}, indent=2, sort_keys=True) + "\n")
    os.utime(file, (future + 1, future + 1))
    with pytest.raises(LakeError, match="other content"):
        connect(lake)
