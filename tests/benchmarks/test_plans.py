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
    descriptions = plans.described(tmp_path / name)
    assert descriptions == {"send_sms": "sends a text"}
    row = {"id": "a", "request": "text me", "plan": ["rent", "send_sms"], "links": [["rent", "send_sms"]]}
    assert plans.record(row, descriptions)["steps"] == [
        {"tool": "rent", "description": None, "predecessors": []},
        {"tool": "send_sms", "description": "sends a text", "predecessors": [0]},
    ]


def test_without_a_catalogue_nothing_is_described() -> None:
    assert plans.described(None) == {}
