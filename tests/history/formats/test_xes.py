"""XES: traces and events become cases; what is broken or dangerous is refused."""

import gzip
import re
from typing import Any

import pytest

TRACE = """<trace><string key="concept:name" value="{name}"/>{attributes}{events}</trace>"""
EVENT = (
    '<event><string key="concept:name" value="{name}"/><date key="time:timestamp" value="2020-01-0{day}T00:00:00Z"/>'
    '<string key="lifecycle:transition" value="{transition}"/>{more}</event>'
)


def event(name: str, day: int = 1, transition: str = "complete", more: str = "") -> Any:
    return EVENT.format(name=name, day=day, transition=transition, more=more)


def log(*traces: Any, head: str = "", open_tag: str = '<log xmlns="http://www.xes-standard.org/">') -> str:
    return f'<?xml version="1.0"?>{head}{open_tag}{"".join(traces)}</log>'


def trace(name: str, *events: Any, attributes: str = "") -> Any:
    return TRACE.format(name=name, attributes=attributes, events="".join(events))


def test_a_trace_is_a_case(bench: Any) -> None:
    attributes = (
        '<string key="AMOUNT" value="20"/><string key="title" value="A loan"/><string '
        'key="concept:description" value="Please"/>'
    )
    first = event(
        "A",
        2,
        "START",
        '<string key="org:resource" value="Ann"/><float key="cost:total" value="2.5"/><string key="x" value="1"/>',
    )
    content = log(trace("c/../1", first, event("A", 3, "Complete"), event("B", 1, "schedule"), attributes=attributes))
    cases, rejects, state = bench.one("log.xes.gz", content, 'industry = "loans"\nclient = "a/../b"')
    case = cases["c/../1"]
    assert (case["industry"], case["client"], case["title"], case["description"]) == (
        "loans",
        "a/../b",
        "A loan",
        "Please",
    )
    assert case["attributes"] == [("AMOUNT", "20")]
    assert case["cost_usd"] == 2.5
    (task,) = case["tasks"]
    assert (task["task_key"], task["actor"], task["duration_ms"], task["cost_usd"], task["cost_basis"]) == (
        "A",
        "Ann",
        86_400_000.0,
        2.5,
        "observed",
    )
    assert task["attributes"] == [("x", "1")]
    assert not rejects
    row = state.files[0]
    assert (row["status"], row["records"], row["records_used"], row["records_not_work"], row["implementations"]) == (
        "loaded",
        3,
        2,
        1,
        1,
    )


def test_a_bare_case_id_is_no_title_and_mapped_attributes_are(bench: Any) -> None:
    content = log(trace("c1", event("A"), attributes='<string key="kind" value="Motor"/>'), trace("c2"))
    assert {k: c["title"] for k, c in bench.one("log.xes", content)[0].items()} == {"c1": None, "c2": None}
    cases, _, _ = bench.one("log.xes", content, '[columns]\ntitle = "kind"')
    assert cases["c1"]["title"] == "Motor"
    assert cases["c1"]["attributes"] == []
    assert cases["c2"]["tasks"] == []


def test_a_log_with_neither_start_nor_complete_counts_every_event(bench: Any, keys: Any) -> None:
    with_neither = log(trace("c1", event("A", 1, "schedule"), event("B", 2, "assign")))
    assert keys(bench.one("log.xes", with_neither)[0]["c1"]) == ["A", "B"]
    with_one_elsewhere = log(trace("c1", event("A", 1, "schedule"), event("B", 2, "assign")), trace("c2", event("C")))
    cases, _, state = bench.one("log.xes", with_one_elsewhere)
    assert [keys(cases[c]) for c in ("c1", "c2")] == [[], ["C"]]
    assert (state.files[0]["records_not_work"], state.files[0]["records_used"]) == (2, 1)


def test_an_activity_template_makes_the_key(bench: Any, keys: Any) -> None:
    content = log(trace("c1", event("A", 1, "start"), event("A", 2, "complete")))
    assert keys(bench.one("log.xes", content, 'activity = "{concept:name} {lifecycle:transition}"')[0]["c1"]) == [
        "A start",
        "A complete",
    ]


def test_nested_attributes_lists_comments_and_no_namespace(bench: Any) -> None:
    listed = '<list key="l"><values><string key="v" value="1"/></values></list><!-- x -->'
    nested = listed + '<string key="a" value="1"><int key="b" value="2"/></string>'
    case = bench.one("log.xes", log(trace("c1", event("A"), attributes=nested), open_tag="<log>"))[0]["c1"]
    assert dict(case["attributes"]) == {"l.v": "1", "a": "1", "a.b": "2"}


def test_events_that_cannot_be_used_are_rejected_and_the_rest_goes_on(bench: Any, keys: Any) -> None:
    no_zone = (
        '<event><string key="concept:name" value="B"/><date key="time:timestamp" value="2020-01-01T00:00:00"/></event>'
    )
    content = log(
        trace(
            "c1",
            event("A"),
            no_zone,
            event("", 2),
            event("C", 3, more='<float key="cost:total" value="INF"/>'),
            event("D", 4),
        ),
        trace("c1", event("E")),
        '<trace><event><string key="concept:name" value="F"/></event></trace>',
        trace("c2", event("", 1)),
        trace("c3", event("H", 1)),
        '<event><string key="concept:name" value="G"/></event>',
    )
    cases, rejects, state = bench.one("log.xes", content)
    assert {case_id: keys(case) for case_id, case in cases.items()} == {"log.xes#7": ["F"], "c3": ["H"]}
    assert [(r["position"], r["reason_code"], r["cause_position"]) for r in rejects] == [
        (1, "case_quarantined", 2),
        (2, "no_timezone", None),
        (3, "no_activity", None),
        (4, "not_finite", None),
        (5, "case_quarantined", 2),
        (6, "case_quarantined", 2),
        (8, "no_activity", None),
        (10, "no_case", None),
    ]
    assert all(r["position_unit"] == "record" and r["path"] == "log.xes" for r in rejects)
    assert '"concept:name":"B"' in rejects[1]["record"]
    row = state.files[0]
    assert (row["records"], row["records_used"], row["records_rejected"], row["cases_quarantined"]) == (10, 2, 8, 2)
    assert state.failed == []


def test_amounts_in_another_currency_are_no_dollars(bench: Any) -> None:
    more = '<float key="cost:total" value="2"/><string key="cost:currency" value="EUR"/>'
    task = bench.one("log.xes", log(trace("c1", event("A", more=more))))[0]["c1"]["tasks"][0]
    assert task["cost_usd"] is None
    assert dict(task["attributes"]) == {"cost_original": "2", "cost_currency": "EUR"}


BOMB = (
    '<!DOCTYPE l [<!ENTITY a "ha"><!ENTITY b "&a;&a;&a;&a;&a;&a;&a;&a;&a;&a;">'
    + "".join(f'<!ENTITY {c} "{f"&{p};" * 10}">' for p, c in zip("bcdefghi", "cdefghij", strict=True))
    + "]>"
)


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (log(trace("c1", event("A")))[:-40], "the XML is broken"),
        ("not xml at all", "the XML is broken"),
        ("<html/>", "no <log>"),
        (log(trace("c1", event("&j;")), head=BOMB), "document type"),
        (
            log(trace("c1", event("&x;")), head='<!DOCTYPE l [<!ENTITY x SYSTEM "file:///etc/passwd">]>'),
            "document type",
        ),
        (log(head='<!DOCTYPE log SYSTEM "http://127.0.0.1:1/x.dtd">'), "document type"),
        (log("<a>" * 100_000), "the XML is broken"),
        ("", "the file is empty"),
    ],
)
def test_whole_files_that_are_refused(bench: Any, content: str, reason: str) -> None:
    bench.put("s/good.xes", log(trace("g1", event("A"))))
    cases, _, state = bench.one("log.xes", content)
    assert list(cases) == ["g1"]
    row = next(r for r in state.files if r["path"] == "log.xes")
    assert (row["status"], row["records"], row["implementations"]) == ("rejected", 0, 0)
    assert re.search(reason, row["reason"])
    (line,) = state.failed
    assert line.startswith("s/log.xes: ")
    assert "root:" not in line


def test_a_cut_gzip_file_is_refused_whole(bench: Any) -> None:
    packed = gzip.compress(log(*(trace(f"c{n}", event(f"A{n * 7919}")) for n in range(3000))).encode())
    bench.put("s/log.xes", b"")
    (bench.history / "s" / "log.xes").unlink()
    (bench.history / "s" / "cut.xes.gz").write_bytes(packed[: len(packed) // 2])
    (bench.history / "s" / "fake.xes.gz").write_bytes(b"not gzip")
    state = bench.read()
    assert bench.cases() == {}
    assert bench.rejects() == []
    assert all("gzip file is broken" in line for line in state.failed)
    assert [r["status"] for r in state.files] == ["rejected", "rejected"]


NO_NAME = '<trace><event><string key="concept:name" value="{}"/></event></trace>'


def test_traces_without_a_name_are_numbered(bench: Any, keys: Any) -> None:
    bench.put("s/a.xes", log(NO_NAME.format("A"), "<trace/>", NO_NAME.format("B")))
    bench.put("s/b.xes", log(NO_NAME.format("C")))
    cases = {row["case_id"]: keys(row) for row in bench.cases().values()}
    assert cases == {"a.xes#1": ["A"], "a.xes#2": ["B"], "b.xes#1": ["C"]}


def test_a_stated_name_of_the_case_is_needed(bench: Any) -> None:
    cases, rejects, _ = bench.one("log.xes", log(NO_NAME.format("A")), '[columns]\ncase = "id"')
    assert (cases, [r["reason_code"] for r in rejects]) == ({}, ["no_case"])


@pytest.mark.parametrize("space", ["http://x/My Log", "C:\\logs", "{}", "1a:b", "a#b#c", "Prozess Ü"])
def test_a_namespace_may_be_any_text(bench: Any, keys: Any, space: str) -> None:
    content = log(trace("c1", event("A")), open_tag=f"<log xmlns=\"{space}\" xmlns:x='{space}'>")
    assert keys(bench.one("log.xes", content)[0]["c1"]) == ["A"]
