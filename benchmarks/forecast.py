#!/usr/bin/env python3
"""Forecasts running cases with the real pipeline in a lake of its own.

    .venv/bin/python benchmarks/forecast.py DIR PREDICTIONS.jsonl [--work DIR]

DIR holds train.csv (the history's events; `open` = 1 where a case had not ended) and prefixes.jsonl ({"id", "events":
[[activity, seconds since the case's first event, resource or null], ...]}), as the benchmark's own script writes them.
train.csv becomes a history source with the settings that `opus init` proposes, untouched; the prefixes become an export
of running cases, each a case of its own, whose dates are not real; each is seen at its last event. A prediction is
{"id", "next", "suffix", "remaining_s", "remaining_low_s", "remaining_high_s"}; `next` is "<end>" where the case ends.
"""

import argparse
import csv
import datetime as dt
import json
import sys
import time
from pathlib import Path

from two_jobs import KEPT, opus, read, to_write, workplace  # type: ignore[import-not-found]  # beside this file

BEGIN = dt.datetime(2000, 1, 3, tzinfo=dt.UTC)
SQL = "select case_id, next_activity, rest, remaining_ms, remaining_ms_low, remaining_ms_high from forecasts_cases"


def main() -> int:
    """Write the inputs, rebuild, forecast, write the predictions."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("asked", type=Path, metavar="DIR")
    parser.add_argument("predictions", type=to_write)
    parser.add_argument("--work", type=Path, help=KEPT)
    arguments = parser.parse_args()
    asked = list(read(arguments.asked / "prefixes.jsonl"))
    with workplace(arguments.work, "forecast") as work:
        opus(work, "init", str((arguments.asked / "train.csv").resolve()), "--to", "history/log", "--yes")
        write_running(asked, work / "running.csv")
        timed(work, "rebuild")
        timed(work, "forecast", "running.csv", "--open", "open", "--as-seen", "--relative-dates", "--show", "0")
        rows = {row["case_id"]: row for row in json.loads(opus(work, "query", SQL, "--format", "json"))}
    with arguments.predictions.open("w") as file:
        for number, prefix in enumerate(asked):
            row = rows.get(f"case{number:06d}")
            answer = {"id": prefix["id"]}
            if row:
                answer |= {"next": row["next_activity"] or "<end>", "suffix": row["rest"]}
                answer |= {f"remaining{end}_s": row[f"remaining_ms{end}"] / 1000 for end in ("", "_low", "_high")}
            file.write(json.dumps(answer, ensure_ascii=False) + "\n")
    print(f"{len(rows)} of {len(asked)} predicted, in {arguments.predictions}", file=sys.stderr)
    return 0


def write_running(asked: list[dict[str, object]], path: Path) -> None:
    """The prefixes as an export with the columns of train.csv; the ids tell nothing of the order of the cases."""
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["case_id", "activity", "timestamp", "resource", "open"])
        for number, prefix in enumerate(asked):
            for activity, seconds, resource in prefix["events"]:  # type: ignore[attr-defined]
                when = (BEGIN + dt.timedelta(seconds=seconds)).isoformat(timespec="microseconds")
                writer.writerow([f"case{number:06d}", activity, when, resource or "", 1])


def timed(work: Path, verb: str, *more: str) -> None:
    """Run one verb, its time on standard error."""
    started = time.monotonic()
    opus(work, verb, *more)
    print(f"{verb}: {time.monotonic() - started:.1f} s", file=sys.stderr)


if __name__ == "__main__":
    sys.exit(main())
