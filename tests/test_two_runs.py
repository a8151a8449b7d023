"""One writer a lake: who comes second is told so in one line, readers are never kept waiting, and a dead holder holds
nothing.
"""

import logging
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from opus_pipelines.cli.main import main
from opus_pipelines.core.errors import LakeError, LakeHeld
from opus_pipelines.core.versions import versions_of
from opus_pipelines.lake.layout import Lake, write_json
from opus_pipelines.lake.lock import is_alive, this_process
from opus_pipelines.reporting.views import write_views_sql

HOLD = (
    "import sys; from opus_pipelines.lake.layout import Lake\nwith Lake(sys.argv[1]).lock(): "
    "print('held', flush=True); sys.stdin.read()"
)


@pytest.fixture
def lake(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Lake:
    monkeypatch.chdir(tmp_path)
    lake = Lake(tmp_path / "lake")
    write_views_sql(lake)
    write_json(lake.root / "wkg/current.json", {"snapshot": "w1", "published_at": "2026-01-01T00:00:00+00:00"})
    write_json(
        lake.root / "wkg/w1/manifest.json",
        {
            "published_at": "2026-01-01T00:00:00+00:00",
            "code_version": versions_of("manifest"),
            "inputs": {"sources": []},
            "counts": {},
        },
    )
    (tmp_path / "history/orders").mkdir(parents=True)
    (tmp_path / "history/orders/a.csv").write_text("case,activity\n1,A\n")
    (tmp_path / "intakes/Acme/Retail/one").mkdir(parents=True)
    return lake


@pytest.fixture
def writer(lake: Lake) -> Iterator[subprocess.Popen[str]]:
    """Another process that writes to the lake."""
    process = subprocess.Popen(
        [sys.executable, "-c", HOLD, str(lake.root)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert process.stdout
    assert process.stdout.readline() == "held\n"
    yield process
    process.kill()
    process.communicate()


@pytest.mark.parametrize("arguments", [["rebuild"], ["rebuild", "--full"], ["generate"], ["rollback", "w1"]])
def test_the_second_writer_is_told_who_the_first_is(
    lake: Lake, writer: subprocess.Popen[str], arguments: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(arguments) == 1
    said = capsys.readouterr().err.splitlines()
    assert len(said) == 1
    assert said[0].startswith(f"opus: another run (process {writer.pid}, -c {lake.root}, since 20")
    assert f"is writing to {lake.root};" in said[0]


def test_readers_are_never_blocked(
    lake: Lake, writer: subprocess.Popen[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["query", "SELECT snapshot FROM current_snapshot", "--format", "csv"]) == 0
    assert capsys.readouterr().out == "snapshot\nw1\n"
    assert main(["rollback"]) == 0


def test_a_killed_writer_holds_nothing(lake: Lake, writer: subprocess.Popen[str]) -> None:
    writer.kill()
    writer.wait()
    with lake.lock():
        pass


def test_the_processes_of_one_run_share_the_right_to_write(lake: Lake) -> None:
    with lake.lock("run-1"), lake.lock("run-1"):
        with pytest.raises(LakeHeld, match="another run \\(process"), lake.lock("run-2"):
            pass
        with lake.staging() as staged:
            with lake.lock("run-1"):
                pass
            assert staged.is_dir(), "a process that does not hold the lock cleans up nothing"


@pytest.mark.long
def test_a_run_of_the_daemon_waits_for_the_other_to_end(lake: Lake, writer: subprocess.Popen[str]) -> None:
    import dagster as dg

    from resources.lake import LakeRun

    @dg.op(required_resource_keys={"run"})
    def write() -> None:
        """Nothing."""

    @dg.job(resource_defs={"run": LakeRun(settings={"paths": {"lake": str(lake.root)}}, wait_seconds=30.0)})
    def waiting() -> None:
        write()

    threading.Timer(1.0, writer.kill).start()
    assert waiting.execute_in_process(raise_on_error=False).success


def test_a_forked_worker_does_not_inherit_the_lock(lake: Lake) -> None:
    (stop, stopped), (started, start) = os.pipe(), os.pipe()
    with lake.lock():
        child = os.fork()
        if child == 0:
            os.close(stopped)
            os.write(start, b"x")
            os.read(stop, 1)  # outlives the writer, but not this process
            os._exit(0)
        os.read(started, 1)
    with lake.lock():
        os.write(stopped, b"x")
    assert os.waitpid(child, 0)[1] == 0


def test_a_holder_that_has_not_said_who_it_is(lake: Lake) -> None:
    with lake.lock():
        (lake.root / ".lock").write_text("")
        with pytest.raises(LakeError, match="another run \\("), lake.lock():
            pass


def test_a_process_is_known_by_its_number_and_its_start() -> None:
    mark = this_process()
    assert is_alive(mark)
    assert not is_alive(mark + "1")
    assert not is_alive("")
    assert not is_alive("999999999:")


@pytest.mark.long
def test_dead_runs_are_marked_and_said_and_live_ones_left(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    import dagster as dg

    from resources.lake import PROCESS, fail_dead_runs

    @dg.job
    def rebuild() -> None:
        """Nothing."""

    monkeypatch.setattr(logging.getLogger("opus_pipelines"), "propagate", True)  # which the command line turns off
    with dg.DagsterInstance.ephemeral() as instance:
        started = dg.DagsterRunStatus.STARTED
        tags = {"dead": {PROCESS: "1:0"}, "untold": {}, "live": {PROCESS: this_process()}, "own": {}}
        runs = {name: instance.create_run_for_job(rebuild, status=started, tags=of).run_id for name, of in tags.items()}
        assert sorted(fail_dead_runs(instance, runs["own"])) == sorted([runs["dead"], runs["untold"]])
        found = {name: instance.get_run_by_id(run) for name, run in runs.items()}
    assert [name for name, run in found.items() if run and run.status == dg.DagsterRunStatus.FAILURE] == [
        "dead",
        "untold",
    ]
    said = {record.getMessage() for record in caplog.records if "had died" in record.getMessage()}
    line = "run %s (rebuild) had died before its end: it is marked as failed, and nothing unfinished of it is visible"
    assert said == {line % runs[name].partition("-")[0] for name in ("dead", "untold")}
