"""What is read is what was hashed: a file that changes in between is rejected, and read again by the next rebuild."""

import os
from pathlib import Path
from typing import Any

import pytest

from opus_pipelines.core.errors import SettingsError
from opus_pipelines.core.ids import file_hash
from opus_pipelines.history.ingestion.plan import plan_history, settings_of
from opus_pipelines.history.ingestion.read_file import CHANGED
from opus_pipelines.history.records.source_settings import SourceSettings, load_source
from tests.history_fixtures import Bench

OLD = "case_id,activity,timestamp\n1,Check,2025-01-01T10:00:00Z\n"
NEW = "case_id,activity,timestamp\n1,Pay,2025-01-01T10:00:00Z\n2,Pay,2025-01-01T11:00:00Z\n"


def after_planning(bench: Bench, change: Any) -> Any:
    """Reads with a plan that was made before `change` of the file."""
    plans = plan_history(bench.history, None, bench.lake)
    change(bench.history / "s" / "log.csv")
    return bench.read(plans=plans)


def append(file: Path) -> None:
    with file.open("a") as log:
        log.write("2,Check,2025-01-02T10:00:00Z\n")


def replace(file: Path) -> None:
    other = file.with_name(".new")
    other.write_text(OLD.replace("Check", "Judge"))  # of the same length
    os.utime(other, ns=(file.stat().st_atime_ns, file.stat().st_mtime_ns))
    other.replace(file)


@pytest.mark.parametrize("change", [append, replace, Path.unlink], ids=["appended", "replaced", "deleted"])
def test_a_file_that_changed_is_rejected_and_read_by_the_next_run(bench: Bench, change: Any) -> None:
    bench.put("s/log.csv", OLD)
    state = after_planning(bench, change)
    (row,) = state.files
    assert (row["status"], row["implementations"] or 0) == ("rejected", 0)
    assert state.sources == []
    if change is not Path.unlink:
        assert row["reason"] == CHANGED
        again = bench.read()
        assert [r["status"] for r in again.files] == ["loaded"]
        assert list(bench.cases()) == (["1", "2"] if change is append else ["1"])


def test_the_source_keeps_its_last_good_version_meanwhile(bench: Bench) -> None:
    bench.put("s/log.csv", OLD)
    assert bench.read().failed == []
    (bench.history / "s" / "log.csv").write_text(NEW)
    state = after_planning(bench, append)
    assert [(s.status, s.implementations) for s in state.sources] == [("held", 1)]
    assert [s.implementations for s in bench.read().sources] == [2]


def test_a_file_that_was_written_again_with_the_same_content_is_read(bench: Bench) -> None:
    bench.put("s/log.csv", OLD)
    state = after_planning(bench, lambda file: file.write_text(OLD))
    assert [(row["status"], row["implementations"]) for row in state.files] == [("loaded", 1)]


def test_settings_that_change_meanwhile_are_read_again(bench: Bench) -> None:
    toml = bench.put("s/source.toml", 'industry = "retail"\n')
    calls: list[str | None] = []

    def changing(folder: Path) -> SourceSettings:
        found = load_source(folder)
        calls.append(found.constant("industry"))
        if len(calls) == 1:
            toml.write_text('industry = "care"\n')
        return found

    settings, stated = settings_of(toml.parent, changing)
    assert calls == ["retail", "care"]
    assert (settings.constant("industry"), stated) == ("care", file_hash(toml))


def test_settings_that_never_rest_are_refused(bench: Bench) -> None:
    toml = bench.put("s/source.toml", 'industry = "retail"\n')

    def changing(folder: Path) -> SourceSettings:
        toml.write_text(toml.read_text() + "# and more\n")
        return load_source(folder)

    with pytest.raises(SettingsError, match="changes while it is read"):
        settings_of(toml.parent, changing)
