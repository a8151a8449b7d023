"""Workflow programs improved by reward: that of the planning set, and the published workflows of contracts."""

import logging
from collections.abc import Iterator

import dagster as dg
from pydantic import Field

from assets.failing import reason_first
from assets.partitions import CONTRACTS
from assets.specs import POOL, finished, made, spec
from opus_pipelines.core.errors import InputError, OpusError
from opus_pipelines.core.ids import digest
from opus_pipelines.flows.programs.contract_improvement import Budget, Improvement, improved_contract
from opus_pipelines.flows.programs.drafts import program_of
from opus_pipelines.flows.programs.experiment import Plan, experiment, log_curves, publish, summaries
from opus_pipelines.flows.programs.planning_set import MANUAL
from opus_pipelines.lwm.training.tracking import Tracking
from resources.bulk import contracts_by_key
from resources.lake import LakeRun

GROUP = "programs"
logger = logging.getLogger("opus_pipelines.flows.programs")


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
    publish(run.lake, done)
    log_curves(Tracking(run.lake, run.typed.mlflow), plan, done)
    means = {one.method: one.mean for one in summaries(done.searches)}
    results = [
        made("programs/searches", done.id, len(done.searches), held_out=means),
        made("programs/curves", done.id, len(done.curves)),
    ]
    yield from (one for one in results if one.asset_key in context.selected_asset_keys)


class ImproveContracts(dg.Config):
    """Options of the searches on the workflows of contracts."""

    scored: int = Field(200, ge=1, description="workflows that each search may score")
    seed: int = Field(0, ge=0, description="seed of the searches")


@dg.multi_asset(
    name="improve_contracts",
    specs=[spec("programs/improvements", GROUP, ["workflows/current"], partitions_def=CONTRACTS)],
    backfill_policy=dg.BackfillPolicy.single_run(),
    pool=POOL,
)
@reason_first
def improve_contracts(
    context: dg.AssetExecutionContext, config: ImproveContracts, run: LakeRun
) -> Iterator[dg.MaterializeResult[None] | dg.AssetMaterialization]:
    """Improves the published workflows of every contract of the run by Reward; a failed contract fails no other."""
    budget = Budget(config.scored, config.seed)
    contracts = contracts_by_key(run.lake, run.typed.paths.intakes)
    by_partition: dict[str, Improvement] = {}
    failures: list[str] = []
    for partition in context.partition_keys:
        contract = contracts.get(partition)
        try:
            if contract is None:
                raise InputError(f"no such contract in {run.typed.paths.intakes} any more")
            named = contract.client, contract.contract
            by_partition[partition] = improved_contract(run.lake, run.typed, named, budget, logger.info)
        except OpusError as error:
            failures.append(f"{partition}: {error}")
    if failures:
        for partition, one in by_partition.items():
            yield finished("programs/improvements", partition, one.id, len(one.rows))
        raise dg.Failure("\n".join(failures), allow_retries=False)
    done = list(by_partition.values())
    identity = done[0].id if len(done) == 1 else digest([one.id for one in done])
    found = [row for one in done for row in one.rows]
    earned = sum((row["reward_after_usd"] or 0.0) - (row["reward_before_usd"] or 0.0) for row in found)
    better, left_out = sum(row["is_better"] for row in found), [name for one in done for name in one.left_out]
    yield made("programs/improvements", identity, len(found), better=better, earned_usd=earned, left_out=len(left_out))
