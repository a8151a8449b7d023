#!/usr/bin/env python3
"""Measures whether the 95 % intervals of p and q contain the truth, and whether wkg/needs has the needed tasks.

It uses the sample, whose truth is known.

    PYTHONPATH=. .venv/bin/python benchmarks/coverage.py [--work DIR] [--seed N]

Writes the sample, mines it, and prints by basis how many intervals of tasks and ways hold the truth, how wide they are
(median) and how far the values are off (mean); then the same with every step's outcome hidden, so that p and q rest on
how cases ended; then precision and recall of the needed tasks of each kind of case, against the tasks that every
regular case of the kind does.
"""

import argparse
import json
import tempfile
from collections import defaultdict
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from opus_pipelines.core.settings import Settings
from opus_pipelines.core.statistics import Estimate
from opus_pipelines.history.ingestion.ingest import read_history
from opus_pipelines.lake.layout import Lake
from opus_pipelines.quality.sample import write_sample
from opus_pipelines.wkg.estimates.critical_tasks import critical_task_rows, lacking
from opus_pipelines.wkg.estimates.sequences import Sequences
from opus_pipelines.wkg.estimates.success import COUNTS, SuccessModel, from_cases
from opus_pipelines.wkg.rebuild import tables
from opus_pipelines.wkg.rebuild.aggregates import mine_missing, read_aggregate
from opus_pipelines.wkg.rebuild.records import HistoryRecord
from opus_pipelines.wkg.rebuild.steps import resolve
from resources.spark import SparkResource
from tests.quality.sample.simulate import step_of

Row = dict[str, Any]
Measured = tuple[str, Estimate, float]  # what, its estimate, the truth


def main() -> None:
    """Mine the sample, print the three tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--work", type=Path, help="folder for sample and lake, kept; default: a temporary one, removed")
    parser.add_argument("--seed", type=int, default=0, help="of the sample")
    arguments = parser.parse_args()
    if arguments.work:
        measure(arguments.work, arguments.seed)
        return
    with tempfile.TemporaryDirectory() as work:
        measure(Path(work), arguments.seed)


def measure(work: Path, seed: int) -> None:
    """The whole measurement in one folder."""
    sample = write_sample(work / "sample", seed)
    lake, settings = Lake(work / "lake"), Settings(paths={"lake": work / "lake"})
    state = read_history(lake, sample.history, datetime(2026, 1, 1, tzinfo=UTC))
    resolved = resolve(settings, lake, HistoryRecord(tuple(state.sources), ()))
    mine_missing(lake, resolved.parts, SparkResource.of(settings).session)
    truth = json.loads(sample.truth.read_text())
    ways, sequences = (
        read_aggregate(lake, resolved.parts, "ways"),
        Sequences(read_aggregate(lake, resolved.parts, "variants")),
    )
    names, needed = resolved.resolution.titles, critical_task_rows(sequences)
    print(f"seed {seed}\nfrom the outcomes of steps")
    show(compared(ways, sequences, needed, names, truth, settings))
    print("from the outcomes of cases alone")
    show(compared(hidden(ways), sequences, needed, names, truth, settings))
    print("needed tasks")
    show_needs(needed, names, truth)


def hidden(ways: pa.Table) -> pa.Table:
    """The `ways` aggregate as it would be if no source judged a step."""
    for name in COUNTS:
        ways = ways.set_column(ways.schema.get_field_index(name), name, pa.array(np.zeros(ways.num_rows, np.int64)))
    return ways


def compared(
    ways: pa.Table, sequences: Sequences, needed: list[Row], names: dict[str, str], truth: Row, settings: Settings
) -> Iterator[Measured]:
    """Every estimate with its truth."""
    by_way, by_task = tables.ways_and_tasks(ways)
    model = SuccessModel(
        settings.priors, by_task, by_way, from_cases(sequences, lacking(sequences, needed), by_task, settings.priors)
    )
    of_task = {row["task_id"]: model.of_task(row) for row in by_task}
    for row in [*by_task, *by_way]:
        industry, task = row["industry"], of_task[row["task_id"]]
        title = step_of(truth, industry, names[row["task_id"]])
        true = next(t for t in truth["industries"][industry]["tasks"] if t["task"] == title)
        if "actor_kind" in row:
            true = next(w for w in true["ways"] if (w["actor_kind"], w["model"]) == (row["actor_kind"], row["model"]))
            task = model.of_way(row, task)
        what = "ways " if "actor_kind" in row else "tasks"
        yield f"{what} p", task[0], true["p"]
        yield f"{what} q", task[1], true["q"]


def show(found: Iterable[Measured]) -> None:
    """A line for each kind of figure and basis."""
    groups: dict[tuple[str, str], list[tuple[Estimate, float]]] = defaultdict(list)
    for what, estimate, true in found:
        groups[what, estimate.basis].append((estimate, true))
        groups[what, "all"].append((estimate, true))
    print(f"  {'figure':8} {'basis':10} {'count':>5} {'hold the truth':>15} {'median width':>13} {'mean error':>11}")
    for (what, basis), rows in sorted(groups.items()):
        holds = np.mean([e.lower <= true <= e.upper for e, true in rows])
        width = np.median([e.upper - e.lower for e, _ in rows])
        error = np.mean([abs(e.value - true) for e, true in rows])
        print(f"  {what:8} {basis:10} {len(rows):5d} {holds:15.3f} {width:13.3f} {error:11.4f}")


def show_needs(rows: list[Row], names: dict[str, str], truth: Row) -> None:
    """Compares the needed tasks of every kind of case and client with the truth.

    It also reports separately the check that a share of its cases skipped.
    """
    counts: dict[str, list[int]] = {"every regular task": [0, 0, 0], "the skipped check": [0, 0, 0]}
    for industry, of in truth["industries"].items():
        for kind in of["kinds"]:
            mine = [
                r
                for r in rows
                if (r["industry"], r["client"], r["kind_of_case"]) == (industry, kind["client"], kind["kind"])
            ]
            asked = {step_of(truth, industry, names[r["task_id"]]) for r in mine if r["needed"]}
            by_contrast = {
                step_of(truth, industry, names[r["task_id"]]) for r in mine if r["needed"] and r["cases_without"] >= 3
            }
            checks = {n["task"] for n in kind["needed"]}
            for name, found, true in (
                ("every regular task", asked, set(kind["always"])),
                ("the skipped check", by_contrast, checks),
            ):
                for place, n in enumerate((len(found & true), len(found), len(true))):
                    counts[name][place] += n
            if asked != set(kind["always"]) or by_contrast != checks:
                print(
                    f"  {kind['kind']}: too much {sorted(asked - set(kind['always']))}, missed "
                    f"{sorted(set(kind['always']) - asked)}, "
                    f"by contrast {sorted(by_contrast)}"
                )
    for name, (both, all_found, all_true) in counts.items():
        print(
            f"  {name}: precision {both}/{all_found} = {both / max(all_found, 1):.3f}, "
            f"recall {both}/{all_true} = {both / max(all_true, 1):.3f}"
        )


if __name__ == "__main__":
    main()
