"""A list finds what is damaged in its folder, quickly or thoroughly; a replaced file has a copy."""

import os
import shutil
from pathlib import Path

import pytest

from opus_pipelines.core.errors import LakeError
from opus_pipelines.lake import file_lists
from opus_pipelines.lake.file_lists import damage_in, entries_of, freshen, list_files
from opus_pipelines.lake.layout import Lake


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "published"
    (made / "index").mkdir(parents=True)
    (made / "part.parquet").write_bytes(b"rows")
    (made / "index" / "ids.json").write_text("[]")
    list_files(made)
    return made


def damage(folder: Path, thorough: bool = False) -> list[tuple[str, str]]:
    return [(d.file.relative_to(folder.parent).as_posix(), d.reason) for d in damage_in(folder, thorough)]


def test_the_list_has_every_file_with_size_and_hash(folder: Path) -> None:
    entries = entries_of(folder) or {}
    assert {name: (e.bytes, e.sha256[:8], e.before) for name, e in entries.items()} == {
        "index/ids.json": (2, "4f53cda1", None),
        "part.parquet": (4, "bc51e9e6", None),
    }
    assert damage(folder, thorough=True) == []


def test_each_kind_of_damage_has_its_reason(folder: Path) -> None:
    (folder / "part.parquet").write_bytes(b"row")
    (folder / "index" / "ids.json").unlink()
    assert damage(folder) == [
        ("published/index/ids.json", "is missing"),
        ("published/part.parquet", "has 3 bytes instead of 4"),
    ]
    (folder / "part.parquet").write_bytes(b"rowz")
    assert damage(folder)[1] == ("published/part.parquet", "has other content than was published")
    shutil.rmtree(folder)
    assert damage(folder) == [("published", "is missing")]


def test_a_quick_check_hashes_only_what_was_modified_after_the_list(folder: Path) -> None:
    listed = (folder / "_files.json").stat().st_mtime_ns
    (folder / "part.parquet").write_bytes(b"rowz")
    os.utime(folder / "part.parquet", ns=(listed, listed))
    assert damage(folder) == []
    assert damage(folder, thorough=True) == [("published/part.parquet", "has other content than was published")]
    os.utime(folder / "part.parquet")
    assert damage(folder) == [("published/part.parquet", "has other content than was published")]
    freshen(folder)
    assert (folder / "_files.json").stat().st_mtime_ns > listed


def test_a_strange_file_is_found_by_a_thorough_check(folder: Path) -> None:
    (folder / "part-00001.parquet").write_bytes(b"more rows")
    assert damage(folder) == []
    ((file, reason),) = damage(folder, thorough=True)
    assert (file, "not in the list" in reason) == ("published/part-00001.parquet", True)


@pytest.mark.parametrize(
    "content", ["", "{", "[]", "{}", '{"files": {}, "sha256": "x"}', '{"files": 7}', "[" * 5000, "\ud800"]
)
def test_a_damaged_list_is_found(folder: Path, content: str) -> None:
    (folder / "_files.json").write_bytes(content.encode("utf-8", "surrogatepass"))
    assert damage(folder) == [("published/_files.json", "is damaged")]


def test_a_missing_list_is_damage_only_for_who_expects_one(folder: Path) -> None:
    (folder / "_files.json").unlink()
    assert entries_of(folder) is None
    assert damage(folder) == [("published/_files.json", "is missing")]


def test_a_replaced_file_is_checked_and_restored(tmp_path: Path) -> None:
    lake = Lake(tmp_path)
    file = lake.kept / "lambda.json"
    lake.replace_json(file, {"lambda": 1})
    file_lists.require_sound_file(file)
    file.unlink()
    with pytest.raises(LakeError, match=r"lambda.json is missing; `opus verify` names .*`opus verify --repair` mends"):
        file_lists.require_sound_file(file)
    with lake.staging() as staged:
        assert file_lists.restored(staged, file)
    assert file.read_text() == '{\n  "lambda": 1\n}\n'
    file_lists.copy_of(file).write_text("{}")
    file.unlink()
    with lake.staging() as staged:
        assert not file_lists.restored(staged, file)


def test_a_withdrawn_file_leaves_no_trace(tmp_path: Path) -> None:
    lake = Lake(tmp_path)
    lake.replace_json(lake.kept / "a.json", {})
    lake.replace_json(lake.kept / "b.json", {})
    lake.withdraw(lake.kept / "a.json")
    assert list(entries_of(lake.kept) or {}) == ["b.json"]
    assert sorted(p.name for p in lake.kept.rglob("*.json")) == ["_files.json", "b.json", "b.json"]


def test_the_private_key_and_its_copy_are_the_owners_alone(tmp_path: Path) -> None:
    from opus_pipelines.history.records.forgotten_clients import private_key

    lake = Lake(tmp_path)
    private_key(lake)
    key = lake.kept / "private.key"
    assert [oct(p.stat().st_mode & 0o777) for p in (key, file_lists.copy_of(key))] == ["0o600", "0o600"]


def test_names_of_lists_and_copies_are_those_of_the_module() -> None:
    assert (file_lists.NAME, file_lists.COPIES) == ("_files.json", "_copies")
