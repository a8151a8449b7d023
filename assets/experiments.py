"""Experiments that need no snapshot.

Programs are improved by reward on the planning set, and writers of enterprise flows compared on an invented enterprise.
"""

import logging
from collections.abc import Iterator

import dagster as dg
from pydantic import Field

from assets.specs import POOL, made, reason_first, spec
from opus_pipelines.core.schemas import EVALUATION_FLOWS
from opus_pipelines.flows.enterprise.examples import world_catalogue, world_examples
from opus_pipelines.flows.programs.drafts import program_of
from opus_pipelines.flows.programs.experiment import Plan, experiment, log_curves, publish_experiment, summaries
from opus_pipelines.flows.programs.planning_set import MANUAL
from opus_pipelines.lwm.training.tracking import Tracking
from opus_pipelines.quality.platform_flows import evaluation_of, flow_writers, written_flows
from opus_pipelines.quality.score_rows import publish
from resources.lake import LakeRun

_PROGRAMS = "programs"


class ImprovePrograms(dg.Config):
    """Options of the searches."""

    calls: int = Field(2_000, ge=2, description="programs that each search may score")
    seeds: int = Field(10, ge=1, description="seeds of each method")
    reward: str = Field("task_score", description="name of the reward")


@dg.multi_asset(
    name="programs",
    can_subset=True,
    pool=POOL,
    specs=[spec("programs/searches", _PROGRAMS), spec("programs/curves", _PROGRAMS, ["programs/searches"])],
)
@reason_first
def programs(
    context: dg.AssetExecutionContext, config: ImprovePrograms, run: LakeRun
) -> Iterator[dg.MaterializeResult[None]]:
    """Improves the manual program by every method, and publishes the rewards on held-out tasks."""
    plan = Plan(seeds=tuple(range(config.seeds)), calls=config.calls, reward=config.reward)
    done = experiment(program_of(MANUAL), plan)
    publish_experiment(run.lake, done)
    log_curves(Tracking(run.lake, run.typed.mlflow), plan, done)
    means = {one.method: one.mean for one in summaries(done.searches)}
    results = [
        made("programs/searches", done.id, len(done.searches), held_out=means),
        made("programs/curves", done.id, len(done.curves)),
    ]
    yield from (one for one in results if one.asset_key in context.selected_asset_keys)


_EVALUATIONS = "evaluations"
logger = logging.getLogger("opus_pipelines.flows.enterprise")


class CompareFlows(dg.Config):
    """Which writers are compared."""

    models: list[str] = Field(["composer", "catalogue", "nearest", "frequent"], description="writers that are compared")


@dg.multi_asset(name="compare_flows", specs=[spec("evaluations/flows", _EVALUATIONS)], pool=POOL)
@reason_first
def compare_flows(config: CompareFlows, run: LakeRun) -> Iterator[dg.MaterializeResult[None]]:
    """Scores each writer on every requirement of the invented enterprise; the same flows are written once."""
    catalogue = world_catalogue()
    writers = flow_writers(catalogue, world_examples(), config.models)
    flows = [one for writer in writers for one in written_flows(writer, world_examples(), catalogue)]
    evaluation = evaluation_of(flows)
    publish(run.lake, EVALUATION_FLOWS, evaluation)
    logger.info("flows of %d writers: evaluation %s", len(writers), evaluation.id)
    yield made("evaluations/flows", evaluation.id, len(flows))
