"""Says what the first rows of a table show that the proposed columns leave out: clocks, lines of orders, fields."""

import re
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path

from opus_pipelines.history.ingestion.onboarding.column_values import MOSTLY, time_values
from opus_pipelines.history.ingestion.onboarding.column_words import ROLES
from opus_pipelines.history.ingestion.onboarding.table_sample import Column, TableSample, read_sample
from opus_pipelines.history.records.activity_words import words_of

LEAST_REPEATED = 0.1  # share of the cases with an activity that repeats, from which parts of cases are looked for
LEAST_CHANGES = 5  # of one field of one case, one after the other, from which a log of changed fields may be told
MOST_FIELDS = 50  # of a log of changed fields
SHOWN_FIELDS = 3  # of them, in a message
LEAST_STEPS = 3  # columns of times from which they may be the steps of a table with one row for each case
_CLOCK = re.compile(r"\d{1,2}:\d{2}(?::\d{2}(?:[.,]\d+)?)?(?:\s?[AaPp][Mm])?|\d{2}\.\d{2}(?:\.\d{2})?\s?(?:Uhr|h)")
_HAS_CLOCK = re.compile(r"\d:\d{2}|T\d{2}|\d{9,}")
_LIFECYCLE = ROLES["start"] | ROLES["end"]
_PARTS = ("item", "items", "line", "lines", "position", "pos", "posten", "positie", "ligne", "riga", "part", "zeile")


def column_doubts(sample: TableSample, roles: Mapping[str, object]) -> list[tuple[str, str]]:
    """Returns rows (what, how) for the table of what was understood; `roles` are columns by role."""
    used = {name for name in roles.values() if isinstance(name, str)}
    rest = [name for name in sample.header if name not in used]
    texts = (
        *_clocks(sample, roles, rest),
        *_parts(sample, roles, rest),
        *_steps_as_columns(sample, roles),
        *_changed_fields(sample, roles, rest),
    )
    return [("doubt", text) for text in texts]


def column_doubts_of(files: Sequence[Path], kinds: Sequence[str], roles: Mapping[str, object]) -> list[tuple[str, str]]:
    """Returns the same rows of the first table among the files, none where it has not the columns of the roles.

    `kinds` are the formats of the files.
    """
    table = next(((file, kind) for file, kind in zip(files, kinds, strict=True) if kind in ("csv", "parquet")), None)
    if table is None:
        return []
    sample = read_sample(*table)
    named = {role: name for role, name in roles.items() if isinstance(name, str)}
    return column_doubts(sample, named) if set(named.values()) <= set(sample.header) else []


def step_columns(sample: TableSample, times: Collection[str]) -> list[str]:
    """Returns the columns of times that may be the steps of a table with one row for each case; else none.

    Such a table has a column in which no value repeats.
    """
    is_unique = any(len(column.counts) == sample.rows for name, column in sample.columns.items() if name not in times)
    return list(times) if is_unique and sample.rows > 1 and len(times) >= LEAST_STEPS else []


def _steps_as_columns(sample: TableSample, roles: Mapping[str, object]) -> list[str]:
    case = roles.get("case")
    if not isinstance(case, str) or len(sample.cases(case)) < MOSTLY * sample.rows:
        return []
    found = step_columns(sample, [name for name in sample.header if name != case and is_time(sample.columns[name])])
    return [one_row_a_case(found)] if found else []


def one_row_a_case(names: Sequence[str]) -> str:
    """Returns the sentence on a table with one row for each case and these columns of steps."""
    shown = ", ".join(map(repr, names[:LEAST_STEPS])) + (", ..." if len(names) > LEAST_STEPS else "")
    return (
        f"the table seems to have one row for each case and a column with the time of each step ({shown}); a row for "
        "each step is read: turn these columns into rows with case, activity and time"
    )


def _are_parts(values: Sequence[str], names: Sequence[str], cases: Sequence[Sequence[int]]) -> bool:
    """Tells whether a column tells parts of cases, whatever its name is.

    Most parts have several rows, and those of one case begin with the same activity.
    """
    alike = several = repeated = total = 0
    for rows in cases:
        if len({names[row] for row in rows}) == len(rows):
            continue
        parts: dict[str, list[str]] = {}
        for row in rows:
            parts.setdefault(values[row], []).append(names[row])
        repeated += 1
        alike += len(parts) > 1 and len({steps[0] for steps in parts.values()}) == 1
        total += len(parts)
        several += sum(len(steps) > 1 for steps in parts.values())
    return repeated > 0 and alike >= MOSTLY * repeated and several >= MOSTLY * total


def _clocks(sample: TableSample, roles: Mapping[str, object], rest: list[str]) -> list[str]:
    times = [name for role in ("time", "start", "end") if isinstance(name := roles.get(role), str)]
    if not times or any(_HAS_CLOCK.search(value) for name in times for value in sample.columns[name].counts):
        return []
    found = next((name for name in rest if _share_of(_CLOCK, sample, name) >= MOSTLY), None)
    if found is None:
        return []
    return [f"{times[0]!r} has days alone, and {found!r} the time of day, which is not read; join both into one column"]


def is_time(column: Column) -> bool:
    """Tells whether nearly all values of a column are times."""
    return time_values(column).readable >= MOSTLY


def _share_of(pattern: re.Pattern[str], sample: TableSample, name: str) -> float:
    filled = sample.columns[name].filled
    return sum(bool(pattern.fullmatch(value)) for value in filled) / max(1, len(filled))


def _parts(sample: TableSample, roles: Mapping[str, object], rest: list[str]) -> list[str]:
    case, activity = roles.get("case"), roles.get("activity")
    if not isinstance(case, str) or not isinstance(activity, str):
        return []
    names, cases = sample.columns[activity].values, sample.cases(case)
    repeated = sum(len({names[row] for row in rows}) < len(rows) for rows in cases)
    if repeated < LEAST_REPEATED * len(cases):
        return []
    for name in rest:
        values = sample.columns[name].values
        told = {word for value in sample.columns[name].counts for word in words_of(value)}
        if told and told <= _LIFECYCLE:
            return [
                f"{name!r} tells whether a row is the start or the end of a step, and each row is read as a step of "
                "its own; write start and complete there, and name the column as transition under [columns]"
            ]
        if set(words_of(name)).isdisjoint(_PARTS) and not _are_parts(values, names, cases):
            continue
        each = [{(values[row], names[row]) for row in rows} for rows in cases]
        if sum(map(len, each)) >= MOSTLY * sum(map(len, cases)):
            return [
                f"activities repeat in {repeated:,} of {len(cases):,} cases, and seldom for one {name!r} of a case; is "
                f"a case a {name!r} of a {case!r}? join both into one column"
            ]
    return []


def _changed_fields(sample: TableSample, roles: Mapping[str, object], rest: list[str]) -> list[str]:
    """Returns a sentence where activities are the new values of several fields, as in the history of a ticket.

    Such a log has a column that names the field, and one with the value before, which is the new value of the last
    change of that field.
    """
    case, activity = roles.get("case"), roles.get("activity")
    if not isinstance(case, str) or not isinstance(activity, str):
        return []
    new, cases = sample.columns[activity].values, sample.cases(case)
    for field in (name for name in rest if 1 < len(sample.columns[name].counts) <= MOST_FIELDS):
        of_field = sample.columns[field].values
        pairs = []
        for rows in cases:
            last: dict[str, int] = {}
            for row in rows:
                earlier = last.get(of_field[row], row)
                if new[earlier].strip() and new[earlier] != new[row]:
                    pairs.append((earlier, row))
                last[of_field[row]] = row
        for name in (name for name in rest if name != field):
            before = sample.columns[name].values
            if len(pairs) >= LEAST_CHANGES and sum(before[b] == new[a] for a, b in pairs) >= MOSTLY * len(pairs):
                fields = ", ".join(value for value, _ in sample.columns[field].counts.most_common(SHOWN_FIELDS))
                return [
                    f"{activity!r} has the new values of several fields, which {field!r} names ({fields}, ...), and "
                    f"each value is read as an activity; keep the rows of one field, or name both under [columns]: "
                    f'activity = "{{{field}}} {{{activity}}}"'
                ]
    return []
