"""A rebuild of the WKG in this process: the steps that the Dagster assets call one by one, in their order."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any, Never

from opus_pipelines.core.settings import Settings
from opus_pipelines.lake.layout import Lake
from opus_pipelines.language.embedding.encoder import TextEncoder
from opus_pipelines.wkg.rebuild import steps
from opus_pipelines.wkg.rebuild.records import HistoryRecord, Rebuild, StagedSnapshot

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@dataclass(frozen=True)
class Rebuilt:
    """A rebuild that has ended, with what most tests ask of it."""

    snapshot: StagedSnapshot
    mined: list[str]
    counts: dict[str, int]

    @property
    def snapshot_id(self) -> str:
        return self.snapshot.snapshot_id


def resolved_history(
    lake: Lake, settings: Settings, history: Any, encoder: Callable[[], TextEncoder] | None = None, **asked: bool
) -> Rebuild:
    """The first step after reading. `history`: with the sources that were read. `encoder`: None for the settings'."""
    record = HistoryRecord(tuple(history.sources), ())
    return steps.resolve(settings, lake, record, encoder and (lambda lake: encoder()), steps.Asked(**asked))


def no_spark() -> Never:
    """Stands for the session where so little is mined that none may be asked for."""
    raise AssertionError("so small a rebuild starts no Spark")


def make(rebuild: Rebuild, session: "Callable[[], SparkSession]", encoder: Callable[[], TextEncoder]) -> Rebuilt:
    """All steps between resolving and publishing. Raises CheckFailed where a check of the tables blocks."""
    mined = steps.mine(rebuild, steps.Engines(lambda bytes_: session(), session))
    steps.require_passed(steps.check_mined(rebuild).checks)
    embedded = steps.embed(rebuild, lambda lake: encoder())
    steps.check_embedded(rebuild)
    return Rebuilt(rebuild.snapshot, list(mined.sources), {**mined.counts, **embedded.counts})


def build_snapshot(
    session: "Callable[[], SparkSession]",
    lake: Lake,
    settings: Settings,
    history: Any,
    encoder: Callable[[], TextEncoder],
    now: datetime,
    reset_lambda: bool = False,
) -> Rebuilt:
    """All steps with their checks. Nothing where nothing changed. `history`: with the sources that were read."""
    record, asked = HistoryRecord(tuple(history.sources), ()), steps.Asked(reset_lambda)
    rebuild = steps.resolve(settings, lake, record, lambda lake: encoder(), asked)
    made = make(rebuild, session, encoder)
    if not rebuild.snapshot.is_current:
        steps.publish(rebuild, now)
    return made
