"""What is published in an object store is seen whole or not at all, by every machine."""

from pathlib import Path

import pytest

from opus_pipelines.core.errors import LakeError
from opus_pipelines.lake.layout import Lake
from opus_pipelines.lake.object_store.bucket import Bucket
from opus_pipelines.lake.object_store.commits import read_files, read_head
from opus_pipelines.lake.object_store.files import scan
from opus_pipelines.lake.object_store.folders import origin_in, origin_of
from opus_pipelines.wkg.upkeep.verify import verify
from tests.lake.conftest import Machine, Place
from tests.published_lake import SNAPSHOT, publish


def contents(lake: Lake) -> dict[str, bytes]:
    return {path: (lake.root / path).read_bytes() for path in scan(lake.root)}


def bucket_of(machine: Machine) -> Bucket:
    origin = origin_in(machine.lake().root)
    assert origin is not None
    return Bucket(origin)


def put(lake: Lake, name: str, text: str) -> None:
    """Publishes a folder with one file."""
    with lake.staging() as staged:
        (staged / "new").mkdir()
        (staged / "new" / "x").write_text(text)
        lake.publish(staged / "new", lake.root / "wkg" / name)


def put_and_raise(lake: Lake, error: BaseException) -> None:
    with lake.lock():
        put(lake, "w1", "first")
        raise error


@pytest.mark.long
def test_a_lake_is_the_same_on_every_machine(place: Place) -> None:
    one, two = place.machine("one"), place.machine("two")
    publish(one.lake())
    reader = two.reader()
    assert contents(reader) == contents(one.lake()) == contents(two.lake())
    assert reader.required_snapshot() == SNAPSHOT
    found = verify(reader)
    assert found.files > 30
    assert found.damage == []


def test_a_reader_stays_with_its_commit_and_the_next_one_sees_the_new(place: Place) -> None:
    one, two = place.machine("one"), place.machine("two")
    with one.lake().lock():
        put(one.lake(), "w1", "first")
    before = two.reader()
    lake = one.lake()
    with lake.lock():
        put(lake, "w2", "second")
        lake.remove(lake.root / "wkg" / "w1")
        during = one.reader()
    after = two.reader()
    assert (before.root / "wkg/w1/x").read_text() == "first"
    assert sorted(p.name for p in (during.root / "wkg").iterdir()) == ["w1"]
    assert sorted(p.name for p in (after.root / "wkg").iterdir()) == ["w2"]


@pytest.mark.long
def test_only_what_changed_is_sent_and_fetched(place: Place) -> None:
    one, two = place.machine("one"), place.machine("two")
    publish(one.lake())
    two.reader()
    lake = one.lake()
    sent = len(place.server.requests)
    with lake.lock():
        put(lake, "w2", "second")
    writes = [path for method, path in place.server.requests[sent:] if method == "PUT" and "/files/" in path]
    assert len(writes) == 2  # the file and the list of its folder
    sent = len(place.server.requests)
    two.reader()
    reads = [path for method, path in place.server.requests[sent:] if method == "GET" and "/files/" in path]
    assert len(reads) == 2


@pytest.mark.long
def test_nothing_new_makes_no_commit(place: Place) -> None:
    machine = place.machine()
    publish(machine.lake())
    before = read_head(bucket_of(machine)).commit
    with machine.lake().lock():
        pass
    assert read_head(bucket_of(machine)).commit == before


@pytest.mark.long
def test_damage_of_a_working_folder_is_not_published(place: Place) -> None:
    machine = place.machine()
    publish(machine.lake())
    lake = machine.lake()
    before = contents(machine.reader())

    def change() -> None:
        with lake.lock():
            (lake.root / "wkg" / SNAPSHOT / "tasks" / "part-00000.parquet").write_bytes(b"not these")

    with pytest.raises(LakeError, match="other content than was published"):
        change()
    assert contents(place.machine("two").reader()) == before


@pytest.mark.long
def test_damage_in_the_store_is_named_and_not_read(place: Place) -> None:
    machine = place.machine()
    publish(machine.lake())
    bucket = bucket_of(machine)
    files = read_files(bucket, read_head(bucket)) or {}
    (key,) = (one.key for one in bucket.listed("files") if one.key.endswith("lake.json"))
    bucket.upload(key, b"x" * files["lake.json"].bytes)
    with pytest.raises(LakeError, match=r"lake.json of s3://.* is damaged in the store"):
        place.machine("two").reader()


def test_what_a_failed_run_had_published_is_published(place: Place) -> None:
    lake = place.machine().lake()
    with pytest.raises(ZeroDivisionError):
        put_and_raise(lake, ZeroDivisionError())
    assert (place.machine("two").reader().root / "wkg/w1/x").read_text() == "first"


def test_what_an_interrupted_run_had_published_is_taken_along_by_the_next(place: Place) -> None:
    lake = place.machine().lake()
    with pytest.raises(KeyboardInterrupt):
        put_and_raise(lake, KeyboardInterrupt())
    assert not (place.machine("two").reader().root / "wkg").exists()
    lake = place.machine().lake()
    with lake.lock():
        put(lake, "w2", "second")
    assert sorted(p.name for p in (place.machine("two").reader().root / "wkg").iterdir()) == ["w1", "w2"]


@pytest.mark.long
def test_files_of_any_name_and_any_size_arrive(place: Place) -> None:
    lake = place.machine().lake()
    names = {"a b%20é.txt": b"", "_20+&=#?.bin": bytes(range(256)) * 80_000, "ü/ß~.x": b"deep"}
    with lake.lock():
        for name, data in names.items():
            (lake.root / "reports" / name).parent.mkdir(parents=True, exist_ok=True)
            (lake.root / "reports" / name).write_bytes(data)
    tree = place.machine("two").reader().root / "reports"
    assert {name: (tree / name).read_bytes() for name in names} == names


def test_state_of_this_machine_stays_on_it(place: Place) -> None:
    lake = place.machine().lake()
    with lake.lock():
        for name in (".dagster/run.db", "mlflow/mlflow.db", ".staged/x", "views.sql"):
            (lake.root / name).parent.mkdir(exist_ok=True)
            (lake.root / name).write_text("here")
    assert sorted(p.name for p in place.machine("two").reader().root.iterdir()) == [
        ".dagster",
        ".object_store",
        "lake.json",
    ]


@pytest.mark.parametrize("address", ["s3://", "s3://B", "s3://bucket/a//b", "s3://bucket/../b", "s3://bu cket/a"])
def test_an_address_without_a_bucket_is_refused(place: Place, address: str) -> None:
    with pytest.raises(LakeError, match="is no address of a lake"):
        origin_of(address, place.machine().settings)


def test_a_path_has_lost_a_slash_of_the_address(place: Place) -> None:
    settings = place.machine().settings
    assert origin_of(Path("s3://bucket/a/b"), settings).url == "s3://bucket/a/b"
    assert origin_of("s3://bucket", settings).url == "s3://bucket"


@pytest.mark.long
def test_what_the_lake_no_longer_has_leaves_the_store_after_the_time_of_grace(place: Place) -> None:
    machine = place.machine(grace_hours=0)
    lake = machine.lake()
    for number in range(10):
        with lake.lock():
            put(lake, f"w{number}", str(number))
            if number:
                lake.remove(lake.root / "wkg" / f"w{number - 1}")
    bucket = bucket_of(machine)
    assert sorted(one.key.rpartition("-")[2] for one in bucket.listed("files")) == ["_files.json", "lake.json", "x"]
    assert len(list(bucket.listed("commits"))) == 1


def test_what_is_erased_leaves_the_store_at_once(place: Place) -> None:
    machine = place.machine(grace_hours=24)
    lake = machine.lake()
    with lake.lock():
        put(lake, "w1", "the client")
    machine.reader()
    with lake.lock(erase=True):
        lake.remove(lake.root / "wkg" / "w1")
    bucket = bucket_of(machine)
    assert [one.key.rpartition("-")[2] for one in bucket.listed("files")] == ["lake.json"]
    assert len(list(bucket.listed("commits"))) == 1
