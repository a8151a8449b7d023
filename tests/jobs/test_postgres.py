"""With Dagster's record in Postgres the same commands give the same results and the same record as with SQLite, also
where the server is killed in the middle and started again, and its password is left nowhere.
"""

import shutil
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import dagster as dg
import pytest

from opus_pipelines.cli.forget import clean_record
from opus_pipelines.cli.main import main
from opus_pipelines.core.schemas import DATASETS, RUNS
from opus_pipelines.lake.layout import Lake
from opus_pipelines.lake.run_storage import findings
from opus_pipelines.lake.search import Word
from opus_pipelines.reporting.status import last_runs
from tests.credentials import CREDENTIALS, found_below
from tests.jobs.test_run_jobs import write_inputs
from tests.kill_points import complaints, leftovers
from tests.postgres import PASSWORD, Server, server
from tests.test_kill import write_history

pytestmark = pytest.mark.model
CLIENT = "Acme"


@pytest.fixture(scope="module")
def postgres() -> Iterator[Server]:
    assert CREDENTIALS["DAGSTER_PG_PASSWORD"] == PASSWORD, "the search for credentials looks for this one"
    with server() as made:
        yield made


class Night:
    """A lake with the same inputs each time, and `opus` on it with its record where the environment says."""

    def __init__(self, root: Path, environment: dict[str, str], key: Path | None = None) -> None:
        self.root, self.environment, self.cases = root, environment, 4
        write_inputs(root)
        shutil.rmtree(root / "history")
        shutil.rmtree(root / "intakes" / "Acme" / "Wholesale")
        shutil.rmtree(root / "intakes" / "Acme" / "Retail" / "order-2")
        self.change()
        self.lake = Lake(root / "lake")
        if key is not None:  # the same hashes of attributes
            self.lake.kept.mkdir(parents=True)
            shutil.copy(key, self.lake.kept)

    def change(self) -> None:
        """More cases of the same tasks, which is something new for a rebuild."""
        self.cases += 1
        write_history(self.root / "history", self.cases)

    def opus(self, *arguments: str) -> int:
        own = {f"OPUS_{name.upper()}": str(self.root / name) for name in ("lake", "history", "intakes")}
        with pytest.MonkeyPatch.context() as patch:
            for name, value in {**self.environment, **own, "DAGSTER_HOME": ""}.items():
                patch.setenv(name, value)
            return main(list(arguments))

    def in_environment(self, action: Callable[[], Any]) -> Any:
        with pytest.MonkeyPatch.context() as patch:
            for name, value in self.environment.items():
                patch.setenv(name, value)
            return action()

    def published(self) -> dict[str, bytes]:
        """The files of the snapshot and of every result, but those that hold times."""
        folder = self.lake.snapshot_folder(self.lake.current_snapshot() or "")
        tables = list(folder.rglob("*.parquet"))
        for dataset in (d for d in DATASETS.values() if "result" in d.partitions and d is not RUNS):
            tables += self.lake.folder(dataset).rglob("*.parquet")
        return {file.relative_to(self.lake.root).as_posix(): file.read_bytes() for file in tables}

    def record(self) -> dict[str, Any]:
        """What Dagster knows: the runs, what was materialized of each contract, and the checks, by its API."""
        with dg.DagsterInstance.from_config(str(self.lake.dagster_home)) as instance:
            intakes = dg.AssetKey(["generation", "intakes"])
            events = Counter(
                f"{entry.dagster_event.event_type_value} {entry.dagster_event.asset_key}"
                for run in instance.get_runs()
                for entry in instance.all_logs(run.run_id)
                if entry.dagster_event is not None and entry.dagster_event.asset_key is not None
            )
            return {
                "runs": sorted((run.job_name, run.status.value) for run in instance.get_runs()),
                "contracts": instance.get_dynamic_partitions("contract"),
                "materialized": instance.get_materialized_partitions(intakes),
                "assets": sorted(key.to_user_string() for key in instance.all_asset_keys()),
                "events": events,
            }


@pytest.fixture(scope="module")
def nights(tmp_path_factory: pytest.TempPathFactory, postgres: Server) -> tuple[Night, Night]:
    """A rebuild and a contract with the record in SQLite, and with the record in Postgres.

    There the server is killed in the middle of the rebuild and started again. Dagster tries to connect for some
    seconds.
    """
    here = Night(tmp_path_factory.mktemp("sqlite"), {})
    assert here.opus("rebuild") == 0
    there = Night(tmp_path_factory.mktemp("postgres"), postgres.database("same"), here.lake.kept / "private.key")
    done = threading.Event()
    thread = threading.Thread(target=killed_once_mining_begins, args=(postgres, there.lake, done))
    thread.start()
    assert there.opus("rebuild") == 0
    thread.join()
    assert done.is_set()
    for night in (here, there):
        assert night.opus("generate", "--client", CLIENT) == 0
    return here, there


def killed_once_mining_begins(postgres: Server, lake: Lake, done: threading.Event) -> None:
    end = time.monotonic() + 300
    while time.monotonic() < end and not (lake.staged / "request.json").exists():
        time.sleep(0.01)
    postgres.cut()
    postgres.kill()
    time.sleep(0.5)
    postgres.start()
    done.set()


@pytest.mark.nightly
def test_the_same_results_and_the_same_record(nights: tuple[Night, Night]) -> None:
    here, there = nights
    assert there.published() == here.published()
    assert len(here.published()) > 20
    record = there.in_environment(there.record)
    assert record == here.record()
    assert record["runs"] == [("generate", "SUCCESS"), ("rebuild", "SUCCESS")]
    assert record["materialized"] == {"Acme__Retail"}
    assert not (there.lake.dagster_home / "history").exists()


@pytest.mark.nightly
def test_status_reads_the_runs_without_dagster(nights: tuple[Night, Night]) -> None:
    _, there = nights
    shown = [[row[:2] for row in night.in_environment(lambda n=night: last_runs(n.lake))] for night in nights]
    assert shown == [[("generate", "success"), ("rebuild", "success")]] * 2
    assert there.opus("status") == 0


def test_nothing_begins_where_the_server_is_away(
    nights: tuple[Night, Night], postgres: Server, capfd: pytest.CaptureFixture[str]
) -> None:
    _, there = nights
    before = there.lake.current_snapshot()
    there.change()
    postgres.kill()
    try:
        assert there.opus("rebuild") == 1
        assert "Dagster's record in Postgres" in capfd.readouterr().err
        assert there.opus("status") == 0
    finally:
        postgres.start()
    assert there.lake.current_snapshot() == before
    assert complaints(there.lake) + leftovers(there.lake) == []


@pytest.mark.nightly
def test_the_password_is_left_nowhere(nights: tuple[Night, Night], capfd: pytest.CaptureFixture[str]) -> None:
    _, there = nights
    assert found_below(there.root) == []
    assert there.in_environment(lambda: list(findings(there.lake, [Word("credential", PASSWORD)]))) == []


@pytest.mark.nightly
def test_nothing_of_a_forgotten_client_is_left_in_postgres(nights: tuple[Night, Night]) -> None:
    _, there = nights
    words = [Word("client", CLIENT)]
    assert there.in_environment(lambda: list(findings(there.lake, words))) != []
    with there.lake.lock():
        removed = dict(there.in_environment(lambda: clean_record(there.lake, CLIENT, words)))
    assert (removed["partitions"], removed["runs in Dagster's record"]) == (1, 1)
    assert there.in_environment(lambda: list(findings(there.lake, words))) == []
    record = there.in_environment(there.record)
    assert (record["contracts"], record["runs"]) == ([], [("rebuild", "SUCCESS")])
