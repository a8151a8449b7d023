"""Intakes that are poisonous by the name of their folder, and what tells that a process is gone."""

import os
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from opus_pipelines.core.workers.sandbox import Sandbox
from opus_pipelines.generation.bulk.chunks import GenerationSetup, WorkerState

REASONS = {
    "unreadable": "its process was ended by signal 9",
    "hangs": "it took more than 5 s (generation.seconds_per_intake)",
    "eats": "it needed more than 256 MB (generation.memory_mb_per_intake)",
    "dies": "its process was ended by signal 11",
    "breaks": "ValueError: no such thing",
}


class PoisonedState(WorkerState):
    """Reads and works like any other, but for what is poisonous."""

    def read(self, item: Any) -> Any:
        if item[1] is not None and item[1].name == "unreadable":
            os.kill(os.getpid(), signal.SIGKILL)
        return super().read(item)

    def work(self, item: Any) -> Any:
        match item[0].folder:
            case "hangs":
                time.sleep(600)
            case "eats":
                raise AssertionError(len([bytearray(1 << 20) for _ in range(4000)]))
            case "dies":
                os.kill(os.getpid(), signal.SIGSEGV)
            case "breaks":
                raise ValueError("no such thing")
            case "large":
                raise MemoryError
        return super().work(item)


@dataclass(frozen=True)
class PoisonedSetup(GenerationSetup):
    """Small limits, so that nobody waits for them."""

    @contextmanager
    def open(self) -> Iterator[PoisonedState]:
        state = PoisonedState(self)
        with Sandbox(state.read, 60.0, 1024) as state.reading, Sandbox(state.work, 5.0, 256) as state.working:
            yield state


def gone(process: str) -> bool:
    """Has it ended, or does so within seconds? It is a zombie where nobody asks how it ended."""
    for _ in range(600):
        try:
            state = Path("/proc", process, "status").read_text()
        except OSError:
            return True
        if "zombie" in state:
            return True
        time.sleep(0.05)
    return False
