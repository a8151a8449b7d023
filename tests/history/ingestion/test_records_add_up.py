"""Every record of every kind of file is accounted for, once, in the tables that a person reads."""

import json
import re
from typing import Any

import duckdb
import pytest

from opus_pipelines.core.schemas import REJECTS
from opus_pipelines.core.schemas import SOURCES as SOURCE_FILES
from opus_pipelines.history.ingestion.onboarding.report import report
from opus_pipelines.history.ingestion.onboarding.trial import findings_of, reading
from opus_pipelines.lake.layout import read_table
from opus_pipelines.reporting.tasks import select

HEAD = "case_id,activity,timestamp\n"
ROWS = [f"c{n // 3},{'ABC'[n % 3]},2024-03-0{1 + n // 3}T0{n % 9}:00:00Z\n" for n in range(12)]
XES = '<log>{}<event><string key="concept:name" value="G"/></event></log>'.format(
    "".join(
        f'<trace><string key="concept:name" value="{case}"/><event><string key="concept:name" value="{name}"/>'
        '<string key="lifecycle:transition" value="complete"/></event><event>'
        '<string key="concept:name" value="B"/><string key="lifecycle:transition" value="schedule"/></event></trace>'
        for case, name in (("a", "A"), ("b", ""), ("a", "C"))
    )
)
N8N = {"nodes": [{"name": n, "type": t} for n, t in (("A", "x"), ("N", "n8n-nodes-base.stickyNote"))]}
OCEL = {
    "objects": [{"id": "o1", "type": "order"}],
    "events": [
        {"id": "e1", "type": "A", "time": "2024-03-01T00:00:00Z", "relationships": [{"objectId": "o1"}]},
        {"id": "e1", "type": "A", "time": "2024-03-02T00:00:00Z", "relationships": [{"objectId": "o1"}]},
        {"id": "e2", "type": "A", "time": "2024-03-02T00:00:00Z"},
        {"id": "e3"},
    ],
}
BPMN = (
    '<definitions xmlns="http://www.omg.org/spec/BPMN/20100524/MODEL"><process id="p">'
    '<task id="a"/></process><process id="q"/></definitions>'
)
WIDE = '[table]\nsteps = ["A", "B"]\n[columns]\ncase = "id"\n'
SOURCES: dict[str, dict[str, str]] = {
    "plain": {"a.csv": HEAD + "".join(ROWS)},
    "rejected": {"a.csv": HEAD + "".join(ROWS) + "c1,,2024-03-01T00:00:00Z\n,A,2024-03-01T00:00:00Z\nc2,A,never\nc9\n"},
    "several files": {"a.csv": HEAD + "".join(ROWS), "b.csv": HEAD + "".join(ROWS[:4]) + "c1,D,2024-03-09T00:00:00Z\n"},
    "clients": {f"client={c}/a.csv": HEAD + "".join(ROWS) + "c1,,2024-03-09T00:00:00Z\n" for c in "xy"},
    "wide": {"source.toml": WIDE, "a.csv": "id,A,B\n1,2024-03-01T00:00:00Z,\n2,,\n,2024-03-01T00:00:00Z,never\n"},
    "two tables": {
        "source.toml": '[table]\ncases = "b.csv"\nkey = "id"\n',
        "a.csv": HEAD + "".join(ROWS) + "c1,,2024-03-09T00:00:00Z\n",
        "b.csv": "id,land\nc0,NL\nc0,NL\nc1,DE\nc2,NL\nc2,FR\nc8,FR\n,ES\n",
    },
    "xes": {"a.xes": XES},
    "jsonl": {"a.jsonl": '{"id": 1, "tasks": ["A"]}\n{"id": 1, "tasks": ["B"]}\n{"id": 2}\n'},
    "n8n": {"a.json": json.dumps(N8N)},
    "ocel": {"a.ocel.json": json.dumps(OCEL)},
    "bpmn": {"a.bpmn": BPMN},
}


@pytest.mark.parametrize("name", SOURCES)
def test_the_records_of_a_source_add_up(bench: Any, name: str) -> None:
    for path, content in SOURCES[name].items():
        bench.put(f"s/{path}", content)
    state = bench.read()
    assert state.failed == []
    for row in state.files:
        assert row["records"] == row["records_used"] + row["records_not_work"] + row["records_rejected"], row["path"]
        assert row["records_duplicate"] + row["records_corrected"] <= row["records_not_work"]
    total = sum(row["records"] for row in state.files)
    assert total > 0
    assert len(bench.rejects()) == sum(row["records_rejected"] for row in state.files)
    with duckdb.connect() as connection:
        connection.register("history_sources", read_table(SOURCE_FILES, bench.lake.folder(SOURCE_FILES)))
        connection.register("history_rejects", read_table(REJECTS, *(bench.lake.root / REJECTS.name).glob("*/*")))
        (shown,) = select(connection, "sources").to_arrow_table().to_pylist()
    parts = ("used", "no_work", "duplicate", "corrected", "put_aside", "rejected")
    assert shown["records"] == total == sum(shown[f"records_{part}"] for part in parts)
    with reading(bench.history / "s") as trial:
        lines = [line for line in report(trial, findings_of(trial)) if re.match(r"\s*records ", line)]
    for line in lines:
        whole, *rest = (int(number.replace(",", "")) for number in re.findall(r"[\d,]+(?= )", line))
        assert whole == total == sum(rest), line
    assert bool(lines) == (shown["records_used"] != total)
