"""How much disk the results of contracts will need."""

from collections.abc import Iterable

from opus_pipelines.generation.discover import ContractFolder

# Measured on the sample: 92 kB an intake with five ranked workflows, all datasets together. Three times that is a margin.
OF_AN_INTAKE = 300_000


def needed_for_contracts(contracts: Iterable[ContractFolder | None]) -> int:
    """Bytes of one result of each of these contracts."""
    return sum(OF_AN_INTAKE * len(contract.intakes) for contract in contracts if contract)
