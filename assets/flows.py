"""Flows from the utterances of contracts: the catalogue of activities, the flows, and their scores."""

import logging
from collections.abc import Iterator, Mapping

import dagster as dg

from assets.checks import check_key, declared, evaluated, warning
from assets.specs import CONTRACTS, POOL, finished, key, made, reason_first, spec
from opus_pipelines.core.errors import InputError, OpusError
from opus_pipelines.core.formatting import Ticker
from opus_pipelines.core.ids import digest
from opus_pipelines.core.versions import FLOW_METHOD
from opus_pipelines.lake.version import record_inputs
from resources.bulk import contracts_by_key
from resources.encoder import EncoderResource
from resources.lake import LakeRun

logger = logging.getLogger("opus_pipelines.flows.batches")

LINEAGE = {
    "flows/catalogue": ["wkg/snapshot"],
    "flows/flows": ["flows/catalogue"],
    "flows/scores": ["flows/flows"],
}
FAILED_FLOWS = declared(
    "no_utterance_failed",
    "flows/flows",
    "No utterance met an error of the program. What cannot be read or written has a reason instead.",
    partitions_def=CONTRACTS,
)


@dg.multi_asset(
    name="write_flows",
    specs=[
        spec(name, "flows", deps, partitions_def=CONTRACTS, code_version=FLOW_METHOD) for name, deps in LINEAGE.items()
    ],
    check_specs=[FAILED_FLOWS],
    can_subset=True,
    backfill_policy=dg.BackfillPolicy.single_run(),
    pool=POOL,
)
@reason_first
def write_flows(
    context: dg.AssetExecutionContext, run: LakeRun, encoder: EncoderResource
) -> Iterator[dg.MaterializeResult[None] | dg.AssetCheckResult | dg.AssetMaterialization]:
    """Writes the flows of every contract of the run whose batch is not up to date; a failed one fails no other.

    The version of the data is that of the newest batches, whether this run wrote them or not.
    """
    from opus_pipelines.flows.batches.batch import contract_batch, newest

    record_inputs(run.lake.root, "intakes", run.typed.paths.intakes)
    contracts = contracts_by_key(run.lake, run.typed.paths.intakes)
    wanted = context.selected_asset_check_keys
    done: dict[str, tuple[str, Mapping[str, int]]] = {}
    failures: list[str] = []
    for partition in context.partition_keys:
        contract, ticker = contracts.get(partition), Ticker(f"flows of {partition}", logger.info)
        try:
            if contract is None:
                raise InputError(f"no such contract in {run.typed.paths.intakes} any more")
            if contract.problem:
                raise InputError(contract.problem)
            batch = contract_batch(run.lake, contract, encoder.of_lake(run.lake), run.typed, ticker)
            warned = warning(FAILED_FLOWS, batch.failed if batch else [])
            yield from evaluated(context, partition, [warned] if check_key(warned) in wanted else [])
            done[partition] = newest(run.lake, contract.client, contract.contract) or ("", {})
        except OpusError as error:
            failures.append(f"{partition}: {error}")
    chosen = [name for name in LINEAGE if key(name) in context.selected_asset_keys]
    if failures:
        for partition, (version, rows) in done.items():
            yield from (finished(name, partition, version, rows.get(name, 0)) for name in chosen)
        raise dg.Failure("\n".join(failures), allow_retries=False)
    versions = [version for version, _ in done.values()]
    for name in chosen:
        yield made(name, digest(versions), sum(rows.get(name, 0) for _, rows in done.values()))
