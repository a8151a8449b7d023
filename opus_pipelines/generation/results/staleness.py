"""Whether a contract's published result is what `opus generate` would make now, what changed, and what failed."""

from typing import Any

from opus_pipelines.core.ids import digest
from opus_pipelines.core.schemas import INTAKES, RUNS
from opus_pipelines.core.settings import Settings
from opus_pipelines.core.versions import difference, versions_of
from opus_pipelines.generation.results.ids import MadeFrom, id_of, result_id, settings_hash
from opus_pipelines.intakes.intake import ContractFolder
from opus_pipelines.lake.layout import Lake
from opus_pipelines.lake.results import ResultKey
from opus_pipelines.lwm.interface import version_of


def is_current(lake: Lake, contract: ContractFolder, snapshot: str, settings: Settings) -> bool:
    """True when there is nothing to do for this contract. Hashes files; loads no model and no graph.

    An unreadable file is not detected here. The run detects it and fails this contract alone, with the reason.
    """
    pointer = lake.result_pointer(contract.client, contract.contract)
    if contract.problem is not None or pointer is None:
        return False
    try:
        return bool(pointer["result"] == result_id(contract, snapshot, settings, attempt=_attempt_of(pointer)))
    except OSError:
        return False


def input_version(contract: ContractFolder, settings: Settings) -> str:
    """Returns the hash of what a result is made from besides the snapshot and the algorithms.

    That is the contract's files and decisions, the settings and the model. A contract that cannot be worked on has a
    version for its problem.
    """
    if contract.problem is not None:
        return digest(contract.problem)
    try:
        made_from = MadeFrom("", version_of(settings), settings_hash(settings), "")
        return id_of(contract, made_from)
    except OSError as error:
        return digest(str(error))


def failed_intakes(lake: Lake, contract: ContractFolder, result: str | None = None) -> list[tuple[str, str]]:
    """Folder and reason of each intake that failed when a result of the contract was made, the current one where none
    is named.
    """
    name = result or (lake.result_pointer(contract.client, contract.contract) or {}).get("result", "")
    key = ResultKey(contract.client, contract.contract, name)
    rows = key.read(lake, INTAKES, ["folder", "status", "reason"]).to_pylist()
    return [(row["folder"], row["reason"]) for row in rows if row["status"] == "failed"]


def next_attempt(lake: Lake, contract: ContractFolder, snapshot: str, settings: Settings) -> int:
    """Which attempt is next at these inputs: the first that left no result with failed intakes behind, the current
    one's or a later one.
    """
    pointer = lake.result_pointer(contract.client, contract.contract) or {}
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


def changes_since(lake: Lake, contract: ContractFolder, snapshot: str, settings: Settings) -> tuple[str, ...]:
    """What changed since the contract's result was made: snapshot, files, settings, algorithm versions, model,
    decisions; empty where nothing did.

    A contract without a result has `no result yet`; one that cannot be worked on says why. Hashes files; loads no model
    and no graph.
    """
    pointer = lake.result_pointer(contract.client, contract.contract)
    if contract.problem is not None:
        return (contract.problem,)
    if pointer is None:
        return ("no result yet",)
    if is_current(lake, contract, snapshot, settings):
        return ()
    try:
        return _changes(lake, contract, snapshot, settings, pointer)
    except OSError as error:
        return (f"a file cannot be read: {error.strerror}",)


def _changes(
    lake: Lake, contract: ContractFolder, snapshot: str, settings: Settings, pointer: dict[str, Any]
) -> tuple[str, ...]:
    key = ResultKey(contract.client, contract.contract, pointer["result"])
    stated = key.read(lake, RUNS).select(["settings_hash", "code_version"])  # without times, which would load pandas
    run: dict[str, Any] = next(iter(stated.to_pylist()), {})
    hashed, code = str(run.get("settings_hash")), str(run.get("code_version"))
    made = MadeFrom(pointer["snapshot"], pointer["model_version"], hashed, code)
    now = MadeFrom(snapshot, version_of(settings), settings_hash(settings), versions_of("result"))
    numbers = range(len(contract.decisions.all), -1, -1)
    before = next(
        (n for n in numbers if id_of(contract, made, pointer.get("attempt", 1), n) == pointer["result"]), None
    )
    changed = [word for word, a, b in zip(("snapshot", "model", "settings"), made[:3], now[:3], strict=True) if a != b]
    if (versions := difference(made.code, now.code)) is not None:
        changed.append(f"code: {versions}")
    decided = before is not None and before < len(contract.decisions.all)
    return (*changed, *(("files",) if before is None else ()), *(("decisions",) if decided else ()))
