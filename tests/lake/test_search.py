"""The search that proves a client is forgotten: every place where a word may hide, and what is not the word."""

import base64
import gzip
import json
import sqlite3
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from opus_pipelines.lake.layout import Lake, slug
from opus_pipelines.lake.search import Word, appears_in, search, unpacked

NAME = Word("client", "Ménage & Söhne")


def hits(root: Path, *words: Word) -> list[tuple[str, str, str]]:
    return [(f.file, f.place, f.word.text) for f in search(Lake(root), words or (NAME,))]


def nested(value: str) -> pa.Table:
    row = {
        "plain": value,
        "list": ["x", value],
        "map": [("k", value)],
        "key": [(value, "v")],
        "tasks": [{"a": None, "b": [value]}],
    }
    kind = pa.schema(
        [
            ("plain", pa.string()),
            ("list", pa.list_(pa.string())),
            ("map", pa.map_(pa.string(), pa.string())),
            ("key", pa.map_(pa.string(), pa.string())),
            ("tasks", pa.list_(pa.struct([("a", pa.string()), ("b", pa.list_(pa.string()))]))),
        ]
    )
    return pa.Table.from_pylist([dict.fromkeys(row), row], schema=kind)


def test_every_text_of_a_table_is_read(tmp_path: Path) -> None:
    pq.write_table(nested(NAME.text), tmp_path / "t.parquet", compression="zstd")
    assert [place for _, place, _ in hits(tmp_path)] == ["plain", "list", "map", "key", "tasks.b"]


@pytest.mark.parametrize(
    "content",
    [
        NAME.text.encode(),
        json.dumps({"client": NAME.text}).encode(),
        f"client_key={slug(NAME.text)}/x".encode(),
        f"({NAME.text})".encode(),
        b"\xff\x00 " + NAME.text.encode() + b"\x00",
        gzip.compress(json.dumps({"files": {f"client_key={slug(NAME.text)}/x": 1}}).encode(), mtime=0),
        b'src="data:image/svg+xml;base64,' + base64.b64encode(NAME.text.encode()) + b'"',
    ],
)
def test_every_way_of_writing_it_is_found(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "file").write_bytes(content)
    assert hits(tmp_path) == [("file", "", NAME.text)]


def test_names_of_folders_and_files_count(tmp_path: Path) -> None:
    (tmp_path / f"client_key={slug(NAME.text)}").mkdir()
    (tmp_path / f"{slug(NAME.text)}__claims.json").write_text("{}")
    assert {place for _, place, _ in hits(tmp_path)} == {"its name"}
    assert len(hits(tmp_path)) == 2


def test_a_database_is_read_value_by_value(tmp_path: Path) -> None:
    with sqlite3.connect(tmp_path / "d.db") as database:
        database.execute("CREATE TABLE events (body TEXT)")
        database.execute("INSERT INTO events VALUES (?)", ("x" * 6000 + " " + NAME.text,))
    database.close()
    assert ("d.db", "events", NAME.text) in hits(tmp_path)


@pytest.mark.parametrize(
    ("text", "stands"),
    [
        ("123456", True),
        ("n 123456.", True),
        ("_123456_", True),
        ("1234567", False),
        ("0123456", False),
        ("a123456f", False),
        ("", False),
    ],
)
def test_a_word_is_not_part_of_another(tmp_path: Path, text: str, stands: bool) -> None:
    word = Word("case id", "123456")
    (tmp_path / "f.json").write_text(text)
    assert bool(hits(tmp_path, word)) == stands
    assert appears_in(word, [pa.array([text, None])]) == stands


@given(st.text(min_size=1).filter(lambda text: text.strip() == text and "\x00" not in text))
def test_any_text_is_found_as_itself(text: str) -> None:
    assert appears_in(Word("w", text), [pa.array(["x", text])])
    assert appears_in(Word("w", text), [pa.array([f"before, {text}; after"])])


def test_numbers_of_an_index_and_of_weights_are_no_text(tmp_path: Path) -> None:
    numbers = b"\x00 EY \x00"
    header = json.dumps({"__metadata__": {"source": "the log of EY"}}).encode()
    (tmp_path / "tasks.faiss").write_bytes(numbers)
    (tmp_path / "plain.safetensors").write_bytes((2).to_bytes(8, "little") + b"{}" + numbers)
    (tmp_path / "named.safetensors").write_bytes(len(header).to_bytes(8, "little") + header + numbers)
    assert hits(tmp_path, Word("client", "EY")) == [("named.safetensors", "", "EY")]


def test_what_is_passed_over_is_not_read(tmp_path: Path) -> None:
    (tmp_path / "journal").mkdir()
    (tmp_path / "journal" / "x.json").write_text(NAME.text)
    assert list(search(Lake(tmp_path), [NAME], but=[tmp_path / "journal"])) == []


def test_text_without_a_data_uri_is_itself() -> None:
    assert unpacked("a;b") == "a;b"


@pytest.mark.parametrize("cut", range(9, 33))
def test_a_data_uri_that_is_cut_off_gives_what_there_is_of_it(cut: int) -> None:
    whole = base64.b64encode(b"twenty-four bytes of it!" * 2).decode()
    assert unpacked(f";base64,{whole[:cut]}").endswith(("twenty-four bytes of it!" * 2)[: cut // 4 * 3])
