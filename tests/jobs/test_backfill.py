"""`opus generate` over the contracts of a client: what is current is skipped, what is stale or failed is done again,
and no more.
"""

import shutil
import warnings
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any

import dagster as dg
import pytest

from jobs.nightly_contracts import nightly_contracts
from jobs.stages import PARTITION, requests
from opus_pipelines.cli.main import main
from opus_pipelines.core.schemas import DATASETS, RUNS
from opus_pipelines.core.settings import Paths, Settings
from opus_pipelines.generation.results.ids import result_id
from opus_pipelines.intakes.intake import discover
from opus_pipelines.lake.layout import Lake
from opus_pipelines.reporting.status import contracts
from opus_pipelines.reporting.views import connect
from tests.credentials import CREDENTIALS, found_below, secrets
from tests.credentials import SETTINGS as ALERTS
from tests.distributions import installed

pytestmark = pytest.mark.model

QUIET = {"loggers": {"console": {"config": {"log_level": "CRITICAL"}}}}
CLIENT = "Brightwater Retail"
EXPENSES, INVOICES = "Employee Expenses", "Supplier Invoices"


MORTAL = """
import os, signal
from pathlib import Path
from opus_pipelines.intakes.documents.document import DocumentText


def read(document):
    if Path(document.content().decode()).exists():
        os.kill(os.getpid(), signal.SIGKILL)
    return DocumentText("Check the amount.", ())
"""
Fatal = Callable[[Path], AbstractContextManager[None]]


@pytest.fixture(scope="module")
def fatal(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Fatal]:
    """Puts a document into a folder whose reader ends its own process, until the context ends."""
    entries = "[opus_pipelines.document_readers]\nmortal = mortal:read\n"
    with installed(tmp_path_factory.mktemp("site"), "mortal", entries, MORTAL) as site:

        @contextmanager
        def of(folder: Path) -> Iterator[None]:
            flag = site / f"fatal-{folder.parent.name}"
            (folder / "scan.mortal").write_text(str(flag))
            flag.touch()
            yield
            flag.unlink()

        yield of


class Place:
    """A lake with the sample's snapshot, the folders of two clients, and `opus` as it is typed."""

    def __init__(self, root: Path, mined: Lake, intakes: Path) -> None:
        self.root, self.lake, self.intakes = root, Lake(root / "lake"), root / "intakes"
        shutil.copytree(
            mined.root, self.lake.root, ignore=shutil.ignore_patterns("generation", "workflows", "reports", ".lock")
        )
        for client in ("brightwater-retail", "meridian-clinics"):
            shutil.copytree(intakes / client, self.intakes / client)
        for contract in self.intakes.glob("*/*"):
            for intake in sorted(contract.glob("*/intake.toml"))[1:]:  # one intake a contract is enough
                shutil.rmtree(intake.parent)

    def opus(self, *arguments: str) -> int:
        return main(["--lake", str(self.lake.root), *arguments])

    def generate(self, *arguments: str) -> int:
        return self.opus("generate", "--intakes", str(self.intakes), *arguments)

    def settings(self) -> Settings:
        return Settings(paths=Paths(lake=self.lake.root, history=self.root / "history", intakes=self.intakes))

    def next_snapshot(self) -> None:
        """The same snapshot under another name, as a night with new history would leave it."""
        old = self.lake.current_snapshot() or ""
        shutil.copytree(self.lake.snapshot_folder(old), self.lake.snapshot_folder("w2"))
        pointer = {"snapshot": "w2", "published_at": "2026-02-01T00:00:00+00:00"}
        self.lake.replace_json(self.lake.root / "wkg" / "current.json", pointer)

    def stale(self) -> dict[str, bool]:
        """What `opus status` says of each contract."""
        return dict(contracts(connect(self.lake)).select("contract, stale").fetchall())

    def result_id(self, contract: str) -> str:
        """The id that the first attempt has."""
        (found,) = [c for c in discover(self.intakes) if c.contract == contract]
        return result_id(found, self.lake.current_snapshot() or "", Settings())

    def results(self) -> dict[str, str]:
        """Result by contract."""
        return {pointer["contract"]: pointer["result"] for pointer in self.lake.results()}

    def query(self, sql: str) -> list[tuple[Any, ...]]:
        return connect(self.lake).sql(sql).fetchall()

    def bytes_of(self, contract: str) -> dict[str, list[bytes]]:
        """The files of every dataset of a contract's current result but generation/runs."""
        where = {"client_key": CLIENT, "contract_key": contract, "result": self.results()[contract]}
        folders = {
            d.name: self.lake.folder(d, **where)
            for d in DATASETS.values()
            if "result" in d.partitions and d is not RUNS
        }
        return {name: [file.read_bytes() for file in sorted(folder.iterdir())] for name, folder in folders.items()}


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory, sample_lake: Lake, sample_files: Any) -> Iterator[Place]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("DAGSTER_HOME", "")
        root = tmp_path_factory.mktemp("backfill")
        patch.chdir(root)
        for name, value in {**CREDENTIALS, **ALERTS}.items():
            patch.setenv(name, value)
        made = Place(root, sample_lake, sample_files.intakes_folder)
        assert made.generate("--client", CLIENT) == 0
        yield made


def test_one_client_in_a_run_each_contract_and_no_other(place: Place) -> None:
    assert set(place.results()) == {EXPENSES, INVOICES}
    assert place.query("SELECT count(DISTINCT run_id) FROM generation_runs") == [(2,)]
    assert place.query("SELECT DISTINCT status FROM generation_intakes") == [("generated",)]


def test_what_is_current_is_skipped_and_no_run_begins(place: Place, capsys: pytest.CaptureFixture[str]) -> None:
    before = place.lake.results()
    assert place.generate("--client", CLIENT) == 0
    assert f"up to date, skipped: {CLIENT} / {EXPENSES}, {CLIENT} / {INVOICES}" in capsys.readouterr().err
    assert place.lake.results() == before


def test_the_same_inputs_give_the_same_bytes(place: Place) -> None:
    before, result = place.bytes_of(EXPENSES), place.results()
    where = {"client_key": CLIENT, "contract_key": EXPENSES}
    place.lake.pointer_path(CLIENT, EXPENSES).unlink()
    for dataset in (d for d in DATASETS.values() if "result" in d.partitions):
        shutil.rmtree(place.lake.folder(dataset, **where))
    assert place.generate("--client", CLIENT) == 0
    assert place.results() == result
    assert set(before) == {name for name, d in DATASETS.items() if "result" in d.partitions} - {RUNS.name}
    assert place.bytes_of(EXPENSES) == before


def test_a_changed_contract_is_done_again_and_its_neighbour_is_not(place: Place) -> None:
    before = place.results()
    settings = place.intakes / "brightwater-retail/supplier-invoices/contract.toml"
    settings.write_text(settings.read_text().replace("gain_usd", "gain_usd = 41.0 #", 1))
    assert place.generate("--client", CLIENT) == 0
    after = place.results()
    assert (after[EXPENSES], after[INVOICES] == before[INVOICES]) == (before[EXPENSES], False)


def test_a_contract_that_fails_leaves_the_others_done_and_its_last_result_in_place(
    place: Place, capsys: pytest.CaptureFixture[str], fatal: Fatal
) -> None:
    before = place.results()
    for contract in ("employee-expenses", "supplier-invoices"):
        (place.intakes / "brightwater-retail" / contract / "note.txt").write_text("stale now")
    with fatal(place.intakes / "brightwater-retail" / "employee-expenses" / "documents"):
        assert place.generate("--client", CLIENT) == 1
    assert "signal 9" in capsys.readouterr().err
    after = place.results()
    assert (after[EXPENSES], after[INVOICES] == before[INVOICES]) == (before[EXPENSES], False)
    assert place.query(f"SELECT count(*) > 0 FROM workflows_optimized WHERE contract = '{EXPENSES}'") == [(True,)]

    assert place.generate("--client", CLIENT) == 0
    said = capsys.readouterr().err
    assert f"up to date, skipped: {CLIENT} / {INVOICES}\n" in said
    assert f"{EXPENSES}: intake 1 of" in said
    assert f"{INVOICES}: intake" not in said
    assert place.results()[INVOICES] == after[INVOICES]
    assert place.results()[EXPENSES] != after[EXPENSES]


@pytest.mark.nightly
def test_an_intake_that_failed_for_a_passing_reason_is_tried_again_when_asked(
    place: Place, capsys: pytest.CaptureFixture[str], fatal: Fatal
) -> None:
    home = place.intakes / "brightwater-retail/employee-expenses"
    shutil.copytree(next(iter(sorted(home.glob("*/intake.toml")))).parent, home / "large")
    only = ("--client", CLIENT, "--contract", EXPENSES)
    with fatal(home / "large" / "input"):
        assert place.generate(*only) == 1
        failed = place.results()[EXPENSES]
        assert "signal 9" in capsys.readouterr().err
        assert place.generate(*only, "--retry-failed") == 1
    again = place.results()[EXPENSES]
    assert len({failed, again, place.result_id(EXPENSES)}) == 2, "the second attempt has an id of its own"

    assert place.generate(*only) == 1
    said = capsys.readouterr().err
    assert f"still failed: {CLIENT}/{EXPENSES}/large: " in said
    assert "`opus generate --retry-failed`" in said
    assert place.results()[EXPENSES] == again

    neighbour = place.results()[INVOICES]
    assert place.generate("--client", CLIENT, "--retry-failed") == 0
    assert f"up to date, skipped: {CLIENT} / {INVOICES}\n" in capsys.readouterr().err
    assert len({failed, again, place.results()[EXPENSES]}) == 3
    assert place.query("SELECT DISTINCT status FROM generation_intakes") == [("generated",)]
    assert place.results()[INVOICES] == neighbour
    assert place.generate(*only, "--retry-failed") == 0
    assert "up to date, skipped" in capsys.readouterr().err


def test_a_contract_without_intakes_says_so_and_fails_nothing(place: Place, capsys: pytest.CaptureFixture[str]) -> None:
    (place.intakes / "Empty/Nothing/documents").mkdir(parents=True)
    assert place.generate("--client", "Empty") == 0
    assert f"Empty / Nothing: {place.intakes / 'Empty/Nothing'} has no intakes" in capsys.readouterr().err
    assert place.query(
        "SELECT intakes, failed FROM generation_intakes RIGHT JOIN (SELECT 0 AS intakes, 0 AS failed) ON false"
    ) == [(0, 0)]
    assert "Nothing" in place.results()
    assert place.generate("--client", "Empty") == 0
    assert "up to date, skipped: Empty / Nothing" in capsys.readouterr().err
    assert place.opus("status") == 0
    assert [line.split()[:2] for line in capsys.readouterr().out.splitlines() if line.strip().startswith("Empty")] == [
        ["Empty", "Nothing"]
    ]


def test_a_new_snapshot_makes_results_stale_and_the_night_does_those_that_ask_for_it(
    place: Place, capsys: pytest.CaptureFixture[str]
) -> None:
    """A backfill in a single run does both, as Dagster would start it: by its range tags alone."""
    for contract in ("employee-expenses", "supplier-invoices"):
        settings = place.intakes / "brightwater-retail" / contract / "contract.toml"
        settings.write_text('regenerate = "nightly"\n' + settings.read_text())
    assert place.generate("--client", CLIENT) == 0
    assert place.stale() == {EXPENSES: False, INVOICES: False, "Nothing": False}
    place.next_snapshot()
    assert place.stale() == {EXPENSES: True, INVOICES: True, "Nothing": True}
    capsys.readouterr()

    settings = place.settings()
    with dg.DagsterInstance.ephemeral() as instance, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        keys = ["Brightwater_20Retail__Employee_20Expenses", "Brightwater_20Retail__Supplier_20Invoices"]
        runs, new = requests(["Zed__gone"], nightly_contracts(settings))
        instance.add_dynamic_partitions("contract", ["Zed__gone", *new[0].partition_keys])
        assert [run.tags[PARTITION] for run in runs] == keys
        from opus_pipelines.definitions import build_defs

        job = build_defs(settings).resolve_job_def("generate")
        span = {"dagster/asset_partition_range_start": keys[0], "dagster/asset_partition_range_end": keys[1]}
        assert job.execute_in_process(instance=instance, tags=span, run_config=QUIET).success
        assert instance.get_materialized_partitions(dg.AssetKey(["workflows", "current"])) == set(keys)
    assert place.stale() == {EXPENSES: False, INVOICES: False, "Nothing": True}
    assert nightly_contracts(settings) == []


@pytest.mark.nightly
def test_no_credential_is_left_in_what_the_runs_wrote_and_said(
    place: Place, capsys: pytest.CaptureFixture[str]
) -> None:
    """Lake, record of Dagster, logs and ops/runs, after every run above and one whose alerts cannot be sent."""
    note = place.intakes / "brightwater-retail" / "employee-expenses" / "note.txt"
    note.write_text("once more")
    assert place.generate("--client", CLIENT, "--contract", EXPENSES) == 0
    said = capsys.readouterr()
    assert said.err.count("was not sent") >= 2
    assert [secret for secret in secrets() if secret in said.err + said.out] == []
    assert found_below(place.root) == []
    rows = place.query("SELECT status, contract_key FROM ops_runs WHERE job = 'generate' ORDER BY started_at")
    assert {status for status, _ in rows} == {"success", "failure"}
    assert rows[-1] == ("success", "Brightwater_20Retail__Employee_20Expenses")
