"""Puts back a source whose new version makes a stage fail after it was read, so that the rest is published.

Which source it is shows by trying: the changed sources are put back to their last good version, half of them at a time.
A stage that fails without any changed source, or with each of them alone, fails as before: then no source is the cause.
"""

import logging
from collections.abc import Callable, Collection
from datetime import UTC, datetime
from typing import Generic, TypeVar

from opus_pipelines.core.errors import OpusError
from opus_pipelines.core.settings import Settings
from opus_pipelines.history.ingestion.source_versions import put_back, try_again
from opus_pipelines.lake.layout import Lake
from opus_pipelines.wkg.rebuild import steps
from opus_pipelines.wkg.rebuild.records import Staged

_T = TypeVar("_T")
_OF_THE_MACHINE = ("py4j", "pyspark")  # a lost cluster is no source's fault
logger = logging.getLogger(__name__)


def without_failing_sources(
    settings: Settings, home: Lake, stage: str, first: Callable[[], _T], again: Callable[[], _T]
) -> tuple[_T, list[str]]:
    """Runs a stage, and returns what it gives with a line for each source that had to be put back.

    `again` runs it once more from the mining on, after other versions of sources were taken. Raises the first error
    where no changed source explains it. The caller holds the lock.
    """
    try:
        return first(), []
    except Exception as error:
        if not _may_be_a_sources(error):
            raise
        changed = _changed(home)
        if not changed:
            raise
        reason = f"{type(error).__name__} while {stage}"
        logger.warning("%s failed (%s: %s); the changed sources are tried apart", stage, type(error).__name__, error)
        trial = _Trial(settings, home, again, changed, reason)
        failing = sorted(trial.failing(sorted(changed), frozenset()))
        is_every_one = len(failing) == len(changed) and (len(changed) > 1 or home.current_snapshot() is None)
        if not failing or is_every_one or (made := trial.run(failing)) is None:
            try_again(home, changed)
            trial.read()
            raise
        lines = [f"{name}: put back to its last good version ({reason}); the others were used" for name in failing]
        return made, lines


class _Trial(Generic[_T]):
    """Runs a stage with some of the changed sources put back. `changed`: the content of each."""

    def __init__(
        self, settings: Settings, home: Lake, again: Callable[[], _T], changed: dict[str, str], reason: str
    ) -> None:
        self.settings, self.home, self.again, self.changed, self.reason = settings, home, again, changed, reason

    def failing(self, suspects: list[str], without: frozenset[str]) -> list[str]:
        """Returns the sources that fail, of suspects that fail together while those of `without` are put back."""
        if len(suspects) == 1:
            return suspects
        middle = len(suspects) // 2
        found = []
        for half, other in ((suspects[:middle], suspects[middle:]), (suspects[middle:], suspects[:middle])):
            if self.run(rest := without | set(other)) is None:
                found += self.failing(half, rest)
        return found

    def run(self, without: Collection[str]) -> _T | None:
        """Returns what the stage gives; None where it fails."""
        try_again(self.home, self.changed)
        put_back(self.home, {name: (self.changed[name], self.reason) for name in without})
        self.read()
        try:
            return self.again()
        except Exception as error:
            if not _may_be_a_sources(error):
                raise
            return None

    def read(self) -> None:
        """Takes the versions of the sources that are in use now. What was read is not read again."""
        steps.read(self.settings, self.home, datetime.now(UTC), steps.ReadOptions(allow_loss=True))


def _changed(home: Lake) -> dict[str, str]:
    """Returns the content of the sources that are not published as they are; none where everything is read again."""
    history, current = Staged(home).required_history(), home.current_snapshot()
    manifest = home.manifest(current) if current else {"inputs": {"sources": []}}
    before = {source["source"]: source["content"] for source in manifest["inputs"]["sources"]}
    if history.full:
        return {}
    return {one.source: one.content for one in history.sources if before.get(one.source) != one.content}


def _may_be_a_sources(error: Exception) -> bool:
    """Tells whether data may be the cause; no disk, memory, cluster or setting is."""
    kinds = {kind.__module__.partition(".")[0] for kind in type(error).__mro__}
    return not isinstance(error, OpusError | OSError | MemoryError) and kinds.isdisjoint(_OF_THE_MACHINE)
