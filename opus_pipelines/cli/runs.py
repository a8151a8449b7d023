"""Runs the Dagster jobs behind `opus rebuild` and `opus generate`, the same jobs that the schedule and the UI start.

Dagster's home lies inside the lake.
"""

import contextlib
import logging
import os
import time
import uuid
import warnings
from collections.abc import Callable, Iterable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from opus_pipelines.core.checkout import ROOT
from opus_pipelines.core.errors import LakeError, OpusError
from opus_pipelines.core.settings import Settings
from opus_pipelines.intakes.intake import ContractFolder
from opus_pipelines.lake import run_storage
from opus_pipelines.lake.damage import require_openable
from opus_pipelines.lake.layout import Lake, write_atomically
from opus_pipelines.lake.lock import this_process
from opus_pipelines.lake.object_store.folders import has_unpublished
from opus_pipelines.lake.version import record_inputs, recorded_inputs
from opus_pipelines.reporting.status import has_unfinished_runs, reason_of

if TYPE_CHECKING:
    import dagster as dg

QUIET = {"loggers": {"console": {"config": {"log_level": "CRITICAL"}}}}  # progress is shown by our own logger
logger = logging.getLogger("opus_pipelines.cli")


def prepare(settings: Settings) -> Path:
    """Writes dagster.yaml to `<lake>/.dagster`, points Dagster to that folder, and returns it.

    Raises LakeError where the record of runs cannot be reached.
    """
    lake = Lake(settings.paths.lake)
    home, file = lake.dagster_home, lake.dagster_home / "dagster.yaml"
    storage = settings.ops.dagster_storage
    text = run_storage.instance_file((ROOT / "dagster.yaml").read_text("utf-8"), storage)
    if file.is_file() and (before := run_storage.storage_of(lake)) != storage:
        logger.warning("the record of runs moves from %s to %s; earlier runs stay where they are", before, storage)
    if not file.is_file() or file.read_text("utf-8") != text:
        write_atomically(file, lambda path: path.write_text(text, "utf-8"))
    run_storage.require_reachable(lake)
    os.environ["DAGSTER_HOME"] = str(home)
    return home


def rebuild(
    settings: Settings, full: bool, reset_lambda: bool, publish: bool = False, allow_loss: bool = False
) -> None:
    """Runs the job `rebuild`.

    Raises OpusError with the reason where it fails, or with the files that were rejected as a whole.
    """
    mine_config = {"reset_lambda": reset_lambda, "publish": publish or full}
    read_config = {"full": full, "allow_loss": allow_loss}
    config = {"read_history": {"config": read_config}, "mine": {"config": mine_config}}
    problems = _run(settings, "rebuild", lambda _: [{}], {"ops": config})
    if (snapshot := Lake(settings.paths.lake).current_snapshot()) is not None:
        logger.info("snapshot %s is current", snapshot)
    _raise_problems(problems)


def record_unchanged(settings: Settings, snapshot: str) -> None:
    """Records in Dagster that history was read and still gives `snapshot`, which keeps the snapshot fresh there."""
    require_openable(Lake(settings.paths.lake))
    prepare(settings)
    import dagster as dg

    with dg.DagsterInstance.get() as instance:
        instance.report_runless_asset_event(
            dg.AssetMaterialization(
                ["wkg", "snapshot"],
                description="nothing new",
                metadata={"snapshot": snapshot},
                tags={"dagster/data_version": snapshot},
            )
        )


def generate(settings: Settings, wanted: list[ContractFolder], retry_failed: bool = False) -> None:
    """Runs the job `generate` for each wanted contract, one run each, so that a failed one fails no other.

    The runs share the encoder and the worker process. Raises OpusError naming what failed.
    """
    keys = sorted({folder.key for folder in wanted})
    config = {"generate_contracts": {"config": {"retry_failed": retry_failed}}}
    with Lake(settings.paths.lake).batch(), _kept_workers():
        problems = _run(settings, "generate", lambda instance: _partitions(instance, keys), {"ops": config})
    _raise_problems(problems)


def flows(settings: Settings, wanted: list[ContractFolder]) -> None:
    """Runs the job `flows` for each wanted contract, one run each, so that a failed one fails no other.

    Raises OpusError naming what failed.
    """
    keys = sorted({folder.key for folder in wanted})
    with Lake(settings.paths.lake).batch():
        problems = _run(settings, "flows", lambda instance: _partitions(instance, keys), {})
    _raise_problems(problems)


@contextlib.contextmanager
def _kept_workers() -> Iterator[None]:
    from resources.bulk import kept

    with kept():
        yield


def _run(
    settings: Settings, job: str, tags_of: Callable[[Any], Iterable[dict[str, str]]], config: dict[str, Any]
) -> list[str]:
    """Runs a job once for each set of tags. Returns a line for each thing that failed or was left out."""
    with Lake(settings.paths.lake).lock():
        pass  # fails before anything heavy is loaded where another process writes
    require_openable(Lake(settings.paths.lake))
    prepare(settings)
    start, begun = time.monotonic(), datetime.now(UTC)
    problems: list[str] = []
    with warnings.catch_warnings(), _told_where_the_record_is_lost():
        warnings.simplefilter("ignore")  # Dagster's beta and deprecation notices are not for the person at the terminal
        import dagster as dg

        from jobs.run_record import repeat_of
        from jobs.sensors import report_failed_since, report_run
        from opus_pipelines.definitions import build_defs
        from resources.event_log import kept_open
        from resources.lake import PROCESS

        resolved = build_defs(settings).resolve_job_def(job)
        with dg.DagsterInstance.get() as instance, kept_open(instance):
            for tags in ({PROCESS: this_process()} | _settings_tag() | more for more in tags_of(instance)):
                run_id = str(uuid.uuid4())
                result = resolved.execute_in_process(
                    instance=instance, raise_on_error=False, run_config=QUIET | config, tags=tags, run_id=run_id
                )
                report_run(instance, run_id, settings)
                repeat = repeat_of(job, tags, Lake(settings.paths.lake).root)
                where = f"its log: opus ui, run {run_id}; repeat: {repeat}"
                problems += lines_of_failed_checks(result) if result.success else [f"{failure_of(result)} ({where})"]
            report_failed_since(instance, begun, settings)
    logger.info("%s took %.1f s", job, time.monotonic() - start)
    return problems


def _settings_tag() -> dict[str, str]:
    """Returns the tag of a run with the file that --settings names, so that the command that repeats it names it."""
    from jobs.run_record import SETTINGS_FILE

    command = click.get_current_context(silent=True)
    file = command.obj.settings_file if command is not None and command.obj is not None else None
    return {SETTINGS_FILE: str(file.absolute())} if file else {}


@contextlib.contextmanager
def _told_where_the_record_is_lost() -> Iterator[None]:
    """Raises LakeError in place of the many errors of Dagster's that come of a lost connection to its record."""
    try:
        yield
    except Exception as error:
        if not run_storage.lost_in(error):
            raise
        raise LakeError(
            "the connection to Dagster's record in Postgres was lost during the run; what is published is whole, "
            "and the same command goes on from there once the server answers again"
        ) from error


@contextlib.contextmanager
def recorded_where_damage_stops_it(settings: Settings, job: str, key: str | None = None) -> Iterator[None]:
    """Records a run that the lake's damage does not let begin as a failed one, with its alerts.

    Raises LakeError with the command that repeats the run. `key`: of the contract that was named.
    """
    begun = datetime.now(UTC)
    try:
        yield
    except LakeError as error:
        lake = Lake(settings.paths.lake)
        if not (lake.root / ".empty").is_dir():  # there is no lake to write to
            raise
        from jobs.run_record import repeat_of
        from jobs.stages import PARTITION
        from opus_pipelines.lake.runs import RunRecord, report

        tags, ended = _settings_tag() | ({PARTITION: key} if key else {}), datetime.now(UTC)
        repeat = repeat_of(job, tags, lake.root)
        failed = RunRecord(
            run=str(uuid.uuid4()),
            job=job,
            status="failure",
            started_at=begun,
            ended_at=ended,
            duration_ms=(ended - begun).total_seconds() * 1000,
            contract_key=key,
            reason=str(error),
            evidence=str(lake.root),
            repeat=repeat,
        )
        report(settings, failed)
        raise LakeError(f"{error} (then repeat: {repeat})") from error


def clean_up_dead_runs(settings: Settings) -> None:
    """Marks runs whose process died as failed and cleans up after them, where no new run does it."""
    lake = Lake(settings.paths.lake)
    if not has_unfinished_runs(lake):
        return
    with warnings.catch_warnings(), contextlib.ExitStack() as held:
        try:
            held.enter_context(lake.lock())
        except LakeError:
            return  # a live run has the lake: it cleaned up when it began
        prepare(settings)
        warnings.simplefilter("ignore")  # as in _run
        import dagster as dg

        from resources.lake import fail_dead_runs

        with dg.DagsterInstance.get() as instance:
            fail_dead_runs(instance, "")


def publish_what_is_left(settings: Settings) -> None:
    """Brings to the object store what an earlier run of this machine made and could not bring there.

    Where another machine has published since, it is dropped. A command calls it before it looks what there is to do:
    what is up to date in the working folder is then up to date in the store. Raises LakeError where the store does not
    answer or another machine writes.
    """
    lake = Lake(settings.paths.lake)
    if has_unpublished(lake.root):
        with lake.lock():
            pass


def record_intakes_folder(settings: Settings) -> None:
    """Keeps in the lake which intakes folder was named, where no run does it because every result is up to date."""
    lake = Lake(settings.paths.lake)
    if recorded_inputs(lake.root).get("intakes") == settings.paths.intakes.absolute():
        return
    with contextlib.suppress(LakeError), lake.lock():  # a live run has the lake: it records the folder of its own
        record_inputs(lake.root, "intakes", settings.paths.intakes)


def _raise_problems(problems: list[str]) -> None:
    if problems:
        raise OpusError("\nopus: ".join(problems))


def _partitions(instance: "dg.DagsterInstance", keys: list[str]) -> Iterator[dict[str, str]]:
    """Yields the tags of each contract's run; keys that Dagster does not know yet are added."""
    from assets.specs import register
    from jobs.stages import PARTITION

    register(instance, keys)
    for key in keys:
        yield {PARTITION: key}


def lines_of_failed_checks(result: "dg.ExecuteInProcessResult") -> list[str]:
    """Returns the lines of the failed checks of a successful run, which say what it left out."""
    failed = [check for check in result.get_asset_check_evaluations() if not check.passed]
    # Checks without lines were reported while the run went on.
    lines_of_checks = [check.metadata["lines"] for check in failed if "lines" in check.metadata]
    return [str(line) for lines in lines_of_checks for line in lines.value]  # type: ignore[union-attr]


def failure_of(result: "dg.ExecuteInProcessResult") -> str:
    """Returns why a run failed, a line for each contract that failed.

    The message is that of the deepest error: an OpusError's message as it is, another's after its type.
    """
    errors = [getattr(event.event_specific_data, "error", None) for event in result.all_events if event.is_failure]
    chain = [(error.cls_name, error.message) for error in _causes(next((e for e in errors if e), None))]
    return "\nopus: ".join(reason_of(chain))


def _causes(error: Any) -> Iterator[Any]:
    while error is not None:
        yield error
        error = error.cause
