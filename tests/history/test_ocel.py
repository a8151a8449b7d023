"""OCEL 2.0: the objects of one type make the cases; events that several share are counted once."""

import json

import pytest


def thing(ident, kind="order", *attributes):
    return {"id": ident, "type": kind, "attributes": [dict(zip(("name", "value", "time"), a, strict=False)) for a in attributes]}


def event(ident, kind, day, *objects, **attributes):
    return {
        "id": ident, "type": kind, "time": f"2020-01-{day:02}T00:00:00Z",
        "attributes": [{"name": k, "value": v} for k, v in attributes.items()],
        "relationships": [{"objectId": o, "qualifier": "of"} for o in objects],
    }


def log(objects, events):
    kinds = [{"name": n, "attributes": []} for n in ("order", "item")]
    return json.dumps({"objectTypes": kinds, "eventTypes": [], "objects": objects, "events": events})


OBJECTS = [
    thing("o1", "order", ("total", 20, "1970-01-01T00:00:00Z"), ("total", 25, "2020-01-02T00:00:00Z"), ("customer", "ACME")),
    thing("o2"), thing("i1", "item"), thing("o3"),
]
EVENTS = [
    event("e2", "Pay", 2, "o1", resource="Ann", amount=5), event("e1", "Place", 1, "o1", "i1"), event("e3", "Ship", 3, "o1", "o2", "o1"),
    event("e4", "Restock", 4, "i1"), event("e5", "Ghost", 5, "nothing"),
]


def test_objects_of_the_named_type_are_cases(bench, keys) -> None:
    cases, rejects, state = bench.one("log.ocel.json", log(OBJECTS, EVENTS), 'object_type = "order"\nclient = { column = "customer" }')
    assert {c: keys(case) for c, case in cases.items()} == {"o1": ["Place", "Pay", "Ship"], "o2": ["Ship"]}
    assert (cases["o1"]["client"], dict(cases["o1"]["attributes"]), cases["o1"]["kind"]) == ("ACME", {"total": "20"}, "executed")
    pay = cases["o1"]["tasks"][1]
    assert (pay["actor"], pay["started_at"].day, dict(pay["attributes"])) == ("Ann", 2, {"amount": "5", "ocel:id": "e2"})
    assert rejects == []
    row = state.files[0]
    assert (row["format"], row["records"], row["records_used"], row["records_not_work"]) == ("ocel", 5, 3, 2)
    assert row["task_implementations"] == 4


def test_events_that_cannot_be_used_are_rejected_whole_and_the_rest_goes_on(bench, keys) -> None:
    bad = event("b1", "Bad", 1, "o1", "o2") | {"time": "2020-01-01T00:00:00"}
    cases, rejects, state = bench.one("log.ocel.json", log(OBJECTS, [bad, 7, {"type": 3}, *EVENTS]), 'object_type = "order"')
    assert keys(cases["o2"]) == ["Ship"]
    assert [(r["position"], r["reason_code"]) for r in rejects] == [(1, "no_timezone"), (2, "bad_event"), (3, "bad_event")]
    row = state.files[0]
    assert (row["records"], row["records_used"], row["records_not_work"], row["records_rejected"]) == (8, 3, 2, 3)


def test_a_case_of_another_file_rejects_the_events_that_name_it(bench) -> None:
    bench.put("s/a.csv", "case_id,activity\no2,A\n")
    cases, rejects, _ = bench.one("log.ocel.json", log(OBJECTS, EVENTS), 'object_type = "order"')
    assert [(r["position"], r["reason_code"]) for r in rejects] == [(3, "duplicate_case")]
    assert len(cases["o1"]["tasks"]) == 2


def test_the_only_type_need_not_be_named(bench) -> None:
    assert list(bench.one("log.ocel.json", log([thing("o1")], [event("e", "Pay", 1, "o1")]))[0]) == ["o1"]


@pytest.mark.parametrize(
    ("content", "settings", "reason"),
    [
        (log(OBJECTS, EVENTS), "", 'the types found are item (1), order (3); in source.toml say:\nobject_type = "item"'),
        (log(OBJECTS, EVENTS), 'object_type = "invoice"', "it has no object of the type invoice"),
        ('{"nodes": []}', "", "it is no OCEL 2.0 log"),
        ("[" * 100_000, "", "nested too deeply"),
        (log([thing(f"o{n}") for n in range(300)], [event("e", "A", 1, *(f"o{n}" for n in range(300)))] * 100), "", "they are no cases"),
    ],
    ids=["untold", "unknown", "other", "nested", "fan-out"],
)
def test_whole_files_that_are_refused(bench, content: str, settings: str, reason: str) -> None:
    _, rejects, state = bench.one("log.ocel.json", content, settings)
    assert reason in state.files[0]["reason"]
    assert (state.files[0]["status"], rejects) == ("rejected", [])
