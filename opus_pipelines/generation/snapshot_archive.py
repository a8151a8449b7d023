"""The archive by which Spark brings to its executors what generation reads of a lake: one snapshot and what it names.

Each executor fetches it once, and unpacks it in its own folder; there it looks like a lake.
"""

from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING
from zipfile import ZIP_STORED, ZipFile

from opus_pipelines.core.ids import digest
from opus_pipelines.generation.chunks import GenerationSetup
from opus_pipelines.lake.layout import Lake

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# Executors that start later fetch the archive, too, whatever they are to do: it lies there as long as this process
# lives, as Spark's own temporary files do. Names by the application of Spark, the lake and the snapshot.
_brought: dict[tuple[str, Path, str], str] = {}
_folder: list[TemporaryDirectory[str]] = []


def brought(session: "SparkSession", setup: GenerationSetup) -> str:
    """Lets Spark bring the snapshot of a setup to its executors, and returns the name by which they find its folder."""
    key = session.sparkContext.applicationId, setup.lake, setup.snapshot
    if key not in _brought:
        if not _folder:
            _folder.append(TemporaryDirectory(prefix="opus-"))
        name = f"opus-snapshot-{digest(*map(str, key))[:12]}"
        archive = write_archive(setup.lake, setup.snapshot, Path(_folder[0].name) / f"{name}.zip")
        session.sparkContext.addArchive(f"{archive}#{name}")
        _brought[key] = name
    return _brought[key]


def write_archive(root: Path, snapshot: str, path: Path) -> Path:
    """Writes the files that generation reads from a snapshot of a lake to an archive, and returns its path.

    They are packed already, so that the archive only holds them together.
    """
    with ZipFile(path, "w", ZIP_STORED) as archive:
        for folder in _folders(Lake(root), snapshot):
            for file in sorted(file for file in folder.rglob("*") if file.is_file()):
                archive.write(file, file.relative_to(root).as_posix())
    return path


def _folders(lake: Lake, snapshot: str) -> Iterator[Path]:
    """The snapshot, the sources that it was made of, the trained models, and the vectors of texts."""
    yield lake.snapshot_folder(snapshot)
    for source in lake.manifest(snapshot)["inputs"]["sources"]:
        yield lake.root / source["folder"]
    yield lake.root / "models"
    yield lake.kept / "embeddings"
