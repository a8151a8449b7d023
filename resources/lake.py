"""The lake in a Dagster run: locked from the first step to the last, with the state that the steps share in memory.

Steps can share this object because one run is one process (in-process executor) and one resource instance.
"""

import contextlib
import logging
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeVar

import dagster as dg
from pydantic import PrivateAttr

from opus_pipelines.core.errors import LakeError
from opus_pipelines.core.settings import Settings, parse
from opus_pipelines.lake.layout import Lake
from opus_pipelines.lake.lock import is_alive
from opus_pipelines.wkg.rebuild_records import (
    CheckedGraph,
    CheckedSnapshot,
    EmbeddedGraph,
    EstimatedGraph,
    HistoryRead,
    RebuildContext,
)

T = TypeVar("T")
PROCESS = "opus/process"  # the tag of a run that names the process it runs in
logger = logging.getLogger("opus_pipelines.lake.layout")


class RunRefusedError(dg.DagsterError):
    """A run that may not begin.

    Dagster shows errors of its own kind as they are, and others below a line about resources.
    """


@dataclass
class RunState:
    """The context of a rebuild and the record of each finished stage, which the later steps of the run read."""

    context: RebuildContext | None = None
    history: HistoryRead | None = None
    estimated: EstimatedGraph | None = None
    graph: CheckedGraph | None = None
    embedded: EmbeddedGraph | None = None
    checked: CheckedSnapshot | None = None


class LakeRun(dg.ConfigurableResource[None]):
    """One run's right to write, its settings, and the state of its steps so far."""

    settings: dict[str, Any]
    _held: contextlib.ExitStack = PrivateAttr(default_factory=contextlib.ExitStack)
    _state: RunState = PrivateAttr(default_factory=RunState)

    @classmethod
    def of(cls, settings: Settings) -> "LakeRun":
        """Returns the resource that these settings describe."""
        return cls(settings=settings.model_dump(mode="json", by_alias=True))

    def setup_for_execution(self, context: dg.InitResourceContext) -> None:
        """Takes the lake's lock.

        The holder of the lock knows that every other run still marked as running is dead.
        """
        try:
            self._held.enter_context(self.lake.lock())
        except LakeError as error:
            raise RunRefusedError(str(error)) from error
        if context.instance is not None and context.run is not None:
            fail_dead_runs(context.instance, context.run.run_id)

    def teardown_after_execution(self, context: dg.InitResourceContext) -> None:
        """Releases the lock."""
        self._held.close()

    @cached_property
    def typed(self) -> Settings:
        """The settings, typed."""
        return parse(Settings, self.settings, "settings of the run")

    @cached_property
    def lake(self) -> Lake:
        """The lake for the results."""
        return Lake(self.typed.paths.lake)

    @property
    def state(self) -> RunState:
        """The records that the steps of this run share."""
        return self._state


def earlier(value: T | None) -> T:
    """Returns the record of an earlier step; raises dg.Failure when that step has not run in this process."""
    if value is None:
        raise dg.Failure(
            "an earlier step of this job has not run in this run: launch the whole job `rebuild`", allow_retries=False
        )
    return value


def fail_dead_runs(instance: dg.DagsterInstance, but: str) -> list[str]:
    """Marks every run that a dead process left unfinished as failed, logs it, and returns their ids.

    Only the holder of the lock may call it.
    """
    unfinished = [
        dg.DagsterRunStatus.NOT_STARTED,
        dg.DagsterRunStatus.STARTING,
        dg.DagsterRunStatus.STARTED,
        dg.DagsterRunStatus.CANCELING,
    ]
    runs = instance.get_runs(filters=dg.RunsFilter(statuses=unfinished))
    dead = [run for run in runs if run.run_id != but and not is_alive(run.tags.get(PROCESS, ""))]
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
