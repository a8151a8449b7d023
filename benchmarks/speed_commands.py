"""The part `commands` of `speed.py`: what the commands of a night and of an analyst take on the sample."""

import sys
import tempfile
from pathlib import Path
from typing import Any

from measuring import child

_CHANGED, _RATE, _OTHER_RATE = "brightwater_expenses", "\nhuman = 27.0\n", "\nhuman = 28.0\n"
_SHORT = {
    "opus best": ["best"],
    "opus status": ["status"],
    "opus query": ["query", "saving_against_history"],
}
_TIMES = 3  # that a short command runs; the least is kept


def measure() -> dict[str, Any]:
    """Returns wall and CPU seconds and the peak memory by command."""
    with tempfile.TemporaryDirectory(prefix="opus-speed-") as folder:
        work = Path(folder)
        _opus(work, "sample", "sample")
        rebuild, generate = ["rebuild", "--history", "sample/history"], ["generate", "--intakes", "sample/intakes"]
        taken = {"opus rebuild, everything new": _opus(work, *rebuild)}
        taken["opus rebuild, nothing changed"] = _opus(work, *rebuild)
        taken["opus generate, everything new"] = _opus(work, *generate)
        taken["opus generate, nothing changed"] = _opus(work, *generate)
        for name, line in _SHORT.items():
            taken[name] = min((_opus(work, *line) for _ in range(_TIMES)), key=lambda spent: spent["cpu_s"])
        _change_one(work / "sample" / "history")
        taken["opus rebuild, one source changed"] = _opus(work, *rebuild)
    return {"input": "the sample", "taken": taken}


def _opus(work: Path, *arguments: str) -> dict[str, float]:
    return child([sys.executable, "-m", "opus_pipelines.cli.start", "--lake", "lake", *arguments], work)[1]


def _change_one(history: Path) -> None:
    """Changes the rate of people's work in one source, which is then read and mined again."""
    settings = history / _CHANGED / "source.toml"
    before = settings.read_text("utf-8")
    if _RATE not in before:
        raise SystemExit(f"{settings}: the sample has changed, {_RATE.strip()!r} is not in it")
    settings.write_text(before.replace(_RATE, _OTHER_RATE), "utf-8")
