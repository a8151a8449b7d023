#!/usr/bin/env python3
"""Predicted lead times of real cases that were not seen, beside the median lead time of history.

    .venv/bin/python benchmarks/lead_time.py EVENT_LOGS [--logs helpdesk,bpic2012] [--train 0.7] [--most 400]
        [--independent]
    [--finished]

Cases are ordered by their start; the first share is history. Of every other case (at most --most, seed 0) the lead time
is predicted from its own sequence of tasks: waiting and working times along it, by `workflow.evaluation.lead_time`, as
`opus generate` does it for a plan. Printed per
log: the share of cases within the predicted median (should be near .5) and within the predicted 90th percentile (near
.9), the median absolute error of the predicted median in hours; and the same of the baseline, which says for every case
the median and the 90th percentile of history's cases. `correlation`: how much of a wait's normal score its case
explains. --independent sets it to 0. --finished leaves cases out of history that had not ended when the first predicted
case began, as a forecaster of that day would have to.
"""

import argparse
import sys
import tempfile
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import pairwise
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from measuring import lay_out

from opus_pipelines.core.schemas import CASES
from opus_pipelines.generation.planning.prices import LeadTimes
from opus_pipelines.history.ingestion.ingest import read_history
from opus_pipelines.lake.layout import Lake
from opus_pipelines.wkg.estimates.times import StepTimes
from opus_pipelines.wkg.rebuild.cases import case_batches
from opus_pipelines.workflow.model import InputNode, OutputNode, TaskNode, Workflow

MS_PER_HOUR = 3.6e6


@dataclass(frozen=True)
class Scores:
    """Shares of cases within the predicted median and 90th percentile.

    It also has the median and the mean absolute error in hours.
    """

    within_p50: float
    within_p90: float
    median_error: float
    mean_error: float

    @classmethod
    def of(cls, actual: np.ndarray, p50: np.ndarray, p90: np.ndarray) -> "Scores":
        """Of actual and predicted lead times in hours."""
        off = np.abs(actual - p50)
        return cls(
            float(np.mean(actual <= p50)), float(np.mean(actual <= p90)), float(np.median(off)), float(np.mean(off))
        )

    def __str__(self) -> str:
        return f"{self.within_p50:7.3f}{self.within_p90:7.3f}{self.median_error:10.2f}{self.mean_error:10.2f}"


def main() -> int:
    """Read the logs, predict, print a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("event_logs", type=Path)
    parser.add_argument("--logs", help="parts of file names, separated by commas")
    parser.add_argument("--train", type=float, default=0.7, help="share of cases that are history")
    parser.add_argument("--most", type=int, default=400, help="cases predicted at most")
    parser.add_argument("--independent", action="store_true", help="take the waits of a case as independent")
    parser.add_argument(
        "--finished", action="store_true", help="history holds only what had ended when the first predicted case began"
    )
    arguments = parser.parse_args()
    named = arguments.logs.split(",") if arguments.logs else [""]
    with tempfile.TemporaryDirectory() as folder:
        history = Path(folder, "history")
        history.mkdir()
        for file in sorted(arguments.event_logs.iterdir()):
            if any(name in file.name for name in named):
                lay_out(file, history)
        state = read_history(Lake(Path(folder, "lake")), history, datetime(2026, 1, 1, tzinfo=UTC))
        figures = f"{'<=p50':>7s}{'<=p90':>7s}{'median':>10s}{'mean':>10s} absolute error, hours"
        print(f"{'':34s}{'history':>9s}{'asked':>7s}{'corr.':>7s}{'':6s}{figures}")
        for source in state.sources:
            report(source.source, cases(source.folder), arguments)
    return 0


def cases(folder: Path) -> pa.Table:
    """Returns a source's cases with a lead time in the form of wkg/cases, in the order of their starts.

    Each task has its own name.
    """
    found = pa.concat_tables([CASES.schema.empty_table(), *case_batches(folder, _Names())])
    starts = np.array(
        [min((t for t in times or [] if t), default=None) for times in found["task_started_at"].to_pylist()],
        dtype=object,
    )
    known = [i for i, start in enumerate(starts) if start is not None and found["lead_time_ms"][i].as_py() is not None]
    return found.take(sorted(known, key=lambda i: (starts[i], i)))


class _Names(dict[tuple[str | None, str], str]):
    """Every key is its own task."""

    def get(self, key: tuple[str | None, str], default: object = None) -> str:  # type: ignore[override]
        return key[1]


def report(name: str, table: pa.Table, arguments: argparse.Namespace) -> None:
    """Predict the cases behind the split, and print how right that was."""
    split = int(arguments.train * table.num_rows)
    history, later = table.slice(0, split), table.slice(split)
    if arguments.finished:
        history = history.filter(pa.array(_ended(history) <= _start(later)))
    chosen = np.sort(np.random.default_rng(0).permutation(later.num_rows)[: arguments.most])
    asked = later.take(chosen)
    waiting = StepTimes.of_cases(history)
    correlation = 0.0 if arguments.independent else waiting.correlations.get(name, 0.0)
    times = LeadTimes(waiting, correlation)
    actual = _hours(asked)
    predicted = [
        times.of(chain(*row)) for row in zip(*(asked[c].to_pylist() for c in ("tasks", "actor_kinds")), strict=True)
    ]
    untold = sum(one.draws is None for one in predicted)
    p50, p90 = (
        np.array([np.nan if v is None else v / MS_PER_HOUR for v in values])
        for values in ([one.p50_ms for one in predicted], [one.p90_ms for one in predicted])
    )
    told = ~np.isnan(p50)
    known = _hours(history)
    middle, high = (np.full(told.sum(), np.quantile(known, share)) for share in (0.5, 0.9))
    figures = f"{name:34s}{history.num_rows:9d}{told.sum():7d}{correlation:7.3f}"
    print(
        f"{figures}  ours{Scores.of(actual[told], p50[told], p90[told])}"
        + (f"  ({untold} of unknown time)" if untold else "")
    )
    print(f"{'':57s}  base{Scores.of(actual[told], middle, high)}", flush=True)


def chain(tasks: list[str], kinds: list[str | None]) -> Workflow:
    """A case as the workflow that it was, one step after the other."""
    nodes = [
        TaskNode(f"{task} {i}", task, task, actor_kind=kind)
        for i, (task, kind) in enumerate(zip(tasks, kinds, strict=True))
    ]
    ends = ["in", *(n.id for n in nodes), "out"]
    return Workflow.of([InputNode("in", "request"), *nodes, OutputNode("out", "answer", 0.0)], list(pairwise(ends)))


def _hours(table: pa.Table) -> np.ndarray:
    return table["lead_time_ms"].to_numpy() / MS_PER_HOUR


def _start(table: pa.Table) -> float:
    return float(pc.min(pc.list_flatten(table["task_started_at"])).cast(pa.int64()).as_py()) / 1000


def _ended(table: pa.Table) -> np.ndarray:
    starts = [min(t for t in times if t).timestamp() * 1000 for times in table["task_started_at"].to_pylist()]
    return np.array(starts) + table["lead_time_ms"].to_numpy()


if __name__ == "__main__":
    sys.exit(main())
