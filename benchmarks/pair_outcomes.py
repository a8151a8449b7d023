#!/usr/bin/env python3
"""Measures what the task before says of the next step: its outcome and its time, on cases that were held out.

    PYTHONPATH=. .venv/bin/python benchmarks/pair_outcomes.py HISTORY [--within-median] [--tools]

HISTORY is a folder of sources as `opus rebuild` reads them. A fifth of the cases, by hash, is held out; the others are
counted as sql/wkg/pairs.sql counts them and estimated by `wkg.estimates.pair_figures`, which fits λ on its own folds.
Each held-out step that follows another one is predicted three times:

    task only      the figure of the task, whatever came before: γ = 0
    pairs alone    that of the pair wherever it was executed once: γ = 1, without shrinkage
    shrunk pairs   γ·pair + (1 − γ)·task, as the Reward has it

An outcome scores its log-loss (nats a step), a working time the log-loss of an exponential distribution with the
predicted mean, less that of the task alone. Below 0 is better than the task alone; the interval is a bootstrap over
cases (2,000 draws). Where steps have no outcome of their own, --within-median takes the outcome of the case for that
of each of its steps: done within the median lead time of the log. --tools takes the result of a call for the outcome:
an error, False or (False, ...) failed.
"""

import argparse
import math
import sys
import tempfile
import zlib
from collections import defaultdict
from collections.abc import Iterable
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from opus_pipelines.core.schemas import IMPLEMENTATIONS
from opus_pipelines.history.ingestion.ingest import HistoryOptions, read_history
from opus_pipelines.lake.layout import Lake, read_table
from opus_pipelines.wkg.estimates.aggregate_columns import FOLDS, PAIRS
from opus_pipelines.wkg.estimates.pair_figures import pair_figures

HELD_OUT = 5  # one case of so many
PRIOR = 5.0  # pseudo-counts of a task's rate, at the rate of all steps
LEAST = 1e-4
MODELS = ("task only", "pairs alone", "shrunk pairs")
Step = dict[str, Any]


def steps_of(case: dict[str, Any], outcome: bool | None, tools: bool) -> list[Step]:
    """Returns the steps of a case that follow another; `outcome` is that of the case, where it counts for each."""
    found: list[Step] = []
    failed = False
    for before, task in zip([None, *case["tasks"]], case["tasks"], strict=False):
        result = dict(task["attributes"] or {}).get("result")
        own = _called(result) if tools else task["success"] if outcome is None else outcome
        if before is not None:
            found.append(
                {
                    "src": before["task_key"],
                    "dst": task["task_key"],
                    "figure": "q" if failed else "p",
                    "success": own,
                    "ms": task["duration_ms"],
                    "case": case["implementation_id"],
                }
            )
        failed = own is False and outcome is None
    return found


def _called(result: str | None) -> bool | None:
    if result is None or result == "None":
        return None
    return not (result.startswith(("False", "(False")) or "Error" in result.partition(":")[0])


def estimated(steps: Iterable[Step]) -> tuple[dict[str, dict[str, Any]], dict[tuple[str, str], dict[str, Any]]]:
    """Returns the figures of each task, and those of each pair."""
    counts: dict[str, Any] = defaultdict(lambda: defaultdict(float))
    pairs: dict[tuple[str, str, int], dict[str, Any]] = {}
    for step in steps:
        fold = zlib.crc32(step["case"].encode()) % FOLDS
        row = pairs.setdefault((step["src"], step["dst"], fold), dict.fromkeys(PAIRS.names, 0))
        row["count"] += 1
        if step["success"] is not None:
            for where in (counts[step["dst"]], counts[None], row):
                where[f"{step['figure']}_n"] += 1
                where[f"{step['figure']}_successes"] += step["success"]
        if step["ms"] is not None:
            for where in (counts[step["dst"]], row):
                where["duration_n"] += 1
                where["duration_sum"] += round(step["ms"] * 1000)
    whole = {f: (counts[None][f"{f}_successes"] + 0.5) / (counts[None][f"{f}_n"] + 1) for f in "pq"}
    none = {"actor_kind": None, "model": None, "actor_group": None, "cost_usd_mean": None, "industries": [""]}
    tasks = {
        name: none
        | {"task_id": name}
        | {f: (c[f"{f}_successes"] + PRIOR * whole[f]) / (c[f"{f}_n"] + PRIOR) for f in "pq"}
        | {"duration_ms_mean": c["duration_sum"] / c["duration_n"] / 1000 if c["duration_n"] else None}
        for name in sorted({name for src, dst, _ in pairs for name in (src, dst)})
        for c in (counts[name],)
    }
    key = lambda src, dst, fold: {"src": src, "dst": dst, "fold": fold, "cost_sum": Decimal(0)}
    rows = [
        row | key(*name) | {"duration_sum": Decimal(row["duration_sum"])} | dict.fromkeys(list(none)[:3])
        for name, row in pairs.items()
    ]
    return tasks, pair_figures(pa.Table.from_pylist(rows, PAIRS), list(tasks.values()), list(tasks.values()))


def losses(step: Step, task: dict[str, Any], pair: dict[str, Any] | None, rates: bool) -> list[float] | None:
    """Returns the loss of each model; None where the step has no such figure."""
    if rates:
        if step["success"] is None:
            return None
        name, own = f"dst_{step['figure']}", task[step["figure"]]
        n = pair[f"{name}_n"] if pair else 0
        alone = (pair[f"{name}_successes"] + own) / (n + 1) if pair else own
        shrunk = pair[name] if pair and n else own
        return [_log_loss(p, step["success"]) for p in (own, alone, shrunk)]
    own = task["duration_ms_mean"]
    if step["ms"] is None or not own:
        return None
    n = pair["dst_duration_n"] if pair else 0
    alone = (n * pair["dst_duration_ms_observed"] + own) / (n + 1) if pair and n else own
    shrunk = pair["dst_duration_ms_mean"] if pair and n else own
    return [math.log(mean / own) + step["ms"] / mean - step["ms"] / own for mean in (own, alone, shrunk)]


def _log_loss(p: float, success: bool) -> float:
    p = min(max(p, LEAST), 1 - LEAST)
    return -math.log(p if success else 1 - p)


def interval(by_case: dict[str, list[float]]) -> tuple[float, float]:
    """Returns the 95 % bootstrap interval of the mean over steps, cases drawn."""
    sums = np.array([[sum(values), len(values)] for values in by_case.values()])
    draws = np.random.default_rng(0).integers(0, len(sums), (2_000, len(sums)))
    means = sums[draws, 0].sum(1) / sums[draws, 1].sum(1)
    low, high = np.quantile(means, [0.025, 0.975])
    return float(low), float(high)


def report(source: str, cases: list[dict[str, Any]], arguments: argparse.Namespace) -> None:
    """Prints the table of one source."""
    times = [_lead(c) for c in cases]
    median = float(np.median([t for t in times if t is not None] or [0]))
    seen: list[Step] = []
    asked: list[Step] = []
    for case, lead in zip(cases, times, strict=True):
        outcome = lead is not None and lead <= median if arguments.within_median else None
        held = zlib.crc32(("held " + case["implementation_id"]).encode()) % HELD_OUT == 0
        (asked if held else seen).extend(steps_of(case, outcome, arguments.tools))
    tasks, pairs = estimated(seen)
    for rates, what in ((True, "outcome"), (False, "working time")):
        found = [
            (step, row)
            for step in asked
            if step["dst"] in tasks
            and (row := losses(step, tasks[step["dst"]], pairs.get((step["src"], step["dst"])), rates)) is not None
        ]
        if not found:
            print(f"{source}, {what}: no step tells it")
            continue
        gamma = "dst_p_gamma" if rates else "dst_duration_gamma"
        used = float(np.median([pair[gamma] for pair in pairs.values()]))
        print(f"{source}, {what}: {len(found)} held-out steps, {len(pairs)} pairs, median γ {used:.3f}")
        for i, model in enumerate(MODELS):
            less: dict[str, list[float]] = defaultdict(list)
            for step, row in found:
                less[step["case"]].append(row[i] - row[0])
            low, high = interval(less)
            mean, less_mean = np.mean([(row[i], row[i] - row[0]) for _, row in found], axis=0)
            print(f"  {model:14}{mean:10.4f}{less_mean:+10.4f} [{low:+.4f}, {high:+.4f}]")


def _lead(case: dict[str, Any]) -> float | None:
    begin, end = case["started_at"], case["ended_at"]
    return (end - begin).total_seconds() if begin is not None and end is not None else None


def main() -> int:
    """Reads every source and prints its tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("history", type=Path)
    parser.add_argument("--within-median", action="store_true")
    parser.add_argument("--tools", action="store_true")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        lake = Lake(Path(folder) / "lake")
        state = read_history(
            lake, arguments.history, datetime.now(UTC), HistoryOptions(max_quarantined_share=1.0), lambda line: None
        )
        for source in state.sources:
            report(source.source, read_table(IMPLEMENTATIONS, source.folder).to_pylist(), arguments)
    return 0


if __name__ == "__main__":
    sys.exit(main())
