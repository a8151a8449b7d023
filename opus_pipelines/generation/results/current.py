"""Whether a contract's published result is what its files, the snapshot, the settings and the code would give now; what failed in it."""

from opus_pipelines.generation.contract import result_id
from opus_pipelines.generation.discover import ContractFolder
from opus_pipelines.lake import Lake, read_json, read_table
from opus_pipelines.schemas import INTAKES
from opus_pipelines.settings import Settings


def is_current(lake: Lake, contract: ContractFolder, snapshot: str, settings: Settings) -> bool:
    """True when there is nothing to do for this contract. Hashes files; loads no model and no graph.

    A file that cannot be read is not found out here: the run does, and says so for this contract alone.
    """
    pointer = read_json(lake.pointer_path(contract.client, contract.contract))
    if contract.problem is not None or pointer is None:
        return False
    try:
        return bool(pointer["result"] == result_id(contract, snapshot, settings, attempt=_attempt_of(pointer)))
    except OSError:
        return False


def failed_intakes(lake: Lake, contract: ContractFolder, result: str | None = None) -> list[tuple[str, str]]:
    """Folder and reason of each intake that failed when a result of the contract was made, the current one where none is named."""
    name = result or (read_json(lake.pointer_path(contract.client, contract.contract)) or {}).get("result", "")
    where = {"client_key": contract.client, "contract_key": contract.contract, "result": name}
    rows = read_table(INTAKES, lake.folder(INTAKES, **where), columns=["folder", "status", "reason"]).to_pylist()
    return [(row["folder"], row["reason"]) for row in rows if row["status"] == "failed"]


def next_attempt(lake: Lake, contract: ContractFolder, snapshot: str, settings: Settings) -> int:
    """Which attempt is next at these inputs: the first that left no result with failed intakes behind, the current one's or a later one."""
    pointer = read_json(lake.pointer_path(contract.client, contract.contract)) or {}
    attempt = _attempt_of(pointer)
    result = result_id(contract, snapshot, settings, attempt=attempt)
    if attempt > 1 and result != pointer["result"]:  # those attempts were at other inputs
        attempt, result = 1, result_id(contract, snapshot, settings)
    while failed_intakes(lake, contract, result):
        attempt += 1
        result = result_id(contract, snapshot, settings, attempt=attempt)
    return attempt


def _attempt_of(pointer: dict[str, object]) -> int:
    """Pointers of earlier versions name no attempt."""
    attempt = pointer.get("attempt", 1)
    return attempt if isinstance(attempt, int) else 1
