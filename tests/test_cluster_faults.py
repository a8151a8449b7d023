"""Everything real at once, and one thing taken away: a Spark cluster does the work, the lake lies in an object store,
and Dagster's record is in Postgres. At a seeded random moment of a rebuild or of a generation a worker, the driver, the
store, the database, the network between them or the lease is taken away.

After each moment a reader on another machine finds the state before or the state after, whole; the next run goes
through without help and leaves the bytes that one machine without any fault makes; and every case and every intake that
was written is there. TEST_FROM and TEST_MOMENTS choose the moments.
"""

import contextlib
import os
import random
import shutil
import signal
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from opus_pipelines.core.errors import LakeHeld
from opus_pipelines.core.settings import ObjectStore
from opus_pipelines.lake.layout import Lake
from opus_pipelines.lake.object_store.bucket import Bucket
from opus_pipelines.lake.object_store.folders import origin_of
from opus_pipelines.reporting.views import connect
from tests.cluster_night import Night, StoredNight, bare_executors, store_of_nights
from tests.kill_points import complaints, leftovers
from tests.network_line import Line, line
from tests.object_store_server import Server as Store
from tests.postgres import Server as Postgres
from tests.postgres import server as postgres_server
from tests.spark_cluster import Cluster, class_archive, cluster
from tests.test_kill import write_history

pytestmark = [pytest.mark.nightly, pytest.mark.spark, pytest.mark.model]
FIRST, MOMENTS = int(os.environ.get("TEST_FROM", "0")), int(os.environ.get("TEST_MOMENTS", "28"))
LEASE_SECONDS, RETRY_SECONDS = 4.0, 8.0
OUTAGE_SECONDS = 3.0  # of the store: shorter than a request is tried again
INTAKES, CASES = 8, (60, 100)  # of the one contract; of the source that changes, before and after the change
OTHER_CASES = 40  # of the source that does not change
IN_PROCESS = {"OPUS_SPARK_MINE_FROM_MIB": "512"}  # so little is mined without Spark
FEW_INTAKES_ON_SPARK = """
import sys
if sys.argv[1] == "generate":  # a rebuild does not load what generates
    from opus_pipelines.generation.bulk import run
    run.BulkRun.__init__.__defaults__ = (run.BulkSize(many=2, chunk=4),)
from opus_pipelines.cli.main import main
sys.exit(main(sys.argv[1:]))
"""
JAVA_OPTIONS = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
SPARK = {
    "spark.executor.memory": "600m",
    # after so long without an answer a worker counts as lost
    "spark.network.timeout": "12s",
    "spark.network.timeoutInterval": "4s",
    "spark.executor.heartbeatInterval": "2s",
}


class FaultNight(StoredNight):
    """A night of everything at once, whose networks to the store and to Postgres can be cut."""

    program = ("-c", FEW_INTAKES_ON_SPARK)

    def __init__(self, inputs: Path, folder: Path, parts: "Parts", database: Mapping[str, str]) -> None:
        self._parts, self._database = parts, dict(database)
        options = f"{JAVA_OPTIONS} -XX:SharedArchiveFile={parts.classes}"
        of_jvms = {f"spark.{one}.extraJavaOptions": options for one in ("driver", "executor")}
        super().__init__(inputs, folder, parts.store, SPARK | of_jvms, LEASE_SECONDS)

    def machine(self, name: str) -> ObjectStore:
        """How a machine reaches the lake: that of the driver by a line, others without."""
        stated = super().machine(name)
        if name != "driver":
            return stated
        endpoint = f"http://127.0.0.1:{self._parts.to_store.port}"
        return stated.model_copy(update={"endpoint": endpoint, "retry_seconds": RETRY_SECONDS})

    @property
    def paths(self) -> dict[str, str]:
        return {**super().paths, **self._database, "DAGSTER_PG_PORT": str(self._parts.to_postgres.port)}

    def with_lake(self, folder: Path) -> None:
        """Publishes what lies in a lake of this machine, without Dagster's record of it."""
        lake = self.writer("driver")
        with lake.lock():
            hidden = shutil.ignore_patterns(".dagster", ".lock", ".staged", ".unlocked")
            shutil.copytree(folder, lake.root, ignore=hidden, dirs_exist_ok=True)

    def copy(self, folder: Path) -> "FaultNight":
        """A lake with the same objects and the same record, and a machine for the driver that has not seen it."""
        name = f"record-{folder.name}"
        template = self._database["DAGSTER_PG_DB"]
        self._parts.postgres.sql(f'CREATE DATABASE "{name}" TEMPLATE "{template}"', database="postgres")
        made = FaultNight(self.inputs, folder, self._parts, self._database | {"DAGSTER_PG_DB": name})
        source, target = (Bucket(origin_of(one.url, one.machine("copy"))) for one in (self, made))
        for one in source.listed(""):
            stored = source.get(one.key)
            assert stored is not None
            target.upload(one.key, stored.data)
        return made

    def unfinished(self) -> int:
        """How many runs the record believes to be running."""
        query = "SELECT count(*) FROM runs WHERE status IN ('NOT_STARTED', 'STARTING', 'STARTED', 'CANCELING')"
        return int(self._parts.postgres.sql(query, database=self._database["DAGSTER_PG_DB"])[0][0])


@dataclass
class Parts:
    """What a night is made of, one of each for all moments."""

    cluster: Cluster
    store: Store
    to_store: Line
    postgres: Postgres
    to_postgres: Line
    classes: Path  # from which JVMs start


@dataclass
class Moment:
    """A disturbed run: what a fault works on. `undo` holds what makes the parts whole again after the run."""

    parts: Parts
    night: FaultNight
    process: subprocess.Popen[str]
    draw: random.Random
    undo: list[Callable[[], object]] = field(default_factory=list)
    other_wrote: bool = False

    def kill_worker(self) -> None:
        worker = self.draw.randrange(2)
        self.parts.cluster.kill_worker(worker)
        self.undo.append(lambda: self.parts.cluster.replace_worker(worker))

    def silence_worker(self) -> None:
        worker = self.draw.randrange(2)
        self.parts.cluster.pause_worker(worker)
        self.undo.append(lambda: self.parts.cluster.replace_worker(worker))

    def kill_driver(self) -> None:
        """The process alone, whose JVM is left to itself, or everything that it started."""
        if self.draw.random() < 0.5:
            self.process.kill()
        else:
            self._signal(signal.SIGKILL)

    def refuse(self) -> None:
        """The store answers 503 for some seconds."""
        self.parts.store.fault = lambda method, path: "error"
        time.sleep(OUTAGE_SECONDS)
        self.parts.store.fault = lambda method, path: None

    def refuse_until_the_end(self) -> None:
        self.parts.store.fault = lambda method, path: "error"
        self.undo.append(self._mend_store)

    def slow_store(self) -> None:
        """Each request takes .3 s longer, and each piece of data 10 ms."""
        self.parts.store.fault = lambda method, path: "slow"
        self.parts.to_store.state = "slow"
        self.undo.append(self._mend_store)

    def cut_store(self) -> None:
        """The network to the store is gone for some seconds."""
        self._cut(self.parts.to_store, OUTAGE_SECONDS)

    def outlive_lease(self) -> None:
        """The driver stands still until its lease has run out, and nobody takes it."""
        self._signal(signal.SIGSTOP)
        time.sleep(LEASE_SECONDS + 3)
        self._signal(signal.SIGCONT)

    def lose_lease(self) -> None:
        """The same, and a writer on another machine takes the lease and publishes."""
        self._signal(signal.SIGSTOP)
        lake, end = self.night.writer("other"), time.monotonic() + LEASE_SECONDS + 10
        while not self.other_wrote:
            try:
                with lake.lock():
                    lake.replace_json(lake.kept / "other.json", {"by": "another writer"})
                self.other_wrote = True
            except LakeHeld:
                assert time.monotonic() < end
                time.sleep(0.3)
        self._signal(signal.SIGCONT)

    def kill_postgres(self) -> None:
        self.parts.postgres.kill()
        time.sleep(self.draw.uniform(0.3, 3.0))
        self.parts.postgres.start()

    def cut_postgres(self) -> None:
        """The network to Postgres is gone for two seconds."""
        self._cut(self.parts.to_postgres, 2.0)

    def slow_postgres(self) -> None:
        self.parts.to_postgres.state = "slow"
        self.undo.append(lambda: setattr(self.parts.to_postgres, "state", "whole"))

    def kill_worker_and_postgres(self) -> None:
        self.kill_worker()
        self.kill_postgres()

    def kill_driver_while_the_store_refuses(self) -> None:
        self.refuse_until_the_end()
        time.sleep(1.0)
        self.kill_driver()

    def _mend_store(self) -> None:
        self.parts.store.fault = lambda method, path: None
        self.parts.to_store.state = "whole"

    def _cut(self, network: Line, seconds: float) -> None:
        network.cut()
        time.sleep(seconds)
        network.state = "whole"

    def _signal(self, number: signal.Signals) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.process.pid, number)

    def end(self) -> str:
        """Waits for the run, makes everything whole again, and returns what the run said."""
        try:
            return self.process.communicate(timeout=300)[1]
        finally:
            self._signal(signal.SIGKILL)
            for undo in self.undo:
                undo()


FAULTS: dict[str, Callable[[Moment], None]] = {
    "a worker killed": Moment.kill_worker,
    "the driver killed": Moment.kill_driver,
    "the store answers 503 for a time": Moment.refuse,
    "the lease runs out, nobody takes it": Moment.outlive_lease,
    "the lease runs out, another writer takes it": Moment.lose_lease,
    "Postgres killed and started again": Moment.kill_postgres,
    "the network to Postgres cut": Moment.cut_postgres,
    "the network to the store cut": Moment.cut_store,
    "the store slow": Moment.slow_store,
    "a worker silent": Moment.silence_worker,
    "the store answers 503 until the end": Moment.refuse_until_the_end,
    "the network to Postgres slow": Moment.slow_postgres,
    "a worker and Postgres killed": Moment.kill_worker_and_postgres,
    "the driver killed while the store answers 503": Moment.kill_driver_while_the_store_refuses,
}
GO_THROUGH = {  # these cost the run nothing
    "a worker killed",
    "a worker silent",
    "the store answers 503 for a time",
    "the network to the store cut",
    "the store slow",
    "the lease runs out, nobody takes it",
    "the network to Postgres slow",
}


def write_inputs(inputs: Path, cases: int) -> None:
    """A source of so many cases beside another one, and a contract of a few intakes. Another number changes both."""
    write_history(inputs / "history", cases, "orders")
    write_history(inputs / "history", OTHER_CASES, "returns")
    contract = inputs / "intakes" / "Acme" / "Retail"
    for number in range(INTAKES):
        for role, text in (
            ("input", f"An order of {number + 2} chairs."),
            ("process", "Check stock, ship the goods, send the invoice."),
        ):
            (contract / f"order-{number}" / role).mkdir(parents=True, exist_ok=True)
            (contract / f"order-{number}" / role / "text.txt").write_text(text)
    (contract / "contract.toml").write_text(f'industry = "retail"\ngain_usd = {cases}\n')


@dataclass(frozen=True)
class Campaign:
    """The states from which runs are disturbed, the bytes that they must leave, and how long they take undisturbed."""

    parts: Parts
    before: dict[str, FaultNight]
    truth: Night
    seconds: dict[str, float]


@pytest.fixture(scope="module")
def parts(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Parts]:
    with contextlib.ExitStack() as stack:
        stack.enter_context(bare_executors())
        store = stack.enter_context(store_of_nights())
        to_store = stack.enter_context(line(int(urlsplit(store.endpoint).port or 0)))
        postgres = stack.enter_context(postgres_server())
        to_postgres = stack.enter_context(line(postgres.port))
        # a process that may not keep byte code compiles some 300 modules anew, which is a fifth of a run
        stack.enter_context(pytest.MonkeyPatch.context()).delenv("PYTHONDONTWRITEBYTECODE", raising=False)
        classes = class_archive(tmp_path_factory.mktemp("classes"), JAVA_OPTIONS)
        made = stack.enter_context(cluster(tmp_path_factory.mktemp("cluster")))
        yield Parts(made, store, to_store, postgres, to_postgres, classes)


@pytest.fixture(scope="module")
def campaign(parts: Parts, tmp_path_factory: pytest.TempPathFactory) -> Campaign:
    """One machine with a folder says what is true. The cluster makes the states, and must make the same bytes."""
    root = tmp_path_factory.mktemp("campaign")
    write_inputs(root, CASES[0])
    truth = Night(root, root / "lake")
    truth.program = FaultNight.program  # as many intakes a file
    for command in ("rebuild", "generate"):
        truth.opus(command, "local[2]", **IN_PROCESS)
        shown(f"{command} on one machine", truth.seconds)
    first = FaultNight(root, root / "first", parts, parts.postgres.database("record-first"))
    first.with_lake(truth.lake.root)
    write_inputs(root, CASES[1])
    second, seconds = first.copy(root / "second"), {}
    for command in ("rebuild", "generate"):
        night = second if command == "rebuild" else second.copy(root / "third")
        truth.opus(command, "local[2]", **IN_PROCESS)
        night.opus(command, parts.cluster.master)
        seconds[command] = night.seconds
        shown(f"{command} on the cluster, undisturbed", night.seconds)
        assert_the_truth(night, truth, command)
    return Campaign(parts, {"rebuild": first, "generate": second}, truth, seconds)


def shown(what: str, seconds: float) -> None:
    print(f"{what}: {seconds:.1f} s", flush=True)


def current_results(lake: Lake) -> dict[str, bytes]:
    """The files of the current result of each contract, but those of generation/runs, which has times."""
    names = [f"result={result['result']}" for result in lake.results()]
    files = [file for name in names for file in lake.root.rglob(f"{name}/*.parquet")]
    found = {file.relative_to(lake.root).as_posix(): file.read_bytes() for file in files}
    return {name: data for name, data in found.items() if not name.startswith("generation/runs/")}


def assert_the_truth(night: FaultNight, truth: Night, command: str) -> None:
    """The bytes are those of one machine, and no case and no intake that was written is missing."""
    assert night.snapshot() == truth.snapshot()
    assert len(night.snapshot()) > 10
    lake = night.lake
    cases = connect(lake).sql("SELECT count(DISTINCT (source, implementation_id)) FROM wkg_cases").fetchall()
    assert cases == [(CASES[1] + OTHER_CASES,)]
    if command == "generate":
        assert current_results(lake) == current_results(truth.lake)
        assert len(current_results(lake)) > INTAKES // 2
        intakes = connect(lake).sql("SELECT DISTINCT folder, status FROM generation_intakes ORDER BY 1").fetchall()
        assert intakes == [(f"order-{number}", "generated") for number in range(INTAKES)]


class Phases:
    """What the seconds of a moment were spent on."""

    def __init__(self) -> None:
        self._seconds: dict[str, float] = {}
        self._since = time.monotonic()

    def end(self, name: str) -> None:
        """Ends a phase and begins the next one."""
        now = time.monotonic()
        self._seconds[name], self._since = now - self._since, now

    def __str__(self) -> str:
        return ", ".join(f"{name} {seconds:.1f} s" for name, seconds in self._seconds.items())


def state_of(lake: Lake) -> tuple[str | None, list[str]]:
    return lake.current_snapshot(), [result["result"] for result in lake.results()]


@pytest.mark.parametrize("number", range(FIRST, FIRST + MOMENTS))
def test_one_thing_is_taken_away_at_a_random_moment(campaign: Campaign, tmp_path: Path, number: int) -> None:
    kinds = list(FAULTS)
    fault, command = kinds[number // 2 % len(kinds)], ("rebuild", "generate")[number % 2]
    draw = random.Random(f"everything {number}")
    after = draw.uniform(0.01, 0.97) * campaign.seconds[command]
    at = f"moment {number}: {command}, {fault}, after {after:.1f} of {campaign.seconds[command]:.1f} s"
    phases = Phases()
    night = campaign.before[command].copy(tmp_path / f"moment-{number}")
    before = state_of(night.lake)
    phases.end("copied")

    began = time.monotonic()
    moment = Moment(campaign.parts, night, night.start(command, campaign.parts.cluster.master), draw)
    try:
        time.sleep(after)
        was_late = moment.process.poll() is not None
        FAULTS[fault](moment)
    finally:
        said = moment.end()
    went_through = moment.process.returncode == 0
    if went_through:  # the machine may have had less else to do than when it was measured
        campaign.seconds[command] = min(campaign.seconds[command], time.monotonic() - began)
    phases.end("disturbed run")
    last = said.strip().splitlines()[-1:] or [""]
    assert "Traceback" not in said, f"{at}; {said[-3000:]}"
    assert went_through or fault not in GO_THROUGH, f"{at}; {said[-3000:]}"

    assert complaints(night.lake) == [], at
    seen = state_of(night.lake)
    phases.end("looked at")
    night.opus(command, campaign.parts.cluster.master)
    phases.end("next run")
    now = state_of(night.lake)
    assert seen in (before, now), at
    assert seen == now or not went_through, at
    assert_the_truth(night, campaign.truth, command)
    assert night.unfinished() == 0, at
    assert complaints(night.lake) + leftovers(night.writer("driver")) == [], at
    if moment.other_wrote:
        assert (night.lake.kept / "other.json").is_file(), at
    ended = "went through" if went_through else f"ended {moment.process.returncode}: {last[0][:200]}"
    ended = f"had ended before; {ended}" if was_late else ended
    phases.end("compared")
    print(f"{at}: {ended}; {'published' if seen == now else 'not published'}; {phases}", flush=True)
    shutil.rmtree(tmp_path)
