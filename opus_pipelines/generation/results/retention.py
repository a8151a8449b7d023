"""Results that no pointer names: which go, and when. Readers that resolved an old pointer get a grace time.

How much disk the results of contracts will need.
"""

from collections.abc import Iterable
from datetime import UTC, datetime, timedelta

import pyarrow as pa

from opus_pipelines.core.schemas import DATASETS, RUNS
from opus_pipelines.core.settings import Retention
from opus_pipelines.intakes.discover import ContractFolder
from opus_pipelines.lake.layout import Lake, read_json, read_table

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
# runs goes last, as it comes last: a result that has it is whole.
_DATASETS = sorted((d for d in DATASETS.values() if "result" in d.partitions), key=lambda d: d is RUNS)


def prune_results(lake: Lake, client: str, contract: str, retention: Retention, now: datetime) -> list[str]:
    """Remove a contract's results beyond the newest `retention.results`, once past the grace time, and what a killed
    run had not finished; returns those removed. The current one always stays.
    """
    pointer = read_json(lake.pointer_path(client, contract)) or {}
    made = {name: _made_at(lake, client, contract, name) for name in _results(lake, client, contract)}
    whole = {name: at for name, at in made.items() if at is not None}
    since = datetime.fromisoformat(pointer["published_at"]) if pointer else now
    gone = expired_results(whole, pointer.get("result"), retention, now, since)
    gone += [name for name, at in made.items() if at is None and name != pointer.get("result")]
    for name in gone:
        for dataset in _DATASETS:
            lake.remove(lake.folder(dataset, client_key=client, contract_key=contract, result=name))
    return gone


def expired_results(
    made: dict[str, datetime], current: str | None, retention: Retention, now: datetime, published_at: datetime
) -> list[str]:
    """Results, by when they were made, that are beyond the newest `results` (the current one counts) and were
    superseded longer ago than the readers' grace: by the next newer one or, where there is none, when the pointer
    was written.
    """
    newest_first = sorted(made, key=lambda name: (made[name], name), reverse=True)
    grace = timedelta(minutes=retention.grace_minutes)
    superseded = {name: min((at for at in made.values() if at > made[name]), default=published_at) for name in made}
    old = [name for name in newest_first if name != current][retention.results - 1 :]
    return [name for name in old if now - superseded[name] >= grace]


def _results(lake: Lake, client: str, contract: str) -> list[str]:
    folders = (lake.folder(dataset, client_key=client, contract_key=contract) for dataset in _DATASETS)
    return sorted({found.name.removeprefix("result=") for folder in folders for found in folder.glob("result=*")})


def _made_at(lake: Lake, client: str, contract: str, result: str) -> datetime | None:
    folder = lake.folder(RUNS, client_key=client, contract_key=contract, result=result)
    times = (
        read_table(RUNS, folder, columns=["generated_at"])["generated_at"].cast(pa.int64()).to_pylist()
    )  # as times they import pandas
    return _EPOCH + timedelta(microseconds=max(times)) if times else None


# Measured on the sample: 49 kB a result whatever it holds (15 datasets' files), and 30 kB an intake with its ranked
# workflows; until the result is published also its text and the vectors of its passages, some 20 kB. Three times that
# is a margin.
OF_A_RESULT = 150_000
OF_AN_INTAKE = 150_000


def needed_for_contracts(contracts: Iterable[ContractFolder | None]) -> int:
    """Bytes of one result of each of these contracts."""
    return sum(OF_A_RESULT + OF_AN_INTAKE * len(contract.intakes) for contract in contracts if contract)
