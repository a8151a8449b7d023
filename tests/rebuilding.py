"""A rebuild of the WKG in this process: the stages that the Dagster assets call one by one, in their order."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING

from opus_pipelines.core.settings import Settings
from opus_pipelines.history.ingestion.ingest import HistoryState
from opus_pipelines.lake.layout import Lake
from opus_pipelines.language.embedding.encoder import TextEncoder
from opus_pipelines.wkg.rebuild import stages as rebuild
from opus_pipelines.wkg.rebuild.records import (
    CheckedSnapshot,
    HistoryRead,
    RebuildContext,
    ResolvedHistory,
    StagedSnapshot,
)

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@dataclass(frozen=True)
class Rebuilt:
    """The last record of a rebuild, with what most tests ask of it."""

    checked: CheckedSnapshot

    @property
    def snapshot(self) -> StagedSnapshot:
        return self.checked.resolved.snapshot

    @property
    def snapshot_id(self) -> str:
        return self.snapshot.snapshot_id

    @property
    def mined(self) -> list[str]:
        return list(self.checked.embedded.graph.estimated.mined.sources)

    @property
    def counts(self) -> dict[str, int]:
        embedded = self.checked.embedded
        return {**embedded.graph.estimated.counts, **embedded.counts}


def resolved_history(
    lake: Lake, settings: Settings, history: HistoryState, publish: bool = False, reset_lambda: bool = False
) -> ResolvedHistory:
    """The first stage after reading, with the encoder of the settings."""
    context = RebuildContext(settings, lake, lake)
    return rebuild.resolve(HistoryRead(history), context, reset_lambda=reset_lambda, publish=publish)


def checked_snapshot(
    resolved: ResolvedHistory,
    context: RebuildContext,
    session: "Callable[[], SparkSession]",
    encoder: Callable[[], TextEncoder],
) -> CheckedSnapshot:
    """All stages between `resolve` and `publish`. Raises CheckFailed where a check of the tables blocks."""
    estimated = rebuild.estimate(rebuild.mine(resolved, context, session), context, session)
    graph = rebuild.check_graph(estimated, context)
    rebuild.require_passed(graph.checks)
    return rebuild.check(rebuild.embed(graph, context, encoder), context)


def build_snapshot(
    session: "Callable[[], SparkSession]",
    lake: Lake,
    settings: Settings,
    history: HistoryState,
    encoder: Callable[[], TextEncoder],
    now: datetime,
    reset_lambda: bool = False,
) -> Rebuilt:
    """All stages with their checks. Nothing where nothing changed."""
    context = rebuild.begin(settings, lake)
    resolved = rebuild.resolve(HistoryRead(history), context, encoder, reset_lambda)
    checked = checked_snapshot(resolved, context, session, encoder)
    if not resolved.snapshot.is_current:
        rebuild.publish(checked, context, now)
    return Rebuilt(checked)
