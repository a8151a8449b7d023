"""Flows from the utterances of contracts: the catalogue of activities, the flows, and their scores."""

import logging
from collections.abc import Iterator

import dagster as dg

from assets.checks import warning
from assets.failing import reason_first
from assets.partitions import CONTRACTS
from assets.specs import POOL, key, made, spec
from opus_pipelines.core.errors import InputError, OpusError
from opus_pipelines.core.ids import digest
from opus_pipelines.core.progress import Ticker
from opus_pipelines.flow_batches.batch import FlowBatch, contract_batch
from opus_pipelines.lake import input_folders
from resources.bulk import contracts_by_key
from resources.encoder import EncoderResource
from resources.lake import LakeRun

logger = logging.getLogger("opus_pipelines.flow_batches")

LINEAGE = {
    "flows/catalogue": ["wkg/snapshot"],
    "flows/flows": ["flows/catalogue"],
    "flows/scores": ["flows/flows"],
}
FAILED_FLOWS = dg.AssetCheckSpec(
    "no_utterance_failed",
    asset=key("flows/flows"),
    description="No utterance met an error of the program. What cannot be read or written has a reason instead.",
)


@dg.multi_asset(
    name="write_flows",
    specs=[spec(name, "flows", deps, partitions_def=CONTRACTS) for name, deps in LINEAGE.items()],
    check_specs=[FAILED_FLOWS],
    backfill_policy=dg.BackfillPolicy.single_run(),
    pool=POOL,
)
@reason_first
def write_flows(
    context: dg.AssetExecutionContext, run: LakeRun, encoder: EncoderResource
) -> Iterator[dg.MaterializeResult[None] | dg.AssetCheckResult]:
    """Writes the flows of every contract of the run whose batch is not up to date; a failed one fails no other."""
    input_folders.record(run.lake.root, "intakes", run.typed.paths.intakes)
    contracts = contracts_by_key(run.lake, run.typed.paths.intakes)
    batches: list[FlowBatch] = []
    failures: list[str] = []
    for partition in context.partition_keys:
        contract, ticker = contracts.get(partition), Ticker(f"flows of {partition}", logger.info)
        try:
            if contract is None:
                raise InputError(f"no such contract in {run.typed.paths.intakes} any more")
            if contract.problem:
                raise InputError(contract.problem)
            batch = contract_batch(run.lake, contract, encoder.of_lake(run.lake), run.typed.retention, ticker)
            batches += [batch] if batch else []
        except OpusError as error:
            failures.append(f"{partition}: {error}")
    if failures:
        raise dg.Failure("\n".join(failures), allow_retries=False)
    version = digest([batch.id for batch in batches])
    for name in LINEAGE:
        yield made(name, version, sum(len(batch.rows[name]) for batch in batches))
    yield warning(FAILED_FLOWS, [line for batch in batches for line in batch.failed])
