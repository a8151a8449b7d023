#!/usr/bin/env python3
"""Task resolution measured: against the sample's truth, and on a log that is split into two sources of other names.

    .venv/bin/python benchmarks/resolution.py SAMPLE [--log LOG.xes.gz ...] [--work DIR]

SAMPLE is what `opus sample` wrote. Prints precision and recall over pairs of raw keys of different sources. Each LOG is
split by case into two sources; in the second every name is written as another system would (snake_case, the plural of
its last word), so that the truth is
known: each name and its variant are one task. Prints every merge that is wrong, and the CPU seconds.
"""

import argparse
import json
import sys
import tempfile
import time
from collections.abc import Callable, Iterable
from datetime import UTC, datetime
from itertools import combinations
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from opus_pipelines.core.schemas import IMPLEMENTATIONS
from opus_pipelines.core.settings import Settings
from opus_pipelines.history.ingestion.ingest import read_history
from opus_pipelines.lake.layout import Lake, read_table, write_table
from opus_pipelines.language.embedding.cache import CachedEncoder
from opus_pipelines.language.embedding.encoder import Encoder
from opus_pipelines.wkg.task_matching.resolve import NightlyResolution

NOW = datetime(2026, 1, 1, tzinfo=UTC)
Tasks = dict[str, str]  # source/task key → task


def main() -> int:
    """Measure the sample, then each log."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("sample", type=Path)
    parser.add_argument(
        "--log", type=Path, action="append", default=[], help="an event log; may be given several times"
    )
    parser.add_argument("--work", type=Path, help="folder of the lakes, kept; default: a temporary one")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        work = arguments.work or Path(folder)
        encoder = CachedEncoder(Encoder(), work / "embeddings")
        lake = Lake(work / "sample")
        sources = read_history(lake, arguments.sample / "history", NOW).sources
        report("sample", lake, sources, sample_truth(arguments.sample), encoder)
        for log in arguments.log:
            lake = Lake(work / log.name)
            report(log.name, lake, *split(lake, log, work / "history" / log.name), encoder)
    return 0


def report(name: str, lake: Lake, sources: Iterable[Any], truth: Tasks, encoder: CachedEncoder) -> None:
    """Resolve, compare with the truth, print."""
    began = time.process_time()
    rows = NightlyResolution(lake, Settings(), list(sources)).resolution(lambda: encoder).rows
    found = {f"{row['source']}/{row['task_key']}": row["task_id"] for row in rows}
    seconds = time.process_time() - began
    merged, true = pairs(found), pairs(truth)
    right = len(merged & true)
    share: Callable[[int, int], float] = lambda part, of: part / of if of else 1.0
    print(
        f"{name}: {len(found)} raw keys, {len(true)} true pairs, {len(merged)} merged, {right} of them right; "
        f"precision {share(right, len(merged)):.3f}, recall {share(right, len(true)):.3f}; {seconds:.1f} s CPU"
    )
    for wrong in sorted(map(sorted, merged - true)):
        print(f"  wrong: {' = '.join(wrong)}")
    for missed in sorted(map(sorted, true - merged)):
        print(f"  missed: {' = '.join(missed)}")


def pairs(tasks: Tasks) -> set[frozenset[str]]:
    """Pairs of raw keys of different sources with the same task."""
    return {
        frozenset((one, other))
        for one, other in combinations(sorted(tasks), 2)
        if tasks[one] == tasks[other] and one.split("/")[0] != other.split("/")[0]
    }


def sample_truth(sample: Path) -> Tasks:
    """Of truth.json."""
    industries = json.loads((sample / "truth.json").read_text("utf-8"))["industries"]
    return {
        f"{source}/{key}": f"{industry}/{task['task']}"
        for industry, said in industries.items()
        for task in said["tasks"]
        for source, key in task["keys"].items()
    }


def split(lake: Lake, log: Path, history: Path) -> tuple[list[Any], Tasks]:
    """The log as two sources of one industry, and which of their keys are one task."""
    folder = history / "log"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "source.toml").write_text('industry = "one"\ntimezone = "UTC"\n', "utf-8")
    (folder / log.name).write_bytes(log.read_bytes())
    rows = read_table(IMPLEMENTATIONS, read_history(lake, history, NOW).sources[0].folder).to_pylist()
    keys = sorted({step["task_key"] for row in rows for step in row["tasks"]})
    sources, truth = [], {}
    for number, (name, rename) in enumerate((("first", str), ("second", variant))):
        part = [
            row
            | {
                "tasks": [
                    step | {"task_key": rename(step["task_key"]), "title": rename(step["title"] or step["task_key"])}
                    for step in row["tasks"]
                ]
            }
            for row in rows[number::2]
        ]
        place = lake.root / "split" / name
        write_table(IMPLEMENTATIONS, pa.Table.from_pylist(part, schema=IMPLEMENTATIONS.schema), place)
        sources.append(SimpleNamespace(source=name, content=log.name, folder=place, merge=True))
        there = {
            key
            for row in pq.read_table(place / "part-00000.parquet", columns=["tasks"])["tasks"].to_pylist()
            for key in (step["task_key"] for step in row)
        }
        truth |= {f"{name}/{rename(key)}": key for key in keys if rename(key) in there}
    return sources, truth


def variant(name: str) -> str:
    """The name as another system writes it: snake_case, its last word in the plural."""
    words = name.split()
    return "_".join(
        [*words[:-1], words[-1] if words[-1][-1:] in "s0123456789" or words[-1].isupper() else f"{words[-1]}s"]
    )


if __name__ == "__main__":
    sys.exit(main())
