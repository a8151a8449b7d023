"""From Dagster's record of an ended run to its row in `ops/runs`."""

import os
import shlex
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import dagster as dg

from assets.checks import NOT_LOOKED_AT
from jobs.stages import PARTITION
from opus_pipelines.core.settings import Settings
from opus_pipelines.lake import run_storage
from opus_pipelines.lake.layout import Lake, unslug
from opus_pipelines.lake.object_store.folders import origin_of_root
from opus_pipelines.lake.runs import MOST_FINDING, RunRecord, Stage
from opus_pipelines.reporting.status import reason_of
from resources.usage import CPU, MEMORY

FAILED = [dg.DagsterRunStatus.FAILURE, dg.DagsterRunStatus.CANCELED]
JOBS = ("rebuild", "generate", "train", "flows")
COMMANDS = {
    "rebuild": "opus rebuild",
    "generate": "opus generate",
    "train": "opus train",
    "flows": "opus flow batch",
}
SETTINGS_FILE = "opus/settings"  # the tag with the file that a person named with --settings
OF_CONTRACTS = ("generate", "flows")  # the jobs whose runs are of one contract
_CHECK = dg.DagsterEventType.ASSET_CHECK_EVALUATION.value
_OF_TYPE = {
    dg.DagsterEventType.ASSET_MATERIALIZATION,
    dg.DagsterEventType.ASSET_CHECK_EVALUATION,
    dg.DagsterEventType.STEP_FAILURE,
    dg.DagsterEventType.RUN_FAILURE,
}
_COUNTED = {"rebuild": "history/implementations", "generate": "generation/intakes", "flows": "flows/flows"}
_ROWS = ("dagster/row_count", "dagster/partition_row_count")


def run_record(instance: dg.DagsterInstance, run_id: str, settings: Settings) -> RunRecord | None:
    """Returns the record of a run of one of our jobs that has ended, else None."""
    found = instance.get_run_record_by_id(run_id)
    if found is None or found.dagster_run.job_name not in JOBS or found.start_time is None or found.end_time is None:
        return None
    run, lake = found.dagster_run, Lake(settings.paths.lake)
    stages = _stages(instance, run_id)
    events = [entry.dagster_event for entry in instance.all_logs(run_id, of_type=_OF_TYPE) if entry.dagster_event]
    rows = _rows(events)
    found_checks = [event.asset_check_evaluation_data for event in events if event.event_type_value == _CHECK]
    checks = [check for check in found_checks if check.description != NOT_LOOKED_AT]
    failed = [check for check in checks if not check.passed]
    items = rows.get(_COUNTED.get(run.job_name, ""))
    seconds = sum(stage.duration_ms for stage in stages) / 1000
    has_failed = run.status != dg.DagsterRunStatus.SUCCESS
    return RunRecord(
        run=run_id,
        job=run.job_name,
        contract_key=run.tags.get(PARTITION),
        status="failure" if has_failed else "success",
        started_at=datetime.fromtimestamp(found.start_time, UTC),
        ended_at=datetime.fromtimestamp(found.end_time, UTC),
        duration_ms=(found.end_time - found.start_time) * 1000,
        stages=tuple(stages),
        snapshot=lake.current_snapshot(),
        items=items,
        items_per_second=items / seconds if items is not None and seconds > 0 else None,
        rejects=rows.get("history/rejects"),
        checks=len(checks),
        checks_failed=len(failed),
        failed_checks=tuple(_finding(check) for check in failed),
        drift_share=_drift(events),
        cpu_ms=_number(run.tags, CPU),
        peak_memory_mb=_number(run.tags, MEMORY),
        reason=_reason(events) if has_failed else None,
        evidence=run_storage.where(lake, run_id) if has_failed else None,
        repeat=repeat_of(run.job_name, run.tags, lake.root) if has_failed else None,
    )


def _stages(instance: dg.DagsterInstance, run_id: str) -> list[Stage]:
    steps = instance.get_run_step_stats(run_id)
    timed = [(one.start_time, one.end_time, one.step_key) for one in steps if one.start_time and one.end_time]
    return [Stage(step, (end - start) * 1000) for start, end, step in sorted(timed)]


def _rows(events: Iterable[Any]) -> dict[str, int]:
    """Returns the rows of each dataset that the run reports."""
    counted: dict[str, int] = {}
    for event in events:
        if event.is_step_materialization:
            made = event.step_materialization_data.materialization
            for name in _ROWS:
                if name in made.metadata:
                    counted[made.asset_key.to_user_string()] = int(made.metadata[name].value)
    return counted


def _drift(events: Iterable[Any]) -> float | None:
    """Returns the share of tasks that changed, as the snapshot's metadata has it; None where it is not a new one."""
    for event in events:
        if event.is_step_materialization:
            made = event.step_materialization_data.materialization
            drift = getattr(made.metadata.get("drift"), "value", None)
            if isinstance(drift, Mapping) and drift.get("task_share") is not None:
                return float(drift["task_share"])
    return None


def _finding(check: Any) -> str:
    said = " ".join((check.description or "").split())
    return f"{check.asset_key.to_user_string()} {check.check_name}: {said}"[:MOST_FINDING].rstrip(": ")


def _reason(events: Iterable[Any]) -> str:
    """Returns why the run failed, on one line: the message of the deepest error that is written for people."""
    for event in events:
        chain, error = [], getattr(event.event_specific_data, "error", None)
        while error is not None:
            chain.append((error.cls_name, error.message))
            error = error.cause
        if chain:
            return "; ".join(reason_of(chain))
    last = [event.message for event in events if event.is_failure and event.message]
    return " ".join(last[-1].split()) if last else "the process of the run ended before it did"


def repeat_of(job: str, tags: Mapping[str, str], lake: Path) -> str:
    """Returns the command that repeats a run of this job with these tags, in any folder: it names the lake, and the
    file of settings where a person named one.

    The lake knows the folders of history and intakes that it was made from.
    """
    origin = origin_of_root(lake)
    place = str(lake) if origin is None else origin.url
    file = tags.get(SETTINGS_FILE) or os.environ.get("OPUS_SETTINGS")  # `opus ui` hands its file on in the variable
    named = f" --settings {shlex.quote(file)}" if file else ""
    command = COMMANDS[job].replace("opus", f"opus --lake {shlex.quote(place)}{named}", 1)
    key = tags.get(PARTITION)
    if job not in OF_CONTRACTS or key is None:
        return command
    client, _, contract = key.partition("__")
    return f"{command} --client {shlex.quote(unslug(client))} --contract {shlex.quote(unslug(contract))}"


def _number(tags: Mapping[str, str], name: str) -> float | None:
    return float(tags[name]) if name in tags else None
