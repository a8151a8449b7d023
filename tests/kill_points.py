"""Run as a program by test_kill.py: one step of the lake's life, killed just before its nth rename or replacement, for
every n.

`python kill_points.py STEP LAKE HISTORY AGGREGATES [STRIDE]`; each point works on a copy of LAKE in a forked child,
which dies by SIGKILL. Prints one JSON object: the points tried, and every complaint about what was then to be seen.
"""

import itertools
import json
import os
import shutil
import signal
import sys
import tempfile
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any

import faiss  # noqa: F401 - this and pandas are loaded once here instead of in every child
import numpy as np
import pandas  # noqa: F401

from opus_pipelines.core.ids import digest
from opus_pipelines.core.schemas import COST_REPORT, DATASETS, INTAKES, OPTIMIZED, RESULT_TABLES, REWARD_REPORT, RUNS
from opus_pipelines.core.settings import Paths, Retention, Settings
from opus_pipelines.generation.results.contract import ContractResult, publish_contract, result_table
from opus_pipelines.history.ingestion.ingest import read_history
from opus_pipelines.lake.layout import Lake
from opus_pipelines.reporting.views import connect, write_views_sql
from opus_pipelines.wkg.rebuild import steps
from opus_pipelines.wkg.upkeep.retention import prune_results
from opus_pipelines.wkg.upkeep.rollback import roll_back
from opus_pipelines.wkg.upkeep.verify import verify
from tests.rebuilding import build_snapshot, no_spark

NOW = datetime(2026, 3, 1, 2, tzinfo=UTC)
AT_ONCE = Retention(
    snapshots=1, days=0, results=1, grace_minutes=0
)  # every run also prunes what the one before it left
CALLS = ("rename", "replace")  # what is published, pointed to and taken away; removals happen out of sight
CLIENT, CONTRACT = "Acme", "Retail"


class HashEncoder:
    """Unit vectors from the text's hash."""

    name, max_tokens, dimension = "hash", 256, 8

    def encode(self, texts: list[str], progress: Any = None) -> np.ndarray:
        rows = [np.random.default_rng(int(digest(text)[:8], 16)).normal(size=8) for text in texts]
        return np.array([row / np.linalg.norm(row) for row in rows], np.float32).reshape(len(texts), 8)


def rebuild(
    lake: Lake,
    history: Path,
    aggregates: Path | None = None,
    now: datetime = NOW,
    retention: Retention = AT_ONCE,
) -> str:
    """A night. `aggregates`: what mining gave in another lake, published here as mining publishes it."""
    if aggregates is not None:
        steps.mine_missing = lambda lake, parts, *_: [_mined(lake, part, aggregates) for part in parts]  # type: ignore[attr-defined]
    with lake.lock():
        write_views_sql(lake)
        state = read_history(lake, history, now)
        settings = Settings(paths=Paths(lake=lake.root), retention=retention)
        return build_snapshot(no_spark, lake, settings, state, HashEncoder, now).snapshot_id


def _mined(lake: Lake, part: Any, aggregates: Path) -> str:
    place = part.place(lake)
    if not place.exists():
        mined = max((aggregates / place.parent.name).glob("content=*"), key=lambda folder: folder.stat().st_mtime)
        with lake.staging() as staged:
            shutil.copytree(mined, staged, dirs_exist_ok=True)
            lake.publish(staged, place)
    return str(part.source)


def generate(lake: Lake, name: str, now: datetime) -> str:
    """One contract's result, and the pruning of the one before it."""
    snapshot = lake.current_snapshot() or ""
    result = ContractResult(CLIENT, CONTRACT, name, snapshot, "m", {})
    rows: dict[str, list[dict[str, Any]]] = {
        INTAKES.name: [{"intake_id": "k1", "folder": "one", "status": "generated"}],
        OPTIMIZED.name: [
            {"intake_id": "k1", "intention_id": "i1", "workflow_id": f"f{name}", "rank": 1, "snapshot": snapshot}
        ],
        RUNS.name: [{"run_id": name, "generated_at": now, "snapshot": snapshot}],
    }
    result.tables = {
        d.name: result_table(result, d, rows.get(d.name, []))
        for d in (*RESULT_TABLES, RUNS, COST_REPORT, REWARD_REPORT)
    }
    with lake.lock():
        publish_contract(lake, result, now)
        prune_results(lake, CLIENT, CONTRACT, AT_ONCE, now)
    return name


def state_of(lake: Lake) -> tuple[str | None, str | None]:
    """What the pointers name: the snapshot, and the contract's result."""
    return lake.current_snapshot(), next((r["result"] for r in lake.results()), None)


def complaints(lake: Lake) -> list[str]:
    """What is wrong with what a reader sees: empty, or the test fails."""
    found = [f"damaged: {one}" for one in verify(lake).damage]
    connection = connect(lake)
    for dataset in DATASETS.values():
        try:
            connection.execute(f"SELECT count(*), bit_xor(hash(v)) FROM {dataset.view} AS v").fetchall()
        except Exception as error:  # whatever a reader would see
            found.append(f"{dataset.name}: {error}")
    snapshot = lake.current_snapshot()
    counts = lake.manifest(snapshot)["counts"] if snapshot else {}
    for name, rows in counts.items():
        seen = connection.execute(f"SELECT count(*) FROM {DATASETS[name].view}").fetchall()[0][0]
        found += [f"{name}: {seen} rows, the manifest says {rows}"] if seen != rows else []
    for result in lake.results():
        where = {"client_key": result["client"], "contract_key": result["contract"], "result": result["result"]}
        folders = {d.name: lake.folder(d, **where) for d in DATASETS.values() if "result" in d.partitions}
        found += [
            f"{name} of {where} has no file" for name, folder in folders.items() if not list(folder.glob("*.parquet"))
        ]
        found += (
            []
            if (lake.snapshot_folder(result["snapshot"]) / "manifest.json").is_file()
            else [f"the snapshot of {where} is gone"]
        )
    return found


def leftovers(lake: Lake) -> list[str]:
    """Whatever of a killed run is still there. Dagster keeps the events of no run in the files `runs/.db*`."""
    names = (path.relative_to(lake.root).as_posix() for path in lake.root.rglob("*"))
    of_dagster = ".dagster/history/runs/.db"
    return [
        name
        for name in names
        if name.startswith((".staging", ".unlocked/")) or ("/." in name and not name.startswith(of_dagster))
    ]


def die_before(call: int) -> None:
    """Have this process killed when it is about to make its nth change of a name."""
    made = 0

    def counted(real: Callable[..., Any]) -> Callable[..., Any]:
        def called(*args: Any, **more: Any) -> Any:
            nonlocal made
            made += 1
            if made == call:
                os.kill(os.getpid(), signal.SIGKILL)
            return real(*args, **more)

        return called

    for name in CALLS:
        setattr(os, name, counted(getattr(os, name)))


def child(step: Callable[[], Any], call: int = 0) -> bool:
    """Run `step` in a fork, which dies at its nth call; False where it came to its end. The parent itself stays
    without threads.
    """
    number = os.fork()
    if number == 0:
        die_before(call)
        try:
            step()
            os._exit(0)
        except BaseException as error:
            print(f"{type(error).__name__}: {error}", file=sys.stderr, flush=True)
            os._exit(1)
    status = os.waitpid(number, 0)[1]
    if not os.WIFSIGNALED(status) and os.WEXITSTATUS(status):
        raise RuntimeError("a child failed by itself")
    return os.WIFSIGNALED(status)


def looked_at(lake: Lake, step: Callable[[Lake], Any], report: Path, closely: bool) -> None:
    """What is to be seen after the death, and after the next run, into a file. `closely`: every table also then."""
    seen, wrong = state_of(lake), complaints(lake)
    step(lake)
    wrong += leftovers(lake) + (complaints(lake) if closely else [])
    report.write_text(json.dumps({"seen": seen, "after": state_of(lake), "wrong": wrong}))


def main(name: str, lake_folder: str, history: str, aggregates: str, stride: str = "1") -> None:
    steps: dict[str, Callable[[Lake], Any]] = {
        "rebuild": lambda lake: rebuild(lake, Path(history), Path(aggregates), now=NOW + timedelta(days=2)),
        "generate": lambda lake: generate(lake, "r2", NOW + timedelta(days=2)),
        "rollback": lambda lake: _locked(
            lake, lambda: roll_back(lake, min(set(_snapshots(lake)) - {state_of(lake)[0]}), NOW)
        ),
    }
    step, reports = steps[name], []
    memory = Path("/dev/shm")  # where syncing costs nothing
    with tempfile.TemporaryDirectory(dir=memory if memory.is_dir() else None) as folder:
        for call in itertools.count(1, int(stride)):
            lake, report = Lake(Path(folder) / str(call)), Path(folder) / "report"
            shutil.copytree(lake_folder, lake.root)
            if not child(partial(step, lake), call):
                break
            child(partial(looked_at, lake, step, report, call % 5 == 1))
            reports.append(json.loads(report.read_text()))
            shutil.rmtree(lake.root)
    before, after = list(state_of(Lake(lake_folder))), reports[0]["after"]
    numbered = list(zip(itertools.count(1, int(stride)), reports, strict=False))
    wrong = [f"killed at {call}: {line}" for call, report in numbered for line in report["wrong"]]
    lost = [(call, r) for call, r in numbered if r["seen"] not in (before, after) or r["after"] != after]
    wrong += [f"killed at {call}: {report}" for call, report in lost]
    print(json.dumps({"points": len(reports), "before": before, "after": after, "wrong": wrong}))


def _locked(lake: Lake, step: Callable[[], Any]) -> None:
    with lake.lock():
        step()


def _snapshots(lake: Lake) -> list[str]:
    return [manifest.parent.name for manifest in (lake.root / "wkg").glob("*/manifest.json")]


if __name__ == "__main__":
    main(*sys.argv[1:])
