"""How much disk a rebuild will need, from what lies in history and what the lake has of it already."""

from collections.abc import Iterable

from opus_pipelines import disk
from opus_pipelines.history.plan import FilePlan, SourcePlan, plan_history
from opus_pipelines.history.privacy.forgotten import private_key
from opus_pipelines.lake import PART, Lake
from opus_pipelines.schemas import IMPLEMENTATIONS
from opus_pipelines.settings import Settings

# Bytes in the lake - implementations, aggregates, and a source's share of the snapshot and the embedding cache - for each byte of a
# history file. Measured: bpic2012, bpic2013, BPIC_2017_W and helpdesk (gzipped XES and CSV) 2.1 to 3.3, the sample's CSV, JSONL and XES
# 0.2 to 1.1. The rest is a margin, for an estimate that is too high costs a message and one that is too low a night.
OF_COMPRESSED, OF_TEXT = 4.0, 2.0
_COMPRESSED = (".gz", ".parquet")


def plan_with_room(work: Lake, home: Lake, settings: Settings) -> list[SourcePlan]:
    """What lies in the history folder; raises LakeError where the disk has no room for what a rebuild makes of it. `work`: where parts
    are made, the lake `home` itself or an empty one."""
    private_key(work)  # a plan's hashes are of it
    plans = plan_history(settings.paths.history, settings.currency.usd_per_unit, work)
    disk.require(home.root, needed_for_rebuild(work, home, plans), settings.disk.reserve_mb, "this rebuild")
    return plans


def needed_for_rebuild(work: Lake, home: Lake, plans: Iterable[SourcePlan]) -> int:
    """Bytes: what the sources that `work` lacks turn into, and a snapshot as large as the last one."""
    changed = (plan for plan in plans if not _is_there(work, plan))
    snapshot = home.current_snapshot()
    return int(sum(_in_lake(f) for plan in changed for f in plan.files)) + (disk.size_of(home.snapshot_folder(snapshot)) if snapshot else 0)


def _is_there(lake: Lake, plan: SourcePlan) -> bool:
    return (lake.folder(IMPLEMENTATIONS, source_key=plan.name, content=plan.content) / PART).is_file()


def _in_lake(file: FilePlan) -> float:
    return file.bytes * (OF_COMPRESSED if file.file.suffix.lower() in _COMPRESSED else OF_TEXT)
