"""Flow documents in and out of the block model: exact round trips, listed losses, and errors with their element."""

import pytest
from hypothesis import given, settings

from opus_pipelines.flows.enterprise.block_flows import block_flow, flow_document
from opus_pipelines.flows.enterprise.documents import FlowDocument, FlowDocumentError
from opus_pipelines.flows.enterprise.examples import world_examples
from opus_pipelines.workflow.blocks.expressions import FlowError
from opus_pipelines.workflow.blocks.formats.python_ir import parse_ir
from opus_pipelines.workflow.blocks.formats.registry import flow_format, reduced, written
from opus_pipelines.workflow.blocks.model import Flow, identified
from tests.flows.enterprise.flow_texts import flow, step
from tests.workflow.blocks.random_flows import FLOWS

IR = """
leads = fetch_leads()
for lead in leads:
  if lead.amount > 100 and (lead.state == "new" or not lead.owner):
    mail = send_mail()
  elif lead.tier in lead.tiers:
    done = user_task("Call them")
while leads.more == True:
  page = fetch_page()
""".replace("lead.tier in lead.tiers", '"gold" in lead.tier')


def test_a_block_flow_comes_back_whole() -> None:
    own = parse_ir(IR)
    document = flow_document(own)
    assert block_flow(document) == (own, [])
    assert [(c.name, c.block) for c in document.components] == [
        ("fetch_leads", None),
        ("FOREACH", None),
        ("IF", 2),
        ("send_mail", 3),
        ("ELSEIF", 2),
        ("user_task", 5),
        ("IF", None),
        ("DOUNTIL", 7),
        ("fetch_page", 8),
    ]
    condition = "{{lead.item.amount}}>100^{{lead.item.state}}=new^OR{{lead.item.owner}}ISEMPTY"
    assert document.components[2].input("condition") == condition


def test_the_flows_of_the_world_come_back_but_for_their_annotations() -> None:
    for example in world_examples()[::3]:
        blocks, losses = block_flow(example.flow)
        assert sum("annotation" in loss.what for loss in losses) == 1 + len(example.flow.components)
        assert block_flow(flow_document(blocks)) == (blocks, [])


@pytest.mark.long
@settings(max_examples=40, deadline=None)
@given(FLOWS)
def test_what_the_format_writes_comes_back(own: Flow) -> None:
    form = flow_format("servicenow")
    kept, _ = reduced(identified(own), form.features)
    try:
        content, _ = written(own, "servicenow")
    except FlowError as error:
        told = str(error)
    else:
        told = "step s"
        assert form.parse(content, "") == kept
    assert "step s" in told


def test_what_is_lost_is_listed_and_what_cannot_be_said_is_an_error_with_its_element() -> None:
    tried = flow(step("TRY", 1), step("log", 2, 1, message="x"), step("CATCH", 3), step("log", 4, 3, message="y"))
    blocks, losses = block_flow(tried)
    assert len(blocks.body) == 2
    assert [loss.element for loss in losses] == ["component 1 (TRY)", "component 3 (CATCH)"]
    begins = flow(step("IF", 1, condition="{{record_update.current.name}}STARTSWITHa"), step("log", 2, 1, message="x"))
    loop = flow(step("FOREACH", 1, items="all"), step("log", 2, 1, message="x"))
    circle = flow(step("IF", 1, 2, condition="a=1"), step("IF", 2, 1, condition="a=1"))
    for document, place in ((begins, "component 1"), (loop, "component 1"), (circle, "circle")):
        with pytest.raises(FlowDocumentError, match=place):
            block_flow(document)
    with pytest.raises(FlowDocumentError, match="component 1"):
        block_flow(FlowDocument((), (step("ELSE", 1), step("log", 2, 1, message="x"))))


def test_a_do_until_runs_once_before_it_is_tested() -> None:
    document = flow(step("DOUNTIL", 1, condition="{{record_update.current.state}}=6"), step("log", 2, 1, message="x"))
    blocks, _ = block_flow(document)
    assert [type(s).__name__ for s in blocks.body] == ["Call", "Call", "While"]
