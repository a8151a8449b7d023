import os
import subprocess
import sys
from pathlib import Path
from typing import Any, Never

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from opus_pipelines.core.errors import LakeError
from opus_pipelines.core.schemas import DATASETS, EMBEDDINGS, IMPLEMENTATIONS, INTAKES, REJECTS
from opus_pipelines.lake.layout import (
    Lake,
    read_json,
    read_table,
    slug,
    table_of,
    unslug,
    write_atomically,
    write_json,
    write_table,
)


@pytest.mark.parametrize(
    ("text", "path"), [("007", "007"), ("A B/../c", "A_20B_2f_2e_2e_2fc"), ("é_x", "_c3_a9_5fx"), ("..", "_2e_2e")]
)
def test_a_slug_is_one_harmless_path_component(text: Any, path: Any) -> None:
    assert slug(text) == path
    assert unslug(path) == text


@given(st.text())
def test_slugs_are_reversible(text: Any) -> None:
    assert unslug(slug(text)) == text
    assert not set(slug(text)) & set("/.\\ ")


def test_partitions_of_a_dataset_are_slugged_and_checked(tmp_path: Path) -> None:
    lake = Lake(tmp_path)
    folder = lake.folder(INTAKES, client_key="A/B", contract_key="k")
    assert folder == tmp_path / "generation/intakes/client_key=A_2fB/contract_key=k"
    with pytest.raises(LakeError, match=r"has no partitions \['snapshot'\]"):
        lake.folder(INTAKES, snapshot="w")


def test_rows_come_back_sorted_by_key_with_null_for_what_is_missing(tmp_path: Path) -> None:
    rows = [{"source": "b", "path": "p", "position": 1}, {"source": "a", "path": "p", "position": 9, "reason": "x"}]
    write_table(REJECTS, table_of(REJECTS, rows), tmp_path / "t")
    table = read_table(REJECTS, tmp_path / "t")
    assert table.schema == REJECTS.schema
    assert table["source"].to_pylist() == ["a", "b"]
    assert table["reason"].to_pylist() == ["x", None]


def test_the_same_rows_give_the_same_bytes(tmp_path: Path) -> None:
    task = {"position": 0, "task_key": "A"}
    rows = [{"implementation_id": f"i{n}", "weight": n, "attributes": {"k": "v"}, "tasks": [task]} for n in range(50)]
    first = write_table(IMPLEMENTATIONS, table_of(IMPLEMENTATIONS, rows), tmp_path / "a")
    second = write_table(IMPLEMENTATIONS, table_of(IMPLEMENTATIONS, rows[::-1]), tmp_path / "b")
    assert first.read_bytes() == second.read_bytes()


def test_vectors_of_another_encoder_keep_their_length(tmp_path: Path) -> None:
    schema = EMBEDDINGS.with_dimension(3)
    write_table(EMBEDDINGS, table_of(EMBEDDINGS, [{"task_id": "t", "vector": [1.0, 0.0, 0.0]}], schema), tmp_path / "v")
    assert read_table(EMBEDDINGS, tmp_path / "v").schema.field("vector").type == pa.list_(pa.float32(), 3)


def test_an_unknown_column_is_an_error() -> None:
    with pytest.raises(LakeError, match=r"history/rejects has no columns \['reasons'\]"):
        table_of(REJECTS, [{"reasons": "x"}])


def test_every_dataset_has_an_empty_typed_file(root: Path) -> None:
    lake = Lake(root)
    lake.ensure_empty()
    assert {f.stem for f in (root / ".empty").rglob("*.parquet")} == {d.view for d in DATASETS.values()}


def test_what_is_published_is_never_changed(root: Path) -> None:
    lake = Lake(root)
    for text in ("first", "second"):
        with lake.staging() as staged:
            (staged / "new").mkdir()
            (staged / "new" / "x").write_text(text)
            lake.publish(staged / "new", root / "wkg" / "w1")
    assert (root / "wkg" / "w1" / "x").read_text() == "first"
    assert list((root / ".staging").iterdir()) == []


def test_a_write_that_fails_leaves_the_old_file(tmp_path: Path) -> None:
    write_json(tmp_path / "p.json", {"a": 1})

    def fail(path: Any) -> Never:
        path.write_text("half")
        raise OSError("disk full")

    with pytest.raises(OSError, match="disk full"):
        write_atomically(tmp_path / "p.json", fail)
    assert read_json(tmp_path / "p.json") == {"a": 1}
    assert [p.name for p in tmp_path.iterdir()] == ["p.json"]


@pytest.mark.long
def test_one_writer_at_a_time_and_a_dead_one_holds_nothing(root: Path) -> None:
    code = (
        f"from opus_pipelines.lake.layout import Lake\nimport os\nlock = "
        f"Lake({str(root)!r}).lock()\nlock.__enter__()\nos._exit(9)"
    )
    with Lake(root).lock(), pytest.raises(LakeError, match="another run"), Lake(root).lock():
        pass
    (root / ".staging" / "left").mkdir(parents=True)
    subprocess.run([sys.executable, "-c", code], check=False)
    with Lake(root).lock():
        assert not (root / ".staging").exists()


def test_what_a_writer_without_the_lock_stages_outlives_the_end_of_a_locked_run(root: Path) -> None:
    with Lake(root).staging_without_lock() as killed:
        (killed.parent / "left").mkdir()
        os.utime(killed.parent / "left", (0, 0))
    assert list(killed.parent.iterdir()) == []
    with Lake(root).staging_without_lock() as staged:
        with Lake(root).lock():
            (staged / "row").touch()
        assert (staged / "row").exists()


def test_a_pointer_edited_by_hand_is_named(root: Path) -> None:
    (root / "wkg").mkdir()
    (root / "wkg" / "current.json").write_text("{")
    with pytest.raises(LakeError, match=r"current.json is not JSON"):
        Lake(root).current_snapshot()
