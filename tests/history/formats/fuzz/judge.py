"""Reads one folder after the other, as asked on standard input, and says on standard output what is wrong with how it
went.

A process of its own: what it reads may hang it, kill it or fill its memory. A line in is a folder with `history/`; a
line out is JSON with `faults` (empty when all is well), CPU seconds, megabytes that the peak of its memory rose above
the start, and what became of it.
"""

import json
import math
import resource
import sys
import traceback
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from opus_pipelines.core.schemas import IMPLEMENTATIONS, REJECTS
from opus_pipelines.history.ingestion.ingest import HistoryOptions, read_history
from opus_pipelines.lake.layout import Lake, read_table

NIGHT = datetime(2026, 1, 2, 2, 0, tzinfo=UTC)
ADDRESS_SPACE = 6 << 30  # so that one bomb takes no other process with it; what counts is the peak that is reported
_TIMES, _AMOUNTS = (
    ("started_at", "ended_at"),
    ("duration_ms", "wait_ms", "memory_gb", "threads", "tokens_in", "tokens_out"),
)
_MONEY = ("cost_usd", "cost_compute_usd", "cost_model_usd", "cost_human_usd")


def judge(folder: Path) -> dict[str, Any]:
    """What became of `folder`/history, and every law that it broke."""
    faults: list[str] = []
    outcome: dict[str, Any] = {}
    began = _cpu()
    try:
        lake = Lake(folder / "lake")
        state = read_history(
            lake, folder / "history", NIGHT, HistoryOptions(max_quarantined_share=1.0)
        )  # what is left of a case is looked at, too
        spent = _cpu() - began
        rejects = read_table(REJECTS, *sorted((lake.root / REJECTS.name).glob("*/*"))).to_pylist()
        cases = read_table(IMPLEMENTATIONS, *(s.folder for s in state.sources)).drop_columns(list(_TIMES)).to_pylist()
        faults += [*_files(state.files, rejects, cases), *_rejects(rejects), *_cases(cases), *_escaped(folder)]
        (row,) = state.files
        outcome = {
            "status": row["status"],
            "reason": row["reason"],
            "records": row["records"],
            "used": row["records_used"],
        }
    except BaseException:  # whatever it is, it is what this program is here to find
        spent = _cpu() - began
        faults.append(traceback.format_exc(limit=-8))
    return {"faults": faults, "cpu_s": round(spent, 2), "peak_mb": _peak_mb() - BASE_MB, **outcome}


def _files(files: list[dict[str, Any]], rejects: list[Any], cases: list[Any]) -> Iterator[str]:
    for row in files:
        if row["records"] != row["records_used"] + row["records_not_work"] + row["records_rejected"]:
            yield f"counts do not add up: {row}"
        if row["status"] not in ("loaded", "rejected") or (
            row["status"] == "rejected" and not (row["reason"] or "").strip()
        ):
            yield f"refused without a reason: {row}"
        if "please report it" in (row["reason"] or ""):
            yield f"the reader did not foresee it: {row['reason']}"
        if len(row["reason"] or "") > 5_000:
            yield f"a reason of {len(row['reason']):,} characters"
        if row["status"] == "rejected" and (cases or rejects):
            yield "a file that is rejected whole left rows behind"
    for column, found in (
        ("records_rejected", rejects),
        ("implementations", cases),
        ("task_implementations", [t for c in cases for t in c["tasks"]]),
    ):
        if sum(row[column] for row in files) != len(found):
            yield f"{column}: {[row[column] for row in files]}, but {len(found)} rows"


def _rejects(rejects: list[dict[str, Any]]) -> Iterator[str]:
    for row in rejects:
        if not row["reason_code"] or not (row["reason"] or "").strip() or row["position"] < 1:
            yield f"rejected without reason or position: {str(row)[:500]}"
        if len(row["record"].encode()) > 4096 or len(row["reason"]) > 5_000:
            yield f"a reject of {len(row['record']):,} and {len(row['reason']):,} characters"


def _cases(cases: list[dict[str, Any]]) -> Iterator[str]:
    if len({case["implementation_id"] for case in cases}) < len(cases):
        yield "two cases have one id"
    for case in cases:
        if not case["case_id"] or not 1 <= case["weight"] <= 10**9 or not _amount(case["cost_usd"]):
            yield f"case id, weight or cost: {case['case_id'][:50]!r}, {case['weight']}, {case['cost_usd']}"
        for position, task in enumerate(case["tasks"]):
            if task["position"] != position or not task["task_key"]:
                yield f"task {position} has position {task['position']} and the key {task['task_key']!r}"
            if any(not 0 <= p < position for p in task["predecessors"] or ()):
                yield f"task {position} follows {task['predecessors']}"
            wrong = {k: task[k] for k in (*_AMOUNTS, *_MONEY) if not _amount(task[k])}
            if wrong or (task["cost_usd"] is None) != (task["cost_basis"] is None):
                yield f"task {position}: {wrong}, {task['cost_usd']} by {task['cost_basis']}"


def _amount(value: float | None) -> bool:
    return value is None or (math.isfinite(value) and 0 <= value < 1e16)


def _escaped(folder: Path) -> Iterator[str]:
    """Whatever was written stands in the lake, under names of its own making."""
    for path in folder.rglob("*"):
        place = path.relative_to(folder).as_posix()
        if not place.startswith(("history", "lake")) or len(path.name) > 100:
            yield f"written outside the lake: {place[:200]}"


def _cpu() -> float:
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(u.ru_utime + u.ru_stime for u in used)


def _peak_mb() -> int:
    return max(resource.getrusage(who).ru_maxrss for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)) >> 10


BASE_MB = _peak_mb()

if __name__ == "__main__":
    resource.setrlimit(resource.RLIMIT_AS, (ADDRESS_SPACE, ADDRESS_SPACE))
    for line in sys.stdin:
        print(json.dumps(judge(Path(line.rstrip("\n")))), flush=True)
