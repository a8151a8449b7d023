"""Pictures and pages of flows: what changed is marked, and hostile text stays text."""

import re

import pytest
from hypothesis import given, settings
from lxml import etree, html

from opus_pipelines.reporting.pages.flows import FlowPage, Retrieved, difference_svg, flow_svg, marked
from opus_pipelines.reporting.pages.render import flow_page
from opus_pipelines.workflow.blocks.formats.python_ir import parse_ir
from opus_pipelines.workflow.blocks.model import Call, Flow, UserTask
from tests.workflow.blocks.random_flows import FLOWS

BEFORE = parse_ir("xs = A()\nfor x in xs:\n  if x.a:\n    y = B()")
AFTER = parse_ir("xs = A()\nfor x in xs:\n  if x.b:\n    y = C()\n  z = D()")
HOSTILE = "</svg><script>alert(1)</script><img src=x onerror=alert(1)>\u202e\x00"
SHAPES = {"svg", "defs", "marker", "path", "g", "title", "text", "rect", "circle", "polygon", "polyline"}


def test_what_changed_is_marked_on_both_sides() -> None:
    found = marked(BEFORE, AFTER)
    assert sorted(found.old.values()) == ["changed", "changed"]
    assert sorted(found.new.values()) == ["added", "changed", "changed"]
    drawn = difference_svg(BEFORE, AFTER)
    assert drawn.count('stroke="#1a7f37"') == 1
    assert drawn.count('stroke="#9a6700"') == 4
    assert marked(BEFORE, BEFORE).new == {}


@pytest.mark.long
@settings(max_examples=30, deadline=None)
@given(FLOWS, FLOWS)
def test_every_picture_is_one_svg_element(before: Flow, after: Flow) -> None:
    for text in (flow_svg(before), difference_svg(before, after)):
        root = etree.fromstring(text)
        assert root.tag == "{http://www.w3.org/2000/svg}svg"
        names = {etree.QName(element).localname for element in root.iter()}
        assert names <= SHAPES


def test_hostile_text_stays_text() -> None:
    flow = Flow((Call(HOSTILE, "x"), UserTask(HOSTILE, "y")), HOSTILE.replace("\x00", ""))
    retrieved = (Retrieved(HOSTILE, HOSTILE, 0.5),)
    page = flow_page(FlowPage(flow, BEFORE, HOSTILE, retrieved))
    root = html.fromstring(page)
    assert root.xpath("//img | //@onerror") == []
    assert not any("alert" in script.text for script in root.xpath("//script"))
    assert "alert(1)" in page
    assert "default-src 'none'" in page
    assert not re.search(r"(src|href)=\"http", page.replace('"http://www.w3.org/2000/svg"', '""'))


def test_a_page_shows_flow_prior_difference_texts_and_scores() -> None:
    page = flow_page(
        FlowPage(AFTER, BEFORE, "Use C & add D", (Retrieved("C", "Does C", 0.91234), Retrieved("E", "", 0.1)))
    )
    root = html.fromstring(page)
    assert [each.text_content() for each in root.xpath("//h2")] == [
        "Request",
        "Before and after",
        "What changed",
        "Text",
        "Retrieved activities",
    ]
    assert len(root.xpath("//li")) == 3
    assert [each.text_content() for each in root.xpath("//pre")][1].endswith("  z = D()")
    rows = [[cell.text_content() for cell in row.xpath("td")] for row in root.xpath("//tr")[1:]]
    assert rows == [["C", "Does C", "0.912", "yes"], ["E", "", "0.100", ""]]
    assert len(html.fromstring(flow_page(FlowPage(AFTER))).xpath("//h2")) == 2
