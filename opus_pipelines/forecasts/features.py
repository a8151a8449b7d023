"""What is known of a running case after each of its events, as numbers for the learners."""

from dataclasses import dataclass

import numpy as np

from opus_pipelines.forecasts.traces import TraceTable

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
