"""Finds which column of a table has which role, by usual names in several languages and by the values.

It also says what the first rows show that these columns leave out: clocks, lines of orders, fields.
"""

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from opus_pipelines.core.errors import InputError
from opus_pipelines.history.formats.table_log import USUAL, _plain
from opus_pipelines.history.ingestion.onboarding.life_cycles import find_life_cycle
from opus_pipelines.history.ingestion.onboarding.table_sample import (
    MOSTLY,
    NUMBERING,
    ROLES,
    Column,
    TableSample,
    TimeValues,
    money_values,
    names_role,
    names_type_of_activity,
    read_sample,
    time_values,
    zone_of,
)
from opus_pipelines.history.records.activity_kinds import words_of
from opus_pipelines.history.records.formats import TABLES

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
    table = next(((file, kind) for file, kind in zip(files, kinds, strict=True) if kind in TABLES), None)
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
    for field_column in (name for name in rest if 1 < len(sample.columns[name].counts) <= MOST_FIELDS):
        of_field = sample.columns[field_column].values
        pairs = []
        for rows in cases:
            last: dict[str, int] = {}
            for row in rows:
                earlier = last.get(of_field[row], row)
                if new[earlier].strip() and new[earlier] != new[row]:
                    pairs.append((earlier, row))
                last[of_field[row]] = row
        for name in (name for name in rest if name != field_column):
            before = sample.columns[name].values
            if len(pairs) >= LEAST_CHANGES and sum(before[b] == new[a] for a, b in pairs) >= MOSTLY * len(pairs):
                fields = ", ".join(value for value, _ in sample.columns[field_column].counts.most_common(SHOWN_FIELDS))
                return [
                    f"{activity!r} has the new values of several fields, which {field_column!r} names ({fields}, ...), "
                    f"and each value is read as an activity; keep the rows of one field, or name both under [columns]: "
                    f'activity = "{{{field_column}}} {{{activity}}}"'
                ]
    return []


MOST_ACTIVITIES = 1_000
MOST_GROUPS = 100  # of people in one log
FILLED = 0.98  # least share of the rows that name their case
TYPE_OF = 2.5  # score of a name such as "event type", which tells the activity unless a column is named as it
_RARELY = 0.02  # share of the cases in which a value of the case itself may be seen to change
_ORDER = (
    "case activity start end time transition instance actor actor_group actor_kind model cost case_cost currency"
).split()


@dataclass(frozen=True)
class ColumnsFound:
    """The column name of each role.

    `times` describes each time column. `attributes` are columns with values of the case as a whole. `zone` is the time
    zone, guessed from the language of the header. `meanings` are those of transitions that only the data tell.
    """

    roles: dict[str, str]
    times: dict[str, TimeValues] = field(default_factory=dict)
    attributes: tuple[str, ...] = ()
    decimal: str | None = None
    currency: str | None = None
    zone: str | None = None
    meanings: Mapping[str, list[str]] = field(default_factory=dict)


def find_columns(sample: TableSample, stated: Mapping[str, str] | None = None) -> ColumnsFound:
    """Finds the roles of the columns.

    `stated` has roles that a person gave; they take precedence. Raises InputError if case, activity or time cannot be
    determined.
    """
    roles = dict(stated or {})
    if lacking := [name for name in roles.values() if name not in sample.columns]:
        raise InputError(
            f"there is no column {', '.join(map(repr, lacking))}; the columns are {_listed(sample.header)}"
        )
    zone = zone_of(sample.header)
    times = {name: seen for name in sample.header if (seen := time_values(sample.columns[name])).readable >= MOSTLY}
    _usual(sample, roles, times)
    if "case" not in roles:
        roles["case"] = _best(sample, roles, "case", _case_score(sample, times), times)
    life_cycle = None
    if "transition" not in roles:
        life_cycle = find_life_cycle(sample, roles, times)
        roles |= {"transition": life_cycle.column} if life_cycle else {}
    if "activity" not in roles:
        roles["activity"] = _best(sample, roles, "activity", _activity_score(sample, roles["case"], times), times)
    _times(sample, roles, times)
    if not {"time", "start", "end"} & roles.keys():
        raise InputError(_unclear(sample, "time"))
    _actor(sample, roles)
    _group(sample, roles)
    columns = _cost(
        sample, ColumnsFound(roles, {name: times[name] for name in roles.values() if name in times}, zone=zone)
    )
    taken = set(columns.roles.values())
    attributes = tuple(
        name for name in sample.header if name not in taken and _is_of_case(sample, columns.roles["case"], name)
    )
    return replace(
        columns,
        roles={role: columns.roles[role] for role in _ORDER if role in columns.roles},
        attributes=attributes,
        meanings=life_cycle.meanings if life_cycle else {},
    )


def _usual(sample: TableSample, roles: dict[str, str], times: Mapping[str, TimeValues]) -> None:
    """Assigns the names that the readers know. They need no check of their values, except that times must be times."""
    plain = {_plain(name): name for name in reversed(sample.header)}
    for role in ("case", "activity", "start", "end", "time", "transition", "instance", "actor", "actor_kind", "model"):
        column = next(
            (plain[name] for name in map(_plain, USUAL[role]) if name in plain and plain[name] not in roles.values()),
            None,
        )
        if role in roles or column is None:
            continue
        if role in ("start", "end", "time") and (column not in times or ("time" in roles and role != "time")):
            continue
        roles[role] = column
    case = roles.get("case")
    for role in ("start", "end", "time"):  # a date of the case as a whole is no moment of an event
        if (
            case
            and role in roles
            and len(times) > 1
            and sample.changes_within(case, roles[role]) == 0
            and _has_long_cases(sample, case)
        ):
            del roles[role]
    if "time" in roles and {"start", "end"} <= roles.keys():
        del roles["time"]


def _has_long_cases(sample: TableSample, case: str) -> bool:
    return any(len(rows) > 1 for rows in sample.cases(case))


def _case_score(sample: TableSample, times: Mapping[str, TimeValues]) -> dict[str, float]:
    scores = {}
    for name, column in sample.columns.items():
        distinct = len(column.counts)
        if name in times or len(column.filled) < FILLED * sample.rows or not 1 < distinct < sample.rows:
            continue  # a few rows without an id are rejected later, and named
        long_enough = 1.2 <= sample.rows / distinct <= 200
        numbers = any(word in NUMBERING or word.endswith(("nummer", "number")) for word in words_of(name))
        of_people = names_role(name, "actor") or names_role(name, "actor_group")
        scores[name] = 3.0 * (names_role(name, "case") - of_people) + numbers + 2.0 * long_enough + (distinct > 20)
    return {name: score for name, score in scores.items() if score >= 3}


def _activity_score(sample: TableSample, case: str, times: Mapping[str, TimeValues]) -> dict[str, float]:
    scores = {}
    for name, column in sample.columns.items():
        distinct = len(column.counts)
        if name in times or name == case or not 1 < distinct <= min(MOST_ACTIVITIES, max(2, len(column.filled) / 2)):
            continue
        if (
            len(column.filled) < MOSTLY * sample.rows
            or sum(any(c.isalpha() for c in value) for value in column.counts) < MOSTLY * distinct
        ):
            continue
        named = 3.0 * names_role(name, "activity") or TYPE_OF * names_type_of_activity(name)
        scores[name] = named + 2.0 * sample.changes_within(case, name) - names_role(name, "actor")
    return {name: score for name, score in scores.items() if score >= 1.5}


def _best(
    sample: TableSample, roles: Mapping[str, str], role: str, scores: Mapping[str, float], times: Mapping[str, object]
) -> str:
    """Returns the column with the highest score. Raises InputError if there is none, or if two have the same score."""
    ranked = sorted((name for name in scores if name not in roles.values()), key=lambda name: -scores[name])
    if ranked and (len(ranked) == 1 or scores[ranked[1]] < scores[ranked[0]]):
        return ranked[0]
    if not ranked and (steps := step_columns(sample, [name for name in times if name not in roles.values()])):
        raise InputError(f"{one_row_a_case(steps)} (it cannot be told which column is the {role})")
    equal = [name for name in ranked if scores[name] == scores[ranked[0]]]
    raise InputError(_unclear(sample, role) + (f"; {_listed(equal)} are as likely" if equal else ""))


def _times(sample: TableSample, roles: dict[str, str], times: Mapping[str, TimeValues]) -> None:
    """Finds start, end and time, if the usual names do not give them.

    Where they give only one of start and end ("Start" beside "Ende"), the other one is looked for.
    """
    given = {"time", "start", "end"} & roles.keys()
    if "time" in given or len(given) > 1:
        return
    case = roles["case"]
    candidates = [name for name in times if name not in roles.values()]
    moving = [name for name in candidates if sample.changes_within(case, name) > _RARELY] or (
        [] if _has_long_cases(sample, case) else candidates
    )
    named = {role: [name for name in moving if set(words_of(name)) & ROLES[role]] for role in ("start", "end")}
    if given:
        (other,) = {"start", "end"} - given
        if len(named[other]) == 1:
            roles[other] = named[other][0]
        return
    if len(moving) > 1 and len(named["start"]) == 1 and len(named["end"]) == 1 and named["start"] != named["end"]:
        roles |= {"start": named["start"][0], "end": named["end"][0]}
        return
    full = max((len(sample.columns[name].filled) for name in moving), default=0)
    moving = [name for name in moving if len(sample.columns[name].filled) >= MOSTLY * full]
    likely = [name for name in moving if names_role(name, "time")] or moving
    if len(likely) == 1:
        roles["time"] = likely[0]


def _actor(sample: TableSample, roles: dict[str, str]) -> None:
    free = [name for name in sample.header if name not in roles.values() and names_role(name, "actor")]
    moving = [name for name in free if sample.changes_within(roles["case"], name) > _RARELY]
    if "actor" not in roles and len(moving) == 1:
        roles["actor"] = moving[0]


def _group(sample: TableSample, roles: dict[str, str]) -> None:
    """Finds the role or group of people: a column so named that changes within cases and has few values."""
    free = [name for name in sample.header if name not in roles.values() and names_role(name, "actor_group")]
    moving = [
        name
        for name in free
        if sample.changes_within(roles["case"], name) > _RARELY and len(set(sample.columns[name].filled)) <= MOST_GROUPS
    ]
    if "actor_group" not in roles and len(moving) == 1:
        roles["actor_group"] = moving[0]


def _cost(sample: TableSample, columns: ColumnsFound) -> ColumnsFound:
    """Finds a column that is named as a cost and contains amounts.

    One with the same value in every row of a case is the cost of the case.
    """
    roles = dict(columns.roles)
    named = [name for name in sample.header if name not in roles.values() and names_role(name, "cost")]
    usable = [
        name for name in named if sample.columns[name].filled and money_values(sample.columns[name]).readable >= MOSTLY
    ]
    if "cost" in roles or "case_cost" in roles or len(usable) != 1:
        usable = [roles[role] for role in ("cost", "case_cost") if role in roles]
    if len(usable) != 1:
        return columns
    name = usable[0]
    seen = money_values(sample.columns[name])
    is_flat_price = len(sample.columns[name].counts) == 1  # of each event, not of the case
    is_of_case = (
        not is_flat_price and _has_long_cases(sample, roles["case"]) and _is_of_case(sample, roles["case"], name)
    )
    if name not in roles.values():
        roles["case_cost" if is_of_case else "cost"] = name
    currencies = next((column for column in sample.header if _plain(column) in map(_plain, USUAL["currency"])), None)
    if currencies:
        roles.setdefault("currency", currencies)
    codes = [
        word.upper()
        for word in words_of(name)
        if word in ("eur", "gbp", "chf", "usd", "sek", "dkk", "nok", "pln", "czk")
    ]
    codes += ["EUR"] if "€" in name else ["GBP"] if "£" in name else []
    currency = codes[0] if codes and not seen.currencies and "currency" not in roles else None
    return replace(columns, roles=roles, decimal=seen.decimal, currency=currency)


def _is_of_case(sample: TableSample, case: str, name: str) -> bool:
    """Tells whether the column has a value of the case as a whole.

    It is known at the first event and (almost) never changes later.
    """
    values = sample.columns[name].values
    cases = [rows for rows in sample.cases(case) if any(values[row].strip() for row in rows)]
    known_at_start = sum(bool(values[rows[0]].strip()) for rows in cases)
    return bool(cases) and known_at_start >= MOSTLY * len(cases) and sample.changes_within(case, name) <= _RARELY


def _unclear(sample: TableSample, role: str) -> str:
    return (
        f"it cannot be told which column is the {role}; the columns are {_listed(sample.header)}; say it with "
        f"--{role} COLUMN"
    )


def _listed(names: Iterable[str]) -> str:
    names = list(names)
    return ", ".join(map(repr, names[:40])) + (", ..." if len(names) > 40 else "")
