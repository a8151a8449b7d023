"""The names that task resolution compares: raw keys with the same normalised title are one name, in any source."""

import re
import unicodedata
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Literal

from opus_pipelines.wkg.task_matching.pins import Pins

Merge = Literal["embedding", "normalised", "off"]
Identity = tuple[str | None, str]  # industry, identity


@dataclass(frozen=True)
class SourceNames:
    """The weighted counts of (industry, task_key, title) in one source."""

    source: str
    merge: bool
    counts: Mapping[tuple[str | None, str, str], int]


@dataclass(frozen=True)
class Row:
    """One raw key of one source and industry: a row of wkg/task_aliases."""

    source: str
    industry: str | None
    key: str
    titles: Counter[str]

    @property
    def title(self) -> str:
        """The most frequent title."""
        return winner(self.titles)

    @property
    def weight(self) -> int:
        """The number of times the task was carried out."""
        return sum(self.titles.values())

    @property
    def raw(self) -> Identity:
        """The identity of the key whatever its title; no other identity has two slashes after a source's name."""
        return self.industry, f"{self.source}//{self.key}"


@dataclass
class Node:
    """A name and its raw keys. `free` tells whether duplicate detection may join it to other names."""

    identity: Identity
    normal: str
    free: bool
    rows: list[Row] = field(default_factory=list)

    @property
    def words(self) -> list[str]:
        """The words of the normalised name."""
        return self.normal.split()

    @property
    def order(self) -> tuple[bool, str, str]:
        """The sort key that breaks ties."""
        return order(self.identity)


def order(identity: Identity) -> tuple[bool, str, str]:
    """Returns a sort key that puts identities without an industry first."""
    return identity[0] is not None, identity[0] or "", identity[1]


def winner(titles: Counter[str]) -> str:
    """Returns the most frequent title; ties go to the first by alphabet."""
    return min(titles, key=lambda title: (-titles[title], title))


def normalise(title: str) -> str:
    """Removes from a title what varies by habit: case, camelCase, accents, punctuation and blanks.

    The result is never empty for a title.
    """
    text = re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", " ", title)
    text = "".join(c for c in unicodedata.normalize("NFKD", text) if not unicodedata.combining(c))
    return " ".join(re.sub(r"[\W_]+", " ", text.casefold()).split()) or title.strip() or title


def nodes_of(sources: Iterable[SourceNames], merge: Merge, pins: Pins, across: bool) -> list[Node]:
    """Returns every name with its raw keys, in a fixed order. A key that a pin keeps apart is a name by itself."""
    nodes: dict[Identity, Node] = {}
    for names in sorted(sources, key=lambda s: s.source):
        for row in _rows(names):
            free = merge != "off" and names.merge and (across or row.industry is not None)
            identity = row.industry, _identity(row, free, merge, f"{row.source}/{row.key}" in pins.kept_apart)
            nodes.setdefault(identity, Node(identity, normalise(row.title), free)).rows.append(row)
    return sorted(nodes.values(), key=lambda node: node.order)


def _identity(row: Row, free: bool, merge: Merge, pinned: bool) -> str:
    """Returns the text that two raw keys of one industry share when they are the same name.

    The forms cannot collide, because the name of a folder has no slash.
    """
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
