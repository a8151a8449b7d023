"""Stage one: historical files become Workflow Implementations; sources are counted, unusable records put aside."""

import logging
from collections.abc import Iterator
from datetime import UTC, datetime

import dagster as dg

from assets.checks import DAMAGED, HELD_BACK, HISTORY_CHECKS, REJECTED_WHOLE, check_key, selected, warning
from assets.inputs import HISTORY
from assets.metadata import sources_table
from assets.specs import POOL, made, reason_first, spec
from opus_pipelines.core.ids import digest
from opus_pipelines.core.versions import versions_of
from opus_pipelines.lake.version import record_inputs
from opus_pipelines.reporting.views import write_views_sql
from opus_pipelines.wkg.checks import CasesLost
from opus_pipelines.wkg.upkeep.verify import require_sound_for_rebuild
from resources.lake import LakeRun
from resources.spark import SparkResource

GROUP = "history"
logger = logging.getLogger("opus_pipelines.rebuild")


class ReadHistory(dg.Config):
    """Options of reading."""

    full: bool = False
    allow_loss: bool = False


@dg.multi_asset(
    name="read_history",
    specs=[
        spec(f"history/{name}", GROUP, [HISTORY], code_version=versions_of("history"))
        for name in ("implementations", "rejects", "sources")
    ],
    check_specs=[*HISTORY_CHECKS, REJECTED_WHOLE, HELD_BACK, DAMAGED],
    can_subset=True,
    pool=POOL,
)
@reason_first
def history(
    context: dg.AssetExecutionContext, config: ReadHistory, run: LakeRun, spark: SparkResource
) -> Iterator[dg.MaterializeResult[None] | dg.AssetCheckResult]:
    """Reads the sources whose files changed."""
    from opus_pipelines.wkg.rebuild import steps

    run.lake.ensure_empty()
    write_views_sql(run.lake)
    record_inputs(run.lake.root, "history", run.typed.paths.history)
    damaged = require_sound_for_rebuild(run.lake)
    options = steps.ReadOptions(config.full, config.allow_loss, spark.session)
    try:
        state, checks = steps.read(run.typed, run.lake, datetime.now(UTC), options, logger.info)
    except CasesLost as lost:
        yield from selected(context.selected_asset_check_keys, [lost.check], HISTORY_CHECKS)
        raise
    version = digest([(s.source, s.content) for s in state.sources])
    cases = sum(s.implementations for s in state.sources)
    rejected = sum(row["records_rejected"] or 0 for row in state.files)
    table = sources_table(state.files)
    results = [
        made("history/implementations", version, cases, sources=len(state.sources)),
        made("history/rejects", version, rejected),
        made("history/sources", version, len(state.files), **({"sources": table} if table is not None else {})),
    ]
    yield from (one for one in results if one.asset_key in context.selected_asset_keys)
    yield from selected(context.selected_asset_check_keys, checks, HISTORY_CHECKS)
    for warned in (
        warning(REJECTED_WHOLE, [line for line in state.failed if line not in state.held]),
        warning(HELD_BACK, state.held, dg.AssetCheckSeverity.ERROR),
        warning(DAMAGED, damaged, dg.AssetCheckSeverity.ERROR),
    ):
        if check_key(warned) in context.selected_asset_check_keys:
            yield warned
    steps.require_passed(checks)
