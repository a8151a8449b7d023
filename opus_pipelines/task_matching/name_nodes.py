"""Names of tasks as task resolution compares them: raw keys of equal normalised title are one name, whichever source
they stand in.
"""

import re
import unicodedata
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Literal

from opus_pipelines.task_matching.pins import Pins

Merge = Literal["embedding", "normalised", "off"]
Identity = tuple[str | None, str]  # industry, identity


@dataclass(frozen=True)
class SourceNames:
    """What a source calls its tasks: (industry, task_key, title) → weighted count."""

    source: str
    merge: bool
    counts: Mapping[tuple[str | None, str, str], int]


@dataclass(frozen=True)
class Row:
    """One raw key of one source (in one industry): a row of wkg/task_aliases."""

    source: str
    industry: str | None
    key: str
    titles: Counter[str]

    @property
    def title(self) -> str:
        """Its most frequent title."""
        return winner(self.titles)

    @property
    def weight(self) -> int:
        """How often it was carried out."""
        return sum(self.titles.values())

    @property
    def raw(self) -> Identity:
        """What identifies it whatever it is called; no other identity holds two slashes after a source's name."""
        return self.industry, f"{self.source}//{self.key}"


@dataclass
class Node:
    """A name: the raw keys that it stands for. `free`: may likeness join it to others?"""

    identity: Identity
    normal: str
    free: bool
    rows: list[Row] = field(default_factory=list)

    @property
    def words(self) -> list[str]:
        """Of the normalised name."""
        return self.normal.split()

    @property
    def order(self) -> tuple[bool, str, str]:
        """What ties are broken by."""
        return order(self.identity)


def order(identity: Identity) -> tuple[bool, str, str]:
    """Identities in a fixed order, those without an industry first."""
    return identity[0] is not None, identity[0] or "", identity[1]


def winner(titles: Counter[str]) -> str:
    """The most frequent title; of several the first by alphabet, whatever order they were counted in."""
    return min(titles, key=lambda title: (-titles[title], title))


def normalise(title: str) -> str:
    """A title without what names differ in by habit: case, camelCase, accents, punctuation, blanks. Never empty for a
    title.
    """
    text = re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", " ", title)
    text = "".join(c for c in unicodedata.normalize("NFKD", text) if not unicodedata.combining(c))
    return " ".join(re.sub(r"[\W_]+", " ", text.casefold()).split()) or title.strip() or title


def nodes_of(sources: Iterable[SourceNames], merge: Merge, pins: Pins, across: bool) -> list[Node]:
    """Every name, in a fixed order, with its raw keys. A key that a pin keeps apart from others is a name by itself."""
    nodes: dict[Identity, Node] = {}
    for names in sorted(sources, key=lambda s: s.source):
        for row in _rows(names):
            free = merge != "off" and names.merge and (across or row.industry is not None)
            identity = row.industry, _identity(row, free, merge, f"{row.source}/{row.key}" in pins.kept_apart)
            nodes.setdefault(identity, Node(identity, normalise(row.title), free)).rows.append(row)
    return sorted(nodes.values(), key=lambda node: node.order)


def _identity(row: Row, free: bool, merge: Merge, pinned: bool) -> str:
    """What makes two raw keys of one industry the same name; a folder's name has no slash, so the forms never meet."""
    if pinned:
        return row.raw[1]
    if merge == "off":
        return f"{row.source}/{row.key}"
    return normalise(row.title) if free and row.industry is not None else f"{row.source}/{normalise(row.title)}"


def _rows(names: SourceNames) -> list[Row]:
    keys: dict[tuple[str | None, str], Counter[str]] = defaultdict(Counter)
    for (industry, key, title), count in names.counts.items():
        keys[industry, key][title] += count
    return [
        Row(names.source, industry, key, titles)
        for (industry, key), titles in sorted(keys.items(), key=lambda k: order(k[0]))
    ]
