"""The staged records of a rebuild: small JSON files in `<lake>/.staged` that say what a step has done.

`history.json` holds the history that was read last, `request.json` what the last mining was asked for. Each snapshot
that is not published yet has a folder `<snapshot>` with its tables and a record for each finished step. A record is
written after the files that it stands for are on the disk, so a step whose record is there is complete.
"""

import shutil
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from pydantic import TypeAdapter, ValidationError

from opus_pipelines.core.errors import CheckResult, LakeError
from opus_pipelines.history.ingestion.ingest import SourceState
from opus_pipelines.lake.atomic_files import read_json, sync_tree, write_json
from opus_pipelines.lake.layout import Lake
from opus_pipelines.wkg.drift import Drift
from opus_pipelines.wkg.upkeep import remake

T = TypeVar("T")
HISTORY, REQUEST = "history", "request"


@dataclass(frozen=True)
class HistoryRecord:
    """The history that was read last. `full`: it was read into the empty lake of `opus rebuild --full`.

    The folders of the sources are relative to the lake that they were read into.
    """

    sources: tuple[SourceState, ...]
    checks: tuple[CheckResult, ...]
    full: bool = False
    timings: dict[str, float] = field(default_factory=dict)


@dataclass(frozen=True)
class RequestRecord:
    """What the last mining was asked for, and the snapshot that it leads to."""

    snapshot: str
    reset_lambda: bool = False
    publish: bool = False


@dataclass(frozen=True)
class MinedRecord:
    """The mined tables: the sources that were mined, rows by dataset, λ, and the engine of the graph's metrics."""

    sources: tuple[str, ...]
    counts: dict[str, int]
    lambda_: float | None
    graph_engine: str | None
    timings: dict[str, float] = field(default_factory=dict)


@dataclass(frozen=True)
class EmbeddedRecord:
    """One part of the vectors: rows by dataset, and figures for the manifest."""

    counts: dict[str, int]
    figures: dict[str, Any]
    timings: dict[str, float] = field(default_factory=dict)


@dataclass(frozen=True)
class ChecksRecord:
    """The results of the checks of a step; `drift` of the mined tables from the snapshot that was current then."""

    checks: tuple[CheckResult, ...]
    drift: Drift | None = None
    timings: dict[str, float] = field(default_factory=dict)


_ADAPTERS: dict[type, TypeAdapter[Any]] = {}


@dataclass(frozen=True)
class Staged:
    """The staged records of one lake."""

    home: Lake

    def snapshot_folder(self, snapshot: str) -> Path:
        """Returns the folder of a snapshot that is not published yet."""
        return self.home.staged / snapshot

    def load(self, kind: type[T], name: str, snapshot: str = "") -> T | None:
        """Returns a record, or None where the step has not finished.

        A record of another version of this package counts as none. Raises LakeError where it is no JSON.
        """
        value = read_json(self._file(name, snapshot))
        if value is None:
            return None
        try:
            found: T = _adapter(kind).validate_python(value)
        except ValidationError:
            return None
        return found

    def save(self, record: object, name: str, snapshot: str = "") -> None:
        """Writes a record, after everything in the folder of its snapshot is on the disk."""
        file = self._file(name, snapshot)
        if snapshot and file.parent.is_dir():
            sync_tree(file.parent)
        value: Mapping[str, Any] = _adapter(type(record)).dump_python(record, mode="json")
        write_json(file, value)

    def forget(self, name: str, snapshot: str) -> None:
        """Removes a record, so that its step counts as not done."""
        self._file(name, snapshot).unlink(missing_ok=True)

    def keep_only(self, snapshot: str) -> None:
        """Removes what is staged of every other snapshot."""
        for folder in self.home.staged.glob("w*"):
            if folder.is_dir() and folder.name != snapshot:
                shutil.rmtree(folder)

    def required_history(self) -> HistoryRecord:
        """Returns the history that was read last. Raises LakeError where none was read."""
        found = self.load(HistoryRecord, HISTORY)
        if found is None:
            raise LakeError(
                f"{self.home.root} has no record of the history that was read: materialize history/implementations "
                "first, or run `opus rebuild`"
            )
        return found

    def work(self, history: HistoryRecord) -> Lake:
        """Returns the lake that this history was read into."""
        return remake.lake_of(self.home) if history.full else self.home

    def _file(self, name: str, snapshot: str) -> Path:
        return self.home.staged / snapshot / f"{name}.json"


def _adapter(kind: type) -> TypeAdapter[Any]:
    """Making one takes milliseconds."""
    if kind not in _ADAPTERS:
        _ADAPTERS[kind] = TypeAdapter(kind)
    return _ADAPTERS[kind]
