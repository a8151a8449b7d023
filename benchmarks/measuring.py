"""What the benchmarks of whole runs share: real logs laid out as sources, and a child's seconds and peak memory."""

import json
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

ZONES = {
    "real_start_end_BPIC_2017_W.csv.gz": "Europe/Amsterdam",
    "eventdataR_hospital_billing.csv.gz": "Europe/Amsterdam",
    "eventdataR_traffic_fines.csv.gz": "Europe/Rome",
}
PAGE = 4096


@dataclass(frozen=True)
class Measured:
    """The cost of one child process.

    It has wall seconds, CPU seconds of it and its children, and the peak resident bytes of all of them together (four
    samples a second).
    """

    seconds: float
    cpu_seconds: float
    peak_bytes: int


def lay_out(file: Path, history: Path, name: str | None = None) -> Path:
    """A log or a tar archive as a source of its own; returns the source's folder. Archives are unpacked."""
    source = history / (name or file.name.split(".")[0])
    source.mkdir(parents=True)
    if file.name.endswith(".tar.gz"):
        with tarfile.open(file) as packed:
            packed.extractall(source, filter="data")
    else:
        shutil.copyfile(file, source / file.name)
    zone = f'timezone = "{ZONES[file.name]}"\n' if file.name in ZONES else ""
    (source / "source.toml").write_text(f'industry = "{source.name}"\n{zone}')
    return source


def opus(work: Path, *arguments: str) -> Measured:
    """Runs `opus --lake lake ...` in `work`.

    Exit code 1 (a file was rejected whole) is a result, any other a failure.
    """
    command = [sys.executable, "-m", "opus_pipelines.cli.main", "--lake", "lake", *arguments]
    started, peak, cpu = time.monotonic(), 0, 0.0
    process = subprocess.Popen(command, cwd=work, stderr=(work / "log.txt").open("ab"))
    while process.poll() is None:
        resident, used = _of_tree(process.pid)
        peak, cpu = max(peak, resident), max(cpu, used)
        time.sleep(0.25)
    if process.returncode not in (0, 1):
        sys.exit(f"opus {' '.join(arguments)} ended with {process.returncode}; see {work / 'log.txt'}")
    return Measured(time.monotonic() - started, cpu, peak)


def manifest(work: Path) -> dict[str, Any]:
    """The current snapshot's."""
    pointer = json.loads((work / "lake" / "wkg" / "current.json").read_text())
    found: dict[str, Any] = json.loads((work / "lake" / "wkg" / pointer["snapshot"] / "manifest.json").read_text())
    return found


def query(work: Path, sql: str) -> list[dict[str, Any]]:
    """Rows of SQL over the lake's views."""
    command = [sys.executable, "-m", "opus_pipelines.cli.main", "--lake", "lake", "query", sql, "--format", "json"]
    rows: list[dict[str, Any]] = json.loads(
        subprocess.run(command, cwd=work, check=True, stdout=subprocess.PIPE, text=True).stdout
    )
    return rows


class Family:
    """Measures this process and all its descendants while the context lasts, four times a second.

    Descendants that ended count too, killed or not.

    `cpu_seconds`: spent since the start; `largest_bytes`: the most that a descendant had resident, the JVM left out.
    """

    def __init__(self) -> None:
        self.largest_bytes = 0
        self._ticks: dict[tuple[int, str], int] = {}
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)

    def __enter__(self) -> "Family":
        self._look(os.getpid())
        self._before = sum(self._ticks.values())
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()

    @property
    def cpu_seconds(self) -> float:
        """The CPU seconds of the family since the start of the context."""
        self._look(os.getpid())
        return (sum(self._ticks.values()) - self._before) / os.sysconf("SC_CLK_TCK")

    def _watch(self) -> None:
        while not self._over.wait(0.25):
            self._look(os.getpid())

    def _look(self, pid: int) -> None:
        try:
            command, _, rest = Path(f"/proc/{pid}/stat").read_text().rpartition(")")
            fields = rest.split()
            resident = int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * PAGE
            children = [
                int(c) for task in Path(f"/proc/{pid}/task").iterdir() for c in (task / "children").read_text().split()
            ]
        except (FileNotFoundError, ProcessLookupError):
            return
        self._ticks[pid, fields[19]] = int(fields[11]) + int(fields[12])  # by pid and start: a pid may be given twice
        if pid != os.getpid() and not command.endswith("(java"):
            self.largest_bytes = max(self.largest_bytes, resident)
        for child in children:
            self._look(child)


# Linux hands on the peak memory of a process to what it starts (`ru_maxrss` survives `exec`). A large benchmark would
# lend its own peak to each small program. This launcher lends no more than its own few MiB.
_LAUNCHER = """
import json, os, sys, time
began = time.perf_counter()
pid = os.posix_spawnp(sys.argv[2], sys.argv[2:], os.environ)
_, status, used = os.wait4(pid, 0)
wall = time.perf_counter() - began
spent = {"wall_s": wall, "cpu_s": used.ru_utime + used.ru_stime, "peak_mib": used.ru_maxrss >> 10}
with open(sys.argv[1], "w") as file:
    json.dump(spent, file)
sys.exit(abs(os.waitstatus_to_exitcode(status)))
"""


def child(
    command: Sequence[str | Path], cwd: Path | None = None, environment: Mapping[str, str] | None = None
) -> tuple[str, dict[str, float]]:
    """Returns what a program printed, and its `wall_s`, `cpu_s` and `peak_mib`, its start included.

    `cpu_s` contains the processes that it started and waited for; `peak_mib` is that of the largest of them. Ends this
    program if the other one fails.
    """
    with tempfile.TemporaryDirectory(prefix="opus-child-") as folder:
        report = Path(folder) / "spent.json"
        done = subprocess.run(
            [sys.executable, "-I", "-S", "-c", _LAUNCHER, report, *command],
            capture_output=True, text=True, check=False, cwd=cwd, env=environment,
        )  # fmt: skip
        if done.returncode:
            sys.exit(f"{' '.join(map(str, command))[:200]} ended with {done.returncode}: {done.stderr.strip()[-800:]}")
        spent: dict[str, float] = json.loads(report.read_text())
    return done.stdout, {name: round(value, 4) for name, value in spent.items()}


def own_peak_mib() -> int:
    """Returns the most memory that this process had resident since its program began."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM")) >> 10


def machine() -> str:
    """What a figure was taken on."""
    memory = int(Path("/proc/meminfo").read_text().split()[1]) >> 20
    lines = Path("/proc/cpuinfo").read_text().splitlines()
    model = next((line.partition(": ")[2] for line in lines if line.startswith("model name")), "CPU unknown")
    return f"{model}, {len(os.sched_getaffinity(0))} cores, {memory} GB, Python {sys.version.split()[0]}"


def taken_on() -> dict[str, Any]:
    """Returns the machine, the day, and how many programs ran on it on average in the last minutes."""
    load = [round(figure, 2) for figure in os.getloadavg()]
    return {"machine": machine(), "date": datetime.now(UTC).date().isoformat(), "load": load}


def _of_tree(pid: int) -> tuple[int, float]:
    """Resident bytes and CPU seconds of a process and all its descendants; nothing of one that is gone."""
    try:
        own = int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * PAGE
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        children = [
            int(c) for task in Path(f"/proc/{pid}/task").iterdir() for c in (task / "children").read_text().split()
        ]
    except (FileNotFoundError, ProcessLookupError):
        return 0, 0.0
    cpu = sum(int(fields[place]) for place in (11, 12, 13, 14)) / 100
    below = [_of_tree(child) for child in children]
    return own + sum(b for b, _ in below), cpu + sum(c for _, c in below)
