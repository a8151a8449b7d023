"""Whether a contract's published result is what its files, the snapshot, the settings and the code would give now."""

from opus_pipelines.generation.contract import result_id
from opus_pipelines.generation.discover import ContractFolder
from opus_pipelines.lake import Lake, read_json
from opus_pipelines.settings import Settings


def is_current(lake: Lake, contract: ContractFolder, snapshot: str, settings: Settings) -> bool:
    """True when there is nothing to do for this contract. Hashes files; loads no model and no graph."""
    pointer = read_json(lake.pointer_path(contract.client, contract.contract))
    return contract.problem is None and pointer is not None and pointer["result"] == result_id(contract, snapshot, settings)
