"""What may be done to a file: bytes, pieces, fields and packing, each by a seeded generator."""

import gzip
import io
import re
import sqlite3
from collections.abc import Callable
from contextlib import suppress
from random import Random

import pyarrow as pa
import pyarrow.parquet as pq
from lxml import etree
from structures import structure_of

PIECES = [p if isinstance(p, bytes) else p.encode() for p in (
    "", "NaN", "Infinity", "-Infinity", "-1", "1e308", "1e-400", "9" * 400, "-0", "0x10", "1_000", "1,5", "€ 3", "true", "null", "[]", "{}",
    "../../etc/passwd", "/etc/passwd", "..\\..\\x", "C:\\x", "a/b", ".", "..", b"\x00", b"\xff\xfe", b"\xed\xa0\x80",
    b"\xf8\x88\x80\x80\x80", "\\ud800", "\\u0000", "\u202e", "\ufeff", "\u2028", "e\u0301" * 50, "😀", "=cmd|' /C calc'!A0",
    "<script>alert(1)</script>", "'; DROP TABLE tasks;--", "${jndi:ldap://x}", "%s%n%x", "\r\n", "\n", "\t", "\x1b[31m", "\x7f", '"', "'",
    "\\", ",", ";", "<", ">", "&", "&amp;", "&x;", "&#0;", "&#xD800;", "<!DOCTYPE a [<!ENTITY x 'y'>]>", "<![CDATA[", "]]>", "<!--",
    "<?xml version='1.1'?>", "[[[[", "}}}}", "2020-02-30T25:61:61Z", "0000-00-00", "9999-12-31T23:59:59-14:00", "0001-01-01T00:00:00+14:00",
    "1583298367", "9" * 17, "-1583298367", "2020-03-29 02:30:00", "A" * 10_000, "a@b.org", "+31 20 1234567",
)]  # fmt: skip
_FIELD = re.compile(rb'(?<=")[^"\n]*(?=")|[\w.+:-]+')
_NUMBER = re.compile(rb"\d+(?:\.\d+)?")


def flip(content: bytes, rng: Random) -> bytes:
    """A few bits turned over."""
    changed = bytearray(content)
    for _ in range(rng.randint(1, 8)):
        if changed:
            changed[rng.randrange(len(changed))] ^= 1 << rng.randrange(8)
    return bytes(changed)


def noise(content: bytes, rng: Random) -> bytes:
    """A stretch of random bytes in place of another."""
    at, length = rng.randrange(len(content) + 1), rng.randint(1, 64)
    return content[:at] + rng.randbytes(length) + content[at + length :]


def truncate(content: bytes, rng: Random) -> bytes:
    """The end cut off."""
    return content[: rng.randrange(len(content) + 1)]


def behead(content: bytes, rng: Random) -> bytes:
    """The start cut off."""
    return content[rng.randrange(len(content) + 1) :]


def repeat(content: bytes, rng: Random) -> bytes:
    """A stretch said twice or many times: ids, keys and whole records come again."""
    at, length = rng.randrange(len(content) + 1), rng.randint(1, 2000)
    return content[: at + length] + content[at : at + length] * rng.choice((1, 1, 5, 50)) + content[at + length :]


def exchange(content: bytes, rng: Random) -> bytes:
    """Two stretches in each other's place."""
    a, b = sorted(rng.randrange(len(content) + 1) for _ in range(2))
    length = min(rng.randint(1, 400), b - a)
    return (
        content[:a]
        + content[b : b + length]
        + content[a + length : b]
        + content[a : a + length]
        + content[b + length :]
    )


def insert(content: bytes, rng: Random) -> bytes:
    """Something hostile, anywhere."""
    at = rng.randrange(len(content) + 1)
    return content[:at] + rng.choice(PIECES) + content[at:]


def refill(content: bytes, rng: Random) -> bytes:
    """Something hostile in place of some fields."""
    fields = list(_FIELD.finditer(content))
    for match in sorted(rng.sample(fields, min(len(fields), rng.randint(1, 5))), key=lambda m: -m.start()):
        content = content[: match.start()] + rng.choice(PIECES) + content[match.end() :]
    return content


def swap_fields(content: bytes, rng: Random) -> bytes:
    """Fields in each other's place: times where names stand, paths where numbers do."""
    fields = list(_FIELD.finditer(content))
    chosen = sorted(rng.sample(fields, min(len(fields), 2 * rng.randint(1, 4))), key=lambda m: m.start())
    words = [m[0] for m in chosen]
    rng.shuffle(words)
    for match, word in zip(reversed(chosen), reversed(words), strict=True):
        content = content[: match.start()] + word + content[match.end() :]
    return content


def renumber(content: bytes, rng: Random) -> bytes:
    """Numbers changed, so that places, times and amounts are others."""
    numbers = list(_NUMBER.finditer(content))
    for match in sorted(rng.sample(numbers, min(len(numbers), rng.randint(1, 12))), key=lambda m: -m.start()):
        other = rng.choice((b"0", b"1", b"7", b"99", b"-3", b"1e99", b"123456789012345678901234567890", b"2.5"))
        content = content[: match.start()] + other + content[match.end() :]
    return content


def recode(content: bytes, rng: Random) -> bytes:
    """The same text in another encoding than it claims or none."""
    text = content.decode("utf-8", "replace")
    return text.encode(
        rng.choice(("utf-16", "utf-16-le", "utf-16-be", "utf-32", "latin-1", "cp037", "utf-7", "utf-8-sig")), "replace"
    )


def columns(content: bytes, rng: Random) -> bytes:
    """A Parquet file with columns renamed, retyped or filled with hostile values; other files as they are."""
    try:
        table = pq.read_table(io.BytesIO(content))
    except (pa.ArrowException, OSError):
        return content
    place = rng.randrange(table.num_columns)
    name, size = table.column_names[place], table.num_rows
    values = rng.choice(
        (
            pa.nulls(size),
            pa.array([rng.choice(PIECES) for _ in range(size)]),
            pa.array([float("nan")] * size),
            pa.array([-1e308] * size),
            pa.array([2**63 - 1] * size),
            pa.array([-(2**62)] * size, pa.timestamp("us")),
            pa.array([2**62] * size, pa.timestamp("s", "UTC")),
            pa.array([["x"]] * size),
            pa.array([2**40] * size, pa.duration("s")),
            pa.array([b"\xff\x00"] * size),
            pa.array([[("k", 1)]] * size, pa.map_(pa.string(), pa.int64())),
            pa.array([True] * size),
            pa.array([1.5] * size, pa.float32()),
            pa.array([2**31 - 1] * size, pa.date32()),
            pa.array([-1] * size, pa.timestamp("ns", "Europe/Paris")),
            table.column(rng.randrange(table.num_columns)),
        )
    )
    table = table.set_column(place, rng.choice((name, name, name, "activity", "", "a\x00b", "é")), values)
    packed = io.BytesIO()
    try:
        pq.write_table(table, packed)
    except (pa.ArrowException, OSError):
        return content
    return packed.getvalue()


MUTATIONS: tuple[Callable[[bytes, Random], bytes], ...] = (
    flip,
    noise,
    truncate,
    behead,
    repeat,
    exchange,
    insert,
    recode,
    *(refill, swap_fields, renumber) * 3,
)


def mutant(name: str, content: bytes, rng: Random) -> tuple[str, bytes, str]:
    """A file's name and content after one to three mutations, one in five packed and then perhaps broken; and what was
    done.
    """
    done = []
    if (structural := structure_of(name)) is not None and rng.random() < 0.5:
        with suppress(ValueError, etree.LxmlError, sqlite3.Error, LookupError):  # a head of a real file need not parse
            content = structural(content, rng)
        done.append(structural.__name__)
    for _ in range(0 if done else rng.choice((1, 1, 1, 2, 3))):
        change = columns if name.endswith(".parquet") and rng.random() < 0.6 else rng.choice(MUTATIONS)
        content = change(content, rng)
        done.append(change.__name__)
    if rng.random() < 0.2:
        name, content = f"{name}.gz", gzip.compress(content, 1, mtime=0)
        done.append("gzip")
        if rng.random() < 0.5:
            change = rng.choice((flip, truncate, repeat, noise, insert))
            content = change(content, rng)
            done.append(change.__name__)
    return name, content, "+".join(done)
