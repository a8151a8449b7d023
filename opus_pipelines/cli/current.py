"""Finds out from hashes what is up to date.

A night with nothing new so loads neither Dagster nor Spark nor a model.
"""

from opus_pipelines.core.errors import InputError
from opus_pipelines.core.settings import Settings
from opus_pipelines.generation.contracts import contracts_of
from opus_pipelines.generation.results.staleness import changes_since, failed_intakes, is_current
from opus_pipelines.intakes.catalogues.file_names import catalogue_files
from opus_pipelines.intakes.intake import ContractFolder
from opus_pipelines.lake.damage import damaged_results, require_sound
from opus_pipelines.lake.file_lists import REPAIR
from opus_pipelines.lake.layout import Lake


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
    with_catalogue = [c for c in contracts if catalogue_files(c.folder)]
    if not with_catalogue:
        return {}
    from opus_pipelines.intakes.catalogues.files import (
        read_catalogue,  # its parsers take as long as the rest of the command
    )

    return {(c.client, c.contract): len(read_catalogue(c.folder).tasks) for c in with_catalogue}


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
