"""Flows from the utterances of contracts: the catalogue of activities, the flows, and their scores."""

import logging
from collections import Counter
from collections.abc import Iterator

import dagster as dg

from assets.checks import warning
from assets.failing import reason_first
from assets.partitions import CONTRACTS
from assets.specs import POOL, key, made, spec
from opus_pipelines.core.errors import InputError, OpusError
from opus_pipelines.core.ids import digest
from opus_pipelines.core.progress import Ticker
from opus_pipelines.flow_batches.batch import FlowBatch, contract_batch, newest
from opus_pipelines.flow_batches.inputs import METHOD
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
    specs=[spec(name, "flows", deps, partitions_def=CONTRACTS, code_version=METHOD) for name, deps in LINEAGE.items()],
    check_specs=[FAILED_FLOWS],
    backfill_policy=dg.BackfillPolicy.single_run(),
    pool=POOL,
)
@reason_first
def write_flows(
    context: dg.AssetExecutionContext, run: LakeRun, encoder: EncoderResource
) -> Iterator[dg.MaterializeResult[None] | dg.AssetCheckResult]:
    """Writes the flows of every contract of the run whose batch is not up to date; a failed one fails no other.

    The version of the data is that of the newest batches, whether this run wrote them or not.
    """
    input_folders.record(run.lake.root, "intakes", run.typed.paths.intakes)
    contracts = contracts_by_key(run.lake, run.typed.paths.intakes)
    batches: list[FlowBatch] = []
    versions: list[str] = []
    rows: Counter[str] = Counter()
    failures: list[str] = []
    for partition in context.partition_keys:
        contract, ticker = contracts.get(partition), Ticker(f"flows of {partition}", logger.info)
        try:
            if contract is None:
                raise InputError(f"no such contract in {run.typed.paths.intakes} any more")
            if contract.problem:
                raise InputError(contract.problem)
            batch = contract_batch(run.lake, contract, encoder.of_lake(run.lake), run.typed, ticker)
            batches += [batch] if batch else []
            if found := newest(run.lake, contract.client, contract.contract):
                versions.append(found[0])
                rows.update(found[1])
        except OpusError as error:
            failures.append(f"{partition}: {error}")
    if failures:
        raise dg.Failure("\n".join(failures), allow_retries=False)
    for name in LINEAGE:
        yield made(name, digest(versions), rows[name])
    yield warning(FAILED_FLOWS, [line for batch in batches for line in batch.failed])
