"""Results that no pointer names: which go, and when. Readers that resolved an old pointer get a grace time."""

import shutil
from datetime import datetime, timedelta
from pathlib import Path

from opus_pipelines.lake import Lake, read_json, read_table
from opus_pipelines.schemas import DATASETS, RUNS
from opus_pipelines.settings import Retention


def prune_results(lake: Lake, client: str, contract: str, retention: Retention, now: datetime) -> list[str]:
    """Remove a contract's results beyond the newest `retention.results`, once past the grace time; returns those removed."""
    pointer = read_json(lake.pointer_path(client, contract)) or {}
    old = [(made, folder.name) for folder in lake.folder(RUNS, client_key=client, contract_key=contract).glob("result=*")
           if (made := _made_at(folder)) and folder.name != f"result={pointer.get('result')}"]
    grace = timedelta(minutes=retention.grace_minutes)
    gone = [name for made, name in sorted(old, reverse=True)[retention.results - 1 :] if now - made > grace]
    for name in gone:
        for dataset in DATASETS.values():
            if "result" in dataset.partitions:
                shutil.rmtree(lake.folder(dataset, client_key=client, contract_key=contract) / name, ignore_errors=True)
    return gone


def _made_at(folder: Path) -> datetime | None:
    times: list[datetime] = read_table(RUNS, folder)["generated_at"].to_pylist()
    return max(times, default=None)
