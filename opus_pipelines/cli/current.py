"""Finds out from hashes what is up to date.

A night with nothing new so loads neither Dagster nor Spark nor a model.
"""

from collections.abc import Sequence
from datetime import UTC, datetime

from opus_pipelines.catalogues.files import catalogue_files, read_catalogue
from opus_pipelines.core.errors import InputError
from opus_pipelines.core.schemas import IMPLEMENTATIONS, SOURCES
from opus_pipelines.core.settings import Settings
from opus_pipelines.core.versions import difference, versions_of
from opus_pipelines.generation.contracts import contracts_of
from opus_pipelines.generation.results.staleness import changes_since, failed_intakes, is_current
from opus_pipelines.ingestion.ingest import HistoryOptions, HistoryState, SourceState, read_history
from opus_pipelines.ingestion.plan import SourcePlan, plan_history
from opus_pipelines.intakes.discover import ContractFolder
from opus_pipelines.lake.damage import damaged_results, require_sound
from opus_pipelines.lake.layout import PART, Lake, read_json, read_table
from opus_pipelines.lake.replaced_files import REPAIR
from opus_pipelines.lifecycle.verify import require_sound_for_rebuild
from opus_pipelines.task_matching.nightly import NightlyResolution
from opus_pipelines.wkg.loss import check_loss, loss_of
from opus_pipelines.wkg.rebuild import begin, resolve
from opus_pipelines.wkg.rebuild_records import HistoryRead, StagedSnapshot


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
        snapshot = resolve(HistoryRead(state), begin(settings, lake)).snapshot
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


def damaged_lines(lake: Lake) -> list[str]:
    """Returns a line for each contract whose current result is damaged."""
    return [f"damaged: {one}; {REPAIR}" for one in damaged_results(lake)]


def still_failed(lake: Lake, contracts: list[ContractFolder]) -> list[str]:
    """Returns a line for each intake that failed in the current results of these contracts.

    Where there is any, the last line names the command that tries them again.
    """
    lines = [
        f"still failed: {contract.client}/{contract.contract}/{folder}: {reason}"
        for contract in contracts
        for folder, reason in failed_intakes(lake, contract)
    ]
    return [*lines, "nothing changed since; `opus generate --retry-failed` tries again"] if lines else []


def changes(settings: Settings) -> dict[tuple[str, str], tuple[str, ...]] | None:
    """Returns what changed since each contract's result was made, by client and contract.

    Returns None before the first snapshot.
    """
    lake = Lake(settings.paths.lake)
    snapshot = lake.current_snapshot()
    if snapshot is None:
        return None
    contracts = contracts_of(lake, settings.paths.intakes)
    return {(c.client, c.contract): changes_since(lake, c, snapshot, settings) for c in contracts}


def declared_tasks(settings: Settings) -> dict[tuple[str, str], int]:
    """Returns how many tasks each contract's catalogue declares, by client and contract where it has one."""
    contracts = contracts_of(Lake(settings.paths.lake), settings.paths.intakes)
    return {(c.client, c.contract): len(read_catalogue(c.folder).tasks) for c in contracts if catalogue_files(c.folder)}


def split_stale(
    settings: Settings, client: str | None, contract: str | None, intake: str | None, retry_failed: bool = False
) -> tuple[list[ContractFolder], list[ContractFolder]]:
    """Returns the named contracts (all where no name is given): those to generate, and those up to date.

    With `retry_failed`, a contract with failed intakes is not up to date. Raises InputError where nothing has that
    name, and LakeError before the first snapshot.
    """
    lake = Lake(settings.paths.lake)
    snapshot = lake.required_snapshot()
    require_sound(lake, snapshot)
    contracts = contracts_of(lake, settings.paths.intakes)
    named = [
        c
        for c in contracts
        if client in (None, c.client)
        and contract in (None, c.contract)
        and (intake is None or intake in {i.name for i in c.intakes})
    ]
    if not named:
        known = ", ".join(f"{c.client} / {c.contract}" for c in contracts) or "nothing"
        raise InputError(f"no such contract or intake in {settings.paths.intakes}; there is: {known}")
    if contract is None and intake is None:
        named += _unreadable_neighbours(named, contracts)
    current = [
        c for c in named if is_current(lake, c, snapshot, settings) and not (retry_failed and failed_intakes(lake, c))
    ]
    return [c for c in named if c not in current], current


def _unreadable_neighbours(named: list[ContractFolder], contracts: list[ContractFolder]) -> list[ContractFolder]:
    """Returns contracts with unreadable settings next to the named ones.

    They go by the names of their folders, probably belong to the same client, and must not be passed over silently.
    """
    places = {c.folder.parent for c in named}
    return [c for c in contracts if c.problem and c not in named and c.folder.parent in places]
