"""The dataset `ops/runs`: one row for each run that has ended, written once."""

from collections.abc import Iterable
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from datetime import datetime
from pathlib import Path

from opus_pipelines.core.schemas import OPS_RUNS
from opus_pipelines.lake.layout import Lake, read_table, table_of, write_table
from opus_pipelines.lake.search import Word, search

MOST_FINDING = 300  # characters of the finding of a failed check


@dataclass(frozen=True)
class Stage:
    """One step of a run and its duration."""

    stage: str
    duration_ms: float


@dataclass(frozen=True)
class RunRecord:
    """One run; the fields are the columns of `ops/runs`."""

    run: str
    job: str
    status: str
    started_at: datetime
    ended_at: datetime
    duration_ms: float
    stages: tuple[Stage, ...] = ()
    contract_key: str | None = None
    snapshot: str | None = None
    items: int | None = None
    items_per_second: float | None = None
    rejects: int | None = None
    checks: int = 0
    checks_failed: int = 0
    failed_checks: tuple[str, ...] = field(default=())
    drift_share: float | None = None
    cpu_ms: float | None = None
    peak_memory_mb: float | None = None
    cost_usd: float | None = None
    reason: str | None = None
    evidence: str | None = None
    repeat: str | None = None

    @property
    def has_failed(self) -> bool:
        """Tells whether the run failed."""
        return self.status != "success"


def is_recorded(lake: Lake, run: str) -> bool:
    """Tells whether the run has its row."""
    return lake.folder(OPS_RUNS, run_key=run).is_dir()


def record(lake: Lake, run: RunRecord, keep: int) -> bool:
    """Writes the row of a run, and removes all rows but those of the latest `keep` runs.

    Returns False where the run has a row already. It needs no lock: the row of a run is a folder of its own.
    """
    final = lake.folder(OPS_RUNS, run_key=run.run)
    if final.exists():
        return False
    lake.ensure_empty()
    with lake.staging_without_lock() as staged:
        write_table(OPS_RUNS, table_of(OPS_RUNS, [asdict(run)]), staged / "row")
        final.parent.mkdir(parents=True, exist_ok=True)
        lake.publish(staged / "row", final)
        rows = sorted(final.parent.iterdir(), key=lambda folder: folder.stat().st_mtime, reverse=True)
        for old in rows[keep:]:
            with suppress(FileNotFoundError):  # another run may remove the same row
                old.rename(staged / old.name)
    return True


def latest(lake: Lake, job: str, most: int) -> list[RunRecord]:
    """Returns the latest runs of a job, the newest first."""
    rows = read_table(OPS_RUNS, *sorted((lake.root / OPS_RUNS.name).glob("run_key=*"))).to_pylist()
    chosen = sorted((row for row in rows if row["job"] == job), key=lambda row: row["started_at"], reverse=True)
    return [
        RunRecord(
            **row
            | {"stages": tuple(Stage(**one) for one in row["stages"] or ())}
            | {"failed_checks": tuple(row["failed_checks"] or ())}
        )
        for row in chosen[:most]
    ]


def remove_runs(lake: Lake, words: Iterable[Word]) -> int:
    """Removes the rows in which one of the words stands. Returns how many."""
    below = lake.root / OPS_RUNS.name
    found = search(lake, words, below=below) if below.is_dir() else ()
    folders = {lake.root / Path(*Path(finding.file).parts[:3]) for finding in found}
    for folder in folders:
        lake.remove(folder)
    return len(folders)
