"""What a person does in Dagster's web interface and by its commands, on a lake with two good contracts and a bad one:
backfills in one run and in a run for each contract, runs that take turns, and where the server listens.
"""

import json
import os
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import dagster as dg
import pytest

from opus_pipelines.core.settings import Settings
from opus_pipelines.lake.layout import Lake
from tests.credentials import CREDENTIALS, found_below
from tests.credentials import SETTINGS as ALERTS
from tests.jobs.test_run_jobs import write_inputs

pytestmark = pytest.mark.nightly
ROOT = Path(__file__).resolve().parents[2]
GOOD, OTHER, BAD = "Acme__Retail", "Acme__Wholesale", "Acme__Bad"
POINTER = dg.AssetKey(["workflows", "current"])
REPOSITORY = {"repositoryLocationName": "opus", "repositoryName": "__repository__"}
BACKFILL = """mutation($p: LaunchBackfillParams!) { launchPartitionBackfill(backfillParams: $p) {
  __typename ... on LaunchBackfillSuccess { backfillId } ... on PythonError { message } } }"""
STATUS = """query($id: String!) { partitionBackfillOrError(backfillId: $id) {
  ... on PartitionBackfill { status error { message } } ... on PythonError { message } } }"""
STALE = "query { assetNodes { assetKey { path } staleStatus } }"
OBSERVE = """mutation($p: ExecutionParams!) { launchPipelineExecution(executionParams: $p) {
  __typename ... on LaunchRunSuccess { run { runId } } ... on PythonError { message } } }"""


class Server:
    """`opus ui` on a lake: the web server, the daemon, and the record that they write."""

    def __init__(self, settings: Settings, port: int) -> None:
        paths = settings.paths
        self.lake, self.port = Lake(paths.lake), port
        self.environment = (
            os.environ
            | CREDENTIALS
            | ALERTS
            | {
                "OPUS_LAKE": str(paths.lake),
                "OPUS_HISTORY": str(paths.history),
                "OPUS_INTAKES": str(paths.intakes),
                "OPUS_SCHEDULE_ENABLED": "false",
                "DAGSTER_HOME": str(self.lake.dagster_home),
            }
        )
        self.log = paths.lake.parent / "ui.log"

    def opus(self, *arguments: str) -> list[str]:
        return [sys.executable, "-m", "opus_pipelines.cli.main", *arguments]

    def ask(self, query: str, **variables: Any) -> dict[str, Any]:
        body = json.dumps({"query": query, "variables": variables}).encode()
        request = urllib.request.Request(
            f"http://127.0.0.1:{self.port}/graphql", body, {"Content-Type": "application/json"}
        )
        with urllib.request.urlopen(request, timeout=60) as answer:
            found = json.load(answer)
        assert "errors" not in found, found["errors"]
        return found["data"]

    def backfill(self, **parameters: Any) -> str:
        """Starts a backfill, waits for its end, and returns its status."""
        launched = self.ask(BACKFILL, p=parameters)["launchPartitionBackfill"]
        assert launched["__typename"] == "LaunchBackfillSuccess", launched
        ended = ("COMPLETED_SUCCESS", "COMPLETED_FAILED", "FAILED", "COMPLETED")
        found = wait(lambda: self.state(launched["backfillId"]), lambda state: state["status"] in ended)
        assert found["error"] is None, found
        return found["status"]

    def state(self, backfill: str) -> dict[str, Any]:
        return self.ask(STATUS, id=backfill)["partitionBackfillOrError"]


def wait(look: Any, is_done: Any, seconds: float = 240.0) -> Any:
    end = time.monotonic() + seconds
    while not is_done(found := look()):
        assert time.monotonic() < end, f"still {found} after {seconds:.0f} s"
        time.sleep(1.0)
    return found


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    settings = write_inputs(tmp_path_factory.mktemp("ui"))
    bad = settings.paths.intakes / "Acme" / "Bad"
    (bad / "order-1").mkdir(parents=True)
    (bad / "contract.toml").write_text('industry = "retail"\nno_such_setting = 1\n')
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        made = Server(settings, free.getsockname()[1])
    subprocess.run(made.opus("rebuild"), env=made.environment, check=True, capture_output=True, timeout=400)
    with made.log.open("wb") as log:
        command = made.opus("ui", "--port", str(made.port))
        process = subprocess.Popen(command, env=made.environment, stdout=log, stderr=log, start_new_session=True)
    try:
        wait(lambda: is_up(made.port), bool)
        yield made
    finally:
        os.killpg(process.pid, signal.SIGTERM)
        process.wait(timeout=60)


def is_up(port: int, host: str = "127.0.0.1") -> bool:
    try:
        with socket.create_connection((host, port), timeout=2):
            return True
    except OSError:
        return False


@pytest.fixture
def instance(server: Server) -> Iterator[dg.DagsterInstance]:
    with dg.DagsterInstance.from_config(str(server.lake.dagster_home)) as found:
        yield found


def test_it_listens_on_loopback_alone(server: Server) -> None:
    addresses = {info[4][0] for info in socket.getaddrinfo(socket.gethostname(), None, socket.AF_INET)}
    listening = Path("/proc/net/tcp").read_text().splitlines()[1:]
    ours = {line.split()[1] for line in listening if line.split()[1].endswith(f":{server.port:04X}")}
    assert ours == {f"0100007F:{server.port:04X}"}
    assert [address for address in addresses - {"127.0.0.1"} if is_up(server.port, address)] == []


def test_a_backfill_of_the_job_has_one_red_and_one_green_contract(server: Server, instance: dg.DagsterInstance) -> None:
    """The contracts lie side by side, so that one run takes both; the bad one costs only itself."""
    selector = {"repositorySelector": REPOSITORY, "partitionSetName": "generate_partition_set"}
    server.backfill(selector=selector, partitionNames=[GOOD, BAD])
    (run,) = [run for run in instance.get_runs() if run.job_name == "generate"]
    assert run.status == dg.DagsterRunStatus.FAILURE
    assert {run.tags["dagster/asset_partition_range_start"], run.tags["dagster/asset_partition_range_end"]} == {
        GOOD,
        BAD,
    }
    assert instance.get_materialized_partitions(POINTER) == {GOOD}
    assert [pointer["contract"] for pointer in server.lake.results()] == ["Retail"]


def test_a_backfill_of_assets_is_one_run_for_a_span_of_contracts(server: Server, instance: dg.DagsterInstance) -> None:
    before = {run.run_id for run in instance.get_runs()}
    assets = [{"path": key.path} for key in (POINTER, dg.AssetKey(["generation", "runs"]))]
    assert server.backfill(assetSelection=assets, partitionNames=[GOOD, OTHER], title="Acme") == "COMPLETED_SUCCESS"
    (run,) = [run for run in instance.get_runs() if run.run_id not in before]
    assert (run.tags["dagster/asset_partition_range_start"], run.tags["dagster/asset_partition_range_end"]) == (
        GOOD,
        OTHER,
    )
    assert instance.get_materialized_partitions(POINTER) == {GOOD, OTHER}


def test_the_command_of_dagster_backfills_in_a_run_for_each_contract_and_they_take_turns(
    server: Server, instance: dg.DagsterInstance
) -> None:
    before = {run.run_id for run in instance.get_runs()}
    where = ["-w", str(ROOT / "workspace.yaml"), "-j", "generate", "--partitions", f"{GOOD},{OTHER}", "--noprompt"]
    command = [sys.executable, "-m", "dagster", "job", "backfill", *where]
    subprocess.run(command, env=server.environment, check=True, capture_output=True, timeout=120)
    records = wait(
        lambda: [record for record in instance.get_run_records() if record.dagster_run.run_id not in before],
        lambda found: len(found) == 2 and all(record.dagster_run.is_finished for record in found),
    )
    assert {record.dagster_run.tags["dagster/partition"]: record.dagster_run.status for record in records} == {
        GOOD: dg.DagsterRunStatus.SUCCESS,
        OTHER: dg.DagsterRunStatus.SUCCESS,
    }
    first, second = sorted(records, key=lambda record: record.start_time)
    assert second.start_time >= first.end_time, "the pool of the lake lets one run write at a time"


def test_observing_a_changed_history_makes_its_assets_stale_and_no_others(
    server: Server, instance: dg.DagsterInstance
) -> None:
    def stale() -> list[str]:
        nodes = server.ask(STALE)["assetNodes"]
        return sorted("/".join(node["assetKey"]["path"]) for node in nodes if node["staleStatus"] == "STALE")

    assert stale() == []
    log = Path(server.environment["OPUS_HISTORY"]) / "orders" / "orders.csv"
    log.write_text(log.read_text().replace("1.5", "1.75"))
    inputs = [{"path": ["inputs", name]} for name in ("history", "settings")]
    selector = {**REPOSITORY, "pipelineName": "__ASSET_JOB", "assetSelection": inputs, "assetCheckSelection": []}
    launched = server.ask(OBSERVE, p={"selector": selector, "mode": "default"})["launchPipelineExecution"]
    assert launched["__typename"] == "LaunchRunSuccess", launched
    wait(lambda: instance.get_run_by_id(launched["run"]["runId"]), lambda run: run is not None and run.is_finished)
    assert stale() == [f"history/{name}" for name in ("implementations", "rejects", "sources")]


def test_every_run_has_its_row_and_no_credential_is_left(server: Server, instance: dg.DagsterInstance) -> None:
    def recorded() -> set[str]:
        return {folder.name.partition("=")[2] for folder in (server.lake.root / "ops" / "runs").iterdir()}

    ended = {run.run_id for run in instance.get_runs() if run.job_name in ("rebuild", "generate")}
    assert wait(recorded, lambda found: ended <= found) >= ended
    assert "was not sent" in server.log.read_text(), "the alerts were tried"
    assert found_below(server.lake.root.parent) == []
