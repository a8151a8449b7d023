"""With the lake in an object store, a Spark cluster gives the same bytes as one machine with the lake in a folder."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cluster_night import Night, StoredNight, bare_executors, on_one_machine, store_of_nights
from tests.kill_points import complaints
from tests.object_store_server import SECRET, Server
from tests.spark_cluster import can_hide, cluster

pytestmark = pytest.mark.nightly


@pytest.fixture(scope="module", autouse=True)
def bare() -> Iterator[None]:
    with bare_executors():
        yield


@pytest.fixture(scope="module")
def store() -> Iterator[Server]:
    with store_of_nights() as server:
        yield server


@pytest.fixture(scope="module")
def local(tmp_path_factory: pytest.TempPathFactory) -> Night:
    """A rebuild and a generation on this machine, with the lake in a folder."""
    return on_one_machine(tmp_path_factory.mktemp("one-machine"), many=True)


@pytest.mark.parametrize("shared", [True, False], ids=["shared working folder", "nothing shared"])
def test_the_same_bytes(local: Night, store: Server, tmp_path: Path, shared: bool) -> None:
    """Executors find the working folder of the driver's machine, or see neither it nor the inputs nor the driver's
    temporary files. No file of theirs has a credential of the store.
    """
    if not shared and not can_hide():
        pytest.skip("a process may not have its own view of the disk here")
    night = StoredNight.beside(local, tmp_path / "machines", store)
    drivers, home = tmp_path / "of the driver", tmp_path / "cluster"
    drivers.mkdir()
    home.mkdir()
    hidden = [] if shared else [night.inputs, night.working_folder, drivers]
    more = {} if shared else {"OPUS_SPARK_SHARED_FILES": "false", "TMPDIR": str(drivers)}
    with cluster(home, hidden=hidden) as made:
        night.opus("rebuild", made.master, **more)
        rebuild_seconds = night.seconds
        night.opus("generate", made.master, **more)
    print(f"rebuild {rebuild_seconds:.0f} s, generate {night.seconds:.0f} s", flush=True)
    assert night.snapshot() == local.snapshot()
    assert len(night.snapshot()) > 10
    assert night.results() == local.results()
    assert len(night.results()["generation/intakes"]) == 4  # a file for each chunk
    assert complaints(night.lake) == []
    files = [path for path in home.rglob("*") if path.is_file() and "work-" in str(path.relative_to(home))]
    assert len(files) > 10
    assert not any(SECRET.encode() in path.read_bytes() for path in files)
