"""A snapshot under way: what the steps of a rebuild hand on to each other, until it is published."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from time import perf_counter
from typing import Any

from opus_pipelines.lake import Lake
from opus_pipelines.settings import Settings
from opus_pipelines.wkg.aggregates import SourcePart
from opus_pipelines.wkg.gamma import LambdaRule
from opus_pipelines.wkg.resolve import Resolution


@dataclass
class SnapshotBuild:
    """One rebuild under way. `folder` is staged until `publish`; the fields behind `timings` are what the steps hand on."""

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

    @property
    def is_current(self) -> bool:
        """Is it published and pointed to already?"""
        return not self.is_new and self.lake.current_snapshot() == self.snapshot_id

    @contextmanager
    def timed(self, stage: str) -> Iterator[None]:
        """Add the seconds of a stage to `timings`."""
        start = perf_counter()
        yield
        self.timings[stage] = round(self.timings.get(stage, 0.0) + perf_counter() - start, 3)
