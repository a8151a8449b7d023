"""BPMN: flows come back exactly, the gold files of Flow-Bench equal their IR, and bad files name their elements."""

from dataclasses import replace
from itertools import pairwise

import pytest
from hypothesis import given, settings
from lxml import etree

from opus_pipelines.workflow.blocks.expressions import FlowError
from opus_pipelines.workflow.blocks.formats.bpmn_reader import OPUS, read_bpmn
from opus_pipelines.workflow.blocks.formats.bpmn_writer import write_bpmn
from opus_pipelines.workflow.blocks.formats.python_ir import parse_ir, write_ir
from opus_pipelines.workflow.blocks.model import Call, Flow, Statement, UserTask, identified, map_statements
from opus_pipelines.workflow.bpmn_xml import MODEL
from tests.campaigns import examples
from tests.workflow.blocks.flow_bench import DATA, bench_tests, needs_data
from tests.workflow.blocks.random_flows import FLOWS


@pytest.mark.long
@settings(max_examples=examples(30), deadline=None)
@given(FLOWS)
def test_random_flows_come_back_from_both_dialects(flow: Flow) -> None:
    flow = identified(flow)
    assert read_bpmn(write_bpmn(flow)).flow == flow
    assert read_bpmn(write_bpmn(flow, camunda=True)).flow == flow


def untold(flow: Flow) -> Flow:
    """The flow without the variables of steps, which the gold BPMN does not store."""

    def change(statement: Statement) -> Statement:
        return replace(statement, variable="x") if isinstance(statement, Call | UserTask) else statement

    return replace(flow, body=map_statements(flow.body, change))


def model(inside: str) -> bytes:
    """A BPMN file with these elements in its process."""
    return f'<definitions xmlns="{MODEL}"><process id="p">\n{inside}\n</process></definitions>'.encode()


def chain(*ids: str) -> str:
    """Sequence flows along these elements."""
    return "".join(f'<sequenceFlow id="{a}_{b}" sourceRef="{a}" targetRef="{b}" />' for a, b in pairwise(ids))


START_END = '<startEvent id="a" /><endEvent id="z" />'
TASKS = '<task id="b" name="B" /><task id="c" name="C" />'
DECISION = '<exclusiveGateway id="d" name="Decision: x.y == \'1\'" />'


def test_a_gold_form_without_anything_on_the_flows() -> None:
    merge = '<exclusiveGateway id="m" name="Merge" />'
    flows = chain("a", "d", "b", "m", "z") + chain("d", "c", "m")
    text = write_ir(read_bpmn(model(START_END + TASKS + DECISION + merge + flows)).flow)
    assert text == 'if x.y == "1":\n  b = B()\nelse:\n  c = C()'
    empty = chain("a", "d", "m", "z") + chain("d", "b", "m") + chain("m", "c")[:0]
    one = START_END + TASKS.partition("/>")[0] + "/>" + DECISION + merge
    assert write_ir(read_bpmn(model(one + empty)).flow) == 'if x.y == "1":\n  b = B()'


def test_labels_conditions_and_a_default_win_over_the_order() -> None:
    merge = '<exclusiveGateway id="m" />'
    flows = chain("a", "d") + chain("b", "m", "z") + chain("c", "m")
    labelled = chain("d", "b").replace("<sequenceFlow", '<sequenceFlow name="no"') + chain("d", "c")
    assert write_ir(read_bpmn(model(START_END + TASKS + DECISION + merge + flows + labelled)).flow).startswith(
        'if x.y == "1":\n  c = C()'
    )
    plain = '<exclusiveGateway id="d" default="d_b" />'
    conditional = chain("d", "b") + chain("d", "c").replace(
        " />", "><conditionExpression>=x.y &gt; 1 and not(z)</conditionExpression></sequenceFlow>"
    )
    assert write_ir(read_bpmn(model(START_END + TASKS + plain + merge + flows + conditional)).flow).startswith(
        "if x.y > 1 and not z:\n  c = C()"
    )


@pytest.mark.parametrize(
    ("inside", "named"),
    [
        (TASKS + '<startEvent id="a" />', "no way from the start leads to B"),
        (START_END + TASKS + chain("a", "b", "c", "b"), "no end"),
        (START_END + TASKS + chain("a", "b", "q"), "'q'"),
        (START_END + '<inclusiveGateway id="i" name="Any" />', r"inclusiveGateway \(Any, i\)"),
        (START_END + '<task id="b" />' + chain("a", "b", "z"), "b has no name"),
        (
            START_END
            + TASKS
            + '<exclusiveGateway id="d" name="Is it?" />'
            + chain("a", "d", "b", "z")
            + chain("d", "c", "z"),
            "Is it",
        ),
        (START_END + TASKS + DECISION.replace("x.y ==", "import") + chain("a", "d", "z"), "Decision"),
        (START_END + TASKS + DECISION + chain("a", "d", "b", "z") + chain("d", "c", "b", "c"), r"\(c\)|\(b\)"),
        ('<startEvent id="a" /><startEvent id="e" />', "2 start events"),
        (
            '<startEvent id="a" /><subProcess id="s"><standardLoopCharacteristics /><startEvent id="q" /></subProcess>',
            "s",
        ),
    ],
)
def test_an_error_names_the_element_and_its_line(inside: str, named: str) -> None:
    with pytest.raises(FlowError, match=named):
        read_bpmn(model(inside))


UNTIL = (
    START_END + TASKS + DECISION + '<exclusiveGateway id="m" />' + chain("a", "m", "b", "d", "m") + chain("d", "c", "z")
)
SHARED = START_END + TASKS + '<task id="e" name="E" />' + DECISION + DECISION.replace('"d"', '"f"')
SHARED += chain("a", "d", "f", "b", "e", "z") + chain("d", "c", "z") + chain("f", "c")


@pytest.mark.parametrize(
    ("inside", "text"),
    [
        (UNTIL, 'b = B()\nwhile x.y == "1":\n  b = B()\nc = C()'),
        (SHARED, 'if x.y == "1":\n  if x.y == "1":\n    b = B()\n    e = E()\n  else:\n    c = C()\nelse:\n  c = C()'),
    ],
)
def test_steps_are_duplicated_only_where_it_is_asked_for(inside: str, text: str) -> None:
    with pytest.raises(FlowError, match="ask for duplication"):
        read_bpmn(model(inside))
    found = write_ir(read_bpmn(model(inside), duplicate=True).flow)
    assert untold_text(found) == untold_text(text)


def untold_text(text: str) -> str:
    return write_ir(untold(parse_ir(text)))


def test_a_loop_into_whose_middle_a_way_leads_is_an_error_in_any_case() -> None:
    inside = START_END + TASKS + DECISION + DECISION.replace('"d"', '"f"')
    inside += chain("a", "d", "b", "c", "f", "b") + chain("d", "c") + chain("f", "z")
    for duplicate in (False, True):
        with pytest.raises(FlowError, match=r"loop is entered in its middle"):
            read_bpmn(model(inside), duplicate=duplicate)


def test_camunda_attributes_alone_are_enough() -> None:
    flow = parse_ir("xs = A()\nfor x in xs:\n  if x.a >= 2 and not x.b:\n    y = B()\nwhile xs.more:\n  z = C()")
    content = write_bpmn(identified(flow), camunda=True)
    root = etree.fromstring(content)
    for element in root.iter(f"{{{OPUS}}}step"):
        element.getparent().remove(element)
    for note in root.iter(f"{{{MODEL}}}association"):
        note.set("targetRef", "")
    for gateway in root.iter(f"{{{MODEL}}}exclusiveGateway"):
        gateway.attrib.pop("name")
    assert read_bpmn(etree.tostring(root)).flow == flow


def test_a_renamed_task_is_another_activity() -> None:
    content = write_bpmn(identified(parse_ir("x = A()\ntask = user_task('look')")))
    changed = content.replace(b'name="A"', b'name="B"').replace(b'name="look"', b'name="see"')
    assert write_ir(read_bpmn(changed).flow) == 'x = B()\ntask = user_task("see")'


KNOWN_DEFECTS = {(28, "expected"): "the file is missing", (98, "expected"): "the ways of its decision are swapped"}


class TestFlowBench:
    pytestmark = needs_data

    def test_the_gold_files_equal_their_ir_except_the_known_defects(self) -> None:
        equal, different = 0, set()
        for test in bench_tests():
            sides = [("expected", test["expected_output"])]
            if test["input"]["prior_sequence"]:
                sides.append(("prior", {"sequence": test["input"]["prior_sequence"], "bpmn": test["input"]["bpmn"]}))
            for side, both in sides:
                reference = both["bpmn"][0] if isinstance(both["bpmn"], list) else both["bpmn"]
                path = DATA / reference["$ref"]
                if path.is_file() and untold(read_bpmn(path.read_bytes()).flow) == untold(
                    parse_ir(both["sequence"][0])
                ):
                    equal += 1
                else:
                    different.add((test["_metadata"]["uid"], side))
        assert different == set(KNOWN_DEFECTS)
        assert equal == 61
