"""The records of a rebuild: its context, and one small frozen record for the result of each stage."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Any

from opus_pipelines.core.settings import Settings
from opus_pipelines.lake.atomic_files import full_disk_named
from opus_pipelines.lake.layout import Lake
from opus_pipelines.wkg.graph import LambdaRule
from opus_pipelines.wkg.rebuild.aggregates import SourcePart
from opus_pipelines.wkg.task_matching.resolve import Resolution

if TYPE_CHECKING:
    from opus_pipelines.core.errors import CheckResult
    from opus_pipelines.history.ingestion.ingest import HistoryState
    from opus_pipelines.wkg.drift import Drift


@dataclass(frozen=True)
class RebuildContext:
    """What is constant through a rebuild.

    `home` is the lake in which the snapshot is published. `work` is the lake in which its parts are made: `home`
    itself, or an empty lake inside the staged folder of `home` when everything is made again. `timings` collects the
    seconds of each stage.
    """

    settings: Settings
    home: Lake
    work: Lake
    timings: dict[str, float] = field(default_factory=dict)

    @contextmanager
    def timed(self, stage: str) -> Iterator[None]:
        """Adds the seconds that the block takes to `timings`; an error of a full disk names the disk of the lake."""
        start = perf_counter()
        with full_disk_named(self.home.root):
            yield
        self.timings[stage] = round(self.timings.get(stage, 0.0) + perf_counter() - start, 3)


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
class HistoryRead:
    """Result of `read`: the sources and files of history as the lake has them, and the checks of what was read."""

    state: "HistoryState"
    checks: "tuple[CheckResult, ...]" = ()


@dataclass(frozen=True)
class ResolvedHistory:
    """Result of `resolve`: the snapshot to make, the sources to make it from, their tasks, and the source of λ."""

    history: HistoryRead
    snapshot: StagedSnapshot
    parts: tuple[SourcePart, ...]
    resolution: Resolution
    rule: LambdaRule


@dataclass(frozen=True)
class MinedHistory:
    """Result of `mine`: the names of the sources whose aggregates were mined in this run."""

    resolved: ResolvedHistory
    sources: tuple[str, ...]


@dataclass(frozen=True)
class EstimatedGraph:
    """Result of `estimate`: rows per dataset name, λ (None without edges), and the graph engine's name."""

    mined: MinedHistory
    counts: Mapping[str, int]
    lambda_: float | None
    graph_engine: str | None


@dataclass(frozen=True)
class CheckedGraph:
    """Result of `check_graph`: the checks of the tables, and the drift from the current snapshot (None: none)."""

    estimated: EstimatedGraph
    checks: "tuple[CheckResult, ...]"
    drift: "Drift | None"

    @property
    def resolved(self) -> ResolvedHistory:
        """The sources and tasks that the graph was made from."""
        return self.estimated.mined.resolved


@dataclass(frozen=True)
class EmbeddedPart:
    """One part of the vectors: rows per dataset name, and figures for the manifest."""

    counts: Mapping[str, int]
    figures: Mapping[str, Any]


@dataclass(frozen=True)
class EmbeddedGraph:
    """Result of `embed`: rows per dataset name; the encoder's name, its dimension, and the recall of the index."""

    graph: CheckedGraph
    counts: Mapping[str, int]
    figures: Mapping[str, Any]


@dataclass(frozen=True)
class CheckedSnapshot:
    """Result of `check`: `checks` are those of the vectors alone, `all_checks` those of the whole rebuild."""

    embedded: EmbeddedGraph
    checks: "tuple[CheckResult, ...]"

    @property
    def resolved(self) -> ResolvedHistory:
        """The sources and tasks that the snapshot was made from."""
        return self.embedded.graph.resolved

    @property
    def all_checks(self) -> "tuple[CheckResult, ...]":
        """The checks of history, of the tables and of the vectors, in the order in which they ran."""
        return (*self.resolved.history.checks, *self.embedded.graph.checks, *self.checks)
