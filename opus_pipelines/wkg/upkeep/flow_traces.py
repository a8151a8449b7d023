"""Removes what flows have of a client: its batches, and the batches and evaluations in which a word of it stands."""

from collections.abc import Iterable
from pathlib import Path

from opus_pipelines.core.schemas import EVALUATION_UTTERANCES, FLOW_DATASETS, FLOWS
from opus_pipelines.lake.layout import Lake, slug, unslug
from opus_pipelines.lake.search import Word, search


def clients_of_flows(lake: Lake) -> set[str]:
    """Returns the clients that have batches of flows."""
    batches = (batch for name in FLOW_DATASETS for batch in (lake.root / name).glob("client_key=*/*/*"))
    return {unslug(batch.parts[-3].partition("=")[2]) for batch in batches}


def batches_of(lake: Lake, client: str) -> set[Path]:
    """Returns the partitions of the client's batches, relative to their datasets."""
    return {
        folder.relative_to(lake.root / name)
        for name in FLOW_DATASETS
        for folder in (lake.root / name).glob(f"client_key={slug(client)}/*/*")
    }


def remove_flows(lake: Lake, client: str, words: Iterable[Word]) -> int:
    """Removes the client's batches, and the batches and evaluations in which one of the words stands; returns how many.

    A reader begins with the flows of a batch, so these go first.
    """
    names = sorted(FLOW_DATASETS, key=lambda name: name != FLOWS.name)
    chosen = list(words)
    gone = batches_of(lake, client) | _named(lake, chosen, names, 3)
    for name in names:
        for batch in sorted(gone):
            lake.remove(lake.root / name / batch)
        for place in {batch.parts[0] for batch in gone}:
            if (folder := lake.root / name / place).is_dir() and not any(folder.iterdir()):
                lake.remove(folder)
    evaluations = _named(lake, chosen, [EVALUATION_UTTERANCES.name], 1)
    for evaluation in sorted(evaluations):
        lake.remove(lake.root / EVALUATION_UTTERANCES.name / evaluation)
    return len(gone) + len(evaluations)


def _named(lake: Lake, words: list[Word], names: Iterable[str], depth: int) -> set[Path]:
    """The partitions, relative to their datasets, in a file of which one of the words stands."""
    found = set[Path]()
    for name in names:
        below = lake.root / name
        files = {lake.root / finding.file for finding in search(lake, words, below=below)} if below.is_dir() else set()
        parts = (file.relative_to(below).parts[:depth] for file in files)
        found |= {Path(*part) for part in parts if len(part) == depth}
    return found
