"""Samples of predicted plans: their scores against a task set, features of history, lines without a reference."""

import json
from pathlib import Path
from typing import Any

import pytest

from benchmarks.errors import main, prediction_samples
from opus_pipelines.core.errors import InputError

GOLD = [
    {"id": "a", "request": "book a room", "context": "", "plan": ["find", "book"], "links": [["find", "book"]]},
    {"id": "b", "request": "cancel it", "plan": ["find", "cancel"]},
    {"id": "c", "request": "pay it", "plan": ["pay"]},
]
HISTORY = [{"id": str(n), "request": "book", "plan": ["find", "book"]} for n in range(4)]


def write(path: Path, rows: list[Any]) -> Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def test_predictions_are_scored_and_what_history_lacks_is_a_feature(tmp_path: Path) -> None:
    predictions = [
        {"id": "a", "plan": ["find", "book"], "links": [["find", "book"]]},
        {"task_key": "b", "actions": ["find"]},
        {"id": "c", "plan": [], "links": []},
        {"id": "d", "plan": ["find"]},
        {"id": "a", "plan": ["again"]},
        {"id": "e"},
        ["f"],
    ]
    gold, history = write(tmp_path / "gold.jsonl", GOLD), write(tmp_path / "history.jsonl", HISTORY)
    samples, rejected = prediction_samples(write(tmp_path / "p.jsonl", predictions), gold, history)
    assert [(s.id, s.scores["node_f1"], s.scores["link_f1"]) for s in samples] == [
        ("a", 1.0, 1.0),
        ("b", pytest.approx(2 / 3), 0.0),
        ("c", 0.0, 0.0),
    ]
    assert [dict(s.features) for s in samples] == [
        {"no plan": False, "step not in history": False, "rare step": False, "new set of steps": False},
        {"no plan": False, "step not in history": True, "rare step": True, "new set of steps": True},
        {"no plan": True, "step not in history": True, "rare step": True, "new set of steps": True},
    ]
    assert [line.split(":")[0] for line in rejected] == [f"p.jsonl, line {n}" for n in (4, 5, 6, 7)]


def test_predictions_of_other_requests_are_an_error(tmp_path: Path) -> None:
    gold = write(tmp_path / "gold.jsonl", GOLD)
    with pytest.raises(InputError, match="has no 'x'"):
        prediction_samples(write(tmp_path / "p.jsonl", [{"id": "x", "plan": ["a"]}]), gold)


def test_the_program_reads_predictions(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    gold = [{"id": str(n), "group": str(n), "request": "x", "plan": ["a", "b" if n % 2 else "c"]} for n in range(12)]
    made = [{"id": str(n), "plan": ["a", "b"]} for n in range(12)]
    files = write(tmp_path / "p.jsonl", made), write(tmp_path / "gold.jsonl", gold)
    history = write(tmp_path / "history.jsonl", [{"id": "h", "request": "y", "plan": ["a", "b"]}])
    command = [str(files[0]), "--gold", str(files[1]), "--score", "exact"]
    assert main([*command, "--history", str(history)]) == 0
    assert "step not in history *" in capsys.readouterr().out
