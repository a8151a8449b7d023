"""Checks the entries of a catalogue's files. A defect costs the entry, or its price, and is named."""

import math
import re
from collections.abc import Iterable, Iterator, Mapping

from opus_pipelines.intakes.catalogues.declared import DeclaredTask, FileEntries, LeftOut, RawEntry
from opus_pipelines.intakes.elements import shown_name
from opus_pipelines.language.embedding.text_parts import plain

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
