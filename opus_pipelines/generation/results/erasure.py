"""A client's results taken out of the lake, and those of others that rest on the client's cases."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc

from opus_pipelines.core.schemas import DATASETS, DECISIONS, INTAKES, NEIGHBOURS
from opus_pipelines.event_logs.forgotten_clients import Forgotten
from opus_pipelines.intakes.discover import ContractFolder, discover
from opus_pipelines.lake.layout import Lake, read_json, read_table, slug, unslug
from opus_pipelines.lake.search import Word, search

_OF_RESULTS = tuple(dataset for dataset in DATASETS.values() if "result" in dataset.partitions)


@dataclass(frozen=True, order=True)
class Result:
    """One result of a contract, current or not."""

    client: str
    contract: str
    result: str

    def folders(self, lake: Lake) -> list[Path]:
        """Its partition of every dataset."""
        where = {"client_key": self.client, "contract_key": self.contract, "result": self.result}
        return [folder for dataset in _OF_RESULTS if (folder := lake.folder(dataset, **where)).is_dir()]


def results_of(lake: Lake) -> list[Result]:
    """Every result in the lake."""
    folders = {
        folder
        for dataset in _OF_RESULTS
        for folder in (lake.root / dataset.name).glob("client_key=*/contract_key=*/result=*")
    }
    parts = {tuple(unslug(part.partition("=")[2]) for part in folder.parts[-3:]) for folder in folders}
    return sorted(Result(*part) for part in parts)


def clients_of(lake: Lake) -> set[str]:
    """Every client that has a result, a pointer or a decision."""
    decided = {unslug(folder.name.partition("=")[2]) for folder in (lake.root / DECISIONS.name).glob("client_key=*")}
    return {result.client for result in results_of(lake)} | {pointer["client"] for pointer in lake.results()} | decided


def decisions_of_client(lake: Lake, client: str) -> list[Path]:
    """The files of the client's decisions."""
    return sorted(lake.folder(DECISIONS, client_key=client).glob("*/*.parquet"))


def remove_decisions(lake: Lake, client: str, words: list[Word]) -> list[tuple[str, str]]:
    """Remove decisions of other clients in which one of the words stands (a task that nobody else has); whose they
    were.
    """
    folder = lake.root / DECISIONS.name
    found = {finding.file for finding in search(lake, words, below=folder)} if folder.is_dir() else set[str]()
    gone = [path for path in map(lake.root.joinpath, sorted(found)) if path.is_file()]
    theirs = []
    for path in gone:
        theirs.append((unslug(path.parts[-3].partition("=")[2]), unslug(path.parts[-2].partition("=")[2])))
        path.unlink()
    return sorted({pair for pair in theirs if pair[0] != client})


def resting_on(lake: Lake, client: str, cases: set[str], words: list[Word]) -> list[Result]:
    """Results of other clients whose nearest cases are among `cases`, or in which one of the words stands."""
    ids = pa.array(sorted(cases), pa.string())
    return [
        r
        for r in results_of(lake)
        if r.client != client and (_has_neighbour(lake, r, ids) or _has_word(lake, r, words))
    ]


def words_of(lake: Lake, client: str) -> Iterator[Word]:
    """The ids of the client's results and intakes."""
    for result in (r for r in results_of(lake) if r.client == client):
        yield Word("result", result.result)
        folder = lake.folder(INTAKES, client_key=client, contract_key=result.contract, result=result.result)
        yield from (
            Word("intake", key) for key in read_table(INTAKES, folder, columns=["intake_id"])["intake_id"].to_pylist()
        )


def take_out(lake: Lake, client: str) -> int:
    """Remove every pointer, result and decision of the client; returns how many results that were. Pointers go first:
    none names what is gone.
    """
    theirs = [result for result in results_of(lake) if result.client == client]
    for pointer in sorted((lake.root / "workflows" / "current").glob(f"{slug(client)}__*.json")):
        pointer.unlink()
    remove(lake, theirs)
    for folder in (
        *sorted(lake.root.glob(f"*/*/client_key={slug(client)}")),
        lake.folder(DECISIONS, client_key=client),
    ):
        lake.remove(folder)
    return len(theirs)


def remove(lake: Lake, results: Iterable[Result]) -> None:
    """Remove results, and the pointers that name them."""
    for result in results:
        path = lake.pointer_path(result.client, result.contract)
        if (read_json(path) or {}).get("result") == result.result:
            path.unlink()
        for folder in result.folders(lake):
            lake.remove(folder)


def not_forgotten(lake: Lake, contracts: Iterable[ContractFolder]) -> list[ContractFolder]:
    """The contracts without those of forgotten clients: nothing is made for them again."""
    forgotten = Forgotten.of(lake)
    return [contract for contract in contracts if not forgotten.holds(contract.client)]


def intakes_of(intakes: Path, client: str) -> list[Path]:
    """The folders of the client's contracts, which stay: they are the user's own."""
    return [contract.folder for contract in discover(intakes) if contract.client == client] if intakes.is_dir() else []


def _has_neighbour(lake: Lake, result: Result, ids: pa.Array) -> bool:
    folder = lake.folder(NEIGHBOURS, client_key=result.client, contract_key=result.contract, result=result.result)
    found = read_table(NEIGHBOURS, folder, columns=["implementation_id"])["implementation_id"]
    return bool(pc.any(pc.is_in(found, ids)).as_py())


def _has_word(lake: Lake, result: Result, words: list[Word]) -> bool:
    return any(True for folder in result.folders(lake) for _ in search(lake, words, below=folder))
