"""Scores predictions for a whole log with the shared plans.py, next to its controls.

All that happened is scored, and work steps alone.
"""

import gzip
import json
import re
import subprocess
import sys
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

EVERYTHING, WORK = "everything", "work steps"
_CELL = r"([+-]?\d\.\d+) \[([+-]?\d\.\d+),([+-]?\d\.\d+)\]"
_MEAN = re.compile(rf"^  (predictions|nearest request|most frequent plan) +node {_CELL}  link {_CELL}", re.MULTILINE)
_DIFFERENCE = re.compile(rf"^  minus (nearest request|most frequent plan) +node {_CELL}  link {_CELL}", re.MULTILINE)


@dataclass(frozen=True)
class Score:
    """The result of one kind of scoring.

    It has the number of requests, the F1 of nodes and links, and the difference of each from the better control with
    its 95 % interval.
    """

    what: str
    requests: int
    node: float
    link: float
    node_less: tuple[float, float, float]
    link_less: tuple[float, float, float]


@dataclass(frozen=True)
class Scores:
    """The scores of one source; `text` is what plans.py printed."""

    rows: list[Score] = field(default_factory=list)
    text: str = ""


def scored(place: Path, bench: Path) -> Scores:
    """Scores the predictions in `place`; empty where there are none.

    `place` holds gold/train.jsonl.gz, gold/test.jsonl.gz and predictions.jsonl, and for work steps alone steps.jsonl
    and events.json, as benchmarks/logplans.py writes them. Only predicted requests count.
    """
    if not (place / "predictions.jsonl").exists():
        return Scores()
    asked = {row["id"] for row in _rows(place / "predictions.jsonl")}
    ways = [(EVERYTHING, place / "predictions.jsonl", frozenset[str]())]
    if (place / "steps.jsonl").exists() and (events := frozenset(json.loads((place / "events.json").read_text()))):
        ways.append((WORK, place / "steps.jsonl", events))
    found, texts = [], []
    for what, predictions, left_out in ways:
        with TemporaryDirectory(prefix="opus-gallery-") as folder:
            test, train = Path(folder) / "test.jsonl.gz", Path(folder) / "train.jsonl.gz"
            _write(
                test, (_without(row, left_out) for row in _rows(place / "gold" / "test.jsonl.gz") if row["id"] in asked)
            )
            _write(train, (_without(row, left_out) for row in _rows(place / "gold" / "train.jsonl.gz")))
            command = [
                sys.executable,
                str(bench / "plans.py"),
                "score",
                str(test),
                str(predictions),
                "--learn",
                str(train),
            ]
            done = subprocess.run(command, capture_output=True, text=True, check=False)
        texts.append(f"{what}\n{done.stdout or done.stderr}")
        found += [read_scores(what, done.stdout)] if done.returncode == 0 else []
    return Scores(found, "\n".join(texts))


def read_scores(what: str, printed: str) -> Score:
    """Reads the first part of the output of plans.py, which covers all requests.

    The better control is the one with the higher F1, of nodes and of links each.
    """
    part = printed.split("\nnew, ")[0]
    means = {m[1]: (float(m[2]), float(m[5])) for m in _MEAN.finditer(part)}
    less = {m[1]: [(float(m[i]), float(m[i + 1]), float(m[i + 2])) for i in (2, 5)] for m in _DIFFERENCE.finditer(part)}
    node, link = (max(less, key=lambda control, i=i: means[control][i]) for i in (0, 1))  # type: ignore[misc]
    return Score(what, int(re.findall(r"n = (\d+)", part)[0]), *means["predictions"], less[node][0], less[link][1])


def _without(row: dict[str, Any], events: frozenset[str]) -> dict[str, Any]:
    """A plan without events and outcomes, and without the links that touch one."""
    plan = [task for task in row["plan"] if task not in events]
    return row | {"plan": plan, "links": [link for link in row["links"] if not events & set(link)]} if events else row


def _rows(path: Path) -> list[dict[str, Any]]:
    data = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
    return [json.loads(line) for line in data.decode().splitlines() if line.strip()]


def _write(path: Path, rows: Iterable[dict[str, Any]]) -> None:
    with gzip.open(path, "wt") as file:
        file.writelines(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
