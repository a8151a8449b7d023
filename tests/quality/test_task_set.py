"""Task sets as files: what a line may say, and what happens to lines that cannot be used."""

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from opus_pipelines.core.errors import InputError
from opus_pipelines.quality.task_set import read_task_set
from opus_pipelines.workflow.metrics.plan_scores import Plan

GOOD: dict[str, Any] = {"id": "a", "request": "Pay the invoice.", "gold": {"plan": ["check", "pay"]}}


def written(path: Path, *lines: Any) -> Path:
    text = "".join((line if isinstance(line, str) else json.dumps(line)) + "\n" for line in lines)
    path.write_bytes(gzip.compress(text.encode()) if path.suffix == ".gz" else text.encode())
    return path


def test_a_whole_line_and_the_form_of_the_plan_benchmarks(tmp_path: Path) -> None:
    whole = GOOD | {
        "context": "Invoices are checked first.",
        "output": "A paid invoice.",
        "industry": "finance",
        "group": "invoices",
        "catalogue": ["pay", {"name": "check", "description": "Compare with the order"}],
        "gold": {"plan": ["check", "pay"], "links": [["check", "pay"]]},
    }
    flat = {"id": 7, "request": "Send it.", "plan": ["send"], "links": []}
    items = read_task_set(written(tmp_path / "set.jsonl.gz", whole, "", flat)).items
    assert items[0].gold == Plan(("check", "pay"), frozenset({("check", "pay")}))
    assert (items[0].context, items[0].output) == ("Invoices are checked first.", "A paid invoice.")
    assert (items[0].industry, items[0].group) == ("finance", "invoices")
    assert items[0].catalogue == {"pay": "", "check": "Compare with the order"}
    assert (items[1].id, items[1].gold, items[1].group) == ("7", Plan(("send",), frozenset()), "send")


def test_items_of_the_same_steps_are_one_group_and_share_a_catalogue(tmp_path: Path) -> None:
    other = GOOD | {"id": "b", "gold": {"plan": ["pay", "check", "pay"]}}
    tools = written(tmp_path / "tools.jsonl", {"tool": "pay", "description": "Transfer money"}, '"check"')
    items = read_task_set(written(tmp_path / "set.jsonl", GOOD, other), tools).items
    assert [item.group for item in items] == ["check pay", "check pay"]
    assert items[0].catalogue == {"pay": "Transfer money", "check": ""}


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("{", "line 2: Expecting"),
        ("[" * 100_000, "line 2: "),
        ([1], "no JSON object"),
        ({"id": "b", "request": "x"}, 'no "gold"'),
        ({"id": "b", "request": "x", "gold": {"plan": "check"}}, "a list of step names"),
        ({"id": "b", "request": "x", "gold": {"plan": []}}, "has no steps"),
        ({"id": "b", "request": " ", "gold": {"plan": ["check"]}}, "a text is missing"),
        ({"id": "b", "request": "x", "gold": {"plan": ["check", None]}}, "a text is missing"),
        ({"id": "b", "request": "x", "gold": {"plan": ["check"], "links": [["check"]]}}, "no pairs"),
        ({"id": "b", "request": "x", "gold": {"plan": ["check"], "links": [["check", "pay"]]}}, "its links name 'pay'"),
        (GOOD, "the id 'a'"),
        ("1" * (5 << 20), "longer than"),
    ],
)
def test_a_line_that_cannot_be_used_is_left_out_with_its_reason(tmp_path: Path, line: Any, reason: str) -> None:
    last = GOOD | {"id": "z"}
    task_set = read_task_set(written(tmp_path / "set.jsonl", GOOD, line, last))
    assert [item.id for item in task_set.items] == ["a", "z"]
    (rejected,) = task_set.rejected
    assert reason in rejected


def test_a_file_that_holds_nothing_is_an_error(tmp_path: Path) -> None:
    for path in (tmp_path / "none.jsonl", written(tmp_path / "empty.jsonl"), written(tmp_path / "bad.jsonl", "{")):
        with pytest.raises(InputError, match=path.name):
            read_task_set(path)
    broken = tmp_path / "broken.jsonl.gz"
    broken.write_bytes(gzip.compress(json.dumps(GOOD).encode())[:-9])
    with pytest.raises(InputError, match=broken.name):
        read_task_set(broken)
