"""The inputs of the benchmark of plans: cases with predecessors, and descriptions from a catalogue."""

import gzip
import json
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))

import plans  # type: ignore[import-not-found]

CATALOGUE = [{"tool": "send_sms", "description": "sends a text"}, {"tool": "rent"}]


@pytest.mark.parametrize("name", ["tools.jsonl", "tools.jsonl.gz"])
def test_the_catalogue_describes_the_tools_of_history(tmp_path: Path, name: str) -> None:
    lines = "".join(json.dumps(row) + "\n" for row in CATALOGUE).encode()
    (tmp_path / name).write_bytes(gzip.compress(lines) if name.endswith(".gz") else lines)
    tools = plans.listed(tmp_path / name)
    assert tools == {"send_sms": "sends a text", "rent": None}
    row = {"id": "a", "request": "text me", "plan": ["rent", "send_sms"], "links": [["rent", "send_sms"]]}
    assert plans.record(row, tools)["steps"] == [
        {"tool": "rent", "description": None, "predecessors": []},
        {"tool": "send_sms", "description": "sends a text", "predecessors": [0]},
    ]


def test_links_that_are_not_stated_follow_the_order_and_a_tool_never_follows_itself() -> None:
    row = {"id": "a", "request": "text me", "plan": ["rent", "send_sms", "rent"]}
    for links in ({}, {"links": None}, {"links": [["rent", "send_sms"], ["rent", "send_sms"], ["rent", "rent"]]}):
        steps = plans.record({**row, **links}, {})["steps"]
        assert [(step["tool"], step["predecessors"]) for step in steps] == [("rent", []), ("send_sms", [0])]


def test_plans_with_one_id_stay_apart() -> None:
    rows = [{"id": "a", "plan": ["rent"]}, {"id": "b"}, {"id": "a", "plan": ["send_sms"]}, {"id": 7}]
    assert [own for own, _ in plans.with_own_ids(rows)] == ["a", "b", "a (2)", "7"]


def test_the_catalogue_is_that_of_the_contract(tmp_path: Path) -> None:
    (tmp_path / "history.jsonl").write_text('{"id": "a", "request": "text me", "plan": ["send_sms"], "links": []}\n')
    (tmp_path / "intakes.jsonl").write_text('{"id": "b", "request": "rent a car"}\n')
    files = tmp_path / "history.jsonl", tmp_path / "intakes.jsonl"
    assert plans.write_inputs(*files, tmp_path / "with", {"send_sms": "sends a text", "rent": None}) == {
        "request000000": "b"
    }
    contract = tmp_path / "with" / "intakes" / "client" / "contract"
    tools = [json.loads(line) for line in (contract / "catalogue.jsonl").read_text().splitlines()]
    assert tools == [{"name": "send_sms", "description": "sends a text"}, {"name": "rent", "description": None}]
    plans.write_inputs(*files, tmp_path / "without", {})
    assert not list((tmp_path / "without").rglob("catalogue.jsonl"))


def test_without_a_catalogue_nothing_is_described() -> None:
    assert plans.listed(None) == {}
