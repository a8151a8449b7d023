"""A rebuild of the WKG in four steps that share one staged folder: prepare, mine, embed, publish."""

import shutil
from collections.abc import Callable
from datetime import datetime
from time import perf_counter
from typing import TYPE_CHECKING, Any

from opus_pipelines.embedding.encoder import TextEncoder
from opus_pipelines.errors import CheckFailed
from opus_pipelines.ids import code_version, digest, make_id
from opus_pipelines.lake import Lake, read_json
from opus_pipelines.settings import Settings
from opus_pipelines.wkg import manifest
from opus_pipelines.wkg.aggregates import SourcePart, mine_missing
from opus_pipelines.wkg.checks import CheckResult, check_snapshot
from opus_pipelines.wkg.gamma import lambda_rule
from opus_pipelines.wkg.names import names_of
from opus_pipelines.wkg.resolve import Resolution, SourceNames, ledger_table, read_ledger, resolve
from opus_pipelines.wkg.retention import prune
from opus_pipelines.wkg.staged import SnapshotBuild
from opus_pipelines.wkg.tables import write_tables
from opus_pipelines.wkg.vectors import Progress, write_case_vectors, write_task_vectors

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from opus_pipelines.history.ingest import HistoryState

CODE = ("tables", "schemas.py", "lake.py", "ids.py", "history", "wkg", "embedding")


def prepare(lake: Lake, settings: Settings, history: "HistoryState", reset_lambda: bool = False) -> SnapshotBuild:
    """Resolve tasks, give ids, and say which snapshot this history makes; `is_new` is False when it is published already. No Spark."""
    start = perf_counter()
    sources = sorted(history.sources, key=lambda s: s.source)
    names = {s.source: names_of(lake, s.source, s.content, s.folder) for s in sources}
    counted = [SourceNames(s.source, s.merge, _counts(names[s.source])) for s in sources]
    resolution = resolve(counted, read_ledger(lake.kept / "ids.parquet"), settings.wkg.merge)
    parts = [SourcePart(s.source, s.content, s.folder, tuple(resolution.of_source(s.source))) for s in sources]
    inputs = _inputs(settings, parts, resolution)
    rule = lambda_rule(settings.wkg, read_json(lake.kept / "lambda.json"), inputs, reset_lambda)
    snapshot = make_id("w", inputs, rule.token)
    build = SnapshotBuild(
        snapshot, lake.root / ".staging" / "snapshot", not (lake.snapshot_folder(snapshot) / "manifest.json").exists(),
        lake=lake, settings=settings, parts=parts, resolution=resolution, rule=rule,
    )
    build.timings["prepare"] = round(perf_counter() - start, 3)
    return build


def mine(build: SnapshotBuild, session: "Callable[[], SparkSession]") -> dict[str, int]:
    """Write tasks, task_implementations, edges, needs, task_aliases, variants, cases; returns their rows. Spark only for what changed."""
    shutil.rmtree(build.folder, ignore_errors=True)
    build.folder.mkdir(parents=True)
    with build.timed("mine"):
        build.mined = mine_missing(build.lake, build.parts, session)
    with build.timed("merge"):
        counts, build.lambda_ = write_tables(build.lake, build.parts, build.resolution, build.settings, build.rule, build.folder)
    build.counts |= counts
    return counts


def embed(build: SnapshotBuild, encoder: TextEncoder, progress: Progress | None = None) -> dict[str, int]:
    """Write embeddings, index and implementation_vectors; returns their rows. `progress(done, of)` counts passages."""
    with build.timed("embed"):
        figures = write_task_vectors(build.folder, encoder, progress)
        build.figures = {"recall_at_10": figures.pop("recall_at_10"), "encoder": encoder.name, "dimension": encoder.dimension}
        counts = {name: int(n) for name, n in figures.items()}
        counts |= write_case_vectors([part.folder for part in build.parts], build.folder, encoder, progress)
    build.counts |= counts
    return counts


def publish(build: SnapshotBuild, checks: list[CheckResult], now: datetime) -> str:
    """Make the snapshot current; returns its id. Raises CheckFailed, with everything as before, when a check failed."""
    if failed := [check for check in checks if not check.passed]:
        raise CheckFailed("nothing was published: " + "; ".join(f"{c.name} ({c.dataset}): {c.detail}" for c in failed))
    if build.is_new:
        with build.timed("publish"):
            manifest.keep(build.lake, build.resolution, build.rule, build.lambda_)
        manifest.write(build, checks, now)
        build.lake.publish(build.folder, build.lake.snapshot_folder(build.snapshot_id))
    if not build.is_current:
        manifest.point(build.lake, build.snapshot_id, now)
    prune(build.lake, build.settings.retention, now)
    return build.snapshot_id


def build_snapshot(
    session: "Callable[[], SparkSession]", lake: Lake, settings: Settings, history: "HistoryState",
    encoder: Callable[[], TextEncoder], now: datetime, reset_lambda: bool = False, progress: Progress | None = None,
) -> SnapshotBuild:
    """All four steps, with the checks of `check_snapshot`: what the Dagster assets do one by one. Nothing where nothing changed."""
    build = prepare(lake, settings, history, reset_lambda)
    checks: list[CheckResult] = []
    if build.is_new:
        mine(build, session)
        embed(build, encoder(), progress)
        checks = check_snapshot(build.folder)
    if not build.is_current:
        publish(build, checks, now)
    return build


def _counts(names: Any) -> dict[tuple[str | None, str, str], int]:
    columns = (names[c].to_pylist() for c in ("industry", "task_key", "title", "count"))
    return {(industry, key, title): count for industry, key, title, count in zip(*columns, strict=True)}


def _inputs(settings: Settings, parts: list[SourcePart], resolution: Resolution) -> str:
    """Hash of everything a snapshot is made from, but for λ."""
    return digest(
        [(part.source, part.content, part.key) for part in parts],
        ledger_table(resolution.ids).to_pylist(), manifest.settings_that_matter(settings), code_version(CODE),
    )
