"""What is published in a lake: snapshots with their manifests, results of contracts, and the pointer to a snapshot."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from opus_pipelines.core.schemas import DATASETS, RUNS
from opus_pipelines.lake.layout import Lake, read_json, slug, unslug, write_json
from opus_pipelines.lifecycle.changes import write_changes

Manifests = Mapping[str, dict[str, Any]]
# The datasets of a result. A result is whole when it has `runs`, which is written last; so it is removed last.
RESULT_DATASETS = sorted((d for d in DATASETS.values() if "result" in d.partitions), key=lambda d: d is RUNS)


@dataclass(frozen=True, order=True)
class Result:
    """One result of a contract, current or not."""

    client: str
    contract: str
    result: str

    def folders(self, lake: Lake) -> list[Path]:
        """Returns its partition of every dataset."""
        where = {"client_key": self.client, "contract_key": self.contract, "result": self.result}
        return [folder for dataset in RESULT_DATASETS if (folder := lake.folder(dataset, **where)).is_dir()]

    def remove(self, lake: Lake) -> None:
        """Removes it, and first the pointer where that names it."""
        path = lake.pointer_path(self.client, self.contract)
        if (read_json(path) or {}).get("result") == self.result:
            path.unlink()
        for folder in self.folders(lake):
            lake.remove(folder)


def results_of(lake: Lake, client: str | None = None, contract: str | None = None) -> list[Result]:
    """Returns every result in the lake, or those of a client, or of one of its contracts."""
    client_key, contract_key = ("*" if name is None else slug(name) for name in (client, contract))
    pattern = f"client_key={client_key}/contract_key={contract_key}/result=*"
    folders = (folder for dataset in RESULT_DATASETS for folder in (lake.root / dataset.name).glob(pattern))
    parts = {tuple(unslug(part.partition("=")[2]) for part in folder.parts[-3:]) for folder in folders}
    return sorted(Result(*part) for part in parts)


def manifests_of(lake: Lake) -> dict[str, dict[str, Any]]:
    """Returns the manifest of every published snapshot."""
    files = sorted((lake.root / "wkg").glob("*/manifest.json"))
    return {file.parent.name: manifest for file in files if (manifest := read_json(file))}


def named_parts(manifests: Iterable[Mapping[str, Any]]) -> set[str]:
    """Returns the folders of history and aggregates that snapshots were made from, as paths in the lake."""
    sources = [source for manifest in manifests for source in manifest["inputs"]["sources"]]
    return {str(value) for source in sources for value in source.values()}


def point(lake: Lake, snapshot: str, now: datetime, **more: Any) -> None:
    """Makes a snapshot the current one, and writes what changed since the one before it.

    The pointer also names the snapshot before it (`before`) and holds `more`.
    """
    before = lake.current_snapshot()
    write_changes(lake, before, snapshot)
    write_json(
        lake.root / "wkg" / "current.json", {"snapshot": snapshot, "before": before, "published_at": stamp(now), **more}
    )


def stamp(now: datetime) -> str:
    """Formats a time as the manifests have it: UTC, whole seconds."""
    return now.astimezone(UTC).isoformat(timespec="seconds")
