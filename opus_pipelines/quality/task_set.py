"""Reads a task set: a JSONL file, gzipped or not, of requests with the workflow that answers each."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from opus_pipelines.core.ids import digest, file_hash
from opus_pipelines.core.json_lines import lines, read_records
from opus_pipelines.workflow.metrics.plan_scores import Plan

_TEXTS = ("context", "output", "industry", "group")


@dataclass(frozen=True)
class Item:
    """One request, and the workflow that answers it.

    Attributes:
        id: its name in the task set, unique.
        request: the client input.
        gold: steps in order, and links where they are stated.
        context: the process context, None where there is none.
        output: the client output, None where there is none.
        industry: None: all of history may answer.
        group: items of one group are alike; intervals are drawn over groups. Default: the set of gold steps.
        catalogue: names of the tools that a workflow may use, with their descriptions; empty: nothing is stated.
    """

    id: str
    request: str
    gold: Plan
    context: str | None = None
    output: str | None = None
    industry: str | None = None
    group: str = ""
    catalogue: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class TaskSet:
    """The items of a file, the lines that could not be used with their reasons, and the hash of what was read."""

    name: str
    items: tuple[Item, ...]
    rejected: tuple[str, ...]
    sha256: str


def read_task_set(path: Path, catalogue: Path | None = None) -> TaskSet:
    """Returns the task set in `path`.

    A line is {"id", "request", "gold": {"plan": [names], "links"?: [[a, b]]}, "context"?, "output"?, "industry"?,
    "group"?, "catalogue"?: [name or {"name", "description"}]}; "plan" and "links" may also stand beside "request".
    `catalogue` has such entries, one a line, for all items. A line that cannot be used is left out with its reason.
    Raises InputError where the file cannot be read or no line can be used.
    """
    shared = dict(_entry(entry) for _, entry in lines(catalogue)) if catalogue else {}

    def parse(row: Any, _: str) -> tuple[str, Item]:
        item = _item(row, shared)
        return item.id, item

    items, rejected = read_records(path, parse)
    read = digest(file_hash(path), file_hash(catalogue)) if catalogue else file_hash(path)
    return TaskSet(path.name, tuple(items), tuple(rejected), read)


def _item(row: Any, shared: Mapping[str, str]) -> Item:
    if not isinstance(row, dict):
        raise ValueError("the line is no JSON object")
    gold = row.get("gold", row)
    if not isinstance(gold, dict) or not isinstance(gold.get("plan"), list):
        raise ValueError('it has no "gold" with a "plan", a list of step names')
    steps, links = tuple(map(_text, gold["plan"])), gold.get("links")
    if not steps:
        raise ValueError("its plan has no steps")
    if links is not None:
        if not all(isinstance(link, list) and len(link) == 2 for link in links):
            raise ValueError("its links are no pairs of step names")
        links = frozenset((_text(a), _text(b)) for a, b in links)
        if strange := sorted({name for link in links for name in link} - set(steps)):
            raise ValueError(f"its links name {strange[0]!r}, which its plan does not have")
    stated = {name: _text(row[name]) for name in _TEXTS if row.get(name) not in (None, "")}
    stated.setdefault("group", " ".join(sorted(set(steps))))
    catalogue = dict(map(_entry, row["catalogue"])) if row.get("catalogue") else shared
    return Item(_text(row.get("id")), _text(row.get("request")), Plan(steps, links), catalogue=catalogue, **stated)


def _entry(entry: Any) -> tuple[str, str]:
    if isinstance(entry, str):
        return entry, ""
    if not isinstance(entry, dict):
        raise ValueError("an entry of the catalogue is neither a name nor an object")
    return _text(entry.get("name", entry.get("tool"))), str(entry.get("description") or "")


def _text(value: Any) -> str:
    if isinstance(value, int) and not isinstance(value, bool):
        return str(value)
    if not isinstance(value, str) or not value.strip():
        raise ValueError(f"a text is missing: {value!r} stands in its place")
    return value
