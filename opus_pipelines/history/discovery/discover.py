"""Finds the edges and tasks of a log: which steps follow each other, and how often.

The settings of a single file that nobody prepared are guessed from its first rows. What was discovered is shown as one
line of counts and the most frequent tasks and edges.
"""

import tempfile
import tomllib
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import date
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from opus_pipelines.core.errors import InputError
from opus_pipelines.core.settings import parse
from opus_pipelines.history.columns.flat_log import FlatLog, Records, Refusal
from opus_pipelines.history.columns.flat_rows import RowReader, Rows, coded_texts
from opus_pipelines.history.columns.values import NO_TIME
from opus_pipelines.history.formats import csv_log, parquet_log
from opus_pipelines.history.formats.table_log import tell_columns
from opus_pipelines.history.ingestion.onboarding.layouts import arranged
from opus_pipelines.history.ingestion.onboarding.propose import first_draft, kind_of
from opus_pipelines.history.ingestion.onboarding.report import ASSUMED_ZONE, Stated, source_text
from opus_pipelines.history.ingestion.onboarding.trial import reading
from opus_pipelines.history.records.arrow_arrays import (
    Hashes,
    Ints,
    Longs,
    array,
    begins_anew,
    consecutive,
    distinct,
    numbered,
    numbers,
    numbers_or,
    packed,
    strings,
    text_hashes,
)
from opus_pipelines.history.records.assembler import Assembler, LogFile, OtherFiles, Outlets
from opus_pipelines.history.records.files import open_data
from opus_pipelines.history.records.formats import Format, format_of
from opus_pipelines.history.records.raw import COUNT_COLUMNS, Counts, Reject
from opus_pipelines.history.records.redaction import mask_texts
from opus_pipelines.history.records.source_settings import Columns, SourceSettings

COUNTED_COLUMNS = (
    "weight",
    *(f"tasks.list.element.{f}" for f in ("task_key", "started_at", "ended_at", "predecessors")),
)


class Tally:
    """Adds up edges and tasks of the implementations in batches, which have at least COUNTED_COLUMNS."""

    def __init__(self, masks: bool = False, names: bool = False) -> None:
        """`masks`: the names of tasks are masked, those of persons in them where `names` says so."""
        self._masks, self._names = masks, names
        self._edges: list[pa.Table] = []
        self._tasks: list[pa.Table] = []

    def add(self, batch: pa.RecordBatch) -> None:
        """Adds the implementations of a batch."""
        steps = pc.list_flatten(batch["tasks"])
        coded = pc.struct_field(steps, "task_key").dictionary_encode()
        seen = pc.coalesce(pc.struct_field(steps, "started_at"), pc.struct_field(steps, "ended_at"))
        self.add_steps(
            numbers(pc.list_value_length(batch["tasks"]), np.int32).astype(np.int64),
            numbers(batch["weight"].cast(pa.int64()), np.int64),
            coded,
            seen,
            pc.struct_field(steps, "predecessors"),
        )

    def add_steps(self, lengths: Longs, weight: Longs, task: pa.Array, seen: pa.Array, stated: pa.Array) -> None:
        """Adds the steps of whole cases in execution order: the task and the time of each.

        `lengths` and `weight` are the number of steps and the weight of each case, `stated` is as in `consecutive`.
        """
        names, code = task.dictionary, numbers(task.indices, np.int32)
        if self._masks and len(names):
            masked = mask_texts(names, self._names).dictionary_encode()
            names, code = masked.dictionary, numbers(masked.indices, np.int32)[code]
        case = np.repeat(np.arange(len(lengths)), lengths)
        places, filled = np.cumsum(lengths), lengths > 0
        starts, ends = np.zeros(len(case), np.int64), np.zeros(len(case), np.int64)
        starts[(places - lengths)[filled]] = ends[places[filled] - 1] = weight[filled]
        moments = numbers_or(seen.cast(pa.int64()), np.int64, NO_TIME)
        self._tasks.append(_counted({"task": code}, names, (case, weight, moments), {"starts": starts, "ends": ends}))
        before, after = consecutive(lengths, stated)
        pairs = {"src": code[before], "dst": code[after]}
        self._edges.append(_counted(pairs, names, (case[after], weight, moments[after]), {}))

    def edges(self) -> pa.Table:
        """Returns a row for each pair of tasks, sorted by the names of both."""
        return _summed(self._edges, ["src", "dst"], {"transitions": "n", "cases": "cases"})

    def tasks(self) -> pa.Table:
        """Returns a row for each task, sorted by its name."""
        counts = {"occurrences": "n", "cases": "cases", "starts": "starts", "ends": "ends"}
        return _summed(self._tasks, ["task"], counts)


def _counted(
    keys: Mapping[str, Ints], names: pa.Array, rows: tuple[Longs, Longs, Longs], more: Mapping[str, Longs]
) -> pa.Table:
    """Returns how often, in how many cases, and when first and last each combination of the keys occurs.

    `rows` are the case of each row, the weight of each case, and the time of each row. `more` is added up, too.
    """
    case, weight, seen = rows
    number, size = packed(*((codes, len(names)) for codes in keys.values())), len(names) ** len(keys)
    shown = np.arange(size) if size <= _DENSE else number
    if size > _DENSE:
        number, place = numbered(number)
        shown, size = shown[place], len(place)
    known = seen != NO_TIME
    cells = distinct(case * size + number)
    owner = cells // max(1, size)
    sums = {"n": np.bincount(number, weight[case], size)}
    sums |= {name: np.bincount(number, one, size) for name, one in more.items()}
    sums["cases"] = np.bincount(cells - owner * size, weight[owner], size)
    first, last = np.full(size, np.iinfo(np.int64).max), np.full(size, NO_TIME)
    np.minimum.at(first, number[known], seen[known])
    np.maximum.at(last, number[known], seen[known])
    some = np.flatnonzero(sums["n"])
    codes_of = np.unravel_index(shown[some], (max(1, len(names)),) * len(keys))
    columns = {key: names.take(array(of, pa.int64())) for key, of in zip(keys, codes_of, strict=True)}
    columns |= {name: array(one[some].astype(np.int64), pa.int64()) for name, one in sums.items()}
    for name, moment in (("seen_min", first[some]), ("seen_max", last[some])):
        columns[name] = array(moment, pa.timestamp("us", "UTC"), last[some] != NO_TIME)
    return pa.table(columns)


def _summed(parts: list[pa.Table], keys: list[str], counts: Mapping[str, str]) -> pa.Table:
    """Adds up parts, sorted by key. `counts` has the counts by the name that they get."""
    if not parts:
        return pa.table({name: pa.array([], pa.string()) for name in keys})
    sums = [(name, "sum") for name in counts.values()]
    whole = pa.concat_tables(parts).group_by(keys).aggregate([*sums, ("seen_min", "min"), ("seen_max", "max")])
    shown = {key: whole[key] for key in keys} | {new: whole[f"{name}_sum"] for new, name in counts.items()}
    shown |= {"first_seen": whole["seen_min_min"], "last_seen": whole["seen_max_max"]}
    return pa.table(shown).sort_by([(key, "ascending") for key in keys])


@dataclass(frozen=True)
class Discovered:
    """What a log shows: edges, tasks, the counts of its records, and the rejects by code and reason."""

    edges: pa.Table
    tasks: pa.Table
    counts: Counts
    rejects: Counter[tuple[str, str]]


def discover(place: Path, usd_per_unit: Mapping[str, float]) -> Discovered:
    """Returns what the source in this folder shows. Raises InputError if nothing of it can be read.

    `usd_per_unit` has the exchange rates of opus.toml.
    """
    tally = Tally()
    with reading(place, usd_per_unit) as trial:
        if trial.folder is None:
            raise InputError("\n".join(trial.failed) or f"{place}: no case can be read of it")
        for file in sorted(trial.folder.glob("*.parquet")):
            with pq.ParquetFile(file) as stored:
                for batch in stored.iter_batches(columns=list(COUNTED_COLUMNS)):
                    tally.add(batch)
        totals: dict[str, Any] = {name: trial.total(column) for name, column in COUNT_COLUMNS.items()}
        return Discovered(tally.edges(), tally.tasks(), Counts(**totals), trial.rejects)


def discover_file(file: Path, kind: Format, settings: SourceSettings) -> Discovered:
    """Returns what one file shows, with the settings of its source. Raises InputError if it cannot be read.

    A flat log of plain events is counted by its columns, of others the implementations are counted and then forgotten.
    """
    if kind.name in _BY_COLUMNS and settings.events.repeated == "keep" and isinstance(settings.weight, int):
        try:
            return _discovered(file, kind, settings, settings.weight)
        except NotPlain:
            pass  # the ordinary reading tells what is unusual
    return _discovered(file, kind, settings)


def _discovered(file: Path, kind: Format, settings: SourceSettings, weight: int | None = None) -> Discovered:
    """Returns what one file shows. `weight` is that of all cases of a log that is expected to be plain."""
    tally, rejects = Tally(settings.redact.mask_text, settings.redact.mask_names), Counter[tuple[str, str]]()

    def count_reject(reject: Reject) -> None:
        rejects[reject.code, reject.reason] += 1

    with tempfile.TemporaryDirectory(prefix="opus-discover-") as folder:
        outlets = Outlets(tally.add, count_reject, folder=Path(folder), are_kept=False)
        sink = Assembler(LogFile(file.name, file.name, kind), settings, OtherFiles(), outlets)
        opened = partial(open_data, file)
        if weight is not None:
            _BY_COLUMNS[kind.name](opened, settings, sink, make_log=partial(PlainLog, tally, weight))
        else:
            kind.reader()(opened, settings, sink)
        sink.finish()
    return Discovered(tally.edges(), tally.tasks(), sink.counts, rejects)


class NotPlain(Exception):
    """The log has more than plain events, which its columns do not tell."""


class PlainLog(FlatLog):
    """Counts the events of a flat log. Raises NotPlain where one has no time, a value to reject, or a life cycle."""

    def __init__(
        self, tally: Tally, weight: int, reader: RowReader, records: Callable[[], Records], in_memory: int
    ) -> None:
        super().__init__(reader, records, in_memory)
        reader.compared.discard(reader.maps.id_key)  # hashes tell cases apart
        self._tally, self._weight = tally, weight
        self._names: dict[str, int] = {}
        self._kept: list[tuple[Hashes, Ints, Longs]] = []

    def add(self, rows: Rows) -> None:
        """Adds rows of the file."""
        if not len(rows.positions):
            return
        part = self._reader.read(rows)
        columns, keys, times = part.rows.columns, self._events.keys, part.moments.get("time")
        if part.bad.any() or self._events.interval or times is None or (times == NO_TIME).any():
            raise NotPlain
        if keys["transition"] in columns and coded_texts(columns[keys["transition"]]).codes.max() >= 0:
            raise NotPlain
        case, activity = (coded_texts(columns[key]) for key in (self._maps.id_key, keys["activity"]))
        names = [self._names.setdefault(name, len(self._names)) for name in activity.values.to_pylist()]
        code = np.array(names, np.int32)[activity.codes]
        self._kept.append((text_hashes(case.values)[0][case.codes], code, times))

    def refuse(self, refusal: Refusal) -> None:
        """Refuses the log: the ordinary reading rejects the row."""
        raise NotPlain

    def finish(self) -> None:
        """Counts the events of each case in the order of their times, and of the file where these are equal."""
        if not self._kept:
            raise NotPlain
        case, code, times = (np.concatenate(column) for column in zip(*self._kept, strict=True))
        order = _in_order(case, times)
        lengths = np.diff(np.append(np.flatnonzero(begins_anew(case[order])), len(order)))
        names, last = strings(list(self._names)), np.cumsum(lengths)
        for first in range(0, len(lengths), _CASES):
            some = lengths[first : first + _CASES]
            rows = order[last[first] - lengths[first] : last[first + len(some) - 1]]
            self._tally.add_steps(
                some,
                np.full(len(some), self._weight),
                pa.DictionaryArray.from_arrays(array(code[rows], pa.int32()), names),
                array(times[rows], pa.timestamp("us", "UTC")),
                pa.nulls(len(rows), pa.list_(pa.int32())),
            )
        counts = self._sink.counts
        counts.records = counts.used = counts.task_implementations = len(order)
        counts.implementations = len(lengths)


def _in_order(case: Hashes, times: Longs) -> Longs:
    """Returns the places of events by case, time and place.

    One sort of a number for each event does it where the bits that its time leaves free tell the cases apart.
    """
    units = times - times.min()
    unit = next(unit for unit in (60_000_000, 1_000_000, 1_000, 1) if not (units % unit).any())
    units //= unit
    bits = np.uint64(int(units.max()).bit_length())
    ordered = np.sort(case)
    if bits < 64 and begins_anew(ordered).sum() == begins_anew(ordered >> bits).sum():
        number = (case >> bits << bits) | units.view(np.uint64)
        order = np.argsort(number)
        if begins_anew(number[order]).all():
            return order
        return np.argsort(number, kind="stable")
    order = np.argsort(times, kind="stable")
    return order[np.argsort(case[order], kind="stable")]


_DENSE = 1 << 20  # numbers up to which there is a place for each, used or not
_CASES = 100_000  # that are counted at once
_BY_COLUMNS: Mapping[str, Callable[..., bool]] = {
    "csv": csv_log.read_by_columns,
    "parquet": parquet_log.read_by_columns,
}
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
