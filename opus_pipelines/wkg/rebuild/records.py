"""What a rebuild is made of: the snapshot that it makes, and the records that its steps stage in the lake.

The records are small JSON files in `<lake>/.staged`. `history.json` holds the history that was read last,
`request.json` what the last mining was asked for. Each snapshot that is not published yet has a folder `<snapshot>`
with its tables and a record for each finished step. A record is written after the files that it stands for are on the
disk, so a step whose record is there is complete.
"""

import shutil
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from time import perf_counter
from typing import Any, TypeVar

from pydantic import TypeAdapter, ValidationError

from opus_pipelines.core.errors import CheckResult, LakeError
from opus_pipelines.core.schemas import EMBEDDINGS, IMPLEMENTATION_VECTORS, PROCEDURE_VECTORS, PROCEDURES
from opus_pipelines.core.settings import Settings
from opus_pipelines.history.ingestion.ingest import SourceState
from opus_pipelines.lake.atomic_files import full_disk_named, read_json, sync_tree, write_json
from opus_pipelines.lake.layout import Lake
from opus_pipelines.wkg.drift import Drift
from opus_pipelines.wkg.graph import LambdaRule
from opus_pipelines.wkg.rebuild.aggregates import SourcePart
from opus_pipelines.wkg.task_matching.resolve import Resolution
from opus_pipelines.wkg.upkeep import remake

_Record = TypeVar("_Record")
HISTORY, REQUEST, MINED, MINED_CHECKS, EMBEDDED_CHECKS = (
    "history",
    "request",
    "mined",
    "mined_checks",
    "embedded_checks",
)
# The parts of the vectors, each with its datasets; the first of them names it. Each part can be made alone.
VECTORS: dict[str, tuple[str, ...]] = {
    "tasks": (EMBEDDINGS.name,),
    "cases": (IMPLEMENTATION_VECTORS.name,),
    "procedures": (PROCEDURES.name, PROCEDURE_VECTORS.name),
}


@dataclass(frozen=True)
class StagedSnapshot:
    """The snapshot that a rebuild makes: its id, whether it exists already, and where its tables are.

    `folder` holds its tables until it is published. `is_new` is False when it is published already or held back.
    `is_held` is True when a person rolled back from it: the rebuild then leaves it alone.
    """

    snapshot_id: str
    home: Lake
    folder: Path
    is_new: bool
    is_held: bool

    @property
    def is_current(self) -> bool:
        """Tells whether there is nothing to do: the snapshot is current already, or it is held back."""
        return self.is_held or (not self.is_new and self.home.current_snapshot() == self.snapshot_id)

    @property
    def place(self) -> Path:
        """The folder of its tables now: the staged one while it is new, else the published one."""
        return self.folder if self.is_new else self.home.snapshot_folder(self.snapshot_id)

    @property
    def last(self) -> Path | None:
        """The folder of the current snapshot; None when there is none or when it is this one."""
        current = self.home.current_snapshot()
        folder = self.home.snapshot_folder(current) if current else None
        return folder if folder and current != self.snapshot_id and (folder / "manifest.json").is_file() else None

    @property
    def nothing_new(self) -> str:
        """The message for a rebuild that has nothing to do."""
        if not self.is_held:
            return f"nothing new: snapshot {self.snapshot_id} stays"
        return (
            f"nothing new: history gives snapshot {self.snapshot_id}, which was rolled back from; "
            f"{self.home.current_snapshot()} stays. `opus rebuild --publish` publishes it again"
        )


@dataclass(frozen=True)
class HistoryRecord:
    """The history that was read last. `full`: it was read into the empty lake of `opus rebuild --full`.

    The folders of the sources are relative to the lake that they were read into.
    """

    sources: tuple[SourceState, ...]
    checks: tuple[CheckResult, ...]
    full: bool = False


@dataclass(frozen=True)
class RequestRecord:
    """What the last mining was asked for, and the snapshot that it leads to."""

    snapshot: str
    reset_lambda: bool = False
    publish: bool = False


@dataclass(frozen=True)
class MinedRecord:
    """The mined tables: the sources that were mined, rows by dataset, λ, and the engines of both steps.

    `mining_engine`: duckdb, or spark with its master; none where no source changed.
    """

    sources: tuple[str, ...]
    counts: dict[str, int]
    lambda_: float | None
    graph_engine: str | None
    timings: dict[str, float] = field(default_factory=dict)
    mining_engine: str | None = None

    @property
    def engines(self) -> dict[str, str | None]:
        """The engine of each step, for the manifest and for Dagster."""
        return {"mining": self.mining_engine, "graph": self.graph_engine}


@dataclass(frozen=True)
class EmbeddedRecord:
    """Parts of the vectors: rows by dataset, and figures for the manifest."""

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

    def load(self, kind: type[_Record], name: str, snapshot: str = "") -> _Record | None:
        """Returns a record, or None where the step has not finished.

        A record of another version of this package counts as none. Raises LakeError where it is no JSON.
        """
        value = read_json(self._file(name, snapshot))
        if value is None:
            return None
        try:
            record: _Record = _adapter(kind).validate_python(value)
        except ValidationError:
            return None
        return record

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
        record = self.load(HistoryRecord, HISTORY)
        if record is None:
            raise LakeError(
                f"{self.home.root} has no record of the history that was read: materialize history/implementations "
                "first, or run `opus rebuild`"
            )
        return record

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


@dataclass(frozen=True)
class Rebuild:
    """A rebuild whose tasks are resolved: the snapshot to make, and what it is made from.

    `home` is the lake in which the snapshot is published. `work` is the lake in which its parts are made: `home`
    itself, or an empty lake inside the staged folder of `home` when everything is made again. `rule` tells where λ
    comes from. `timings` collects the seconds of what was timed and not recorded yet.
    """

    settings: Settings
    home: Lake
    work: Lake
    history_checks: tuple[CheckResult, ...]
    snapshot: StagedSnapshot
    parts: tuple[SourcePart, ...]
    resolution: Resolution
    rule: LambdaRule
    timings: dict[str, float] = field(default_factory=dict)

    @property
    def staged(self) -> Staged:
        """The staged records of the lake."""
        return Staged(self.home)

    def load(self, kind: type[_Record], name: str) -> _Record | None:
        """Returns the record of a step for this snapshot, or None where the step has not finished."""
        return self.staged.load(kind, name, self.snapshot.snapshot_id)

    def save(self, record: object, name: str) -> None:
        """Writes the record of a step for this snapshot."""
        self.staged.save(record, name, self.snapshot.snapshot_id)

    def mined(self) -> MinedRecord:
        """Returns the record of the mined tables; an empty one where the snapshot is published already."""
        if not self.snapshot.is_new:
            return MinedRecord((), {}, None, None)
        record = self.load(MinedRecord, MINED)
        if record is None:
            raise LakeError(self._missing("its tables", "wkg/tasks"))
        return record

    def embedded(self, parts: Iterable[str] = VECTORS) -> EmbeddedRecord:
        """Returns these parts of the vectors together; none where the snapshot is published already."""
        counts, figures = dict[str, int](), dict[str, Any]()
        for part in parts if self.snapshot.is_new else ():
            record = self.load(EmbeddedRecord, part)
            if record is None:
                raise LakeError(self._missing(f"its vectors of {part}", VECTORS[part][0]))
            counts |= record.counts
            figures |= record.figures
        return EmbeddedRecord(counts, figures)

    def step_timings(self) -> dict[str, float]:
        """Returns the seconds of each stage in all steps that are recorded."""
        records: list[MinedRecord | ChecksRecord | EmbeddedRecord | None] = [
            self.load(MinedRecord, MINED),
            self.load(ChecksRecord, MINED_CHECKS),
            *(self.load(EmbeddedRecord, part) for part in VECTORS),
        ]
        timings: dict[str, float] = {}
        for record in records:
            for stage, seconds in record.timings.items() if record is not None else ():
                timings[stage] = round(timings.get(stage, 0.0) + seconds, 3)
        return timings

    @contextmanager
    def timed(self, stage: str) -> Iterator[None]:
        """Adds the seconds that the block takes to `timings`; an error of a full disk names the disk of the lake."""
        start = perf_counter()
        with full_disk_named(self.home.root):
            yield
        self.timings[stage] = round(self.timings.get(stage, 0.0) + perf_counter() - start, 3)

    def taken(self, *stages: str) -> dict[str, float]:
        """Returns the seconds of these stages for a record, and takes them out of `timings`."""
        return {stage: self.timings.pop(stage) for stage in stages if stage in self.timings}

    def _missing(self, what: str, asset: str) -> str:
        return (
            f"snapshot {self.snapshot.snapshot_id} is not ready: {what} are not staged; materialize {asset} first, "
            "or run `opus rebuild`"
        )
