"""The disk space that a rebuild needs, from the files of history and from what the lake already has of them."""

from collections.abc import Iterable

from opus_pipelines.core.schemas import IMPLEMENTATIONS
from opus_pipelines.core.settings import Settings
from opus_pipelines.history.ingestion.plan import FilePlan, SourcePlan, plan_history
from opus_pipelines.history.records.forgotten_clients import private_key
from opus_pipelines.lake.atomic_files import bytes_below, require_free_space
from opus_pipelines.lake.layout import PART, Lake

# Bytes in the lake - implementations, aggregates, and a source's share of the snapshot and the embedding cache - for
# each byte of a history file. Measured: bpic2012, bpic2013, BPIC_2017_W and helpdesk (gzipped XES and CSV) 2.1 to 3.3,
# the sample's CSV, JSONL and XES 0.2 to 1.1. The rest is a margin, for an estimate that is too high costs a message and
# one that is too low a night.
OF_COMPRESSED, OF_TEXT = 4.0, 2.0
_COMPRESSED = (".gz", ".parquet")


def plan_within_disk_space(work: Lake, home: Lake, settings: Settings) -> list[SourcePlan]:
    """Returns the plans of the history folder; raises LakeError when the disk is too small for the rebuild.

    `work` is the lake in which the parts are made: `home` itself or an empty one.
    """
    private_key(work)  # a plan's hashes are of it
    plans = plan_history(settings.paths.history, settings.currency.usd_per_unit, work)
    require_free_space(home.root, needed_for_rebuild(work, home, plans), settings.disk.reserve_mb, "this rebuild")
    return plans


def needed_for_rebuild(work: Lake, home: Lake, plans: Iterable[SourcePlan]) -> int:
    """Returns the bytes that a rebuild needs.

    These are the size of the changed sources in the lake, plus a snapshot as large as the last one.
    """
    changed = (plan for plan in plans if not _is_there(work, plan))
    snapshot = home.current_snapshot()
    return int(sum(_in_lake(f) for plan in changed for f in plan.files)) + (
        bytes_below(home.snapshot_folder(snapshot)) if snapshot else 0
    )


def _is_there(lake: Lake, plan: SourcePlan) -> bool:
    return (lake.folder(IMPLEMENTATIONS, source_key=plan.name, content=plan.content) / PART).is_file()


def _in_lake(file: FilePlan) -> float:
    return file.bytes * (OF_COMPRESSED if file.file.suffix.lower() in _COMPRESSED else OF_TEXT)
