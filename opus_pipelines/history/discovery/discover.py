"""Finds the edges and tasks of a log: flat logs by columns, all others by their implementations.

The settings of a single file that nobody prepared are guessed from its first rows. What was discovered is shown as one
line of counts and the most frequent tasks and edges.
"""

import tempfile
import tomllib
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from datetime import date
from functools import cached_property, partial
from pathlib import Path
from typing import Any, BinaryIO, Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from opus_pipelines.core.errors import InputError
from opus_pipelines.core.settings import parse
from opus_pipelines.history.columns.flat_log import ColumnLog
from opus_pipelines.history.columns.values import NO_TIME, UnusualError
from opus_pipelines.history.discovery.edge_log import EVENTS_IN_MEMORY, EdgeLog, Steps, Tally, UnusualCases
from opus_pipelines.history.formats import csv_log, parquet_log
from opus_pipelines.history.formats.table_log import ColumnLogOf, TableLog, tell_columns
from opus_pipelines.history.ingestion.onboarding.report import ASSUMED_ZONE, Stated, source_text
from opus_pipelines.history.records.arrow_arrays import numbers, numbers_or
from opus_pipelines.history.records.assembler import Assembler, LogFile, OtherFiles, Outlets
from opus_pipelines.history.records.files import data_files, folder_values, open_data
from opus_pipelines.history.records.formats import Format, format_of
from opus_pipelines.history.records.raw import COUNT_COLUMNS, Counts, Reject
from opus_pipelines.history.records.source_settings import Columns, SourceSettings, load_source

COUNTED_COLUMNS = (
    "weight",
    *(f"tasks.list.element.{f}" for f in ("task_key", "started_at", "ended_at", "predecessors")),
)


def add_implementations(tally: Tally, batch: pa.RecordBatch) -> None:
    """Adds the implementations of a batch, which has at least COLUMNS."""
    flat = pc.list_flatten(batch["tasks"])
    keys = pc.struct_field(flat, "task_key").dictionary_encode()
    seen = pc.coalesce(pc.struct_field(flat, "started_at"), pc.struct_field(flat, "ended_at")).cast(pa.int64())
    codes = tally.names.codes(keys.dictionary)
    tally.add(
        Steps(
            numbers_or(pc.list_value_length(batch["tasks"]), np.int32, 0).astype(np.int64),
            codes[numbers(keys.indices, np.int32)] if len(codes) else codes,
            numbers_or(seen, np.int64, NO_TIME),
            numbers(batch["weight"].cast(pa.int64()), np.int64),
            pc.struct_field(flat, "predecessors"),
        )
    )


Open = Callable[[], BinaryIO]


@dataclass(frozen=True)
class Discovered:
    """What a log shows: edges, tasks, the counts of its records, and the rejects by code and reason.

    `without_implementations` is the number of cases that were counted by columns.
    """

    edges: pa.Table
    tasks: pa.Table
    counts: Counts
    rejects: Counter[tuple[str, str]]
    without_implementations: int = 0


class _ReadByColumns(Protocol):
    def __call__(self, open_file: Open, settings: SourceSettings, sink: Assembler, *, log_of: ColumnLogOf) -> bool: ...


_FLAT: Mapping[str, _ReadByColumns] = {  # small files as well
    "csv": partial(csv_log.read_by_columns, sizes=(-1, csv_log.BLOCK)),
    "parquet": partial(parquet_log.read_by_columns, few=0),
}


def discover(place: Path, usd_per_unit: Mapping[str, float]) -> Discovered:
    """Returns what the source in this folder shows. Raises InputError if nothing of it can be read.

    `usd_per_unit` has the exchange rates of opus.toml.
    """
    files, settings = list(data_files(place)), load_source(place)
    kind = format_of(files[0].name, settings.stated_format) if len(files) == 1 and files[0].is_file() else None
    if kind is not None and folder_values(files[0].relative_to(place)):
        return _of_source(place, usd_per_unit)
    if kind is not None and kind.name in _FLAT:
        return discover_file(files[0], kind, settings)
    return _of_source(place, usd_per_unit)


def discover_file(file: Path, kind: Format, settings: SourceSettings, in_memory: int = EVENTS_IN_MEMORY) -> Discovered:
    """Returns what one file shows, with the settings of its source. Raises InputError if it cannot be read.

    Events beyond `in_memory` bytes wait on disk.
    """
    with tempfile.TemporaryDirectory(prefix="opus-discover-") as folder:
        once = _Reading(file, kind, settings, Path(folder), in_memory)
        if kind.name not in _FLAT:
            once.by_records()
            return once.found(once.sink.counts)
        return _by_columns(once)


def _by_columns(first: "_Reading") -> Discovered:
    logs: list[EdgeLog] = []
    done = first.by_columns(lambda table: first.edge_log(table, logs))
    if not done or not logs:
        return first.found(first.sink.counts)
    log = logs[0]
    if not log.has_more:
        return first.found(_sum(log.counts, first.sink.counts), log.counts.implementations)
    rest = _Reading(first.file, first.kind, first.settings, first.folder, first.in_memory, first.tally, log.has_work)
    if rest.by_columns(lambda table: _rest_of(table, log)):
        return rest.found(_sum(log.counts, rest.sink.counts), log.counts.implementations)
    whole = _Reading(first.file, first.kind, first.settings, first.folder, first.in_memory)
    whole.by_records()
    return whole.found(whole.sink.counts)


@dataclass
class _Reading:
    """One pass over a file, whose implementations are counted and then forgotten."""

    file: Path
    kind: Format
    settings: SourceSettings
    folder: Path
    in_memory: int
    tally: Tally = field(default_factory=Tally)
    has_work: bool = False
    rejects: Counter[tuple[str, str]] = field(default_factory=Counter)

    @cached_property
    def sink(self) -> Assembler:
        outlets = Outlets(partial(add_implementations, self.tally), self._reject, folder=self.folder)
        log = LogFile(self.file.name, self.file.name, self.kind)
        return Assembler(log, self.settings, OtherFiles(has_work=self.has_work), outlets)

    def by_records(self) -> None:
        self.kind.reader()(partial(open_data, self.file), self.settings, self.sink)
        self.sink.finish()

    def by_columns(self, log_of: ColumnLogOf) -> bool:
        done = _FLAT[self.kind.name](partial(open_data, self.file), self.settings, self.sink, log_of=log_of)
        self.sink.finish()
        return done

    def edge_log(self, table: TableLog, logs: list[EdgeLog]) -> ColumnLog | None:
        """Returns the counting by columns, or where the settings do not allow it, the making of implementations."""
        weight = self.settings.weight if isinstance(self.settings.weight, int) else 1
        if (reader := table.row_reader(encodes_cases=False)) is not None:
            try:
                logs.append(EdgeLog(reader, self.tally, weight, self.folder, self.in_memory))
            except UnusualError:
                return table.by_columns()
            return logs[0]
        return None

    def found(self, counts: Counts, without_implementations: int = 0) -> Discovered:
        edges, tasks = self.tally.edges(), self.tally.tasks()
        return Discovered(edges, tasks, counts, self.rejects, without_implementations)

    def _reject(self, reject: Reject) -> None:
        self.rejects[reject.code, reject.reason] += 1


def _rest_of(table: TableLog, log: EdgeLog) -> ColumnLog | None:
    """Returns the ordinary reading of the cases that `log` left out."""
    reader, ordinary = table.row_reader(encodes_cases=False), table.by_columns(is_whole=False)
    return None if reader is None or ordinary is None else UnusualCases(reader, ordinary, log.unusual)


def _sum(one: Counts, other: Counts) -> Counts:
    return Counts(**{f.name: getattr(one, f.name) + getattr(other, f.name) for f in fields(Counts)})


def _of_source(place: Path, usd_per_unit: Mapping[str, float]) -> Discovered:
    """Returns what the implementations of a source show that has several files, or files of another format."""
    from opus_pipelines.history.ingestion.onboarding.trial import reading  # a flat log needs none of it

    tally = Tally()
    with reading(place, usd_per_unit) as trial:
        if trial.folder is None:
            raise InputError("\n".join(trial.failed) or f"{place}: no case can be read of it")
        for file in sorted(trial.folder.glob("*.parquet")):
            with pq.ParquetFile(file) as stored:
                for batch in stored.iter_batches(columns=list(COUNTED_COLUMNS)):
                    add_implementations(tally, batch)
        totals: dict[str, Any] = {name: trial.total(column) for name, column in COUNT_COLUMNS.items()}
        return Discovered(tally.edges(), tally.tasks(), Counts(**totals), trial.rejects)


_EPOCH, _MICROS_A_DAY = date(1970, 1, 1).toordinal(), 86_400_000_000
Table = tuple[str, list[str], list[list[Any]]]


def headline(name: str, found: Discovered) -> str:
    """Returns the counts of records, cases, tasks and edges, and the period."""
    counts, tasks = found.counts, found.tasks
    first, last = _day(pc.min(tasks["first_seen"])), _day(pc.max(tasks["last_seen"]))
    period = f", {first} to {last}" if first and last else ", no times"
    return (
        f"{name}: {counts.records:,} records, {counts.implementations:,} cases, {tasks.num_rows:,} tasks, "
        f"{found.edges.num_rows:,} edges{period}"
    )


def _day(moment: pa.Scalar) -> date | None:
    """Returns the day of a moment. Arrow's own conversion imports pandas, which takes a fifth of a second."""
    micros = moment.cast(pa.int64()).as_py()
    return None if micros is None else date.fromordinal(_EPOCH + micros // _MICROS_A_DAY)


def set_aside(found: Discovered) -> list[str]:
    """Returns a line for the cases that were set aside, and for each of the three most frequent reasons."""
    counts = found.counts
    if not counts.rejected:
        return []
    lines = [f"{counts.rejected:,} records rejected; {counts.quarantined:,} cases with such a record are not counted"]
    causes = [(count, reason) for (code, reason), count in found.rejects.items() if code != "case_quarantined"]
    return lines + [f"{count:,} records: {reason}" for count, reason in sorted(causes, reverse=True)[:3]]


def tables(found: Discovered, top: int) -> list[Table]:
    """Returns the `top` most frequent tasks and edges, each with its title and columns."""
    tasks = ("Tasks", found.tasks, "occurrences", ["task"])
    edges = ("Edges", found.edges, "transitions", ["src", "dst"])
    return [_table(title, rows, by, names, top) for title, rows, by, names in (tasks, edges)]


def _table(title: str, rows: pa.Table, by: str, names: list[str], top: int) -> Table:
    shown = rows.sort_by([(by, "descending"), *((name, "ascending") for name in names)]).slice(0, top)
    of = f": the {top:,} most frequent of {rows.num_rows:,}" if rows.num_rows > top else ""
    columns = [name for name in rows.column_names if name not in ("first_seen", "last_seen")]
    return title + of, columns, [list(row.values()) for row in shown.select(columns).to_pylist()]


_NO_ZONE = f"timezone {ASSUMED_ZONE}: assumed; the times state no zone"


def settings_of_file(file: Path, stated: Stated) -> tuple[SourceSettings, list[str]]:
    """Returns the settings with which a file can be read, and a line for each that is assumed.

    Raises InputError if it cannot be told which column is what.
    """
    named = format_of(file.name)
    if named is not None and named.name == "parquet" and (found := _of_usual_names(file, stated)) is not None:
        return found
    from opus_pipelines.history.ingestion.onboarding.layouts import arranged
    from opus_pipelines.history.ingestion.onboarding.propose import first_draft, kind_of

    kind = kind_of(file)
    _, _, sample, stated = arranged([file], [kind], stated)
    draft = first_draft([file], [kind], sample, stated)
    settings = parse(SourceSettings, tomllib.loads(source_text(draft)), file.name)
    notes = [f"{key} {draft.plain.get(key, '')}: {why}" for key, why in draft.notes.items() if "assumed" in why]
    zone = settings.timezone or stated.timezone or ASSUMED_ZONE
    return settings.model_copy(update={"timezone": zone, "format": kind}), notes


def _of_usual_names(file: Path, stated: Stated) -> tuple[SourceSettings, list[str]] | None:
    """Returns the settings of a Parquet file whose columns have usual names, and whose times are typed."""
    schema = pq.read_schema(file)
    columns = parse(Columns, dict(stated.columns), "the options")
    try:
        names = tell_columns(schema.names, columns)
    except InputError:
        return None
    times = [schema.field(names[role]).type for role in ("time", "start", "end") if role in names]
    if not times or not all(pa.types.is_timestamp(kind) for kind in times):
        return None
    settings = SourceSettings(columns=columns, timezone=stated.timezone or ASSUMED_ZONE, format="parquet")
    is_assumed = stated.timezone is None and any(kind.tz is None for kind in times)
    return settings, [_NO_ZONE] if is_assumed else []
