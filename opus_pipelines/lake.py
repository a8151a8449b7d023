"""Where datasets live, and how they become visible: written whole beside the tables, renamed into place, then pointed to.

Nothing published is ever changed. `wkg/current.json` and `workflows/current/*.json` are the only files that are replaced,
each in one rename; readers resolve a pointer once and stay with what it names.
"""

import fcntl
import json
import os
import re
import shutil
import uuid
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from opus_pipelines.errors import LakeError
from opus_pipelines.schemas import DATASETS, Dataset

PART = "part-00000.parquet"


def slug(text: str) -> str:
    """`text` as one path component: every byte outside A-Za-z0-9- becomes _ and two hex digits. Reversible."""
    return re.sub(rb"[^A-Za-z0-9-]", lambda m: b"_%02x" % m[0][0], text.encode()).decode()


def unslug(text: str) -> str:
    """The text whose slug this is."""
    return re.sub(rb"_([0-9a-f]{2})", lambda m: bytes([int(m[1], 16)]), text.encode()).decode()


class Lake:
    """One lake folder: paths, pointers, writing and reading of datasets."""

    def __init__(self, root: Path | str) -> None:
        self.root = Path(root).absolute()

    # --- paths

    def folder(self, dataset: Dataset, **partition: str) -> Path:
        """A dataset's folder, or one partition's; values are slugged here."""
        if set(partition) - set(dataset.partitions):
            raise LakeError(f"{dataset.name} has no partitions {sorted(set(partition) - set(dataset.partitions))}")
        return self.root.joinpath(dataset.name, *(f"{k}={slug(partition[k])}" for k in dataset.partitions if k in partition))

    def snapshot_folder(self, snapshot: str) -> Path:
        """Where a snapshot of the WKG lies."""
        return self.root / "wkg" / snapshot

    @property
    def kept(self) -> Path:
        """The id ledger, lambda and the embedding cache: inputs that outlive snapshots."""
        return self.root / "wkg" / "kept"

    @property
    def dagster_home(self) -> Path:
        """Dagster's own state."""
        return self.root / ".dagster"

    # --- pointers

    def current_snapshot(self) -> str | None:
        """Id of the published snapshot, None before the first rebuild."""
        pointer = read_json(self.root / "wkg" / "current.json")
        return pointer["snapshot"] if pointer else None

    def manifest(self, snapshot: str) -> dict[str, Any]:
        """A snapshot's manifest."""
        manifest = read_json(self.snapshot_folder(snapshot) / "manifest.json")
        if manifest is None:
            raise LakeError(f"snapshot {snapshot} is not in {self.root}; `opus rebuild` makes one")
        return manifest

    def pointer_path(self, client: str, contract: str) -> Path:
        """The file that names a contract's current result."""
        return self.root / "workflows" / "current" / f"{slug(client)}__{slug(contract)}.json"

    def results(self) -> list[dict[str, Any]]:
        """Every contract's pointer: client, contract, result, snapshot, model_version, published_at."""
        return [p for f in sorted((self.root / "workflows" / "current").glob("*.json")) if (p := read_json(f))]

    # --- writing

    @contextmanager
    def staging(self) -> Iterator[Path]:
        """A scratch folder on the lake's file system, outside every table's tree; gone afterwards."""
        folder = self.root / ".staging" / uuid.uuid4().hex
        folder.mkdir(parents=True)
        try:
            yield folder
        finally:
            shutil.rmtree(folder, ignore_errors=True)

    def publish(self, staged: Path, final: Path) -> None:
        """Move a finished folder to where it will be read; a folder that is there already is left as it is."""
        final.parent.mkdir(parents=True, exist_ok=True)
        if not final.exists():
            staged.rename(final)

    def ensure_empty(self) -> None:
        """An empty typed file for every dataset, so that no view ever fails."""
        for dataset in DATASETS.values():
            path = self.root / ".empty" / f"{dataset.view}.parquet"
            if not path.exists():
                write_atomically(path, lambda p, d=dataset: pq.write_table(d.schema.empty_table(), p))

    @contextmanager
    def lock(self) -> Iterator[None]:
        """The right to write; raises LakeError when another live process has it. The kernel drops a dead one's."""
        self.root.mkdir(parents=True, exist_ok=True)
        with (self.root / ".lock").open("a+") as file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                file.seek(0)
                holder = file.read().strip() or "?"
                raise LakeError(f"another run (process {holder}) is writing to {self.root}; wait for it to end") from None
            file.seek(0)
            file.truncate()
            file.write(str(os.getpid()))
            file.flush()
            shutil.rmtree(self.root / ".staging", ignore_errors=True)  # what a killed run left
            yield


# --- tables

def table_of(dataset: Dataset, rows: Iterable[Mapping[str, Any]], schema: pa.Schema | None = None) -> pa.Table:
    """Rows as a table of the dataset's schema; missing columns are NULL, unknown ones an error."""
    rows = list(rows)
    schema = schema or dataset.schema
    unknown = {key for row in rows for key in row} - set(schema.names)
    if unknown:
        raise LakeError(f"{dataset.name} has no columns {sorted(unknown)}")
    return pa.Table.from_pylist([dict(row) for row in rows], schema=schema)


def write_table(dataset: Dataset, table: pa.Table, folder: Path) -> Path:
    """One sorted file in `folder` (made here), cast to the dataset's schema; returns its path. Not atomic: stage it."""
    if table.schema.names != dataset.schema.names:
        table = table.select(dataset.schema.names)
    vectors = [f.type.list_size for f in table.schema if pa.types.is_fixed_size_list(f.type)]
    table = table.cast(dataset.with_dimension(vectors[0]) if vectors else dataset.schema)
    if table.num_rows:
        table = table.take(pc.sort_indices(table, sort_keys=[(k, "ascending", "at_start") for k in dataset.key]))
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / PART
    pq.write_table(table, path, compression="zstd", row_group_size=65_536)
    return path


def read_table(dataset: Dataset, *folders: Path, columns: list[str] | None = None) -> pa.Table:
    """The rows of the files in `folders`, in file order; an empty typed table where there are none."""
    files = [f for folder in folders for f in sorted(folder.glob("*.parquet"))]
    if not files:
        return dataset.schema.empty_table().select(columns or dataset.schema.names)
    return pa.concat_tables([pq.ParquetFile(f).read(columns=columns) for f in files])


# --- small files

def read_json(path: Path) -> dict[str, Any] | None:
    """A JSON file's object, None where there is no file."""
    try:
        return json.loads(path.read_text("utf-8"))
    except FileNotFoundError:
        return None
    except json.JSONDecodeError as error:
        raise LakeError(f"{path} is not JSON ({error}); was it edited by hand?") from None


def write_json(path: Path, value: Mapping[str, Any]) -> None:
    """Replace a JSON file in one atomic step."""
    write_atomically(path, lambda p: p.write_text(json.dumps(value, indent=2, sort_keys=True) + "\n", "utf-8"))


def write_atomically(path: Path, write: Any) -> None:
    """Let `write(temporary)` make the file, then rename it over `path`; durable before it is visible."""
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}.{uuid.uuid4().hex}")
    try:
        write(temporary)
        with temporary.open("rb") as file:
            os.fsync(file.fileno())
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)
