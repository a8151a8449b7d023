"""A rebuild of the WKG in four steps that share one staged folder: prepare, mine, embed, publish."""

import shutil
from collections.abc import Callable, Sequence
from datetime import datetime
from time import perf_counter
from typing import TYPE_CHECKING

from opus_pipelines.core.errors import CheckFailed
from opus_pipelines.core.ids import digest, make_id
from opus_pipelines.core.schemas import EDGES, EMBEDDINGS, Dataset
from opus_pipelines.core.settings import Settings
from opus_pipelines.core.versions import versions_of
from opus_pipelines.embedding.cache import CachedEncoder
from opus_pipelines.embedding.encoder import TextEncoder, encoder_of
from opus_pipelines.lake.layout import Lake, read_json
from opus_pipelines.task_matching.id_ledger import ledger_rows
from opus_pipelines.task_matching.nightly import NightlyResolution
from opus_pipelines.task_matching.pins import Pins
from opus_pipelines.task_matching.resolve import Resolution
from opus_pipelines.wkg import manifest, remake
from opus_pipelines.wkg.aggregates import SourcePart, mine_missing
from opus_pipelines.wkg.checks import SNAPSHOT_DATASETS, CheckResult, check_recall
from opus_pipelines.wkg.drift import check_drift, compare
from opus_pipelines.wkg.gamma import lambda_rule
from opus_pipelines.wkg.procedure_parts import write_procedures
from opus_pipelines.wkg.retention import prune
from opus_pipelines.wkg.staged import SnapshotBuild
from opus_pipelines.wkg.tables import write_metrics, write_tables
from opus_pipelines.wkg.vectors import Progress, write_case_vectors, write_task_vectors

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from opus_pipelines.ingestion.ingest import HistoryState


def prepare(
    lake: Lake,
    settings: Settings,
    history: "HistoryState",
    reset_lambda: bool = False,
    publish: bool = False,
    home: Lake | None = None,
    encoder: Callable[[], TextEncoder] | None = None,
) -> SnapshotBuild:
    """Resolve tasks, give ids, and say which snapshot this history makes; `is_new` is False when it is published
    already. No Spark.
    `publish`: even if it was rolled back from. `home`: where it is published, when `lake` is only where everything is
    made again.
    `encoder`: asked only for names that were never compared; the settings' one, where none is given.
    """
    start = perf_counter()
    sources = sorted(history.sources, key=lambda s: s.source)
    resolving = NightlyResolution(lake, settings, sources)
    resolution = resolving.resolution(
        encoder or (lambda: CachedEncoder(encoder_of(settings.encoder), lake.kept / "embeddings"))
    )
    parts = [
        SourcePart(
            s.source, s.content, s.folder, tuple(resolution.of_source(s.source)), tuple(sorted(s.stated.items()))
        )
        for s in sources
    ]
    inputs = _inputs(settings, parts, resolution, resolving.pins)
    rule = lambda_rule(settings.wkg, read_json(lake.kept / "lambda.json"), inputs, reset_lambda)
    snapshot = make_id("w", inputs, rule.token)
    home = home or lake
    held = not publish and snapshot in home.rolled_back_from()
    build = SnapshotBuild(
        snapshot,
        lake.scratch / "snapshot",
        not held and not (lake.snapshot_folder(snapshot) / "manifest.json").exists(),
        lake=lake,
        settings=settings,
        parts=parts,
        resolution=resolution,
        rule=rule,
        home=home,
        is_held=held,
    )
    build.timings["prepare"] = round(perf_counter() - start, 3)
    return build


def mine(
    build: SnapshotBuild,
    session: "Callable[[], SparkSession]",
    graph_session: "Callable[[], SparkSession] | None" = None,
) -> dict[str, int]:
    """Write tasks, task_implementations, edges, needs, task_aliases, variants, cases; returns their rows. Spark only
    for what changed, and for the graph's metrics where GraphFrames is their engine: `graph_session` then gives a
    session that has it (default: `session`).
    """
    shutil.rmtree(build.folder, ignore_errors=True)
    build.folder.mkdir(parents=True)
    with build.timed("mine"):
        build.mined = mine_missing(build.lake, build.parts, session)
    with build.timed("merge"):
        counts, build.lambda_ = write_tables(
            build.lake, build.parts, build.resolution, build.settings, build.rule, build.folder
        )
    with build.timed("graph"):
        build.graph_engine = write_metrics(build.folder, build.settings.graph, graph_session or session)
    build.counts |= counts
    return counts


def embed(build: SnapshotBuild, encoder: TextEncoder, progress: Progress | None = None) -> dict[str, int]:
    """Write embeddings, index, implementation_vectors, procedures and procedure_vectors; returns their rows.

    `progress(done, of)` counts texts.
    """
    with build.timed("embed"):
        figures = write_task_vectors(build.folder, encoder, progress)
        build.figures = {
            "recall_at_10": figures.pop("recall_at_10"),
            "encoder": encoder.name,
            "dimension": encoder.dimension,
        }
        counts = {name: int(n) for name, n in figures.items()}
        folders = [part.folder for part in build.parts]
        counts |= write_case_vectors(folders, build.folder, encoder, progress)
        counts |= write_procedures(folders, build.folder, encoder, progress)
    build.counts |= counts
    return counts


def check(
    build: SnapshotBuild, found: Sequence[CheckResult], datasets: Sequence[Dataset] = SNAPSHOT_DATASETS
) -> list[CheckResult]:
    """What is checked beyond the tables by themselves, and only where all of `found` holds: recall, and drift from the
    last snapshot.
    """
    more: list[CheckResult] = []
    if build.is_current or not all(result.passed for result in found):
        return more
    if EMBEDDINGS in datasets and "recall_at_10" in build.figures:
        more.append(check_recall(build.figures["recall_at_10"], build.settings.checks.min_recall))
    if EDGES in datasets:
        with build.timed("drift"):
            watched = build.settings.checks.drift != "off"
            build.drift = compare(build.last, build.place) if watched and build.last else None
        more += check_drift(build.drift, build.settings.checks)
    return more


def require_passed(checks: Sequence[CheckResult]) -> None:
    """Raises CheckFailed, naming each blocking check that failed."""
    if failed := [check for check in checks if not check.passed and check.blocking]:
        raise CheckFailed("nothing was published: " + "; ".join(f"{c.name} ({c.dataset}): {c.detail}" for c in failed))


def publish(build: SnapshotBuild, checks: list[CheckResult], now: datetime) -> str:
    """Make the snapshot current; returns its id. Raises CheckFailed, with everything as before, when a blocking check
    failed.
    """
    require_passed(checks)
    if build.is_new and build.lake is not build.home:
        remake.compare(build.lake, build.home, build.snapshot_id, build.folder)
        remake.adopt(build.lake, build.home)
    with build.timed("publish"):
        # Which names are in use is kept, and changes also where an earlier snapshot is current again.
        manifest.keep(build.home, build.resolution, build.rule, build.lambda_)
    if build.is_new:
        manifest.write(build, checks, now)
        build.home.publish(build.folder, build.home.snapshot_folder(build.snapshot_id))
    if build.home.current_snapshot() != build.snapshot_id:
        manifest.point(build.home, build.snapshot_id, now)
    prune(build.home, build.settings.retention, now)
    return build.snapshot_id


def _inputs(settings: Settings, parts: list[SourcePart], resolution: Resolution, pins: Pins) -> str:
    """Hash of everything a snapshot is made from, but for λ."""
    return digest(
        [(part.source, part.content, part.key, part.stated) for part in parts],
        ledger_rows(resolution.ids),
        resolution.rows,
        pins.model_dump(mode="json"),
        manifest.settings_that_matter(settings),
        versions_of("snapshot"),
    )
