"""Back to an earlier snapshot, and what the next nights make of it."""

from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from opus_pipelines.cli.main import main
from opus_pipelines.core.errors import LakeError
from opus_pipelines.core.settings import Settings
from opus_pipelines.lake.layout import Lake, read_json, write_json
from opus_pipelines.reporting.status import report
from opus_pipelines.reporting.views import connect, write_views_sql
from opus_pipelines.wkg.rebuild import steps
from opus_pipelines.wkg.upkeep import rollback
from opus_pipelines.wkg.upkeep.rollback import stamp
from tests.rebuilding import make, resolved_history


def publish(lake: Lake, snapshot: str, day: int) -> None:
    made = {
        "published_at": f"2026-01-{day:02}T02:00:00+00:00",
        "inputs": {"sources": []},
        "counts": {"wkg/tasks": day, "wkg/edges": 2},
    }
    write_json(lake.snapshot_folder(snapshot) / "manifest.json", made)
    write_json(lake.root / "wkg/current.json", {"snapshot": snapshot, "published_at": made["published_at"]})


@pytest.fixture
def nights(lake: Lake) -> Lake:
    """Three snapshots, and a contract's result made from the second."""
    lake.ensure_empty()
    for day, snapshot in enumerate(("wa1", "wa2", "wb3"), start=1):
        publish(lake, snapshot, day)
    write_json(
        lake.pointer_path("Acme", "Retail"), {"client": "Acme", "contract": "Retail", "result": "r1", "snapshot": "wa2"}
    )
    return lake


def test_the_choices_are_the_snapshots_newest_first(nights: Lake) -> None:
    found = [(c.snapshot, c.counts["wkg/tasks"], c.is_current, c.contracts) for c in rollback.choices(nights)]
    assert found == [("wb3", 3, True, ()), ("wa2", 2, False, ("Acme / Retail",)), ("wa1", 1, False, ())]


def test_a_prefix_names_one_snapshot(nights: Lake) -> None:
    assert rollback.chosen(nights, "wb").snapshot == "wb3"
    with pytest.raises(LakeError, match=r"2 snapshots .* 'wa'; there is: wa2, wa1"):
        rollback.chosen(nights, "wa")
    with pytest.raises(LakeError, match=r"no snapshot .* 'x'; there is: wb3, wa2, wa1"):
        rollback.chosen(nights, "x")


@pytest.mark.long
def test_the_pointer_says_what_was_rolled_back_from(nights: Lake, history: Any) -> None:
    assert rollback.roll_back(nights, "wa2", history.now)[0] == "wb3"
    pointer = {"snapshot": "wa2", "published_at": stamp(history.now), "rolled_back_from": ["wb3"], "before": "wb3"}
    assert read_json(nights.root / "wkg/current.json") == pointer
    assert rollback.stale(nights) == []
    rollback.roll_back(nights, "wa1", history.now)
    assert (nights.current_snapshot(), nights.rolled_back_from()) == ("wa1", ["wa2", "wb3"])
    assert rollback.stale(nights) == ["Acme / Retail"]
    rollback.roll_back(nights, "wb3", history.now)
    assert (nights.current_snapshot(), nights.rolled_back_from()) == ("wb3", ["wa1", "wa2"])


def test_the_command_says_what_is_stale_and_lists_what_there_is(
    nights: Lake, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(nights.root.parent)
    assert main(["rollback", "wa1"]) == 0
    current, stale = capsys.readouterr().err.splitlines()
    assert current.startswith("snapshot wa1 is current")
    assert "Acme / Retail; `opus generate`" in stale
    assert main(["rollback"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[1].split() == ["Snapshots"]
    assert [line.split()[0] for line in lines[3:]] == ["wb3", "wa2", "wa1"]
    assert main(["rollback", "zz"]) == 1
    assert "no snapshot of" in capsys.readouterr().err


def test_a_folder_without_a_lake_stays_without(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["rollback", "w1"]) == 1
    assert "there is: none; `opus rebuild` makes one" in capsys.readouterr().err
    assert not (tmp_path / "lake").exists()


def test_status_shows_the_rollback(nights: Lake, history: Any) -> None:
    write_views_sql(nights)
    rollback.roll_back(nights, "wa2", history.now)
    title = next(iter(report(connect(nights), nights)))[0]
    assert "(rolled back from wb3: `opus rebuild --publish`" in title


@pytest.mark.long
def test_the_same_inputs_do_not_undo_a_rollback_and_new_ones_do(lake: Lake, history: Any, rebuild: Any) -> None:
    first = history.write(lake, "log", history.claims()[:5])
    second = history.write(lake, "log", history.claims())
    old, new = (rebuild(lake, source).snapshot_id for source in (first, second))
    rollback.roll_back(lake, old, history.now)
    night = rebuild(lake, second, now=history.now + timedelta(days=1))
    held = night.snapshot
    assert (held.snapshot_id, held.is_held, held.is_new, held.is_current) == (new, True, False, True)
    assert held.nothing_new is not None
    assert [word in held.nothing_new for word in (new, f"{old} stays", "`opus rebuild --publish`")] == [True] * 3
    assert lake.current_snapshot() == old
    night = resolved_history(lake, Settings(), history.of(second), publish=True)
    again = night.snapshot
    assert (again.is_held, again.is_new, again.is_current) == (False, False, False)
    nothing = lambda: pytest.fail("a published snapshot needs neither Spark nor an encoder")
    make(night, nothing, nothing)
    steps.publish(night, history.now + timedelta(days=2))
    assert (lake.current_snapshot(), lake.rolled_back_from()) == (new, [])
    rollback.roll_back(lake, old, history.now)
    third = rebuild(lake, history.write(lake, "log", history.claims()[:7]))
    assert (lake.current_snapshot(), lake.rolled_back_from()) == (third.snapshot_id, [])
