"""Searches a lake for texts: in the bytes of every file, every text of every table, and every file and folder name.

Compressed Parquet files are searched column by column, SQLite files value by value, other compressed files as they read
unpacked, and data URIs inside texts are decoded. The numbers of an index and of a model's weights are passed over:
among millions of random bytes a short name such as "EY" stands by chance. Names are also searched as slugs and as JSON
escapes them. A text matches where no letter or digit touches it.
"""

import base64
import gzip
import json
import re
import sqlite3
from collections.abc import Iterable, Iterator
from contextlib import closing
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from opus_pipelines.lake.layout import Lake, slug
from opus_pipelines.lake.object_store.folders import STATE

_WORDS_PER_PATTERN = 40  # words in one pattern: RE2 grows with them
_SQLITE = b"SQLite format 3\0"
_GZIP = b"\x1f\x8b"
_SAFETENSORS_LENGTH = 8  # bytes that state the length of the header, which is JSON; the weights follow it
_DATA_URI = re.compile(r";base64,([A-Za-z0-9+/]{8,}(?:={1,2}(?![A-Za-z0-9+/=]))?)")


@dataclass(frozen=True)
class Word:
    """A text to search for, and the kind of thing that it is, for a message."""

    kind: str
    text: str

    @cached_property
    def forms(self) -> tuple[str, ...]:
        """The spellings in which the text may occur in the lake."""
        as_json = (json.dumps(self.text, ensure_ascii=ascii_only)[1:-1] for ascii_only in (True, False))
        return tuple(dict.fromkeys((self.text, slug(self.text), *as_json)))


@dataclass(frozen=True)
class Finding:
    """One match of a word in a file. `place` is the column or the table, empty for other files."""

    file: str
    place: str
    word: Word


def search(lake: Lake, words: Iterable[Word], below: Path | None = None, but: Iterable[Path] = ()) -> Iterator[Finding]:
    """Yields every match of the words in the lake, or below one of its folders. `but`: files and folders to skip.

    The note on what an object store holds is skipped too: it is written anew when the lock of the lake is given back.
    """
    patterns, passed_over = _Patterns(list(words)), {lake.root / STATE, *but}
    for path in sorted((below or lake.root).rglob("*")):
        if passed_over.isdisjoint((path, *path.parents)):
            name = path.relative_to(lake.root).as_posix()
            yield from (Finding(name, "its name", word) for word in patterns.in_text(path.name))
            if path.is_file():
                yield from (Finding(name, place, word) for place, word in _in_file(path, patterns))


def texts_of(table: pa.Table) -> Iterator[tuple[str, pa.Array]]:
    """Yields each text column of a table, nested ones too, as its name and its distinct values."""
    for name in table.column_names:
        yield from _texts(name, table[name].combine_chunks())


def appears_in(word: Word, texts: Iterable[pa.Array]) -> bool:
    """Returns whether the word matches any of these texts."""
    pattern = _pattern([word])
    return any(pc.any(pc.match_substring_regex(values, pattern)).as_py() for values in texts)


def unpacked(text: str) -> str:
    """Returns the text followed by the decoded content of its data URIs."""
    if ";base64," not in text:
        return text
    # A database page may cut a data URI off: the incomplete last group is skipped.
    parts = (base64.b64decode(encoded[: len(encoded) // 4 * 4]) for encoded in _DATA_URI.findall(text))
    return "\n".join([text, *(part.decode("utf-8", "replace") for part in parts)])


class _Patterns:
    def __init__(self, words: list[Word]) -> None:
        self.groups = [words[i : i + _WORDS_PER_PATTERN] for i in range(0, len(words), _WORDS_PER_PATTERN)]
        self.packed = [_pattern(group) for group in self.groups]
        self.plain = [(word, re.compile(_pattern([word]))) for word in words]
        forms = [[form.encode("utf-8", "replace") for form in word.forms] for word in words]
        self.raw = [
            (word, re.compile(_pattern([word]).encode()), spellings)
            for word, spellings in zip(words, forms, strict=True)
        ]

    def in_text(self, text: str) -> Iterator[Word]:
        return (word for word, pattern in self.plain if pattern.search(text))

    def in_bytes(self, data: bytes) -> Iterator[Word]:
        return (
            word for word, pattern, forms in self.raw if any(form in data for form in forms) and pattern.search(data)
        )

    def in_column(self, values: pa.Array) -> Iterator[Word]:
        for group, packed in zip(self.groups, self.packed, strict=True):
            hits = values.filter(pc.match_substring_regex(values, packed))
            if len(hits):
                yield from (word for word in group if appears_in(word, [hits]))


def _pattern(words: list[Word]) -> str:
    """Returns one regular expression for RE2 and `re`: no ASCII letter or digit may touch the word."""
    return "|".join(
        f"(?:^|[^0-9A-Za-z])(?:{'|'.join(_escaped(form) for form in word.forms)})(?:$|[^0-9A-Za-z])" for word in words
    )


def _escaped(text: str) -> str:
    return re.sub(r"([^0-9A-Za-z_\s\u0080-\U0010ffff])", r"\\\1", text)


def _in_file(path: Path, patterns: _Patterns) -> Iterator[tuple[str, Word]]:
    if path.suffix == ".parquet":
        for name, values in texts_of(pq.ParquetFile(path).read()):
            yield from ((name, word) for word in patterns.in_column(values))
        return
    data = _texts_in(path)
    if b";base64," in data:
        data += unpacked(data.decode("utf-8", "replace")).encode()
    yield from (("", word) for word in patterns.in_bytes(data))
    if data.startswith(_SQLITE):
        yield from _in_database(path, patterns)


def _texts_in(path: Path) -> bytes:
    """Returns the bytes of a file that may hold texts."""
    if path.suffix == ".faiss":
        return b""
    if path.suffix == ".safetensors":
        with path.open("rb") as file:
            return file.read(int.from_bytes(file.read(_SAFETENSORS_LENGTH), "little"))
    data = path.read_bytes()
    return gzip.decompress(data) if data.startswith(_GZIP) else data


def _in_database(path: Path, patterns: _Patterns) -> Iterator[tuple[str, Word]]:
    with closing(sqlite3.connect(f"{path.as_uri()}?mode=ro", uri=True)) as database:
        tables = [name for (name,) in database.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
        for table in tables:
            rows = database.execute(f'SELECT * FROM "{table}"')
            texts = pa.array(sorted({unpacked(v) for row in rows for v in row if isinstance(v, str)}), pa.string())
            yield from ((table, word) for word in patterns.in_column(texts))


def _texts(name: str, column: Any) -> Iterator[tuple[str, pa.Array]]:
    kind = column.type
    if pa.types.is_string(kind) or pa.types.is_large_string(kind):
        yield name, pc.unique(column).drop_null()
    elif pa.types.is_map(kind):
        rows = pa.chunked_array([column]).combine_chunks()
        yield from _texts(name, rows.keys)
        yield from _texts(name, rows.items)
    elif pa.types.is_list(kind) or pa.types.is_fixed_size_list(kind):
        yield from _texts(name, column.flatten())
    elif pa.types.is_struct(kind):
        for field, values in zip(kind, column.flatten(), strict=True):
            yield from _texts(f"{name}.{field.name}", values)
