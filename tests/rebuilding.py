"""A rebuild of the WKG in this process: the steps that the Dagster assets take one by one, in their order."""

from collections.abc import Callable
from datetime import datetime
from typing import TYPE_CHECKING

from opus_pipelines.core.settings import Settings
from opus_pipelines.embedding.encoder import TextEncoder
from opus_pipelines.ingestion.ingest import HistoryState
from opus_pipelines.lake.layout import Lake
from opus_pipelines.wkg.build import check, embed, mine, prepare, publish
from opus_pipelines.wkg.checks import CheckResult, check_snapshot
from opus_pipelines.wkg.staged import SnapshotBuild

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def build_snapshot(
    session: "Callable[[], SparkSession]",
    lake: Lake,
    settings: Settings,
    history: HistoryState,
    encoder: Callable[[], TextEncoder],
    now: datetime,
    reset_lambda: bool = False,
) -> SnapshotBuild:
    """All steps with their checks. Nothing where nothing changed."""
    build = prepare(lake, settings, history, reset_lambda, encoder=encoder)
    checks: list[CheckResult] = []
    if build.is_new:
        mine(build, session)
        embed(build, encoder())
        checks = check_snapshot(build.folder)
    checks += check(build, checks)
    if not build.is_current:
        publish(build, checks, now)
    return build
