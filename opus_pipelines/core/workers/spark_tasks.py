"""Tells how many tasks of a running stage of Spark's are finished."""

import threading
from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_POLL_SECONDS = 1.0


class TaskCounter:
    """Calls `progress` about once a second with the number of finished tasks of the running stage of `count` tasks."""

    def __init__(self, session: "SparkSession", count: int, progress: Callable[[int], None]) -> None:
        self._tracker = session.sparkContext.statusTracker()
        self._count, self._progress = count, progress
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)

    def __enter__(self) -> None:
        self._thread.start()

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()

    def _watch(self) -> None:
        while not self._over.wait(_POLL_SECONDS):
            stages = (self._tracker.getStageInfo(stage) for stage in self._tracker.getActiveStageIds())
            for stage in stages:
                if stage is not None and stage.numTasks == self._count:
                    self._progress(stage.numCompletedTasks)
