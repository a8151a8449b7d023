"""Gives the benchmarks of predictions a folder to work in, both jobs in it, and the rows of their results."""

import argparse
import importlib.util
import json
import os
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from opus_pipelines.core.ids import make_id

PLACES = {f"OPUS_{prefix}{name}" for prefix in ("", "PATHS_") for name in ("LAKE", "HISTORY", "INTAKES")}
PUBLISHED = {"rebuild": "wkg/current.json", "train": "wkg/current.json", "generate": "workflows/current/*.json"}
KEPT = "folder for lake and inputs, kept; default: a temporary one, removed"


@contextmanager
def workplace(kept: Path | None, benchmark: str) -> Iterator[Path]:
    """The folder for lake and inputs: `kept`, or a temporary one that is removed at the end."""
    if kept is not None:
        kept.mkdir(parents=True, exist_ok=True)
        yield kept
        return
    work = Path(tempfile.mkdtemp(prefix=f"opus-{benchmark}-"))
    try:
        yield work
    finally:
        shutil.rmtree(work, ignore_errors=True)


def rebuild_and_generate(work: Path, train: Sequence[str] | None = None) -> None:
    """Both jobs in the folder, each with its time and that of its processes' CPU on standard error.

    `train`: a model is trained between them, with these options of `opus train`; None: none is. A rejected file, an
    intake that failed and a history too small to train on cost themselves alone, and are named. Raises SystemExit where
    there is no snapshot, or no result at all.
    """
    for verb, more in (("rebuild", ()), *([("train", train)] if train is not None else []), ("generate", ())):
        started, before = time.monotonic(), resource.getrusage(resource.RUSAGE_CHILDREN)
        ended = subprocess.run(command(verb, *more), cwd=work, env=own_environment(), stdout=subprocess.DEVNULL)
        go_on(work, verb, ended.returncode)
        used = resource.getrusage(resource.RUSAGE_CHILDREN)
        cpu = used.ru_utime + used.ru_stime - before.ru_utime - before.ru_stime
        print(f"{verb}: {time.monotonic() - started:.1f} s, {cpu:.1f} s of CPU", file=sys.stderr)


def go_on(work: Path, verb: str, code: int) -> None:
    """Says what a job with this exit code lacks. Raises SystemExit where nothing is there to go on with."""
    if code and (code != 1 or not any((work / "lake").glob(PUBLISHED[verb]))):
        raise SystemExit(f"opus {verb} ended with {code}; no prediction was written")
    if code:
        print(f"opus {verb} ended with 1; the predictions are made without what it names above", file=sys.stderr)


def opus(work: Path, verb: str, *more: str) -> str:
    """Run one verb in the work folder; returns its standard output. Raises SystemExit where it fails."""
    ended = subprocess.run(command(verb, *more), cwd=work, env=own_environment(), stdout=subprocess.PIPE, text=True)
    if ended.returncode:
        raise SystemExit(f"opus {verb} ended with {ended.returncode}")
    return ended.stdout


def command(verb: str, *more: str) -> list[str]:
    """The command line of one verb on the lake of the work folder."""
    return [sys.executable, "-m", "opus_pipelines.cli.main", "--lake", "lake", verb, *more]


def own_environment() -> dict[str, str]:
    """The environment without the caller's lake, history and intakes, which would replace those of the work folder."""
    return {name: value for name, value in os.environ.items() if name not in PLACES}


def to_write(argument: str) -> Path:
    """The path of a file that is written at the end of a long run: its folder is made at the start.

    Raises argparse.ArgumentTypeError where it cannot be written.
    """
    path = Path(argument)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.open("a").close()
    except OSError as error:
        raise argparse.ArgumentTypeError(f"{path} cannot be written: {error.strerror}") from error
    return path


def rows_of_first_goals(work: Path, sql: str) -> list[dict[str, Any]]:
    """The rows of a query over `intake_id` and `intention_id` that are of their intake's first Intention."""
    rows = json.loads(opus(work, "query", sql, "--format", "json"))
    return [row for row in rows if row["intention_id"] == make_id("n", row["intake_id"], 0)]


def read(path: Path) -> Iterator[dict[str, Any]]:
    """The objects of a JSONL file."""
    with path.open() as file:
        yield from map(json.loads, filter(str.strip, file))


def script(path: Path) -> Any:
    """The module of a Python file: the script that scores a benchmark."""
    spec = importlib.util.spec_from_file_location("scorer", path)
    if spec is None or spec.loader is None:
        raise SystemExit(f"{path} is no Python file")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def write_predictions(
    path: Path, name: str, ids: dict[str, str], predicted: dict[str, dict[str, Any]], nothing: dict[str, Any]
) -> None:
    """A line for every intake folder, its id under `name`; one without a workflow has `nothing`."""
    with path.open("w") as file:
        for folder, own in ids.items():
            file.write(json.dumps({name: own, **predicted.get(folder, nothing)}, ensure_ascii=False) + "\n")
    print(f"{sum(folder in predicted for folder in ids)} of {len(ids)} predicted, in {path}", file=sys.stderr)
