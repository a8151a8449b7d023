"""The pages of flows: the list names every utterance, a flow has a page, and hostile text is only text."""

import re
from datetime import UTC, datetime
from pathlib import Path

import pytest

from opus_pipelines.core.schemas import FLOW_CATALOGUE, FLOW_SCORES, FLOWS
from opus_pipelines.flows.batches.batch import FlowBatch, publish_batch
from opus_pipelines.lake.layout import Lake
from opus_pipelines.reporting.pages.render import FLOW_LIST, flow_rows, render_flows, render_index
from opus_pipelines.reporting.views import connect

HOSTILE = "<script>alert(1)</script> \u202e"


@pytest.fixture(scope="module")
def lake(tmp_path_factory: pytest.TempPathFactory) -> Lake:
    lake = Lake(tmp_path_factory.mktemp("lake"))
    head = {"client": "Acme & <b>", "contract": "Mail", "batch": "b1"}
    retrieved = [{"activity": "B", "description": "Do b", "score": 2.5, "clause": "do b"}]
    flows = [
        {"file": "a.csv", "line": 2, "item": "new", "utterance": "Do A", "status": "written", "sequence": "x = A()"},
        {
            "file": "a.csv",
            "line": 3,
            "item": HOSTILE,
            "utterance": HOSTILE,
            "status": "written",
            "sequence": "x = A()\ny = B()",
            "prior": "x = A()",
            "retrieved": retrieved,
        },
        {"file": "a.csv", "line": 4, "item": None, "utterance": None, "status": "rejected", "reason": HOSTILE},
    ]
    scores = [{"system": "flow writer", "item": "new", "exact_semantic": 1.0, "activity_f1": 0.5}]
    rows = {FLOW_CATALOGUE.name: [], FLOWS.name: flows, FLOW_SCORES.name: scores}
    flows = [row | {"made_at": datetime(2026, 11, 24, tzinfo=UTC)} for row in flows]
    rows[FLOWS.name] = flows
    filled = {name: [head | row for row in own] for name, own in rows.items()}
    with lake.lock():
        publish_batch(lake, FlowBatch("Acme & <b>", "Mail", "b1", filled))
    return lake


def test_the_list_links_a_page_for_each_flow(lake: Lake) -> None:
    written = render_flows(flow_rows(connect(lake), None, None))
    names = list(written)
    assert names[0] == FLOW_LIST
    assert [name.rpartition("__")[2] for name in names[1:]] == ["flow_0001.html", "flow_0002.html"]
    assert re.findall(r'<a href="([^"]+)"', written[FLOW_LIST]) == names[1:]
    assert written == render_flows(flow_rows(connect(lake), None, None))
    assert ">yes<" in written[FLOW_LIST]
    assert "0.500" in written[FLOW_LIST]


def test_a_page_shows_the_flow_before_and_after_and_what_was_retrieved(lake: Lake) -> None:
    page = list(render_flows(flow_rows(connect(lake), None, None)).values())[2]
    assert [title for title in ("Before", "After", "What changed", "Do b", "2.500") if title not in page] == []
    assert page.count("<svg") == 1


def test_hostile_text_is_escaped_everywhere(lake: Lake) -> None:
    for text in render_flows(flow_rows(connect(lake), None, None)).values():
        assert "<script>alert" not in text
        assert "\u202e" not in text


@pytest.mark.long
def test_one_contract_can_be_chosen_and_an_empty_lake_has_no_page(lake: Lake, tmp_path: Path) -> None:
    assert len(flow_rows(connect(lake), "Acme & <b>", "Mail")) == 3
    assert flow_rows(connect(lake), "Acme & <b>", "Other") == []
    empty = Lake(tmp_path)
    with empty.lock():
        empty.ensure_empty()
    assert render_flows(flow_rows(connect(empty), None, None)) == {}


def test_the_index_links_the_list() -> None:
    assert f'href="{FLOW_LIST}"' in render_index([], [(FLOW_LIST, "Flows")])
    assert FLOW_LIST not in render_index([])
