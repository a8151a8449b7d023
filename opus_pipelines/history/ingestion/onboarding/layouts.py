"""Finds tables that are laid out otherwise than with one row for each event: a row for each case, or two tables."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from opus_pipelines.core.errors import InputError
from opus_pipelines.core.formatting import share
from opus_pipelines.history.formats.table_log import LONG, USUAL, _plain, column_names
from opus_pipelines.history.ingestion.onboarding.columns import FILLED, LEAST_STEPS, is_time
from opus_pipelines.history.ingestion.onboarding.report import Stated
from opus_pipelines.history.ingestion.onboarding.table_sample import (
    NUMBERING,
    ROLES,
    Column,
    TableSample,
    names_role,
    read_sample,
)
from opus_pipelines.history.records.activity_kinds import words_of
from opus_pipelines.history.records.files import placed
from opus_pipelines.history.records.formats import TABLES

MOST_TABLES = 6  # files up to which each is looked at
REFERRED = 0.8  # share of the cases of a table of events that a table of cases has
_TELL_WHEN = ("start", "end", "time")


def steps_of_cases(sample: TableSample, key: str | None = None) -> list[str]:
    """Returns the columns that are the steps of a table with one row for each case; none of a table of events.

    In such a table an id, which is `key` where it is stated, stands in one row each, nothing names activities, and
    there are several columns of times that are not named as begin and end alone.
    """
    times = [name for name in sample.header if is_time(sample.columns[name])]
    if sample.rows < 2 or len(times) < LEAST_STEPS or (key or _id_of(sample, times)) is None:
        return []
    rest = [name for name in sample.header if name not in times]
    if any(_names_activity(sample, name) or _is_repeated_case(sample, name, key) for name in rest):
        return []
    if sum(not any(names_role(name, role) for role in _TELL_WHEN) for name in times) < 2:
        return []
    ends = ROLES["start"] | ROLES["end"]
    bases = [" ".join(word for word in words_of(name) if word not in ends) for name in times]
    pairs = {base for base in bases if base and bases.count(base) > 1}
    if pairs and 2 * len(pairs) >= len(times) / 2:
        raise InputError(
            f"the table has one row for each case and columns for begin and end of each step, as {times[0]!r}; this is "
            "not read: turn these columns into rows with case, activity, start and end"
        )
    return times


def long_form(sample: TableSample, steps: Sequence[str]) -> TableSample:
    """Returns the sample of a table with one row for each case as it is read: a row for each step that has a time."""
    rest = [name for name in sample.header if name not in steps]
    names = column_names([*rest, *LONG])
    cells = [
        (row, step, time)
        for row in range(sample.rows)
        for step in steps
        if (time := sample.columns[step].values[row]).strip()
    ]
    columns = {name: Column(name, tuple(sample.columns[name].values[row] for row, _, _ in cells)) for name in rest}
    columns[names[-2]] = Column(names[-2], tuple(step for _, step, _ in cells))
    columns[names[-1]] = Column(names[-1], tuple(time for _, _, time in cells))
    empty = 1 - len(cells) / (sample.rows * len(steps))
    return replace(
        sample,
        columns=columns,
        rows=len(cells),
        table=sample.table | {"steps": list(steps)},
        notes={
            "steps": f"assumed: a row for each case, a column for each step; {share(empty)} of these cells are empty"
        },
        _groups={},
    )


def _id_of(sample: TableSample, times: Sequence[str]) -> str | None:
    """Returns the column that names the row: all its values differ. One that is named as an id comes first."""
    unique = [
        name
        for name, column in sample.columns.items()
        if name not in times and len(column.counts) == len(column.filled) >= FILLED * sample.rows
    ]
    named = [n for n in unique if names_role(n, "case") or _plain(n) in map(_plain, USUAL["case"])]
    numbered = [name for name in unique if NUMBERING & set(words_of(name))]
    return next(iter([*named, *numbered, *(name for name in unique if name == sample.header[0])]), None)


def _names_activity(sample: TableSample, name: str) -> bool:
    is_named = names_role(name, "activity") or _plain(name) in map(_plain, USUAL["activity"])
    return is_named and 1 < len(sample.columns[name].counts) < len(sample.columns[name].filled)


def _is_repeated_case(sample: TableSample, name: str, key: str | None) -> bool:
    column = sample.columns[name]
    named = names_role(name, "case") or _plain(name) in map(_plain, USUAL["case"])
    return named and name != key and len(column.counts) < 0.9 * len(column.filled)


def with_table_of_cases(
    files: Sequence[Path], samples: Sequence[TableSample | None], stated: Mapping[str, str]
) -> tuple[int, TableSample, str] | None:
    """Returns which file has the events, its sample with the values of the table of cases, and the column of the case.

    None: no file is a table of cases of another one. Such a table has other columns, among them an id that stands in
    one row each, and nearly all ids that a column of the events repeats.
    """
    best: tuple[float, int, int, str, str] | None = None
    for place, events in enumerate(samples):
        for other, cases in enumerate(samples):
            if events is None or cases is None or set(events.header) == set(cases.header):
                continue
            for name, key in _references(events, cases, stated.get("case")):
                same = _plain(name) == _plain(key)
                of_people = names_role(name, "actor") or names_role(name, "actor_group")
                score = same + 2.0 * names_role(name, "case") - 3.0 * of_people + events.rows / (events.rows + 1e6)
                if not of_people and (best is None or score > best[0]):
                    best = (score, place, other, name, key)
    if best is None:
        return None
    _, place, other, name, key = best
    events, cases = samples[place], samples[other]
    if events is None or cases is None:
        return None
    row_of = {value.strip(): row for row, value in enumerate(cases.columns[key].values)}
    rows = [row_of.get(value.strip()) for value in events.columns[name].values]
    added = {
        n: Column(n, tuple("" if row is None else column.values[row] for row in rows))
        for n, column in cases.columns.items()
        if n != key and n not in events.columns
    }
    table: dict[str, str | list[str]] = {"cases": placed(files[other]).as_posix()}
    table |= {"key": key} if key != name else {}
    return place, replace(events, columns=events.columns | added, table=events.table | table, _groups={}), name


def _references(events: TableSample, cases: TableSample, stated: str | None) -> list[tuple[str, str]]:
    """Returns pairs of a column of the events, and of one of the cases that has its values, each in one row."""
    found = []
    for key, ids in cases.columns.items():
        if not len(ids.counts) == len(ids.filled) >= FILLED * cases.rows or is_time(ids):
            continue
        for name, column in events.columns.items():
            known = sum(value in ids.counts for value in column.counts)
            is_asked = stated in (None, name)
            if is_asked and 1 < len(column.counts) < len(column.filled) and known >= REFERRED * len(column.counts):
                found.append((name, key))
    return found


def arranged(
    files: Sequence[Path], kinds: Sequence[str], stated: Stated
) -> tuple[list[Path], list[str], TableSample | None, Stated]:
    """Returns the files, first the one whose columns have roles, their formats, its sample as it is read, and roles.

    The sample is None where the first file is no table.
    """
    files, kinds = list(files), list(kinds)
    sheets = [stated.sheet] if stated.sheet else []
    samples = [
        read_sample(file, kind, sheets) if kind in TABLES else None
        for file, kind in list(zip(files, kinds, strict=True))[: len(files) if len(files) <= MOST_TABLES else 1]
    ]
    found = with_table_of_cases(files, samples, stated.columns) if len(samples) > 1 else None
    sample, roles = samples[0], dict[str, str]()
    if found is not None:
        place, sample, case = found
        files.insert(0, files.pop(place))
        kinds.insert(0, kinds.pop(place))
        roles["case"] = case
    elif sample is not None and (steps := steps_of_cases(sample, stated.columns.get("case"))):
        case = stated.columns.get("case") or _id_of(sample, steps) or ""
        sample = long_form(sample, steps)
        roles = dict(zip(("case", "activity", "time"), (case, *sample.header[-2:]), strict=True))
    return files, kinds, sample, replace(stated, columns={**roles, **stated.columns})
