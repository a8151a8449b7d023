"""The tasks that a contract's catalogue declares, and what of its files could not be used."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property

from opus_pipelines.language.embedding.text_parts import Part, parts, plain

_ITEM = re.compile(r"\s*([*•\-–+◦▪]|\d+[.)])\s+\S")  # a line of a list
SHOWN = 3  # reasons that a line for a person names


@dataclass(frozen=True)
class DeclaredTask:
    """One tool of a catalogue.

    Attributes:
        name: as the client writes it, without characters that cannot be shown.
        file: the name of the catalogue's file.
        entry: place in the file, from 1.
        description: what the tool does; its list items are read as the conditions of the tool.
        inputs, outputs: names of what it takes and gives.
        price_usd: of one use in dollars, None where none is stated.
        actor_kind: "code" for an operation of an interface; None where the file does not tell who does it.
    """

    name: str
    file: str
    entry: int
    description: str | None = None
    inputs: tuple[str, ...] = ()
    outputs: tuple[str, ...] = ()
    price_usd: float | None = None
    actor_kind: str | None = None

    @property
    def plain(self) -> str:
        """The name in plain words."""
        return plain(self.name)

    @cached_property
    def part(self) -> Part:
        """The tool as a part of a procedure: the items of a list in its description are its sentences."""
        lines = [line for line in (self.description or "").splitlines() if line.strip()]
        first = next((n for n, line in enumerate(lines) if _ITEM.match(line)), None)
        if first is None:
            return Part(self.name, (), is_declared=True)
        joined = first > 0 and lines[first - 1].rstrip().endswith(":")  # it says how the items are joined
        found = parts("\n".join([f"{self.name}:", *lines[first - joined :]]))
        return Part(self.name, tuple(s for part in found for s in part.sentences), is_declared=True)

    @property
    def summary(self) -> str:
        """The first line of the description: what the tool does."""
        return next((line.strip() for line in (self.description or "").splitlines() if line.strip()), "")


@dataclass(frozen=True)
class LeftOut:
    """What of a catalogue could not be used: a whole file where `entry` is None, else one entry of it."""

    file: str
    entry: int | None
    name: str | None
    reason: str

    @property
    def text(self) -> str:
        """The reason with its place, for a person."""
        where = "" if self.entry is None else f"entry {self.entry}" + (f" ({self.name})" if self.name else "") + ": "
        return where + self.reason


@dataclass(frozen=True)
class CatalogueFile:
    """A file of a catalogue: its format in words, its size in bytes and its SHA-256."""

    name: str
    format: str
    bytes: int
    sha256: str


@dataclass(frozen=True)
class Catalogue:
    """All that a contract declares. No two tasks have one name."""

    tasks: tuple[DeclaredTask, ...] = ()
    files: tuple[CatalogueFile, ...] = ()
    left_out: tuple[LeftOut, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.tasks)

    @cached_property
    def by_name(self) -> Mapping[str, DeclaredTask]:
        """The tasks by name in plain words."""
        return {task.plain: task for task in self.tasks}

    def reasons(self, file: str) -> str | None:
        """Returns what of a file was left out, for a person; None where nothing was."""
        found = [one.text for one in self.left_out if one.file == file]
        more = f"; and {len(found) - SHOWN:,} more" if len(found) > SHOWN else ""
        return "; ".join(found[:SHOWN]) + more if found else None


NO_CATALOGUE = Catalogue()


@dataclass(frozen=True)
class RawEntry:
    """An entry of a file before it is checked; each value is as the file has it, None where it has none."""

    entry: int
    name: object
    description: object = None
    inputs: object = None
    outputs: object = None
    price: object = None


@dataclass
class FileEntries:
    """What a reader found in a file: entries, and the entries that are no tools, with the reason by place."""

    format: str
    actor_kind: str | None = None
    entries: list[RawEntry] = field(default_factory=list)
    broken: dict[int, str] = field(default_factory=dict)
