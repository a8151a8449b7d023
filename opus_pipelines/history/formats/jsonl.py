"""Reads JSON Lines: each line is one record and one case, with its tasks nested in it.

`[record]` and `[task]` state the dotted paths of the values.
"""

import json
from collections.abc import Callable
from itertools import islice
from typing import Any, BinaryIO

from opus_pipelines.core.errors import InputError
from opus_pipelines.core.ids import canonical
from opus_pipelines.core.json_lines import numbered_lines
from opus_pipelines.history.formats.table_log import USUAL
from opus_pipelines.history.records import values
from opus_pipelines.history.records.assembler import Assembler
from opus_pipelines.history.records.column_mapping import CaseMap, EventMap, case_names
from opus_pipelines.history.records.raw import Case, Event
from opus_pipelines.history.records.source_settings import SourceSettings
from opus_pipelines.history.records.values import BadValueError, TimeParser, at_path, flatten

LINE_BYTES = 1 << 26
# of telling what a task follows: a second or two, and no process that people work by needs a thousandth of them
STEPS = 5_000_000
PATIENCE = 100  # records that may wait until the paths are determined
_CASE_USUAL = ("case_id", "case", "id", "trace_id")
_TASKS_USUAL = ("tasks", "steps", "events", "activities")
_TASK_USUAL = {**USUAL, "activity": ("activity", "task", "name", "tool", "task_key")}
_SAME = {"title": "task_title", "description": "task_description", "success": "task_success"}


def read(open_file: Callable[[], BinaryIO], settings: SourceSettings, sink: Assembler) -> None:
    """Reads every line into `sink`. Raises InputError if no line shows which path is the case's id or its tasks."""
    reader: _JsonReader | None = None
    waiting: list[tuple[int, dict[str, Any]]] = []
    with open_file() as file:
        for position, line in numbered_lines(file, LINE_BYTES):
            if sink.counts.is_no_log(sink.counts.used):
                raise InputError(f"hardly a line can be used of the first {position:,}")
            try:
                record = sink.redactor.nested(parsed_line(line))
            except BadValueError as error:
                refuse_line(sink, position, error, line)
                continue
            waiting.append((position, record))
            if reader is not None or _tells_all(record, settings) or len(waiting) == PATIENCE:
                reader = reader or _JsonReader(_most_telling(waiting, settings), settings, sink)
                waiting = reader.records(waiting)
    if waiting:
        _JsonReader(_most_telling(waiting, settings), settings, sink).records(waiting)
    elif not sink.counts.records:
        raise InputError("the file is empty")


def _tells_all(record: dict[str, Any], settings: SourceSettings) -> bool:
    """Tells whether a record has an id and at least one task, so that unstated paths can be determined from it."""
    tasks = next((t for path in (settings.record.tasks, *_TASKS_USUAL) if path and (t := at_path(record, path))), None)
    has_id = settings.record.case is not None or any(name in record for name in _CASE_USUAL)
    return has_id and isinstance(tasks, list)


def _most_telling(waiting: list[tuple[int, dict[str, Any]]], settings: SourceSettings) -> dict[str, Any]:
    return next(
        (record for _, record in waiting if _tells_all(record, settings)), max((r for _, r in waiting), key=len)
    )


class _JsonReader:
    def __init__(self, first: dict[str, Any], settings: SourceSettings, sink: Assembler) -> None:
        stated = settings.record.model_dump(exclude_none=True, exclude={"attributes", "tasks", "drop_tasks"})
        if "cost" in stated:
            stated.setdefault("case_cost", stated.pop("cost"))
        self._tasks_path = settings.record.tasks or _usual("tasks", _TASKS_USUAL, first)
        stated.setdefault(
            "case", _usual("case", _CASE_USUAL, first) if settings.record.case is None else settings.record.case
        )
        names = case_names(settings, stated)
        self._id_path = names["case"]
        self._case_map = CaseMap({"currency": "currency"} | names, settings.record.attributes, sink.money)
        self._task_names = self._names_in_task(at_path(first, self._tasks_path), settings)
        times = TimeParser(settings.timezone, settings.time_format)
        self._events = EventMap(
            self._task_names, CaseMap({}, [], sink.money), settings, times, settings.task.attributes
        )
        self._dropped = frozenset(settings.record.drop_tasks)
        self._sink = sink

    @staticmethod
    def _names_in_task(tasks: Any, settings: SourceSettings) -> dict[str, str]:
        stated = settings.task.model_dump(exclude_none=True, exclude={"attributes"})
        names = {_SAME.get(name, name): path for name, path in stated.items() if isinstance(path, str)}
        element = tasks[0] if isinstance(tasks, list) and tasks and isinstance(tasks[0], dict) else {}
        for field in ("activity", "start", "end", "time", "transition", "actor", "actor_kind"):
            usual = next((name for name in _TASK_USUAL[field] if name in element and name not in names.values()), None)
            told_when = field in ("end", "time") and not {"end", "time"}.isdisjoint(names)
            if field not in names and usual and not told_when:
                names[field] = usual
        return {"activity": "activity", "currency": "currency"} | names

    def records(self, waiting: list[tuple[int, dict[str, Any]]]) -> list[tuple[int, dict[str, Any]]]:
        """Reads the waiting records and empties the list."""
        for position, record in waiting:
            try:
                case = self._case(record)
            except Exception as error:
                found = values.unforeseen(error)
                self._sink.reject(position, found.code, found.reason, canonical(record))
            else:
                if not self._sink.is_repeated(case.case_id):
                    self._sink.case(case)
        return []

    def _case(self, record: dict[str, Any]) -> Case:
        tasks = at_path(record, self._tasks_path)
        if not isinstance(tasks, list):
            raise BadValueError("no_tasks", f"{self._tasks_path} is no list of tasks")
        flat = values.telling(flatten(record))
        raw = {path: value for path, value in flat.items() if path != self._tasks_path}
        fields: dict[str, Any] = {}
        self._case_map.collect(fields, raw)
        self._case_map.collect_attributes(fields, raw)
        case_id = fields.get("case")
        if not case_id:
            raise BadValueError("no_case", f"{self._id_path} is missing or empty")
        values.name(case_id)
        return Case(case_id, fields, self._read_tasks(tasks, self._case_map.currency(raw)))

    def _read_tasks(self, tasks: list[Any], currency: Any) -> list[Event]:
        events = []
        for place, task in enumerate(tasks):
            if isinstance(task, str):
                task = {self._task_names["activity"]: task}
            if not isinstance(task, dict):
                raise BadValueError("bad_task", f"task {place} is neither an object nor a name")
            try:
                events.append(self._events.event(self._flat(task), place, currency=currency))
            except BadValueError as error:
                raise BadValueError(error.code, f"task {place}: {error.reason}") from None
        return _without(events, self._dropped)

    def _flat(self, task: dict[str, Any]) -> dict[str, Any]:
        """Flattens a task, but not what it returned, whose fields are no attributes of the task."""
        flat, path = values.telling(flatten(task)), self._task_names.get("result")
        if path is None or not isinstance(result := at_path(task, path), dict):
            return flat
        return {key: value for key, value in flat.items() if not key.startswith(f"{path}.")} | {path: result}


def _without(events: list[Event], dropped: frozenset[str]) -> list[Event]:
    """Returns the tasks that are work. What follows a removed task follows its predecessors."""
    before = {e.position: e.task.predecessors or [] for e in events if e.task.task_key in dropped}
    kept = [e for e in events if e.position not in before]
    behind = work_before(before)
    for event in kept if before else []:
        if event.task.predecessors is not None:
            places = [behind.get(place, {place}) for place in event.task.predecessors]
            event.task.predecessors = sorted(set().union(*places))
    return kept


def work_before(before: dict[int, list[int]]) -> dict[int, set[int]]:
    """Returns, for each removed position, the positions of the work that it follows, through other removed ones.

    In a cycle of removed positions only the first one has them.
    """
    behind: dict[int, set[int]] = {}
    steps = 0
    for root in before:
        path = [] if root in behind else [(root, iter(before[root]))]
        behind.setdefault(root, set())
        while path:
            place, rest = path[-1]
            ahead = next(rest, None)
            if ahead is None:
                path.pop()
                ahead, place = place, path[-1][0] if path else place
            if ahead not in before:
                behind[place].add(ahead)
            elif ahead in behind:
                steps += 1 + len(behind[ahead])
                behind[place] |= behind[ahead]
            else:
                behind[ahead] = set()
                path.append((ahead, iter(before[ahead])))
            if steps > STEPS:
                raise BadValueError(
                    "too_many_links",
                    f"it takes over {STEPS:,} steps to tell what its tasks follow without those dropped",
                )
    return behind


def _usual(what: str, names: tuple[str, ...], record: dict[str, Any]) -> str:
    usual = next((name for name in names if name in record), None)
    if usual is None:
        example = f'[record]\n{what} = "{next(iter(record), "...")[:60]}"'
        named = ", ".join(name[:60] for name in islice(record, 40))
        raise InputError(
            f"it cannot be told where a record has its {what}; the names found are {named}; say in "
            f'source.toml:\n{example}\nor where each record is an event, format = "json_events"'
        )
    return usual


def refuse_line(sink: Assembler, position: int, error: BadValueError, line: bytes) -> None:
    """Puts a line aside that has no object, with the reason and its beginning."""
    sink.reject(position, error.code, error.reason, sink.redactor.raw(line[:65_536].decode("utf-8", "replace")))


def parsed_line(line: bytes) -> dict[str, Any]:
    """Returns the object of a line. Raises BadValueError where it has none."""
    if len(line) == LINE_BYTES and not line.endswith(b"\n"):
        raise BadValueError("too_long", f"the line is longer than {LINE_BYTES:,} bytes")
    try:
        record = json.loads(line.decode("utf-8-sig"))
    except UnicodeDecodeError as error:
        raise BadValueError("encoding", f"the line is not UTF-8 (byte {error.start})") from None
    except RecursionError:
        raise BadValueError("bad_json", "the line is nested too deeply") from None
    except ValueError as error:
        raise BadValueError("bad_json", f"the line is not JSON: {error}") from None
    if not isinstance(record, dict):
        raise BadValueError("bad_json", "the line is no JSON object")
    if b"\\ud" in line.lower():
        try:
            canonical(record).encode()
        except UnicodeEncodeError:
            raise BadValueError("encoding", "the line holds half of a character (a lone surrogate)") from None
    return record
