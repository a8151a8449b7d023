"""n8n exports: nodes are tasks, connections by name are what follows what, notes describe, disabled nodes are passed
through.
"""

import json
import re
from typing import Any

import pytest


def node(name: str, kind: str = "n8n-nodes-base.set", **more: Any) -> Any:
    return {"name": name, "type": kind, "position": [0, 0], "parameters": {}, **more}


def links(*pairs: Any, kind: Any = "main") -> Any:
    found = {}
    for src, dst in (pair.split(">") for pair in pairs):
        found.setdefault(src, {}).setdefault(kind, [[]])[0].append({"node": dst, "type": kind, "index": 0})
    return found


def export(nodes: list[dict[str, Any]], connections: Any = None, **more: Any) -> Any:
    return json.dumps({"nodes": nodes, **({} if connections is None else {"connections": connections}), **more})


def drawn(case: Any) -> Any:
    return {t["title"]: sorted(case["tasks"][p]["title"] for p in t["predecessors"]) for t in case["tasks"]}


def note(text: str) -> Any:
    return node("Sticky Note", "n8n-nodes-base.stickyNote", parameters={"content": text})


def test_nodes_may_be_connected_by_their_ids(bench: Any) -> None:
    nodes = [node("Start", id="1"), node("Get", id="2"), node("1", id="3")]
    case = bench.one("a.json", export(nodes, links("Start>2", "2>3")))[0]["a.json"]
    assert drawn(case) == {"Start": [], "Get": ["Start"], "1": ["Get"]}
    assert "connections_lost" not in dict(case["attributes"])


def test_an_export_is_one_case(bench: Any) -> None:
    nodes = [
        node("Hook", "n8n-nodes-base.webhook"),
        node("Cron", "n8n-nodes-base.scheduleTrigger"),
        note("## Leads\nInto the CRM"),
        node("If", "n8n-nodes-base.if"),
        node("Off", disabled=True),
        note("Mind the quota"),
        node(
            "Save", "n8n-nodes-base.hubspot", notes="Once a lead", parameters={"operation": "upsert", "token": "secret"}
        ),
        node("Drop", "n8n-nodes-base.noOp"),
    ]
    content = export(
        nodes, links("Hook>If", "Cron>If", "If>Off", "Off>Save", "If>Drop", "If>Nowhere"), name="Leads", id="7"
    )
    cases, rejects, state = bench.one("a/leads.json", content, "weight = 12")
    case = cases["a/leads.json"]
    assert drawn(case) == {"Hook": [], "Cron": [], "If": ["Cron", "Hook"], "Save": ["If"], "Drop": ["If"]}
    assert (case["kind"], case["weight"], case["title"]) == ("model", 12, "Leads")
    assert case["description"] == "## Leads\nInto the CRM\n\nMind the quota"
    assert dict(case["attributes"]) == {"id": "7", "connections_lost": "1"}
    save = next(t for t in case["tasks"] if t["title"] == "Save")
    assert (save["task_key"], save["description"], save["actor_kind"]) == (
        "n8n-nodes-base.hubspot Save",
        "Once a lead",
        "code",
    )
    assert dict(save["attributes"]) == {"type": "n8n-nodes-base.hubspot", "operation": "upsert"}
    assert [t["title"] for t in case["tasks"] if dict(t["attributes"]).get("trigger")] == ["Hook", "Cron"]
    row = state.files[0]
    assert (row["format"], row["records"], row["records_used"], row["records_not_work"], rejects) == (
        "n8n",
        8,
        5,
        3,
        [],
    )


def test_cycles_stand_once_and_self_connections_too(bench: Any) -> None:
    content = export([node(n) for n in "ABC"], links("A>B", "B>C", "C>B", "C>C"))
    case = bench.one("a.json", content)[0]["a.json"]
    assert drawn(case) == {"A": [], "B": ["A"], "C": ["B"]}
    assert [dict(t["attributes"]).get("loop_back_to") for t in case["tasks"]] == [None, None, "B; C"]


def test_an_agent_is_done_by_the_model_that_serves_it(bench: Any) -> None:
    chat = "@n8n/n8n-nodes-langchain.lmChatOpenAi"
    nodes = [
        node("Agent", "@n8n/n8n-nodes-langchain.agent", parameters={"text": "Answer the mail."}),
        node("Search", "n8n-nodes-base.toolWeb"),
        node("Chat", chat, parameters={"model": {"value": "gpt-4o-mini", "mode": "list"}}),
    ]
    content = export(nodes, links("Chat>Agent", kind="ai_languageModel") | links("Search>Agent", kind="ai_tool"))
    case = bench.one("a.json", content)[0]["a.json"]
    assert drawn(case) == {"Search": [], "Chat": [], "Agent": ["Chat", "Search"]}
    told = {
        t["title"]: (t["actor_kind"], t["model"], t["instructions"], dict(t["attributes"]).get("part"))
        for t in case["tasks"]
    }
    assert told["Agent"] == ("model", "gpt-4o-mini", ["Answer the mail."], None)
    assert told["Chat"] == ("model", "gpt-4o-mini", None, "ai_languageModel")
    assert told["Search"] == ("code", None, None, "ai_tool")


@pytest.mark.parametrize(
    "connections", [None, {}, [], {"A": None}, {"A": {"main": [None, [None, 3, {"node": ["A"]}]]}}]
)
def test_files_without_usable_connections_claim_no_order(bench: Any, connections: Any) -> None:
    case = bench.one("a.json", export([node("A"), node("B"), node("A")], connections))[0]["a.json"]
    assert [(t["title"], t["predecessors"]) for t in case["tasks"]] == [("A", []), ("B", []), ("A", [])]


def test_several_workflows_in_one_file(bench: Any) -> None:
    content = "[" + export([node("A")]) + "," + export([node("B"), 7, {"name": 1}]) + "," + export([]) + "]"
    cases, rejects, state = bench.one("all.json.gz", content)
    assert {c: list(drawn(case)) for c, case in cases.items()} == {"all.json.gz#1": ["A"]}
    assert [(r["position"], r["reason_code"], r["case_id"], r["cause_position"]) for r in rejects] == [
        (2, "case_quarantined", "all.json.gz#2", 3),
        (3, "bad_node", "all.json.gz#2", None),
        (4, "bad_node", "all.json.gz#2", None),
    ]
    row = state.files[0]
    assert (row["records"], row["records_used"], row["records_rejected"], row["cases_quarantined"]) == (4, 1, 3, 1)


def test_redaction_reaches_into_nodes(bench: Any) -> None:
    content = export([node("A", notes="Ask Ann")], {}, description="For Ann")
    case = bench.one("a.json", content, '[redact]\ndrop = "nodes.notes"\nmask = "description"')[0]["a.json"]
    assert (case["description"], case["tasks"][0]["description"]) == ("***", None)


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        ('{"a": 1}', "no n8n export .* known formats are xes .*n8n"),
        ('{"events": [], "objects": []}', "name it .*ocel.json"),
        ('{"nodes": {}}', "no n8n export"),
        ("[]", "no n8n export"),
        ("3", "no n8n export"),
        (export([note("x"), node("A", disabled=True)]), "no node that does work .of 2 nodes"),
        (export([{"id": 1}]), "no node that does work"),
        (export([node("A")])[:-2], "not JSON"),
        ("[" * 100_000, "nested too deeply"),
        (b'{"nodes": "\xff"}', "not UTF-8"),
        (r'{"nodes": [{"name": "\ud800", "type": "x"}]}', "half of a character"),
        ('{"nodes": [' + "[]," * 100_001 + "[]]}", "more than 100,000 nodes"),
        (" " * (17 << 20), "larger than 16 MiB"),
    ],
    ids=[
        "other",
        "ocel",
        "no list",
        "none",
        "number",
        "idle",
        "bad nodes",
        "cut",
        "nested",
        "bytes",
        "surrogate",
        "many",
        "long",
    ],
)
def test_whole_files_that_are_refused(bench: Any, content: Any, reason: str) -> None:
    _, rejects, state = bench.one("a.json", content)
    with_reason = state.files[0]
    assert (with_reason["status"], with_reason["records"], rejects) == ("rejected", 0, [])
    assert re.search(reason, with_reason["reason"])
