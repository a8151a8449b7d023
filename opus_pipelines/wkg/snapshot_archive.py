"""Packs one snapshot of a lake, and what else generation reads, into an archive that Spark copies to its executors.

Each executor fetches the archive once and unpacks it in its own folder. The folder has the layout of a lake.
"""

from collections.abc import Iterable, Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING
from zipfile import ZIP_STORED, ZipFile

from opus_pipelines.core.ids import digest
from opus_pipelines.lake.layout import Lake

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

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
