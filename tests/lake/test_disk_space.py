"""Too little disk is found before the work; a disk that fills up in the middle leaves everything as it was, with a
sentence.
"""

import errno
import resource
import shutil
import subprocess
import sys
from collections import namedtuple
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from opus_pipelines.core.errors import LakeError
from opus_pipelines.core.schemas import IMPLEMENTATIONS, REJECTS
from opus_pipelines.core.settings import Disk, Paths, Settings
from opus_pipelines.generation.contracts import needed_for_contracts
from opus_pipelines.intakes.intake import discover
from opus_pipelines.lake import atomic_files
from opus_pipelines.lake.layout import Lake, read_json, read_table, table_of, write_json, write_table
from opus_pipelines.wkg.rebuild.steps import plan_within_disk_space

Usage = namedtuple("Usage", "total used free")


@pytest.fixture
def free(monkeypatch: pytest.MonkeyPatch) -> Callable[[int], None]:
    """Sets what the file system says is free, in bytes."""
    return lambda size: monkeypatch.setattr(shutil, "disk_usage", lambda _: Usage(10**12, 0, size))


def test_what_is_needed_what_is_free_and_where(tmp_path: Path, free: Callable[[int], None]) -> None:
    free(299_000_000)
    atomic_files.require_free_space(tmp_path / "lake", 99_000_000, 200, "this rebuild")
    free(298_000_000)
    with pytest.raises(LakeError) as found:
        atomic_files.require_free_space(tmp_path / "lake", 99_000_000, 200, "this rebuild")
    said = str(found.value)
    assert said.startswith("this rebuild needs about 99 MB")
    assert all(part in said for part in ("200 MB", "[disk] reserve_mb", f"{tmp_path}/lake has 298 MB", "[retention]"))


def test_a_rebuild_needs_what_changed_and_room_for_a_snapshot(tmp_path: Path, free: Callable[[int], None]) -> None:
    lake = Lake(tmp_path / "lake")
    for source, name, size in (("a", "log.csv", 1_000_000), ("b", "log.csv.gz", 1_000_000)):
        (tmp_path / "history" / source).mkdir(parents=True)
        (tmp_path / "history" / source / name).write_bytes(b"x" * size)
    (lake.root / "wkg/w1").mkdir(parents=True)
    (lake.root / "wkg/w1/tables").write_bytes(b"x" * 3_000_000)
    write_json(lake.root / "wkg/current.json", {"snapshot": "w1"})
    settings = Settings(paths=Paths(lake=lake.root, history=tmp_path / "history"), disk=Disk(reserve_mb=1))
    free(10_000_000)
    plans = plan_within_disk_space(lake, lake, settings)
    free(9_999_999)
    with pytest.raises(LakeError, match="this rebuild needs about 9 MB"):
        plan_within_disk_space(lake, lake, settings)
    gzipped = plans[1]
    write_table(
        IMPLEMENTATIONS,
        table_of(IMPLEMENTATIONS, []),
        lake.folder(IMPLEMENTATIONS, source_key="b", content=gzipped.content),
    )
    free(6_000_000)
    assert [plan.name for plan in plan_within_disk_space(lake, lake, settings)] == ["a", "b"]


def test_a_generation_needs_room_for_its_intakes(tmp_path: Path) -> None:
    for intake in ("one", "two"):
        (tmp_path / "Acme/Retail" / intake).mkdir(parents=True)
    assert needed_for_contracts([*discover(tmp_path), None]) == 450_000


@pytest.mark.parametrize(
    "error",
    [
        OSError(errno.ENOSPC, "No space left on device"),
        OSError(errno.EDQUOT, "Disk quota exceeded"),
        OSError(errno.EFBIG, "File too large"),
        RuntimeError("Error in void faiss::write(...): write error: No space left on device"),
    ],
)
def test_a_full_disk_is_one_sentence_and_the_old_file_stays(tmp_path: Path, error: Exception) -> None:
    write_json(tmp_path / "p.json", {"a": 1})

    def fail(_: Path) -> None:
        raise error

    with pytest.raises(
        LakeError,
        match=f"the disk is full: writing to {tmp_path} ",
    ):
        atomic_files.write_atomically(tmp_path / "p.json", fail)
    assert read_json(tmp_path / "p.json") == {"a": 1}
    assert [p.name for p in tmp_path.iterdir()] == ["p.json"]


def test_other_errors_stay_what_they_are() -> None:
    with pytest.raises(ValueError, match="else"), atomic_files.full_disk_named(Path("x")):
        raise ValueError("something else")


@pytest.mark.long
def test_a_table_that_does_not_fit_is_not_published(tmp_path: Path) -> None:
    """A real limit, on the size of a file, in a process of its own. It writes no byte code (-B): Python would keep a
    file that the limit cut."""
    code = (
        "import sys; from opus_pipelines.lake.layout import *; from opus_pipelines.core.schemas import REJECTS\n"
        "from opus_pipelines.core.errors import LakeError\n"
        "lake = Lake(sys.argv[1])\n"
        "rows = [{'source': 's', 'path': 'p', 'position': n, 'reason': str(n * n)} for n in range(50_000)]\n"
        "try:\n"
        "    with lake.staging() as staged:\n"
        "        write_table(REJECTS, table_of(REJECTS, rows), staged / 'new')\n"
        "        lake.publish(staged / 'new', lake.folder(REJECTS, source_key='s', content='c'))\n"
        "except LakeError as error:\n"
        "    print(error)\n"
    )
    limit = lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, 20_000))
    done = subprocess.run(
        [sys.executable, "-B", "-c", code, str(tmp_path)], capture_output=True, text=True, preexec_fn=limit, check=False
    )
    assert done.stdout.startswith("the disk is full: writing to"), done.stderr
    assert not (tmp_path / REJECTS.name).exists()
    assert not list((tmp_path / ".staging").iterdir())


def write_two(lake: Lake, sizes: tuple[int, int]) -> None:
    with lake.lock(), lake.staging() as staged:
        for name, size in zip(("one", "two"), sizes, strict=True):
            rows = [{"source": "s", "position": n, "reason": str(n * n)} for n in range(size)]
            write_table(REJECTS, table_of(REJECTS, rows), staged / name)


@pytest.fixture
def small_files() -> Iterator[None]:
    """No file of this process may grow beyond 50 kB: a real limit, at which writing fails as on a full disk. Byte code
    is not written meanwhile: Python would keep a file that the limit cut."""
    before, bytecode = resource.getrlimit(resource.RLIMIT_FSIZE), sys.dont_write_bytecode
    sys.dont_write_bytecode = True
    resource.setrlimit(resource.RLIMIT_FSIZE, (50_000, before[1]))
    yield
    resource.setrlimit(resource.RLIMIT_FSIZE, before)
    sys.dont_write_bytecode = bytecode


@pytest.mark.usefixtures("small_files")
@pytest.mark.parametrize("sizes", [(100_000, 1), (1, 100_000)])
def test_a_write_that_fails_leaves_what_was_published(tmp_path: Path, sizes: tuple[int, int]) -> None:
    lake = Lake(tmp_path)
    place = lake.folder(REJECTS, source_key="s", content="old")
    write_table(REJECTS, table_of(REJECTS, [{"source": "s", "position": 1}]), place)
    with pytest.raises(LakeError, match="the disk is full"):
        write_two(lake, sizes)
    assert read_table(REJECTS, place)["position"].to_pylist() == [1]
    assert not lake.scratch.exists()
