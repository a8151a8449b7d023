"""The sensors: what starts a run when files changed, and what records each run that ended and sends its alerts.

Those that watch files are off unless the settings or a person in the UI turn them on. Runs of `opus` itself are
recorded by it.
"""

import json
from collections.abc import Callable, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any, TypeAlias

import dagster as dg

from assets.metadata import page_link
from assets.specs import CONTRACT
from jobs.run_record import FAILED, run_record
from jobs.stages import FLOWS_JOB, GENERATE_JOB, REBUILD_JOB, requests
from opus_pipelines.core.ids import digest
from opus_pipelines.core.schemas import FLOWS
from opus_pipelines.core.settings import Schedule, Settings
from opus_pipelines.generation.contracts import contracts_of
from opus_pipelines.history.ingestion.plan import fingerprint
from opus_pipelines.intakes.intake import ContractFolder
from opus_pipelines.lake import runs
from opus_pipelines.lake.layout import Lake
from opus_pipelines.lake.runs import RunRecord, is_recorded

_RUNS = dg.AssetKey(["ops", "runs"])
_RUN_SECONDS = 30  # between two looks at runs that ended
States = dict[str, dict[str, str]]  # of each contract, the last state that was seen and the last one requested
Decision: TypeAlias = dg.SensorResult | dg.SkipReason


def history_changed(settings: Settings) -> dg.SensorDefinition:
    """Returns the sensor: one rebuild for each state of the folder that two successive evaluations found equal.

    So half-copied files wait.
    """
    about = "Start a rebuild when the files of the history folder changed and no longer change."
    watching = _watching("history_changed", REBUILD_JOB, settings.schedule, settings.schedule.watch_history, about)
    return watching(lambda context: _look_at_history(settings.paths.history, context.cursor))


def intakes_changed(settings: Settings) -> dg.SensorDefinition:
    """Returns the sensor: one request for each state of a contract's folder that two evaluations found equal.

    So half-copied folders wait.
    """
    about = "Generate the contracts whose folders are new or changed, once their files no longer change."
    watching = _watching("intakes_changed", GENERATE_JOB, settings.schedule, settings.schedule.watch_intakes, about)
    return watching(lambda context: _look_at_intakes(settings, context))


def flows_changed(settings: Settings) -> dg.SensorDefinition:
    """Returns the sensor: one request for each state of a contract's folder of flows that two evaluations found equal.

    So half-copied files wait.
    """
    about = "Write the flows of contracts with new or changed utterances, once their files no longer change."
    watching = _watching("flows_changed", FLOWS_JOB, settings.schedule, settings.schedule.watch_flows, about)
    return watching(lambda context: _look_at_flows(settings, context))


def _watching(
    name: str, job: Any, schedule: Schedule, is_on: bool, about: str
) -> Callable[[Callable[[dg.SensorEvaluationContext], Decision]], dg.SensorDefinition]:
    """Returns what makes a sensor of the function that decides at each look."""
    status = dg.DefaultSensorStatus.RUNNING if is_on else dg.DefaultSensorStatus.STOPPED
    return dg.sensor(
        name=name,
        job=job,
        minimum_interval_seconds=schedule.watch_seconds,
        default_status=status,
        description=about,
    )


def _look_at_history(history: Path, cursor: str | None) -> Decision:
    """Decides on a rebuild; `cursor` holds the last state seen and the last state for which a rebuild was requested.

    The first evaluation only stores the state. The request has no run key: Dagster would remember it for ever, and a
    folder that returned to an earlier state would never be read.
    """
    if not history.is_dir():
        return dg.SkipReason(f"{history}: no such history folder")
    now = fingerprint(history)
    before = json.loads(cursor) if cursor else {"seen": now, "asked": now}
    settled = now == before["seen"]
    wanted = settled and now != before["asked"]
    after = json.dumps({"seen": now, "asked": now if wanted else before["asked"]})
    reason = None if wanted else dg.SkipReason("nothing changed" if settled else "files are still changing")
    return dg.SensorResult(run_requests=[dg.RunRequest()] if wanted else [], skip_reason=reason, cursor=after)


def _look_at_intakes(settings: Settings, context: dg.SensorEvaluationContext) -> Decision:
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
    after = {
        c.key: _state_of_intakes(c, before.get(c.key), lake) for c in contracts if c.settings.regenerate != "never"
    }
    return _decided(context, contracts, before, after)


def _decided(
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


def _state_of_intakes(contract: ContractFolder, before: dict[str, str] | None, lake: Lake) -> dict[str, str]:
    # The problem is part of the state, because a change of another folder may solve it.
    now = digest(contract.fingerprint(), contract.problem or "")
    if before is not None:
        return {"seen": now, "asked": before["asked"]}
    return {"seen": now, "asked": now if lake.pointer_path(contract.client, contract.contract).is_file() else ""}


def _look_at_flows(settings: Settings, context: dg.SensorEvaluationContext) -> Decision:
    from opus_pipelines.flows.batches.inputs import utterance_files

    lake, intakes = Lake(settings.paths.lake), settings.paths.intakes
    if not intakes.is_dir():
        return dg.SkipReason(f"{intakes}: no such folder of intakes")
    contracts = [contract for contract in contracts_of(lake, intakes) if utterance_files(contract.flows)]
    before: States = json.loads(context.cursor) if context.cursor else {}
    after = {contract.key: _state_of_flows(contract, before.get(contract.key), lake) for contract in contracts}
    return _decided(context, contracts, before, after)


def _state_of_flows(contract: ContractFolder, before: dict[str, str] | None, lake: Lake) -> dict[str, str]:
    """What was seen and what was asked for; a contract never seen counts as asked for where it has a batch."""
    files = sorted(path for path in contract.flows.rglob("*") if path.is_file())
    stated = [(str(path), (info := path.stat()).st_size, info.st_mtime_ns) for path in files]
    now = digest(stated, contract.settings.flow_backend or "", contract.problem or "")
    if before is not None:
        return {"seen": now, "asked": before["asked"]}
    batches = lake.folder(FLOWS, client_key=contract.client, contract_key=contract.contract)
    return {"seen": now, "asked": now if batches.is_dir() and any(batches.glob("batch_key=*")) else ""}


def recorded(settings: Settings) -> list[dg.SensorDefinition]:
    """Returns the sensors for runs that succeeded, failed or were stopped."""
    statuses = {
        "run_succeeded": dg.DagsterRunStatus.SUCCESS,
        "run_failed": dg.DagsterRunStatus.FAILURE,
        "run_stopped": dg.DagsterRunStatus.CANCELED,
    }
    return [_sensor(name, status, settings) for name, status in statuses.items()]


def _sensor(name: str, status: dg.DagsterRunStatus, settings: Settings) -> dg.SensorDefinition:
    @dg.run_status_sensor(
        run_status=status,
        name=name,
        minimum_interval_seconds=_RUN_SECONDS,
        default_status=dg.DefaultSensorStatus.RUNNING,
        description="Record the run in ops/runs, write metrics, and send alerts where the settings ask for them.",
    )
    def sensor(context: dg.RunStatusSensorContext) -> None:
        report_run(context.instance, context.dagster_run.run_id, settings)

    return sensor


def report_run(instance: dg.DagsterInstance, run_id: str, settings: Settings) -> None:
    """Reports one ended run of our jobs, once."""
    if is_recorded(Lake(settings.paths.lake), run_id):
        return
    record = run_record(instance, run_id, settings)
    if record is not None and runs.report(settings, record) and record.job != "generate":
        instance.report_runless_asset_event(_event(record, settings.ops.pages_url))


def report_failed_since(instance: dg.DagsterInstance, since: datetime, settings: Settings) -> None:
    """Reports the runs that were marked as failed since then because their process had died."""
    filters = dg.RunsFilter(statuses=FAILED, updated_after=since)
    for record in instance.get_run_records(filters=filters):
        report_run(instance, record.dagster_run.run_id, settings)


def _event(record: RunRecord, pages_url: str) -> dg.AssetMaterialization:
    """The figures of a night, which Dagster draws as series over time."""
    figures = {
        "seconds": record.duration_ms / 1000,
        "items": record.items,
        "items_per_second": record.items_per_second,
        "rejects": record.rejects,
        "checks_failed": record.checks_failed,
        "drift_share": record.drift_share,
        "cpu_seconds": None if record.cpu_ms is None else record.cpu_ms / 1000,
        "peak_memory_mb": record.peak_memory_mb,
        "cost_usd": record.cost_usd,
        **{f"seconds_of_{stage.stage}": stage.duration_ms / 1000 for stage in record.stages},
    }
    told: dict[str, Any] = {"job": record.job, "status": record.status, "run": record.run}
    if pages_url:
        told["page"] = page_link(pages_url, "nights.html")
    told |= {name: value for name in ("reason", "evidence", "repeat") if (value := getattr(record, name)) is not None}
    return dg.AssetMaterialization(
        _RUNS, metadata=told | {name: value for name, value in figures.items() if value is not None}
    )
