"""The staged records: what they hold comes back, and what is unfinished counts as not there."""

from datetime import UTC, datetime
from pathlib import Path

import pytest

from opus_pipelines.core.errors import CheckResult, LakeError
from opus_pipelines.core.settings import Settings
from opus_pipelines.history.ingestion.ingest import SourceState
from opus_pipelines.lake.layout import Lake
from opus_pipelines.wkg.drift import Drift, Move
from opus_pipelines.wkg.rebuild import steps
from opus_pipelines.wkg.rebuild.records import MINED, MINED_CHECKS, ChecksRecord, HistoryRecord, MinedRecord, Staged

SOURCE = SourceState("a", Path("history/a"), "c1", None, True, "loaded", 3, {"Pay": "outcome"})
MOVE = Move("t1", "t2", ("Register", "Pay"), 0.25, 0.5, 0.1)
DRIFT = Drift(
    (2, 2), (1, 1), (9, 9), (), ("t3",), (("t1", "A", "B"),), (("t1", "t2"),), (), 0.5, 0.1, (MOVE,), (), ("b",)
)
NOW = datetime(2026, 3, 1, tzinfo=UTC)
FAILED = CheckResult("schema", False, "1 wrong", "wkg/tasks")


@pytest.mark.parametrize(
    "record",
    [
        HistoryRecord((SOURCE,), (FAILED,), full=True),
        MinedRecord(("a",), {"wkg/tasks": 2}, None, "local", {"mine": 1.5}),
        ChecksRecord((FAILED,), DRIFT),
    ],
)
def test_a_record_comes_back_as_it_was(tmp_path: Path, record: object) -> None:
    staged = Staged(Lake(tmp_path))
    staged.save(record, "one", "w1")
    assert staged.load(type(record), "one", "w1") == record
    assert staged.load(type(record), "one", "w2") is None


def test_a_record_of_another_version_counts_as_none(tmp_path: Path) -> None:
    staged = Staged(Lake(tmp_path))
    staged.save(MinedRecord((), {}, None, None), "one", "w1")
    assert staged.load(HistoryRecord, "one", "w1") is None


def test_without_history_the_next_step_says_what_to_do(tmp_path: Path) -> None:
    with pytest.raises(LakeError, match="materialize history/implementations first"):
        steps.opened(Settings(), Lake(tmp_path))


def test_a_new_reading_removes_what_failed_its_checks_and_keeps_the_rest(tmp_path: Path) -> None:
    (tmp_path / "history" / "a").mkdir(parents=True)
    (tmp_path / "history" / "a" / "log.csv").write_text("case_id,activity\n1,A\n")
    settings = Settings.model_validate({"paths": {"history": tmp_path / "history"}})
    staged = Staged(Lake(tmp_path / "lake"))
    mined = MinedRecord((), {}, None, None)
    for snapshot, passed in (("w1", True), ("w2", False)):
        staged.save(mined, MINED, snapshot)
        staged.save(ChecksRecord((CheckResult("schema", passed, "", "wkg/tasks"),)), MINED_CHECKS, snapshot)
    state, _ = steps.read(settings, staged.home, NOW)
    assert [source.source for source in state.sources] == ["a"]
    assert staged.load(MinedRecord, MINED, "w1") == mined
    assert staged.load(MinedRecord, MINED, "w2") is None
    (source,) = staged.required_history().sources
    assert not source.folder.is_absolute()
    assert (staged.home.root / source.folder).is_dir()
