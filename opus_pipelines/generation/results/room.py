"""How much disk the results of contracts will need."""

from collections.abc import Iterable

from opus_pipelines.generation.discover import ContractFolder

# Measured on the sample: 49 kB a result whatever it holds (15 datasets' files), and 30 kB an intake with its ranked workflows; until the
# result is published also its text and the vectors of its passages, some 20 kB. Three times that is a margin.
OF_A_RESULT = 150_000
OF_AN_INTAKE = 150_000


def needed_for_contracts(contracts: Iterable[ContractFolder | None]) -> int:
    """Bytes of one result of each of these contracts."""
    return sum(OF_A_RESULT + OF_AN_INTAKE * len(contract.intakes) for contract in contracts if contract)
