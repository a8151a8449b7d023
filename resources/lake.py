"""The lake in a Dagster run: locked from the first step to the last.

Steps hand nothing on in memory: each finds in the lake what earlier ones left there. So they may run in one process or
in a process each.
"""

import contextlib
import logging
import time
from functools import cached_property

import dagster as dg
from pydantic import Field, PrivateAttr

from opus_pipelines.core.errors import LakeError, LakeHeld
from opus_pipelines.lake.layout import Lake
from opus_pipelines.lake.lock import is_alive, this_process
from resources import usage
from resources.settings import WithSettings

PROCESS = "opus/process"  # the tag of a run that names the process it runs in
WAIT_SECONDS = 6 * 3600.0  # the longest that a run of the daemon or the UI waits for another process's run
_LOOK_SECONDS = 2.0
_STARTING_SECONDS = 300.0  # as in dagster.yaml: so long may the process of a run take to start
logger = logging.getLogger("opus_pipelines.lake.layout")


class RunRefusedError(dg.DagsterError):
    """A run that may not begin.

    Dagster shows errors of its own kind as they are, and others below a line about resources.
    """


class NotPublishedError(dg.DagsterError):
    """A run whose results could not be brought to the object store.

    An error of Dagster's own kind fails the run. Any other that is raised when a resource is released is only logged,
    and the run counts as a success.
    """


class LakeRun(WithSettings):
    """One run's right to write, and its settings.

    Where another run holds the lake, this one waits for it up to `wait_seconds`. The processes of one run share the
    right: the one that coordinates them takes the lock, and the others find it held by their own run.
    """

    wait_seconds: float = Field(0.0, description="how long to wait for another run that writes to the lake")
    _cpu_before: float = PrivateAttr(default=0.0)
    _held: contextlib.ExitStack = PrivateAttr(default_factory=contextlib.ExitStack)

    def setup_for_execution(self, context: dg.InitResourceContext) -> None:
        """Takes the lake's lock.

        The holder of the lock knows that every other run still marked as running is dead or waits.
        """
        run, instance = context.run, context.instance
        self._cpu_before = usage.cpu_ms()
        if run is not None and instance is not None and PROCESS not in run.tags:
            instance.add_run_tags(run.run_id, {PROCESS: this_process()})
        try:
            self._take(run.run_id if run is not None else "")
        except LakeError as error:
            raise RunRefusedError(str(error)) from error
        if instance is not None and run is not None:
            fail_dead_runs(instance, run.run_id)

    def teardown_after_execution(self, context: dg.InitResourceContext) -> None:
        """Releases the lock, and tells Dagster what the run used. Raises NotPublishedError, which fails the run."""
        try:
            self._held.close()
        except LakeError as error:
            raise NotPublishedError(str(error)) from LakeError(str(error))  # the type whose message stands for itself
        if context.run is not None and context.instance is not None:
            usage.tell(context.instance, context.run.run_id, self._cpu_before)

    @cached_property
    def lake(self) -> Lake:
        """The lake for the results."""
        return Lake(self.typed.paths.lake)

    def _take(self, run: str) -> None:
        end, has_said = time.monotonic() + self.wait_seconds, False
        while True:
            try:
                self._held.enter_context(self.lake.lock(run))
            except LakeHeld as held:
                if time.monotonic() >= end:
                    raise
                if not has_said:
                    logger.info("%s", str(held).replace("wait for it to end", "this run waits until it ends"))
                has_said = True
                time.sleep(_LOOK_SECONDS)
            else:
                return


def fail_dead_runs(instance: dg.DagsterInstance, but: str) -> list[str]:
    """Marks every run that a dead process left unfinished as failed, logs it, and returns their ids.

    Only the holder of the lock may call it. A run that waits for the lock lives and is left alone; so is one whose
    process is only just starting.
    """
    unfinished = [
        dg.DagsterRunStatus.NOT_STARTED,
        dg.DagsterRunStatus.STARTING,
        dg.DagsterRunStatus.STARTED,
        dg.DagsterRunStatus.CANCELING,
    ]
    records = instance.get_run_records(filters=dg.RunsFilter(statuses=unfinished))
    dead = [record.dagster_run for record in records if record.dagster_run.run_id != but and _is_dead(record)]
    for run in dead:
        instance.report_run_failed(
            run, message="Its process ended before it did; what it had not published is not visible."
        )
        logger.warning(
            "run %s (%s) had died before its end: it is marked as failed, and nothing unfinished of it is visible",
            run.run_id.partition("-")[0],
            run.job_name,
        )
    return [run.run_id for run in dead]


def _is_dead(record: "dg.RunRecord") -> bool:
    run = record.dagster_run
    if PROCESS in run.tags:
        return not is_alive(run.tags[PROCESS])
    is_starting = run.status in (dg.DagsterRunStatus.NOT_STARTED, dg.DagsterRunStatus.STARTING)
    return not is_starting or time.time() - record.create_timestamp.timestamp() > _STARTING_SECONDS
