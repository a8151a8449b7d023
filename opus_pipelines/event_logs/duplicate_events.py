"""Which records say the same event, and how the parts of a case that stand in several files become one case.

Two records of one case are about the same event where their event ids are equal (`[columns] event_id`), with the same
transition; without ids where activity, start, end or time, transition and instance are equal. An event without an id
and without any time is never taken for another, because nothing tells that it is not a repetition of the work.

Files have an order (natural order of their paths, so that export_9 comes before export_10), and records have the order
in their file:

- A record that says the same event as an earlier one in equal words is a duplicate. It is dropped.
- A record of a later file that says the same event in other words corrects it. The last file that mentions an event has
  the last word.
- Records of one file that are about the same event without an id, in other words, are different events: two payments of
  one day.
- With an id the later record corrects the earlier one in the same file, too.

A corrected event keeps the place of the first record that mentioned it, which orders events of equal times.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from opus_pipelines.event_logs.column_mapping import LAST_WINS
from opus_pipelines.event_logs.records import Case, Cause, Event

Key = tuple[Any, ...]


@dataclass(slots=True)
class Part:
    """What one file has of a case; `cause`: a record of the case in that file that cannot be used."""

    path: str
    case: Case
    cause: Cause | None = None


@dataclass
class JoinedCase:
    """A case put together: its events that count, the file of each, and the files of the records that do not count,
    one entry a record.
    """

    case: Case
    paths: list[str]
    duplicates: list[str] = field(default_factory=list)
    corrected: list[str] = field(default_factory=list)


def event_key(event: Event) -> Key | None:
    """What two records of one case share that are about the same event; None where nothing tells."""
    if event.event_id is not None:
        return event.event_id, event.transition
    if event.time is None:
        return None
    return (
        event.task.task_key,
        event.time,
        event.task.ended_at if event.interval else None,
        event.transition,
        event.instance,
    )


def without_duplicates(events: list[Event], keep: bool = False) -> list[Event]:
    """The events of one file's case, each once. `keep`: equal records without an event id stay."""
    keys = [event_key(event) for event in events]
    known = [key for key in keys if key is not None]
    if len(set(known)) == len(known):
        return events
    return [said.event for said in _said(((0, event) for event in events), keep)[0]]


def join(parts: Sequence[Part], keep: bool = False) -> JoinedCase:
    """One case of several parts, in the order of their files. No part has a cause. `keep`: as in `without_duplicates`."""
    order = {path: place for place, path in enumerate(dict.fromkeys(part.path for part in parts))}
    names = list(order)
    said, duplicates, corrected = _said(
        ((order[part.path], event) for part in parts for event in part.case.events), keep
    )
    fields = _own_fields(part.case.fields for part in parts)
    events = [one.event for one in said]
    for place, event in enumerate(events):
        _add_fields(fields, event.fields or {})
        if len(names) > 1:
            event.position = place
    case = Case(parts[0].case.case_id, fields, events)
    return JoinedCase(
        case, [names[one.first] for one in said], [names[f] for f in duplicates], [names[f] for f in corrected]
    )


@dataclass(slots=True)
class _Said:
    """One wording of an event: the first file that has it, the last one, and when it was said last."""

    event: Event
    first: int
    last: int
    turn: int


def _said(events: Iterable[tuple[int, Event]], keep: bool) -> tuple[list[_Said], list[int], list[int]]:
    """What counts, in order; the files of duplicate records, and of those that were corrected."""
    groups: dict[Key, list[_Said]] = {}
    duplicates: list[int] = []
    for turn, (file, event) in enumerate(events):
        group = groups.setdefault(event_key(event) or (turn,), [])
        same = next((one for one in group if _equal(one.event, event) and not (_repeats(one, file, keep))), None)
        if same is None:
            group.append(_Said(event, file, file, turn))
        else:
            same.last, same.turn = file, turn
            duplicates.append(file)
    kept: list[_Said] = []
    corrected: list[int] = []
    for group in groups.values():
        standing = _standing(group)
        kept += standing
        corrected += [one.first for one in group if one not in standing]
    return kept, duplicates, corrected


def _repeats(one: _Said, file: int, keep: bool) -> bool:
    """Is an equal record of the same file a repetition of the work that is to be kept?"""
    return keep and one.event.event_id is None and one.last == file


def _standing(group: list[_Said]) -> list[_Said]:
    if len(group) == 1:
        return group
    if group[0].event.event_id is not None:
        return [max(group, key=lambda one: one.turn)]
    last = max(one.last for one in group)
    return [one for one in group if one.last == last]


def _equal(one: Event, other: Event) -> bool:
    return one.task == other.task and one.time == other.time and (one.fields or {}) == (other.fields or {})


def _own_fields(of_parts: Iterable[dict[str, Any]]) -> dict[str, Any]:
    """What the case's own records say of it; the later file wins."""
    found: dict[str, Any] = {}
    for fields in of_parts:
        attributes = {**found.get("attributes", {}), **fields.get("attributes", {})}
        found |= fields
        if attributes:
            found["attributes"] = attributes
    return found


def _add_fields(fields: dict[str, Any], said: dict[str, Any]) -> None:
    """What an event says of its case, where nothing was said of it yet; of an outcome the last word counts."""
    for name, value in said.items():
        if name == "attributes":
            kept = fields.setdefault(name, {})
            for key, text in value.items():
                kept.setdefault(key, text)
        elif name not in fields or name in LAST_WINS:
            fields[name] = value
