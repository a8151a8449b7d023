"""Defines where datasets lie in the lake, and how they are published: written apart, renamed, then pointed to.

Nothing published is ever changed. Pointers and a few kept files are replaced, each in one rename. A reader resolves a
pointer once and stays with what it names. Every published folder has a list of its files with their hashes
(`lake.file_lists`), by which a reader finds damage.
"""

import logging
import re
import shutil
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from opus_pipelines.core.errors import LakeError
from opus_pipelines.core.schemas import SOURCES, Dataset
from opus_pipelines.lake import file_lists, version
from opus_pipelines.lake.atomic_files import (
    full_disk_named,
    move_into_place,
    opened_below,
    read_json,
    sweep,
    write_atomically,
    write_json,
)
from opus_pipelines.lake.lock import exclusive, require_kept
from opus_pipelines.lake.object_store.folders import batch_to_store, published_to_store

if TYPE_CHECKING:
    import pyarrow as pa  # imported where tables are read or written: a command that only reads views does neither

__all__ = ["PART", "Lake", "dataset_folder", "read_json", "read_table", "slug", "table_of", "unslug"]
__all__ += ["write_atomically", "write_json", "write_table"]
PART = "part-00000.parquet"
_NAME = re.compile("[A-Za-z0-9_-]{1,100}")  # of a snapshot
_SECONDS_A_DAY = 86_400
logger = logging.getLogger("opus_pipelines.lake.layout")


def slug(text: str) -> str:
    """Encodes `text` as one path component: every byte outside A-Za-z0-9- becomes _ and two hex digits.

    `unslug` reverses it.
    """
    return re.sub(rb"[^A-Za-z0-9-]", lambda m: b"_%02x" % m[0][0], text.encode()).decode()


def unslug(text: str) -> str:
    """Decodes a slug."""
    return re.sub(rb"_([0-9a-f]{2})", lambda m: bytes([int(m[1], 16)]), text.encode()).decode()


def dataset_folder(snapshot_folder: Path, dataset: Dataset) -> Path:
    """Returns the folder of a dataset inside the folder of a snapshot of the WKG."""
    return snapshot_folder / dataset.name.removeprefix("wkg/")


class Lake:
    """Gives the paths and pointers of one lake folder, and publishes datasets in it."""

    def __init__(self, root: Path | str) -> None:
        self.root = Path(root).absolute()

    # --- paths

    def folder(self, dataset: Dataset, **partition: str) -> Path:
        """Returns the folder of a dataset, or of one of its partitions. It slugs the partition values.

        Raises LakeError for a partition column that the dataset does not have.
        """
        if set(partition) - set(dataset.partitions):
            raise LakeError(f"{dataset.name} has no partitions {sorted(set(partition) - set(dataset.partitions))}")
        return self.root.joinpath(
            dataset.name, *(f"{k}={slug(partition[k])}" for k in dataset.partitions if k in partition)
        )

    def snapshot_folder(self, snapshot: str) -> Path:
        """Returns the folder of a snapshot of the WKG."""
        return self.root / "wkg" / snapshot

    @property
    def kept(self) -> Path:
        """The folder of the inputs that outlive snapshots: the id ledger, lambda and the embedding cache."""
        return self.root / "wkg" / "kept"

    @property
    def dagster_home(self) -> Path:
        """The folder of Dagster's own state."""
        return self.root / ".dagster"

    # --- pointers

    def current_snapshot(self) -> str | None:
        """Returns the id of the published snapshot, or None before the first rebuild.

        Raises LakeError where a newer version of this package wrote the lake.
        """
        version.format_of(self.root)
        return self.snapshot_pointer().get("snapshot")

    def snapshot_pointer(self) -> dict[str, Any]:
        """Returns what `wkg/current.json` says; nothing before the first rebuild.

        Raises LakeError where it is damaged.
        """
        path = self.root / "wkg" / "current.json"
        file_lists.require_sound_file(path)
        pointer = read_json(path) or {}
        name = pointer.get("snapshot", "-")
        if not isinstance(name, str) or not _NAME.fullmatch(name):
            raise LakeError(f"{path} names no snapshot; {file_lists.REPAIR}")
        return pointer

    def required_snapshot(self) -> str:
        """Returns the id of the published snapshot; raises LakeError before the first rebuild."""
        snapshot = self.current_snapshot()
        if snapshot is None:
            raise LakeError(f"{self.root} has no snapshot yet; `opus rebuild` makes one")
        return snapshot

    def rolled_back_from(self) -> list[str]:
        """Returns the snapshots that a person rolled back from; none where the newest is current."""
        return list(self.snapshot_pointer().get("rolled_back_from", ()))

    def manifest(self, snapshot: str) -> dict[str, Any]:
        """Returns the manifest of a snapshot. Raises LakeError where the lake has no such snapshot."""
        path = self.snapshot_folder(snapshot) / "manifest.json"
        manifest = read_json(path)
        if manifest is None:
            raise LakeError(f"snapshot {snapshot} is not in {self.root}; `opus rebuild` makes one")
        if not _names_parts(manifest):
            raise LakeError(f"{path} is no manifest of a snapshot; {file_lists.REPAIR}")
        return manifest

    def pointer_path(self, client: str, contract: str) -> Path:
        """Returns the path of the file that names the current result of a contract."""
        return self.root / "workflows" / "current" / f"{slug(client)}__{slug(contract)}.json"

    def result_pointer(self, client: str, contract: str) -> dict[str, Any] | None:
        """Returns the pointer of a contract, None where it has no result, or where the pointer is damaged."""
        return file_lists.sound_pointer(self.pointer_path(client, contract))

    def results(self) -> list[dict[str, Any]]:
        """Returns the pointer of every contract: client, contract, result, snapshot, model_version, published_at.

        A damaged pointer is left out: `lake.damage` names it.
        """
        return [pointer for file in self.pointers() if (pointer := file_lists.sound_pointer(file)) is not None]

    def pointers(self) -> list[Path]:
        """Returns the files that name the current results of contracts."""
        return [f for f in sorted((self.root / "workflows" / "current").glob("*.json")) if f.name != file_lists.NAME]

    # --- writing

    @property
    def scratch(self) -> Path:
        """The folder for unpublished files: on the lake's file system, and outside every table's tree."""
        return self.root / ".staging"

    @property
    def staged(self) -> Path:
        """The folder of what the steps of a rebuild hand on to later steps and runs, until it is published.

        Unlike `scratch` it outlives the run that wrote to it, so that a later run can go on from there.
        """
        return self.root / ".staged"

    @contextmanager
    def staging(self) -> Iterator[Path]:
        """Opens a new folder in `scratch`, and removes it afterwards.

        Raises LakeError where the disk is full, and where another writer took over the lease of an object store.
        """
        require_kept(self.root)
        with opened_below(self.scratch) as folder:
            yield folder

    @contextmanager
    def staging_without_lock(self) -> Iterator[Path]:
        """Opens a new folder as `staging` does, for a writer that does not hold the lock.

        The end of a locked run removes `scratch`, so this folder is elsewhere. Removes what a writer that was killed
        left there more than a day ago. Raises LakeError where the disk is full.
        """
        place = self.root / ".unlocked"
        with opened_below(place) as folder:
            yield folder
        for left in place.iterdir():
            with suppress(FileNotFoundError):
                if time.time() - left.stat().st_mtime > _SECONDS_A_DAY:
                    shutil.rmtree(left, ignore_errors=True)

    def publish(self, staged: Path, final: Path) -> None:
        """Moves a finished folder durably to where it is read, with a list of its files.

        Leaves a folder that is already there as it is.
        """
        if not final.exists():
            file_lists.list_files(staged)
            move_into_place(staged, final)

    def publish_file(self, write: Callable[[Path], Any], final: Path, copy: bool = False) -> None:
        """Adds one file durably to a published folder and to its list; `write` writes it. `copy`: as in `replace`.

        Raises LakeError where a file of that name is there.
        """
        if final.exists():
            raise LakeError(f"{final} is there already; nothing published is ever changed")
        self.replace(final, write, copy)

    def replace(self, final: Path, write: Callable[[Path], Any], copy: bool = True) -> None:
        """Replaces or adds a file and its entry in the list of its folder; `write` writes the new content.

        With `copy`, a copy is kept beside it, from which `opus verify --repair` restores the file. A process that is
        killed in between leaves the old or the new file, and a list that fits both.
        """
        with self.staging() as staged:
            file_lists.replace(staged, final, write, copy)

    def replace_json(self, final: Path, value: Mapping[str, Any], copy: bool = True) -> None:
        """Replaces a JSON file as `replace` does."""
        self.replace(final, lambda path: path.write_text(file_lists.json_text(value), "utf-8"), copy)

    def withdraw(self, file: Path) -> None:
        """Removes a file with its entry in the list of its folder and its copy."""
        with self.staging() as staged:
            file_lists.withdraw(staged, file)

    def remove(self, folder: Path) -> None:
        """Removes a published folder in one step, so that no reader sees half of it.

        Removes its parent too where that is then empty.
        """
        if not folder.exists():
            return
        with self.staging() as trash:
            folder.rename(trash / folder.name)
        if not any(folder.parent.iterdir()):
            folder.parent.rmdir()

    def ensure_empty(self) -> None:
        """Writes an empty typed file for every dataset, so that no view fails, and the version file `lake.json`."""
        if (self.root / ".empty").is_dir() and version.has_these_columns(self.root):
            return
        version.write_empty(self.root / ".empty")
        file_lists.list_files(self.root / ".empty")
        version.stamp(self.root)

    @contextmanager
    def lock(self, run: str = "", erase: bool = False) -> Iterator[None]:
        """Holds the right to write to the lake, and first removes what killed runs left in it.

        A lake in an object store is brought up to date first, and published at the end; `erase` removes from the store
        at once what the lake no longer has.

        `run` names a run of several processes: where another process of the same run holds the lock, this one may write
        too, and removes nothing. Raises LakeHeld where another live run holds the lock, and LakeError where the lake is
        of a newer format. The kernel releases the lock of a process that died.
        """
        self.root.mkdir(parents=True, exist_ok=True)
        with exclusive(self.root / ".lock", self.root, run) as is_holder:
            if not is_holder:
                yield
                return
            with published_to_store(self.root, erase):
                self._take_over()
                try:
                    yield
                finally:
                    shutil.rmtree(self.scratch, ignore_errors=True)

    def batch(self) -> AbstractContextManager[None]:
        """Returns a context in which the runs of this process take `lock` one after the other; see `batch_to_store`."""
        return batch_to_store(self.root)

    def _take_over(self) -> None:
        lake_format = version.format_of(self.root)
        self._clean_up()
        if lake_format is None:
            version.stamp(self.root, with_columns=False)
        elif lake_format < version.FORMAT:
            logger.info(
                "%s is of format %s, of an older version: taken over as format %s",
                self.root,
                lake_format,
                version.FORMAT,
            )
            self.ensure_empty()

    def _clean_up(self) -> None:
        """Removes the scratch folder and the temporary files that killed writers left in the lake."""
        shutil.rmtree(self.scratch, ignore_errors=True)
        caches = [f for f in (self.kept / "embeddings").glob("*") if f.is_dir()]
        replaced = ("", ".empty", "wkg", "wkg/kept", "workflows/current", SOURCES.name, ".dagster")
        for folder in (*(self.root / name for name in replaced), *caches):
            sweep(folder)


def _names_parts(manifest: Mapping[str, Any]) -> bool:
    """Tells whether a manifest names the parts of the lake that its snapshot was made of."""
    inputs = manifest.get("inputs")
    sources = inputs.get("sources") if isinstance(inputs, dict) else None
    if not isinstance(sources, list) or not isinstance(manifest.get("published_at", ""), str):
        return False
    return all(
        isinstance(source, dict)
        and isinstance(source.get("source"), str)
        and all(isinstance(value, str) and file_lists.is_inside(value) for value in source.values())
        for source in sources
    )


# --- tables


def table_of(dataset: Dataset, rows: Iterable[Mapping[str, Any]], schema: "pa.Schema | None" = None) -> "pa.Table":
    """Returns rows as a table of the dataset's schema; missing columns become NULL.

    Raises LakeError for columns that the dataset does not have.
    """
    import pyarrow as pa

    rows = list(rows)
    schema = schema or dataset.schema
    unknown = set[str]().union(*rows) - set(schema.names)
    if unknown:
        raise LakeError(f"{dataset.name} has no columns {sorted(unknown)}")
    return pa.Table.from_pylist(rows, schema=schema)


def write_table(dataset: Dataset, table: "pa.Table", folder: Path, name: str = PART) -> Path:
    """Writes one sorted Parquet file into `folder`, cast to the dataset's schema, and returns its path.

    It makes the folder where it is missing. The write is not atomic, so callers write to a staging folder. Raises
    LakeError where the disk is full.
    """
    import pyarrow.compute as pc
    import pyarrow.parquet as pq

    if table.schema.names != dataset.schema.names:
        table = table.select(dataset.schema.names)
    table = table.cast(dataset.with_dimension_of(table.schema))
    if table.num_rows:
        table = table.take(pc.sort_indices(table, sort_keys=[(k, "ascending", "at_start") for k in dataset.key]))
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / name
    with full_disk_named(folder):
        pq.write_table(table, path, compression="zstd", row_group_size=65_536)
    return path


def read_table(dataset: Dataset, *folders: Path, columns: list[str] | None = None) -> "pa.Table":
    """Reads the rows of all Parquet files in `folders`, in file order, with the columns that this version declares.

    A column that an older file lacks becomes NULL; a column that it has besides is left out. Returns an empty typed
    table where there are no files.
    """
    import pyarrow as pa

    # not `Schema.empty_table`, which makes arrays of Python lists and so imports pandas
    wanted = columns or dataset.schema.names
    tables = [_read(dataset, file, wanted) for folder in folders for file in sorted(folder.glob("*.parquet"))]
    return pa.concat_tables(tables) if tables else pa.Table.from_batches([], dataset.schema).select(wanted)


def _read(dataset: Dataset, path: Path, columns: list[str]) -> "pa.Table":
    import pyarrow as pa
    import pyarrow.parquet as pq

    file = pq.ParquetFile(path)
    present = [name for name in columns if name in file.schema_arrow.names]
    table = file.read(columns=present)
    fields = [_with_file_dimension(dataset.schema.field(name), table.schema) for name in columns]
    for field in fields:
        if field.name not in present:
            table = table.append_column(field, pa.nulls(table.num_rows, field.type))
    return table.select(columns).cast(pa.schema(fields))


def _with_file_dimension(field: "pa.Field", file_schema: "pa.Schema") -> "pa.Field":
    """Returns the declared field, but with the file's vector length, which depends on the encoder."""
    same = field.name in file_schema.names and hasattr(field.type, "list_size")
    return file_schema.field(field.name) if same else field
