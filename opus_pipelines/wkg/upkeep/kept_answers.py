"""Removes the answers of language models that the lake keeps for a client, or in which a word of it stands."""

from collections.abc import Iterable

from opus_pipelines.lake.layout import Lake, slug
from opus_pipelines.lake.search import Word, search

ANSWERS = "language/answers"  # below the lake: client_key=<client>/<hash of the request>.json


def remove_answers(lake: Lake, client: str, words: Iterable[Word]) -> int:
    """Removes the kept answers of a client, and those of others in which one of the words stands; returns how many."""
    folder = lake.root / ANSWERS
    own = folder / f"client_key={slug(client)}"
    count = len(list(own.glob("*.json")))
    lake.remove(own)
    named = {finding.file for finding in search(lake, words, below=folder)} if folder.is_dir() else set[str]()
    for file in named:
        (lake.root / file).unlink()
    return count + len(named)
