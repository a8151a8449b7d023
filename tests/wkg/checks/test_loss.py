"""A night without a source, or without all of them, publishes nothing and records nothing, unless it is allowed."""

import shutil
from pathlib import Path
from typing import Any

import pytest

from opus_pipelines.cli.main import main
from opus_pipelines.core.errors import CheckFailed
from opus_pipelines.core.schemas import SOURCES
from opus_pipelines.history.ingestion.ingest import SourceState
from opus_pipelines.lake.layout import Lake, read_table, write_json
from opus_pipelines.wkg.checks import CasesLost, Loss, check_loss, loss_of
from tests.history_fixtures import Bench

LOG = "case_id,activity,timestamp\n"


def lost(before: int, now: int) -> Loss:
    return Loss({"a": before}, {"a": now} if now else {})


@pytest.mark.parametrize(
    ("before", "now", "most", "blocks"),
    [
        (10, 7, 0.3, False),  # exactly the share
        (10, 6, 0.3, True),
        (10, 0, 0.3, True),
        (10, 0, 1.0, True),  # all are gone: no share allows that
        (10, 1, 1.0, False),
        (10, 30, 0.0, False),
        (0, 0, 0.0, False),
    ],
)
def test_a_loss_above_the_share_blocks(before: int, now: int, most: float, blocks: bool) -> None:
    if not blocks:
        assert check_loss(lost(before, now), most, is_allowed=False).passed
        return
    with pytest.raises(CasesLost) as caught:
        check_loss(lost(before, now), most, is_allowed=False)
    assert isinstance(caught.value, CheckFailed)
    assert (caught.value.check.passed, caught.value.check.blocking) == (False, True)
    assert check_loss(lost(before, now), most, is_allowed=True).passed


def test_the_line_names_the_sources_that_lost_most_and_the_flag() -> None:
    loss = Loss({"a": 100, "b": 50, "c": 30, "d": 20}, {"b": 50, "c": 10, "d": 19, "e": 0})
    with pytest.raises(CasesLost) as caught:
        check_loss(loss, 0.3, is_allowed=False)
    said = str(caught.value)
    parts = ("rests on 200 cases", "history has 79 now, 60% fewer", "(a 100 -> 0, c 30 -> 10, d 20 -> 19)")
    assert [part for part in (*parts, "checks.max_lost_share", "--allow-loss") if part not in said] == []


def log_of(cases: int) -> str:
    return LOG + "".join(f"{n},Check,2025-01-01T10:00:00Z\n" for n in range(cases))


def pointed(bench: Bench) -> dict[str, int]:
    """Makes a snapshot's manifest of what was read, and points to it; returns the cases by source."""
    sources = bench.read().sources
    parts = [{"source": s.source, "folder": s.folder.relative_to(bench.lake.root).as_posix()} for s in sources]
    write_json(bench.lake.snapshot_folder("w1") / "manifest.json", {"inputs": {"sources": parts}})
    write_json(bench.lake.root / "wkg" / "current.json", {"snapshot": "w1"})
    return {s.source: s.implementations for s in sources}


def test_the_cases_are_those_behind_the_current_snapshot(bench: Bench) -> None:
    assert loss_of(bench.lake, []) is None
    bench.put("s/log.csv", log_of(4))
    bench.put("t/log.csv", log_of(2))
    assert pointed(bench) == {"s": 4, "t": 2}
    (bench.history / "t" / "log.csv").unlink()
    found = loss_of(bench.lake, bench.read().sources)
    assert found == Loss({"s": 4, "t": 2}, {"s": 4})
    assert found is not None
    assert found.share == pytest.approx(1 / 3)


def test_a_refused_reading_leaves_no_trace(bench: Bench) -> None:
    bench.put("s/log.csv", log_of(4))
    pointed(bench)
    before = {path: path.read_bytes() for path in bench.lake.root.rglob("*") if path.is_file()}
    moved = bench.history.with_name("away")
    shutil.move(bench.history / "s", moved)

    def refuse(sources: list[SourceState]) -> None:
        check_loss(loss_of(bench.lake, sources), 0.3, is_allowed=False)

    with pytest.raises(CasesLost):
        bench.read(accept=refuse)
    after = {path: path.read_bytes() for path in bench.lake.root.rglob("*") if path.is_file()}
    assert after == before
    shutil.move(moved, bench.history / "s")
    assert [row["status"] for row in bench.read(accept=refuse).files] == ["unchanged"]


@pytest.mark.model
def test_a_night_with_an_empty_history_folder_publishes_nothing(
    sample_lake: Any, sample_files: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    lake = Lake(tmp_path / "lake")
    shutil.copytree(sample_lake.root, lake.root)
    snapshot, rows = lake.current_snapshot(), read_table(SOURCES, lake.folder(SOURCES))
    (tmp_path / "empty").mkdir()
    settings = tmp_path / "opus.toml"
    settings.write_text('[checks]\ndrift = "off"\n')
    command = ["--lake", str(lake.root), "--settings", str(settings), "rebuild", "--history"]
    assert main([*command, str(tmp_path / "empty")]) == 1
    assert "and history has 0 now, 100% fewer" in capsys.readouterr().err
    assert lake.current_snapshot() == snapshot
    assert read_table(SOURCES, lake.folder(SOURCES)).equals(rows)
    assert main([*command, str(sample_files.history)]) == 0
    assert f"nothing new: snapshot {snapshot}" in capsys.readouterr().err
    assert main([*command, str(tmp_path / "empty"), "--allow-loss"]) == 0
    assert lake.current_snapshot() != snapshot
