"""Why a contract's published result is not what `opus generate` would make now: what changed since, in words."""

from typing import Any

from opus_pipelines.generation.contract import id_of, settings_hash
from opus_pipelines.generation.discover import ContractFolder
from opus_pipelines.generation.results.current import is_current
from opus_pipelines.lake import Lake, read_json, read_table
from opus_pipelines.lwm.history import HistoryBackend
from opus_pipelines.schemas import RUNS
from opus_pipelines.settings import Settings
from opus_pipelines.versions import difference, versions_of


def changes_since(lake: Lake, contract: ContractFolder, snapshot: str, settings: Settings) -> tuple[str, ...]:
    """What changed since the contract's result was made: snapshot, files, settings, algorithm versions, model, decisions; empty where
    nothing did.

    A contract without a result has `no result yet`; one that cannot be worked on says why. Hashes files; loads no model and no graph.
    """
    pointer = read_json(lake.pointer_path(contract.client, contract.contract))
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


def _changes(lake: Lake, contract: ContractFolder, snapshot: str, settings: Settings, pointer: dict[str, Any]) -> tuple[str, ...]:
    where = {"client_key": contract.client, "contract_key": contract.contract, "result": pointer["result"]}
    run: dict[str, Any] = next(iter(read_table(RUNS, lake.folder(RUNS, **where)).to_pylist()), {})
    made = pointer["snapshot"], pointer["model_version"], str(run.get("settings_hash")), str(run.get("code_version"))
    now = snapshot, HistoryBackend().version, settings_hash(settings), versions_of("result")
    numbers = range(len(contract.decisions.made), -1, -1)
    before = next((n for n in numbers if id_of(contract, *made, pointer.get("attempt", 1), n) == pointer["result"]), None)
    changed = [word for word, a, b in zip(("snapshot", "model", "settings"), made[:3], now[:3], strict=True) if a != b]
    if (versions := difference(made[3], now[3])) is not None:
        changed.append(f"code: {versions}")
    decided = before is not None and before < len(contract.decisions.made)
    return (*changed, *(("files",) if before is None else ()), *(("decisions",) if decided else ()))
