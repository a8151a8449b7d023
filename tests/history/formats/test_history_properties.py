"""Whatever is done to a file: no crash, and every record is used, no work, or rejected."""

import io
import json
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

CSV = b"case_id,activity,lifecycle,start_time,end_time,cost\n" + b"".join(
    b'%d,"T %d",complete,2020-01-0%dT00:00:00Z,2020-01-0%dT01:00:00Z,%d.5\n' % (n // 3, n % 4, 1 + n % 5, 1 + n % 5, n)
    for n in range(9)
)
JSONL = b"".join(
    json.dumps(
        {
            "case_id": f"c{n}",
            "tasks": [{"activity": f"T{m}", "start": 1583298367 + m, "cost": m} for m in range(n)],
            "x": {"y": "é"},
        }
    ).encode()
    + b"\n"
    for n in range(4)
)
XES = (
    b"<log>"
    + b"".join(
        b'<trace><string key="concept:name" value="c%d"/><event><string key="concept:name" value="A"/'
        b'><date key="time:timestamp" '
        b'value="2020-01-01T00:00:00Z"/></event></trace>' % n
        for n in range(4)
    )
    + b"</log>"
)
_PACKED = io.BytesIO()
pq.write_table(pa.table({"case_id": ["1", "1", "2"], "activity": ["A", "B", None], "cost": [1.5, None, 2.0]}), _PACKED)
PARQUET = _PACKED.getvalue()
BPMN = (
    b'<definitions xmlns="http://www.omg.org/spec/BPMN/20100524/MODEL"><process id="P"><task '
    b'id="a" name="A"/><exclusiveGateway id="g"/>'
    b'<subProcess id="s"><userTask id="b" name="B"/></subProcess><sequenceFlow sourceRef="a" targetRef="g"/>'
    b'<sequenceFlow sourceRef="g" targetRef="s"/><sequenceFlow sourceRef="s" targetRef="a"/></'
    b'process><process id="Q"/></definitions>'
)
N8N = json.dumps(
    {
        "name": "N",
        "nodes": [
            {"name": f"n{n}", "type": "t", "disabled": n == 2, "parameters": {"model": "m"}, "notes": "é"}
            for n in range(4)
        ],
        "connections": {f"n{n}": {"main": [[{"node": f"n{(n + 1) % 4}"}]]} for n in range(4)},
    }
).encode()
OCEL = json.dumps(
    {
        "objects": [{"id": f"o{n}", "type": "order", "attributes": [{"name": "x", "value": n}]} for n in range(3)],
        "events": [
            {
                "id": f"e{n}",
                "type": "T",
                "time": f"2020-01-0{n + 1}T00:00:00Z",
                "relationships": [{"objectId": f"o{m}"} for m in range(n)],
            }
            for n in range(4)
        ],
    }
).encode()
LOGS = {
    "log.csv": CSV,
    "log.jsonl": JSONL,
    "log.xes": XES,
    "log.bpmn": BPMN,
    "log.json": N8N,
    "log.ocel.json": OCEL,
    "log.parquet": PARQUET,
}
PIECES = st.sampled_from(
    [
        b"",
        b",",
        b'"',
        b"\n",
        b"\xff",
        b"\x00",
        b"-1",
        b"nan",
        b"1",
        b"\\u0000",
        b"\\ud800",
        b"[",
        b"}",
        b"<",
        b"&",
        b"2020-01-01",
        b"\r",
    ]
)
MUTATIONS = st.lists(st.tuples(st.integers(0, 2000), st.integers(0, 6), PIECES), min_size=1, max_size=5)


def mutated(content: bytes, mutations: list[tuple[int, int, bytes]]) -> bytes:
    for place, length, piece in mutations:
        at = place % (len(content) + 1)
        content = content[:at] + piece + content[at + length :]
    return content


@pytest.mark.long
@settings(max_examples=80, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(kind=st.sampled_from(sorted(LOGS.items())), mutations=MUTATIONS)
def test_counts_add_up_on_mutated_files(
    make_bench: Any, kind: tuple[str, bytes], mutations: list[tuple[int, int, bytes]]
) -> None:
    bench = make_bench()
    name, content = kind
    cases, rejects, state = bench.one(
        name,
        mutated(content, mutations),
        '[columns]\ncase = "case_id"\nactivity = "activity"\n' if name.endswith("csv") else "",
    )
    (row,) = state.files
    assert row["records"] == row["records_used"] + row["records_not_work"] + row["records_rejected"]
    assert row["records_rejected"] == len(rejects)
    assert row["implementations"] == len(cases)
    assert row["task_implementations"] == sum(len(c["tasks"]) for c in cases.values())
    assert (row["status"] == "rejected") == bool(row["reason"]) == bool(state.failed)
    assert all(r["reason_code"] and r["reason"] and r["position"] > 0 for r in rejects)
