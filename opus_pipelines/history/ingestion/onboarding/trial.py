"""Reads one source alone, with provisional settings, into a temporary lake, to show what a rebuild would make of it."""

import shutil
import tempfile
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from opus_pipelines.core.schemas import REJECTS
from opus_pipelines.history.ingestion.ingest import HistoryOptions, HistoryState, read_history
from opus_pipelines.history.ingestion.plan import SourcePlan, plan_source
from opus_pipelines.history.records.activity_evidence import by_activity, evidence_of
from opus_pipelines.history.records.activity_kinds import Evidence
from opus_pipelines.history.records.source_settings import FILE_NAME, SourceSettings, load_source
from opus_pipelines.lake.layout import Lake, read_table


@dataclass(frozen=True)
class Trial:
    """The result of a trial reading of a source.

    `folder` has its implementations, None if there are none. `files` are the rows of history/sources. `rejects` counts
    the rejected records by code and reason. `evidence` has the counts by activity, and `whole` those of all cases.
    """

    name: str
    settings: SourceSettings
    folder: Path | None
    files: list[dict[str, Any]]
    failed: list[str]
    rejects: Counter[tuple[str, str]]
    evidence: dict[str, Evidence]
    whole: Evidence

    def total(self, column: str) -> int:
        """Returns the sum of a count over all files."""
        return sum(row[column] or 0 for row in self.files)


@contextmanager
def trial_lake(name: str, files: Sequence[Path], rates: Mapping[str, float] | None = None) -> Iterator["TrialLake"]:
    """Yields a source `name` with these files in a temporary folder, which is removed at the end.

    `rates` has the dollars per unit of a currency.
    """
    with tempfile.TemporaryDirectory(prefix="opus-init-") as folder:
        yield TrialLake(Path(folder), name, files, rates or {})


class TrialLake:
    """A source that can be read repeatedly with different settings."""

    def __init__(self, root: Path, name: str, files: Sequence[Path], rates: Mapping[str, float]) -> None:
        self._root, self.name, self._rates = root, name, rates
        self.source = root / "history" / name
        self.source.mkdir(parents=True)
        for file in files:
            _link_or_copy(file, self.source / file.name)

    def read(self, toml: str) -> Trial:
        """Reads the files with this source.toml. Raises SettingsError if it is invalid."""
        (self.source / FILE_NAME).write_text(toml, "utf-8")
        load_source(self.source)
        with tempfile.TemporaryDirectory(dir=self._root) as lake:
            plan = plan_source(self.source, self._rates, hard_links=True)
            return _kept(_read_alone(plan, Path(lake), self._rates), self._root / "implementations")


@contextmanager
def reading(source: Path, rates: Mapping[str, float] | None = None) -> Iterator[Trial]:
    """Reads a source in its own folder. Raises SettingsError if its source.toml is invalid.

    `rates` has the dollars per unit of a currency.
    """
    load_source(source)
    with tempfile.TemporaryDirectory(prefix="opus-check-") as folder:
        yield _read_alone(plan_source(source.resolve(), rates or {}), Path(folder) / "lake", rates or {})


def _read_alone(plan: SourcePlan, lake_folder: Path, rates: Mapping[str, float]) -> Trial:
    """Reads one source into a new lake, as if no other stood beside it."""
    lake, source = Lake(lake_folder), plan.folder
    lake_folder.mkdir(parents=True, exist_ok=True)
    alone = lake_folder / ".history"
    alone.mkdir()
    state = read_history(lake, alone, datetime.now(UTC), HistoryOptions(plans=[plan], usd_per_unit=rates))
    folder = state.sources[0].folder if state.sources else None
    evidence, whole = by_activity(evidence_of(folder)) if folder else ({}, Evidence())
    settings = load_source(source)
    settings = settings.model_copy(update={"usd_per_unit": {**rates, **settings.usd_per_unit}})
    return Trial(source.name, settings, folder, state.files, state.failed, _rejects(lake, state), evidence, whole)


def _rejects(lake: Lake, state: HistoryState) -> Counter[tuple[str, str]]:
    if not any(row["records_rejected"] for row in state.files):
        return Counter()
    folders = sorted((lake.root / REJECTS.name).glob("*/*"))
    rows = read_table(REJECTS, *folders, columns=["reason_code", "reason"]).to_pylist()
    return Counter((row["reason_code"], row["reason"]) for row in rows)


def _kept(trial: Trial, place: Path) -> Trial:
    """Returns the trial with its implementations moved to `place`, so that they remain after its lake is removed."""
    shutil.rmtree(place, ignore_errors=True)
    if trial.folder is None:
        return trial
    shutil.copytree(trial.folder, place)
    return Trial(**{**trial.__dict__, "folder": place})


def _link_or_copy(file: Path, to: Path) -> None:
    try:
        to.hardlink_to(file.resolve())
    except OSError:  # another disk, or a file system without hard links
        shutil.copyfile(file, to)
