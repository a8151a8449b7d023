"""Finds tables that are laid out otherwise than with one row for each event: a row for each case, or two tables."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from opus_pipelines.core.errors import InputError
from opus_pipelines.core.formatting import share
from opus_pipelines.history.formats.table_log import LONG, LONG_WITH_ENDS, USUAL, _plain, column_names
from opus_pipelines.history.ingestion.onboarding.columns import (
    FILLED,
    LEAST_STEPS,
    MOST_ACTIVITIES,
    ORDERED,
    activity_scores,
    case_scores,
    is_time,
    lettered_words,
    pair_fit,
)
from opus_pipelines.history.ingestion.onboarding.report import Stated
from opus_pipelines.history.ingestion.onboarding.table_sample import (
    NUMBERING,
    ROLES,
    Column,
    TableSample,
    folded_word,
    folded_words,
    moments_of,
    names_role,
    read_sample,
    time_values,
)
from opus_pipelines.history.records.activity_kinds import words_of
from opus_pipelines.history.records.files import placed
from opus_pipelines.history.records.formats import TABLES
from opus_pipelines.history.records.source_settings import common_name

MOST_TABLES = 6  # files up to which each is looked at
MOST_PRINTED = 0.7  # rows that state an id, in a report that prints it once a case
REFERRED = 0.8  # share of the cases of a table of events that a table of cases has
_FROM_TO = folded_words("from to von bis van tot de a à desde hasta da até ate from until entry exit in out")
_ENDS = ROLES["start"] | ROLES["end"] | _FROM_TO


def steps_of_cases(sample: TableSample, key: str | None = None) -> list[str]:
    """Returns the columns that are the steps of a table with one row for each case; none of a table of events.

    In such a table an id, which is `key` where it is stated, stands in one row each, nothing names activities, and
    there are several columns of times that are not named as begin and end alone.
    """
    times = [name for name in sample.header if is_time(sample.columns[name])]
    times = [name for name in times if _is_of_work(sample, name, times)]
    if sample.rows < 2 or len(times) < LEAST_STEPS or (key or _id_of(sample, times)) is None:
        return []
    rest = [name for name in sample.header if name not in times]
    if any(_names_activity(sample, name) or _is_repeated_case(sample, name, key) for name in rest):
        return []
    if len({_step_of(name, ROLES["time"]) for name in times} - {""}) < 2 or _is_log(sample, rest):
        return []
    return times


def _is_of_work(sample: TableSample, name: str, times: Sequence[str]) -> bool:
    """Tells whether a column of times may be a step: it differs by row, and not by decades as births do."""
    spans = []
    for one in (name, *times):
        known = sorted(t for t in moments_of(sample.columns[one], time_values(sample.columns[one])) if t is not None)
        spans.append(known[len(known) * 9 // 10] - known[len(known) // 10] if known else 0)
    usual = sorted(spans[1:])[len(times) // 2]
    column = sample.columns[name]
    is_constant = len(column.counts) == 1 and len(column.filled) > sample.rows / 2
    return not is_constant and spans[0] <= MOST_SPREAD * max(usual, _MONTH)


MOST_SPREAD = 10  # times the usual span of a column of times of steps
_MONTH = 30 * 86_400_000_000


def _step_of(name: str, others: frozenset[str] = frozenset()) -> str:
    """Returns the words of a column's name that do not say whether a time is that of a begin or an end."""
    return " ".join(word for word in map(folded_word, words_of(name)) if word not in _ENDS | others)


def _is_log(sample: TableSample, names: Sequence[str]) -> bool:
    """Tells whether a row is rather a step: a column of ids repeats, and within one of them steps follow each other."""
    scores = case_scores(sample, names)
    steps = activity_scores(sample, names)
    return any(
        fit.is_log and fit.told >= ORDERED
        for case in scores
        for activity in steps
        if activity != case and (fit := pair_fit(sample, case, activity))
    )


def paired_steps(sample: TableSample, times: Sequence[str]) -> list[tuple[str, str]]:
    """Returns the columns of begin and end of each step, where all columns of times are such; else each one alone.

    Raises InputError where only some columns are pairs.
    """
    alike: dict[str, list[str]] = {}
    for name in times:
        if step := _step_of(name):
            alike.setdefault(step, []).append(name)
    pairs = [sorted(pair, key=lambda name: _is_end(sample, name, pair)) for pair in alike.values() if len(pair) == 2]
    if 2 * len(pairs) == len(times) and all(common_name(*pair) for pair in pairs):
        return [(begin, end) for begin, end in pairs]
    if 2 * len(pairs) >= len(times) / 2:
        raise InputError(
            f"the table has one row for each case and columns for begin and end of some steps, as {pairs[0][0]!r}, and "
            "other columns of times; turn these columns into rows with case, activity, start and end"
        )
    return [(name, name) for name in times]


def _is_end(sample: TableSample, name: str, pair: Sequence[str]) -> bool:
    """Tells whether a column of times is the later one of two, in most rows."""
    (other,) = (one for one in pair if one != name)
    mine, others = (moments_of(sample.columns[one], time_values(sample.columns[one])) for one in (name, other))
    known = [a > b for a, b in zip(mine, others, strict=True) if a is not None and b is not None and a != b]
    return sum(known) > len(known) / 2


def long_form(sample: TableSample, steps: Sequence[tuple[str, str]]) -> TableSample:
    """Returns the sample of a table with one row for each case as it is read: a row for each step that has a time."""
    begins, ends = ([pair[place] for pair in steps] for place in (0, 1))
    rest = [name for name in sample.header if name not in begins and name not in ends]
    has_ends = begins != ends
    long = LONG_WITH_ENDS if has_ends else LONG
    names = column_names([*rest, *long])
    cells = [
        (row, (common_name(*pair), *times[: len(long) - 1]))
        for row in range(sample.rows)
        for pair in steps
        if any(times := [sample.columns[name].values[row].strip() for name in pair])
    ]
    columns = {name: Column(name, tuple(sample.columns[name].values[row] for row, _ in cells)) for name in rest}
    for place, name in enumerate(names[len(rest) :]):
        columns[name] = Column(name, tuple(cell[place] for _, cell in cells))
    empty = 1 - len(cells) / (sample.rows * len(steps))
    what = "two columns" if has_ends else "a column"
    return replace(
        sample,
        columns=columns,
        rows=len(cells),
        table=sample.table | {"steps": begins} | ({"ends": ends} if has_ends else {}),
        notes={"steps": f"assumed: a row for each case, {what} for each step; {share(empty)} of the steps are empty"},
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
                if _is_code(events, name, cases):
                    continue
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


def _is_code(events: TableSample, name: str, other: TableSample) -> bool:
    """Tells whether a column that another, short table explains is a code, because a column is rather the case."""
    scores = case_scores(events, [one for one in events.header if not is_time(events.columns[one])])
    return other.rows <= MOST_ACTIVITIES and scores.get(name, 0.0) < max(scores.values(), default=0.0)


def _names_of_codes(events: TableSample, other: TableSample) -> tuple[str, dict[str, str]] | None:
    """Returns the column of codes that the other table explains, and the name of each code; None if it explains none.

    A name is a text of letters that differs between most codes.
    """
    for name, key in _references(events, other, None):
        texts = [n for n, column in other.columns.items() if n != key and 2 * len(column.counts) > other.rows]
        words = [n for n in texts if sum(map(_has_letters, other.columns[n].counts)) >= FILLED * other.rows]
        if words and _is_code(events, name, other):
            best = next((n for n in words if lettered_words(other.columns[n])), words[0])
            pairs = zip(other.columns[key].values, other.columns[best].values, strict=True)
            return name, {code.strip(): text.strip() for code, text in pairs if code.strip() and text.strip()}
    return None


def _named(events: TableSample, name: str, names: Mapping[str, str], file: str) -> TableSample:
    """Returns a table with the names of the codes of a column, which a file tells, instead of the codes."""
    column = Column(name, tuple(names.get(value.strip(), value) for value in events.columns[name].values))
    return replace(
        events,
        columns=events.columns | {name: column},
        codes=events.codes | {name: dict(names)},
        notes=events.notes | {"names": f"{file} has the names of the codes in {name!r}"},
        _groups={},
    )


def _has_letters(text: str) -> bool:
    return any(c.isalpha() for c in text)


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
    for place in reversed(range(len(samples)) if len(samples) > 1 else ()):  # tables that name codes of another one
        for other, events in enumerate(samples):
            legend = samples[place]
            if legend is None or events is None or other == place or not (told := _names_of_codes(events, legend)):
                continue
            samples[other] = _named(events, *told, files[place].name)
            del samples[place], files[place], kinds[place]
            break
    for place, events in enumerate(samples):
        for name, column in events.columns.items() if events is not None and events.legend else ():
            if events is not None and len(column.counts) > 1 and column.counts.keys() <= events.legend.keys():
                samples[place] = events = _named(events, name, events.legend, files[place].name)
    found = with_table_of_cases(files, samples, stated.columns) if len(samples) > 1 else None
    sample, roles = samples[0], dict[str, str]()
    if found is not None:
        place, sample, case = found
        files.insert(0, files.pop(place))
        kinds.insert(0, kinds.pop(place))
        roles["case"] = case
    elif sample is not None and (steps := steps_of_cases(sample, stated.columns.get("case"))):
        case, pairs = stated.columns.get("case") or _id_of(sample, steps) or "", paired_steps(sample, steps)
        sample = long_form(sample, pairs)
        long = ("activity", "start", "end") if "ends" in sample.table else ("activity", "time")
        roles = {"case": case} | dict(zip(long, sample.header[-len(long) :], strict=True))
    if sample is not None and (ids := printed_once(sample)):
        column = Column(ids, tuple(_from_above(sample.columns[ids].values)))
        sample = replace(
            sample,
            columns=sample.columns | {ids: column},
            table=sample.table | {"fill": [ids]},
            notes=sample.notes | {"fill": f"assumed: a row without {ids!r} belongs to the one above"},
            _groups={},
        )
    return files, kinds, sample, replace(stated, columns={**roles, **stated.columns})


def printed_once(sample: TableSample) -> str | None:
    """Returns the column of ids that stand in the first row of their case alone; None where there is none."""
    for name, column in sample.columns.items():
        is_id = names_role(name, "case") or NUMBERING & set(words_of(name))
        is_once = len(column.counts) == len(column.filled) and 1 < len(column.filled) <= MOST_PRINTED * sample.rows
        if is_id and is_once and column.values[0].strip() and not is_time(column):
            return name
    return None


def _from_above(values: Sequence[str]) -> Iterator[str]:
    above = ""
    for value in values:
        above = value if value.strip() else above
        yield above
