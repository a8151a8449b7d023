"""Every contract to work on, with what people decided on its workflows, and the disk space that its result needs.

A module of its own: it loads no model and no array library, and `opus status` and the sensors need it.
"""

from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

from opus_pipelines.core.schemas import DECISIONS
from opus_pipelines.history.records.forgotten_clients import Forgotten
from opus_pipelines.intakes.decisions.record import decisions_of
from opus_pipelines.intakes.intake import ContractFolder, discover
from opus_pipelines.lake.file_lists import NAME, REPAIR, damage_in
from opus_pipelines.lake.layout import Lake

# Bytes. Measured on the sample: 49 kB a result whatever it holds (15 datasets' files), and 30 kB an intake with its
# ranked workflows; until the result is published also its text and the vectors of its passages, some 20 kB. Three times
# that is a margin.
OF_A_RESULT = 150_000
OF_AN_INTAKE = 150_000


def contracts_of(lake: Lake, intakes: Path) -> list[ContractFolder]:
    """Returns the contracts below `intakes`, each with its decisions.

    Those of forgotten clients are left out: nothing is made for them again.
    """
    forgotten = Forgotten.of(lake)
    return [_decided(lake, contract) for contract in discover(intakes) if not forgotten.holds(contract.client)]


def contract_keys(lake: Lake, intakes: Path) -> list[str]:
    """Returns the keys of the contracts below `intakes`; none where there is no such folder."""
    return [contract.key for contract in contracts_of(lake, intakes)] if intakes.is_dir() else []


def _decided(lake: Lake, contract: ContractFolder) -> ContractFolder:
    """Returns the contract with its decisions; damaged decisions cost their own contract."""
    folder = lake.folder(DECISIONS, client_key=contract.client, contract_key=contract.contract)
    if folder.is_dir() and (damage := next(damage_in(folder), None)) is not None and (folder / NAME).exists():
        return replace(contract, problem=contract.problem or f"its decisions are damaged: {damage}; {REPAIR}")
    return replace(contract, decisions=decisions_of(lake, contract.client, contract.contract))


def needed_for_contracts(contracts: Iterable[ContractFolder | None]) -> int:
    """Returns the bytes of one result of each of these contracts."""
    return sum(OF_A_RESULT + OF_AN_INTAKE * len(contract.intakes) for contract in contracts if contract)
