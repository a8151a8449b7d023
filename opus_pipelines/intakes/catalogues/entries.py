"""The tools that a contract's catalogue declares, the checks of its entries, and what of its files was left out."""

import math
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property

from opus_pipelines.core.formatting import clean
from opus_pipelines.core.ids import make_id
from opus_pipelines.intakes.elements import INHERITED, Element, shown_name
from opus_pipelines.language.embedding.texts import Part, parts, plain

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


MAX_NAME = 200  # characters
MAX_DESCRIPTION = 4_000  # characters; more is left out
MAX_FIELDS = 100  # inputs or outputs of one tool
MAX_TASKS = 20_000  # of one contract
_SEPARATORS = re.compile(r"[;|,\n]")
_PRICE = re.compile(r"\s*\$?\s*(-?[0-9]+(?:\.[0-9]+)?(?:[eE][-+]?[0-9]+)?)\s*(?:USD)?\s*")


class _Defect(ValueError):
    """Why an entry is no tool."""


def declared_tasks(files: Iterable[tuple[str, FileEntries]]) -> tuple[list[DeclaredTask], list[LeftOut]]:
    """Returns the tasks of all files in order, each name once, and what was left out with its reason."""
    tasks: dict[str, DeclaredTask] = {}
    left_out: list[LeftOut] = []
    for file, found in files:
        left_out += [LeftOut(file, place, None, reason) for place, reason in sorted(found.broken.items())]
        for raw in found.entries:
            if len(tasks) >= MAX_TASKS:
                left_out.append(LeftOut(file, None, None, f"what stands after {MAX_TASKS:,} tools is not read"))
                break
            try:
                task, notes = _checked(raw, file, found.actor_kind)
            except _Defect as defect:
                left_out.append(LeftOut(file, raw.entry, _shown(raw.name), str(defect)))
                continue
            first = tasks.setdefault(task.plain, task)
            if first is not task:
                notes = [f"another tool has this name ({first.file}, entry {first.entry}), and the first one counts"]
            left_out += [LeftOut(file, raw.entry, task.name, note) for note in notes]
    return list(tasks.values()), left_out


def _checked(raw: RawEntry, file: str, actor_kind: str | None) -> tuple[DeclaredTask, list[str]]:
    notes: list[str] = []
    description = _description(raw.description, notes)
    task = DeclaredTask(
        _name(raw.name),
        file,
        raw.entry,
        description,
        _fields(raw.inputs, "inputs", notes),
        _fields(raw.outputs, "outputs", notes),
        _price(raw.price, notes),
        actor_kind,
    )
    return task, notes


def _name(value: object) -> str:
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        raise _Defect("it has no name" if value is None else "its name is no text")
    name = shown_name(" ".join(str(value).split()))
    if not name:
        raise _Defect("it has no name")
    if len(name) > MAX_NAME:
        raise _Defect(f"its name has {len(name):,} characters, and {MAX_NAME} are the most")
    if not plain(name):
        raise _Defect("its name has neither letters nor digits")
    return name


def _description(value: object, notes: list[str]) -> str | None:
    if value is None:
        return None
    if not isinstance(value, str):
        notes.append("its description is no text and is left out")
        return None
    if len(value) > MAX_DESCRIPTION:
        notes.append(f"of its description, what stands after {MAX_DESCRIPTION:,} characters is left out")
    text = value[:MAX_DESCRIPTION]
    lines = [shown_name(line.rstrip()) for line in text.replace("\t", "    ").splitlines()]
    return "\n".join(lines).strip() or None


def _fields(value: object, what: str, notes: list[str]) -> tuple[str, ...]:
    """Returns the names of inputs or outputs: a list, the keys of an object, or a text with separators."""
    if value is None:
        return ()
    found = list(_field_names(value))
    names = [n for n in dict.fromkeys(shown_name(" ".join(name.split()))[:MAX_NAME] for name in found) if plain(n)]
    if len(names) > MAX_FIELDS:
        notes.append(f"of its {len(names):,} {what}, {MAX_FIELDS} are read")
    return tuple(names[:MAX_FIELDS])


def _field_names(value: object) -> Iterator[str]:
    if isinstance(value, str):
        yield from _SEPARATORS.split(value)
    elif isinstance(value, Mapping):
        properties = value.get("properties")
        yield from (str(key) for key in (properties if isinstance(properties, Mapping) else value))
    elif isinstance(value, list):
        for one in value:
            name = one.get("name") if isinstance(one, Mapping) else one
            if isinstance(name, str | int | float) and not isinstance(name, bool):
                yield str(name)


def _price(value: object, notes: list[str]) -> float | None:
    if value is None or value == "":
        return None
    number = _number(value)
    if number is None or not math.isfinite(number) or number < 0:
        shown = _shown(value) or "it"
        notes.append(f"its price is left out: {shown} is no amount of dollars of at least 0")
        return None
    return number


def _number(value: object) -> float | None:
    if isinstance(value, bool):
        return None
    if isinstance(value, int | float):
        try:
            return float(value)
        except OverflowError:
            return None
    stated = _PRICE.fullmatch(value) if isinstance(value, str) and len(value) <= MAX_NAME else None
    return float(stated[1]) if stated else None


def _shown(value: object) -> str | None:
    """Returns a short form of a value of the file, for a message."""
    if value is None or isinstance(value, Mapping | list):
        return None
    text = shown_name(" ".join(str(value)[:MAX_NAME].split()))
    return text[:40] + "..." if len(text) > 40 else text or None


MODALITY = "catalogue"


def catalogue_elements(catalogue: Catalogue) -> tuple[Element, ...]:
    """Returns one element for each file, without text: a catalogue is no procedure."""
    return tuple(
        Element(
            make_id("e", INHERITED, file.name, file.sha256),
            INHERITED,
            MODALITY,
            file.name,
            None,
            None,
            file.bytes,
            file.sha256,
            catalogue.reasons(file.name),
        )
        for file in catalogue.files
    )


def catalogue_lines(catalogue: Catalogue) -> list[str]:
    """Returns a line for each file with its format and its number of tools, and a line for each defect."""
    tools = Counter(task.file for task in catalogue.tasks)
    lines = [f"{clean(f.name)}: {f.format}, {tools[f.name]:,} tools" for f in catalogue.files]
    priced = sum(task.price_usd is not None for task in catalogue.tasks)
    described = sum(task.description is not None for task in catalogue.tasks)
    if catalogue.files:
        lines.append(
            f"{len(catalogue.tasks):,} declared tasks: {described:,} with a description, {priced:,} with a price"
        )
    return lines


def catalogue_complaints(catalogue: Catalogue) -> list[str]:
    """Returns a line for each thing of the files that could not be used."""
    return [clean(f"{one.file}: {one.text}") for one in catalogue.left_out]
