"""A published snapshot as generation reads it: resolved once, loaded part by part on first use.

Packs one snapshot of a lake, and what else generation reads, into an archive that Spark copies to its executors. Each
executor fetches the archive once and unpacks it in its own folder. The folder has the layout of a lake.
"""

from collections.abc import Iterable, Iterator
from functools import cached_property
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any
from zipfile import ZIP_STORED, ZipFile

import pyarrow as pa

from opus_pipelines.core.ids import digest
from opus_pipelines.core.schemas import (
    ALIASES,
    CASES,
    EMBEDDINGS,
    IMPLEMENTATION_VECTORS,
    NEEDS,
    PROCEDURE_VECTORS,
    PROCEDURES,
    TASK_IMPLEMENTATIONS,
    VARIANTS,
    WAITS,
    Dataset,
)
from opus_pipelines.lake.damage import require_sound
from opus_pipelines.lake.layout import Lake, dataset_folder, read_table
from opus_pipelines.language.embedding.index import VectorIndex
from opus_pipelines.language.embedding.texts import case_texts, contexts_of, requests_of
from opus_pipelines.wkg import graph

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


CASE_INDEX = "case_index"  # folder of a snapshot


def _table(dataset: Dataset) -> "cached_property[pa.Table]":
    """Returns a property of a snapshot: one of its datasets, read at its first use."""
    return cached_property(lambda snapshot: read_table(dataset, dataset_folder(snapshot.folder, dataset)))


class Snapshot:
    """One immutable snapshot of the WKG; each of its tables is read when it is first used."""

    def __init__(self, snapshot: str, folder: Path, manifest: dict[str, Any]) -> None:
        self.id = snapshot
        self.folder = folder
        self.manifest = manifest

    @classmethod
    def open(cls, lake: Lake, snapshot_id: str | None = None) -> "Snapshot":
        """The named snapshot, or the current one; raises LakeError where there is none, or where it is damaged."""
        snapshot = snapshot_id or lake.required_snapshot()
        require_sound(lake, snapshot)
        return cls(snapshot, lake.snapshot_folder(snapshot), lake.manifest(snapshot))

    @property
    def lambda_(self) -> float:
        """λ of LWM (2); 1 in a snapshot without edges, where it says nothing."""
        return self.manifest["lambda"] or 1.0

    @cached_property
    def graph(self) -> graph.WorkGraph:
        """Tasks, edges and execution modes."""
        return graph.load(self.folder, self.lambda_, self.manifest["gamma_unit"])

    cases = _table(CASES)
    needs = _table(NEEDS)
    variants = _table(VARIANTS)
    waits = _table(WAITS)  # empty in a snapshot of a version that did not keep waiting times
    execution_modes = _table(TASK_IMPLEMENTATIONS)
    aliases = _table(ALIASES)
    embeddings = _table(EMBEDDINGS)
    implementation_vectors = _table(IMPLEMENTATION_VECTORS)
    procedures = _table(PROCEDURES)
    procedure_vectors = _table(PROCEDURE_VECTORS)

    @cached_property
    def index(self) -> VectorIndex:
        """The tasks' FAISS index."""
        return VectorIndex.load(self.folder / "index")

    @property
    def case_index(self) -> VectorIndex | None:
        """The FAISS index of the distinct vectors of cases, where they are so many that the night made one."""
        folder = self.folder / CASE_INDEX
        return VectorIndex.load(folder) if folder.is_dir() else None

    @cached_property
    def requests(self) -> dict[str, str]:
        """The request of each case with a text, by implementation id, as its source was read."""
        return requests_of(self._sources)

    @cached_property
    def contexts(self) -> dict[str, str]:
        """The process context of each case that has one, by implementation id, as its source was read."""
        return contexts_of(self._sources)

    @property
    def texts(self) -> Iterator[tuple[str, str | None, str | None, str | None]]:
        """The id, title, description and process context of each case, as its source was read."""
        return case_texts(self._sources)

    @cached_property
    def by_activities(self) -> frozenset[str]:
        """The sources whose rule [success] decides the outcome of a case by its activities."""
        return frozenset(self.manifest["inputs"].get("outcomes_by_activities", ()))  # older snapshots say nothing

    @property
    def _sources(self) -> list[Path]:
        root = self.folder.parents[1]
        return [root / source["folder"] for source in self.manifest["inputs"]["sources"]]


# Executors that start later fetch the archive, too, whatever they are to do: it lies there as long as this process
# lives, as Spark's own temporary files do.
_brought: set[tuple[str, str]] = set()  # applications of Spark, and names of archives
_folder: list[TemporaryDirectory[str]] = []


def brought(session: "SparkSession", lake: Lake, snapshot: str) -> str:
    """Lets Spark bring a snapshot to its executors, and returns the name by which they find its folder."""
    files = _files(_folders(lake, snapshot))
    facts = ((file, file.stat()) for file in files)  # without the vectors of texts, which every contract adds to
    name = f"opus-snapshot-{digest([(str(file), stat.st_size, stat.st_mtime_ns) for file, stat in facts])[:12]}"
    application = session.sparkContext.applicationId
    if (application, name) not in _brought:
        if not _folder:
            _folder.append(TemporaryDirectory(prefix="opus-"))
        archive = Path(_folder[0].name) / f"{name}.zip"
        write_archive(lake, snapshot, archive)
        session.sparkContext.addArchive(f"{archive.as_uri()}#{name}")
        _brought.add((application, name))
    return name


def write_archive(lake: Lake, snapshot: str, path: Path) -> None:
    """Writes the files that generation reads from a snapshot of a lake to an archive.

    They are packed already, so that the archive only holds them together.
    """
    with ZipFile(path, "w", ZIP_STORED) as archive:
        for file in _files([*_folders(lake, snapshot), lake.kept / "embeddings"]):
            archive.write(file, file.relative_to(lake.root).as_posix())


def _folders(lake: Lake, snapshot: str) -> Iterator[Path]:
    """The snapshot, the sources that it was made of, and the trained models."""
    yield lake.snapshot_folder(snapshot)
    for source in lake.manifest(snapshot)["inputs"]["sources"]:
        yield lake.root / source["folder"]
    yield lake.root / "models"


def _files(folders: Iterable[Path]) -> list[Path]:
    return [file for folder in folders for file in sorted(folder.rglob("*")) if file.is_file()]
