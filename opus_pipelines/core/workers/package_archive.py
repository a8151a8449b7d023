"""The archive by which Spark brings this package to its executors, so that they need only what the package depends on.

Spark unpacks it in the working directory of each executor, whose Python finds it there first.
"""

import os
from collections.abc import Iterator, Mapping
from importlib.resources import files
from pathlib import Path
from zipfile import ZIP_DEFLATED, ZipFile, ZipInfo

PACKAGES = ("opus_pipelines", "sql")
FOLDER = "opus_package"  # in the working directory of an executor
ARCHIVES, PYTHON_PATH, SAFE_PATH = "spark.archives", "spark.executorEnv.PYTHONPATH", "spark.executorEnv.PYTHONSAFEPATH"
_EPOCH = (1980, 1, 1, 0, 0, 0)  # the first moment that a zip file can state


def write_archive(path: Path) -> Path:
    """Writes the files of this package to an archive and returns its path. The same package gives the same bytes."""
    path.parent.mkdir(parents=True, exist_ok=True)
    made = path.with_name(f"{path.name}.{os.getpid()}")
    with ZipFile(made, "w", ZIP_DEFLATED) as archive:
        for name, file in _files():
            archive.writestr(ZipInfo(name, _EPOCH), file.read_bytes(), ZIP_DEFLATED)
    made.replace(path)
    return path


def executor_conf(archive: Path, conf: Mapping[str, str]) -> dict[str, str]:
    """Returns the Spark settings that bring the archive to executors, added to what `conf` states already."""
    archives = [one for one in (conf.get(ARCHIVES), f"{archive}#{FOLDER}") if one]
    paths = [FOLDER, *(one for one in (conf.get(PYTHON_PATH),) if one)]
    return {ARCHIVES: ",".join(archives), PYTHON_PATH: os.pathsep.join(paths), SAFE_PATH: "1"}


def _files() -> Iterator[tuple[str, Path]]:
    for package in PACKAGES:
        root = Path(str(files(package)))
        for file in sorted(root.rglob("*")):
            if file.is_file() and "__pycache__" not in file.parts:
                yield f"{package}/{file.relative_to(root).as_posix()}", file
