"""What may be done to the structure of a file: its elements, values, rows and tables, so that it still parses."""

import csv
import io
import json
import sqlite3
import zipfile
from collections.abc import Callable
from random import Random
from typing import Any

from lxml import etree

Change = Callable[[bytes, Random], bytes]
_ODD: tuple[Any, ...] = (
    None,
    True,
    -1,
    1e308,
    "",
    "nan",
    "x" * 300,
    [],
    {},
    [[]],
    {"a": {"b": [1]}},
    "2020-02-30",
    10**30,
)


def of_xml(content: bytes, rng: Random) -> bytes:
    """Elements lost, doubled, moved, renamed, wrapped in another, with attributes lost or exchanged."""
    root = etree.fromstring(content)
    elements = [e for e in root.iter() if isinstance(e.tag, str)]
    inner = elements[1:] or elements
    for _ in range(rng.randint(1, 4)):
        one, other = rng.choice(inner), rng.choice(elements)
        parent = one.getparent()
        kind = rng.randrange(7)
        if kind == 0 and parent is not None:
            parent.remove(one)
        elif kind == 1 and parent is not None:
            parent.insert(rng.randrange(len(parent) + 1), etree.fromstring(etree.tostring(one)))
        elif kind == 2 and other not in one.iter():
            other.append(one)
        elif kind == 3:
            one.tag = other.tag
        elif kind == 4 and one.attrib:
            del one.attrib[rng.choice(list(one.attrib))]
        elif kind == 5 and one.attrib and other.attrib:
            one.set(rng.choice(list(one.attrib)), rng.choice(list(other.attrib.values())))
        elif kind == 6:
            one.text = rng.choice(("", "nan", "-1", "2020-02-30", "e1"))
    return bytes(etree.tostring(root))


def of_json(content: bytes, rng: Random) -> bytes:
    """Values lost, doubled, of other types, in each other's place, one level deeper; of lines, one at a time."""
    lines = content.splitlines(keepends=True)
    if len(lines) > 1 and lines[0].strip().endswith(b"}"):
        place = rng.randrange(len(lines))
        lines[place] = of_json(lines[place], rng) + b"\n"
        return b"".join(lines)
    whole = [json.loads(content)]
    for _ in range(rng.randint(1, 4)):
        places = list(_places(whole))
        (holder, key), (other, other_key) = rng.choice(places), rng.choice(places)
        kind = rng.randrange(5)
        if kind == 0 and holder is not whole:
            del holder[key]
        elif kind == 1 and isinstance(holder, list):
            holder.insert(key, json.loads(json.dumps(holder[key])))
        elif kind == 2:
            holder[key] = rng.choice(_ODD)
        elif kind == 3:
            holder[key] = json.loads(json.dumps(other[other_key]))
        elif kind == 4:
            holder[key] = rng.choice(([holder[key]], {"x": holder[key]}))
    return json.dumps(whole[0]).encode()


def _places(value: Any) -> Any:
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, inner in list(items):
        yield value, key
        yield from _places(inner)


def of_csv(content: bytes, rng: Random) -> bytes:
    """Rows and columns lost, doubled and moved, cells exchanged, a name of a column twice or empty."""
    rows = list(csv.reader(io.StringIO(content.decode())))
    for _ in range(rng.randint(1, 3)):
        a, b = rng.randrange(len(rows)), rng.randrange(len(rows))
        width = min(map(len, rows))
        x, y = (rng.randrange(width) for _ in range(2)) if width else (0, 0)
        kind = rng.randrange(7)
        if kind == 0 and len(rows) > 2:
            del rows[a]
        elif kind == 1:
            rows.insert(a, list(rows[b]))
        elif kind == 2 and width > 1:
            rows = [[c for place, c in enumerate(row) if place != x] for row in rows]
        elif kind == 3:
            rows = [[*row, row[x]] for row in rows]
        elif kind == 4:
            rows[a][x], rows[b][y] = rows[b][y], rows[a][x]
        elif kind == 5:
            rows[0][x] = rng.choice(("", rows[0][y]))
        elif kind == 6:
            rows = [row[::-1] for row in rows]
    text = io.StringIO()
    csv.writer(text).writerows(rows)
    return text.getvalue().encode()


def of_workbook(content: bytes, rng: Random) -> bytes:
    """The XML of one part changed, or a part lost."""
    packed = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(content)) as book, zipfile.ZipFile(packed, "w") as changed:
        parts = [p for p in book.namelist() if p.endswith((".xml", ".rels"))]
        chosen, is_lost = rng.choice([p for p in parts for _ in range(1 + 8 * ("sheet" in p))]), rng.random() < 0.1
        for part in book.namelist():
            if part != chosen or not is_lost:
                changed.writestr(part, of_xml(book.read(part), rng) if part == chosen else book.read(part))
    return packed.getvalue()


def of_database(content: bytes, rng: Random) -> bytes:
    """A table or a column lost or renamed, rows lost, doubled, or with another type in a column."""
    base = sqlite3.connect(":memory:")
    base.deserialize(content)
    tables = [name for (name,) in base.execute("SELECT name FROM sqlite_master WHERE type = 'table' ORDER BY name")]
    for _ in range(rng.randint(1, 3)):
        table = rng.choice(tables)
        columns = [row[1] for row in base.execute(f"PRAGMA table_info({table})")]
        column = rng.choice(columns)
        change = rng.choice(
            (
                f"DELETE FROM {table} WHERE rowid = 1",
                f"INSERT INTO {table} SELECT * FROM {table}",
                f"UPDATE {table} SET {column} = NULL",
                f"UPDATE {table} SET {column} = 1e300",
                f"UPDATE {table} SET {column} = x'ff00'",
                f"ALTER TABLE {table} RENAME COLUMN {column} TO other_{rng.randrange(9999)}",
                f"CREATE TABLE copy_{rng.randrange(10**9)} AS SELECT * FROM {table}",
            )
        )
        base.execute(change)
    base.commit()
    return base.serialize()


STRUCTURES: tuple[tuple[tuple[str, ...], Change], ...] = (
    ((".xes", ".bpmn", ".xml"), of_xml),
    ((".csv",), of_csv),
    ((".json", ".jsonl"), of_json),
    ((".xlsx",), of_workbook),
    ((".sqlite",), of_database),
)


def structure_of(name: str) -> Change | None:
    """The change of the structure for a file of this name; None where the bytes alone can be changed."""
    return next((change for endings, change in STRUCTURES if name.endswith(endings)), None)
