"""Stage two: implementations become the Work Knowledge Graph, staged, checked, and then published as one snapshot."""

import logging
from collections.abc import Iterator
from datetime import UTC, datetime

import dagster as dg

from assets.checks import EMBEDDED_CHECKS, MINED_CHECKS, reported
from assets.failing import reason_first
from assets.specs import made, spec
from assets.summary import shown, summary
from opus_pipelines.core.progress import Ticker
from opus_pipelines.core.schemas import Dataset
from opus_pipelines.lake.layout import read_json
from opus_pipelines.reporting.wkg_graph import snapshot_pictures
from opus_pipelines.wkg import build
from opus_pipelines.wkg.checks import EMBEDDED_DATASETS, MINED_DATASETS, check_snapshot
from resources.encoder import EncoderResource
from resources.lake import LakeRun
from resources.spark import SparkResource

GROUP = "wkg"
MINED = ("tasks", "task_implementations", "edges", "waits", "needs", "task_aliases", "variants", "cases")
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
def mine(config: Mine, run: LakeRun, spark: SparkResource, encoder: EncoderResource) -> Iterator[dg.MaterializeResult]:
    """Resolves tasks, then aggregates the sources that changed and merges all aggregates."""
    run.handed.build = build.prepare(
        run.work,
        run.typed,
        run.history,
        config.reset_lambda,
        config.publish,
        run.lake,
        lambda: encoder.of_lake(run.work),
    )
    counts = build.mine(run.build, spark.session, spark.graph_session) if run.build.is_new else {}
    for name in MINED:
        yield made(f"wkg/{name}", run.build.snapshot_id, counts.get(f"wkg/{name}"), new=run.build.is_new)


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
def embed(run: LakeRun, encoder: EncoderResource) -> Iterator[dg.MaterializeResult]:
    """Embeds tasks and cases; only texts that are new reach the encoder."""
    counts = (
        build.embed(run.build, encoder.of_lake(run.work), Ticker("embedded passages", logger.info))
        if run.build.is_new
        else {}
    )
    for name in (*EMBEDDED, "index"):
        yield made(f"wkg/{name}", run.build.snapshot_id, counts.get(f"wkg/{name}"), new=run.build.is_new)


@dg.multi_asset_check(name="check_mined", specs=MINED_CHECKS)
@reason_first
def check_mined(run: LakeRun) -> Iterator[dg.AssetCheckResult]:
    """Checks the staged tables, before anything of them can be seen."""
    yield from _checked(run, MINED_DATASETS, MINED_CHECKS)


@dg.multi_asset_check(name="check_embedded", specs=EMBEDDED_CHECKS)
@reason_first
def check_embedded(run: LakeRun) -> Iterator[dg.AssetCheckResult]:
    """Checks the staged vectors and their index."""
    yield from _checked(run, EMBEDDED_DATASETS, EMBEDDED_CHECKS)


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
def snapshot(run: LakeRun) -> Iterator[dg.MaterializeResult]:
    """Publishes: manifest, rename, and the one pointer that readers follow."""
    pictures: dict[str, str] = {}
    if run.build.is_current:
        logger.info(run.build.nothing_new)
    else:
        pictures = snapshot_pictures(run.build)
        build.publish(run.build, list(run.handed.checks), datetime.now(UTC))
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


def _checked(
    run: LakeRun, datasets: tuple[Dataset, ...], declared: list[dg.AssetCheckSpec]
) -> Iterator[dg.AssetCheckResult]:
    found = check_snapshot(run.build.folder, datasets) if run.build.is_new else []
    found += build.check(run.build, found, datasets)
    run.handed.checks += tuple(found)
    for failed in (result for result in found if not result.passed and not result.blocking):
        logger.warning("%s (%s): %s", failed.name, failed.dataset, failed.detail)
    yield from reported(
        found, declared, unseen=None if run.build.is_new else "unchanged: checked when it was published"
    )
    build.require_passed(found)
