"""Finds out from hashes whether a rebuild has work to do.

A night with nothing new so loads neither Dagster's jobs nor Spark nor a model.

Versions of what a rebuild is made from, as hashes of its content, for the comparison with what a snapshot was made
from.
"""

from collections.abc import Sequence
from datetime import UTC, datetime

from opus_pipelines.core.ids import digest
from opus_pipelines.core.schemas import IMPLEMENTATIONS, SOURCES
from opus_pipelines.core.settings import Settings
from opus_pipelines.core.versions import difference, versions_of
from opus_pipelines.history.ingestion.ingest import HistoryOptions, HistoryState, SourceState, read_history
from opus_pipelines.history.ingestion.plan import SourcePlan, plan_history
from opus_pipelines.lake.layout import PART, Lake, read_json, read_table
from opus_pipelines.wkg.checks import check_loss, loss_of
from opus_pipelines.wkg.rebuild.manifest import settings_that_matter
from opus_pipelines.wkg.rebuild.records import HistoryRecord, StagedSnapshot
from opus_pipelines.wkg.rebuild.steps import resolve
from opus_pipelines.wkg.task_matching.pins import read_pins
from opus_pipelines.wkg.task_matching.resolve import NightlyResolution
from opus_pipelines.wkg.upkeep.verify import require_sound_for_rebuild

ABSENT = "no such folder"


def history_version(settings: Settings) -> str:
    """Returns the hash of the files of history, their settings and the exchange rates that may apply to them.

    It is the same before and after the files are read, and it is `no such folder` where there is no history.
    """
    if not settings.paths.history.is_dir():
        return ABSENT
    rates = settings.currency.usd_per_unit
    plans = plan_history(settings.paths.history, rates, Lake(settings.paths.lake))
    return digest([(plan.name, plan.without_rates) for plan in plans], sorted(rates.items()))


def settings_version(settings: Settings) -> str:
    """Returns the hash of the settings and pins that a snapshot depends on besides its history."""
    merging = settings.wkg.model_dump(mode="json", include={"merge", "merge_threshold", "merge_across_industries"})
    encoder = settings.encoder.model_dump(mode="json", exclude={"batch_size"})
    pins = read_pins(settings.paths.history).model_dump(mode="json")
    return digest(settings_that_matter(settings), merging, encoder, pins)


def unchanged_history(settings: Settings) -> tuple[StagedSnapshot, HistoryState, list[str]] | None:
    """Returns the snapshot that a rebuild would make, the state of history, and a line for each damaged file.

    Returns None when there is work to do. Raises LakeError where what a rebuild starts from is damaged.
    """
    lake = Lake(settings.paths.lake)
    if lake.current_snapshot() is None:
        return None
    damaged = require_sound_for_rebuild(lake)
    plans = plan_history(settings.paths.history, settings.currency.usd_per_unit, lake)
    if not _files_unchanged(lake, plans):
        return None
    with lake.lock():
        reading = HistoryOptions(
            plans=plans,
            max_quarantined_share=settings.history.max_quarantined_share,
            accept=lambda sources: _accept(lake, settings, sources),
        )
        state = read_history(lake, settings.paths.history, datetime.now(UTC), reading)
        if not NightlyResolution(lake, settings, state.sources).is_known:
            return None
        snapshot = resolve(settings, lake, HistoryRecord(tuple(state.sources), ())).snapshot
    return (snapshot, state, damaged) if snapshot.is_current else None


def _accept(lake: Lake, settings: Settings, sources: Sequence[SourceState]) -> None:
    check_loss(loss_of(lake, sources), settings.checks.max_lost_share, is_allowed=False)


def versions_since(settings: Settings) -> str | None:
    """Returns a note where other algorithm versions made the current snapshot, else None."""
    lake = Lake(settings.paths.lake)
    snapshot = lake.current_snapshot()
    manifest = read_json(lake.snapshot_folder(snapshot) / "manifest.json") if snapshot is not None else None
    differs = difference(manifest.get("code_version"), versions_of("manifest")) if manifest else None
    return (
        f"the current snapshot has other algorithm versions ({differs}); what depends on them is made anew"
        if differs
        else None
    )


def _files_unchanged(lake: Lake, plans: list[SourcePlan]) -> bool:
    now = {(plan.name, file.path, file.content_hash) for plan in plans for file in plan.files}
    columns = ["source", "path", "content_hash", "status"]
    rows = read_table(SOURCES, lake.folder(SOURCES), columns=columns).to_pylist()
    before = {(row["source"], row["path"], row["content_hash"]) for row in rows if row["status"] != "gone"}
    held = {row["source"] for row in rows if row["status"] == "held"}  # they keep an earlier version
    read = [p for p in plans if p.settings is not None and p.files and p.name not in held]
    folders = [lake.folder(IMPLEMENTATIONS, source_key=p.name, content=p.content) for p in read]
    return now == before and all((folder / PART).is_file() for folder in folders)
