"""The catalogue of an installation: tables with their columns, triggers, actions, subflows and flow logic.

A catalogue file is TOML or JSON; `world/catalogue.toml` shows its form.
"""

import json
import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from opus_pipelines.flows.enterprise.documents import (
    ACTION,
    DOUNTIL,
    ELSEIF,
    FLOW_LOGIC,
    FOREACH,
    IF,
    LOGIC,
    SUBFLOW,
    Component,
    FlowDocumentError,
)

USERS = "sys_user"  # the table of people
LARGEST_CATALOGUE = 50_000_000  # bytes of a file
_TYPES = ("table", "query", "fields", "record", "records", "text", "integer", "boolean", "duration", "string", "date")
_COLUMN_TYPES = ("string", "text", "integer", "boolean", "date", "choice", "reference")
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,99}")


@dataclass(frozen=True)
class Column:
    """A column. `choices` maps a value to its label; `reference` is the table that a reference points to."""

    name: str
    type: str
    choices: Mapping[str, str] = field(default_factory=dict)
    reference: str = ""

    @property
    def label(self) -> str:
        """The name as words."""
        return self.name.replace("_", " ")


@dataclass(frozen=True)
class Table:
    """A table, and the other words that people have for it."""

    name: str
    label: str
    also: tuple[str, ...]
    columns: Mapping[str, Column]


@dataclass(frozen=True)
class Slot:
    """An input or output of a step. An output "records" of table "" has the table that the input `table` names."""

    name: str
    type: str
    is_mandatory: bool = False
    table: str = ""


@dataclass(frozen=True)
class Step:
    """A trigger, an action, a subflow or flow logic, and what it takes and gives."""

    name: str
    category: str
    label: str
    about: str
    inputs: Mapping[str, Slot]
    outputs: Mapping[str, Slot]
    scope: str = "global"


@dataclass(frozen=True)
class Catalogue:
    """All that a flow may name."""

    tables: Mapping[str, Table]
    triggers: Mapping[str, Step]
    actions: Mapping[str, Step]
    subflows: Mapping[str, Step]

    @cached_property
    def logic(self) -> Mapping[str, Step]:
        """The flow logic, which every installation has."""
        condition = {"condition": Slot("condition", "query", True)}
        inputs = {
            IF: condition,
            ELSEIF: condition,
            DOUNTIL: condition,
            FOREACH: {"items": Slot("items", "records", True)},
        }
        outputs = {FOREACH: {"item": Slot("item", "record")}}
        return {
            name: Step(name, FLOW_LOGIC, name.capitalize(), "", inputs.get(name, {}), outputs.get(name, {}))
            for name in LOGIC
        }

    def step(self, component: Component) -> Step | None:
        """Returns the catalogue's entry of a component, None where it has none."""
        kinds = {ACTION: self.actions, SUBFLOW: self.subflows, FLOW_LOGIC: self.logic}
        entry = kinds[component.category].get(component.name)
        return entry if entry is not None and entry.scope == component.scope else None

    def columns(self, table: str) -> Mapping[str, Column]:
        """Returns the columns of a table by their name; none where the catalogue has no such table."""
        return self.tables[table].columns if table in self.tables else {}

    def people(self, table: str) -> list[str]:
        """Returns the names of the columns of a table that refer to users."""
        return [column.name for column in self.columns(table).values() if column.reference == USERS]

    def column(self, table: str, path: str) -> Column | None:
        """Returns the column that a path such as `caller.manager.email` leads to from a table."""
        column = None
        for name in path.split("."):
            column = self.columns(table).get(name)
            if column is None:
                return None
            table = column.reference
        return column


def read_platform_catalogue(path: Path) -> Catalogue:
    """Reads a catalogue file. Raises FlowDocumentError with the entry that cannot be used."""
    try:
        if path.stat().st_size > LARGEST_CATALOGUE:
            raise FlowDocumentError(f"{path} has more than {LARGEST_CATALOGUE:,} bytes")
        text = path.read_text("utf-8")
        value = json.loads(text) if path.suffix == ".json" else tomllib.loads(text)
    except (OSError, UnicodeError, ValueError, RecursionError) as error:
        raise FlowDocumentError(f"the catalogue {path} cannot be read: {error}") from None
    return platform_catalogue_of(value, str(path))


def platform_catalogue_of(value: Any, name: str = "the catalogue") -> Catalogue:
    """Returns the catalogue of a parsed file; raises FlowDocumentError with the entry that cannot be used."""
    if not isinstance(value, Mapping) or not isinstance(value.get("tables"), Mapping):
        raise FlowDocumentError(f"{name} has no [tables]")
    tables = {key: _table(key, entry) for key, entry in value["tables"].items()}
    for table in tables.values():
        for column in table.columns.values():
            if column.reference and column.reference not in tables:
                raise FlowDocumentError(f"{name}: {table.name}.{column.name} refers to {column.reference}, no table")
    kinds = {
        part: {key: _step(key, category, entry) for key, entry in (value.get(part) or {}).items()}
        for part, category in (("triggers", "trigger"), ("actions", ACTION), ("subflows", SUBFLOW))
    }
    return Catalogue(tables, kinds["triggers"], kinds["actions"], kinds["subflows"])


def _table(name: str, entry: Any) -> Table:
    _check(name, entry, "table")
    columns = {key: _column(name, key, kind) for key, kind in (entry.get("columns") or {}).items()}
    return Table(name, str(entry.get("label") or name), tuple(map(str, entry.get("also") or ())), columns)


def _column(table: str, name: str, kind: Any) -> Column:
    if isinstance(kind, list):
        pairs = [str(each).partition("=") for each in kind]
        return Column(name, "choice", {value: label or value for value, _, label in pairs})
    kind, _, reference = str(kind).partition(" ")
    if kind not in _COLUMN_TYPES or (kind == "reference") != bool(reference):
        raise FlowDocumentError(f"the column {table}.{name} has the unknown type {kind!r}")
    return Column(name, kind, reference=reference)


def _step(name: str, category: str, entry: Any) -> Step:
    _check(name, entry, category)
    return Step(
        name,
        category,
        str(entry.get("label") or name.replace("_", " ")),
        str(entry.get("about") or ""),
        {key: _slot(name, key, kind) for key, kind in (entry.get("inputs") or {}).items()},
        {key: _slot(name, key, kind) for key, kind in (entry.get("outputs") or {}).items()},
        str(entry.get("scope") or "global"),
    )


def _slot(step: str, name: str, kind: Any) -> Slot:
    text = str(kind)
    words = text.rstrip("!").split()
    if not words or words[0] not in _TYPES:
        raise FlowDocumentError(f"the input or output {step}.{name} has the unknown type {text!r}")
    table = words[-1] if len(words) > 1 and words[1] != "of" else ""
    return Slot(name, words[0], text.endswith("!"), table)


def _check(name: str, entry: Any, what: str) -> None:
    if not _NAME.fullmatch(name) or not isinstance(entry, Mapping):
        raise FlowDocumentError(f"the {what} {name[:60]!r} is not well formed; a name has letters, digits and _")
