"""The steps of a rebuild, one function each.

A step derives the id of the snapshot from the history that was read last, the settings and the versions of the
algorithms, and looks for what earlier steps staged under this id. What is there already is not made again.
"""

import shutil
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass, replace
from datetime import datetime
from typing import TYPE_CHECKING

from opus_pipelines.core.errors import CheckFailed, LakeError
from opus_pipelines.core.schemas import DATASETS
from opus_pipelines.core.settings import Settings
from opus_pipelines.history.ingestion.ingest import HistoryState
from opus_pipelines.lake.layout import Lake
from opus_pipelines.language.embedding.encoder import TextEncoder
from opus_pipelines.wkg.nightly.staged import (
    HISTORY,
    REQUEST,
    ChecksRecord,
    EmbeddedRecord,
    HistoryRecord,
    MinedRecord,
    RequestRecord,
    Staged,
)
from opus_pipelines.wkg.rebuild import stages as rebuild
from opus_pipelines.wkg.rebuild.aggregates import bytes_to_mine
from opus_pipelines.wkg.rebuild.records import (
    CheckedGraph,
    CheckedSnapshot,
    EmbeddedGraph,
    EstimatedGraph,
    HistoryRead,
    MinedHistory,
    RebuildContext,
    ResolvedHistory,
)
from opus_pipelines.wkg.rebuild.stages import PLAIN, ReadOptions
from opus_pipelines.wkg.rebuild.vectors import Progress
from opus_pipelines.wkg.upkeep import remake

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

MINED, MINED_CHECKS, EMBEDDED_CHECKS = "mined", "mined_checks", "embedded_checks"


@dataclass(frozen=True)
class Engines:
    """What mining may need, each started at its first use: the encoder of a lake, Spark, and Spark with GraphFrames.

    `session` takes the bytes of the files that it will read.
    """

    encoder: Callable[[Lake], TextEncoder]
    session: "Callable[[int], SparkSession]"
    graph_session: "Callable[[], SparkSession]"


def read(
    settings: Settings,
    home: Lake,
    now: datetime,
    options: ReadOptions = PLAIN,
    progress: Callable[[str], None] = lambda line: None,
) -> HistoryRead:
    """Reads the sources that changed, and records them for the later steps. Raises as `rebuild.read` does.

    What an earlier run staged stays where its checks passed; what failed a check is made again.
    """
    staged = Staged(home)
    before = staged.load(HistoryRecord, HISTORY)
    if options.full or (before is not None and before.full):
        staged.keep_only("")
    _drop_what_failed(staged)
    if not options.full:
        shutil.rmtree(remake.lake_of(home).root, ignore_errors=True)
    context = rebuild.begin(settings, home, options.full)
    history = rebuild.read(context, now, options, progress)
    sources = tuple(
        replace(s, folder=s.folder.relative_to(context.work.root)) if s.folder.is_relative_to(context.work.root) else s
        for s in history.state.sources
    )
    staged.save(HistoryRecord(sources, history.checks, options.full, context.timings), HISTORY)
    return history


def mine(
    settings: Settings, home: Lake, engines: Engines, reset_lambda: bool = False, publish: bool = False
) -> EstimatedGraph:
    """Resolves tasks, mines the sources that changed, and stages the mined tables.

    `reset_lambda`, `publish`: see `rebuild.resolve`.
    """
    step = _Step.of(settings, home)
    context, staged = step.context, step.staged
    resolved = rebuild.resolve(
        step.history, context, lambda: engines.encoder(context.work), reset_lambda=reset_lambda, publish=publish
    )
    snapshot = resolved.snapshot
    staged.keep_only(snapshot.snapshot_id)
    staged.save(RequestRecord(snapshot.snapshot_id, reset_lambda, publish), REQUEST)
    if not snapshot.is_new or staged.load(MinedRecord, MINED, snapshot.snapshot_id) is not None:
        return step.estimated(resolved)
    shutil.rmtree(staged.snapshot_folder(snapshot.snapshot_id), ignore_errors=True)
    mined = rebuild.mine(resolved, context, lambda: engines.session(bytes_to_mine(context.work, resolved.parts)))
    made = rebuild.estimate(mined, context, engines.graph_session)
    record = MinedRecord(mined.sources, dict(made.counts), made.lambda_, made.graph_engine, context.timings)
    staged.save(record, MINED, snapshot.snapshot_id)
    return made


def check_mined(settings: Settings, home: Lake) -> CheckedGraph:
    """Checks the staged tables, and records the results."""
    step = _Step.of(settings, home)
    resolved = step.resolved()
    graph = rebuild.check_graph(step.estimated(resolved), step.context)
    if not resolved.snapshot.is_current:
        record = ChecksRecord(graph.checks, graph.drift, step.timings("drift"))
        step.staged.save(record, MINED_CHECKS, resolved.snapshot.snapshot_id)
    return graph


def embed(
    settings: Settings,
    home: Lake,
    encoder: Callable[[Lake], TextEncoder],
    parts: Collection[str] = tuple(rebuild.VECTORS),
    progress: Progress | None = None,
) -> EmbeddedGraph:
    """Stages the named parts of the vectors (`rebuild.VECTORS`) that are not staged yet."""
    step = _Step.of(settings, home)
    resolved = step.resolved()
    snapshot, staged = resolved.snapshot, step.staged
    graph = CheckedGraph(step.estimated(resolved), (), None)
    if not snapshot.is_new:
        return EmbeddedGraph(graph, {}, {})
    for part in parts:
        if staged.load(EmbeddedRecord, part, snapshot.snapshot_id) is None:
            staged.forget(EMBEDDED_CHECKS, snapshot.snapshot_id)
            step.context.timings.clear()
            made = rebuild.embed_part(part, resolved, step.context, encoder(step.context.work), progress)
            record = EmbeddedRecord(dict(made.counts), dict(made.figures), step.timings("embed"))
            staged.save(record, part, snapshot.snapshot_id)
    return step.embedded(graph, parts)


def check_embedded(settings: Settings, home: Lake, parts: Collection[str] = tuple(rebuild.VECTORS)) -> CheckedSnapshot:
    """Checks the staged vectors of these parts and their index, and records the results where they are all."""
    step = _Step.of(settings, home)
    resolved = step.resolved()
    graph = CheckedGraph(step.estimated(resolved), (), None)
    datasets = tuple(DATASETS[name] for part in parts for name in rebuild.VECTORS[part])
    checked = rebuild.check(step.embedded(graph, parts), step.context, datasets)
    if resolved.snapshot.is_new and set(parts) == set(rebuild.VECTORS):
        step.staged.save(ChecksRecord(checked.checks), EMBEDDED_CHECKS, resolved.snapshot.snapshot_id)
    return checked


def to_publish(settings: Settings, home: Lake) -> tuple[CheckedSnapshot, RebuildContext]:
    """Returns everything that the earlier steps staged, with the results of their checks.

    A check that has not run is run now. Raises LakeError naming what has not been made, and CheckFailed where a
    blocking check failed.
    """
    step = _Step.of(settings, home)
    resolved = step.resolved()
    if resolved.snapshot.is_current:
        graph = CheckedGraph(step.estimated(resolved), (), None)
        return CheckedSnapshot(EmbeddedGraph(graph, {}, {}), ()), step.context
    snapshot = resolved.snapshot.snapshot_id
    found = step.staged.load(ChecksRecord, MINED_CHECKS, snapshot)
    graph = (
        check_mined(settings, home)
        if found is None
        else CheckedGraph(step.estimated(resolved), found.checks, found.drift)
    )
    embedded = step.embedded(graph, rebuild.VECTORS)
    vectors = step.staged.load(ChecksRecord, EMBEDDED_CHECKS, snapshot)
    checks = check_embedded(settings, home).checks if vectors is None else vectors.checks
    checked = CheckedSnapshot(EmbeddedGraph(graph, embedded.counts, embedded.figures), checks)
    rebuild.require_passed(checked.all_checks)
    step.add_timings(snapshot)
    return checked, step.context


def publish(checked: CheckedSnapshot, context: RebuildContext, now: datetime) -> str:
    """Makes the snapshot current, removes what was staged, and returns its id."""
    published = rebuild.publish(checked, context, now)
    staged = Staged(context.home)
    history = staged.required_history()
    if history.full:
        staged.save(replace(history, full=False), HISTORY)
    staged.keep_only("")
    return published


@dataclass(frozen=True)
class _Step:
    """One step: the lake with its staged records, the history that was read last, and the context of the rebuild."""

    staged: Staged
    record: HistoryRecord
    context: RebuildContext

    @classmethod
    def of(cls, settings: Settings, home: Lake) -> "_Step":
        staged = Staged(home)
        record = staged.required_history()
        return cls(staged, record, RebuildContext(settings, home, staged.work(record)))

    @property
    def history(self) -> HistoryRead:
        root = self.context.work.root
        sources = [replace(s, folder=root / s.folder) for s in self.record.sources]
        return HistoryRead(HistoryState(sources=sources), self.record.checks)

    def resolved(self) -> ResolvedHistory:
        """Returns the sources and their tasks as the last mining found them.

        Raises LakeError where no mining resolved the tasks of this history with these settings.
        """
        request = self.staged.load(RequestRecord, REQUEST) or RequestRecord("")
        resolved = rebuild.resolve(
            self.history, self.context, _not_resolved, reset_lambda=request.reset_lambda, publish=request.publish
        )
        if request.snapshot not in ("", resolved.snapshot.snapshot_id):
            _not_resolved()
        return resolved

    def estimated(self, resolved: ResolvedHistory) -> EstimatedGraph:
        """Returns the mined tables of the snapshot; none where it is published already."""
        if not resolved.snapshot.is_new:
            return EstimatedGraph(MinedHistory(resolved, ()), {}, None, None)
        found = self.staged.load(MinedRecord, MINED, resolved.snapshot.snapshot_id)
        if found is None:
            raise LakeError(_missing(resolved, "its tables", "wkg/tasks"))
        return EstimatedGraph(MinedHistory(resolved, found.sources), found.counts, found.lambda_, found.graph_engine)

    def embedded(self, graph: CheckedGraph, parts: Iterable[str]) -> EmbeddedGraph:
        """Returns these parts of the vectors of the snapshot."""
        snapshot = graph.resolved.snapshot
        counts: dict[str, int] = {}
        figures: dict[str, object] = {}
        for part in parts if snapshot.is_new else ():
            found = self.staged.load(EmbeddedRecord, part, snapshot.snapshot_id)
            if found is None:
                raise LakeError(_missing(graph.resolved, f"its vectors of {part}", rebuild.VECTORS[part][0]))
            counts |= found.counts
            figures |= found.figures
        return EmbeddedGraph(graph, counts, figures)

    def timings(self, stage: str) -> dict[str, float]:
        """Returns the seconds of one stage."""
        return {stage: self.context.timings[stage]} if stage in self.context.timings else {}

    def add_timings(self, snapshot: str) -> None:
        """Adds the seconds of the earlier steps to the context, for the manifest."""
        timings, staged = self.context.timings, self.staged
        timings.clear()
        records: list[MinedRecord | ChecksRecord | EmbeddedRecord | None] = [
            staged.load(MinedRecord, MINED, snapshot),
            staged.load(ChecksRecord, MINED_CHECKS, snapshot),
            *(staged.load(EmbeddedRecord, part, snapshot) for part in rebuild.VECTORS),
        ]
        for record in records:
            for stage, seconds in record.timings.items() if record is not None else ():
                timings[stage] = round(timings.get(stage, 0.0) + seconds, 3)


def _not_resolved() -> TextEncoder:
    raise LakeError(
        "history, settings or code changed since the tasks were resolved: materialize wkg/tasks first, "
        "or run `opus rebuild`"
    )


def _missing(resolved: ResolvedHistory, what: str, asset: str) -> str:
    return (
        f"snapshot {resolved.snapshot.snapshot_id} is not ready: {what} are not staged; materialize {asset} first, "
        "or run `opus rebuild`"
    )


def _drop_what_failed(staged: Staged) -> None:
    """Removes staged files whose blocking checks failed, so that a new rebuild makes them again."""
    for folder in sorted(staged.home.staged.glob("w*")):
        mined, vectors = (staged.load(ChecksRecord, name, folder.name) for name in (MINED_CHECKS, EMBEDDED_CHECKS))
        if mined is not None and not _passed(mined):
            shutil.rmtree(folder)
        elif vectors is not None and not _passed(vectors):
            for name in (EMBEDDED_CHECKS, *rebuild.VECTORS):
                staged.forget(name, folder.name)


def _passed(record: ChecksRecord) -> bool:
    try:
        rebuild.require_passed(record.checks)
    except CheckFailed:
        return False
    return True
