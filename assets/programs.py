"""Workflow programs improved by reward on the planning set."""

from collections.abc import Iterator

import dagster as dg
from pydantic import Field

from assets.failing import reason_first
from assets.specs import POOL, made, spec
from opus_pipelines.flows.programs.drafts import program_of
from opus_pipelines.flows.programs.experiment import Plan, experiment, log_curves, publish_experiment, summaries
from opus_pipelines.flows.programs.planning_set import MANUAL
from opus_pipelines.lwm.training.tracking import Tracking
from resources.lake import LakeRun

GROUP = "programs"


class ImprovePrograms(dg.Config):
    """Options of the searches."""

    calls: int = Field(2_000, ge=2, description="programs that each search may score")
    seeds: int = Field(10, ge=1, description="seeds of each method")
    reward: str = Field("task_score", description="name of the reward")


@dg.multi_asset(
    name="programs",
    can_subset=True,
    pool=POOL,
    specs=[spec("programs/searches", GROUP), spec("programs/curves", GROUP, ["programs/searches"])],
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
