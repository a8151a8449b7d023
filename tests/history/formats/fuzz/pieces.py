"""Parts that hostile files are made of."""

import gzip
import io
import json
from collections.abc import Callable, Iterator
from functools import cache

import pyarrow as pa
import pyarrow.parquet as pq
from seeds import Seed

MIB = 1 << 20
DEEP = 100_000
BPMN_HEAD = '<definitions xmlns="http://www.omg.org/spec/BPMN/20100524/MODEL"><process id="P">'
BPMN_END = "</process></definitions>"
TRACE = '<log><trace><string key="concept:name" value="{case}"/>{more}<event>{activity}{event}</event></trace></log>'
ACTIVITY = '<string key="concept:name" value="A"/>'
CSV_HEAD = "case_id,activity,start_time,end_time,cost,note\n"


def xes(case: str = "c", more: str = "", event: str = "") -> bytes:
    return TRACE.format(case=case, more=more, event=event, activity=ACTIVITY).encode()


def record(**values: object) -> bytes:
    return json.dumps({"case_id": "c", "tasks": [{"activity": "A"}], **values}).encode()


def n8n(nodes: list[object], connections: object = None, **more: object) -> bytes:
    return json.dumps({"name": "F", "nodes": nodes, "connections": connections or {}, **more}).encode()


def ocel(events: list[object], objects: list[object] | None = None) -> bytes:
    return json.dumps({"objects": objects or [{"id": "o", "type": "order"}], "events": events}).encode()


def event(**values: object) -> dict[str, object]:
    return {"type": "A", "time": "2020-01-01T00:00:00Z", "relationships": [{"objectId": "o"}], **values}


def parquet(dictionary: bool = True, **columns: object) -> bytes:
    packed = io.BytesIO()
    pq.write_table(pa.table(columns), packed, use_dictionary=dictionary, compression="zstd")
    return packed.getvalue()


@cache
def packed_filler(byte: bytes) -> bytes:
    return gzip.compress(byte * (64 * MIB), 9, mtime=0)


def bomb(head: bytes, byte: bytes = b"a") -> bytes:
    """A gzip file of half a gigabyte: its members follow each other."""
    return gzip.compress(head, mtime=0) + packed_filler(byte) * 8


Cases = Iterator[tuple[str, Callable[[], Seed]]]
