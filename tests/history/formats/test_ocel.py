"""OCEL 2.0: the objects of one type make the cases; events that several share are counted once."""

import json
import sqlite3
from typing import Any

import pytest


def thing(ident: str, kind: str = "order", *attributes: Any) -> Any:
    return {
        "id": ident,
        "type": kind,
        "attributes": [dict(zip(("name", "value", "time"), a, strict=False)) for a in attributes],
    }


def event(ident: str, kind: str, day: int, *objects: Any, **attributes: Any) -> Any:
    return {
        "id": ident,
        "type": kind,
        "time": f"2020-01-{day:02}T00:00:00Z",
        "attributes": [{"name": k, "value": v} for k, v in attributes.items()],
        "relationships": [{"objectId": o, "qualifier": "of"} for o in objects],
    }


def log(objects: list[dict[str, Any]], events: list[dict[str, Any]]) -> Any:
    kinds = [{"name": n, "attributes": []} for n in ("order", "item")]
    return json.dumps({"objectTypes": kinds, "eventTypes": [], "objects": objects, "events": events})


OBJECTS = [
    thing(
        "o1",
        "order",
        ("total", 20, "1970-01-01T00:00:00Z"),
        ("total", 25, "2020-01-02T00:00:00Z"),
        ("customer", "ACME"),
    ),
    thing("o2"),
    thing("i1", "item"),
    thing("o3"),
]
EVENTS = [
    event("e2", "Pay", 2, "o1", resource="Ann", amount=5),
    event("e1", "Place", 1, "o1", "i1"),
    event("e3", "Ship", 3, "o1", "o2", "o1"),
    event("e4", "Restock", 4, "i1"),
    event("e5", "Ghost", 5, "nothing"),
]


def test_objects_of_the_named_type_are_cases(bench: Any, keys: Any) -> None:
    cases, rejects, state = bench.one(
        "log.ocel.json", log(OBJECTS, EVENTS), 'object_type = "order"\nclient = { column = "customer" }'
    )
    assert {c: keys(case) for c, case in cases.items()} == {"o1": ["Place", "Pay", "Ship"], "o2": ["Ship"]}
    assert (cases["o1"]["client"], dict(cases["o1"]["attributes"]), cases["o1"]["kind"]) == (
        "ACME",
        {"total": "20"},
        "executed",
    )
    pay = cases["o1"]["tasks"][1]
    assert (pay["actor"], pay["started_at"].day, dict(pay["attributes"])) == (
        "Ann",
        2,
        {"amount": "5", "ocel:id": "e2"},
    )
    assert rejects == []
    row = state.files[0]
    assert (row["format"], row["records"], row["records_used"], row["records_not_work"]) == ("ocel", 5, 3, 2)
    assert row["task_implementations"] == 4


def test_events_that_cannot_be_used_are_rejected_whole_and_the_rest_goes_on(bench: Any, keys: Any) -> None:
    bad = event("b1", "Bad", 1, "o1", "o2") | {"time": "2020-01-01T00:00:00"}
    cases, rejects, state = bench.one(
        "log.ocel.json", log(OBJECTS, [bad, 7, {"type": 3}, *EVENTS]), 'object_type = "order"'
    )
    assert cases == {}
    assert [(r["position"], r["reason_code"], r["case_id"], r["cause_position"]) for r in rejects] == [
        (1, "no_timezone", "o1", None),
        (2, "bad_event", None, None),
        (3, "bad_event", None, None),
        (4, "case_quarantined", "o1", 1),
        (5, "case_quarantined", "o1", 1),
        (6, "case_quarantined", "o1", 1),
    ]
    row = state.files[0]
    assert (row["records"], row["records_used"], row["records_not_work"], row["records_rejected"]) == (8, 0, 2, 6)
    assert (row["cases_quarantined"], row["records_without_case"]) == (2, 2)


def test_an_event_of_a_quarantined_case_and_a_good_one_is_used(bench: Any, keys: Any) -> None:
    bad = event("b1", "Bad", 1, "o1") | {"time": "2020-01-01T00:00:00"}
    cases, rejects, state = bench.one("log.ocel.json", log(OBJECTS, [bad, *EVENTS]), 'object_type = "order"')
    assert {case_id: keys(case) for case_id, case in cases.items()} == {"o2": ["Ship"]}
    assert [(r["position"], r["reason_code"]) for r in rejects] == [
        (1, "no_timezone"),
        (2, "case_quarantined"),
        (3, "case_quarantined"),
    ]
    row = state.files[0]
    assert (row["records"], row["records_used"], row["records_not_work"], row["records_rejected"]) == (6, 1, 2, 3)


def test_an_event_id_that_comes_again_corrects_the_event(bench: Any, keys: Any) -> None:
    events = [
        event("e1", "Place", 1, "o1"),
        event("e2", "Pay", 2, "o1"),
        event("e1", "Place", 1, "o1"),
        event("e2", "Paid", 3, "o1"),
    ]
    cases, rejects, state = bench.one("log.ocel.json", log(OBJECTS, events), 'object_type = "order"')
    assert (keys(cases["o1"]), rejects) == (["Place", "Paid"], [])
    row = state.files[0]
    assert (row["records"], row["records_used"], row["records_duplicate"], row["records_corrected"]) == (4, 2, 1, 1)


def test_a_case_of_another_file_rejects_the_events_that_name_it(bench: Any) -> None:
    bench.put("s/a.csv", "case_id,activity\no2,A\n")
    cases, rejects, _ = bench.one("log.ocel.json", log(OBJECTS, EVENTS), 'object_type = "order"')
    assert [(r["position"], r["reason_code"]) for r in rejects] == [
        (1, "case_quarantined"),
        (2, "case_quarantined"),
        (3, "duplicate_case"),
    ]
    assert list(cases) == ["o2"]


def test_the_only_type_need_not_be_named(bench: Any) -> None:
    assert list(bench.one("log.ocel.json", log([thing("o1")], [event("e", "Pay", 1, "o1")]))[0]) == ["o1"]


@pytest.mark.parametrize(
    ("content", "settings", "reason"),
    [
        (
            log(OBJECTS, EVENTS),
            "",
            'the types found are item (1), order (3); in source.toml say:\nobject_type = "item"',
        ),
        (log(OBJECTS, EVENTS), 'object_type = "invoice"', "it has no object of the type invoice"),
        ('{"nodes": []}', "", "it is no OCEL 2.0 log"),
        ("[" * 100_000, "", "nested too deeply"),
        (
            log(
                [thing(f"o{n}") for n in range(300)],
                [event(f"e{m}", "A", 1, *(f"o{n}" for n in range(300))) for m in range(100)],
            ),
            "",
            "they are no cases",
        ),
    ],
    ids=["untold", "unknown", "other", "nested", "fan-out"],
)
def test_whole_files_that_are_refused(bench: Any, content: str, settings: str, reason: str) -> None:
    _, rejects, state = bench.one("log.ocel.json", content, settings)
    assert reason in state.files[0]["reason"]
    assert (state.files[0]["status"], rejects) == ("rejected", [])


def first_json() -> str:
    return json.dumps(
        {
            "ocel:events": {
                "e1": {"ocel:activity": "Place", "ocel:timestamp": "2020-01-01T00:00:00Z", "ocel:omap": ["o1", "i1"]},
                "e2": {
                    "ocel:activity": "Pay",
                    "ocel:timestamp": "2020-01-02T00:00:00Z",
                    "ocel:omap": ["o1"],
                    "ocel:vmap": {"resource": "Ann"},
                },
            },
            "ocel:objects": {
                "o1": {"ocel:type": "order", "ocel:ovmap": {"total": 20}},
                "i1": {"ocel:type": "item", "ocel:ovmap": {}},
            },
        }
    )


def second_xml() -> str:
    return """<?xml version="1.0"?><log><object-types/><objects><object id="o1" type="order"><attributes>
    <attribute name="total" time="1970-01-01T00:00:00Z">20</attribute></attributes></object><object id="i1" type="item"/>
    </objects><events><event id="e1" type="Place" time="2020-01-01T00:00:00Z"><objects>
    <relationship object-id="o1" qualifier="x"/><relationship object-id="i1" qualifier=""/></objects></event>
    <event id="e2" type="Pay" time="2020-01-02T00:00:00Z"><attributes><attribute name="resource">Ann</attribute>
    </attributes><objects><relationship object-id="o1" qualifier=""/></objects></event></events></log>"""


def first_xml() -> str:
    event = '<event><string key="id" value="{}"/><string key="activity" value="{}"/><date key="timestamp" value="{}"/>'
    return f"""<log><global scope="event"/><events>{event.format("e1", "Place", "2020-01-01T00:00:00Z")}<list key="omap">
    <string key="object-id" value="o1"/><string key="object-id" value="i1"/></list><list key="vmap"/></event>
    {event.format("e2", "Pay", "2020-01-02T00:00:00Z")}<list key="omap"><string key="object-id" value="o1"/></list>
    <list key="vmap"><string key="resource" value="Ann"/></list></event></events><objects><object>
    <string key="id" value="o1"/><string key="type" value="order"/><list key="ovmap"><float key="total" value="20"/></list>
    </object><object><string key="id" value="i1"/><string key="type" value="item"/></object></objects></log>"""


def database() -> bytes:
    base = sqlite3.connect(":memory:")
    base.executescript("""
    CREATE TABLE event (ocel_id TEXT, ocel_type TEXT); CREATE TABLE object (ocel_id TEXT, ocel_type TEXT);
    CREATE TABLE event_object (ocel_event_id TEXT, ocel_object_id TEXT, ocel_qualifier TEXT);
    CREATE TABLE event_map_type (ocel_type TEXT, ocel_type_map TEXT);
    CREATE TABLE object_map_type (ocel_type TEXT, ocel_type_map TEXT);
    CREATE TABLE event_place (ocel_id TEXT, ocel_time TEXT); CREATE TABLE event_pay (ocel_id TEXT, ocel_time TEXT, resource TEXT);
    CREATE TABLE object_order (ocel_id TEXT, ocel_time TEXT, ocel_changed_field TEXT, total INTEGER);
    INSERT INTO event VALUES ('e1', 'Place'), ('e2', 'Pay'); INSERT INTO object VALUES ('o1', 'order'), ('i1', 'item');
    INSERT INTO event_object VALUES ('e1', 'o1', ''), ('e1', 'i1', ''), ('e2', 'o1', '');
    INSERT INTO event_map_type VALUES ('Place', 'place'), ('Pay', 'pay');
    INSERT INTO object_map_type VALUES ('order', 'order');
    INSERT INTO event_place VALUES ('e1', '2020-01-01T00:00:00Z');
    INSERT INTO event_pay VALUES ('e2', '2020-01-02T00:00:00Z', 'Ann');
    INSERT INTO object_order VALUES ('o1', '1970-01-01T00:00:00Z', NULL, 20), ('o1', '2020-01-02T00:00:00Z', 'total', 25);
    """)
    return base.serialize()


CSV = """ocel:eid,ocel:timestamp,ocel:activity,ocel:type:order,ocel:type:item,resource
e1,2020-01-01T00:00:00Z,Place,['o1'],"[""i1""]",
e2,2020-01-02T00:00:00Z,Pay,o1,,Ann
"""


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("a.jsonocel", first_json()),
        ("a.ocel.json", first_json()),
        ("a.xmlocel", second_xml()),
        ("a.ocel.xml", first_xml()),
        ("a.sqlite", database()),
        ("a.ocel.csv", CSV),
    ],
)
def test_every_form_gives_the_same_case(bench: Any, name: str, content: str | bytes) -> None:
    cases, rejects, state = bench.one(name, content, 'object_type = "order"')
    assert state.failed == []
    steps = [(t["title"], t["ended_at"].day, t["actor"]) for t in cases["o1"]["tasks"]]
    assert (steps, rejects) == ([("Place", 1, None), ("Pay", 2, "Ann")], [])
    assert dict(cases["o1"]["attributes"]) == ({} if name.endswith("csv") else {"total": "20"})
    failed = bench.one(name, content)[2].failed[0]
    assert "item (1), order (1)" in failed


def test_object_centric_csv_under_another_name_is_told(bench: Any) -> None:
    failed = bench.one("a.csv", CSV)[2].failed[0]
    assert "*.ocel.csv" in failed
    assert "order, item" in failed


@pytest.mark.parametrize(
    ("name", "content"),
    [("a.sqlite", b"SQLite format 3\0" + b"x" * 99), ("a.xmlocel", "<x/>"), ("a.ocel.csv", "a,b\n1,2\n")],
)
def test_what_is_no_object_centric_log_is_refused(bench: Any, name: str, content: str | bytes) -> None:
    assert "OCEL" in bench.one(name, content, 'object_type = "order"')[2].failed[0]
