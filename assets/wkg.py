"""Stage two: implementations become the Work Knowledge Graph, staged, checked, and then published as one snapshot."""

import logging
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import dagster as dg

from assets.checks import EMBEDDED_CHECKS, MINED_CHECKS, NOT_EMBEDDED, NOT_MINED, check_key, selected, warning
from assets.inputs import SETTINGS
from assets.metadata import shown, summary
from assets.specs import POOL, key, made, reason_first, register, spec
from opus_pipelines.core.errors import CheckResult
from opus_pipelines.core.formatting import Ticker
from opus_pipelines.core.versions import ALGORITHM_VERSIONS, versions_of
from opus_pipelines.generation.contracts import contract_keys
from opus_pipelines.lake.layout import Lake, read_json
from resources.encoder import EncoderResource
from resources.lake import LakeRun
from resources.spark import SparkResource

if TYPE_CHECKING:
    from opus_pipelines.wkg.rebuild.records import EmbeddedRecord, MinedRecord, Rebuild, StagedSnapshot

GROUP = "wkg"
MINED = ("tasks", "task_implementations", "edges", "waits", "needs", "task_aliases", "variants", "contexts", "cases")
EMBEDDED = ("embeddings", "implementation_vectors", "procedures", "procedure_vectors")
WITH_VECTORS = {"tasks": ("wkg/index",)}  # what is made together with a part of the vectors, and is no dataset
EMBEDDING = f"embedding={ALGORITHM_VERSIONS['embedding']}"
logger = logging.getLogger("opus_pipelines.rebuild")


class Mine(dg.Config):
    """Options of mining."""

    reset_lambda: bool = False
    publish: bool = False


@dg.multi_asset(
    name="mine",
    specs=[
        spec(
            f"wkg/{name}",
            GROUP,
            ["history/implementations", SETTINGS],
            kinds=("parquet",),
            code_version=f"{versions_of('names')} {versions_of('mining')} wkg={ALGORITHM_VERSIONS['wkg']}",
        )
        for name in MINED
    ],
    check_specs=[NOT_MINED],
    can_subset=True,
    pool=POOL,
)
@reason_first
def mine(
    context: dg.AssetExecutionContext, config: Mine, run: LakeRun, spark: SparkResource, encoder: EncoderResource
) -> Iterator[dg.MaterializeResult[None] | dg.AssetCheckResult]:
    """Resolves tasks, then aggregates the sources that changed and merges all aggregates."""
    from opus_pipelines.wkg.rebuild import steps

    asked = steps.Asked(config.reset_lambda, config.publish)
    from opus_pipelines.wkg.rebuild.failing_sources import without_failing_sources

    def mining() -> "tuple[Rebuild, MinedRecord]":
        rebuild = steps.begun(run.typed, run.lake, encoder.of_lake, asked)
        return rebuild, steps.mine(rebuild, steps.Engines(spark.session, spark.graph_session), asked)

    (rebuild, mined), lines = without_failing_sources(run.typed, run.lake, "mining", mining, mining)
    yield from _made(context, run.lake, rebuild.snapshot, mined, MINED)
    yield from _told(context, NOT_MINED, lines)


@dg.multi_asset(
    name="embed",
    specs=[
        spec("wkg/embeddings", GROUP, ["wkg/tasks"], code_version=EMBEDDING),
        spec("wkg/implementation_vectors", GROUP, ["wkg/cases", "history/implementations"], code_version=EMBEDDING),
        spec("wkg/procedures", GROUP, ["history/implementations"], code_version=EMBEDDING),
        spec("wkg/procedure_vectors", GROUP, ["wkg/procedures", "wkg/tasks"], code_version=EMBEDDING),
        spec(
            "wkg/index",
            GROUP,
            ["wkg/embeddings"],
            about="the FAISS index over the tasks, with its id map",
            kinds=("faiss",),
            code_version=EMBEDDING,
        ),
    ],
    check_specs=[NOT_EMBEDDED],
    can_subset=True,
    pool=POOL,
)
@reason_first
def embed(
    context: dg.AssetExecutionContext, run: LakeRun, spark: SparkResource, encoder: EncoderResource
) -> Iterator[dg.MaterializeResult[None] | dg.AssetCheckResult]:
    """Embeds tasks and cases; only texts that are new reach the encoder."""
    from opus_pipelines.wkg.rebuild import steps
    from opus_pipelines.wkg.rebuild.failing_sources import without_failing_sources

    progress, parts = Ticker("embedded passages", logger.info), _parts(context.selected_asset_keys)

    def embedding() -> "tuple[Rebuild, EmbeddedRecord]":
        rebuild = steps.opened(run.typed, run.lake)
        return rebuild, steps.embed(rebuild, encoder.of_lake, parts, progress)

    def mined_again() -> "tuple[Rebuild, EmbeddedRecord]":
        asked = steps.asked_last(run.lake)
        rebuild = steps.begun(run.typed, run.lake, encoder.of_lake, asked)
        steps.mine(rebuild, steps.Engines(spark.session, spark.graph_session), asked)
        return embedding()

    (rebuild, embedded), lines = without_failing_sources(run.typed, run.lake, "embedding", embedding, mined_again)
    yield from _told(context, NOT_EMBEDDED, lines)
    yield from _made(context, run.lake, rebuild.snapshot, embedded, (*EMBEDDED, "index"))


@dg.multi_asset_check(name="check_mined", specs=MINED_CHECKS, can_subset=True, pool=POOL)
@reason_first
def check_mined(context: dg.AssetCheckExecutionContext, run: LakeRun) -> Iterator[dg.AssetCheckResult]:
    """Checks the staged tables before anybody can see them."""
    from opus_pipelines.wkg.rebuild import steps

    rebuild = steps.opened(run.typed, run.lake)
    yield from _reported(context, rebuild.snapshot, steps.check_mined(rebuild).checks, MINED_CHECKS)


@dg.multi_asset_check(name="check_embedded", specs=EMBEDDED_CHECKS, can_subset=True, pool=POOL)
@reason_first
def check_embedded(context: dg.AssetCheckExecutionContext, run: LakeRun) -> Iterator[dg.AssetCheckResult]:
    """Checks the staged vectors and their index."""
    from opus_pipelines.wkg.rebuild import steps

    keys = context.op_execution_context.selected_asset_check_keys
    rebuild = steps.opened(run.typed, run.lake)
    checked = steps.check_embedded(rebuild, _parts(check.asset_key for check in keys))
    yield from _reported(context, rebuild.snapshot, checked.checks, EMBEDDED_CHECKS)


@dg.multi_asset(
    name="publish_snapshot",
    specs=[
        spec(
            "wkg/snapshot",
            GROUP,
            [f"wkg/{name}" for name in (*MINED, *EMBEDDED, "index")],
            about="the pointer that makes a snapshot visible",
            kinds=("json",),
            code_version=versions_of("manifest"),
        ),
        spec(
            "wkg/changes",
            GROUP,
            ["wkg/tasks", "wkg/edges", "wkg/needs", "wkg/cases", "history/implementations"],
            code_version=versions_of("manifest"),
        ),
    ],
    can_subset=True,
    pool=POOL,
)
@reason_first
def snapshot(context: dg.AssetExecutionContext, run: LakeRun) -> Iterator[dg.MaterializeResult[None]]:
    """Publishes: manifest, rename, and the one pointer that readers follow."""
    from opus_pipelines.reporting.wkg_graph import snapshot_pictures
    from opus_pipelines.wkg.rebuild import steps

    pictures: dict[str, str] = {}
    rebuild = steps.opened(run.typed, run.lake)
    if rebuild.snapshot.is_current:
        logger.info(rebuild.snapshot.nothing_new)
    else:
        checked, _ = steps.ready(rebuild)
        pictures = snapshot_pictures(rebuild, checked.drift)
        steps.publish(rebuild, datetime.now(UTC))
    register(context.instance, contract_keys(run.lake, run.typed.paths.intakes))  # for the conditions of the night
    current = run.lake.current_snapshot() or ""
    manifest = run.lake.manifest(current)
    pointer = read_json(run.lake.root / "wkg" / "current.json") or {}
    facts = {name: manifest[name] for name in ("lambda", "counts", "timings", "engines") if name in manifest}
    published_at = pointer.get("published_at", "")
    results = [
        made("wkg/changes", current, before=pointer.get("before") or ""),
        made(
            "wkg/snapshot",
            current,
            snapshot=current,
            published_at=published_at,
            **facts,
            **summary(manifest),
            **shown(pictures),
        ),
    ]
    yield from (one for one in results if one.asset_key in context.selected_asset_keys)


def _parts(assets: Iterable[dg.AssetKey]) -> list[str]:
    """Returns the parts of the vectors that these assets belong to."""
    from opus_pipelines.wkg.rebuild.records import VECTORS

    wanted = {asset.to_user_string() for asset in assets}
    return [part for part, names in VECTORS.items() if wanted & {*names, *WITH_VECTORS.get(part, ())}]


def _told(
    context: dg.AssetExecutionContext, declared: dg.AssetCheckSpec, lines: list[str]
) -> Iterator[dg.AssetCheckResult]:
    """Yields the check of the sources that were put back, where it is selected."""
    told = warning(declared, lines, dg.AssetCheckSeverity.ERROR)
    if check_key(told) in context.selected_asset_check_keys:
        yield told


def _made(
    context: dg.AssetExecutionContext,
    lake: Lake,
    snapshot: "StagedSnapshot",
    record: "MinedRecord | EmbeddedRecord",
    names: Iterable[str],
) -> Iterator[dg.MaterializeResult[None]]:
    """Yields the selected ones of these datasets of the snapshot, with the rows that were made now or before."""
    engines = getattr(record, "engines", {})  # only mining has some
    told = {f"engine_{step}": engine for step, engine in engines.items() if engine}
    counts = record.counts if snapshot.is_new else lake.manifest(snapshot.snapshot_id).get("counts") or {}
    for name in (f"wkg/{name}" for name in names):
        if key(name) in context.selected_asset_keys:
            yield made(name, snapshot.snapshot_id, counts.get(name), new=snapshot.is_new, **told)


def _reported(
    context: dg.AssetCheckExecutionContext,
    snapshot: "StagedSnapshot",
    checks: Iterable[CheckResult],
    declared: list[dg.AssetCheckSpec],
) -> Iterator[dg.AssetCheckResult]:
    """Yields a result for each selected check, then raises CheckFailed when a blocking check failed."""
    from opus_pipelines.wkg.rebuild import steps

    for failed in (check for check in checks if not check.passed and not check.blocking):
        logger.warning("%s (%s): %s", failed.name, failed.dataset, failed.detail)
    unseen = None if snapshot.is_new else "unchanged: checked when it was published"
    yield from selected(context.op_execution_context.selected_asset_check_keys, checks, declared, unseen)
    steps.require_passed(checks)
