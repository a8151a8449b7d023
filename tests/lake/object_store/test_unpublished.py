"""What a run made and could not bring to the store: the run fails, and the next command of the machine publishes it."""

import warnings
from pathlib import Path

import dagster as dg
import pytest

from opus_pipelines.cli.main import main
from opus_pipelines.cli.runs import failure_of, publish_what_is_left
from opus_pipelines.core.errors import LakeError
from opus_pipelines.core.settings import Paths, Settings
from opus_pipelines.lake.object_store.folders import has_unpublished
from resources.lake import LakeRun
from tests.lake.conftest import Machine, Place
from tests.lake.object_store.test_publication import put
from tests.lake.object_store.test_writers import names
from tests.object_store_server import Server
from tests.published_lake import publish


def refuse(server: Server) -> None:
    server.fault = lambda method, path: "error"


def answer(server: Server) -> None:
    server.fault = lambda method, path: None


def leave(machine: Machine, line: Server, name: str) -> None:
    """Publishes in the folder of a machine what does not come to the store."""
    lake = machine.lake()

    def run() -> None:
        with lake.lock():
            put(lake, name, name)
            refuse(line)

    with pytest.raises(LakeError, match="run again when the store answers"):
        run()
    answer(line)
    assert has_unpublished(lake.root)


@pytest.mark.long
def test_a_run_of_dagster_whose_results_do_not_come_to_the_store_has_failed(place: Place, line: Server) -> None:
    machine = place.machine("one", line, retry_seconds=0.4)
    lake = machine.lake()

    @dg.op
    def work(run: LakeRun) -> None:
        put(run.lake, "w0", "w0")
        refuse(line)

    @dg.job(resource_defs={"run": LakeRun.of(Settings(paths=Paths(lake=lake.root)))})
    def job() -> None:
        work()

    with dg.DagsterInstance.ephemeral() as instance, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        quiet = {"loggers": {"console": {"config": {"log_level": "CRITICAL"}}}}
        result = job.execute_in_process(instance=instance, raise_on_error=False, run_config=quiet)
        ended = instance.get_run_by_id(result.run_id)
    answer(line)
    assert not result.success
    assert ended is not None
    assert ended.status == dg.DagsterRunStatus.FAILURE
    assert "run again when the store answers" in failure_of(result)
    assert names(place.machine("two")) == []
    publish_what_is_left(Settings(paths=Paths(lake=lake.root)))
    assert names(place.machine("two")) == ["w0"]
    assert not has_unpublished(lake.root)


@pytest.mark.long
def test_what_is_left_is_dropped_where_another_machine_has_published(place: Place, line: Server) -> None:
    machine = place.machine("one", line, lease_seconds=0.5, retry_seconds=0.4)
    leave(machine, line, "w0")
    two = place.machine("two").lake()
    with two.lock():
        put(two, "w1", "w1")
    publish_what_is_left(Settings(paths=Paths(lake=machine.lake().root)))
    assert not has_unpublished(machine.lake().root)
    assert names(machine) == names(place.machine("three")) == ["w1"]


@pytest.mark.long
def test_a_generation_with_nothing_new_publishes_what_is_left(
    place: Place, line: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The results of the run before lie in the folder alone, where they look up to date."""
    machine = place.machine("one", line, retry_seconds=0.4)
    publish(machine.lake())
    leave(machine, line, "made and not sent")
    assert "made and not sent" not in names(place.machine("two"))
    monkeypatch.setenv("OPUS_OBJECT_STORE_ENDPOINT", line.endpoint)
    monkeypatch.setenv("OPUS_OBJECT_STORE_WORKING_FOLDER", str(machine.settings.working_folder))
    (tmp_path / "intakes").mkdir()
    assert main(["--lake", machine.url, "generate", "--intakes", str(tmp_path / "intakes")]) == 1  # no intake is there
    assert "made and not sent" in names(place.machine("two"))
