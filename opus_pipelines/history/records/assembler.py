"""Receives cases and rejects from the format readers, one file at a time.

The assembler pairs lifecycle transitions, computes costs and outcomes, and counts what became of each record.

Events become Task Implementations by the rules of datasets.md. A beginning is paired with an end of the same case, task
and instance, first in first out in the order of their times. Between `suspend` and `resume` (or another beginning) the
work of a task rests: it spans that time, and its working time does not. The waiting time counts from the end of the
preceding task (the last one of the predecessors that the task states). If a task began before that end, it did not
wait, and the waiting time is NULL.
"""

from collections import defaultdict, deque
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from math import fsum
from operator import itemgetter
from pathlib import Path
from typing import Any

import pyarrow as pa

from opus_pipelines.core.ids import canonical, make_id, make_ids
from opus_pipelines.history.records.arrow_arrays import ImplementationBuilder, repeated, strings
from opus_pipelines.history.records.column_mapping import OUTCOME, succeeded
from opus_pipelines.history.records.duplicate_events import CasePart, without_duplicates
from opus_pipelines.history.records.forgotten_clients import Forgotten
from opus_pipelines.history.records.formats import TABLES, Format
from opus_pipelines.history.records.money import Money, price
from opus_pipelines.history.records.raw import Case, Cause, Counts, Event, Reject, Task
from opus_pipelines.history.records.redaction import Redactor
from opus_pipelines.history.records.source_settings import SourceSettings

WORK = frozenset({"start", "complete"})
NOT_WORK = frozenset({"schedule", "suspend", "resume", "ate_abort", "unknown"})  # meanings that make no task
_ENDS = {"complete": None, "ate_abort": False, "fail": False}  # whether the work succeeded, where that is told
_MERGED = (
    "title description instructions actor actor_kind model cost_usd cost_compute_usd cost_model_usd cost_human_usd "
    "cost_basis tokens_in tokens_out memory_gb threads success inputs outputs"
).split()

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class WorkEvidence:
    """Tells from the transitions of a log whether it states when work begins and ends.

    It does where a word says so and nothing else (`WORK`), and where one activity has states that open it, and states
    that close it.
    """

    def __init__(self) -> None:
        self._opened: set[str] = set()
        self._closed: set[str] = set()

    def shows(self, opened: Iterable[str], closed: Iterable[str]) -> bool:
        """Adds activities that some states open, and those that others close. Tells whether one has both by now."""
        self._opened.update(opened)
        self._closed.update(closed)
        return not self._opened.isdisjoint(self._closed)

    def is_in(self, events: Iterable[Event]) -> bool:
        """Adds events, and tells whether work begins and ends, as far as is known by now."""
        told = [e for e in events if e.transition]
        opened = (e.task.task_key for e in told if e.transition in OPENS)
        closed = (e.task.task_key for e in told if e.transition in CLOSES)
        return bool(told) and (self.shows(opened, closed) or any(e.transition in WORK for e in told))


OPENS, CLOSES = frozenset({"open", "schedule"}), frozenset({"close", "fail"})


def undecided(events: Iterable[Event]) -> bool:
    """Tells whether the tasks of these events depend on whether the log states when work begins and ends."""
    return any(e.transition for e in events)


def is_idle(event: Event, log_has_work: bool) -> bool:
    """Tells whether an event is no work, so that it makes no task."""
    is_end = event.interval and event.transition in _ENDS
    return log_has_work and event.transition in NOT_WORK and not is_end


def tasks_of(events: list[Event], log_has_work: bool) -> tuple[list[Task], int]:
    """Returns the tasks of one case in execution order, and the number of its events that are no work.

    `log_has_work`: the log states when work begins and ends; else each event is a task.
    """
    tasks: list[Task] = []
    open_tasks: defaultdict[tuple[str, str | None], deque[_Open]] = defaultdict(deque)
    stated: dict[int, Task] = {}
    not_work = 0
    for event in _in_order(events):
        meaning = _AS_WORK.get(event.transition or "", event.transition) if log_has_work else None
        task, waiting = event.task, open_tasks[event.task.task_key, event.instance] if meaning else _NOTHING
        not_work += is_idle(event, log_has_work)
        if event.interval and (meaning in _ENDS or not is_idle(event, log_has_work)):
            task.success = _ENDS.get(meaning or "") if task.success is None else task.success
            tasks.append(task)
        elif meaning in _ENDS and waiting:
            task = waiting.popleft().end(event, _ENDS[meaning])
        elif meaning == "suspend":
            _first(waiting, rests=False).rest(event.time)
            continue
        elif meaning in ("start", "resume") and (resting := _first(waiting, rests=True)).rests:
            task = resting.go_on(event.time)
        elif meaning in NOT_WORK:
            continue
        elif meaning == "start":
            task.started_at = event.time
            tasks.append(task)
            waiting.append(_Open(task))
        else:
            task.started_at = task.ended_at = event.time
            task.success = False if meaning == "fail" else task.success
            tasks.append(task)
        stated[event.position] = task
    _number(tasks, stated)
    return tasks, not_work


_AS_WORK = {"open": "start", "close": "complete"}


class _Open:
    """A task that has begun and not ended. `rests`: its work is suspended."""

    def __init__(self, task: Task) -> None:
        self._task, self.rests = task, False
        self._since: int | None = None
        self._rested = 0

    def rest(self, time: int | None) -> None:
        """Suspends the work."""
        self.rests, self._since = True, time

    def go_on(self, time: int | None) -> Task:
        """Resumes the work."""
        if self._since is not None and time is not None:
            self._rested += time - self._since
        self.rests, self._since = False, None
        return self._task

    def end(self, event: Event, success: bool | None) -> Task:
        """Ends the task, and says whether it succeeded, where that is told."""
        self.go_on(event.time)
        _complete(self._task, event, self._rested)
        self._task.success = success if success is not None else self._task.success
        return self._task


_NOTHING: deque[_Open] = deque()


def _first(waiting: Iterable[_Open], rests: bool) -> _Open:
    """Returns the first open task that rests, or that does not; a task of no log if there is none."""
    return next((one for one in waiting if one.rests is rests), _Open(Task()))


def _in_order(events: list[Event]) -> list[Event]:
    """Sorts events by time, `order` and position. An event without a time stays behind the event before it."""
    keyed, last = [], -(2**63)
    for event in events:
        last = last if event.time is None else event.time
        keyed.append((last, event.order, event.position, event))
    keyed.sort(key=itemgetter(0, 1, 2))
    return [event for *_, event in keyed]


def _complete(task: Task, event: Event, rested: int) -> None:
    """Ends `task`, whose work rested for so many microseconds, at `event`.

    A value of the completing event replaces that of the starting one.
    """
    task.ended_at = event.time
    if task.started_at is not None and event.time is not None and task.duration_ms is None:
        task.duration_ms = (event.time - task.started_at - rested) / 1000
    ended = event.task
    task.duration_ms = task.duration_ms if ended.duration_ms is None else ended.duration_ms
    for name in _MERGED:
        value = getattr(ended, name)
        if value is not None:
            setattr(task, name, value)
    task.attributes |= ended.attributes


def _number(tasks: list[Task], stated: dict[int, Task]) -> None:
    """Sets positions, waiting times, and predecessors (stated as record positions) as positions of earlier tasks."""
    for position, task in enumerate(tasks):
        task.position = position
    for position, task in enumerate(tasks):
        before = tasks[position - 1 : position] if position else []
        if task.predecessors is not None:
            before = [stated[p] for p in task.predecessors if p in stated and stated[p].position < position]
            task.predecessors = sorted({t.position for t in before})
        ends = [t.ended_at for t in before]
        known = [end for end in ends if end is not None]
        if known and len(known) == len(ends) and task.started_at is not None and task.started_at >= max(known):
            task.wait_ms = (task.started_at - max(known)) / 1000


TICK = 20_000  # records between two looks at the clock


@dataclass
class OtherFiles:
    """The state of a source's other files that the reading of a file depends on.

    `case_ids` are the cases of earlier files, for a format whose cases cannot be joined from several files. `held` are
    the cases that are joined from several files and so are not finished with this file. `has_work`: another file has a
    start or a complete. `day_first` is the order of day and month in the other files.
    """

    case_ids: set[str] = field(default_factory=set)
    held: frozenset[str] = frozenset()
    has_work: bool = False
    day_first: bool | None = None
    names: dict[str, str] = field(default_factory=dict)
    forgotten: Forgotten = field(default_factory=Forgotten)
    left_out: set[str] = field(default_factory=set)  # forgotten clients that were met


@dataclass(frozen=True)
class Block:
    """Whole cases of a log as columns of IMPLEMENTATIONS, without the columns that the assembler fills in.

    `records` is the number of their events, with the duplicates that were dropped.
    """

    columns: Mapping[str, pa.Array]
    records: int
    not_work: int
    tasks: int
    has_work: bool
    duplicates: int = 0


@dataclass(frozen=True)
class LogFile:
    """The file that is read: its source, its path in the source, its format, and the records of the file that stand
    before the part that is read.

    `folders` has the values that its folders state. `client` is the one among them that keeps cases of the same id
    apart.
    """

    source: str
    path: str
    kind: Format
    skipped: int = 0
    folders: Mapping[str, str] = field(default_factory=dict)
    client: str = ""


@dataclass(frozen=True)
class Outlets:
    """Takes what an assembler makes of a file; `tick` gets the number of records from time to time.

    Data that does not fit into memory is stored in `folder`; None is the system's temporary folder.
    """

    implementations: Callable[[pa.RecordBatch], None]
    rejects: Callable[[Reject], None]
    tick: Callable[[int], None] = lambda records: None
    folder: Path | None = None


class Assembler:
    """Assembles the cases of one file.

    Readers call `case` and `reject`. They call `known` before they read a case that would be refused.
    """

    def __init__(self, file: LogFile, settings: SourceSettings, other_files: OtherFiles, outlets: Outlets) -> None:
        padded = settings.columns.case if settings.columns.strip_zeros and file.kind.name in TABLES else None
        self.redactor = Redactor(settings.redact, other_files.forgotten.key, padded)
        self.money = Money(settings)
        self.counts = Counts()
        self.builder = ImplementationBuilder(self.redactor.batch, outlets.implementations)
        self.case_ids: set[str] = set()
        self.asked: set[str] = set()  # ids that `known` was asked about
        self.quarantined_ids: set[str] = set()
        self.repeated: set[str] = set()
        self.parts: list[CasePart] = []
        self.path, self.skipped, self.folders = file.path, file.skipped, file.folders
        self._identity = f"{file.source} {file.client}" if file.client else file.source
        self.encoding: str | None = None
        self.mixed_encodings: str | None = None
        self.day_first: bool | None = None
        self.asks_day_first = False
        self._source, self._settings, self._kind = file.source, settings, settings.kind or file.kind.kind
        self._other_files, self._outlets = other_files, outlets
        self._record_is_case = file.kind.record_is_case
        self._reported = 0
        self._undecided: list[Case] = []
        self.evidence = WorkEvidence()
        self.log_has_work = other_files.has_work
        self.waited_for_work = False

    def known(self, case_id: str) -> bool:
        """Tells whether a case of this id was read before, in this file or in an earlier file of the source.

        Earlier files count only if the cases of the format stand in one file each.
        """
        self.asked.add(case_id)
        return case_id in self._other_files.case_ids or case_id in self.case_ids or case_id in self.quarantined_ids

    def any_known(self, case_ids: set[str]) -> bool:
        """Tells whether any of these cases was read before or is joined from several files."""
        return not all(
            ids.isdisjoint(case_ids)
            for ids in (self.case_ids, self.quarantined_ids, self._other_files.case_ids, self._other_files.held)
        )

    @property
    def folder(self) -> Path | None:
        """Returns the folder of data that does not fit into memory; None is the system's temporary folder."""
        return self._outlets.folder

    @property
    def held(self) -> frozenset[str]:
        """Returns the cases that are joined from several files or places."""
        return self._other_files.held

    def is_held(self, case_id: str) -> bool:
        """Tells whether this case is joined from several files or places.

        Each of its events must then keep its own case values.
        """
        return case_id in self._other_files.held

    def is_repeated(self, case_id: str) -> bool:
        """Tells whether the case occurs in this file a second time, and records that it does.

        The source then reads the file again and joins the case.
        """
        if self.is_held(case_id) or not (case_id in self.case_ids or case_id in self.quarantined_ids):
            return False
        self.repeated.add(case_id)
        return True

    def day_first_of(self, shown: bool | None) -> bool | None:
        """Returns whether the day comes first in dates such as 03/04/2020.

        `shown` is what this file shows; if it is None, the other files of the source decide.
        """
        self.asks_day_first, self.day_first = True, shown
        return self._other_files.day_first if shown is None else shown

    def is_forgotten(self, client: str | None) -> bool:
        """Tells whether this client is forgotten."""
        return self._other_files.forgotten.holds(client)

    def unique_key(self, key: str, name: str) -> str:
        """Returns a key for a task of a model that is unique within the source.

        If an earlier model gave the same id to another task, as copied models do, the name is added to the key.
        """
        return key if key and self._other_files.names.setdefault(key, name) == name else f"{key} {name}".strip()

    def reject(self, position: int, code: str, reason: str, record: str, case_id: str | None = None) -> Cause:
        """Rejects a record that cannot be used, and returns the cause for its case.

        `record` is its text, redacted already where it could be parsed. The reader passes the rest of the case on with
        the cause, and the whole case is quarantined.
        """
        self._count(1)
        self.counts.rejected += 1
        if self._record_is_case:
            self.counts.quarantined += 1
        elif case_id is None:
            self.counts.caseless += 1
        for client in self._other_files.forgotten.names_in(record):
            self.is_left_out(client)
        shown = case_id and self.redactor.identity(case_id)
        self._outlets.rejects(Reject(position, code, self.redactor.reason(reason), self.redactor.record(record), shown))
        return Cause(self.path, position, code)

    def reject_with_case(self, position: int, record: str, case_id: str, cause: Cause) -> None:
        """Rejects a usable record because another record of its case is rejected."""
        self._count(1)
        self.counts.rejected += 1
        self._outlets.rejects(_quarantined_record(position, record, case_id, cause, self.redactor))

    def count_repeated(self, is_corrected: bool) -> None:
        """Counts a record that a later one of the same file repeats, either equal or corrected."""
        self.not_work(1)
        self.counts.corrected += is_corrected
        self.counts.duplicates += not is_corrected

    def not_work(self, records: int) -> None:
        """Counts records outside all cases because they are no work: notes, disabled steps, events of other objects."""
        self._count(records)
        self.counts.not_work += records

    def case(self, case: Case, cause: Cause | None = None) -> None:
        """Adds a case with its usable events.

        `cause` is a record of the case that cannot be used; the whole case is then quarantined. The id of the case must
        not be known, unless the case is held.
        """
        self._count(self._records_of(case))
        if not self.log_has_work and self.evidence.is_in(case.events):
            self.finds_work()
        if self.is_held(case.case_id):
            self.case_ids.add(case.case_id)
            self.parts.append(CasePart(self.path, case, cause))
            return
        if cause is not None:
            self._quarantine(case, cause)
            return
        self.case_ids.add(case.case_id)
        if not self.log_has_work and undecided(case.events):
            self._undecided.append(case)
        else:
            self._add(case)

    def case_values(self, case: Case) -> None:
        """Adds the row of a case in a table of cases, whose events stand in other files of the source.

        It is no work if they do not.
        """
        self._count(1)
        self.case_ids.add(case.case_id)
        if self.is_held(case.case_id):
            self.parts.append(CasePart(self.path, case, None, is_values=True))
        else:
            self.counts.not_work += 1

    def block(self, block: Block) -> None:
        """Adds whole cases as columns. None of their ids may be known.

        As long as no start or complete was read, no event of the block may depend on whether the log has one.
        """
        if block.has_work and not self.log_has_work:
            self.finds_work()
        rows = len(block.columns["case_id"])
        names: list[str] = block.columns["case_id"].to_pylist()
        self.case_ids.update(names)
        not_work = block.not_work + block.duplicates
        self.counts.used += block.records - not_work
        self.counts.not_work += not_work
        self.counts.duplicates += block.duplicates
        self.counts.implementations += rows
        self.counts.task_implementations += block.tasks
        constants = {"source": self._source, "path": self.path, "kind": self._kind}
        own = {name: repeated(value, pa.string(), rows) for name, value in constants.items()}
        own["implementation_id"] = strings(make_ids("i", names, self._identity))
        self.builder.block({**block.columns, **own})
        self._count(block.records)

    def finds_work(self) -> None:
        """Records that the log states when work begins and ends, and adds the cases that waited for this."""
        self.log_has_work = True
        self._add_undecided()

    def finish(self) -> None:
        """Ends the file. Cases that waited for a start or a complete are added without one."""
        self.waited_for_work |= bool(self._undecided)
        self._add_undecided()
        self.builder.flush()
        self.counts.currencies = sorted(self.money.foreign_currencies)

    def _add_undecided(self) -> None:
        waiting, self._undecided = self._undecided, []
        for case in waiting:
            self._add(case)

    def report_progress(self, records: int) -> None:
        """Reports progress: `records` is the number of records read so far.

        Readers that hold cases back call it themselves.
        """
        if records - self._reported >= TICK:
            self._reported = records
            self._outlets.tick(records)

    def _count(self, records: int) -> None:
        self.counts.records += records
        self.report_progress(self.counts.records)

    def is_left_out(self, client: str | None) -> bool:
        """Tells whether this client is forgotten, and records that one of its cases was read."""
        if not self._other_files.forgotten.holds(client):
            return False
        self._other_files.left_out.add(str(client))
        return True

    def is_left_out_case(self, case: Case) -> bool:
        """Tells whether the case belongs to a forgotten client."""
        return self.is_left_out(self._settings.constant("client") or case.fields.get("client"))

    def _records_of(self, case: Case) -> int:
        return 1 if self._record_is_case else len(case.events) - case.shared

    def _quarantine(self, case: Case, cause: Cause) -> None:
        self.quarantined_ids.add(case.case_id)
        if self.is_left_out_case(case):
            self.counts.not_work += self._records_of(case)
            return
        self.counts.quarantined += 1
        for event in case.events:
            self.counts.rejected += 1
            self._outlets.rejects(quarantined_event(case.case_id, event, cause, self.redactor))

    def _add(self, case: Case) -> None:
        if self.is_left_out_case(case):
            self.counts.not_work += self._records_of(case)
            return
        if not self._record_is_case:
            before = len(case.events)
            case.events = without_duplicates(case.events, keep=self._settings.events.repeated == "keep")
            self.counts.duplicates += before - len(case.events)
            self.counts.not_work += before - len(case.events)
        tasks, not_work = self.add(case, self.path)
        self.counts.used += self._records_of(case) - not_work
        self.counts.not_work += not_work
        self.counts.implementations += 1
        self.counts.task_implementations += len(tasks)

    def add(self, case: Case, path: str) -> tuple[list[Task], int]:
        """Writes a whole case as an implementation, without counting it.

        Returns its tasks and the number of its events that are no work.
        """
        tasks, not_work = tasks_of(case.events, self.log_has_work)
        for task in tasks:
            price(task, self._settings.rates)
            task.attributes = dict(sorted(task.attributes.items()))
        self.builder.add(self._row(case, tasks, path), tasks)
        return tasks, 0 if self._record_is_case else not_work

    def _row(self, case: Case, tasks: list[Task], path: str) -> dict[str, Any]:
        fields, settings = case.fields, self._settings
        costs = [t.cost_usd for t in tasks if t.cost_usd is not None]
        return {
            "implementation_id": make_id("i", self._identity, case.case_id),
            "source": self._source,
            "case_id": case.case_id,
            "path": path,
            "kind": self._kind,
            "process_context": fields.get("process_context"),
            "expected_outcome": fields.get("expected_outcome"),
            "industry": settings.constant("industry") or fields.get("industry"),
            "client": settings.constant("client") or fields.get("client"),
            "contract": settings.constant("contract") or fields.get("contract"),
            "title": fields.get("title"),
            "description": fields.get("description"),
            "attributes": dict(sorted(fields.get("attributes", {}).items())),
            "started_at": min((t.started_at for t in tasks if t.started_at is not None), default=None),
            "ended_at": max((t.ended_at for t in tasks if t.ended_at is not None), default=None),
            "success": succeeded(settings.success, fields, fields.get(OUTCOME), tasks),
            "weight": settings.weight if isinstance(settings.weight, int) else fields.get("weight", 1),
            "cost_usd": fields.get("case_cost", fsum(costs) if costs else None),
            "tasks": None,
        }


def quarantined_event(case_id: str, event: Event, cause: Cause, redactor: Redactor) -> Reject:
    """Builds the reject of a usable record whose case is quarantined because of another record."""
    return _quarantined_record(event.position, event_record(case_id, event), case_id, cause, redactor)


def event_record(case_id: str, event: Event) -> str:
    """Returns what was read of an event, as text."""
    task = event.task
    time = (
        None if event.time is None else (_EPOCH + timedelta(microseconds=event.time)).isoformat().replace("+00:00", "Z")
    )
    return canonical({"case": case_id, "activity": task.task_key, "time": time, "attributes": task.attributes})


def _quarantined_record(position: int, record: str, case_id: str, cause: Cause, redactor: Redactor) -> Reject:
    path = redactor.reason(cause.path)  # nothing else of the reason comes from a file
    place = f"{path}, position {cause.position:,}"
    reason = f"it is usable, but its case is put aside whole: {place} cannot be used ({cause.code})"
    return Reject(
        position,
        "case_quarantined",
        reason,
        redactor.record(record),
        redactor.identity(case_id),
        cause,
    )
