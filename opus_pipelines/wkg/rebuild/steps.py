"""A rebuild of the WKG as a chain of steps.

`read` -> `mine` -> `check_mined` -> `embed` -> `check_embedded` -> `publish`.

Each step finds in the lake what earlier steps staged there, and stages its own, so it can run in a process of its own,
again after a failure, or alone (`resolve` and `opened` give the `Rebuild` that the steps work on). What is staged
already is not made again, and where the snapshot is published already, nothing is made. The tables are checked before
the vectors are made, so that a failed check costs no encoding. Before all, the disk space that a rebuild needs is
estimated from the files of history and from what the lake already has of them.
"""

import shutil
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from time import perf_counter
from typing import TYPE_CHECKING

from opus_pipelines.core.errors import CheckFailed, CheckResult, LakeError
from opus_pipelines.core.ids import digest, make_id
from opus_pipelines.core.schemas import DATASETS, IMPLEMENTATIONS
from opus_pipelines.core.settings import Settings
from opus_pipelines.core.versions import versions_of
from opus_pipelines.history.ingestion.ingest import HistoryOptions, HistoryState, SourceState, read_history
from opus_pipelines.history.ingestion.parallel_files import ParallelReading
from opus_pipelines.history.ingestion.plan import FilePlan, SourcePlan, plan_history
from opus_pipelines.history.ingestion.source_versions import published
from opus_pipelines.history.records.forgotten_clients import private_key
from opus_pipelines.lake.atomic_files import bytes_below, full_disk_named, require_free_space, sweep
from opus_pipelines.lake.layout import PART, Lake, read_json
from opus_pipelines.language.embedding.cache import CachedEncoder
from opus_pipelines.language.embedding.encoder import TextEncoder, encoder_of
from opus_pipelines.wkg.checks import (
    MINED_DATASETS,
    RECALLS,
    check_history,
    check_loss,
    check_recall,
    check_snapshot,
    loss_of,
)
from opus_pipelines.wkg.drift import check_drift, compare
from opus_pipelines.wkg.graph import lambda_rule
from opus_pipelines.wkg.rebuild import manifest
from opus_pipelines.wkg.rebuild.aggregates import SourcePart, bytes_to_mine, mine_missing
from opus_pipelines.wkg.rebuild.cases import write_procedures
from opus_pipelines.wkg.rebuild.records import (
    EMBEDDED_CHECKS,
    HISTORY,
    MINED,
    MINED_CHECKS,
    REQUEST,
    VECTORS,
    ChecksRecord,
    EmbeddedRecord,
    HistoryRecord,
    MinedRecord,
    Rebuild,
    RequestRecord,
    Staged,
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


# Bytes in the lake - implementations, aggregates, and a source's share of the snapshot and the embedding cache - for
# each byte of a history file. Measured: bpic2012, bpic2013, BPIC_2017_W and helpdesk (gzipped XES and CSV) 2.1 to 3.3,
# the sample's CSV, JSONL and XES 0.2 to 1.1. The rest is a margin, for an estimate that is too high costs a message and
# one that is too low a night.
OF_COMPRESSED, OF_TEXT = 4.0, 2.0
_COMPRESSED = (".gz", ".parquet")


def plan_within_disk_space(work: Lake, home: Lake, settings: Settings) -> list[SourcePlan]:
    """Returns the plans of the history folder; raises LakeError when the disk is too small for the rebuild.

    `work` is the lake in which the parts are made: `home` itself or an empty one.
    """
    private_key(work)  # a plan's hashes are of it
    plans = plan_history(settings.paths.history, settings.currency.usd_per_unit, work)
    require_free_space(home.root, needed_for_rebuild(work, home, plans), settings.disk.reserve_mb, "this rebuild")
    return plans


def needed_for_rebuild(work: Lake, home: Lake, plans: Iterable[SourcePlan]) -> int:
    """Returns the bytes that a rebuild needs.

    These are the size of the changed sources in the lake, plus a snapshot as large as the last one.
    """
    changed = (plan for plan in plans if not _is_there(work, plan))
    snapshot = home.current_snapshot()
    return int(sum(_in_lake(f) for plan in changed for f in plan.files)) + (
        bytes_below(home.snapshot_folder(snapshot)) if snapshot else 0
    )


def _is_there(lake: Lake, plan: SourcePlan) -> bool:
    return (lake.folder(IMPLEMENTATIONS, source_key=plan.name, content=plan.content) / PART).is_file()


def _in_lake(file: FilePlan) -> float:
    return file.bytes * (OF_COMPRESSED if file.file.suffix.lower() in _COMPRESSED else OF_TEXT)


@dataclass(frozen=True)
class ReadOptions:
    """Options of reading.

    `full`: everything is made again in an empty lake. `allow_loss`: history may have lost any number of cases.
    `session` starts Spark, told the bytes to read, where so much is read that executors do it; None: they never do.
    """

    full: bool = False
    allow_loss: bool = False
    session: "Callable[[int], SparkSession] | None" = None


@dataclass(frozen=True)
class Engines:
    """What mining may need, each started at its first use: Spark, and Spark with GraphFrames.

    `session` takes the bytes of the files that it will read.
    """

    session: "Callable[[int], SparkSession]"
    graph_session: "Callable[[], SparkSession]"


@dataclass(frozen=True)
class Asked:
    """What a mining is asked for beside its history.

    `reset_lambda`: λ is chosen anew. `publish`: a snapshot that was rolled back from is published again.
    """

    reset_lambda: bool = False
    publish: bool = False


PLAIN, NOTHING_ELSE = ReadOptions(), Asked()


def read(
    settings: Settings,
    home: Lake,
    now: datetime,
    chosen: ReadOptions = PLAIN,
    progress: Callable[[str], None] = lambda line: None,
) -> tuple[HistoryState, tuple[CheckResult, ...]]:
    """Reads the sources of history that changed, or all of them, and records them for the later steps.

    Returns what was read and the checks of its counts. `now` dates the columns first_seen and last_read only. What an
    earlier run staged stays where its checks passed; what failed a check is made again. Raises LakeError when the disk
    has no room for the result, InputError when there is no history folder, and CasesLost when history lost too many
    cases since the current snapshot, unless that is allowed; nothing is recorded then.
    """
    staged, checks = Staged(home), list[CheckResult]()
    before = staged.load(HistoryRecord, HISTORY)
    if chosen.full or (before is not None and before.full):
        staged.keep_only("")
    _drop_what_failed(staged)
    if not chosen.full:
        shutil.rmtree(remake.lake_of(home).root, ignore_errors=True)
    work = remake.begin_remake(home) if chosen.full else home

    def accept(sources: Sequence[SourceState]) -> None:
        checks.append(check_loss(loss_of(home, sources), settings.checks.max_lost_share, chosen.allow_loss))

    options = HistoryOptions(
        force=chosen.full,
        plans=plan_within_disk_space(work, home, settings),
        parallel=ParallelReading(
            settings.history.processes, spark_bytes=settings.spark.read_from_mib << 20, session=chosen.session
        ),
        max_quarantined_share=settings.history.max_quarantined_share,
        home=home,
        accept=accept,
    )
    state = read_history(work, settings.paths.history, now, options, progress)
    checks += check_history(work, state)
    sources = tuple(
        replace(s, folder=s.folder.relative_to(work.root)) if s.folder.is_relative_to(work.root) else s
        for s in state.sources
    )
    staged.save(HistoryRecord(sources, tuple(checks), chosen.full), HISTORY)
    return state, tuple(checks)


def resolve(
    settings: Settings,
    home: Lake,
    history: HistoryRecord,
    encoder: Callable[[Lake], TextEncoder] | None = None,
    asked: Asked = NOTHING_ELSE,
) -> Rebuild:
    """Matches the activity names of all sources to tasks, and derives the id of the snapshot from all its inputs.

    The folders of the sources are absolute here. `encoder` is called only for names that were never compared; the
    default is the encoder of the settings.
    """
    start, work = perf_counter(), Staged(home).work(history)
    sources = sorted(history.sources, key=lambda s: s.source)
    matching = NightlyResolution(work, settings, sources)
    make = encoder or (lambda lake: CachedEncoder(encoder_of(settings.encoder), lake.kept / "embeddings"))
    with full_disk_named(home.root):
        resolution = matching.resolution(lambda: make(work))
    parts = tuple(
        SourcePart(
            s.source,
            s.content,
            s.folder,
            tuple(resolution.of_source(s.source)),
            tuple(sorted(s.stated.items())),
            s.by_activities,
            settings.forecasts.stated(s.source) or s.open_cases,
        )
        for s in sources
    )
    inputs = _inputs(settings, parts, resolution, matching.pins)
    rule = lambda_rule(settings.wkg, read_json(work.kept / "lambda.json"), inputs, asked.reset_lambda)
    snapshot_id = make_id("w", inputs, rule.token)
    is_held = not asked.publish and snapshot_id in home.rolled_back_from()
    is_new = not is_held and not (work.snapshot_folder(snapshot_id) / "manifest.json").exists()
    snapshot = StagedSnapshot(snapshot_id, home, home.staged / snapshot_id / "tables", is_new, is_held)
    timings = {"prepare": round(perf_counter() - start, 3)}
    return Rebuild(settings, home, work, history.checks, snapshot, parts, resolution, rule, timings)


def opened(settings: Settings, home: Lake) -> Rebuild:
    """Returns the rebuild that the last mining began.

    Raises LakeError where no history was read, and where no mining resolved its tasks with these settings.
    """
    staged = Staged(home)
    history = _read_last(staged)
    request = staged.load(RequestRecord, REQUEST) or RequestRecord("")
    rebuild = resolve(settings, home, history, _not_resolved, asked_last(home))
    if request.snapshot not in ("", rebuild.snapshot.snapshot_id):
        _not_resolved(home)
    return rebuild


def asked_last(home: Lake) -> Asked:
    """Returns what the last mining was asked for."""
    request = Staged(home).load(RequestRecord, REQUEST) or RequestRecord("")
    return Asked(request.reset_lambda, request.publish)


def begun(
    settings: Settings, home: Lake, encoder: Callable[[Lake], TextEncoder], asked: Asked = NOTHING_ELSE
) -> Rebuild:
    """Returns the rebuild of the history that was read last, whose tasks are resolved now. `mine` comes next."""
    return resolve(settings, home, _read_last(Staged(home)), encoder, asked)


def mine(rebuild: Rebuild, engines: Engines, asked: Asked = NOTHING_ELSE) -> MinedRecord:
    """Mines the sources that changed, estimates the figures of tasks and edges, and stages the tables.

    The tables are tasks, task_implementations, edges, waits, needs, task_aliases, variants, contexts and cases. The
    engines are called only where Spark mines, and where GraphFrames computes the metrics of the graph.
    """
    snapshot, staged, settings = rebuild.snapshot, rebuild.staged, rebuild.settings
    staged.keep_only(snapshot.snapshot_id)
    staged.save(RequestRecord(snapshot.snapshot_id, asked.reset_lambda, asked.publish), REQUEST)
    if not snapshot.is_new or rebuild.load(MinedRecord, MINED) is not None:
        return rebuild.mined()
    shutil.rmtree(staged.snapshot_folder(snapshot.snapshot_id), ignore_errors=True)
    work, parts = rebuild.work, rebuild.parts
    masters: list[str] = []

    def session() -> "SparkSession":
        spark = engines.session(bytes_to_mine(work, parts))
        masters.append(str(spark.sparkContext.master))
        return spark

    with rebuild.timed("mine"):
        sources = mine_missing(work, parts, session, settings.spark)
    snapshot.folder.mkdir(parents=True)
    with rebuild.timed("merge"):
        counts, lambda_ = write_tables(rebuild)
    with rebuild.timed("graph"):
        engine = write_metrics(snapshot.folder, settings.graph, engines.graph_session)
    mining = f"spark {masters[0]}" if masters else "duckdb" if sources else "none: no source changed"
    taken = rebuild.taken("prepare", "mine", "merge", "graph")
    record = MinedRecord(tuple(sources), counts, lambda_, engine, taken, mining)
    rebuild.save(record, MINED)
    return record


def check_mined(rebuild: Rebuild) -> ChecksRecord:
    """Checks the staged tables, and where none of them blocks, also the drift from the current snapshot."""
    rebuild.mined()
    snapshot, settings = rebuild.snapshot, rebuild.settings.checks
    checks, drift = check_snapshot(snapshot.folder, MINED_DATASETS) if snapshot.is_new else [], None
    if snapshot.is_current:
        return ChecksRecord(tuple(checks))
    if not _blocked(checks):
        with rebuild.timed("drift"):
            last = snapshot.last if settings.drift != "off" else None
            drift = compare(last, snapshot.place) if last else None
        checks += check_drift(drift, settings)
    record = ChecksRecord(tuple(checks), drift, rebuild.taken("drift"))
    rebuild.save(record, MINED_CHECKS)
    return record


def embed(
    rebuild: Rebuild,
    encoder: Callable[[Lake], TextEncoder],
    parts: Collection[str] = tuple(VECTORS),
    progress: Progress | None = None,
) -> EmbeddedRecord:
    """Stages the named parts of the vectors (`VECTORS`) that are not staged yet, and returns all that are named.

    `encoder` is called only when the snapshot is new. `progress(done, of)` counts texts.
    """
    rebuild.mined()
    for part in parts if rebuild.snapshot.is_new else ():
        if rebuild.load(EmbeddedRecord, part) is None:
            rebuild.staged.forget(EMBEDDED_CHECKS, rebuild.snapshot.snapshot_id)
            rebuild.save(_embedded(part, rebuild, encoder(rebuild.work), progress), part)
    return rebuild.embedded(parts)


def _embedded(part: str, rebuild: Rebuild, model: TextEncoder, progress: Progress | None) -> EmbeddedRecord:
    """Writes one part of the staged vectors; those of tasks with their FAISS index."""
    folder, sources = rebuild.snapshot.folder, [source.folder for source in rebuild.parts]
    figures: dict[str, object] = {}
    with rebuild.timed("embed"):
        if part == "cases":
            written = write_case_vectors(sources, folder, model, progress)
        elif part == "procedures":
            written = dict[str, float](write_procedures(sources, folder, model, progress))
        else:
            written = write_task_vectors(folder, model, progress)
            figures = {"encoder": model.name, "dimension": model.dimension}
        figures |= {name: written.pop(name) for name in RECALLS.values() if name in written}
    return EmbeddedRecord({name: int(rows) for name, rows in written.items()}, figures, rebuild.taken("embed"))


def check_embedded(rebuild: Rebuild, parts: Collection[str] = tuple(VECTORS)) -> ChecksRecord:
    """Checks the staged vectors of these parts, and where none blocks, also the recall of what searches them.

    The results are recorded where the parts are all.
    """
    rebuild.mined()
    embedded = rebuild.embedded(parts)
    if not rebuild.snapshot.is_new:
        return ChecksRecord(())
    datasets = tuple(DATASETS[name] for part in parts for name in VECTORS[part])
    checks = check_snapshot(rebuild.snapshot.folder, datasets)
    if not _blocked(checks):
        least = rebuild.settings.checks.min_recall
        # an earlier version searched cases exactly, and recorded nothing of it
        recalls = [(d, embedded.figures.get(RECALLS[d.name], 1.0)) for d in datasets if d.name in RECALLS]
        checks += [check_recall(dataset, found, least) for dataset, found in recalls]
    record = ChecksRecord(tuple(checks))
    if set(parts) == set(VECTORS):
        rebuild.save(record, EMBEDDED_CHECKS)
    return record


def require_passed(checks: Iterable[CheckResult]) -> None:
    """Raises CheckFailed, naming each blocking check that failed."""
    if failed := _blocked(checks):
        raise CheckFailed("nothing was published: " + "; ".join(f"{c.name} ({c.dataset}): {c.detail}" for c in failed))


def _blocked(checks: Iterable[CheckResult]) -> list[CheckResult]:
    return [check for check in checks if not check.passed and check.blocking]


def ready(rebuild: Rebuild) -> tuple[ChecksRecord, tuple[CheckResult, ...]]:
    """Returns the checks of the tables, and all checks of the rebuild, in the order in which they ran.

    A check that has not run is run now. Raises LakeError naming what has not been made, and CheckFailed where a
    blocking check failed.
    """
    mined = rebuild.load(ChecksRecord, MINED_CHECKS) or check_mined(rebuild)
    rebuild.embedded()
    embedded = rebuild.load(ChecksRecord, EMBEDDED_CHECKS) or check_embedded(rebuild)
    checks = (*rebuild.history_checks, *mined.checks, *embedded.checks)
    require_passed(checks)
    return mined, checks


def publish(rebuild: Rebuild, now: datetime) -> str:
    """Makes the snapshot current, removes what was staged, and returns its id.

    Raises as `ready` does, and leaves everything as it was then.
    """
    checked, checks = ready(rebuild)
    snapshot, home, work, mined = rebuild.snapshot, rebuild.home, rebuild.work, rebuild.mined()
    if snapshot.is_new and work is not home:
        remake.compare_remade(work, home, snapshot.snapshot_id, snapshot.folder)
        remake.adopt(work, home)
    with rebuild.timed("publish"):
        # The ledger records which names are in use. That changes also when an earlier snapshot becomes current again.
        manifest.keep(home, rebuild.resolution, rebuild.rule, mined.lambda_)
    if snapshot.is_new:
        sweep(snapshot.folder)  # what an earlier publishing that was killed left of its manifest
        manifest.write(rebuild, checks, checked.drift, now)
        home.publish(snapshot.folder, home.snapshot_folder(snapshot.snapshot_id))
        shutil.rmtree(home.staged / snapshot.snapshot_id, ignore_errors=True)  # the records of its steps
    if home.current_snapshot() != snapshot.snapshot_id:
        point(home, snapshot.snapshot_id, now)
    published(home)
    prune(home, rebuild.settings.retention, now)
    if work is not home:
        shutil.rmtree(work.root, ignore_errors=True)
    history = rebuild.staged.load(HistoryRecord, HISTORY)
    if history is not None and history.full:
        rebuild.staged.save(replace(history, full=False), HISTORY)
    rebuild.staged.keep_only("")
    return snapshot.snapshot_id


def _read_last(staged: Staged) -> HistoryRecord:
    """Returns the history that was read last, with the absolute folders of its sources."""
    history = staged.required_history()
    root = staged.work(history).root
    return replace(history, sources=tuple(replace(s, folder=root / s.folder) for s in history.sources))


def _not_resolved(lake: Lake) -> TextEncoder:
    raise LakeError(
        "history, settings or code changed since the tasks were resolved: materialize wkg/tasks first, "
        "or run `opus rebuild`"
    )


def _drop_what_failed(staged: Staged) -> None:
    """Removes staged files whose blocking checks failed, so that a new rebuild makes them again."""
    for folder in sorted(staged.home.staged.glob("w*")):
        mined, vectors = (staged.load(ChecksRecord, name, folder.name) for name in (MINED_CHECKS, EMBEDDED_CHECKS))
        if mined is not None and _blocked(mined.checks):
            shutil.rmtree(folder)
        elif vectors is not None and _blocked(vectors.checks):
            for name in (EMBEDDED_CHECKS, *VECTORS):
                staged.forget(name, folder.name)


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
