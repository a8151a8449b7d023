#!/usr/bin/env python3
"""Measures what a lake in an object store costs: seconds, CPU seconds and requests of publishing and of reading.

    .venv/bin/python benchmarks/object_store.py build/lake [--files 1000 10000] [--contracts 100 200 400]

The store is the S3 server of the tests in a process of its own on this machine, so its times are those of a slow store
without a network. The same publication on the local disk, a copy that is synced and renamed, is measured for
comparison. `--files` adds made lakes of so many files of a kilobyte. `--contracts` publishes results of so many
contracts one after the other, 20 files of a kilobyte each, as runs of their own and as one command. CPU seconds are
those of the client alone.
"""

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))

from measuring import machine

from opus_pipelines.core.settings import ObjectStore
from opus_pipelines.lake.atomic_files import move_into_place
from opus_pipelines.lake.layout import Lake
from opus_pipelines.lake.object_store.files import scan
from opus_pipelines.lake.object_store.folders import local_root

ROOT = Path(__file__).resolve().parents[1]
FILES_OF_CONTRACT = 20
SERVER = """
import sys
from tests.object_store_server import Server
server = Server()
server.make_bucket("bench")
print(server.endpoint, flush=True)
for line in sys.stdin:
    print(len(server.requests), flush=True)
"""
PRIVATE = shutil.ignore_patterns(".dagster", "mlflow", ".lock", ".staging", ".origin.json", ".object_store")


class Store:
    """The server, and the count of its requests."""

    def __init__(self, process: "subprocess.Popen[str]") -> None:
        self._process = process
        self.endpoint = self._line()

    def requests(self) -> int:
        """Returns how many requests the server has had."""
        assert self._process.stdin is not None
        self._process.stdin.write("\n")
        self._process.stdin.flush()
        return int(self._line())

    def _line(self) -> str:
        assert self._process.stdout is not None
        return self._process.stdout.readline().strip()


@contextmanager
def serving() -> Iterator[Store]:
    """Runs the server in a process of its own."""
    pipes: dict[str, Any] = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL}
    with subprocess.Popen([sys.executable, "-c", SERVER], cwd=ROOT, text=True, **pipes) as process:
        try:
            yield Store(process)
        finally:
            process.terminate()


def measured(store: Store, what: str, action: Callable[[], object]) -> None:
    """Prints one line of the table."""
    before, began, cpu = store.requests(), time.monotonic(), time.process_time()
    action()
    seconds, cpu_seconds = time.monotonic() - began, time.process_time() - cpu
    print(f"| {what} | {seconds:.2f} | {cpu_seconds:.2f} | {store.requests() - before} |", flush=True)


def copied(lake: Path, to: Path) -> None:
    """Publishes a copy of a lake on the local disk as a folder is published."""
    shutil.copytree(lake, to / "staged", ignore=PRIVATE)
    move_into_place(to / "staged", to / "lake")


def run(store: Store, lake: Path, name: str, work: Path) -> None:
    """Prints the table of one lake."""
    files = scan(lake)
    size = sum(size for size, _ in files.values()) / 1e6
    print(
        f"\n{name}: {len(files):,} files, {size:.1f} MB\n\n"
        "| what | s | CPU s | requests |\n| --- | ---: | ---: | ---: |"
    )
    url = f"s3://bench/{name}"
    one, two = (ObjectStore(endpoint=store.endpoint, working_folder=work / name / place) for place in ("one", "two"))
    root = local_root(url, one)
    shutil.copytree(lake, root, ignore=PRIVATE, dirs_exist_ok=True)

    def publish() -> None:
        with Lake(root).lock():
            pass

    def change() -> None:
        with Lake(root).lock():
            Lake(root).replace_json(Lake(root).kept / "note.json", {"at": time.time()})

    (work / name / "disk").mkdir()
    measured(store, "the whole lake published on the local disk", lambda: copied(lake, work / name / "disk"))
    measured(store, "the whole lake published in the store", publish)
    measured(store, "the lock taken and given back, nothing new", publish)
    measured(store, "one small file replaced and published", change)
    measured(store, "first read on another machine", lambda: local_root(url, two, reads_only=True))
    measured(store, "next read, nothing new", lambda: local_root(url, two, reads_only=True))
    change()
    measured(store, "next read after one small file changed", lambda: local_root(url, two, reads_only=True))


def contracts(store: Store, number: int, work: Path) -> None:
    """Prints what it costs to publish so many results, each run for itself and all as one command."""
    print(f"\n{number:,} contracts\n\n| what | s | CPU s | requests |\n| --- | ---: | ---: | ---: |")
    for name in ("alone", "together"):
        settings = ObjectStore(endpoint=store.endpoint, working_folder=work / f"{name}-{number}")
        lake = Lake(local_root(f"s3://bench/{name}-{number}", settings))

        def publish(lake: Lake = lake) -> None:
            for contract in range(number):
                with lake.lock(), lake.staging() as staged:
                    made = made_lake(staged, FILES_OF_CONTRACT)
                    lake.publish(made / "reports", lake.root / "workflows" / f"contract={contract}")

        def together(lake: Lake = lake, publish: Callable[[], None] = publish) -> None:
            with lake.batch():
                publish()

        measured(store, f"published {name}", publish if name == "alone" else together)


def made_lake(folder: Path, files: int) -> Path:
    """Writes a lake of so many files of a kilobyte, ten in each folder."""
    for number in range(files):
        place = folder / "reports" / f"part={number // 10}"
        place.mkdir(parents=True, exist_ok=True)
        (place / f"{number % 10}.bin").write_bytes(os.urandom(1024))
    return folder


def main() -> None:
    """Measures the stated lake and the made ones."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("lake", type=Path, nargs="?")
    parser.add_argument("--files", type=int, nargs="*", default=[])
    parser.add_argument("--contracts", type=int, nargs="*", default=[])
    options = parser.parse_args()
    os.environ |= {"AWS_ACCESS_KEY_ID": "bench", "AWS_SECRET_ACCESS_KEY": "bench", "AWS_REGION": "us-east-1"}
    print(machine())
    with serving() as store, tempfile.TemporaryDirectory(prefix="opus-store-") as folder:
        work = Path(folder)
        if options.lake is not None:
            run(store, options.lake.absolute(), "stated", work)
        for files in options.files:
            run(store, made_lake(work / f"made-{files}", files), f"files-{files}", work)
        for number in options.contracts:
            contracts(store, number, work)


if __name__ == "__main__":
    main()
