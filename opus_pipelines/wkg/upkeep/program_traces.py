"""Removes what workflow programs left in the lake for a client: runs with every step, and searches."""

from collections.abc import Iterable
from pathlib import Path

from opus_pipelines.core.schemas import PROGRAM_CURVES, PROGRAM_RUNS, PROGRAM_SEARCHES, PROGRAM_STEPS
from opus_pipelines.lake.layout import Lake, read_table
from opus_pipelines.lake.search import Word, search

_PROGRAMS = "programs"  # the folder of the four datasets
_FORMER = f"{_PROGRAMS}/improvements"  # a dataset of clients' workflows that an earlier version wrote and nothing reads
_TOGETHER = ((PROGRAM_RUNS, PROGRAM_STEPS), (PROGRAM_SEARCHES, PROGRAM_CURVES))  # readers begin with the first


def clients_of_runs(lake: Lake) -> set[str]:
    """Returns the clients whose tasks were run by programs."""
    return {client for _, client in _of_clients(lake) if client}


def remove_program_runs(lake: Lake, client: str, words: Iterable[Word]) -> int:
    """Removes what was made for a client, and all in which one of the words stands; returns how many."""
    lake.remove(lake.root / _FORMER)
    gone = {folder.name for folder, of in _of_clients(lake) if of == client}
    below = lake.root / _PROGRAMS
    named = {Path(finding.file) for finding in search(lake, words, below=below)} if below.is_dir() else set[Path]()
    gone |= {part for file in named for part in file.parts if part.partition("=")[0] in ("run_key", "search_key")}
    for dataset in (one for together in _TOGETHER for one in together):
        for name in gone:
            lake.remove(lake.root / dataset.name / name)
    return len(gone)


def _of_clients(lake: Lake) -> list[tuple[Path, str | None]]:
    return [
        (folder, read_table(PROGRAM_RUNS, folder, columns=["client"])["client"][0].as_py())
        for folder in sorted((lake.root / PROGRAM_RUNS.name).glob("*_key=*"))
    ]
