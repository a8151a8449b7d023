"""`opus rebuild --full`: everything made again from nothing, and held against what is published."""

import shutil
from datetime import timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from opus_pipelines.core.errors import CheckFailed
from opus_pipelines.core.schemas import EMBEDDINGS, SOURCES, TASKS
from opus_pipelines.core.settings import Settings
from opus_pipelines.lake.layout import PART, Lake, table_of, write_json, write_table
from opus_pipelines.language.embedding.cache import adopt_vectors
from opus_pipelines.wkg.rebuild import steps
from opus_pipelines.wkg.rebuild.records import HistoryRecord
from opus_pipelines.wkg.upkeep import remake
from tests.rebuilding import make, no_spark


def made_again(lake: Lake, history: Any, *sources: SimpleNamespace) -> str:
    """The steps of the job, with sources read into the scratch lake."""
    work = remake.begin_remake(lake)
    for source in sources:
        folder = work.root / source.folder.relative_to(lake.root)
        shutil.copytree(source.folder, folder)
        source.folder = folder
    record: Any = HistoryRecord(tuple(sources), (), full=True)  # type: ignore[arg-type]
    night = steps.resolve(Settings(), lake, record, lambda _: history.encoder(), steps.Asked(publish=True))
    assert night.snapshot.is_new
    make(night, no_spark, history.encoder)
    return steps.publish(night, history.now + timedelta(days=1))


@pytest.fixture
def built(lake: Lake, history: Any, rebuild: Any) -> tuple[Lake, SimpleNamespace, str]:
    source = history.write(lake, "log", history.claims())
    return lake, source, rebuild(lake, source).snapshot_id


@pytest.mark.long
def test_the_same_inputs_give_the_same_and_change_nothing(
    built: Any, history: Any, caplog: pytest.LogCaptureFixture
) -> None:
    lake, source, snapshot = built
    before = {path: path.stat().st_mtime_ns for path in lake.root.rglob("*.parquet")}
    assert made_again(lake, history, source) == snapshot
    assert {
        path: path.stat().st_mtime_ns for path in lake.root.rglob("*.parquet") if ".staging" not in path.parts
    } == before
    assert lake.current_snapshot() == snapshot


@pytest.mark.long
def test_other_content_is_named_and_nothing_is_changed(built: Any, history: Any) -> None:
    lake, source, snapshot = built
    path = lake.snapshot_folder(snapshot) / "tasks" / PART
    table = pq.ParquetFile(path).read()
    wrong = table.set_column(0, "task_id", pa.array(["t0"] * table.num_rows))
    pq.write_table(wrong, path)
    with pytest.raises(CheckFailed, match=f"in 1 files: wkg/{snapshot}/tasks/{PART}"):
        made_again(lake, history, source)
    assert pq.ParquetFile(path).read().equals(wrong)


@pytest.mark.long
def test_what_is_new_is_published_with_its_parts(built: Any, history: Any) -> None:
    lake, source, snapshot = built
    other = history.write(Lake(lake.root.parent / "other"), "second", history.claims()[:4])
    moved = lake.root / other.folder.relative_to(lake.root.parent / "other")
    scratch_only = SimpleNamespace(**vars(other) | {"folder": moved})
    shutil.copytree(other.folder, moved)
    new = made_again(lake, history, source, scratch_only)
    assert new != snapshot
    assert lake.current_snapshot() == new
    sources = lake.manifest(new)["inputs"]["sources"]
    assert [s["source"] for s in sources] == ["log", "second"]
    assert all((lake.root / s[key]).is_dir() for s in sources for key in ("folder", "aggregates", "names"))


def tasks(folder: Path, *titles: str) -> None:
    write_table(TASKS, table_of(TASKS, [{"task_id": f"t{t}", "title": t} for t in titles]), folder)


@pytest.mark.parametrize(
    ("made", "there", "same"),
    [
        (["a", "b"], ["a", "b"], True),
        (["a"], ["b"], False),
        (["a"], ["a", "b"], False),
        (["a"], [], False),
    ],
)
def test_what_counts_as_the_same(tmp_path: Path, made: list[str], there: list[str], same: bool) -> None:
    home, staged = Lake(tmp_path / "lake"), tmp_path / "staged"
    tasks(staged / "tasks", *made)
    tasks(home.snapshot_folder("w1") / "tasks", *there)
    pq.write_table(
        pq.ParquetFile(staged / "tasks" / PART).read(), staged / "tasks" / PART
    )  # other bytes, written by another version
    (staged / "manifest.json").write_text("{}")
    if same:
        remake.compare_remade(Lake(tmp_path / "scratch"), home, "w1", staged)
    else:
        with pytest.raises(CheckFailed, match=f"wkg/w1/tasks/{PART}"):
            remake.compare_remade(Lake(tmp_path / "scratch"), home, "w1", staged)


@pytest.mark.parametrize(("off", "same"), [(1e-6, True), (1e-3, False)])
def test_vectors_may_differ_in_their_last_digits(tmp_path: Path, off: float, same: bool) -> None:
    home = Lake(tmp_path / "lake")
    for folder, value in ((tmp_path / "staged", 1.0), (home.snapshot_folder("w1"), 1.0 + off)):
        made = table_of(EMBEDDINGS, [{"task_id": "t", "vector": [value, 0.0]}], EMBEDDINGS.with_dimension(2))
        write_table(EMBEDDINGS, made, folder / "embeddings")
    scratch = Lake(tmp_path / "scratch")
    if same:
        remake.compare_remade(scratch, home, "w1", tmp_path / "staged")
    else:
        with pytest.raises(CheckFailed, match="embeddings"):
            remake.compare_remade(scratch, home, "w1", tmp_path / "staged")


def test_a_file_that_is_broken_differs(tmp_path: Path) -> None:
    home = Lake(tmp_path / "lake")
    tasks(tmp_path / "staged" / "tasks", "a")
    (home.snapshot_folder("w1") / "tasks").mkdir(parents=True)
    (home.snapshot_folder("w1") / "tasks" / PART).write_bytes(b"PAR1 rotten")
    with pytest.raises(CheckFailed, match="1 files"):
        remake.compare_remade(Lake(tmp_path / "scratch"), home, "w1", tmp_path / "staged")


def test_the_scratch_lake_has_what_is_kept_but_no_vectors(lake: Lake) -> None:
    write_json(lake.kept / "lambda.json", {"transition": {"lambda": 0.5}})
    secret = lake.kept / "private.key"
    secret.write_bytes(b"k")
    secret.chmod(0o600)
    (lake.kept / "embeddings" / "m-256").mkdir(parents=True)
    write_table(SOURCES, table_of(SOURCES, [{"source": "s", "path": "p"}]), lake.folder(SOURCES))
    scratch = remake.begin_remake(lake)
    assert sorted(f.name for f in scratch.kept.iterdir()) == ["lambda.json", "private.key"]
    assert (scratch.kept / "private.key").stat().st_mode & 0o777 == 0o600
    assert (scratch.folder(SOURCES) / PART).is_file()
    (scratch.kept / "private.key").write_bytes(b"new")
    remake.adopt(scratch, lake)
    assert secret.read_bytes() == b"new"
    assert secret.stat().st_mode & 0o777 == 0o600


def test_only_vectors_of_new_texts_are_adopted(tmp_path: Path) -> None:
    for place, keys in (("made", ["a", "b"]), ("kept", ["b"])):
        (tmp_path / place / "m").mkdir(parents=True)
        pq.write_table(
            pa.table({"content_hash": keys, "vector": [[1.0]] * len(keys)}), tmp_path / place / "m" / f"{place}.parquet"
        )
    adopt_vectors(tmp_path / "made", tmp_path / "kept")
    new = [f for f in (tmp_path / "kept/m").iterdir() if f.name != "kept.parquet"]
    assert [pq.ParquetFile(f).read()["content_hash"].to_pylist() for f in new] == [["a"]]
    adopt_vectors(tmp_path / "made", tmp_path / "kept")
    assert len(list((tmp_path / "kept/m").iterdir())) == 2
