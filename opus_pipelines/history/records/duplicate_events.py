"""Detects duplicate events, joins the parts of a case that stand in several files, and stores cases on disk.

Two records of one case are about the same event if their event ids (`[columns] event_id`) and transitions are equal;
without ids, if activity, start, end or time, transition and instance are equal. An event without an id and without any
time is never a duplicate, because nothing shows that it is not a repetition of the work.

Files have an order (natural order of their paths, so that export_9 comes before export_10), and records have the order
in their file:

- A record that equals one of an earlier file is a duplicate. It is dropped, so that an event counts as often as in the
  file that has it most.
- Equal records of one file are separate events, unless `[events] repeated = "drop"` or an id says that they are one.
- A record of a later file that differs from an earlier one about the same event corrects it. The last file that
  contains the event decides.
- Records of one file that are about the same event without an id and differ are different events, such as two payments
  of one day.
- With an id, the later record corrects the earlier one in the same file, too.

A corrected event keeps the position of its first record, which orders events of equal times.
"""

import pickle
import zlib
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryFile
from typing import IO, Any, Generic, TypeVar

from opus_pipelines.history.records.column_mapping import LAST_WINS
from opus_pipelines.history.records.raw import Case, Cause, Event

EventKey = tuple[Any, ...]


@dataclass(slots=True)
class CasePart:
    """The part of a case that one file contains. `cause` is a record of it that cannot be used.

    `is_values`: it is the row of a table of cases, which has the case's own values and no events.
    """

    path: str
    case: Case
    cause: Cause | None = None
    is_values: bool = False


@dataclass
class JoinedCase:
    """A case joined from its parts.

    `paths` has the file of each event that counts. `duplicates` and `corrected` have the file of each record that does
    not count.
    """

    case: Case
    paths: list[str]
    duplicates: list[str] = field(default_factory=list)
    corrected: list[str] = field(default_factory=list)


def event_key(event: Event) -> EventKey | None:
    """Returns the key that records about the same event share, or None if the event has neither id nor time."""
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
    """Removes the duplicates among the events of a case in one file. `keep`: equal records without an event id stay."""
    keys = [event_key(event) for event in events]
    known = [key for key in keys if key is not None]
    if len(set(known)) == len(known):
        return events
    return [version.event for version in _versions(((0, event) for event in events), keep)[0]]


def join(parts: Sequence[CasePart], keep: bool = False) -> JoinedCase:
    """Joins the parts of one case, in the order of their files.

    No part may have a cause. `keep` has the same meaning as in `without_duplicates`.
    """
    order = {path: place for place, path in enumerate(dict.fromkeys(part.path for part in parts))}
    names = list(order)
    versions, duplicates, corrected = _versions(
        ((order[part.path], event) for part in parts for event in part.case.events), keep
    )
    fields = _own_fields(part.case.fields for part in parts)
    events = [one.event for one in versions]
    for place, event in enumerate(events):
        add_fields(fields, event.fields or {})
        if len(names) > 1:
            event.position = place
    case = Case(parts[0].case.case_id, fields, events)
    return JoinedCase(
        case, [names[one.first] for one in versions], [names[f] for f in duplicates], [names[f] for f in corrected]
    )


@dataclass(slots=True)
class _Version:
    """One version of an event: the first and the last file that contain it, and the position of its last record."""

    event: Event
    first: int
    last: int
    turn: int


def _versions(events: Iterable[tuple[int, Event]], keep: bool) -> tuple[list[_Version], list[int], list[int]]:
    """Returns the versions that count, in order, the files of duplicate records, and the files of corrected ones."""
    groups: dict[EventKey, list[_Version]] = {}
    duplicates: list[int] = []
    for turn, (file, event) in enumerate(events):
        group = groups.setdefault(event_key(event) or (turn,), [])
        same = next(
            (one for one in group if _equal(one.event, event) and not (_is_repeated_work(one, file, keep))), None
        )
        if same is None:
            group.append(_Version(event, file, file, turn))
        else:
            same.last, same.turn = file, turn
            duplicates.append(file)
    kept: list[_Version] = []
    corrected: list[int] = []
    for group in groups.values():
        standing = _valid_versions(group)
        kept += standing
        corrected += [one.first for one in group if one not in standing]
    return kept, duplicates, corrected


def _is_repeated_work(one: _Version, file: int, keep: bool) -> bool:
    """Tells whether an equal record of the same file is repeated work that `keep` preserves."""
    return keep and one.event.event_id is None and one.last == file


def _valid_versions(group: list[_Version]) -> list[_Version]:
    """Returns the versions of one event that count."""
    if len(group) == 1:
        return group
    if group[0].event.event_id is not None:
        return [max(group, key=lambda one: one.turn)]
    last = max(one.last for one in group)
    newest = [one for one in group if one.last == last]
    # an event that an earlier file has more often than the last one counts as often
    return [one for one in group if one.last == last or any(_equal(one.event, other.event) for other in newest)]


def _equal(one: Event, other: Event) -> bool:
    return one.task == other.task and one.time == other.time and (one.fields or {}) == (other.fields or {})


def _own_fields(of_parts: Iterable[dict[str, Any]]) -> dict[str, Any]:
    """Merges the values that the case's own records state. The later file takes precedence."""
    merged: dict[str, Any] = {}
    for fields in of_parts:
        attributes = {**merged.get("attributes", {}), **fields.get("attributes", {})}
        merged |= fields
        if attributes:
            merged["attributes"] = attributes
    return merged


def add_fields(fields: dict[str, Any], later: dict[str, Any]) -> None:
    """Adds later case values where the case has none yet. The last stated outcome replaces earlier ones."""
    for name, value in later.items():
        if name == "attributes":
            kept = fields.setdefault(name, {})
            for key, text in value.items():
                kept.setdefault(key, text)
        elif name not in fields or name in LAST_WINS:
            fields[name] = value


_BUCKETS = 64
Item = TypeVar("Item")


def unnamed_file(folder: Path | None) -> IO[bytes]:
    """Opens a new file without a name in `folder`; None is the system's temporary folder.

    Data which is not masked yet is so deleted however the run ends.
    """
    if folder is not None:
        folder.mkdir(parents=True, exist_ok=True)
    return TemporaryFile(dir=folder)


class CaseBuckets(Generic[Item]):
    """Stores items by their case, see `unnamed_file`."""

    def __init__(self, folder: Path | None) -> None:
        self._folder = folder
        self._files: dict[int, IO[bytes]] = {}

    def add(self, items: Iterable[tuple[str, Item]]) -> None:
        """Adds pairs of a case id and an item of that case."""
        buckets: defaultdict[int, list[Item]] = defaultdict(list)
        for case_id, item in items:
            buckets[zlib.crc32(case_id.encode("utf-8", "surrogatepass")) % _BUCKETS].append(item)
        for number, bucket in buckets.items():
            if number not in self._files:
                self._files[number] = unnamed_file(self._folder)
            pickle.dump(bucket, self._files[number], protocol=pickle.HIGHEST_PROTOCOL)

    def __bool__(self) -> bool:
        """Tells whether anything was added."""
        return bool(self._files)

    def buckets(self) -> Iterator[list[Item]]:
        """Yields the items of each bucket, which has all items of its cases, in the order in which they were added."""
        for number in sorted(self._files):
            file = self._files[number]
            file.seek(0)
            yield list(_read(file))

    def close(self) -> None:
        """Deletes all items."""
        for file in self._files.values():
            file.close()
        self._files = {}


def _read(file: IO[bytes]) -> Iterator[Any]:
    while True:
        try:
            yield from pickle.load(file)  # this run wrote it, into a file that no other process can open
        except EOFError:
            return
