"""Task resolution: which raw keys of which sources are one task, and the ids that tasks keep for ever."""

import re
import unicodedata
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import pyarrow as pa
import pyarrow.parquet as pq

from opus_pipelines.errors import LakeError
from opus_pipelines.ids import make_id
from opus_pipelines.lake import table_of
from opus_pipelines.schemas import ALIASES

LEDGER = pa.schema([("industry", pa.string()), ("identity", pa.string()), ("task_id", pa.string())])
Identity = tuple[str | None, str]  # industry, identity
Ids = dict[Identity, str]


@dataclass(frozen=True)
class SourceNames:
    """What a source calls its tasks: (industry, task_key, title) → weighted count."""

    source: str
    merge: bool
    counts: Mapping[tuple[str | None, str, str], int]


@dataclass(frozen=True)
class Resolution:
    """Aliases in the form of wkg/task_aliases, the tasks' titles, and the ids in use."""

    aliases: pa.Table
    titles: dict[str, str]
    ids: Ids

    def of_source(self, source: str) -> list[tuple[str | None, str, str]]:
        """(industry, task_key, task_id) of one source, in a fixed order."""
        rows = zip(*(self.aliases[c].to_pylist() for c in ("source", "industry", "task_key", "task_id")), strict=True)
        return [(industry, key, task) for name, industry, key, task in rows if name == source]


def normalise(title: str) -> str:
    """A title without what names differ in by habit: case, camelCase, accents, punctuation, blanks. Never empty for a title."""
    text = re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", " ", title)
    text = "".join(c for c in unicodedata.normalize("NFKD", text) if not unicodedata.combining(c))
    return " ".join(re.sub(r"[\W_]+", " ", text.casefold()).split()) or title.strip() or title


def identity_of(names: SourceNames, industry: str | None, task_key: str, title: str, merge: Literal["normalised", "off"]) -> str:
    """What makes two raw keys of one industry the same task; a folder's name has no slash, so the forms never meet."""
    if merge == "off":
        return f"{names.source}/{task_key}"
    by_itself = industry is None or not names.merge
    return f"{names.source}/{normalise(title)}" if by_itself else normalise(title)


def resolve(sources: Iterable[SourceNames], ledger: Mapping[Identity, str], merge: Literal["normalised", "off"]) -> Resolution:
    """Every raw key of every source with its task. An identity in the ledger keeps its id, a new one is named by its hash."""
    rows: list[dict[str, Any]] = []
    ids: Ids = {}
    votes: dict[str, Counter[str]] = defaultdict(Counter)
    for names in sorted(sources, key=lambda s: s.source):
        for (industry, key), titles in _by_key(names).items():
            title = _winner(titles)
            identity = industry, identity_of(names, industry, key, title, merge)
            task = ids.setdefault(identity, ledger.get(identity) or make_id("t", *identity))
            votes[task].update(titles)
            rows.append({"source": names.source, "industry": industry, "task_key": key, "title": title, "task_id": task, "similarity": 1.0})
    named = {task: _winner(titles) for task, titles in votes.items()}
    if len(named) != len(ids):
        raise LakeError("the id ledger gives one id to two identities; restore wkg/kept/ids.parquet from a backup")
    for row in rows:
        row["method"] = "exact" if row["title"] == named[row["task_id"]] else "normalised"
    rows.sort(key=lambda r: (r["source"], r["industry"] is not None, r["industry"] or "", r["task_key"]))
    return Resolution(table_of(ALIASES, rows), named, ids)


def read_ledger(path: Path) -> Ids:
    """The id ledger; empty before the first rebuild."""
    if not path.exists():
        return {}
    table = pq.ParquetFile(path).read()
    return {(row["industry"], row["identity"]): row["task_id"] for row in table.to_pylist()}


def ledger_table(ids: Mapping[Identity, str]) -> pa.Table:
    """Ids as rows, in a fixed order."""
    keys = sorted(ids, key=lambda k: (k[0] is not None, k[0] or "", k[1]))
    return pa.Table.from_pylist([{"industry": i, "identity": d, "task_id": ids[i, d]} for i, d in keys], schema=LEDGER)


def _by_key(names: SourceNames) -> dict[tuple[str | None, str], Counter[str]]:
    keys: dict[tuple[str | None, str], Counter[str]] = defaultdict(Counter)
    for (industry, key, title), count in names.counts.items():
        keys[industry, key][title] += count
    return keys


def _winner(titles: Counter[str]) -> str:
    """The most frequent title; of several the first by alphabet, whatever order they were counted in."""
    return min(titles, key=lambda title: (-titles[title], title))
