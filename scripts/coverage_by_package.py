#!/usr/bin/env python3
"""Print which share of its lines the tests ran, package by package, from coverage's JSON report.

    scripts/coverage_by_package.py build/coverage.json

`make coverage` writes the report and calls this.
"""

import json
import sys
from collections import Counter
from pathlib import Path


def package_of(file: str) -> str:
    """Returns the first package below opus_pipelines, or else the top folder; a root module counts as its folder."""
    parts = Path(file).parts
    depth = 2 if parts[0] == "opus_pipelines" and len(parts) > 2 else 1
    return "/".join(parts[:depth])


def table(report: dict[str, dict[str, dict[str, dict[str, int]]]]) -> list[str]:
    """Returns a line for each package, in alphabetical order, and one for all: lines run, lines, share in percent."""
    run, lines = Counter[str](), Counter[str]()
    for file, found in report["files"].items():
        for name in (package_of(file), "total"):
            run[name] += found["summary"]["covered_lines"]
            lines[name] += found["summary"]["num_statements"]
    names = [*sorted(lines.keys() - {"total"}), "total"]
    width = max(map(len, names))
    return [f"{'package':{width}}    run  lines  share"] + [
        f"{name:{width}} {run[name]:6} {lines[name]:6} {100 * run[name] / max(lines[name], 1):5.1f}%" for name in names
    ]


if __name__ == "__main__":
    print("\n".join(table(json.loads(Path(sys.argv[1]).read_text()))))
