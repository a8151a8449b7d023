"""Object-centric event logs as tools write them (JSON, XML, SQLite, CSV; 1.0 and 2.0), as the JSON of OCEL 2.0."""

import ast
import csv
import io
import json
import sqlite3
from collections.abc import Callable, Iterable
from contextlib import closing
from typing import Any, BinaryIO

from opus_pipelines.core.errors import InputError
from opus_pipelines.history.formats.encoding_detection import table_head
from opus_pipelines.history.formats.table_log import OBJECT_TYPE
from opus_pipelines.history.formats.whole_file import read_bytes, read_json, read_xml
from opus_pipelines.workflow.bpmn_xml import children

Log = dict[str, list[dict[str, Any]]]
_SQLITE = b"SQLite format 3\0"
_NO_LOG = "it is no object-centric log (OCEL): "


def read_log(open_file: Callable[[], BinaryIO], limit: int, advice: str) -> Any:
    """Returns the log as the JSON of OCEL 2.0. Raises InputError if the file is broken, or no such log."""
    with open_file() as file:
        head = file.read(64).lstrip(b"\xef\xbb\xbf \t\r\n")
    if head.startswith((b"{", b"[", b"\xff\xfe", b"\xfe\xff")):
        found = read_json(open_file, limit, advice)
        return _of_first_json(found) if isinstance(found, dict) and "ocel:events" in found else found
    if head.startswith(b"<"):
        return _of_xml(read_xml(open_file, "log", advice))
    content = read_bytes(open_file, limit, advice)
    return _of_sqlite(content) if content.startswith(_SQLITE) else _of_csv(content)


def _of_first_json(log: dict[str, Any]) -> Log:
    events, objects = (log.get(f"ocel:{name}") for name in ("events", "objects"))
    if not isinstance(events, dict) or not isinstance(objects, dict):
        raise InputError(_NO_LOG + '"ocel:events" and "ocel:objects" are no objects')
    return {
        "events": [
            _event(k, e.get("ocel:activity"), e.get("ocel:timestamp"), e.get("ocel:omap") or (), e.get("ocel:vmap"))
            for k, e in events.items()
            if isinstance(e, dict)
        ],
        "objects": [
            _object(k, o.get("ocel:type"), o.get("ocel:ovmap")) for k, o in objects.items() if isinstance(o, dict)
        ],
    }


def _of_xml(root: Any) -> Log:
    if root is None:
        raise InputError(_NO_LOG + "the XML has no <log>")
    objects = [o for group in children(root, "objects") for o in children(group, "object")]
    events = [e for group in children(root, "events") for e in children(group, "event")]
    if any(e.get("id") is None for e in events):
        return _of_first_xml(events, objects)
    return {
        "events": [
            _event(
                e.get("id"),
                e.get("type"),
                e.get("time"),
                [r.get("object-id") for group in children(e, "objects") for r in group if isinstance(r.tag, str)],
                None,
            )
            | {"attributes": _attributes(e)}
            for e in events
        ],
        "objects": [_object(o.get("id"), o.get("type"), None) | {"attributes": _attributes(o)} for o in objects],
    }


def _attributes(element: Any) -> list[dict[str, Any]]:
    found = (a for group in children(element, "attributes") for a in children(group, "attribute"))
    return [{"name": a.get("name"), "time": a.get("time") or "", "value": (a.text or "").strip()} for a in found]


def _of_first_xml(events: Iterable[Any], objects: Iterable[Any]) -> Log:
    def own(element: Any) -> dict[str, Any]:
        return {child.get("key"): child.get("value") for child in element if isinstance(child.tag, str)}

    def listed(element: Any, key: str) -> list[Any]:
        return [child for group in element if group.get("key") == key for child in group]

    return {
        "events": [
            _event(
                own(e).get("id"),
                own(e).get("activity"),
                own(e).get("timestamp"),
                [child.get("value") for child in listed(e, "omap")],
                {child.get("key"): child.get("value") for child in listed(e, "vmap")},
            )
            for e in events
        ],
        "objects": [
            _object(own(o).get("id"), own(o).get("type"), {c.get("key"): c.get("value") for c in listed(o, "ovmap")})
            for o in objects
        ],
    }


def _of_sqlite(content: bytes) -> Log:
    try:
        with closing(sqlite3.connect(":memory:")) as database:
            database.deserialize(content)
            database.execute("PRAGMA trusted_schema = OFF")
            database.row_factory = sqlite3.Row
            tables = {row["name"] for row in database.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
            if lacking := {"event", "object", "event_object"} - tables:
                raise InputError(_NO_LOG + f"the database has no table {min(lacking)}")
            rows = lambda table: [dict(row) for row in database.execute(f'SELECT * FROM "{table}"')]
            of_objects: dict[str, list[str]] = {}
            for row in rows("event_object"):
                of_objects.setdefault(row["ocel_event_id"], []).append(row["ocel_object_id"])
            values: dict[str, dict[str, dict[str, Any]]] = {"event": {}, "object": {}}
            for kind, found in values.items():
                known = (
                    {row["ocel_type_map"] for row in rows(f"{kind}_map_type")}
                    if f"{kind}_map_type" in tables
                    else set()
                )
                for table in sorted(f"{kind}_{name}" for name in known if f"{kind}_{name}" in tables):
                    for row in rows(table):
                        earlier = found.setdefault(row["ocel_id"], {})
                        earlier |= {k: v for k, v in row.items() if v is not None and k not in earlier}
            plain = lambda row: {k: v for k, v in row.items() if not k.startswith("ocel_")}
            events, objects = values["event"], values["object"]
            return {
                "events": [
                    _event(
                        ident := row["ocel_id"],
                        row["ocel_type"],
                        events.get(ident, {}).get("ocel_time"),
                        of_objects.get(ident, ()),
                        plain(events.get(ident, {})),
                    )
                    for row in rows("event")
                ],
                "objects": [
                    _object(row["ocel_id"], row["ocel_type"], plain(objects.get(row["ocel_id"], {})))
                    for row in rows("object")
                ],
            }
    except (sqlite3.Error, KeyError, IndexError) as error:
        raise InputError(_NO_LOG + f"the database cannot be read ({error})") from None


def _of_csv(content: bytes) -> Log:
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise InputError(f"it is not UTF-8 (byte {error.start})") from None
    above, delimiter = table_head(text)
    lines = list(io.StringIO(text, newline=""))[above:]
    try:
        rows = list(csv.DictReader(lines, delimiter=delimiter))
    except csv.Error as error:
        raise InputError(f"{_NO_LOG}a row cannot be split ({error})") from None
    types = [name for name in (rows[0] if rows else ()) if name and name.startswith(OBJECT_TYPE)]
    if not types:
        raise InputError(_NO_LOG + f"the CSV has no columns named {OBJECT_TYPE}...")
    objects: dict[str, str] = {}
    events = []
    for row in rows:
        ids = {name: _ids(row[name]) for name in types}
        objects |= {ident: name.removeprefix(OBJECT_TYPE) for name, found in ids.items() for ident in found}
        rest = {name: value for name, value in row.items() if name and not name.startswith("ocel:") and value}
        every = [ident for found in ids.values() for ident in found]
        events.append(_event(row.get("ocel:eid"), row.get("ocel:activity"), row.get("ocel:timestamp"), every, rest))
    return {"events": events, "objects": [_object(ident, kind, None) for ident, kind in objects.items()]}


def _ids(cell: str | None) -> list[str]:
    """Returns the ids of a cell: a list as Python or JSON writes it, or one id."""
    text = (cell or "").strip()
    if text.startswith(("[", "{", "(")):
        for parse in (json.loads, ast.literal_eval):
            try:
                return [str(ident) for ident in parse(text)]
            except (ValueError, SyntaxError, TypeError, RecursionError, MemoryError):
                continue
    return [text] if text else []


def _event(ident: Any, kind: Any, time: Any, objects: Iterable[Any], values: Any) -> dict[str, Any]:
    own = {} if ident is None else {"id": str(ident)}
    named = [{"objectId": str(o)} for o in objects if o is not None]
    return own | {"type": kind, "time": time, "relationships": named, "attributes": _listed(values)}


def _object(ident: Any, kind: Any, values: Any) -> dict[str, Any]:
    return {"id": None if ident is None else str(ident), "type": kind, "attributes": _listed(values)}


def _listed(values: Any) -> list[dict[str, Any]]:
    return [{"name": str(k), "value": v} for k, v in values.items()] if isinstance(values, dict) else []
