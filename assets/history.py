"""Stage one: historical files become Workflow Implementations; sources are counted, unusable records put aside."""

import logging
from collections.abc import Iterator
from datetime import UTC, datetime

import dagster as dg

from assets.checks import DAMAGED, HELD_BACK, HISTORY_CHECKS, REJECTED_WHOLE, reported, warning
from assets.failing import reason_first
from assets.specs import made, spec
from opus_pipelines.core.ids import digest
from opus_pipelines.lake import input_folders
from opus_pipelines.lifecycle.verify import require_sound_for_rebuild
from opus_pipelines.reporting.views import write_views_sql
from opus_pipelines.wkg import rebuild
from opus_pipelines.wkg.loss import CasesLost
from resources.lake import LakeRun

GROUP = "history"
logger = logging.getLogger("opus_pipelines.rebuild")


class ReadHistory(dg.Config):
    """Options of reading."""

    full: bool = False
    allow_loss: bool = False


@dg.multi_asset(
    name="read_history",
    specs=[spec("history/implementations", GROUP), spec("history/rejects", GROUP), spec("history/sources", GROUP)],
    check_specs=[*HISTORY_CHECKS, REJECTED_WHOLE, HELD_BACK, DAMAGED],
)
@reason_first
def history(config: ReadHistory, run: LakeRun) -> Iterator[dg.MaterializeResult[None] | dg.AssetCheckResult]:
    """Reads the sources whose files changed."""
    run.lake.ensure_empty()
    write_views_sql(run.lake)
    input_folders.record(run.lake.root, "history", run.typed.paths.history)
    damaged = require_sound_for_rebuild(run.lake)
    run.state.context = rebuild.begin(run.typed, run.lake, config.full)
    try:
        run.state.history = rebuild.read(
            run.state.context, datetime.now(UTC), config.full, logger.info, config.allow_loss
        )
    except CasesLost as lost:
        yield from reported([lost.check], HISTORY_CHECKS)
        raise
    state = run.state.history.state
    version = digest([(s.source, s.content) for s in state.sources])
    rejected = sum(row["records_rejected"] or 0 for row in state.files)
    yield made(
        "history/implementations", version, sum(s.implementations for s in state.sources), sources=len(state.sources)
    )
    yield made("history/rejects", version, rejected)
    yield made("history/sources", version, len(state.files))
    yield from reported(run.state.history.checks, HISTORY_CHECKS)
    yield warning(REJECTED_WHOLE, [line for line in state.failed if line not in state.held])
    yield warning(HELD_BACK, state.held, dg.AssetCheckSeverity.ERROR)
    yield warning(DAMAGED, damaged, dg.AssetCheckSeverity.ERROR)
