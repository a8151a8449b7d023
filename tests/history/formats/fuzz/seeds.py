"""Small files of every format, each with as much of its format as a page holds, and heads of real files where there
are any.
"""

import csv
import gzip
import io
import json
import tarfile
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, date, datetime
from decimal import Decimal
from itertools import islice
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

REAL_BYTES = 60_000


@dataclass(frozen=True)
class Seed:
    """A file that reads well: its name tells the format, `settings` is its source.toml."""

    name: str
    content: bytes
    settings: str = ""


COSTS = 'timezone = "Europe/Paris"\ncurrency = "EUR"\nusd_per_unit = { EUR = 1.25 }\n'


def _attribute(kind: str, key: str, value: object, inner: str = "") -> str:
    return (
        f'<{kind} key="{key}" value="{value}">{inner}</{kind}>' if inner else f'<{kind} key="{key}" value="{value}"/>'
    )


def xes() -> bytes:
    """Lifecycles, nested attributes, lists, costs, globals and a stray event."""
    traces = []
    for n in range(6):
        events = "".join(
            "<event>"
            + _attribute("string", "concept:name", f"Task {m % 3}")
            + _attribute("string", "lifecycle:transition", transition)
            + _attribute("date", "time:timestamp", f"2020-01-0{n + 1}T0{m}:{minute}:00.000+01:00")
            + _attribute("string", "org:resource", "Ann")
            + _attribute("float", "cost:total", m * 1.5)
            + _attribute("string", "cost:currency", "EUR")
            + _attribute("int", "n", m, _attribute("boolean", "deep", "true"))
            + "</event>"
            for m in range(3)
            for transition, minute in (("schedule", "00"), ("start", "05"), ("complete", "15"))
        )
        own = _attribute("string", "concept:name", f"case {n}") + _attribute("float", "AMOUNT", 100 * n)
        listed = '<list key="l"><values>' + _attribute("string", "é", "ü") + "</values></list>"
        traces.append(f"<trace>{own}{listed}{events}</trace>")
    head = (
        '<extension name="Cost" prefix="cost" uri="http://x"/><global scope="event"><string '
        'key="concept:name" value="?"/></global>'
    )
    text = (
        f'<?xml version="1.0" encoding="UTF-8"?><log xes.version="1.0" xmlns="http://'
        f'www.xes-standard.org/">{head}{"".join(traces)}'
    )
    return f"{text}<event>{_attribute('string', 'concept:name', 'stray')}</event></log>".encode()


def csv_log() -> bytes:
    """Quoted fields with line ends, intervals, costs with signs, a case's own column."""
    text = io.StringIO()
    rows = csv.writer(text)
    rows.writerow(
        [
            "case_id",
            "activity",
            "start_time",
            "end_time",
            "resource",
            "actor_kind",
            "cost",
            "currency",
            "case:region",
            "note",
        ]
    )
    for n in range(24):
        start, end = f"2020-01-{1 + n // 4:02d} 0{n % 4}:00:00", f"2020-01-{1 + n // 4:02d} 0{n % 4}:30:00"
        rows.writerow(
            [
                f"c{n // 4}",
                f"Task, {n % 3}",
                start,
                end,
                "Bé",
                "human",
                f"{n}.25",
                "EUR",
                "west",
                f'said "{n}"\nand more',
            ]
        )
    return text.getvalue().encode()


def jsonl() -> bytes:
    """Nested records, predecessors, tokens, names of all kinds."""
    tasks = [
        {
            "activity": f"T{m}",
            "start": f"2020-01-01T0{m}:00:00Z",
            "end": f"2020-01-01T0{m}:30:00Z",
            "model": "gpt-4o",
            "tokens_in": 1000 * m,
            "tokens_out": 50,
            "cost": None if m else 2.5,
            "predecessors": [m - 1] if m else [],
            "inputs": ["a", "b"],
            "extra": {"deep": {"er": m}},
        }
        for m in range(4)
    ]
    records = [
        {
            "case_id": f"c{n}",
            "title": f"Case é {n}",
            "runs": n + 1,
            "total": 12.5,
            "currency": "EUR",
            "success": n % 2 == 0,
            "client": {"name": "Ann & Co", "mail": "a@b.org"},
            "tasks": tasks[: n + 1],
        }
        for n in range(5)
    ]
    return b"".join(json.dumps(r, ensure_ascii=n % 2 == 0).encode() + b"\n" for n, r in enumerate(records))


JSONL_SETTINGS = (
    COSTS
    + """weight = { column = "runs" }
[record]
title = "title"
case_cost = "total"
client = "client.name"
success = "success"
[task]
cost = "cost"
model = "model"
tokens_in = "tokens_in"
tokens_out = "tokens_out"
predecessors = "predecessors"
inputs = "inputs"
"""
)


def parquet() -> bytes:
    """Columns of most of Arrow's types."""
    size = 12
    packed = io.BytesIO()
    table = pa.table(
        {
            "case_id": [f"c{n // 3}" for n in range(size)],
            "activity": pa.array([f"T{n % 4}" for n in range(size)]).dictionary_encode(),
            "start_time": pa.array(
                [datetime(2020, 1, 1 + n, tzinfo=UTC) for n in range(size)], pa.timestamp("ns", "Europe/Paris")
            ),
            "end_time": pa.array(
                [datetime(2020, 1, 1 + n, 1, tzinfo=UTC) for n in range(size)], pa.timestamp("us", "UTC")
            ),
            "cost": pa.array([Decimal(n) / 4 for n in range(size)], pa.decimal128(20, 2)),
            "f": [n / 3 for n in range(size)],
            "day": [date(2020, 1, 1 + n) for n in range(size)],
            "bytes": [bytes([n, 255]) for n in range(size)],
            "nested": [{"a": [n, None], "b": {"c": "é"}} for n in range(size)],
            "nothing": pa.nulls(size),
        }
    )
    pq.write_table(table, packed, row_group_size=5)
    return packed.getvalue()


def bpmn() -> bytes:
    """Pools, lanes, gateways, a loop, a sub-process, a boundary event, notes and data."""
    return """<?xml version="1.0" encoding="UTF-8"?>
<bpmn:definitions xmlns:bpmn="http://www.omg.org/spec/BPMN/20100524/MODEL" xmlns:camunda="http://camunda.org/schema/1.0/bpmn">
<bpmn:collaboration id="co"><bpmn:participant id="pa" name="Pool" processRef="P"/><bpmn:participant id="pb" processRef="Q"/>
</bpmn:collaboration>
<bpmn:process id="P" name="Handle"><bpmn:documentation>All of it</bpmn:documentation>
<bpmn:laneSet id="ls"><bpmn:lane id="l1" name="Clerk"><bpmn:flowNodeRef>a</bpmn:flowNodeRef></bpmn:lane></bpmn:laneSet>
<bpmn:startEvent id="st"/><bpmn:userTask id="a" name="Check" camunda:assignee="ann"/><bpmn:exclusiveGateway id="g"/>
<bpmn:serviceTask id="b" name="Pay"><bpmn:documentation>Pays</bpmn:documentation></bpmn:serviceTask>
<bpmn:subProcess id="s" name="Sub"><bpmn:task id="c" name="C"><bpmn:multiInstanceLoopCharacteristics isSequential="true"/></bpmn:task>
<bpmn:sequenceFlow id="f9" sourceRef="c" targetRef="d"/><bpmn:scriptTask id="d" name="D"/></bpmn:subProcess>
<bpmn:boundaryEvent id="be" attachedToRef="b"/><bpmn:callActivity id="ca" name="Call" calledElement="X"/><bpmn:endEvent id="en"/>
<bpmn:sequenceFlow id="f1" sourceRef="st" targetRef="a"/><bpmn:sequenceFlow id="f2" sourceRef="a" targetRef="g"/>
<bpmn:sequenceFlow id="f3" sourceRef="g" targetRef="b"/><bpmn:sequenceFlow id="f4" sourceRef="g" targetRef="a"/>
<bpmn:sequenceFlow id="f5" sourceRef="b" targetRef="s"/><bpmn:sequenceFlow id="f6" sourceRef="s" targetRef="en"/>
<bpmn:sequenceFlow id="f7" sourceRef="be" targetRef="ca"/><bpmn:textAnnotation id="t"><bpmn:text>Mind é</bpmn:text></bpmn:textAnnotation>
<bpmn:association id="as" sourceRef="b" targetRef="t"/></bpmn:process><bpmn:process id="Q"/></bpmn:definitions>""".encode()


def ocel() -> bytes:
    """Two types of objects, shared events, attributes that change, one event of no case."""
    objects = [
        {
            "id": f"o{n}",
            "type": "order",
            "attributes": [{"name": "price", "time": f"1970-01-0{m + 1}T00:00:00Z", "value": n + m} for m in range(2)],
        }
        for n in range(4)
    ]
    events = [
        {
            "id": f"e{n}",
            "type": f"Task {n % 3}",
            "time": f"2020-01-0{n + 1}T00:00:00Z",
            "attributes": [{"name": "cost", "value": n * 1.5}, {"name": "resource", "value": "Ann"}],
            "relationships": [{"objectId": f"o{m}", "qualifier": "q"} for m in range(n % 4)],
        }
        for n in range(8)
    ]
    types = [{"name": "order", "attributes": [{"name": "price", "type": "float"}]}]
    return json.dumps(
        {"objectTypes": types, "eventTypes": [], "objects": [*objects, {"id": "i", "type": "item"}], "events": events}
    ).encode()


def n8n() -> bytes:
    """A trigger, an agent with a model and a tool, a loop, a disabled node, a note."""
    names = ["Start", "Fetch", "Agent", "Model", "Loop", "Off", "Note"]
    kinds = [
        "n8n-nodes-base.webhook",
        "n8n-nodes-base.httpRequest",
        "@n8n/n8n-nodes-langchain.agent",
        "@n8n/n8n-nodes-langchain.lmChatOpenAi",
        "n8n-nodes-base.splitInBatches",
        "n8n-nodes-base.set",
        "n8n-nodes-base.stickyNote",
    ]
    nodes = [
        {
            "id": str(n),
            "name": names[n],
            "type": kinds[n],
            "typeVersion": 1,
            "position": [n, 0],
            "disabled": names[n] == "Off",
            "parameters": {
                "content": "Sort é mails",
                "model": {"value": "gpt-4o"},
                "text": "Be brief",
                "operation": "get",
            },
            "notes": "n",
        }
        for n in range(7)
    ]
    links = {
        "Start": {"main": [[{"node": "Fetch", "type": "main", "index": 0}]]},
        "Fetch": {"main": [[{"node": "Agent"}], [{"node": "Off"}]]},
        "Model": {"ai_languageModel": [[{"node": "Agent", "type": "ai_languageModel", "index": 0}]]},
        "Agent": {"main": [[{"node": "Loop"}]]},
        "Loop": {"main": [[], [{"node": "Fetch"}]]},
        "Off": {"main": [[{"node": "Loop"}]]},
    }
    return json.dumps({"name": "Flow", "nodes": nodes, "connections": links, "tags": ["x"], "settings": {}}).encode()


def written() -> list[Seed]:
    """One seed a format."""
    return [
        Seed("log.xes", xes(), COSTS),
        Seed("log.csv", csv_log(), COSTS),
        Seed("log.jsonl", jsonl(), JSONL_SETTINGS),
        Seed("log.parquet", parquet(), COSTS),
        Seed("model.bpmn", bpmn()),
        Seed("flow.json", n8n()),
        Seed("log.ocel.json", ocel(), 'object_type = "order"\n' + COSTS),
    ]


CSV_SETTINGS = 'timezone = "UTC"\n'


def real(data: Path) -> Iterator[Seed]:
    """Heads of real files: whole records up to some ten kilobytes."""
    logs = data / "event_logs"
    for log in sorted(logs.rglob("*.xes.gz")):
        with gzip.open(log) as file:
            head = file.read(10 * REAL_BYTES)
        end = max(head.find(b"</trace>"), head.rfind(b"</trace>", 0, REAL_BYTES))
        yield Seed("log.xes", head[: end + len(b"</trace>")] + b"</log>", CSV_SETTINGS)
    for log in sorted(logs.rglob("*.csv.gz")):
        with gzip.open(log) as file:
            yield Seed("log.csv", b"".join(islice(file, 200)), CSV_SETTINGS)
    with gzip.open(data / "sopbench" / "traces.jsonl.gz") as file:
        yield Seed("log.jsonl", b"".join(line for line in islice(file, 40) if len(line) < REAL_BYTES))
    for archive, name in (("bpmn/models.tar.gz", "model.bpmn"), ("n8n/workflows.tar.gz", "flow.json")):
        with tarfile.open(data / archive) as packed:
            files = [m for m in packed.getmembers() if m.isfile() and m.size < REAL_BYTES]
            for member in sorted(files, key=lambda m: m.name)[:: len(files) // 12]:
                content = packed.extractfile(member)
                yield Seed(name, content.read() if content else b"")
