#!/usr/bin/env python3
"""Measures whether the chances to break a limit are right, on later cases of a real log.

    PYTHONPATH=. .venv/bin/python benchmarks/limit_chances.py LOG SCORER [--cases 1000]

History is the first 70 % of the cases by first event, as it stood when the next case began; of later cases one prefix
each is asked (SCORER is the script that reads logs for the forecast benchmark). A log with start and end times has
costs: the hours of each event at 60 dollars. Limits are the quantiles .5, .75 and .9 of ended cases of history: of the
lead time, the cost, the number of steps, and of the time from the first event to each of five frequent activities.
Cases that have broken a limit or kept a service level already are not asked for it.

Columns: asked (cases and limits), share that breaks the limit, mean chance, Brier score, that of the baseline (the
share of ended cases of history with the same last activity that were undecided there and broke the limit), the
difference with its 95 % interval by bootstrap over cases, the area under the ROC curve, and the expected calibration
error in ten bins.
"""

import argparse
import csv
import datetime as dt
import gzip
import random
import sys
from collections import Counter, defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from two_jobs import script  # beside this file

from opus_pipelines.forecasts.forecaster import Forecaster
from opus_pipelines.forecasts.limits import COST, LEAD_TIME, SERVICE_LEVEL, STEPS, Limit
from opus_pipelines.forecasts.traces import Trace
from opus_pipelines.workflow.metrics.plan_scores import interval

HISTORY_SHARE, LEVELS, ACTIVITIES, USD_PER_HOUR = 0.7, (0.5, 0.75, 0.9), 5, 60.0


def main() -> int:
    """Print a row for each kind of limit."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("log", type=Path)
    parser.add_argument("scorer", type=Path)
    parser.add_argument("--cases", type=int, default=1000)
    arguments = parser.parse_args()
    logged = with_costs(arguments.log)
    cases = logged or [whole(case, events) for _, case, events in script(arguments.scorer).read(arguments.log)]
    cut = int(HISTORY_SHARE * len(cases))
    history = [part for case in cases[:cut] if (part := until(case, cases[cut].times[0]))]
    later = cases[cut:]
    asked = [later[n] for n in sorted(random.Random(0).sample(range(len(later)), min(arguments.cases, len(later))))]
    lengths = [random.Random(case.case_id).randint(1, len(case.activities)) for case in asked]
    limits = chosen(history)
    found = Forecaster(history, calendar=False).forecast(
        [first(case, k) for case, k in zip(asked, lengths, strict=True)], limits=[tuple(limits)] * len(asked)
    )
    baseline = Baseline([case for case in history if not case.is_open], limits)
    rows: dict[str, list[tuple[str, float, float, float]]] = defaultdict(list)
    for case, k, one in zip(asked, lengths, found, strict=True):
        for limit, outlook in zip(limits, one.limits, strict=True):
            if undecided(case, k, limit) and outlook.p_broken is not None:
                broken = float(total(case, limit) > limit.value)
                rows[limit.kind].append((case.case_id, broken, outlook.p_broken, baseline.chance(case, k, limit)))
    for kind, scored in rows.items():
        print_row(kind, scored)
    return 0


def whole(case: str, events: Sequence[tuple[str, float, str | None]]) -> Trace:
    """A case as the scorer reads it."""
    return Trace(case, [a for a, _, _ in events], [t for _, t, _ in events], [r for _, _, r in events])


def with_costs(log: Path) -> list[Trace]:
    """The cases of a CSV log with start and end times, by first event; none for another log."""
    if ".csv" not in log.name:
        return []
    events: dict[str, list[tuple[float, str, str, float]]] = defaultdict(list)
    with gzip.open(log, "rt") if log.suffix == ".gz" else log.open() as file:
        for row in csv.DictReader(file):
            if not row.get("start_time"):
                return []
            begun, ended = (dt.datetime.fromisoformat(row[name]).timestamp() for name in ("start_time", "end_time"))
            cost = max(0.0, ended - begun) / 3600 * USD_PER_HOUR
            events[row["case_id"]].append((ended, row["activity"], row["resource"], cost))
    cases = [
        Trace(case, [e[1] for e in own], [e[0] for e in own], [e[2] for e in own], [e[3] for e in own])
        for case, own in ((case, sorted(own, key=lambda e: e[0])) for case, own in events.items())
    ]
    return sorted(cases, key=lambda case: (case.times[0], case.case_id))


def first(case: Trace, k: int) -> Trace:
    """The case as it was after `k` events, still open."""
    return Trace(
        case.case_id, case.activities[:k], case.times[:k], case.resources[:k], case.costs_usd[:k], is_open=True
    )


def until(case: Trace, moment: float) -> Trace | None:
    """The case as it was seen at the moment; None where it had not begun."""
    seen = sum(when < moment for when in case.times)
    return None if not seen else case if seen == len(case.times) else first(case, seen)


def total(case: Trace, limit: Limit) -> float:
    """What the whole case uses of the limit; minus infinity for an activity that it never does."""
    if limit.kind == LEAD_TIME:
        return case.times[-1] - case.times[0]
    if limit.kind == COST:
        return float(sum(cost or 0.0 for cost in case.costs_usd))
    if limit.kind == STEPS:
        return float(len(case.activities))
    when = [t for t, name in zip(case.times, case.activities, strict=True) if name == limit.activity]
    return when[0] - case.times[0] if when else float("-inf")


def undecided(case: Trace, k: int, limit: Limit) -> bool:
    """Whether the case, after `k` events, has neither broken the limit nor done the activity of a service level."""
    now = first(case, k)
    if limit.kind == SERVICE_LEVEL:
        return limit.activity not in now.activities and now.times[-1] - now.times[0] <= limit.value
    return total(now, limit) <= limit.value


def chosen(history: Sequence[Trace]) -> list[Limit]:
    """The limits, at the quantiles of ended cases."""
    ended = [case for case in history if not case.is_open]
    counts = Counter(name for case in ended for name in set(case.activities[1:]) - {case.activities[0]})
    subjects = [
        (LEAD_TIME, None),
        (STEPS, None),
        *((SERVICE_LEVEL, name) for name, _ in counts.most_common(ACTIVITIES)),
    ]
    if any(case.costs_usd for case in ended):
        subjects.append((COST, None))
    found = []
    for kind, activity in subjects:
        totals = np.array([total(case, Limit(kind, 0.0, activity)) for case in ended])
        values = np.quantile(totals[np.isfinite(totals)], LEVELS)
        found += [Limit(kind, float(value), activity) for value in sorted({*values.tolist()}) if value > 0]
    return found


class Baseline:
    """Of ended cases with the same last activity that were undecided there, the share that broke the limit."""

    def __init__(self, ended: Sequence[Trace], limits: Sequence[Limit]) -> None:
        self._counts: dict[tuple[Limit, str], list[int]] = defaultdict(lambda: [0, 0])
        for case in ended:
            for limit in limits:
                broken = total(case, limit) > limit.value
                for k, name in enumerate(case.activities, start=1):
                    if not undecided(case, k, limit):
                        break
                    for key in ((limit, name), (limit, "")):
                        self._counts[key][0] += broken
                        self._counts[key][1] += 1

    def chance(self, case: Trace, k: int, limit: Limit) -> float:
        """The share, drawn to that of all cases by one case."""
        broken, size = self._counts[limit, case.activities[k - 1]]
        of_all = (self._counts[limit, ""][0] + 0.5) / (self._counts[limit, ""][1] + 1)
        return (broken + of_all) / (size + 1)


def print_row(kind: str, scored: Sequence[tuple[str, float, float, float]]) -> None:
    """One row of the table."""
    from sklearn.metrics import roc_auc_score  # a second of imports, and the tests of what is above print no row

    truth, said, simple = (np.array([row[n] for row in scored]) for n in (1, 2, 3))
    better = (said - truth) ** 2 - (simple - truth) ** 2
    low, high = interval(better.tolist(), [row[0] for row in scored])
    place = np.minimum(9, (said * 10).astype(int))
    error = sum(abs(said[place == n].sum() - truth[place == n].sum()) for n in range(10)) / len(truth)
    area: Any = roc_auc_score(truth, said) if 0 < truth.sum() < len(truth) else float("nan")
    brier, of_baseline = ((said - truth) ** 2).mean(), ((simple - truth) ** 2).mean()
    print(
        f"{kind:14}{len(truth):7,} broken {truth.mean():.3f} said {said.mean():.3f}  Brier {brier:.4f} baseline"
        f" {of_baseline:.4f} ({better.mean():+.4f} [{low:+.4f}, {high:+.4f}])  AUC {area:.3f}"
        f"  calibration error {error:.3f}",
        flush=True,
    )


if __name__ == "__main__":
    sys.exit(main())
