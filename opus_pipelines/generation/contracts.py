"""Every contract to work on, with what people decided on its workflows."""

from dataclasses import replace
from pathlib import Path

from opus_pipelines.decisions.record import decisions_of
from opus_pipelines.generation.results.erasure import not_forgotten
from opus_pipelines.intakes.discover import ContractFolder, discover
from opus_pipelines.lake.layout import Lake


def contracts_of(lake: Lake, intakes: Path) -> list[ContractFolder]:
    """The contracts below `intakes`, without those of forgotten clients, each with its decisions."""
    found = not_forgotten(lake, discover(intakes))
    return [replace(contract, decisions=decisions_of(lake, contract.client, contract.contract)) for contract in found]
