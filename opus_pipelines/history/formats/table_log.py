"""Reads event logs that are tables, in any file format: a row is an event, and the rows of a case may be anywhere.

Which column has which meaning is stated by `[columns]` in source.toml, else told by the usual names of logs.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from opus_pipelines.core.errors import InputError
from opus_pipelines.core.ids import canonical
from opus_pipelines.history.columns.cases import Maps
from opus_pipelines.history.columns.flat_log import ColumnLog, FlatLog, only_one_attribute_each
from opus_pipelines.history.columns.flat_rows import RowReader, Rows, as_texts, coded_texts, plain_values
from opus_pipelines.history.columns.values import UnusualError
from opus_pipelines.history.records import values
from opus_pipelines.history.records.arrow_arrays import repeated, strings
from opus_pipelines.history.records.assembler import Assembler
from opus_pipelines.history.records.column_mapping import CASE_PREFIXES, CaseMap, EventMap, case_names
from opus_pipelines.history.records.duplicate_events import CaseBuckets, add_fields
from opus_pipelines.history.records.raw import Case, Cause
from opus_pipelines.history.records.source_settings import (
    CaseNames,
    Columns,
    EventNames,
    RowFilter,
    SourceSettings,
    common_name,
)
from opus_pipelines.history.records.values import BadValueError, TimeParser

USUAL: dict[str, tuple[str, ...]] = {
    "case": ("case_id", "case:concept:name", "caseid", "case", "case_concept_name", "case_key", "trace_id"),
    "activity": ("activity", "concept:name", "activity_name", "task", "task_name", "event", "event_name"),
    "start": ("start_time", "start_timestamp", "starttime", "start", "started_at", "start_date"),
    "end": tuple(
        "end_time end_timestamp endtime end ended_at end_date complete_time complete_timestamp completed_at".split()
    ),
    "time": ("timestamp", "time:timestamp", "time", "datetime", "event_time", "date"),
    "transition": ("lifecycle:transition", "lifecycle", "transition", "lifecycle_transition"),
    "instance": ("concept:instance", "activity_instance_id", "activity_instance"),
    "order": ("sorting", "sort_order", "sort_number", "sorting_number", "event_order", "event_sequence"),
    "actor": ("resource", "org:resource", "actor", "performer", "user"),
    "actor_kind": ("actor_kind",),
    "model": ("model_name",),
    "currency": ("currency", "currency_code", "cost_currency", "cost:currency"),
    "cost": ("cost_usd", "cost", "cost:total"),
    "client": ("client",),
    "contract": ("contract",),
    "industry": ("industry",),
}
_GUESSES = {
    "case": r"case|id\b|nr|no\b|number|key",
    "activity": r"activ|task|step|event|action",
    "time": r"time|date|when|stamp|day",
}


_TIMES = ("start", "end", "time")


def tell_columns(header: list[str], stated: Columns) -> dict[str, str]:
    """Returns the column of each field.

    Raises InputError, with the names of the columns and the settings to add, if a required field is unclear.
    """
    refuse_object_centric(header)
    parts = {column for pair in stated.joined_times.values() for column in pair}
    names = {k: v for k, v in stated.model_dump(exclude_none=True).items() if isinstance(v, str)}
    missing = [column for column in (*names.values(), *sorted(parts)) if column not in header]
    if missing:
        raise InputError(f"it has no column {', '.join(missing)} as source.toml says; {_column_list(header)}")
    names.pop("scope", None)  # it may have another role as well
    names |= {k: " ".join(v) for k in _TIMES if isinstance(v := getattr(stated, k), list)}
    plain = {_plain(name): name for name in reversed(header)}
    taken = set(names.values()) | set(stated.attributes or ()) | parts
    for field, usual in USUAL.items():
        column = next((plain[u] for u in map(_plain, usual) if u in plain and plain[u] not in taken), None)
        if field not in names and column is not None and not _is_excluded(field, names):
            names[field] = column
            taken.add(column)
    if "case" not in names or "activity" not in names:
        raise InputError(_refusal(header, names))
    return names


# the columns that take the place of a column for each step, and of two for each
LONG, LONG_WITH_ENDS = ("activity", "timestamp"), ("activity", "start_time", "end_time")


def _of_folders(added: Mapping[str, str], settings: SourceSettings, used: Iterable[str]) -> dict[str, str]:
    """Returns the values of folders by column. Those without a role are of the case, but for days and numbers."""
    stated = {settings.column_of(name) for name in ("client", "contract", "industry", "weight")}
    stated |= {settings.success.column, *used}
    of_case = {name for name, value in added.items() if name not in stated and not value.replace("-", "").isdigit()}
    prefix = CASE_PREFIXES[0] if settings.columns.attributes is None else ""
    return {f"{prefix}{name}" if name in of_case else name: value for name, value in added.items()}


OBJECT_TYPE = "ocel:type:"  # what a column of objects begins with


def refuse_object_centric(header: Iterable[str]) -> None:
    """Raises InputError for the columns of an object-centric log, whose events belong to several cases each."""
    kinds = [name.removeprefix(OBJECT_TYPE) for name in header if name.startswith(OBJECT_TYPE)]
    if kinds:
        raise InputError(
            f"it is an object-centric log (OCEL) as CSV; name it *.ocel.csv, and in source.toml say which objects are "
            f'the cases ({", ".join(kinds[:10])}):\nobject_type = "{kinds[0]}"'
        )


def in_long_form(header: Sequence[str], settings: SourceSettings) -> tuple[list[str], SourceSettings]:
    """Returns the columns of a table that has a column for each step, once it has a row for each step instead.

    The settings name the two columns that take the place of those of the steps. Raises InputError if one is missing.
    """
    steps = {*settings.table.steps, *settings.table.ends}
    if lacking := sorted(steps.difference(header)):
        raise InputError(f"it has no column {', '.join(lacking)} as source.toml says; {_column_list(list(header))}")
    long = LONG_WITH_ENDS if settings.table.ends else LONG
    names = column_names([*(name for name in header if name not in steps), *long])
    own = dict.fromkeys(("start", "end", "time")) | dict(
        zip(("activity", *(("start", "end") if settings.table.ends else ("time",))), names[-len(long) :], strict=True)
    )
    return names, settings.model_copy(update={"columns": settings.columns.model_copy(update=own)})


def _own_columns(header: Sequence[str], settings: SourceSettings, is_of_cases: bool) -> SourceSettings:
    """Returns the settings without the columns that the other one of two tables has."""
    stated = settings.columns.model_dump(exclude_none=True)
    names = [k for k in stated if k in CaseNames.model_fields or k == "success" or is_of_cases]
    own = {k: None for k in names if k not in ("case", "attributes", "strip_zeros") and stated[k] not in header}
    return settings.model_copy(update={"columns": settings.columns.model_copy(update=own)})


def _key_of_cases(header: list[str], settings: SourceSettings) -> dict[str, str]:
    """Returns the column of each field of a table of cases. Raises InputError without the column of the case's id."""
    key = settings.table.key or settings.columns.case
    plain = {_plain(name): name for name in reversed(header)}
    key = key or next((plain[name] for name in map(_plain, USUAL["case"]) if name in plain), None)
    if key is None or key not in header:
        raise InputError(
            f"it cannot be told which column of the cases is their id; {_column_list(header)}; under [table] in "
            f'source.toml say, corrected:\nkey = "{header[0]}"'
        )
    stated = settings.columns.model_dump(exclude_none=True)
    own = {k: v for k, v in stated.items() if isinstance(v, str) and (k in CaseNames.model_fields or k == "success")}
    usual = {k: plain[k] for k in ("client", "contract", "industry") if k in plain}
    return usual | own | {"case": key}


def column_names(written: Iterable[str], unnamed: str = "column {}") -> list[str]:
    """Returns the names of columns, all different.

    A column without a name is named by its position, and a repeated name gets its position as a number.
    """
    header: dict[str, None] = {}
    for place, name in enumerate(written, start=1):
        distinct_name = name or unnamed.format(place)
        while distinct_name in header:
            distinct_name = f"{distinct_name} ({place})"
        header[distinct_name] = None
    return list(header)


def _is_excluded(field: str, names: dict[str, str]) -> bool:
    """Tells whether the stated columns exclude a usual name of the field.

    Start and end are more precise than one time, and a person who named one time excludes the others.
    """
    if field == "time":
        return "end" in names or ("start" in names and "time" in names)
    return field in ("start", "end") and "time" in names


def _plain(name: str) -> str:
    return re.sub(r"[\s_:.-]+", "_", name.strip().lower()).lstrip("_") or name


def _column_list(header: list[str]) -> str:
    return "the columns found are " + ", ".join(map(_cut, header[:40])) + (", ..." if len(header) > 40 else "")


def _cut(name: str) -> str:
    return name if len(name) <= 60 else name[:57] + "..."


def _refusal(header: list[str], names: dict[str, str]) -> str:
    free = [name for name in header if name not in names.values()]
    guess = {field: names.get(field) or _guess(pattern, free) for field, pattern in _GUESSES.items()}
    lines = "\n".join(f'{field} = "{_cut(column)}"' for field, column in guess.items())
    lacking = " and ".join(field for field in ("case", "activity") if field not in names)
    return (
        f"it cannot be told which column is the {lacking}; {_column_list(header)}; under [columns] in source.toml say, "
        f"corrected:\n{lines}"
    )


def _guess(pattern: str, free: list[str]) -> str:
    """Returns the most likely of the remaining columns and removes it from them."""
    column = next((name for name in free if re.search(pattern, name, re.IGNORECASE)), free[0] if free else "...")
    free[:] = [name for name in free if name != column]
    return column


def _joined_id(scope: Any, ident: Any) -> str | None:
    """Returns the id of a case whose scope and number stand in two columns; None where one of them is missing."""
    parts = [values.text(value).strip() for value in (scope, ident) if not values.says_nothing(value)]
    return " ".join(parts) if len(parts) > 1 else None


_IN_MEMORY = 1 << 28  # bytes of the events that are collected, before they are stored on disk
_EVENT = 2_400  # bytes of an event without its texts
ColumnLogOf = Callable[["TableLog"], ColumnLog | None]
_STATED = object()  # the value of a field that is stored on disk


class TableLog:
    """Collects the rows of one file into cases. Raises InputError if the columns are unclear.

    Events beyond `in_memory` bytes are stored on disk in buckets of whole cases, so that memory does not grow with the
    rows. What stays in memory is the id of each case and which fields it has.
    """

    def __init__(
        self, header: list[str], settings: SourceSettings, sink: Assembler, in_memory: int = _IN_MEMORY
    ) -> None:
        layout = settings.table
        self._is_of_cases = layout.cases == sink.path
        self._steps, columns = [*zip(layout.steps, layout.ends or layout.steps, strict=True)], header
        if self._steps:
            columns, settings = in_long_form(header, settings)
        elif layout.cases:
            settings = _own_columns(header, settings, self._is_of_cases)
        added = {name: value for name, value in sink.folders.items() if name not in header}
        names = (
            _key_of_cases(header, settings) if self._is_of_cases else tell_columns([*columns, *added], settings.columns)
        )
        self._added = _of_folders(added, settings, names.values())
        self._filter = RowFilter() if self._is_of_cases else settings.rows
        if missing := self._filter.columns.difference(header, self._added, settings.columns.joined_times):
            raise InputError(f"it has no column {', '.join(sorted(missing))} as [rows] says; {_column_list(header)}")
        for_case = case_names(
            settings, {k: v for k, v in names.items() if k in CaseNames.model_fields or k == "success"}
        )
        for_event = {k: v for k, v in names.items() if k in EventNames.model_fields}
        self._joined = {name: pair for name, pair in settings.columns.joined_times.items() if {*pair} <= {*header}}
        parts = [column for pair in self._joined.values() for column in pair]
        self._id_parts: tuple[str, ...] = (for_case.pop("case"),)
        self._case_key = self._id_parts[0]
        for name, pair in () if self._is_of_cases else settings.columns.joined_id.items():
            self._case_key, self._id_parts = name, pair
            parts.append(pair[1])
        self._names = {} if self._is_of_cases else layout.names
        self._above: dict[str, Any] = dict.fromkeys(layout.fill)
        case_map = CaseMap(for_case, settings.columns.attributes, sink.money)
        self._settings, self._own_map = settings, case_map
        self.header = header
        self.times = TimeParser(settings.timezone, settings.time_format)
        times = [for_event[name] for name in _TIMES if name in for_event]
        days = [self._joined.get(name, (name,))[0] for name in times]
        steps = [*layout.steps, *layout.ends]
        self.time_columns = [header.index(name) for name in [*days, *steps] if name in header]
        self._case_columns = [[*header, *self._added].index(name) for name in self._id_parts]
        known = dict(zip((f"part {n}" for n in range(len(parts))), parts, strict=True))  # they are no attributes
        self._events = EventMap(for_event | known | {"case": self._case_key}, case_map, settings, self.times)
        self._cases: dict[str, Case] = {}
        self._bytes, self._in_memory = 0, in_memory
        self._stored = CaseBuckets[Case](sink.folder)
        self._stored_fields: dict[str, frozenset[str]] = {}
        self._field_sets: dict[frozenset[str], frozenset[str]] = {}  # few, which many cases share
        self._causes: dict[str, Cause] = {}
        self._sink = sink
        self._used = 0
        self.is_whole = True  # it gets all rows of the file
        self._left_out = 0  # rows that [rows] leaves out, of those that are read by columns
        self.is_padded = False  # its cells are filled up with blanks to one width

    def by_columns(self, is_whole: bool = True) -> FlatLog | None:
        """Returns the reading of the same file by columns, or None if its settings need the reading by records.

        `is_whole`: it gets all rows of the file.
        """
        reader = self.row_reader(is_whole=is_whole)
        return None if reader is None else FlatLog(reader, self._some_rows, self._in_memory)

    def row_reader(self, encodes_cases: bool = True, is_whole: bool = True) -> RowReader | None:
        """Returns the reading of the columns of rows, or None if the settings need the reading by records."""
        maps = Maps(
            CaseMap({"case": self._case_key}, None, self._sink.money), self._own_map, self._events, self._case_key
        )
        if (
            self._steps
            or self._above
            or self._is_of_cases
            or not only_one_attribute_each([*self.header, *self._added], maps)
        ):
            return None
        try:
            return RowReader(maps, self._settings, self._sink, encodes_cases, is_whole)
        except UnusualError:
            return None

    def _some_rows(self) -> "TableLog":
        table = TableLog(self.header, self._settings, self._sink, self._in_memory)
        table.times.day_first = self.times.day_first
        table.is_whole, table.is_padded = False, self.is_padded
        return table

    def kept(self, rows: Rows) -> Rows:
        """Returns the rows that [rows] does not leave out. They are counted by `count_left_out`."""
        keeps = np.ones(len(rows.positions), bool)
        for name in self._filter.columns:
            coded = coded_texts(as_texts(rows.columns[name], encode=True))
            told = [self._filter.keeps_value(name, value) for value in (*coded.values.to_pylist(), None)]
            keeps &= np.array(told, bool)[coded.codes]
        self._left_out += len(keeps) - int(keeps.sum())
        return rows if keeps.all() else rows.some(np.flatnonzero(keeps))

    def leave_out(self, rows: int) -> None:
        """Leaves out more rows that are no events."""
        self._left_out += rows

    def count_left_out(self) -> None:
        """Counts the rows that were left out, once all are read by columns."""
        self._sink.not_work(self._left_out)
        self._left_out = 0

    def row(self, position: int, fields: dict[str, Any], is_redacted: bool = False) -> None:
        """Adds one row by column name. What says nothing counts as missing."""
        if not is_redacted:
            if self.is_padded:
                fields = {k: v.strip() if isinstance(v, str) else v for k, v in fields.items()}
            for name in self._above if values.telling(fields) else ():
                self._above[name] = self._above[name] if values.says_nothing(fields.get(name)) else fields[name]
                fields = fields | {name: self._above[name]}
            pairs = {name: (fields.get(day), fields.get(clock)) for name, (day, clock) in self._joined.items()}
            fields = fields | self._added | {name: values.joined_time(*pair) for name, pair in pairs.items()}
            if len(self._id_parts) > 1:
                fields[self._case_key] = _joined_id(*(fields.get(name) for name in self._id_parts))
            if self._names:
                activity = self._events.keys["activity"]
                fields[activity] = self._name_of(fields.get(activity))
            if not self._filter.keeps(fields):
                self._sink.not_work(1)
                return
        raw = values.telling(fields)
        if self._steps:
            self._row_of_steps(position, raw)
        else:
            self._row(position, raw if is_redacted else self._sink.redactor.flat(raw))

    def _row_of_steps(self, position: int, fields: dict[str, Any]) -> None:
        """Adds an event for each step of a case that has a time. A case without any is no work."""
        steps = {name for pair in self._steps for name in pair}
        own = {name: value for name, value in fields.items() if name not in steps}
        done = [pair for pair in self._steps if not fields.keys().isdisjoint(pair)]
        keys = self._events.keys
        begin, end = ("start", "end") if keys["start"] else ("time", "time")
        for first, last in done:
            times = {keys[end]: fields.get(last), keys[begin]: fields.get(first)}
            raw = self._sink.redactor.flat(values.telling(own | times) | {keys["activity"]: common_name(first, last)})
            if self._case_key not in raw:  # a row is a case, also where it has no id
                raw[self._case_key] = f"{self._sink.path}#{position}"
            self._row(position, raw)
        if not done:
            self._sink.not_work(1)

    def _row(self, position: int, raw: dict[str, Any]) -> None:
        case_id: str | None = None
        try:
            case_id = self._case_id(raw)
            if self._is_of_cases:
                self._sink.case_values(Case(case_id, self._own_values(raw), []))
            else:
                self._event(position, case_id, raw)
        except Exception as error:
            found = values.unforeseen(error)
            self.refuse(position, found.code, found.reason, canonical(raw), case_id)
        else:
            self._used += 1
            self._bytes += _EVENT + sum(len(value) for value in raw.values() if isinstance(value, str))
            if self._bytes > self._in_memory:
                self._store()

    def with_folder_values(self, columns: dict[str, Any], rows: int) -> dict[str, Any]:
        """Returns the columns of so many rows with those whose values stand in two, or in the folders of the file."""
        if self.is_padded:
            columns = {name: pc.utf8_trim_whitespace(column.cast(pa.string())) for name, column in columns.items()}
        pairs = {name: map(plain_values, (columns[day], columns[clock])) for name, (day, clock) in self._joined.items()}
        joined = {name: strings(list(map(values.joined_time, *pair))) for name, pair in pairs.items()}
        found = columns | joined | {name: repeated(value, pa.string(), rows) for name, value in self._added.items()}
        if len(self._id_parts) > 1:
            found[self._case_key] = strings(list(map(_joined_id, *(plain_values(found[n]) for n in self._id_parts))))
        if self._names:
            activity = self._events.keys["activity"]
            found[activity] = strings(list(map(self._name_of, plain_values(found[activity]))))
        return found

    def _name_of(self, code: Any) -> Any:
        """Returns the name of an activity that the table states as a code, or what it states."""
        if values.says_nothing(code):
            return None
        written = values.text(code)
        return self._names.get(written.strip(), written)

    def refuse(self, position: int, code: str, reason: str, record: str, case_id: str | None = None) -> None:
        """Rejects a row that cannot be used and quarantines its case.

        Raises InputError if hardly any row can be used.
        """
        cause = self._sink.reject(position, code, reason, record, case_id)
        if case_id is not None:
            self._causes.setdefault(case_id, cause)
        if self.is_whole and self._sink.counts.is_no_log(self._used):
            raise InputError(f"hardly a row can be used of the first {position:,}; the last: {reason}")

    def finish(self) -> None:
        """Ends the file and hands over all cases."""
        for case_id in self._causes:
            self._cases.setdefault(case_id, Case(case_id, {}, []))
        for case in self._whole_cases():
            self._sink.case(case, self._causes.get(case.case_id))

    def case_of(self, fields: list[str]) -> str | None:
        """Returns the case of a row that could not be read, by its case column, or None."""
        parts = [fields[place] if place < len(fields) else "" for place in self._case_columns]
        value = parts[0] if len(parts) == 1 else _joined_id(*parts)
        case_id = self._sink.redactor.flat(values.telling({self._case_key: value})).get(self._case_key)
        return case_id if isinstance(case_id, str) and case_id.strip() and len(case_id) <= values.LONGEST_NAME else None

    def _own_values(self, raw: dict[str, Any]) -> dict[str, Any]:
        fields: dict[str, Any] = {}
        self._own_map.collect(fields, raw)
        self._own_map.collect_attributes(fields, {name: raw[name] for name in raw if name != self._case_key})
        return fields

    def _case_id(self, raw: dict[str, Any]) -> str:
        value = raw.get(self._case_key)
        case_id = "" if value is None else values.name(value)
        if not case_id.strip():
            raise BadValueError("no_case", f"{self._case_key} is empty")
        if re.fullmatch(values.ROUNDED_ID, case_id):
            raise BadValueError(
                "rounded_id",
                f"{self._case_key}: {values.shown(case_id)} was rounded by a spreadsheet, so that different cases have "
                "one id; export the column as text",
            )
        return case_id

    def _event(self, position: int, case_id: str, raw: dict[str, Any]) -> None:
        case = self._cases.get(case_id) or Case(
            case_id, dict.fromkeys(self._stored_fields.get(case_id, ()), _STATED), []
        )
        own: dict[str, Any] | None = {} if self._sink.is_held(case_id) else None
        event = self._events.event(raw, position, case.fields if own is None else own)
        event.fields = own
        case.events.append(event)
        self._cases[case_id] = case

    def _store(self) -> None:
        """Stores the collected events on disk. Of each case, the names of its fields stay."""
        for case in self._cases.values():
            # attributes are merged one by one
            names = frozenset(case.fields.keys() - {"attributes"})
            self._stored_fields[case.case_id] = self._field_sets.setdefault(names, names)
            case.fields = {name: value for name, value in case.fields.items() if value is not _STATED}
        self._stored.add(self._cases.items())
        self._cases, self._bytes = {}, 0

    def _whole_cases(self) -> Iterator[Case]:
        if not self._stored:
            yield from self._cases.values()
            return
        self._store()
        self._stored_fields = {}  # of each case; no more rows come
        try:
            for parts in self._stored.buckets():
                cases: dict[str, Case] = {}
                for part in parts:
                    case = cases.setdefault(part.case_id, part)
                    if case is not part:
                        add_fields(case.fields, part.fields)
                        case.events += part.events
                yield from cases.values()
        finally:
            self._stored.close()
