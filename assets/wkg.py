"""Stage two: implementations become the Work Knowledge Graph, staged, checked, and then published as one snapshot."""

import logging
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime

import dagster as dg

from assets.checks import EMBEDDED_CHECKS, MINED_CHECKS, reported
from assets.failing import reason_first
from assets.specs import made, spec
from assets.summary import shown, summary
from opus_pipelines.core.check_results import CheckResult
from opus_pipelines.core.progress import Ticker
from opus_pipelines.lake.layout import read_json
from opus_pipelines.reporting.wkg_graph import snapshot_pictures
from opus_pipelines.wkg import rebuild
from opus_pipelines.wkg.rebuild_records import StagedSnapshot
from resources.encoder import EncoderResource
from resources.lake import LakeRun, earlier
from resources.spark import SparkResource

GROUP = "wkg"
MINED = ("tasks", "task_implementations", "edges", "waits", "needs", "task_aliases", "variants", "contexts", "cases")
EMBEDDED = ("embeddings", "implementation_vectors", "procedures", "procedure_vectors")
logger = logging.getLogger("opus_pipelines.rebuild")


class Mine(dg.Config):
    """Options of mining."""

    reset_lambda: bool = False
    publish: bool = False


@dg.multi_asset(
    name="mine",
    specs=[spec(f"wkg/{name}", GROUP, ["history/implementations"], kinds=("spark", "parquet")) for name in MINED],
)
@reason_first
def mine(
    config: Mine, run: LakeRun, spark: SparkResource, encoder: EncoderResource
) -> Iterator[dg.MaterializeResult[None]]:
    """Resolves tasks, then aggregates the sources that changed and merges all aggregates."""
    context = earlier(run.state.context)
    resolved = rebuild.resolve(
        earlier(run.state.history),
        context,
        lambda: encoder.of_lake(context.work),
        config.reset_lambda,
        config.publish,
    )
    mined = rebuild.mine(resolved, context, spark.session)
    run.state.estimated = rebuild.estimate(mined, context, spark.graph_session)
    snapshot, counts = resolved.snapshot, run.state.estimated.counts
    for name in MINED:
        yield made(f"wkg/{name}", snapshot.snapshot_id, counts.get(f"wkg/{name}"), new=snapshot.is_new)


@dg.multi_asset(
    name="embed",
    specs=[
        spec("wkg/embeddings", GROUP, ["wkg/tasks"]),
        spec("wkg/implementation_vectors", GROUP, ["wkg/cases", "history/implementations"]),
        spec("wkg/procedures", GROUP, ["history/implementations"]),
        spec("wkg/procedure_vectors", GROUP, ["wkg/procedures", "wkg/tasks"]),
        spec(
            "wkg/index",
            GROUP,
            ["wkg/embeddings"],
            about="the FAISS index over the tasks, with its id map",
            kinds=("faiss",),
        ),
    ],
)
@reason_first
def embed(run: LakeRun, encoder: EncoderResource) -> Iterator[dg.MaterializeResult[None]]:
    """Embeds tasks and cases; only texts that are new reach the encoder."""
    context, graph = earlier(run.state.context), earlier(run.state.graph)
    progress = Ticker("embedded passages", logger.info)
    run.state.embedded = rebuild.embed(graph, context, lambda: encoder.of_lake(context.work), progress)
    snapshot, counts = graph.resolved.snapshot, run.state.embedded.counts
    for name in (*EMBEDDED, "index"):
        yield made(f"wkg/{name}", snapshot.snapshot_id, counts.get(f"wkg/{name}"), new=snapshot.is_new)


@dg.multi_asset_check(name="check_mined", specs=MINED_CHECKS)
@reason_first
def check_mined(run: LakeRun) -> Iterator[dg.AssetCheckResult]:
    """Checks the staged tables before anybody can see them."""
    run.state.graph = rebuild.check_graph(earlier(run.state.estimated), earlier(run.state.context))
    yield from _reported(run.state.graph.resolved.snapshot, run.state.graph.checks, MINED_CHECKS)


@dg.multi_asset_check(name="check_embedded", specs=EMBEDDED_CHECKS)
@reason_first
def check_embedded(run: LakeRun) -> Iterator[dg.AssetCheckResult]:
    """Checks the staged vectors and their index."""
    run.state.checked = rebuild.check(earlier(run.state.embedded), earlier(run.state.context))
    yield from _reported(run.state.checked.resolved.snapshot, run.state.checked.checks, EMBEDDED_CHECKS)


@dg.multi_asset(
    name="wkg__snapshot",
    specs=[
        spec(
            "wkg/snapshot",
            GROUP,
            [f"wkg/{name}" for name in (*MINED, *EMBEDDED, "index")],
            about="the pointer that makes a snapshot visible",
            kinds=("json",),
        ),
        spec("wkg/changes", GROUP, ["wkg/tasks", "wkg/edges", "wkg/needs", "wkg/cases", "history/implementations"]),
    ],
)
@reason_first
def snapshot(run: LakeRun) -> Iterator[dg.MaterializeResult[None]]:
    """Publishes: manifest, rename, and the one pointer that readers follow."""
    pictures: dict[str, str] = {}
    checked = earlier(run.state.checked)
    if checked.resolved.snapshot.is_current:
        logger.info(checked.resolved.snapshot.nothing_new)
    else:
        pictures = snapshot_pictures(checked.embedded.graph, run.typed.graph)
        rebuild.publish(checked, earlier(run.state.context), datetime.now(UTC))
    current = run.lake.current_snapshot() or ""
    manifest = run.lake.manifest(current)
    pointer = read_json(run.lake.root / "wkg" / "current.json") or {}
    facts = {name: manifest[name] for name in ("lambda", "counts", "timings", "engines") if name in manifest}
    published_at = pointer.get("published_at", "")
    yield made("wkg/changes", current, before=pointer.get("before") or "")
    yield made(
        "wkg/snapshot",
        current,
        snapshot=current,
        published_at=published_at,
        **facts,
        **summary(manifest),
        **shown(pictures),
    )


def _reported(
    snapshot: StagedSnapshot, checks: Iterable[CheckResult], declared: list[dg.AssetCheckSpec]
) -> Iterator[dg.AssetCheckResult]:
    """Yields a result for each declared check, then raises CheckFailed when a blocking check failed."""
    for failed in (check for check in checks if not check.passed and not check.blocking):
        logger.warning("%s (%s): %s", failed.name, failed.dataset, failed.detail)
    unseen = None if snapshot.is_new else "unchanged: checked when it was published"
    yield from reported(checks, declared, unseen)
    rebuild.require_passed(checks)
