#!/usr/bin/env python3
"""Prints what each part of the system was worth when it was measured, for the end of `make run`.

    scripts/parts_lines.py benchmarks/results/parts.json

The file is what `benchmarks/parts.py --results` wrote. Of each set the parts are named that are worth most, and those
whose removal changes nothing; an interval that holds 0 is shown, since the part then does not show on that set.
"""

import json
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

SETS = {  # of the file: how a reader knows it
    "sample": "the sample's contracts, USD a piece of work",
    "clients: all": "clients without history, USD a piece of work",
    "sopbench: F1": "SOPBench, F1",
    "plans: tools": "plans, F1",
}
LARGEST = 6  # parts that are named
NAMES = {  # how an ablation's name begins, and the name of the part
    "no ": "",
    "untrained Intention": "the trained Intention encoder",
    "other context": "the intake's own context",
}


def lines(kept: Mapping[str, Any]) -> Iterator[str]:
    """Yields two lines for each set that was measured."""
    for key, about in SETS.items():
        rows = {
            name: row
            for name, row in kept.get(key, {"rows": {}})["rows"].items()
            if "changed" in row and not name.startswith("look-up")
        }
        worth = sorted(rows, key=lambda name: -rows[name]["worth"])
        told = [_told(name, rows[name]) for name in worth[:LARGEST] if rows[name]["worth"] > 0]
        same = [_part(name) for name in worth if not rows[name]["changed"]]
        if rows:
            yield f"{about}: " + (", ".join(told) or "no part by itself is worth more than 0")
            yield "  without these the same workflows: " + (", ".join(same) or "none")


def _told(name: str, row: Mapping[str, Any]) -> str:
    low, high = row["worth_interval"]
    shown = f" [{low:.3g}, {high:.3g}]" if low <= 0 else ""
    return f"{_part(name)} {row['worth']:.3g}{shown}"


def _part(name: str) -> str:
    for before, after in NAMES.items():
        name = name.replace(before, after, 1) if name.startswith(before) else name
    return name


if __name__ == "__main__":
    print("parts      measured for the release by benchmarks/parts.py, not in this run")
    for line in lines(json.loads(Path(sys.argv[1]).read_text())):
        print(f"           {line}")
