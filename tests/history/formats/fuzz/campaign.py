"""Throws mutants and hostile files at every reader and says what broke.

    python tests/history/formats/fuzz/campaign.py --mutants 5000 --seed 1 [--data DIR] [--hostile all [--every N]]

Prints one JSON object: how many files were tried, what became of them, the worst CPU time and memory, and every fault
with the file that shows it (kept with --keep DIR). A reader may refuse anything, with a reason; it may not crash, hang
or lose count.
"""

import argparse
import json
import select
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from random import Random
from typing import Any

from hostile import CLASSES
from mutations import mutant
from seeds import Seed, real, written

CPU_SECONDS, WALL_SECONDS, PEAK_MB = 10.0, 300.0, 1536  # by the wall only what waits for ever: the machine may be busy


class Judge:
    """The child that reads; started anew when it dies, and after a file that took much memory, whose peak would hide
    the next one's.
    """

    def __init__(self) -> None:
        self._child: subprocess.Popen[str] | None = None

    def __call__(self, folder: Path) -> dict[str, Any]:
        if self._child is None:
            program = [sys.executable, str(Path(__file__).with_name("judge.py"))]
            self._child = subprocess.Popen(
                program, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
            )
        child = self._child
        assert child.stdin is not None
        assert child.stdout is not None
        child.stdin.write(f"{folder}\n")
        child.stdin.flush()
        ready, _, _ = select.select([child.stdout], [], [], WALL_SECONDS)
        line = child.stdout.readline() if ready else ""
        if not line:
            said = self.close()
            return {
                "faults": [
                    f"it hangs: no answer in {WALL_SECONDS:g} s" if not ready else f"the reader died: {said[-2000:]}"
                ]
            }
        outcome = json.loads(line)
        if outcome["cpu_s"] > CPU_SECONDS:
            outcome["faults"].append(f"it takes {outcome['cpu_s']} s of CPU")
        if outcome["peak_mb"] > PEAK_MB:
            outcome["faults"].append(f"it takes {outcome['peak_mb']} MB")
        if outcome["peak_mb"] > 200:
            self.close()
        return dict(outcome)

    def close(self) -> str:
        """End the child; what it said last."""
        child, self._child = self._child, None
        if child is None:
            return ""
        child.kill()
        return f"exit {child.wait()}: {child.stderr.read() if child.stderr else ''}"


def mutants(count: int, seed: int, data: Path | None) -> Iterator[tuple[str, Seed]]:
    """Every seed in turn, each time mutated another way; the first round as they are."""
    seeds = [*written(), *(real(data) if data else ())]
    yield from ((f"seed {n} {s.name}", s) for n, s in enumerate(seeds))
    for number in range(count):
        source = seeds[number % len(seeds)]
        name, content, done = mutant(source.name, source.content, Random(f"{seed}/{number}"))
        yield f"mutant {seed}/{number} {source.name} {done}", Seed(name, content, source.settings)


def hostile(classes: list[str], every: int = 1) -> Iterator[tuple[str, Seed]]:
    """Every so many of the files of these classes, made one at a time."""
    for name in classes:
        for label, make in islice(CLASSES[name](), 0, None, every):
            yield f"{name}: {label}", make()


def run(files: Iterator[tuple[str, Seed]], keep: Path | None = None) -> dict[str, Any]:
    """Every file read and judged; the result as it is printed."""
    judge, became, faults = Judge(), Counter[str](), []
    worst: dict[str, tuple[float, str]] = {"cpu_s": (0.0, ""), "peak_mb": (0.0, "")}
    with tempfile.TemporaryDirectory() as scratch:
        for label, seed in files:
            folder = Path(scratch) / "one"
            source = folder / "history" / "s"
            source.mkdir(parents=True)
            (source / "source.toml").write_text(seed.settings)
            (source / seed.name).write_bytes(seed.content)
            outcome = judge(folder)
            became[outcome.get("status", "fault")] += 1
            for figure, (most, _) in worst.items():
                if outcome.get(figure, 0) > most:
                    worst[figure] = (outcome[figure], label)
            if outcome["faults"]:
                print(f"{label}: {outcome['faults'][0]}", file=sys.stderr, flush=True)
                faults.append({"file": label, "faults": outcome["faults"]})
                if keep is not None:
                    shutil.copytree(folder / "history", keep / f"{len(faults):04d}" / "history", dirs_exist_ok=True)
            shutil.rmtree(folder)
    judge.close()
    return {"files": became.total(), "became": dict(sorted(became.items())), "worst": worst, "faults": faults}


if __name__ == "__main__":
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--mutants", type=int, default=0)
    options.add_argument("--seed", type=int, default=0)
    options.add_argument("--data", type=Path)
    options.add_argument("--hostile", nargs="*", default=[], choices=[*CLASSES, "all"])
    options.add_argument("--every", type=int, default=1)
    options.add_argument("--keep", type=Path)
    asked = options.parse_args()
    wanted = list(CLASSES) if "all" in asked.hostile else asked.hostile
    found = run(mutants(asked.mutants, asked.seed, asked.data) if asked.mutants else iter(()), asked.keep)
    if wanted:
        more = run(hostile(wanted, asked.every), asked.keep)
        found = {"mutants": found, "hostile": more, "faults": found["faults"] + more["faults"]}
    print(json.dumps(found, indent=1))
