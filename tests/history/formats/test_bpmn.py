"""BPMN: processes become cases of kind `model`; gateways folded, sub-processes inlined, loops unrolled once."""

import re
from typing import Any

import pytest

NS = "http://www.omg.org/spec/BPMN/20100524/MODEL"


def definitions(*content: Any, prefix: str = "") -> str:
    """A model as bpmn-js (prefixed) or Camunda (default namespace) writes it: the content is written without
    a prefix.
    """
    text = "".join(content)
    if prefix:
        text = re.sub(r"<(/?)(?=\w+[ />])(?!\w+:)", rf"<\1{prefix}:", text)
    declared = f"xmlns:{prefix}" if prefix else "xmlns"
    name = f"{prefix}:definitions" if prefix else "definitions"
    return (
        f'<?xml version="1.0" encoding="UTF-8"?><{name} {declared}="{NS}" xmlns:camunda="http://'
        f'camunda.org/schema/1.0/bpmn" '
        f'xmlns:bpmndi="http://www.omg.org/spec/BPMN/20100524/DI">{text}<bpmndi:BPMNDiagram id="d"/></{name}>'
    )


def process(*content: Any, ident: str = "P", more: str = "") -> str:
    return f'<process id="{ident}" {more}>{"".join(content)}</process>'


def flows(text: str) -> Any:
    return "".join(
        f'<sequenceFlow id="f{s}{d}" sourceRef="{s}" targetRef="{d}"/>'
        for s, d in (pair.split(">") for pair in text.split())
    )


def node(kind: str, ident: str, name: str = "", inner: str = "", more: str = "") -> str:
    return f'<{kind} id="{ident}" name="{name}" {more}>{inner}</{kind}>'


def drawn(case: Any) -> Any:
    """Title → titles of its predecessors."""
    return {t["title"]: [case["tasks"][p]["title"] for p in t["predecessors"]] for t in case["tasks"]}


ORDER = process(
    node("startEvent", "s"),
    node("userTask", "a", "Check order", more='camunda:assignee="ann"'),
    node("exclusiveGateway", "g", "OK?"),
    node("serviceTask", "b", "Book"),
    node("task", "c", "'Refuse'"),
    node("exclusiveGateway", "m"),
    node("manualTask", "d", "File\nit"),
    node("endEvent", "e"),
    flows("s>a a>g g>b g>c b>m c>m m>d d>e"),
)


@pytest.mark.parametrize("prefix", ["", "bpmn", "bpmn2"])
def test_gateways_and_events_are_folded(bench: Any, prefix: str) -> None:
    cases, rejects, state = bench.one("order.bpmn", definitions(ORDER, prefix=prefix), "weight = 40")
    case = cases["order.bpmn#P"]
    assert drawn(case) == {
        "Check order": [],
        "Book": ["Check order"],
        "Refuse": ["Check order"],
        "File it": ["Book", "Refuse"],
    }
    assert [(t["task_key"], t["actor_kind"], t["actor"]) for t in case["tasks"]] == [
        ("a", "human", "ann"),
        ("b", "code", None),
        ("c", None, None),
        ("d", "human", None),
    ]
    assert (case["kind"], case["weight"], case["started_at"], case["success"]) == ("model", 40, None, None)
    assert rejects == []
    row = state.files[0]
    assert (row["format"], row["records"], row["records_used"], row["task_implementations"]) == ("bpmn", 1, 1, 4)


@pytest.mark.parametrize("kind", ["subProcess", "transaction", "adHocSubProcess", "task"])
@pytest.mark.parametrize("host", ['attachedToRef="pack"', 'attachedToRef="x:pack"', ""])
def test_a_boundary_event_may_stand_inside_of_its_step(bench: Any, kind: str, host: str) -> None:
    timer = node("boundaryEvent", "late", more=host)
    content = process(
        node("task", "a", "Prüfen"),
        node(kind, "pack", "Packen", timer),
        node("task", "b", "Mahnen"),
        flows("a>pack late>b"),
    )
    case = bench.one("a.bpmn", definitions(content))[0]["a.bpmn#P"]
    assert drawn(case) == {"Prüfen": [], "Packen": ["Prüfen"], "Mahnen": ["Packen"]}


@pytest.mark.parametrize("kind", ["subProcess", "transaction"])
def test_the_innermost_sub_processes_are_steps(bench: Any, kind: str) -> None:
    inner = node(kind, "p", "Pick") + node(kind, "q", "Pack", node(kind, "r", "Seal")) + flows("p>q")
    content = process(node("task", "a", "Order"), node(kind, "s", "Fulfil", inner), flows("a>s"))
    assert drawn(bench.one("a.bpmn", definitions(content))[0]["a.bpmn#P"]) == {
        "Order": [],
        "Pick": ["Order"],
        "Seal": ["Pick"],
    }


def test_references_may_have_the_prefix_of_the_target_namespace(bench: Any) -> None:
    content = process(
        '<laneSet><lane name="Clerk"><flowNodeRef>t:a</flowNodeRef></lane></laneSet>',
        node("task", "a", "Check"),
        node("boundaryEvent", "e", more='attachedToRef="t:a"'),
        node("task", "b", "Remind"),
        '<sequenceFlow id="f" sourceRef="t:e" targetRef="t:b"/>',
        '<textAnnotation id="n"><text>By hand</text></textAnnotation><association sourceRef="t:n" targetRef="t:a"/>',
    )
    case = bench.one("a.bpmn", definitions(content))[0]["a.bpmn#P"]
    assert drawn(case) == {"Check": [], "Remind": ["Check"]}
    assert (case["tasks"][0]["actor"], case["tasks"][0]["description"]) == ("Clerk", "By hand")
    assert "connections_lost" not in dict(case["attributes"])


def test_flows_that_lead_nowhere_are_counted(bench: Any) -> None:
    case = bench.one("a.bpmn", definitions(process(node("task", "a", "A"), flows("a>gone lost>a"))))[0]["a.bpmn#P"]
    assert dict(case["attributes"])["connections_lost"] == "2"


@pytest.mark.parametrize("space", ["http://x/Initial Import/Process", "urn:a b", "Geschäft"])
def test_a_namespace_may_be_any_text(bench: Any, space: str) -> None:
    content = definitions(process(node("task", "a", "A"))).replace("xmlns:bpmndi", f'xmlns:own="{space}" xmlns:bpmndi')
    assert drawn(bench.one("a.bpmn", content)[0]["a.bpmn#P"]) == {"A": []}


def test_settings_decide_kind_and_key(bench: Any, keys: Any) -> None:
    case = bench.one("order.bpmn", definitions(ORDER), 'kind = "executed"\nactivity = "{type} {name}"')[0][
        "order.bpmn#P"
    ]
    assert case["kind"] == "executed"
    assert keys(case)[0] == "userTask Check order"


def test_loops_stand_once_and_are_marked(bench: Any) -> None:
    content = process(
        node("task", "a", "Write"),
        node("exclusiveGateway", "m"),
        node("task", "b", "Review"),
        node("exclusiveGateway", "g"),
        node("task", "c", "Send"),
        flows("a>m m>b b>g g>c g>m"),
    )
    case = bench.one("a.bpmn", definitions(content))[0]["a.bpmn#P"]
    assert drawn(case) == {"Write": [], "Review": ["Write"], "Send": ["Review"]}
    assert [dict(t["attributes"]).get("loop_back_to") for t in case["tasks"]] == [None, "Review", None]


def test_sub_processes_are_inlined_with_their_loops_and_notes(bench: Any) -> None:
    inner = (
        node("startEvent", "s2")
        + node("task", "x", "Read")
        + node("task", "y", "Store")
        + node("endEvent", "e2")
        + flows("s2>x x>y y>e2")
        + '<documentation>As they come.</documentation><multiInstanceLoopCharacteristics isSequential="true"/>'
    )
    content = process(
        node("task", "a", "Fetch"),
        node("subProcess", "sub", "Every file", inner),
        node("task", "b", "Report"),
        flows("a>sub sub>b"),
        node("subProcess", "empty", "Clean up"),
        flows("b>empty"),
        node("boundaryEvent", "late", more='attachedToRef="sub"'),
        node("callActivity", "esc", "Escalate", more='calledElement="other"'),
        flows("late>esc"),
        '<textAnnotation id="n"><text>for file in files</text></textAnnotation><association '
        'sourceRef="n" targetRef="sub"/>',
    )
    case = bench.one("a.bpmn", definitions(content))[0]["a.bpmn#P"]
    assert drawn(case) == {
        "Fetch": [],
        "Read": ["Fetch"],
        "Store": ["Read"],
        "Report": ["Store"],
        "Clean up": ["Report"],
        "Escalate": ["Store"],
    }
    attributes = {t["title"]: dict(t["attributes"]) for t in case["tasks"]}
    assert attributes["Read"]["loop"] == attributes["Store"]["loop"] == "for each, one by one: for file in files"
    assert attributes["Read"]["sub_process"] == "Every file"
    assert attributes["Escalate"]["calls"] == "other"
    assert case["description"] == "Every file: As they come."


def test_what_is_written_beside_is_the_description(bench: Any) -> None:
    content = (
        '<collaboration id="c"><participant id="p1" name="Shop" processRef="P"/><textAnnotation '
        'id="n0"><text>All of it</text>'
        "</textAnnotation></collaboration>"
    ) + process(
        "<documentation>How we ship.</documentation>",
        '<laneSet id="l"><lane id="l1" name="Warehouse"><flowNodeRef>a</flowNodeRef></lane></laneSet>',
        node("task", "a", "Pack", "<documentation>In a box.</documentation>"),
        node("exclusiveGateway", "g"),
        flows("a>g"),
        '<textAnnotation id="n1"><text>Mind the glass</text></textAnnotation><association '
        'sourceRef="a" targetRef="n1"/>'
        '<textAnnotation id="n2"><text>Large?</text></textAnnotation><association sourceRef="n2" targetRef="g"/>'
        '<textAnnotation id="n3"><text>Free</text></textAnnotation>',
    )
    case = bench.one("a.bpmn", definitions(content))[0]["a.bpmn#P"]
    (task,) = case["tasks"]
    assert (task["description"], task["actor"]) == ("In a box.\nMind the glass", "Warehouse")
    assert dict(task["attributes"])["actor_group"] == "Warehouse"  # a lane is a role
    assert (case["title"], case["description"]) == ("Shop", "How we ship.\nFree\nAll of it\nLarge?")


def test_every_process_of_a_file_is_a_case_and_an_empty_one_is_rejected(bench: Any) -> None:
    two = process(node("task", "a", "A"), ident="P1", more='name="One"') + process(node("task", "b", "B"), ident="P2")
    more = process(node("startEvent", "s"), ident="P3") + process(node("task", "c", "C"), ident="P1")
    cases, rejects, state = bench.one("a.bpmn", definitions(two, more))
    assert {c: (case["title"], list(drawn(case))) for c, case in cases.items()} == {
        "a.bpmn#P1": ("One", ["A"]),
        "a.bpmn#P2": (None, ["B"]),
    }
    assert [(r["position"], r["reason_code"]) for r in rejects] == [(3, "no_tasks"), (4, "duplicate_case")]
    row = state.files[0]
    assert (row["status"], row["records"], row["records_used"], row["records_rejected"]) == ("loaded", 4, 2, 2)


def test_an_id_that_another_model_gave_to_another_task_is_told_apart(bench: Any) -> None:
    bench.put("s/a.bpmn", definitions(process(node("task", "Task_1", "Pay"), node("task", "Task_2", "Close"))))
    cases, _, _ = bench.one(
        "b.bpmn", definitions(process(node("task", "Task_1", "Paint"), node("task", "Task_2", "Close")))
    )
    assert {t["title"]: t["task_key"] for c in cases.values() for t in c["tasks"]} == {
        "Pay": "Task_1",
        "Paint": "Task_1 Paint",
        "Close": "Task_2",
    }


def test_redaction_reaches_models(bench: Any) -> None:
    content = definitions(process(node("task", "a", "Pack", "<documentation>Ask Ann.</documentation>")))
    assert (
        bench.one("a.bpmn", content, '[redact]\ndrop = "documentation"')[0]["a.bpmn#P"]["tasks"][0]["description"]
        is None
    )


DECLARED = '<?xml version="1.0" encoding="UTF-8"?>'
ENTITY = '<!DOCTYPE d [<!ENTITY x SYSTEM "file:///etc/passwd">]>'
BOMB = (
    '<!DOCTYPE d [<!ENTITY a "hahahahaha">'
    + "".join(f'<!ENTITY {c} "{f"&{p};" * 10}">' for p, c in zip("abcdefgh", "bcdefghi", strict=True))
    + "]>"
)


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        ("<html/>", "no BPMN model"),
        (definitions(), "no BPMN model"),
        ("no xml", "the XML is broken"),
        (definitions(ORDER)[:-40], "the XML is broken"),
        (ENTITY + definitions(process(node("task", "a", "&x;"))).removeprefix(DECLARED), "document type"),
        (BOMB + definitions(process(node("task", "a", "&i;"))).removeprefix(DECLARED), "document type"),
        ('<!DOCTYPE html SYSTEM "http://127.0.0.1:1/x.dtd"><html/>', "no BPMN model"),
        (definitions("<process>" + "<subProcess>" * 100_000), "the XML is broken"),
        (definitions(process(node("task", "a", "x" * (9 << 20)))), "larger than 8 MiB|the XML is broken"),
        ("", "the file is empty"),
    ],
    ids=["html", "no process", "text", "cut", "entity", "bomb", "html 4", "nested", "long", "empty"],
)
def test_whole_files_that_are_refused(bench: Any, content: str, reason: str) -> None:
    _, _, state = bench.one("a.bpmn", content)
    assert (state.files[0]["status"], state.files[0]["records"]) == ("rejected", 0)
    assert re.search(reason, state.files[0]["reason"])


def test_a_flow_that_folds_into_too_many_links_is_rejected(bench: Any) -> None:
    many = "".join(
        node("task", f"a{n}", f"A{n}") + node("task", f"b{n}", f"B{n}") + flows(f"a{n}>g g>b{n}") for n in range(800)
    )
    _, rejects, _ = bench.one("a.bpmn", definitions(process(node("exclusiveGateway", "g"), many)))
    assert [r["reason_code"] for r in rejects] == ["too_many_links"]
