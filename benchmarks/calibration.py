#!/usr/bin/env python3
"""Compares the success that is predicted for requests with what happened, with the real pipeline in a lake of its own.

    .venv/bin/python benchmarks/calibration.py HISTORY PREDICTIONS.jsonl [--work DIR] [--most N]

HISTORY holds folders with source.toml and CSV files, as a client's. Of each source whose outcomes are known, the cases
that began first (70 %) are the history; N of the others are asked by what was known at their start. A prediction is
{"source", "case", "success", "happened"}. The curve is printed by bins of about equal numbers, for each source and for
all, with the expected calibration error: the mean distance of predicted and observed shares, by cases.
"""

import argparse
import csv
import json
import random
import sys
from collections.abc import Sequence
from datetime import UTC, datetime
from itertools import groupby
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
from two_jobs import KEPT, rebuild_and_generate, rows_of_first_goals, to_write, workplace  # type: ignore[import-not-found]

from opus_pipelines.core.settings_files import toml_quoted
from opus_pipelines.history.ingestion.ingest import read_history
from opus_pipelines.history.records.source_settings import FILE_NAME, load_source
from opus_pipelines.lake.layout import Lake

SHARE = 0.7  # of the cases that are history
BINS = 5
ANSWERS = """
    select i.client, i.folder, o.intake_id, o.intention_id, o.success_probability as success
    from workflows_optimized o join generation_intakes i using (intake_id)
    where o.rank = 1
"""


def main() -> int:
    """Lay out the inputs, run both jobs, write the predictions, print the curves."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("history", type=Path, metavar="HISTORY")
    parser.add_argument("predictions", type=to_write)
    parser.add_argument("--work", type=Path, help=KEPT)
    parser.add_argument("--most", type=int, default=50, help="requests of each source")
    arguments = parser.parse_args()
    with workplace(arguments.work, "calibration") as work:
        happened = write_inputs(arguments.history, work, arguments.most)
        (work / "opus.toml").write_text("[forecasts]\nnightly = false\n")
        rebuild_and_generate(work)
        rows = [
            {"source": row["client"], "case": row["folder"], "success": row["success"]}
            | {"happened": happened[row["client"], row["folder"]]}
            for row in rows_of_first_goals(work, ANSWERS)
        ]
    arguments.predictions.write_text("".join(json.dumps(row) + "\n" for row in rows))
    known = [row for row in rows if row["success"] is not None]
    for source in (*sorted({row["source"] for row in rows}), None):
        own = [row for row in known if source in (None, row["source"])]
        asked = sum(source in (None, row["source"]) for row in rows)
        print(f"{source or 'all'}: {len(own)} of {asked} answers state a success; error {error(own):.3f}")
        for part in bins(own):
            print(f"    predicted {mean(part, 'success'):.3f}  happened {mean(part, 'happened'):.3f}  of {len(part)}")
    return 0


def write_inputs(history: Path, work: Path, most: int) -> dict[tuple[str, str], bool]:
    """Writes the first cases of each source as history, and intakes of the others; returns how these ended."""
    state = read_history(Lake(work / "whole"), history, datetime.now(UTC))
    happened = {}
    for source in state.sources:
        cases = [row for file in sorted(source.folder.glob("*.parquet")) for row in pq.read_table(file).to_pylist()]
        cases = sorted((row for row in cases if row["started_at"]), key=lambda row: row["started_at"])
        later = cases[int(SHARE * len(cases)) :]
        asked = [row for row in later if row["success"] is not None]
        if not asked or source.by_activities:  # what decides the outcome is known only where somebody judged it
            continue
        copy_without(history / source.source, work / "history" / source.source, {row["case_id"] for row in later})
        for row in random.Random(0).sample(asked, min(most, len(asked))):
            name = "".join(c if c.isalnum() else "-" for c in row["case_id"])
            place = work / "intakes" / source.source / "contract" / name / "input"
            place.mkdir(parents=True)
            (place / "request.json").write_text(json.dumps(dict(row["attributes"] or ()), ensure_ascii=False))
            happened[source.source, name] = row["success"]
        industry = f"industry = {toml_quoted(source.industry)}\n" if source.industry else ""
        (work / "intakes" / source.source / "contract" / "contract.toml").write_text(industry)
    return happened


def copy_without(source: Path, target: Path, left_out: set[str]) -> None:
    """Copies a source without the rows of these cases."""
    settings = load_source(source)
    encoding, delimiter = (settings.encoding or ["utf-8"])[0], settings.delimiter or ","
    target.mkdir(parents=True)
    (target / FILE_NAME).write_bytes((source / FILE_NAME).read_bytes())
    for file in sorted(path for path in source.iterdir() if path.name != FILE_NAME):
        with (
            file.open(encoding=encoding, newline="") as read,
            (target / file.name).open("w", encoding=encoding) as write,
        ):
            rows = csv.DictReader(read, delimiter=delimiter)
            written = csv.DictWriter(write, list(rows.fieldnames or ()), delimiter=delimiter)
            written.writeheader()
            written.writerows(row for row in rows if row[str(settings.columns.case)] not in left_out)


def bins(rows: Sequence[dict[str, Any]]) -> list[list[dict[str, Any]]]:
    """The rows by predicted success, in parts of at least a fifth; equal predictions (in percent) are never parted."""
    found: list[list[dict[str, Any]]] = []
    ordered = sorted(rows, key=lambda row: row["success"])
    for _, same in groupby(ordered, key=lambda row: round(row["success"], 2)):
        if not found or len(found[-1]) * BINS >= len(rows):
            found.append([])
        found[-1] += same
    return found


def error(rows: Sequence[dict[str, Any]]) -> float:
    """The expected calibration error; NaN without rows."""
    gaps = [len(part) * abs(mean(part, "success") - mean(part, "happened")) for part in bins(rows)]
    return sum(gaps) / len(rows) if rows else float("nan")


def mean(rows: Sequence[dict[str, Any]], name: str) -> float:
    """The mean of a column."""
    return sum(float(row[name]) for row in rows) / len(rows)


if __name__ == "__main__":
    sys.exit(main())
