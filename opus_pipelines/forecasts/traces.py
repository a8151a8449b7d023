"""Traces of cases in columns, from the lake or from an export of running cases, and their features for the learners."""

import shutil
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq

from opus_pipelines.core.errors import InputError
from opus_pipelines.history.ingestion.ingest import HistoryOptions, read_history
from opus_pipelines.history.records.files import data_files
from opus_pipelines.history.records.source_settings import FILE_NAME
from opus_pipelines.lake.layout import Lake
from opus_pipelines.wkg.estimates.next_activity import NOTHING_STATED, PROBABLY_ENDED, Events, OpenRule, continuations

END = "<end>"  # stands for the end of a case among the next activities
EARLIEST_ENDS = 0.01  # share of the ended cases that may have ended before a history shows the ends of all cases

MIN_TAUGHT = 500  # events after that moment, below which the events before it teach what follows, too


@dataclass(frozen=True)
class Trace:
    """One case as far as it was observed.

    `times` are seconds since the epoch, in order; `resources` name who did each event, or None; `costs_usd` are of
    each event, None where unknown. The three run in step with `activities`; the last two may be empty. An open case was
    still running when it was last seen. `success` is of the whole case, None where unknown.
    """

    case_id: str
    activities: Sequence[str]
    times: Sequence[float]
    resources: Sequence[str | None] = ()
    costs_usd: Sequence[float | None] = ()
    is_open: bool = False
    success: bool | None = None


@dataclass(frozen=True)
class TraceTable:
    """The events of all cases in one row each; cases follow each other, events of a case are in order of time.

    Shapes: `code`, `time` (seconds), `resource`, `cost` (dollars), `case` [events]; `is_open`, `success` [cases].
    `code` is an index of `Vocabulary.activities`, `resource` of `Vocabulary.resources` (0: none or unknown). An unknown
    cost or success (1, 0) is NaN.
    """

    code: np.ndarray
    time: np.ndarray
    resource: np.ndarray
    cost: np.ndarray
    case: np.ndarray
    is_open: np.ndarray
    success: np.ndarray

    def of_cases(self, chosen: np.ndarray) -> "TraceTable":
        """The events of the cases that are `chosen` [cases], a mask."""
        events = chosen[self.case]
        number = chosen.cumsum() - 1
        return TraceTable(
            code=self.code[events],
            time=self.time[events],
            resource=self.resource[events],
            cost=self.cost[events],
            case=number[self.case[events]],
            is_open=self.is_open[chosen],
            success=self.success[chosen],
        )

    @cached_property
    def first(self) -> np.ndarray:
        """Row of the first event of every case [cases]."""
        return np.searchsorted(self.case, np.arange(len(self.is_open)))

    @cached_property
    def last(self) -> np.ndarray:
        """Row of the last event of every case [cases]."""
        return np.searchsorted(self.case, np.arange(len(self.is_open)), side="right") - 1

    @cached_property
    def position(self) -> np.ndarray:
        """Place of every event in its case, from 0 [events]."""
        return np.arange(len(self.code)) - self.first[self.case]

    @cached_property
    def following(self) -> np.ndarray:
        """Code of the next activity of every event [events]; 0 where the case ends, -1 where nobody saw what came."""
        found = np.append(self.code[1:], 0)
        found[self.last] = np.where(self.is_open, -1, 0)
        return found

    @cached_property
    def taught(self) -> np.ndarray:
        """As `following`, but -1 also before the history begins to show the ends of cases [events].

        Of a case that began before, an event is in the history only because the case went on for long: what followed it
        tells too little of ends (`end_seen_from`). All events teach where too few are left.
        """
        found = np.where(self.time >= self.ends_seen_at, self.following, -1)
        return found if (found >= 0).sum() >= MIN_TAUGHT else self.following

    @cached_property
    def remaining(self) -> np.ndarray:
        """Seconds from every event to the last one of its case [events].

        Where the case is open this is a lower bound: its last event comes after the newest event of all cases.
        """
        until = np.where(self.is_open, self.time.max(initial=-np.inf), self.time[self.last])
        return until[self.case] - self.time

    @cached_property
    def end_seen_from(self) -> np.ndarray:
        """Seconds after every event before which the history would not show the end of its case [events].

        An export often holds the cases that ended in one period: one that began earlier is in it only because it
        lasted. No end before the earliest ones tells of such a case (left truncation).
        """
        return np.maximum(0.0, self.ends_seen_at - self.time)

    @cached_property
    def ends_seen_at(self) -> float:
        """When the history begins to show the ends of cases, in seconds since the epoch; minus infinity without any."""
        ends = self.time[self.last[~self.is_open]]
        return float(np.quantile(ends, EARLIEST_ENDS, method="lower")) if len(ends) else float("-inf")

    @cached_property
    def remaining_cost(self) -> np.ndarray:
        """Dollars of all events after each one in its case [events]; NaN where one of them is unknown."""
        unknown = np.isnan(self.cost).cumsum()
        total = np.nan_to_num(self.cost).cumsum()
        last = self.last[self.case]
        return np.where(unknown[last] > unknown, np.nan, total[last] - total)


@dataclass(frozen=True)
class Vocabulary:
    """Names of activities and resources. Number 0 is the end of a case, and the unknown resource."""

    activities: tuple[str, ...]
    resources: tuple[str, ...]

    @classmethod
    def of(cls, traces: Sequence[Trace]) -> "Vocabulary":
        """The names of these traces, the most frequent first."""
        return cls(
            (END, *_by_frequency([a for t in traces for a in t.activities])),
            ("", *_by_frequency([r for t in traces for r in t.resources if r])),
        )

    @cached_property
    def _activity_codes(self) -> dict[str, int]:
        return {name: n for n, name in enumerate(self.activities)}

    @cached_property
    def _resource_codes(self) -> dict[str, int]:
        return {name: n for n, name in enumerate(self.resources)}

    def table(self, traces: Sequence[Trace]) -> TraceTable:
        """The events of the traces, in their order. An activity that is not known gets a number of its own, the
        length of `activities`.
        """
        lengths = np.array([len(t.activities) for t in traces], np.int64)
        activity, resource, unknown = self._activity_codes, self._resource_codes, len(self.activities)
        return TraceTable(
            code=np.array([activity.get(a, unknown) for t in traces for a in t.activities], np.int64),
            time=np.array([x for t in traces for x in t.times], float),
            resource=np.array(
                [resource.get(r or "", 0) for t in traces for r in (t.resources or [None] * len(t.activities))],
                np.int64,
            ),
            cost=np.array(
                [np.nan if c is None else c for t in traces for c in (t.costs_usd or [None] * len(t.activities))], float
            ),
            case=np.repeat(np.arange(len(traces)), lengths),
            is_open=np.array([t.is_open for t in traces], bool),
            success=np.array([np.nan if t.success is None else float(t.success) for t in traces], float),
        )


def _by_frequency(names: Sequence[str]) -> list[str]:
    found, counts = np.unique(np.array(names, dtype=object).astype(str), return_counts=True)
    return [str(found[n]) for n in np.lexsort((found, -counts))]


COLUMNS = ["case_id", "kind", "client", "contract", "attributes", "success", "tasks"]
STEP = ("task_key", "started_at", "ended_at", "actor", "cost_usd")  # what is read of a step
BATCH_CASES = 4_096


@dataclass(frozen=True)
class CaseRecord:
    """A trace with what else is known of its case."""

    trace: Trace
    client: str | None
    contract: str | None


def history_records(folder: Path, rule: OpenRule | None) -> list[CaseRecord]:
    """The executed cases in a folder of implementations, in the order of their ids.

    Where nothing is stated of a case, it is open where it has more likely not ended, by the silence since its last
    event (`wkg.estimates.next_activity`).

    Raises:
        InputError: no case has the attribute that the rule names.
    """
    cases, rule = _cases(folder), rule or NOTHING_STATED
    known = {name for case in cases for name in case.attributes}
    if cases and rule.attribute is not None and rule.attribute not in known:
        raise InputError(
            f"cases have no attribute {rule.attribute!r} that says whether they are open; they have: "
            f"{', '.join(sorted(known)) or 'none'}. Name it in `attributes` of source.toml"
        )
    return [_record(case, p < PROBABLY_ENDED) for case, p in zip(cases, _p_ended(cases, rule), strict=True)]


def export_records(lake: Lake, source: Path, export: Path, rates: Mapping[str, float]) -> list[CaseRecord]:
    """The cases of an export (a file or a folder), read with the settings of the history folder `source`; all are open.

    Names are masked with the key of `lake`, as they are in its history. `rates`: dollars per unit of a currency.

    Raises:
        InputError: the export holds no case that can be read.
    """
    files = [export] if export.is_file() else [Path(file) for file in data_files(export)]
    with tempfile.TemporaryDirectory(prefix="opus-forecast-") as folder:
        history, work = Path(folder) / "history", Lake(Path(folder) / "lake")
        (history / source.name).mkdir(parents=True)
        for file in files:
            shutil.copyfile(file, history / source.name / file.name)
        if (source / FILE_NAME).is_file():
            shutil.copyfile(source / FILE_NAME, history / source.name / FILE_NAME)
        if (lake.kept / "private.key").is_file():
            work.kept.mkdir(parents=True)
            shutil.copyfile(lake.kept / "private.key", work.kept / "private.key")
        options = HistoryOptions(usd_per_unit=rates, max_quarantined_share=1.0)
        state = read_history(work, history, datetime.now(UTC), options)
        if not state.sources:
            why = "; ".join(state.failed) or "it holds no cases"
            raise InputError(f"{export} cannot be read with the settings of source {source.name}: {why}")
        return [_record(case, True) for case in _cases(state.sources[0].folder)]


@dataclass(frozen=True, slots=True)
class _Case:
    """What forecasting takes of an implementation. Its events are in order of time; `times` are seconds."""

    case_id: str
    client: str | None
    contract: str | None
    attributes: dict[str, str]
    success: bool | None
    activities: list[str]
    times: np.ndarray
    resources: list[str | None]
    costs_usd: list[float | None]


def _cases(folder: Path) -> list[_Case]:
    """The executed cases in a folder, in the order of their ids.

    The files are read in batches and only what is needed, since a source may have millions of cases. A column that an
    older file lacks is unknown.
    """
    columns = [*(name for name in COLUMNS if name != "tasks"), *(f"tasks.list.element.{name}" for name in STEP)]
    same: dict[str, str] = {}  # one object for each text, however often it occurs
    found = [
        case
        for file in sorted(folder.glob("*.parquet"))
        for batch in pq.ParquetFile(file).iter_batches(BATCH_CASES, columns=columns)
        for row in batch.to_pylist()
        if row.get("kind") == "executed" and (case := _case(row, same)).activities
    ]
    return sorted(found, key=lambda case: case.case_id)


def _case(row: Mapping[str, Any], same: dict[str, str]) -> _Case:
    timed = [t for t in row["tasks"] or () if t["ended_at"] or t["started_at"]]
    tasks = sorted(timed, key=lambda t: t["ended_at"] or t["started_at"])
    return _Case(
        case_id=str(row["case_id"]),
        client=_same(row.get("client"), same),
        contract=_same(row.get("contract"), same),
        attributes={same.setdefault(k, k): same.setdefault(v, v) for k, v in row.get("attributes") or ()},
        success=row.get("success"),
        activities=[same.setdefault(t["task_key"], t["task_key"]) for t in tasks],
        times=np.array([(t["ended_at"] or t["started_at"]).timestamp() for t in tasks], float),
        resources=[_same(t.get("actor"), same) for t in tasks],
        costs_usd=[t.get("cost_usd") for t in tasks],
    )


def _same(text: str | None, same: dict[str, str]) -> str | None:
    return None if text is None else same.setdefault(text, text)


def _record(case: _Case, is_open: bool) -> CaseRecord:
    trace = Trace(
        case_id=case.case_id,
        activities=case.activities,
        times=case.times.tolist(),
        resources=case.resources,
        costs_usd=case.costs_usd,
        is_open=is_open,
        success=None if is_open else case.success,
    )
    return CaseRecord(trace, case.client, case.contract)


def _p_ended(cases: Sequence[_Case], rule: OpenRule) -> list[float]:
    stated = np.array([rule.p_ended(case.attributes, case.activities) for case in cases], float)
    if np.isfinite(stated).all():
        return stated.tolist()
    names = sorted({name for case in cases for name in case.activities})
    code = {name: n for n, name in enumerate(names)}
    events = Events(
        np.array([len(case.activities) for case in cases], np.int64),
        np.array([code[name] for case in cases for name in case.activities], np.int64),
        np.concatenate([np.zeros(0), *(case.times for case in cases)]),
    )
    return continuations(events, [case.attributes for case in cases], stated, with_rest=False).p_ended.tolist()


RECENT = 6  # last events whose activity is a feature of its own
COUNTED = 40  # most frequent activities whose number of events so far is a feature
GAPS = 4  # last waiting times that are features
GAP_EDGES = (1.0, 60.0, 600.0, 3600.0, 6 * 3600.0, 86400.0, 3 * 86400.0, 7 * 86400.0, 30 * 86400.0)  # seconds
DAY = 86400.0


@dataclass(frozen=True)
class FeatureOptions:
    """What may be used. `calendar`: the hour and weekday of events; false where dates are relative."""

    activities: int
    resources: int
    calendar: bool = True


def gaps(table: TraceTable) -> np.ndarray:
    """Seconds from the event before, 0 for the first of a case [events]."""
    found = np.diff(table.time, prepend=table.time[:1])
    found[table.first] = 0.0
    return np.maximum(0.0, found)


def gap_symbols(table: TraceTable) -> np.ndarray:
    """The activity of each event together with the size of the waiting time before it, as one number [events]."""
    return table.code * (len(GAP_EDGES) + 1) + np.digitize(gaps(table), GAP_EDGES)


def features(table: TraceTable, options: FeatureOptions) -> np.ndarray:
    """One row for each event, float32 [events, features]; NaN where a case has not gone that far."""
    n, position, gap = len(table.code), table.position, gaps(table)
    start = table.first[table.case]
    columns: list[np.ndarray] = [position + 1.0, table.time - table.time[start], gap]
    for back in range(RECENT):
        columns.append(_earlier(table.code.astype(float), position, back))
    for back in range(1, GAPS):
        columns.append(_earlier(gap, position, back))
    columns.append(_run_length(table.code, position))
    columns.append(table.resource.astype(float))
    columns.append(_earlier(table.resource.astype(float), position, 1))
    columns.append((table.resource == table.resource[start]).astype(float))
    columns.append(np.where(position > 0, table.resource == np.roll(table.resource, 1), np.nan))
    columns.append(_run_length(table.resource, position))
    columns.append(table.code[start].astype(float))
    same = _last_time(table.code, table)
    columns.append(table.time - same)
    for activity in range(1, min(options.activities, COUNTED + 1)):
        hits = (table.code == activity).astype(float)
        total = hits.cumsum()
        columns.append(total - (total - hits)[start])
        # Seconds since the activity last happened in this case.
        when = np.where(hits > 0, np.arange(n), -1)
        latest = np.maximum.accumulate(when)
        columns.append(np.where(latest >= start, table.time - table.time[np.maximum(latest, 0)], np.nan))
    if options.calendar:
        columns += [table.time % DAY / 3600.0, (table.time // DAY + 3) % 7, table.time[start] % DAY / 3600.0]
    return np.stack(columns, axis=1).astype(np.float32)


def _earlier(values: np.ndarray, position: np.ndarray, back: int) -> np.ndarray:
    shifted = np.concatenate([np.full(back, np.nan), values])[: len(values)]
    return np.where(position >= back, shifted, np.nan)


def _run_length(values: np.ndarray, position: np.ndarray) -> np.ndarray:
    """How many events in a row had this value, this one included."""
    changed = (position == 0) | (values != np.roll(values, 1))
    index = np.arange(len(values))
    return (index - np.maximum.accumulate(np.where(changed, index, 0)) + 1).astype(float)


def _last_time(code: np.ndarray, table: TraceTable) -> np.ndarray:
    """When the activity of each event happened before in its case; NaN where it did not."""
    order = np.lexsort((np.arange(len(code)), code, table.case))
    again = np.append(False, (code[order][1:] == code[order][:-1]) & (table.case[order][1:] == table.case[order][:-1]))
    found = np.full(len(code), np.nan)
    found[order[again]] = table.time[order[np.flatnonzero(again) - 1]]
    return found
