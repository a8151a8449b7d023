"""Small files of every format, each with as much of its format as a page holds, and heads of real files where there
are any.
"""

import csv
import gzip
import io
import json
import sqlite3
import tarfile
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, date, datetime
from decimal import Decimal
from itertools import islice
from pathlib import Path

import openpyxl
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


def ocel_xml() -> bytes:
    """Two events of an order, an item, and an attribute that changes."""
    return b"""<log><object-types/><objects><object id="o1" type="order"><attributes>
<attribute name="total" time="1970-01-01T00:00:00Z">20</attribute></attributes></object><object id="i1" type="item"/></objects>
<events><event id="e1" type="Place" time="2020-01-01T00:00:00Z"><objects><relationship object-id="o1" qualifier="x"/>
<relationship object-id="i1" qualifier=""/></objects></event><event id="e2" type="Pay" time="2020-01-02T00:00:00Z"><attributes>
<attribute name="resource">Ann</attribute></attributes><objects><relationship object-id="o1" qualifier=""/></objects></event>
</events></log>"""


def ocel_csv() -> bytes:
    """The same as a table."""
    head = "ocel:eid,ocel:activity,ocel:timestamp,resource,ocel:type:order,ocel:type:item"
    rows = [f"e{n},Task {n % 3},2020-01-0{n + 1}T00:00:00Z,Ann,\"['o{n % 2}']\",\"['i1', 'i2']\"" for n in range(6)]
    return "\n".join([head, *rows]).encode()


def ocel_sqlite() -> bytes:
    """The same as a database."""
    base = sqlite3.connect(":memory:")
    base.executescript("""
    CREATE TABLE event (ocel_id TEXT, ocel_type TEXT); CREATE TABLE object (ocel_id TEXT, ocel_type TEXT);
    CREATE TABLE event_object (ocel_event_id TEXT, ocel_object_id TEXT, ocel_qualifier TEXT);
    CREATE TABLE event_map_type (ocel_type TEXT, ocel_type_map TEXT); CREATE TABLE event_pay (ocel_id TEXT, ocel_time TEXT);
    CREATE TABLE object_map_type (ocel_type TEXT, ocel_type_map TEXT); CREATE TABLE object_order (ocel_id TEXT, ocel_time TEXT,
    ocel_changed_field TEXT, total INTEGER); INSERT INTO event VALUES ('e1', 'Pay'), ('e2', 'Pay');
    INSERT INTO object VALUES ('o1', 'order'); INSERT INTO event_object VALUES ('e1', 'o1', ''), ('e2', 'o1', '');
    INSERT INTO event_map_type VALUES ('Pay', 'pay'); INSERT INTO object_map_type VALUES ('order', 'order');
    INSERT INTO event_pay VALUES ('e1', '2020-01-01T00:00:00Z'), ('e2', '2020-01-02T00:00:00Z');
    INSERT INTO object_order VALUES ('o1', '1970-01-01T00:00:00Z', NULL, 20);""")
    base.commit()
    return base.serialize()


def workbook() -> bytes:
    """A title, a header, rows with dates and numbers, a merged cell, a second sheet."""
    book = openpyxl.Workbook()
    sheet = book.active
    sheet.append(["Report"])
    sheet.append(["case_id", "activity", "start_time", "end_time", "cost"])
    for n in range(12):
        sheet.append([f"c{n // 4}", f"T{n % 3}", datetime(2020, 1, 1 + n, 8), datetime(2020, 1, 1 + n, 9), 1.5 * n])
    sheet.merge_cells("A3:A4")
    book.create_sheet("Notes").append(["Nothing"])
    packed = io.BytesIO()
    book.save(packed)
    return packed.getvalue()


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
        *(Seed(f"log.ocel.{end}", content, 'object_type = "order"\n' + COSTS) for end, content in ocel_forms()),
        Seed("log.xlsx", workbook(), 'timezone = "UTC"\n'),
        Seed(
            "log.events.jsonl",
            b"".join(
                b'{"case_id": "c%d", "activity": "T%d", "time": "2020-01-0%dT00:00:00Z", "x": {"y": 1}}\n'
                % (n // 3, n % 3, n % 9 + 1)
                for n in range(9)
            ),
        ),
    ]


def ocel_forms() -> list[tuple[str, bytes]]:
    return [("json", ocel()), ("xml", ocel_xml()), ("csv", ocel_csv()), ("sqlite", ocel_sqlite())]


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
