"""Commands with `--lake s3://…`: they say what they say of a lake in a folder, and leave no credential anywhere."""

import gzip
import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import duckdb
import pytest
from obstore.fsspec import FsspecStore

from opus_pipelines.cli.main import main
from opus_pipelines.lake.layout import Lake
from tests.lake.conftest import Machine, Place
from tests.lake.object_store.test_publication import bucket_of, contents
from tests.object_store_server import KEY_ID, SECRET
from tests.published_lake import CONTRACTS, SNAPSHOT, publish

pytestmark = pytest.mark.long

Command = Callable[..., int]


@pytest.fixture
def machine(place: Place, monkeypatch: pytest.MonkeyPatch) -> Machine:
    monkeypatch.setenv("OPUS_OBJECT_STORE_ENDPOINT", place.server.endpoint)
    monkeypatch.setenv("OPUS_OBJECT_STORE_RETRY_SECONDS", "1")
    return place.machine("writer")


@pytest.fixture
def opus(machine: Machine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Command:
    """Runs a command on a machine of its own, or on the one that is named."""
    publish(machine.lake())

    def run(*arguments: str, on: str = "commands") -> int:
        monkeypatch.setenv("OPUS_OBJECT_STORE_WORKING_FOLDER", str(tmp_path / on))
        return main(["--lake", machine.url, *arguments])

    return run


def test_reading_commands_answer_from_the_store(opus: Command, capsys: pytest.CaptureFixture[str]) -> None:
    assert opus("query", "SELECT snapshot FROM current_snapshot", "--format", "json") == 0
    assert json.loads(capsys.readouterr().out) == [{"snapshot": SNAPSHOT}]
    assert opus("status", "--format", "json") == 0
    rows = json.loads(capsys.readouterr().out)
    assert [(row["client"], row["contract"]) for row in rows] == list(CONTRACTS)
    assert opus("verify") == 0
    assert "none damaged" in capsys.readouterr().err


def test_a_reader_needs_no_lease_and_no_write(opus: Command, place: Place) -> None:
    before = len(place.server.requests)
    assert opus("query", "SELECT 1") == 0
    assert {method for method, _ in place.server.requests[before:]} == {"GET"}


def test_a_client_that_is_forgotten_is_in_no_object_and_no_folder(
    opus: Command, machine: Machine, tmp_path: Path
) -> None:
    client = "Nord/wind 50%"
    assert opus("query", "SELECT 1") == 0  # a tree for readers that has the client
    arguments = ("--history", str(tmp_path / "none"), "--intakes", str(tmp_path / "none"), "--yes")
    assert opus("forget", "--client", client, *arguments) == 0
    bucket = bucket_of(machine)
    objects = {one.key: (bucket.get(one.key) or pytest.fail(one.key)).data for one in bucket.listed("")}
    assert len(objects) > 30
    names = ("Nord/wind", "Nord_2fwind")
    texts = {key: gzip.decompress(data) if key.endswith(".gz") else data for key, data in objects.items()}
    assert [key for key, text in texts.items() if any(name in key or name.encode() in text for name in names)] == []
    left = [path for path in (tmp_path / "commands").rglob("*") if "Nord_2fwind" in path.name]
    assert left == []


def test_a_store_that_is_away_is_one_line(opus: Command, place: Place, capsys: pytest.CaptureFixture[str]) -> None:
    place.server.fault = lambda method, path: "error"
    assert opus("status") == 1
    said = capsys.readouterr().err
    assert len(said.splitlines()) == 1
    assert "s3://" in said


def test_an_address_that_is_none_is_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--lake", "s3://NO", "status"]) == 1
    assert "s3://bucket/prefix" in capsys.readouterr().err


def test_no_credential_is_in_an_object_a_file_or_an_answer(
    opus: Command, machine: Machine, place: Place, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    opus("status")
    opus("verify")
    opus("forget", "--client", "Acme", "--history", str(tmp_path / "none"), "--yes")
    place.server.fault = lambda method, path: "error"
    opus("best")
    place.server.fault = lambda method, path: None
    said = "".join(capsys.readouterr())
    bucket = bucket_of(machine)
    objects = [(bucket.get(one.key) or pytest.fail(one.key)).data for one in bucket.listed("")]
    files = [path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()]
    assert len(objects) > 10
    assert len(files) > 100
    for secret in (KEY_ID, SECRET):
        assert secret not in said
        assert not any(secret.encode() in data for data in (*objects, *files))


def test_what_a_command_writes_is_on_the_next_machine(opus: Command, machine: Machine) -> None:
    assert opus("forget", "--client", "Acme", "--history", "none", "--yes") == 0
    reader: Lake = machine.reader()
    assert reader.results() == []  # the other one rested on its cases
    assert contents(reader) == contents(machine.lake())


def test_analysts_read_the_objects_by_duckdb(opus: Command, place: Place, capsys: pytest.CaptureFixture[str]) -> None:
    assert opus("query", "--views") == 0
    sql = capsys.readouterr().out
    with duckdb.connect() as database:
        store = FsspecStore("s3", config={"endpoint": place.server.endpoint}, client_options={"allow_http": True})
        database.register_filesystem(store)
        database.execute(sql)
        assert database.sql("SELECT task_id FROM wkg_tasks ORDER BY 1").fetchall() != []
        clients = database.sql("SELECT DISTINCT client FROM generation_runs ORDER BY 1").fetchall()
    assert clients == [(client,) for client, _ in CONTRACTS]


def test_damage_on_the_machine_and_in_the_store_is_named_and_mended_from_each_other(
    opus: Command, machine: Machine, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert opus("verify") == 0
    bucket, path = bucket_of(machine), f"wkg/{SNAPSHOT}/tasks/part-00000.parquet"
    (work,) = (tmp_path / "commands").glob("*/work")
    sound = (work / path).read_bytes()
    (work / path).write_bytes(sound[:-1])
    lost = next(one.key for one in bucket.listed("files") if one.key.endswith("-lambda.json"))
    bucket.delete([lost])
    capsys.readouterr()
    assert opus("verify") == 1
    said = "".join(capsys.readouterr())
    assert f"bytes instead of {len(sound):,}" in said
    assert "is missing in the store" in said
    assert opus("verify", "--repair") == 0
    assert (work / path).read_bytes() == sound
    assert contents(place_of_another(machine, tmp_path).reader()) == contents(machine.lake())


def place_of_another(machine: Machine, folder: Path) -> Machine:
    """A machine that has fetched nothing yet."""
    machine.settings = machine.settings.model_copy(update={"working_folder": folder / "another"})
    return machine


def test_a_lake_in_a_folder_loads_nothing_of_the_object_store() -> None:
    code = (
        "import sys, opus_pipelines.cli.read, opus_pipelines.lake.layout\n"
        "print(sorted(name for name in sys.modules if 'obstore' in name or '.object_store.' in name))"
    )
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert done.stdout.strip() == "['opus_pipelines.lake.object_store.folders']"
