"""Edits in a BPMN file: it says the new flow, and what no edit touches keeps its id, attributes and place."""

from dataclasses import replace

import pytest
from hypothesis import given, settings
from lxml import etree

from opus_pipelines.workflow.blocks.difference import difference
from opus_pipelines.workflow.blocks.edits import Delete, Insert, Operation, Wrap, applied
from opus_pipelines.workflow.blocks.expressions import FlowError
from opus_pipelines.workflow.blocks.formats.bpmn_reader import read_bpmn
from opus_pipelines.workflow.blocks.formats.bpmn_writer import patched_bpmn, write_bpmn
from opus_pipelines.workflow.blocks.formats.python_ir import parse_condition, parse_ir, parse_steps
from opus_pipelines.workflow.blocks.model import (
    Block,
    Call,
    Flow,
    If,
    Parallel,
    Statement,
    UserTask,
    identified,
    ids,
    map_blocks,
    map_statements,
    walk,
)
from opus_pipelines.workflow.bpmn_xml import DIAGRAM, MODEL, local
from tests.campaigns import examples
from tests.workflow.blocks.flow_bench import DATA, bench_tests, needs_data
from tests.workflow.blocks.random_flows import FLOWS


def heads(content: bytes) -> dict[str, object]:
    """Tag and attributes of every element of the model by id, and its shape or line under `shape of …`."""
    elements = list(etree.fromstring(content).iter(f"{{{MODEL}}}*", f"{{{DIAGRAM}}}*"))
    shown = {f"shape of {e.get('bpmnElement')}": [(x.tag, dict(x.attrib)) for x in e.iter()] for e in elements}
    return shown | {e.get("id", ""): (e.tag, dict(e.attrib)) for e in elements if e.tag.startswith(f"{{{MODEL}}}")}


@pytest.mark.long
@settings(max_examples=examples(20), deadline=None)
@given(FLOWS, FLOWS)
def test_the_file_says_the_new_flow_and_keeps_the_rest(before: Flow, after: Flow) -> None:
    for camunda in (False, True):
        content = write_bpmn(identified(before), camunda=camunda)
        flow = read_bpmn(content).flow
        assert patched_bpmn(content, flow) == content
        new = applied(flow, difference(flow, after))
        changed = patched_bpmn(content, new)
        assert read_bpmn(changed).flow == after
        old, kept = heads(content), heads(changed)
        same = {s.id for s in walk(flow.body) if isinstance(s, Call | UserTask)}
        same &= {s.id for s in walk(new.body) if s in {t for t in walk(flow.body) if t.id == s.id}}
        for ident in same:
            assert kept[ident] == old[ident]
            assert kept[f"shape of {ident}"] == old[f"shape of {ident}"]


PLAIN = f"""<definitions xmlns="{MODEL}"><process id="p"><startEvent id="a"/>
<task id="b" name="A"/><task id="c" name='B' />
  <sequenceFlow id="f" sourceRef="a" targetRef="b"/><sequenceFlow id="g" sourceRef="b" targetRef="c"/>
  <sequenceFlow id="h" sourceRef="c" targetRef="z"/><endEvent id="z"/>
  <!-- a comment --><textAnnotation id="t"><text>for people</text></textAnnotation></process></definitions>"""


@pytest.mark.parametrize(
    ("operation", "expected"),
    [
        (Delete("b"), "b = B()"),
        (Insert(parse_steps("x = X()"), "after", "b"), "a = A()\nx = X()\nb = B()"),
        (Wrap("b", "c", parse_condition("xs"), "x"), "for x in xs:\n  a = A()\n  b = B()"),
    ],
)
def test_a_file_without_a_layout_gets_one_and_keeps_its_comments(operation: Operation, expected: str) -> None:
    content = PLAIN.encode()
    changed = patched_bpmn(content, applied(read_bpmn(content).flow, [operation]))
    assert untold(read_bpmn(changed).flow) == untold(parse_ir(expected))
    assert b"<!-- a comment -->" in changed
    assert b'<textAnnotation id="t"><text>for people</text></textAnnotation>' in changed
    assert b"BPMNShape" in changed


def test_a_document_type_is_an_error_and_another_encoding_is_read() -> None:
    flow = read_bpmn(PLAIN.encode()).flow
    changed = applied(flow, [Delete("b")])
    with pytest.raises(FlowError, match="DOCTYPE"):
        patched_bpmn(b"<!DOCTYPE definitions>" + PLAIN.encode(), changed)
    latin = b'<?xml version="1.0" encoding="ISO-8859-1"?>' + PLAIN.replace("for people", "f\xfcr").encode("latin-1")
    assert "für" in patched_bpmn(latin, changed).decode("utf-8")


def untold(flow: Flow) -> Flow:
    """The flow without the variables of steps, which gold BPMN does not store."""

    def change(statement: Statement) -> Statement:
        return replace(statement, variable="x") if isinstance(statement, Call | UserTask) else statement

    return replace(flow, body=map_statements(flow.body, change))


def with_ids(flow: Flow, like: Flow) -> Flow:
    """The flow with the ids of another flow of the same form."""
    left = iter(list(ids(like.body)))

    def block(old: Block) -> Block:
        return tuple(statement(each) for each in old)

    def statement(old: Statement) -> Statement:
        new = replace(old, id=next(left))
        if isinstance(new, If):
            names = [next(left) for _ in new.branches]
            pairs = zip(new.branches, names, strict=True)
            branches = tuple(replace(branch, id=name, body=block(branch.body)) for branch, name in pairs)
            return replace(new, branches=branches, orelse=block(new.orelse))
        return map_blocks(new, block)

    return replace(flow, body=block(flow.body))


class TestFlowBench:
    pytestmark = needs_data
    NODES = ("task", "userTask", "startEvent", "endEvent", "exclusiveGateway", "subProcess")

    def nodes(self, content: bytes) -> set[str]:
        """The ids of the flow nodes of a file."""
        return {e.get("id", "") for e in etree.fromstring(content).iter("*") if local(e) in self.NODES}

    def test_updates_keep_every_id_that_no_edit_deletes_and_more_than_gold(self) -> None:
        ours, gold = [], []
        for test in bench_tests():
            if not test["input"]["prior_sequence"]:
                continue
            files = [
                (DATA / (ref[0] if isinstance(ref, list) else ref)["$ref"]).read_bytes()
                for ref in (test["input"]["bpmn"], test["expected_output"]["bpmn"])
            ]
            prior = read_bpmn(files[0]).flow
            after = parse_ir(test["expected_output"]["sequence"][0])
            operations = difference(with_ids(parse_ir(test["input"]["prior_sequence"][0]), prior), after)
            changed = patched_bpmn(files[0], applied(prior, operations))
            assert untold(read_bpmn(changed).flow) == untold(after)
            before, now = self.nodes(files[0]), self.nodes(changed)
            deleted = {operation.target for operation in operations if isinstance(operation, Delete)}
            assert before - now == deleted
            old, kept = heads(files[0]), heads(changed)
            assert {f"shape of {ident}" for ident in before & now} <= {
                name for name in old if kept.get(name) == old[name]
            }
            ours.append(len(before & now) / len(before))
            gold.append(len(before & self.nodes(files[1])) / len(before))
        assert len(ours) == 21
        assert sum(ours) / 21 == pytest.approx(0.9757, abs=0.0001)
        assert sum(gold) / 21 == pytest.approx(0.8457, abs=0.0001)


def test_a_parallel_keeps_the_order_of_its_branches_where_one_comes_before_a_branch_that_stays() -> None:
    def flow_of(*branches: tuple[Call, ...]) -> Flow:
        return Flow((Parallel(branches),))

    first, second, third = (Call(name, name.lower()) for name in ("A", "B", "C"))
    content = write_bpmn(identified(flow_of((second,), (third,))))
    step = replace(first, id="new")
    flow = read_bpmn(content).flow
    (parallel,) = flow.body
    assert isinstance(parallel, Parallel)
    new = Flow((replace(parallel, branches=((step,), *parallel.branches)),))
    assert read_bpmn(patched_bpmn(content, new)).flow == flow_of((first,), (second,), (third,))
