"""The sensor that generates contracts whose folders are new or changed.

It is off unless the settings or a person in the UI turn it on.
"""

import json
from collections.abc import Sequence

import dagster as dg

from assets.partitions import CONTRACT
from jobs.generate import JOB, requests
from opus_pipelines.core.ids import digest
from opus_pipelines.core.settings import Settings
from opus_pipelines.generation.contracts import contracts_of
from opus_pipelines.intakes.intake import ContractFolder
from opus_pipelines.lake.layout import Lake

States = dict[str, dict[str, str]]  # of each contract, the last state that was seen and the last one requested


def intakes_changed(settings: Settings) -> dg.SensorDefinition:
    """Returns the sensor: one request for each state of a contract's folder that two evaluations found equal.

    So half-copied folders wait.
    """

    @dg.sensor(
        name="intakes_changed",
        job=JOB,
        minimum_interval_seconds=settings.schedule.watch_seconds,
        default_status=dg.DefaultSensorStatus.RUNNING
        if settings.schedule.watch_intakes
        else dg.DefaultSensorStatus.STOPPED,
        description="Generate the contracts whose folders are new or changed, once their files no longer change.",
    )
    def sensor(context: dg.SensorEvaluationContext) -> dg.SensorResult | dg.SkipReason:
        return _look(settings, context)

    return sensor


def _look(settings: Settings, context: dg.SensorEvaluationContext) -> dg.SensorResult | dg.SkipReason:
    """Decides which contracts to generate; the cursor holds for each the last state seen and the last one requested.

    A contract that was never seen counts as requested where it has a result, which `opus generate` made. A contract
    that cannot be used is warned about, and left out until it changes.
    """
    lake, intakes = Lake(settings.paths.lake), settings.paths.intakes
    if not intakes.is_dir():
        return dg.SkipReason(f"{intakes}: no such folder of intakes")
    if lake.current_snapshot() is None:
        return dg.SkipReason(f"{lake.root} has no snapshot yet; `opus rebuild` makes one")
    contracts = contracts_of(lake, intakes)
    before: States = json.loads(context.cursor) if context.cursor else {}
    after = {c.key: _state(c, before.get(c.key), lake) for c in contracts if c.settings.regenerate != "never"}
    return decided(context, contracts, before, after)


def decided(
    context: dg.SensorEvaluationContext, contracts: Sequence[ContractFolder], before: States, after: States
) -> dg.SensorResult:
    """Requests a run for each contract whose state was seen twice and not asked for yet, and remembers it."""
    wanted = [
        key
        for key, now in after.items()
        if now["seen"] == before.get(key, {}).get("seen") and now["seen"] != now["asked"]
    ]
    for key in wanted:
        after[key]["asked"] = after[key]["seen"]
    for contract in contracts:
        if contract.problem and contract.key in wanted:
            wanted.remove(contract.key)
            context.log.warning(contract.problem)
    if not wanted:
        changing = [key for key, now in after.items() if now["seen"] != now["asked"]]
        return dg.SensorResult(
            skip_reason="files are still changing" if changing else "nothing changed", cursor=json.dumps(after)
        )
    runs, new = requests(context.instance.get_dynamic_partitions(CONTRACT), wanted)
    return dg.SensorResult(run_requests=runs, dynamic_partitions_requests=new, cursor=json.dumps(after))


def _state(contract: ContractFolder, before: dict[str, str] | None, lake: Lake) -> dict[str, str]:
    # The problem is part of the state, because a change of another folder may solve it.
    now = digest(contract.fingerprint(), contract.problem or "")
    if before is not None:
        return {"seen": now, "asked": before["asked"]}
    return {"seen": now, "asked": now if lake.pointer_path(contract.client, contract.contract).is_file() else ""}
