"""How reading history grows: with the rows of one CSV file, and with the number of tiny files.

Each size is read by a process of its own. The table has seconds of processor time, seconds of wall time, the peak of
the process's own memory, and the peak with the pages of files that it maps, which the kernel takes back when memory is
short; below it stand the fitted exponents over size (1: linear, 0: flat).

    PYTHONPATH=. python benchmarks/reading.py --rows 200000 800000 3200000 --files 5000 20000
"""

import argparse
import math
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
from measuring import own_peak_mib

EVENTS = 5  # of a case
HEAD = "case_id,activity,time,resource,amount\n"


def write(kind: str, size: int, folder: Path) -> int:
    """Writes a source of that many rows in one file, or of that many files. Returns its bytes."""
    folder.mkdir(parents=True)
    if kind == "rows":
        with (folder / "log.csv").open("w") as file:
            file.write(HEAD)
            for row in range(size):
                file.write(line(row // EVENTS, row % EVENTS))
    else:
        for case in range(size):
            (folder / f"{case}.csv").write_text(HEAD + "".join(line(case, step) for step in range(2)))
    return sum(path.stat().st_size for path in folder.iterdir())


def line(case: int, step: int) -> str:
    """Returns one event."""
    return f"c{case},Step {step},2026-01-01T0{step}:00:00Z,person {case % 50},{case % 97}.5\n"


def measure(kind: str, size: int) -> None:
    """Reads one size in this process, and prints bytes, processor seconds, wall seconds and both peaks in MB."""
    from opus_pipelines.history.ingestion.ingest import read_history
    from opus_pipelines.lake.layout import Lake

    with tempfile.TemporaryDirectory() as root:
        written = write(kind, size, Path(root) / "history" / "source")
        own, processor, wall = PeakOfOwnMemory(), time.process_time(), time.monotonic()
        state = read_history(Lake(Path(root) / "lake"), Path(root) / "history", datetime(2026, 1, 1, tzinfo=UTC))
        if state.failed:
            raise SystemExit(state.failed[0])
        peak = own_peak_mib()
        print(written, time.process_time() - processor, time.monotonic() - wall, own.stop(), peak)


class PeakOfOwnMemory:
    """Looks 50 times a second at the memory of this process that no file stands behind."""

    def __init__(self) -> None:
        self._peak, self._ended = 0, threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)
        self._thread.start()

    def stop(self) -> int:
        """Returns the peak in MB."""
        self._ended.set()
        self._thread.join()
        return self._peak >> 10

    def _watch(self) -> None:
        while not self._ended.wait(0.02):
            lines = Path("/proc/self/status").read_text("ascii").splitlines()
            self._peak = max(self._peak, *(int(line.split()[1]) for line in lines if line.startswith("RssAnon")))


def exponent(sizes: Sequence[float], values: Sequence[float]) -> float:
    """Returns the slope of the logarithms, by least squares."""
    xs, ys = [math.log(s) for s in sizes], [math.log(v) for v in values]
    middle, mean = sum(xs) / len(xs), sum(ys) / len(ys)
    return sum((x - middle) * (y - mean) for x, y in zip(xs, ys, strict=True)) / sum((x - middle) ** 2 for x in xs)


def table(kind: str, sizes: Sequence[int]) -> None:
    """Measures and prints all sizes of one kind."""
    print(f"\n{kind:>10}{'MB':>9}{'CPU s':>9}{'wall s':>9}{'own MB':>9}{'peak MB':>9}", flush=True)
    found: list[list[float]] = []
    for size in sizes:
        command = [sys.executable, __file__, "--one", kind, str(size)]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        written, cpu, wall, own, peak = map(float, done.stdout.split())
        found.append([cpu, wall, own, peak])
        print(f"{size:>10,}{written / 1e6:9.1f}{cpu:9.1f}{wall:9.1f}{own:9.0f}{peak:9.0f}", flush=True)
    if len(sizes) > 1:
        fitted = [exponent(sizes, column) for column in zip(*found, strict=True)]
        print(f"{'exponent':>10}{'':9}" + "".join(f"{value:9.2f}" for value in fitted), flush=True)


def main() -> None:
    """Parses the sizes and prints one table for each kind."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--rows", type=int, nargs="*", default=[100_000, 400_000])
    parser.add_argument("--files", type=int, nargs="*", default=[2_000, 8_000])
    parser.add_argument("--one", nargs=2, metavar=("KIND", "SIZE"))
    arguments = parser.parse_args()
    if arguments.one:
        measure(arguments.one[0], int(arguments.one[1]))
        return
    for kind, sizes in (("files", arguments.files), ("rows", arguments.rows)):
        if sizes:
            table(kind, sizes)


if __name__ == "__main__":
    main()
