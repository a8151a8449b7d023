"""A snapshot under way: what the steps of a rebuild hand on to each other, until it is published."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Any

from opus_pipelines.core.settings import Settings
from opus_pipelines.lake.atomic_files import full_disk_named
from opus_pipelines.lake.layout import Lake
from opus_pipelines.task_matching.resolve import Resolution
from opus_pipelines.wkg.aggregates import SourcePart
from opus_pipelines.wkg.gamma import LambdaRule

if TYPE_CHECKING:
    from opus_pipelines.wkg.drift import Drift


@dataclass
class SnapshotBuild:
    """One rebuild under way. `folder` is staged until `publish`; the fields behind `timings` are what the steps hand
    on.
    """

    snapshot_id: str
    folder: Path
    is_new: bool
    timings: dict[str, float] = field(default_factory=dict)
    lake: Lake = field(repr=False, kw_only=True)
    settings: Settings = field(repr=False, kw_only=True)
    parts: list[SourcePart] = field(repr=False, kw_only=True)
    resolution: Resolution = field(repr=False, kw_only=True)
    rule: LambdaRule = field(repr=False, kw_only=True)
    lambda_: float | None = None
    counts: dict[str, int] = field(default_factory=dict)
    figures: dict[str, Any] = field(default_factory=dict)
    mined: list[str] = field(default_factory=list)
    graph_engine: str | None = None
    home: Lake = field(
        repr=False, kw_only=True
    )  # where it is published; `lake` is another one only while all is made again
    drift: "Drift | None" = field(default=None, repr=False)  # from the snapshot that is current until this one is
    is_held: bool = False  # a person rolled back from it: it is left alone

    @property
    def is_current(self) -> bool:
        """Is there nothing to do: it is published and pointed to already, or held back?"""
        return self.is_held or (not self.is_new and self.home.current_snapshot() == self.snapshot_id)

    @property
    def place(self) -> Path:
        """Where its tables lie now: staged while it is new, then published."""
        return self.folder if self.is_new else self.home.snapshot_folder(self.snapshot_id)

    @property
    def last(self) -> Path | None:
        """The folder of the snapshot that it would replace; None where there is none, or where it is this one."""
        current = self.home.current_snapshot()
        folder = self.home.snapshot_folder(current) if current else None
        return folder if folder and current != self.snapshot_id and (folder / "manifest.json").is_file() else None

    @property
    def nothing_new(self) -> str:
        """What to say where there is nothing to do."""
        if not self.is_held:
            return f"nothing new: snapshot {self.snapshot_id} stays"
        return (
            f"nothing new: history gives snapshot {self.snapshot_id}, which was rolled back from; {self.home.current_snapshot()} stays. "
            "`opus rebuild --publish` publishes it again"
        )

    @contextmanager
    def timed(self, stage: str) -> Iterator[None]:
        """Add the seconds of a stage to `timings`."""
        start = perf_counter()
        with full_disk_named(self.home.root):
            yield
        self.timings[stage] = round(self.timings.get(stage, 0.0) + perf_counter() - start, 3)
