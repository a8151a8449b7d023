"""A night over the history folder: what is read, what is left alone, what is refused, and what the lake says of it."""

import os
import subprocess
import sys
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from opus_pipelines.core.errors import InputError
from opus_pipelines.core.schemas import IMPLEMENTATIONS, REJECTS, SOURCES
from opus_pipelines.history.ingestion.ingest import HistoryState, plan_history
from opus_pipelines.lake.layout import PART, read_table, slug
from tests.history_fixtures import Bench

LOG = "case_id,activity\n1,A\n1,B\n2,A\n"


def statuses(state: HistoryState) -> Any:
    return {f"{r['source']}/{r['path']}": r["status"] for r in state.files}


def test_what_is_published(bench: Bench) -> None:
    bench.put("claims of 007/log.csv", LOG)
    state = bench.read()
    (source,) = state.sources
    assert (source.source, source.status, source.implementations, source.merge, source.industry) == (
        "claims of 007",
        "loaded",
        2,
        True,
        None,
    )
    assert (
        source.folder
        == bench.lake.root
        / "history"
        / "implementations"
        / f"source_key={slug('claims of 007')}"
        / f"content={source.content}"
    )
    assert pq.read_schema(source.folder / PART).equals(IMPLEMENTATIONS.schema)
    table = read_table(IMPLEMENTATIONS, source.folder)
    ids = table["implementation_id"].to_pylist()
    assert ids == sorted(ids)
    assert len(set(table["content_hash"].to_pylist())) == 2
    assert (
        read_table(REJECTS, bench.lake.folder(REJECTS, source_key="claims of 007", content=source.content)).num_rows
        == 0
    )
    assert read_table(SOURCES, bench.lake.folder(SOURCES)).to_pylist() == state.files
    assert state.changed


def test_an_unchanged_night_reads_and_writes_nothing(bench: Bench) -> None:
    bench.put("s/log.csv", LOG)
    first = bench.read()
    later = bench.read(now=first.files[0]["last_read"] + timedelta(days=1))
    assert (later.changed, statuses(later), later.sources[0].status) == (False, {"s/log.csv": "unchanged"}, "unchanged")
    assert later.files[0]["last_read"] == first.files[0]["last_read"]
    assert later.sources[0].content == first.sources[0].content
    files = {p: p.stat().st_mtime_ns for p in bench.lake.root.rglob("*.parquet")}
    bench.read()
    assert files == {p: p.stat().st_mtime_ns for p in bench.lake.root.rglob("*.parquet")}
    assert bench.read(force=True).sources[0].status == "loaded"


def test_what_changed_is_read_again_and_the_rest_is_not(bench: Bench) -> None:
    bench.put("a/log.csv", LOG)
    bench.put("b/log.csv", LOG)
    first = bench.read()
    night = first.files[0]["last_read"] + timedelta(days=1)
    bench.put("b/log.csv", LOG + "3,C\n")
    bench.put("b/more.csv", "case_id,activity\n9,A\n")
    second = bench.read(now=night)
    assert [(s.source, s.status, s.implementations) for s in second.sources] == [
        ("a", "unchanged", 2),
        ("b", "loaded", 4),
    ]
    assert second.changed
    assert first.sources[1].folder.exists()
    assert second.sources[1].folder != first.sources[1].folder
    row = next(r for r in second.files if r["path"] == "log.csv" and r["source"] == "b")
    assert (row["first_seen"], row["last_read"]) == (night - timedelta(days=1), night)
    bench.put("b/source.toml", 'industry = "x"')
    assert bench.read().sources[1].industry == "x"


def test_an_unchanged_case_keeps_its_hash(bench: Bench) -> None:
    bench.put("s/log.csv", LOG)
    before = {k: c["content_hash"] for k, c in bench.cases().items()}
    bench.put("s/log.csv", LOG + "1,C\n")
    after = {k: c["content_hash"] for k, c in bench.cases().items()}
    assert before["2"] == after["2"]
    assert before["1"] != after["1"]


def test_what_is_taken_away_is_gone_and_may_come_back(bench: Bench) -> None:
    bench.put("s/a.csv", LOG)
    bench.put("s/b.csv", "case_id,activity\n9,A\n")
    bench.put("t/c.csv", LOG)
    first = bench.read()
    (bench.history / "s" / "b.csv").unlink()
    (bench.history / "t" / "c.csv").unlink()
    (bench.history / "t").rmdir()
    second = bench.read()
    assert statuses(second) == {"s/a.csv": "loaded", "s/b.csv": "gone", "t/c.csv": "gone"}
    assert [s.source for s in second.sources] == ["s"]
    assert second.changed
    assert not bench.read().changed
    bench.put("t/c.csv", LOG)
    third = bench.read(now=first.files[0]["last_read"] + timedelta(days=3))
    row = next(r for r in third.files if r["source"] == "t")
    assert (row["status"], row["first_seen"]) == ("loaded", first.files[0]["first_seen"])


def test_a_refused_file_is_said_every_night_and_its_neighbours_go_on(bench: Bench) -> None:
    bench.put("s/a.csv", LOG)
    bench.put("s/b.csv", "")
    bench.put("s/c.doc", "x")
    bench.put("s/README.md", "notes")
    bench.put("s/.hidden.csv", "notes")
    expected = {"s/a.csv": "loaded", "s/b.csv": "rejected", "s/c.doc": "rejected"}
    first = bench.read()
    assert statuses(first) == expected
    assert first.failed[0] == "s/b.csv: the file is empty"
    assert first.failed[1].startswith("s/c.doc: its name tells no format")
    second = bench.read()
    assert statuses(second) == expected | {"s/a.csv": "unchanged"}
    assert second.failed == first.failed


def test_settings_that_cannot_be_followed_stop_their_source_only(bench: Bench) -> None:
    bench.put("a/log.csv", LOG)
    bench.put("b/log.csv", LOG)
    bench.put("b/source.toml", 'industri = "x"')
    state = bench.read()
    assert [s.source for s in state.sources] == ["a"]
    (line,) = state.failed
    assert "b/source.toml: unknown key industri;" in line
    assert state.held == [line]
    assert statuses(state)["b/log.csv"] == "rejected"
    bench.put("b/source.toml", 'industry = "x"')
    assert [s.source for s in bench.read().sources] == ["a", "b"]


def test_links_out_of_the_source_are_refused(bench: Bench, tmp_path: Path) -> None:
    (tmp_path / "secret").mkdir()
    (tmp_path / "secret" / "log.csv").write_text(LOG)
    bench.put("s/own.csv", LOG)
    folder = bench.history / "s"
    (folder / "file.csv").symlink_to(tmp_path / "secret" / "log.csv")
    (folder / "folder.csv").symlink_to(tmp_path / "secret")
    (folder / "nothing.csv").symlink_to(tmp_path / "absent")
    (folder / "loop.csv").symlink_to(folder / "loop.csv")
    state = bench.read()
    assert {r["path"]: r["status"] for r in state.files} == {
        "own.csv": "loaded",
        "file.csv": "rejected",
        "folder.csv": "rejected",
        "nothing.csv": "rejected",
        "loop.csv": "rejected",
    }
    assert sum("out of the source's folder" in line for line in state.failed) == 2


def test_a_source_that_is_a_link_is_refused_by_name_and_nothing_in_it_is_read(bench: Bench, tmp_path: Path) -> None:
    bench.put("a/log.csv", LOG)
    (tmp_path / "secret").mkdir()
    (tmp_path / "secret" / "log.csv").write_text(LOG)
    (bench.history / "b").symlink_to(tmp_path / "secret")
    state = bench.read()
    assert [s.source for s in state.sources] == ["a"]
    assert {row["source"] for row in state.files} == {"a"}
    (line,) = state.held
    assert line.startswith("b: the source's folder is a link")


def test_pipes_devices_and_hard_links_are_refused_by_name(bench: Bench, tmp_path: Path) -> None:
    bench.put("s/own.csv", LOG)
    folder = bench.history / "s"
    (tmp_path / "secret.csv").write_text(LOG)
    (folder / "hard.csv").hardlink_to(tmp_path / "secret.csv")
    os.mkfifo(folder / "pipe.csv")
    (folder / "device.csv").symlink_to("/dev/zero")
    statuses = {row["path"]: row["status"] for row in bench.read().files}
    assert statuses.pop("own.csv") == "loaded"
    assert statuses == dict.fromkeys(("hard.csv", "pipe.csv", "device.csv"), "rejected")


def test_a_pipe_as_settings_holds_back_its_own_source_only(bench: Bench) -> None:
    bench.put("a/log.csv", LOG)
    bench.put("b/log.csv", LOG)
    os.mkfifo(bench.history / "b" / "source.toml")
    state = bench.read()
    assert [s.source for s in state.sources] == ["a"]
    assert "b/source.toml" in state.held[0]


def test_a_format_is_stated_where_the_name_does_not_tell(bench: Bench) -> None:
    assert list(bench.one("export.txt", LOG, 'format = "csv"')[0]) == ["1", "2"]


def test_files_beside_the_sources_are_named(bench: Bench) -> None:
    bench.put("log.csv", LOG)
    (line,) = bench.read().failed
    assert line.startswith("log.csv: ")
    assert line.endswith(f" {bench.history}")


def test_a_missing_history_folder_is_a_clear_error(bench: Bench) -> None:
    with pytest.raises(InputError, match="no such history folder"):
        plan_history(bench.history / "absent")


def test_the_same_input_gives_the_same_bytes(make_bench: Callable[..., Any]) -> None:
    made = []
    for order in (("a", "b"), ("b", "a")):
        bench = make_bench()
        for name in order:
            bench.put(f"s/{name}.csv", f"case_id,activity,timestamp\n{name}1,A,2020-01-01T00:00:00Z\n{name}2,,\n")
        (source,) = bench.read().sources
        made.append((source.content, (source.folder / PART).read_bytes()))
    assert made[0] == made[1]


def test_progress_says_what_became_of_each_file(bench: Bench) -> None:
    bench.put("s/log.csv", LOG)
    said: list[str] = []
    bench.read(progress=said.append)
    assert [line.partition(" (")[0] for line in said] == ["s/log.csv: 3 records"]
    assert said[0].endswith(", 2 cases")


@pytest.mark.long
def test_an_unchanged_night_loads_no_parser(bench: Any) -> None:
    bench.put("s/log.csv", LOG)
    bench.read()
    bench.read()
    code = (
        "import sys, datetime; from pathlib import Path\n"
        "from opus_pipelines.history.ingestion.ingest import read_history\n"
        "from opus_pipelines.lake.layout import Lake\n"
        f"state = read_history(Lake({str(bench.lake.root)!r}), Path({str(bench.history)!r}), "
        f"datetime.datetime.now(datetime.UTC))\n"
        "heavy = {'lxml', 'pandas', 'pyspark', 'torch', 'opus_pipelines.history.formats.csv_log'}\n"
        "print(state.changed, sorted(heavy & sys.modules.keys()))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "False []\n"


def test_a_folder_that_cannot_be_listed_is_named(bench: Bench) -> None:
    """Its path is longer than the system takes, which keeps even root from listing it."""
    place = os.open(
        bench.put("s/log.csv", "case_id,activity,timestamp\n1,A,2025-01-01T10:00:00Z\n").parent, os.O_RDONLY
    )
    for _ in range(20):
        os.mkdir("d" * 250, dir_fd=place)
        inner = os.open("d" * 250, os.O_RDONLY, dir_fd=place)
        os.close(place)
        place = inner
    os.close(place)
    state = bench.read()
    assert [line.split(": ")[-1] for line in state.failed if "too long" in line] != []
    assert {row["status"] for row in state.files} == {"loaded", "rejected"}
