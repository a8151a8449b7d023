"""The sensor that writes the flows of contracts whose utterances are new or changed.

It is off unless the settings or a person in the UI turn it on.
"""

import json

import dagster as dg

from jobs.flows import JOB
from jobs.watch_intakes import States, decided
from opus_pipelines.core.ids import digest
from opus_pipelines.core.schemas import FLOWS
from opus_pipelines.core.settings import Settings
from opus_pipelines.flows.batches.inputs import utterance_files
from opus_pipelines.generation.contracts import contracts_of
from opus_pipelines.intakes.intake import ContractFolder
from opus_pipelines.lake.layout import Lake


def flows_changed(settings: Settings) -> dg.SensorDefinition:
    """Returns the sensor: one request for each state of a contract's folder of flows that two evaluations found equal.

    So half-copied files wait.
    """

    @dg.sensor(
        name="flows_changed",
        job=JOB,
        minimum_interval_seconds=settings.schedule.watch_seconds,
        default_status=dg.DefaultSensorStatus.RUNNING
        if settings.schedule.watch_flows
        else dg.DefaultSensorStatus.STOPPED,
        description="Write the flows of contracts with new or changed utterances, once their files no longer change.",
    )
    def sensor(context: dg.SensorEvaluationContext) -> dg.SensorResult | dg.SkipReason:
        lake, intakes = Lake(settings.paths.lake), settings.paths.intakes
        if not intakes.is_dir():
            return dg.SkipReason(f"{intakes}: no such folder of intakes")
        contracts = [contract for contract in contracts_of(lake, intakes) if utterance_files(contract.flows)]
        before: States = json.loads(context.cursor) if context.cursor else {}
        after = {contract.key: _state(contract, before.get(contract.key), lake) for contract in contracts}
        return decided(context, contracts, before, after)

    return sensor


def _state(contract: ContractFolder, before: dict[str, str] | None, lake: Lake) -> dict[str, str]:
    """What was seen and what was asked for; a contract never seen counts as asked for where it has a batch."""
    files = sorted(path for path in contract.flows.rglob("*") if path.is_file())
    stated = [(str(path), (info := path.stat()).st_size, info.st_mtime_ns) for path in files]
    now = digest(stated, contract.settings.flow_backend or "", contract.problem or "")
    if before is not None:
        return {"seen": now, "asked": before["asked"]}
    batches = lake.folder(FLOWS, client_key=contract.client, contract_key=contract.contract)
    return {"seen": now, "asked": now if batches.is_dir() and any(batches.glob("batch_key=*")) else ""}
