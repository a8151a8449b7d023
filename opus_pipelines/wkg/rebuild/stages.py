"""A rebuild of the WKG as a chain of stages, each a function from one record to the next.

`read` -> `resolve` -> `mine` -> `estimate` -> `check_graph` -> `embed` -> `check` -> `publish`. The records are in
`rebuild_records`. The tables are checked before the vectors are made, so that a failed check costs no encoding. Where
the snapshot exists already, `mine`, `estimate` and `embed` make nothing.
"""

import shutil
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING

from opus_pipelines.core.errors import CheckFailed, CheckResult
from opus_pipelines.core.ids import digest, make_id
from opus_pipelines.core.schemas import (
    EMBEDDINGS,
    IMPLEMENTATION_VECTORS,
    PROCEDURE_VECTORS,
    PROCEDURES,
    Dataset,
)
from opus_pipelines.core.settings import Settings
from opus_pipelines.core.versions import versions_of
from opus_pipelines.history.ingestion.ingest import HistoryOptions, SourceState, read_history
from opus_pipelines.history.ingestion.parallel_files import ParallelReading
from opus_pipelines.lake.layout import Lake, read_json
from opus_pipelines.language.embedding.cache import CachedEncoder
from opus_pipelines.language.embedding.encoder import TextEncoder, encoder_of
from opus_pipelines.wkg.checks import (
    EMBEDDED_DATASETS,
    MINED_DATASETS,
    check_history,
    check_loss,
    check_recall,
    check_snapshot,
    loss_of,
)
from opus_pipelines.wkg.drift import check_drift, compare
from opus_pipelines.wkg.graph import lambda_rule
from opus_pipelines.wkg.rebuild import manifest
from opus_pipelines.wkg.rebuild.aggregates import SourcePart, mine_missing
from opus_pipelines.wkg.rebuild.cases import write_procedures
from opus_pipelines.wkg.rebuild.disk_estimate import plan_within_disk_space
from opus_pipelines.wkg.rebuild.records import (
    CheckedGraph,
    CheckedSnapshot,
    EmbeddedGraph,
    EmbeddedPart,
    EstimatedGraph,
    HistoryRead,
    MinedHistory,
    RebuildContext,
    ResolvedHistory,
    StagedSnapshot,
)
from opus_pipelines.wkg.rebuild.tables import write_metrics, write_tables
from opus_pipelines.wkg.rebuild.vectors import Progress, write_case_vectors, write_task_vectors
from opus_pipelines.wkg.task_matching.id_ledger import ledger_rows
from opus_pipelines.wkg.task_matching.pins import Pins
from opus_pipelines.wkg.task_matching.resolve import NightlyResolution, Resolution
from opus_pipelines.wkg.upkeep import remake
from opus_pipelines.wkg.upkeep.retention import prune
from opus_pipelines.wkg.upkeep.rollback import point

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# The parts of the vectors, each with its datasets; the first of them names it. Each part can be made alone.
VECTORS: dict[str, tuple[str, ...]] = {
    "tasks": (EMBEDDINGS.name,),
    "cases": (IMPLEMENTATION_VECTORS.name,),
    "procedures": (PROCEDURES.name, PROCEDURE_VECTORS.name),
}


def begin(settings: Settings, home: Lake, full: bool = False) -> RebuildContext:
    """Returns the context of a rebuild that publishes in `home`.

    With `full`, all parts are made again in an empty lake in the staged folder of `home`.
    """
    return RebuildContext(settings, home, remake.begin_remake(home) if full else home)


@dataclass(frozen=True)
class ReadOptions:
    """Options of reading.

    `full`: everything is made again in an empty lake. `allow_loss`: history may have lost any number of cases.
    `session` starts Spark, told the bytes to read, where so much is read that executors do it; None: they never do.
    """

    full: bool = False
    allow_loss: bool = False
    session: "Callable[[int], SparkSession] | None" = None


PLAIN = ReadOptions()


def read(
    context: RebuildContext,
    now: datetime,
    chosen: ReadOptions = PLAIN,
    progress: Callable[[str], None] = lambda line: None,
) -> HistoryRead:
    """Reads the sources of history that changed, or all of them, and checks the counts of their records.

    `now` dates the columns first_seen and last_read only. Raises LakeError when the disk has no room for the result,
    InputError when there is no history folder, and CasesLost when history lost too many cases since the current
    snapshot, unless that is allowed; nothing is recorded then.
    """
    settings, checks = context.settings, list[CheckResult]()

    def accept(sources: Sequence[SourceState]) -> None:
        loss = loss_of(context.home, sources)
        checks.append(check_loss(loss, settings.checks.max_lost_share, chosen.allow_loss))

    options = HistoryOptions(
        force=chosen.full,
        plans=plan_within_disk_space(context.work, context.home, settings),
        parallel=ParallelReading(
            settings.history.processes, spark_bytes=settings.spark.read_from_mib << 20, session=chosen.session
        ),
        max_quarantined_share=settings.history.max_quarantined_share,
        home=context.home,
        accept=accept,
    )
    state = read_history(context.work, settings.paths.history, now, options, progress)
    return HistoryRead(state, (*checks, *check_history(context.work, state)))


def resolve(
    history: HistoryRead,
    context: RebuildContext,
    encoder: Callable[[], TextEncoder] | None = None,
    reset_lambda: bool = False,
    publish: bool = False,
) -> ResolvedHistory:
    """Matches the activity names of all sources to tasks, and derives the id of the snapshot from all its inputs.

    `encoder` is called only for names that were never compared; the default is the encoder of the settings. With
    `reset_lambda`, λ is chosen anew. With `publish`, a snapshot that was rolled back from is published again.
    """
    settings, work, home = context.settings, context.work, context.home
    with context.timed("prepare"):
        sources = sorted(history.state.sources, key=lambda s: s.source)
        matching = NightlyResolution(work, settings, sources)
        resolution = matching.resolution(
            encoder or (lambda: CachedEncoder(encoder_of(settings.encoder), work.kept / "embeddings"))
        )
        parts = tuple(
            SourcePart(
                s.source,
                s.content,
                s.folder,
                tuple(resolution.of_source(s.source)),
                tuple(sorted(s.stated.items())),
                s.by_activities,
            )
            for s in sources
        )
        inputs = _inputs(settings, parts, resolution, matching.pins)
        rule = lambda_rule(settings.wkg, read_json(work.kept / "lambda.json"), inputs, reset_lambda)
        snapshot_id = make_id("w", inputs, rule.token)
        is_held = not publish and snapshot_id in home.rolled_back_from()
        is_new = not is_held and not (work.snapshot_folder(snapshot_id) / "manifest.json").exists()
    snapshot = StagedSnapshot(snapshot_id, home, home.staged / snapshot_id / "tables", is_new, is_held)
    return ResolvedHistory(history, snapshot, parts, resolution, rule)


def mine(resolved: ResolvedHistory, context: RebuildContext, session: "Callable[[], SparkSession]") -> MinedHistory:
    """Mines the aggregates of each source that changed. `session` is called only where Spark mines."""
    if not resolved.snapshot.is_new:
        return MinedHistory(resolved, ())
    with context.timed("mine"):
        mined = mine_missing(context.work, resolved.parts, session, context.settings.spark)
    return MinedHistory(resolved, tuple(mined))


def estimate(mined: MinedHistory, context: RebuildContext, session: "Callable[[], SparkSession]") -> EstimatedGraph:
    """Merges the aggregates of all sources, estimates the figures of tasks and edges, and writes the staged tables.

    The tables are tasks, task_implementations, edges, waits, needs, task_aliases, variants, contexts and cases.
    `session` is called only when GraphFrames computes the metrics of the graph, and gives a session that has it.
    """
    resolved, folder = mined.resolved, mined.resolved.snapshot.folder
    if not resolved.snapshot.is_new:
        return EstimatedGraph(mined, {}, None, None)
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    with context.timed("merge"):
        counts, lambda_ = write_tables(resolved, context)
    with context.timed("graph"):
        engine = write_metrics(folder, context.settings.graph, session)
    return EstimatedGraph(mined, counts, lambda_, engine)


def check_graph(estimated: EstimatedGraph, context: RebuildContext) -> CheckedGraph:
    """Checks the staged tables, and where none of them blocks, also the drift from the current snapshot."""
    snapshot, settings = estimated.mined.resolved.snapshot, context.settings.checks
    checks = check_snapshot(snapshot.folder, MINED_DATASETS) if snapshot.is_new else []
    if snapshot.is_current or _blocked(checks):
        return CheckedGraph(estimated, tuple(checks), None)
    with context.timed("drift"):
        last = snapshot.last if settings.drift != "off" else None
        drift = compare(last, snapshot.place) if last else None
    return CheckedGraph(estimated, (*checks, *check_drift(drift, settings)), drift)


def embed(
    graph: CheckedGraph,
    context: RebuildContext,
    encoder: Callable[[], TextEncoder],
    progress: Progress | None = None,
) -> EmbeddedGraph:
    """Writes the staged vectors of tasks, cases and procedures, and the FAISS index of the tasks.

    `encoder` is called only when the snapshot is new. `progress(done, of)` counts texts.
    """
    resolved = graph.resolved
    if not resolved.snapshot.is_new:
        return EmbeddedGraph(graph, {}, {})
    model = encoder()
    made = [embed_part(part, resolved, context, model, progress) for part in VECTORS]
    counts = {name: rows for part in made for name, rows in part.counts.items()}
    return EmbeddedGraph(graph, counts, {name: value for part in made for name, value in part.figures.items()})


def embed_part(
    part: str,
    resolved: ResolvedHistory,
    context: RebuildContext,
    model: TextEncoder,
    progress: Progress | None = None,
) -> EmbeddedPart:
    """Writes one part of the staged vectors, a key of `VECTORS`; the vectors of tasks with their FAISS index."""
    folder, sources = resolved.snapshot.folder, [source.folder for source in resolved.parts]
    with context.timed("embed"):
        if part == "cases":
            return EmbeddedPart(write_case_vectors(sources, folder, model, progress), {})
        if part == "procedures":
            return EmbeddedPart(write_procedures(sources, folder, model, progress), {})
        written = write_task_vectors(folder, model, progress)
    figures = {"recall_at_10": written.pop("recall_at_10"), "encoder": model.name, "dimension": model.dimension}
    return EmbeddedPart({name: int(rows) for name, rows in written.items()}, figures)


def check(
    embedded: EmbeddedGraph, context: RebuildContext, datasets: tuple[Dataset, ...] = EMBEDDED_DATASETS
) -> CheckedSnapshot:
    """Checks the staged vectors of these datasets, and where none blocks, also the recall of the tasks' index."""
    snapshot = embedded.graph.resolved.snapshot
    if not snapshot.is_new:
        return CheckedSnapshot(embedded, ())
    checks = check_snapshot(snapshot.folder, datasets)
    if EMBEDDINGS in datasets and not _blocked(checks):
        checks.append(check_recall(embedded.figures["recall_at_10"], context.settings.checks.min_recall))
    return CheckedSnapshot(embedded, tuple(checks))


def require_passed(checks: Iterable[CheckResult]) -> None:
    """Raises CheckFailed, naming each blocking check that failed."""
    if failed := _blocked(checks):
        raise CheckFailed("nothing was published: " + "; ".join(f"{c.name} ({c.dataset}): {c.detail}" for c in failed))


def _blocked(checks: Iterable[CheckResult]) -> list[CheckResult]:
    return [check for check in checks if not check.passed and check.blocking]


def publish(checked: CheckedSnapshot, context: RebuildContext, now: datetime) -> str:
    """Makes the snapshot current and returns its id.

    Raises CheckFailed, and leaves everything as it was, when a blocking check failed.
    """
    require_passed(checked.all_checks)
    resolved, snapshot, home = checked.resolved, checked.resolved.snapshot, context.home
    if snapshot.is_new and context.work is not home:
        remake.compare_remade(context.work, home, snapshot.snapshot_id, snapshot.folder)
        remake.adopt(context.work, home)
    with context.timed("publish"):
        # The ledger records which names are in use. That changes also when an earlier snapshot becomes current again.
        manifest.keep(home, resolved.resolution, resolved.rule, checked.embedded.graph.estimated.lambda_)
    if snapshot.is_new:
        manifest.write(checked, context, now)
        home.publish(snapshot.folder, home.snapshot_folder(snapshot.snapshot_id))
        shutil.rmtree(home.staged / snapshot.snapshot_id, ignore_errors=True)  # the records of its steps
    if home.current_snapshot() != snapshot.snapshot_id:
        point(home, snapshot.snapshot_id, now)
    prune(home, context.settings.retention, now)
    if context.work is not home:
        shutil.rmtree(context.work.root, ignore_errors=True)
    return snapshot.snapshot_id


def _inputs(settings: Settings, parts: Iterable[SourcePart], resolution: Resolution, pins: Pins) -> str:
    """Returns the hash of everything that a snapshot is made from, without λ."""
    return digest(
        [
            (part.source, part.content, part.key, part.stated, *(["by activities"] if part.by_activities else []))
            for part in parts
        ],
        ledger_rows(resolution.ids),
        resolution.rows,
        pins.model_dump(mode="json"),
        manifest.settings_that_matter(settings),
        versions_of("snapshot"),
    )
