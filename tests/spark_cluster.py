"""A Spark standalone cluster on loopback: a master and workers as processes, from the classes that PySpark ships."""

import contextlib
import itertools
import os
import shlex
import signal
import socket
import subprocess
import sys
import sysconfig
import tempfile
import time
import venv
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pyspark

HOME = Path(pyspark.__file__).parent
HOST = "127.0.0.1"
_DEPLOY = "org.apache.spark.deploy"
_LOADS_CLASSES = """
import sys
from pyspark import SparkContext
from pyspark.sql import SparkSession
made = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false")
session = made.config("spark.driver.extraJavaOptions", sys.argv[2]).getOrCreate()
rows = session.range(1000).selectExpr("id % 10 AS k", "id").mapInArrow(lambda batches: batches, "k long, id long")
rows.write.option("compression", "zstd").parquet(sys.argv[1])
session.read.parquet(sys.argv[1]).createOrReplaceTempView("rows")
for query in (
    "SELECT k, sum(id), count(DISTINCT id), percentile_approx(id, .5) FROM rows GROUP BY k",
    "SELECT *, lead(id) OVER (PARTITION BY k ORDER BY id) AS next FROM rows ORDER BY id",
    "SELECT k, count(*) FROM rows JOIN rows AS other USING (k) GROUP BY k",
):
    session.sql(query).toArrow()
gateway = SparkContext._gateway
session.stop()
gateway.shutdown()
gateway.proc.stdin.close()
gateway.proc.wait()
"""


@dataclass(frozen=True)
class Cluster:
    """The address of the master, and the process of each worker."""

    master: str
    workers: list[subprocess.Popen[bytes]]
    start_worker: Callable[[int], subprocess.Popen[bytes]]

    def pause_worker(self, number: int) -> None:
        """Lets a worker and what it started stand still: its connections stay open and nothing answers."""
        os.killpg(self.workers[number].pid, signal.SIGSTOP)

    def go_on(self, number: int) -> None:
        """Lets a worker that stands still go on."""
        os.killpg(self.workers[number].pid, signal.SIGCONT)

    def replace_worker(self, number: int) -> None:
        """Starts a new worker in place of one that was killed or stands still."""
        if self.workers[number].poll() is None:
            self.kill_worker(number)
        self.workers[number] = self.start_worker(number)

    def kill_worker(self, number: int) -> None:
        """Ends a worker and what it started with SIGKILL, as a machine that is taken away."""
        os.killpg(self.workers[number].pid, signal.SIGKILL)
        self.workers[number].wait(timeout=30)


@contextmanager
def cluster(folder: Path, workers: int = 2, memory: str = "1g", hidden: Sequence[Path] = ()) -> Iterator[Cluster]:
    """Starts a master and workers of one core each; all of them end with the context.

    They and their executors find the folders `hidden` empty, as on machines that share no folder with the driver.
    """
    port = free_port()
    environment = os.environ | {
        "SPARK_HOME": str(HOME),
        "SPARK_LOCAL_IP": HOST,
        "PYSPARK_PYTHON": sys.executable,
        "PYTHONSAFEPATH": "1",
        "SPARK_DAEMON_MEMORY": "256m",
        "SPARK_NO_DAEMONIZE": "1",
    }
    started: list[subprocess.Popen[bytes]] = []

    def start(name: str, *arguments: str) -> subprocess.Popen[bytes]:
        with (folder / f"{name}.log").open("wb") as log:
            command = [*without(hidden), str(HOME / "bin" / "spark-class"), *arguments]
            process = subprocess.Popen(
                command,
                env=environment,
                stdout=log,
                stderr=log,
                cwd=folder,
                start_new_session=True,
            )
        started.append(process)
        return process

    try:
        start("master", f"{_DEPLOY}.master.Master", "--host", HOST, "--port", str(port), "--webui-port", "0")
        _wait(folder / "master.log", "New state: ALIVE", 1)
        address = f"spark://{HOST}:{port}"
        begun = itertools.count(1)

        def start_worker(number: int) -> subprocess.Popen[bytes]:
            where = ["--host", HOST, "--webui-port", "0", "--cores", "1", "--memory", memory]
            work = ["--work-dir", str(folder / f"work-{number}")]
            worker = start(f"worker-{number}", f"{_DEPLOY}.worker.Worker", *where, *work, address)
            _wait(folder / "master.log", "Registering worker", next(begun))
            return worker

        yield Cluster(address, [start_worker(number) for number in range(workers)], start_worker)
    finally:
        for process in reversed(started):
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait(timeout=30)


def class_archive(folder: Path, options: str) -> Path:
    """Writes an archive of the classes that Spark loads, and returns its path. A JVM with the same options, and
    `-XX:SharedArchiveFile` with that path, starts a session with half of the processor time.
    """
    archive = folder / "classes.jsa"
    stated = [str(folder / "rows"), f"{options} -XX:ArchiveClassesAtExit={archive}"]
    environment = os.environ | {"SPARK_LOCAL_IP": HOST, "PYSPARK_PYTHON": sys.executable}
    command = [sys.executable, "-c", _LOADS_CLASSES, *stated]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    assert archive.is_file(), done.stderr[-2000:]
    return archive


def without(hidden: Sequence[Path]) -> list[str]:
    """Returns the beginning of a command that finds these folders empty: it has a view of the disk of its own."""
    if not hidden:
        return []
    hide = "".join(f"mount -t tmpfs none {shlex.quote(str(folder))} && " for folder in hidden)
    return ["unshare", "--map-root-user", "--mount", "sh", "-c", f'{hide}exec "$@"', "sh"]


def can_hide() -> bool:
    """Tells whether this machine lets a process have its own view of the disk."""
    with tempfile.TemporaryDirectory() as folder, contextlib.suppress(FileNotFoundError):
        return subprocess.run([*without([Path(folder)]), "true"], capture_output=True).returncode == 0
    return False


def bare_python(folder: Path) -> Path:
    """Makes a Python that has what this package depends on, and not the package: that of a machine of executors."""
    venv.create(folder, symlinks=True)
    site = sysconfig.get_path("purelib", vars={"base": str(folder), "platbase": str(folder)})
    (Path(site) / "dependencies.pth").write_text(f"{sysconfig.get_path('purelib')}\n")  # no .pth file there is read
    return folder / "bin" / "python"


def free_port() -> int:
    """Returns a port that nobody listens on."""
    with socket.socket() as free:
        free.bind((HOST, 0))
        port: int = free.getsockname()[1]
    return port


def _wait(log: Path, words: str, times: int, seconds: float = 90.0) -> None:
    end = time.monotonic() + seconds
    while (text := log.read_text(errors="replace")).count(words) < times:
        assert time.monotonic() < end, f"{words!r} is not {times} times in {log}: {text[-2000:]}"
        time.sleep(0.3)
