"""Evaluations that need no snapshot: writers of enterprise flows side by side on the invented enterprise."""

import logging
from collections.abc import Iterator

import dagster as dg
from pydantic import Field

from assets.failing import reason_first
from assets.specs import POOL, made, spec
from opus_pipelines.core.schemas import EVALUATION_FLOWS
from opus_pipelines.flows.enterprise.examples import world_catalogue, world_examples
from opus_pipelines.quality.platform_flows import evaluation_of, plain_writers, written_flows
from opus_pipelines.quality.score_rows import publish
from resources.lake import LakeRun

GROUP = "evaluations"
logger = logging.getLogger("opus_pipelines.flows.enterprise")


class CompareFlows(dg.Config):
    """Which writers are compared."""

    models: list[str] = Field(
        ["composer", "catalogue", "nearest", "frequent"], description="writers that need no language model"
    )


@dg.multi_asset(name="compare_flows", specs=[spec("evaluations/flows", GROUP)], pool=POOL)
@reason_first
def compare_flows(config: CompareFlows, run: LakeRun) -> Iterator[dg.MaterializeResult[None]]:
    """Scores each writer on every requirement of the invented enterprise; the same flows are written once."""
    catalogue = world_catalogue()
    writers = plain_writers(catalogue, world_examples(), config.models)
    flows = [one for writer in writers for one in written_flows(writer, world_examples(), catalogue)]
    evaluation = evaluation_of(flows)
    publish(run.lake, EVALUATION_FLOWS, evaluation)
    logger.info("flows of %d writers: evaluation %s", len(writers), evaluation.id)
    yield made("evaluations/flows", evaluation.id, len(flows))
