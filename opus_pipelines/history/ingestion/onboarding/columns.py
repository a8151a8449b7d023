"""Finds which column of a table has which role, by usual names in several languages and by the values.

It also says what the first rows show that these columns leave out: clocks, lines of orders, fields.
"""

import re
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from pathlib import Path

from opus_pipelines.core.errors import InputError, UnclearColumn
from opus_pipelines.history.formats.table_log import USUAL, _plain
from opus_pipelines.history.ingestion.onboarding.life_cycles import find_life_cycle
from opus_pipelines.history.ingestion.onboarding.table_sample import (
    BAD,
    GOOD,
    MOSTLY,
    PLANNED,
    ROLES,
    SUMS,
    YES_OR_NO,
    Column,
    TableSample,
    TimeValues,
    change_words,
    moments_of,
    money_values,
    names_amount,
    names_number,
    names_role,
    names_type_of_activity,
    numbers_rows,
    order_column,
    read_sample,
    time_values,
    zone_of,
)
from opus_pipelines.history.records.activity_kinds import words_of
from opus_pipelines.history.records.formats import TABLES
from opus_pipelines.history.records.values import ROUNDED_ID, TransitionMeanings, numeric_day

LEAST_REPEATED = 0.1  # share of the cases with an activity that repeats, from which parts of cases are looked for
LEAST_CHANGES = 5  # of one field of one case, one after the other, from which a log of changed fields may be told
MOST_FIELDS = 50  # of a log of changed fields
SHOWN_FIELDS = 3  # of them, in a message
LEAST_STEPS = 3  # columns of times from which they may be the steps of a table with one row for each case
_CLOCK = re.compile(r"\d{1,2}:\d{2}(?::\d{2}(?:[.,]\d+)?)?(?:\s?[AaPp][Mm])?|\d{2}\.\d{2}(?:\.\d{2})?\s?(?:Uhr|h)")
_PARTS = frozenset(
    ("item", "items", "line", "lines", "position", "pos", "posten", "positie", "ligne", "riga", "part", "zeile")
)


def column_doubts(
    sample: TableSample, roles: Mapping[str, object], of_one_field: bool = False
) -> list[tuple[str, str]]:
    """Returns rows (what, how) for the table of what was understood; `roles` are columns by role.

    `of_one_field`: the rows of a log of changed fields are those of one field already.
    """
    used = {name for name in roles.values() if isinstance(name, str)}
    rest = [name for name in sample.header if name not in used]
    named = {role: name for role in ("case", "activity") if isinstance(name := roles.get(role), str)}
    found = find_life_cycle(sample, named, {}) if len(named) > 1 and "transition" not in roles else None
    parts = None if found else _parts(sample, roles, rest)
    texts = [parts[1]] if parts else []
    if found:
        texts.append(
            f"{found.column!r} tells whether a row is the start or the end of a step, and each row is read as one of "
            "its own; name the column as transition under [columns]"
        )
    for name in (roles[role] for role in ("time", "start", "end") if isinstance(roles.get(role), str)):
        if mixed := time_values(sample.columns[str(name)]).mixed:
            texts.append(f"{name!r} mixes two readings of times, as {mixed[0]} and {mixed[1]}")
    texts += [*_steps_as_columns(sample, roles), *([] if of_one_field else _changed_fields(sample, roles, rest))]
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


def is_time(column: Column) -> bool:
    """Tells whether nearly all values of a column are times."""
    return time_values(column).readable >= MOSTLY


def _share_of(pattern: re.Pattern[str], sample: TableSample, name: str) -> float:
    filled = sample.columns[name].filled
    return sum(bool(pattern.fullmatch(value)) for value in filled) / max(1, len(filled))


def _parts(sample: TableSample, roles: Mapping[str, object], rest: list[str]) -> tuple[str, str] | None:
    """Returns the column that may tell parts of cases, with a sentence on it; None if there is none."""
    case, activity = roles.get("case"), roles.get("activity")
    if not isinstance(case, str) or not isinstance(activity, str) or roles.get("scope") is not None:
        return None
    names, cases = sample.columns[activity].values, sample.cases(case)
    repeated = sum(len({names[row] for row in rows}) < len(rows) for rows in cases)
    if repeated < LEAST_REPEATED * len(cases):
        return None
    for name in rest:
        values = sample.columns[name].values
        each = sum(len({(values[row], names[row]) for row in rows}) for rows in cases)
        is_named = not _PARTS.isdisjoint(words_of(name)) and each >= MOSTLY * sum(map(len, cases))
        if is_named or _are_parts(values, names, cases):
            return name, (
                f"activities repeat in {repeated:,} of {len(cases):,} cases, as if each {name!r} of a case had its "
                f"own; is a case a {name!r} of a {case!r}?"
            )
    return None


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
_RARELY = 0.02  # share of the cases in which a value of the case itself may be seen to change
_NEARLY = 0.5  # difference of two scores from which one reading is better than the other
_LOOKED_AT = 2_000  # cases with several events
_MOST_CANDIDATES = 8  # for one role
_EXACT, _NAMED, TYPE_OF, _STATE = 4.0, 3.0, 1.5, 1.5  # scores of names of columns
_LONG_ENOUGH = (1.2, 200)  # events of a case
_FEW_CASES = 30  # so few, with more events each than this, are rather groups of cases
MOST_REPEATED = 5.0  # times that a case does an activity that it does, where no name says that it is a case
ORDERED = 0.2  # least share of the steps that the step before tells, where no column is named as the activity
_ID = re.compile(r"(?=.*\d)[^\s,]{1,40}|[A-Z]{1,5} ?-? ?\d+")
_ROUNDED_ID = re.compile(ROUNDED_ID)
_PERSON = re.compile(
    r"[^\W\d_][\w'-]+, ?(?:[^\W\d_]\.?|[^\W\d_][\w'-]+)|(?:[^\W\d_]\. ?){1,2}[^\W\d_][\w' -]+|[a-zà-ÿ]+[._][a-zà-ÿ]+\d*"
)
_ORDER = (
    "case scope activity start end time order transition instance actor actor_group actor_kind model cost case_cost "
    "currency"
).split()


@dataclass(frozen=True)
class ColumnsFound:
    """The column name of each role.

    `times` describes each time column. `attributes` are columns with values of the case as a whole. `zone` is the time
    zone, guessed from the language of the header. `meanings` are those of transitions that only the data tell.
    `later` has the columns whose value for the case is known at its end alone, each with the reason. `rows` are the
    rows that are read or left out, as [rows] states them, and `left_out` says which are not read. `guessed` are roles
    that the values tell, and not the names.
    """

    roles: dict[str, str]
    times: dict[str, TimeValues] = field(default_factory=dict)
    attributes: tuple[str, ...] = ()
    decimal: str | None = None
    currency: str | None = None
    zone: str | None = None
    meanings: Mapping[str, list[str]] = field(default_factory=dict)
    later: Mapping[str, str] = field(default_factory=dict)
    rows: Mapping[str, Mapping[str, list[str]] | list[str]] = field(default_factory=dict)
    left_out: str = ""
    guessed: Mapping[str, str] = field(default_factory=dict)


def find_columns(
    whole: TableSample,
    stated: Mapping[str, str] | None = None,
    only: Mapping[str, list[str]] | None = None,
) -> ColumnsFound:
    """Finds the roles of the columns.

    `stated` has roles that a person gave, and `only` the rows; they take precedence. Raises InputError if case,
    activity or time cannot be determined, and UnclearColumn if two readings are nearly as good.
    """
    roles = dict(stated or {})
    known = {*whole.columns, NO_SCOPE}
    if lacking := [name for name in (*roles.values(), *(only or ())) if name not in known]:
        raise InputError(f"there is no column {', '.join(map(repr, lacking))}; the columns are {_listed(whole.header)}")
    zone = zone_of(whole.header)
    times = {name: seen for name in whole.header if (seen := time_values(whole.columns[name])).readable >= MOSTLY}
    sample, footers = _without_footers(whole, times)
    change = None if only or "activity" in roles else changed_fields(sample, times, roles.get("case"))
    before: str | None = None
    if change is not None:
        roles["activity"], before = change.new, change.old
        only = {change.field: [change.state]} if change.field and change.state else only
    rest = ""
    if only:
        sample, rest = _only(sample, only)
    _usual(sample, roles, times)
    life_cycle = None
    if "transition" not in roles and change is None:
        free = [name for name in sample.header if name not in times and name not in roles.values()]
        case = roles.get("case") or next(iter(_best(case_scores(sample, free))), None)
        life_cycle = find_life_cycle(sample, roles | {"case": case}, times) if case else None
        roles |= {"transition": life_cycle.column} if life_cycle else {}
    if "activity" not in roles:
        _refuse_pairs(sample, times)
    try:
        _case_and_activity(sample, roles, times, {before} - {None})
    except InputError:
        if reason := _no_log(sample, times):
            raise InputError(reason) from None
        raise
    sample = _scoped(sample, roles)
    _times(sample, roles, times)
    if not {"time", "start", "end"} & roles.keys():
        hours = [name for name in sample.header if _share_of(_CLOCK, sample, name) >= MOSTLY]
        if hours and not times:
            raise InputError(
                f"no column has the day of the events: {_listed(hours)} has hours of the day alone; export the date too"
            )
        raise InputError(_unclear(sample, "time"))
    for name in (roles[role] for role in ("time", "start", "end") if role in roles):
        mixed = times[name].mixed if name in times else ()
        if mixed and numeric_day(mixed[0]) and numeric_day(mixed[1]):
            raise InputError(
                f"{name!r} mixes two readings of dates: of {mixed[0]} and {mixed[1]}, one has the day first and the "
                "other one the month; export them in one form"
            )
    if value := next(filter(_ROUNDED_ID.fullmatch, sample.columns[roles["case"]].counts), None):
        raise InputError(_rounded(roles["case"], value))
    guessed = _actor(sample, roles, times, before)
    _group(sample, roles)
    columns = _cost(
        sample, ColumnsFound(roles, {name: times[name] for name in roles.values() if name in times}, zone=zone)
    )
    moment = next(roles[role] for role in ("start", "time", "end") if role in roles)
    if order := order_column(sample, roles["case"], moment, roles.values()):
        columns.roles["order"] = order
    taken = {*columns.roles.values(), before, *_parts_of(columns.roles)} - {columns.roles.get("scope")}
    own = [name for name in sample.header if name not in taken and _is_of_case(sample, columns.roles["case"], name)]
    later = _known_later(sample, columns.roles, own, times)
    without, footer = _footers(whole, columns.roles["case"], footers)
    filled = (
        [roles["case"]]
        if any(not any(c.values[row].strip() for c in whole.columns.values()) for row in footers)
        else []
    )
    if len(next(iter(without.values()), [])) > MANY_FIELDS:
        without, filled, footer = {}, [moment], f"rows of sums, which have no {moment!r}"
    rows = {kind: values for kind, values in (("only", only), ("without", without), ("filled", filled)) if values}
    _, columns.roles["case"] = _parts_of(columns.roles)
    return replace(
        columns,
        roles={role: columns.roles[role] for role in _ORDER if role in columns.roles},
        attributes=tuple(name for name in own if name not in later),
        later=later,
        rows=rows,
        left_out="; ".join(filter(None, (rest, footer))),
        guessed=guessed,
        meanings=life_cycle.meanings if life_cycle else {},
    )


def _rounded(name: str, value: str) -> str:
    return (
        f"ids in {name!r} such as {value} were rounded by a spreadsheet, so that different cases have one id; export "
        "the column as text"
    )


def _refuse_pairs(sample: TableSample, times: Collection[str]) -> None:
    """Raises InputError where each row is a pair of activities, of which the table counts how often they follow."""
    columns = {name: column for name, column in sample.columns.items() if name not in times and column.counts}
    named = [name for name in columns if names_role(name, "activity") or lettered_words(columns[name])]
    for one, other in pairwise(named):
        values, others = columns[one].counts.keys(), columns[other].counts.keys()
        pairs = set(zip(columns[one].values, columns[other].values, strict=True))
        if len(values) > 2 and 2 * len(values & others) > len(values | others) and len(pairs) == sample.rows:
            raise InputError(
                f"each row is a pair of activities, {one!r} and {other!r}, that follow each other: a count of steps "
                "and no log; export each step with its case and its time"
            )


def _no_log(sample: TableSample, times: Collection[str]) -> str | None:
    """Returns why a table in which no column is found to be the case or the activity is no log, where it is known.

    Its ids were rounded, or each event stands in several rows, or each row is the present state of one case.
    """
    columns = {name: column for name, column in sample.columns.items() if name not in times and column.counts}
    for name, column in columns.items():
        value = next(iter(column.counts))
        if _share_in(column, _ROUNDED_ID) >= MOSTLY and (names_role(name, "case") or names_number(name)):
            return _rounded(name, value)
    unique = [name for name, column in columns.items() if len(column.counts) == sample.rows]
    ids = [name for name in unique if names_role(name, "case") or names_number(name)]
    kinds = activity_scores(sample, list(columns))
    for name in (n for n in columns if kinds and times and names_number(n) and n not in unique):
        told = [other for other in sample.header if other != name and _tells(sample, name, other)]
        if {*times, max(kinds, key=kinds.__getitem__)} <= {*told} and name != max(kinds, key=kinds.__getitem__):
            differing = [other for other in columns if other not in told and other != name]
            return (
                f"each {name!r} is one event, which stands in {sample.rows / len(columns[name].counts):.1f} rows that "
                f"differ in {_listed(differing)}, as a join with another table makes them; export the events without it"
            )
    if ids and not case_scores(sample, list(columns)) and any(names_role(n, "state") for n in columns):
        return (
            f"{ids[0]!r} differs in every row, so that a row is the present state of a case, and no step of it; export "
            "the history of its changes"
        )
    return None


def _scoped(sample: TableSample, roles: dict[str, str]) -> TableSample:
    """Returns the sample with the case told by two columns, where ids are given within another one, as within a client.

    The role `scope` names that column then, and may be stated; "" where a person says that there is none. Raises
    UnclearColumn where a column may tell parts of cases.
    """
    names, cases = sample.columns[roles["activity"]].values, sample.cases(roles["case"])
    if "scope" not in roles:
        free = [name for name in sample.header if name not in roles.values()]
        for name in (n for n in free if names_role(n, "client") and sample.changes_within(roles["case"], n) > _RARELY):
            if _are_parts(sample.columns[name].values, names, cases):
                roles["scope"] = name
        if "scope" not in roles and (doubt := _parts(sample, roles, free)):
            raise UnclearColumn(f"{doubt[1]}; say it with --scope COLUMN", "scope", (doubt[0], NO_SCOPE))
    scope = roles.get("scope")
    if scope is None or scope == NO_SCOPE:
        roles.pop("scope", None)
        return sample
    whole = f"{scope} {roles['case']}"
    pairs = zip(sample.columns[scope].values, sample.columns[roles["case"]].values, strict=True)
    values = tuple(" ".join(pair) if all(pair) else "" for pair in pairs)
    roles["case"] = whole
    return replace(sample, columns=sample.columns | {whole: Column(whole, values)}, _groups={})


def _parts_of(roles: Mapping[str, str]) -> tuple[str, str]:
    """Returns the column of the scope of cases, "" without one, and that of their ids."""
    scope = roles.get("scope", "")
    return scope, roles["case"].removeprefix(f"{scope} ") if scope else roles["case"]


NO_SCOPE = "none"


def _usual(sample: TableSample, roles: dict[str, str], times: Mapping[str, TimeValues]) -> None:
    """Assigns the names that the readers know. They need no check of their values, except that times must be times."""
    plain = {_plain(name): name for name in reversed(sample.header)}
    for role in ("start", "end", "time", "transition", "instance", "actor_kind", "model"):
        column = next(
            (plain[name] for name in map(_plain, USUAL[role]) if name in plain and plain[name] not in roles.values()),
            None,
        )
        if role in roles or column is None:
            continue
        if role in ("start", "end", "time") and (column not in times or ("time" in roles and role != "time")):
            continue
        roles[role] = column
    case = roles.get("case") or next((plain[name] for name in map(_plain, USUAL["case"]) if name in plain), None)
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


def _case_and_activity(
    sample: TableSample, roles: dict[str, str], times: Mapping[str, TimeValues], others: Collection[str | None]
) -> None:
    """Finds the case and the activity together, as the pair of columns that looks most like a log.

    Of a pair count the names, the form of the values, and whether events of a case differ, activities stand in many
    cases, and one activity tells the next. Raises InputError if there is no such pair, and UnclearColumn if
    another one is nearly as good.
    """
    kinds_stated = {*roles}
    free = [n for n in sample.header if n not in times and n not in roles.values() and n not in others]
    cases = [roles["case"]] if "case" in roles else _best(case_scores(sample, free))
    if not cases and (steps := step_columns(sample, [name for name in times if name not in roles.values()])):
        raise InputError(f"{one_row_a_case(steps)} (it cannot be told which column is the case)")
    scores: dict[tuple[str, str], float] = {}
    usual: set[tuple[str, str]] = set()
    own = case_scores(sample, cases)
    kinds = activity_scores(sample, free)
    for name in kinds:  # what the case tells is an attribute of the case
        distinct = len(sample.columns[name].counts)
        if any(len(sample.columns[c].counts) > 2 * distinct and _tells(sample, c, name) for c in cases if c != name):
            kinds[name] -= 2 * (kinds[name] < _EXACT)
    for case in cases:
        activities = [roles["activity"]] if "activity" in roles else [n for n in _best(kinds) if n != case]
        for activity in activities:
            fit = pair_fit(sample, case, activity)
            score = own.get(case, 0.0) + kinds.get(activity, 0.0) + fit.score
            is_named = "activity" in roles or kinds[activity] >= _STATE or fit.told >= ORDERED
            # a user or a workstation, of whom no name says that they are cases, do the same again and again
            is_case = "case" in roles or names_role(case, "case") or names_number(case)
            if not is_case and fit.repeated > MOST_REPEATED:
                continue
            if is_named and (fit.is_log or kinds.get(activity, 0.0) >= _EXACT or "activity" in roles):
                scores[case, activity] = score
            if own.get(case, 0.0) >= _EXACT and kinds.get(activity, 0.0) >= _EXACT:
                usual.add((case, activity))
    ranked = sorted(scores, key=lambda pair: -scores[pair])
    if not ranked:
        likely = [name for name in cases if own.get(name, 0.0) >= max(own.values(), default=0.0) - _NEARLY]
        is_told = len(likely) == 1 and (names_role(likely[0], "case") or names_number(likely[0]))
        role, names = ("case", likely) if "case" not in roles and not is_told else ("activity", [])
        raise _unclear_of(sample, role, names) if len(names) > 1 else InputError(_unclear(sample, role))
    best = ranked[0]
    for other in ranked[1:]:
        if best in usual or scores[other] < scores[best] - _NEARLY:
            break
        for place, role in enumerate(("case", "activity")):
            if best[place] != other[place] and not _is_same(sample, best[place], other[place]):
                raise _unclear_of(sample, role, (best[place], other[place]))
    roles["case"], roles["activity"] = best
    if "activity" in kinds_stated or lettered_words(sample.columns[best[1]]):
        return
    for case, name in ranked:  # a code and a name of the same thing
        if case == best[0] and lettered_words(sample.columns[name]) and _is_same(sample, best[1], name):
            roles["activity"] = name
            return


def _best(scores: Mapping[str, float]) -> list[str]:
    return sorted(scores, key=lambda name: -scores[name])[:_MOST_CANDIDATES]


def _unclear_of(sample: TableSample, role: str, names: Sequence[str]) -> UnclearColumn:
    """Returns the error that shows several columns with some of their values."""
    shown = "; ".join(f"{n!r} ({', '.join(v for v, _ in sample.columns[n].counts.most_common(3))[:60]})" for n in names)
    return UnclearColumn(f"{_unclear(sample, role)}; as likely are {shown}", role, names)


def _is_same(sample: TableSample, one: str, other: str) -> bool:
    """Tells whether two columns have a value each for each value of the other, as a number and a name of one thing."""
    pairs = set(zip(sample.columns[one].values, sample.columns[other].values, strict=True))
    return len(pairs) == len({a for a, _ in pairs}) == len({b for _, b in pairs})


def _tells(sample: TableSample, one: str, other: str) -> bool:
    """Tells whether each value of a column goes with one value of another, as an order does with its customer."""
    pairs = set(zip(sample.columns[one].values, sample.columns[other].values, strict=True))
    return len(pairs) <= (1 + _RARELY) * len({a for a, _ in pairs})


def _is_usual(name: str, role: str) -> bool:
    return _plain(name) in map(_plain, USUAL[role])


def _share_in(column: Column, pattern: re.Pattern[str]) -> float:
    return sum(bool(pattern.fullmatch(value)) for value in column.counts) / max(1, len(column.counts))


def _names_other(name: str) -> bool:
    """Tells whether a name is that of people, groups, amounts or outcomes, which are neither case nor activity."""
    return any(names_role(name, role) for role in ("actor", "owner", "actor_group", "cost")) or names_amount(name)


def case_scores(sample: TableSample, free: Sequence[str]) -> dict[str, float]:
    """Returns by column, of those that may tell the case, how much its name and its values speak for that."""
    scores = {}
    for name in free:
        column = sample.columns[name]
        distinct = len(column.counts)
        if _is_usual(name, "case"):
            scores[name] = _EXACT
            continue
        if len(column.filled) < FILLED * sample.rows or not 1 < distinct < sample.rows or numbers_rows(name):
            continue  # a few rows without an id are rejected later, and named
        if names_number(name) and names_role(name, "activity") and not names_role(name, "case"):
            continue  # it numbers events or steps
        named = _NAMED * names_role(name, "case") + names_number(name)
        named -= _NAMED * _names_other(name) + names_role(name, "party") + 2.0 * names_role(name, "outcome")
        of_ids = 1.5 * (_share_in(column, _ID) >= MOSTLY)
        long_enough = _LONG_ENOUGH[0] <= sample.rows / distinct <= _LONG_ENOUGH[1]
        scores[name] = named + of_ids + long_enough + 0.5 * (distinct > 20)
    times = [name for name in sample.header if is_time(sample.columns[name])]
    for name in scores if times else ():  # an id that tells each time is that of an event, in several rows perhaps
        is_number = names_number(name) and not names_role(name, "case") and not _is_usual(name, "case")
        if is_number and all(_tells(sample, name, time) for time in times):
            scores[name] = 0
    likely = {name: score for name, score in scores.items() if score >= 2}
    for name in likely:  # what a more precise id tells is an attribute of the case
        for finer in likely:
            if len(sample.columns[finer].counts) > len(sample.columns[name].counts) and _tells(sample, finer, name):
                scores[name] -= 1
                break
    return {name: scores[name] for name in likely if scores[name] >= 1}


def activity_scores(sample: TableSample, free: Sequence[str]) -> dict[str, float]:
    """Returns by column, of those that may tell the activity, how much its name and its values speak for that."""
    scores = {}
    for name in free:
        column = sample.columns[name]
        distinct, is_usual = len(column.counts), _is_usual(name, "activity")
        named = _NAMED * names_role(name, "activity") or TYPE_OF * names_type_of_activity(name)
        named = named or _STATE * (names_role(name, "state") or names_role(name, "outcome"))
        if is_usual:
            scores[name] = _EXACT
        most = len(column.filled) - 1 if named >= _NAMED else max(2, len(column.filled) / 2)
        if not 1 < distinct <= min(MOST_ACTIVITIES, most):
            continue
        lettered = sum(any(c.isalpha() for c in value) for value in column.counts) >= MOSTLY * distinct
        if len(column.filled) < MOSTLY * sample.rows or not (lettered or named >= TYPE_OF or is_usual):
            continue
        named -= _NAMED * _names_other(name) + 2.0 * names_role(name, "party") + names_role(name, "description")
        of_ids = distinct > MOST_FIELDS and _share_in(column, _ID) >= MOSTLY
        of_people = _share_in(column, _PERSON) >= MOSTLY and not lettered_words(column)
        scores[name] = max(scores.get(name, 0.0), named) - 2.0 * of_ids - 1.5 * of_people - (not lettered)
    return scores


def lettered_words(column: Column) -> bool:
    """Tells whether most values are several words or one word in letters, none of which is an initial."""
    return (
        sum(all(len(w) > 1 and w.isalpha() for w in value.split()) for value in column.counts) > len(column.counts) / 2
    )


@dataclass(frozen=True)
class PairFit:
    """How well two columns go together as case and activity.

    `told` is how often one activity tells the next, and `repeated` how often a case does what it does.
    """

    score: float
    told: float
    is_log: bool
    repeated: float = 1.0


def pair_fit(sample: TableSample, case: str, activity: str) -> PairFit:
    """Returns how well two columns go together as case and activity."""
    values = sample.columns[activity].values
    cases = sample.cases(case)
    long = [rows for rows in cases if len(rows) > 1][:_LOOKED_AT]
    if not long:
        return PairFit(0.0, 0.0, is_log=not any(len(rows) > 1 for rows in cases))
    changes = sample.changes_within(case, activity)
    in_cases = Counter(value for rows in long for value in {values[row] for row in rows})
    events = sum(map(len, long))
    spread = sum(in_cases[values[row]] >= min(3, len(long)) for rows in long for row in rows) / events
    told = _told(long, values)
    more_cases = len(cases) >= len(sample.columns[activity].counts)
    few_cases = len(cases) < _FEW_CASES and events > _FEW_CASES * len(cases)
    score = 2.0 * changes + spread + 1.5 * told + (0.5 if more_cases else -1.5) - few_cases
    return PairFit(score, told, changes >= LEAST_REPEATED and spread >= 0.5, events / in_cases.total())


def _told(cases: Sequence[Sequence[int]], values: Sequence[str]) -> float:
    """Returns by how much the value before tells the next other value better than its share does, from 0 to 1.

    What follows is learned from every second case, and tried on the others.
    """
    followers: dict[str, Counter[str]] = {}
    overall: Counter[str] = Counter()
    pairs: tuple[list[tuple[str, str]], list[tuple[str, str]]] = ([], [])
    for number, rows in enumerate(cases):
        before = ""
        for row in rows:
            if values[row] != before:
                pairs[number % 2].append((before, values[row]))
            before = values[row]
    for before, after in pairs[0]:
        followers.setdefault(before, Counter())[after] += 1
        overall[after] += 1
    if not overall:
        return 0.0
    tried = pairs[1] or pairs[0]
    usual = overall.most_common(1)[0][0]
    by_chance = sum(after == usual for _, after in tried) / len(tried)
    right = sum(before in followers and followers[before].most_common(1)[0][0] == after for before, after in tried)
    return max(0.0, (right / len(tried) - by_chance) / max(1 - by_chance, 0.01))


def _times(sample: TableSample, roles: dict[str, str], times: Mapping[str, TimeValues]) -> None:
    """Finds start, end and time, if the usual names do not give them.

    Where they give only one of start and end ("Start" beside "Ende"), the other one is looked for.
    """
    given = {"time", "start", "end"} & roles.keys()
    if "time" in given or len(given) > 1:
        return
    case = roles["case"]
    candidates = [name for name in times if name not in roles.values() and PLANNED.isdisjoint(words_of(name))]
    moving = [name for name in candidates if sample.changes_within(case, name) > _RARELY] or (
        [] if _has_long_cases(sample, case) else candidates
    )
    named = {role: [name for name in moving if _names_when(name, role)] for role in ("start", "end")}
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
    if not moving and len(candidates) == 1 and order_column(sample, case, candidates[0], roles.values()):
        moving = candidates  # days alone, whose order another column tells
    likely = [name for name in moving if names_role(name, "time")] or moving
    if len(likely) == 1:
        roles["time"] = likely[0]
    elif len(likely) == 2 and (interval := _interval(sample, case, likely, times)):
        roles |= dict(zip(("start", "end"), interval, strict=True))


def _interval(
    sample: TableSample, case: str, names: Sequence[str], times: Mapping[str, TimeValues]
) -> Sequence[str] | None:
    """Returns two columns of times as start and end, where each step of a case begins after the one before."""
    for begin, end in (names, names[::-1]):
        starts, ends = (moments_of(sample.columns[name], times[name]) for name in (begin, end))
        lasted = [b - a for a, b in zip(starts, ends, strict=True) if a is not None and b is not None]
        is_one = sum(d >= 0 for d in lasted) >= FILLED * sample.rows and sum(d > 0 for d in lasted) > sample.rows / 2
        known = [sorted((a, b) for row in rows if (a := starts[row]) is not None and (b := ends[row]) is not None)
                 for rows in sample.cases(case)]  # fmt: skip
        follows = [one[1] <= other[0] for rows in known for one, other in pairwise(rows)]
        if is_one and len(set(lasted)) > MOST_OUTCOMES and follows and sum(follows) >= FILLED * len(follows):
            return begin, end
    return None


def _names_when(name: str, role: str) -> bool:
    """Tells whether a column of times is named as the start or the end, or by a state that opens or closes work."""
    meant = {"start": {"start", "open"}, "end": {"complete", "close"}}[role]
    return bool(set(words_of(name)) & ROLES[role]) or TransitionMeanings()(name) in meant


def _actor(
    sample: TableSample, roles: dict[str, str], times: Mapping[str, TimeValues], before: str | None
) -> dict[str, str]:
    """Finds who did it, also where one person handles a whole case. Returns the reason where the values alone tell it.

    A person works on several cases. Raises UnclearColumn if two columns are nearly as likely.
    """
    if "actor" in roles:
        return {}
    scores, guesses = {}, {}
    for name in sample.header:
        column = sample.columns[name]
        if name in roles.values() or name in times or name == before or not column.counts:
            continue
        cases = sample.cases(roles["case"])
        several = len(column.filled) > len(column.counts) or len(cases) <= 1
        of_amounts = names_amount(name) or names_role(name, "cost")
        named = _EXACT * _is_usual(name, "actor") or _NAMED * names_role(name, "actor")
        named = named or 2.0 * (names_role(name, "owner") and not _tells(sample, name, roles["case"]))
        if named and not of_amounts and (several or named >= _EXACT):
            scores[name] = named + (sample.changes_within(roles["case"], name) > _RARELY)
        elif (
            not names_role(name, "party")
            and len(column.filled) >= MOSTLY * sample.rows
            and 1 < len(column.counts) <= len(cases) / 2
            and _share_in(column, _PERSON) >= MOSTLY
            and _share_in(column, _MANY_WORDS) == 0
        ):
            guesses[name] = 1.0
    guessed = not scores
    ranked = _best(scores or guesses)
    near = [name for name in ranked if (scores or guesses)[name] > (scores or guesses)[ranked[0]] - _NEARLY]
    different = [name for name in near[1:] if not _is_same(sample, near[0], name)]
    if different and guessed:
        return {}
    if different:
        raise _unclear_of(sample, "actor", (near[0], *different))
    if ranked:
        roles["actor"] = ranked[0]
    return {"actor": "a guess by its values, which are written as names of people"} if ranked and guessed else {}


_MANY_WORDS = re.compile(r"\S+(?:\s+\S+){3,}")


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


def _known_later(
    sample: TableSample, roles: Mapping[str, str], own: Sequence[str], times: Mapping[str, TimeValues]
) -> dict[str, str]:
    """Returns the columns whose value every row of a case repeats and that is known at its end alone, with the reason.

    They are called as an outcome, have the words of outcomes, follow from the last activity, or are a moment after the
    first event.
    """
    later = {}
    cases = sample.cases(roles["case"])
    values = sample.columns[roles["activity"]].values
    clock = next(
        (
            moments_of(sample.columns[roles[r]], times[roles[r]])
            for r in ("start", "time", "end")
            if r in roles and roles[r] in times
        ),
        None,
    )
    for name in own:
        column = sample.columns[name]
        words = {" ".join(words_of(value)) for value in column.counts}
        if name in times:
            if clock is not None and _is_after(moments_of(column, times[name]), clock, cases):
                later[name] = "a moment after the first event"
        elif _measures_case(column.values, clock, cases):
            later[name] = "it is how long the case took, or how many rows it has"
        elif names_role(name, "outcome") or (
            len(column.counts) <= MOST_OUTCOMES and not ((GOOD | BAD) - YES_OR_NO).isdisjoint(words_of(name))
        ):
            later[name] = "its name is that of an outcome"
        elif words & (GOOD - YES_OR_NO) and words & (BAD - YES_OR_NO) and len(words) <= MOST_OUTCOMES:
            later[name] = "its values are outcomes"
        elif 1 < len(column.counts) <= MOST_OUTCOMES and _follows_from_end(column.values, values, cases, clock):
            later[name] = FOLLOWS
    return later


def _measures_case(values: Sequence[str], clock: Sequence[int | None] | None, cases: Sequence[Sequence[int]]) -> bool:
    """Tells whether a number is, for nearly every case, its number of rows, or its span in a unit of time."""
    told: list[tuple[float, int, float]] = []
    for rows in cases:
        known = [t for row in rows if (t := clock[row]) is not None] if clock else []
        try:
            number = float(values[rows[0]].strip().replace(",", "."))
        except ValueError:
            continue
        told.append((number, len(rows), (max(known) - min(known)) / 1e6 if known else 0.0))
    different = len({number for number, _, _ in told})
    if len(told) < MOSTLY * len(cases) or different < 2:
        return False
    least = MOSTLY * len(told)
    return all(number == rows for number, rows, _ in told) or any(
        sum(abs(number - span / unit) <= max(0.1 * span / unit, 1.0) for number, _, span in told) >= least
        and different > 2
        for unit in (1, 60, 3_600, 86_400)
    )


def _is_after(moments: Sequence[int | None], clock: Sequence[int | None], cases: Sequence[Sequence[int]]) -> bool:
    pairs = [
        (moment, min(known))
        for rows in cases
        if (moment := moments[rows[0]]) is not None and (known := [t for r in rows if (t := clock[r]) is not None])
    ]
    return sum(moment > first for moment, first in pairs) > len(pairs) / 2


def _follows_from_end(
    values: Sequence[str], activities: Sequence[str], cases: Sequence[Sequence[int]], clock: Sequence[int | None] | None
) -> bool:
    """Tells whether the last activity of a case tells its value nearly always, and the first one does not."""
    ends: dict[str, Counter[str]] = {}
    begins: dict[str, Counter[str]] = {}
    for rows in cases:
        known = [row for row in rows if values[row].strip()]
        if known:
            moments = [(clock[row] or 0, place) if clock else (0, place) for place, row in enumerate(rows)]
            first, last = rows[min(moments)[1]], rows[max(moments)[1]]
            ends.setdefault(activities[last], Counter())[values[known[0]]] += 1
            begins.setdefault(activities[first], Counter())[values[known[0]]] += 1
    total = sum(count.total() for count in ends.values())
    if total < _SURE_CASES * len(ends) or len(ends) < 2:
        return False
    wrong, by_first = (sum(c.total() - max(c.values()) for c in told.values()) for told in (ends, begins))
    return wrong <= _RARELY * total and wrong * _SURE_CASES <= by_first and by_first > _RARELY * total


FOLLOWS = "it follows from the last activity"  # which does not tell which of its values are good
MOST_OUTCOMES = 8  # distinct values of a column that plainly is an outcome
_SURE_CASES = 5  # for each last activity


@dataclass(frozen=True)
class ChangedFields:
    """An audit table: each row is the change of one field of a case, with the value before and the new value.

    `state` is the value of `field` whose new values are the activities; both are None where all rows are of one field.
    """

    new: str
    old: str | None
    field: str | None = None
    state: str | None = None


def changed_fields(
    sample: TableSample, times: Mapping[str, TimeValues], case: str | None = None
) -> ChangedFields | None:
    """Returns what tells that the table is a log of changed fields, or None if it is none.

    Either the names tell it (field, old value, new value), or the values do: one before a change is the new one of the
    change before. Raises InputError if it cannot be told which field is the state of the case.
    """
    free = [n for n in sample.header if n not in times and len(sample.columns[n].counts) > 0]
    fields = [
        n
        for n in free
        if len(sample.columns[n].counts) <= MOST_FIELDS
        and (
            names_role(n, "field")
            or (len(sample.columns[n].filled) >= FILLED * sample.rows and _states(sample.columns[n]))
        )
    ]
    fields.sort(key=lambda n: -(2 * names_role(n, "field") + bool(_states(sample.columns[n]))))
    new = [n for n in free if set(change_words(n)) & {"new"}]
    old = [n for n in free if set(change_words(n)) & {"old"}]
    of_field = fields[0] if fields else None
    if of_field is not None and names_role(of_field, "field") and len(new) == len(old) == 1 and new != old:
        return _of_state(sample, ChangedFields(new[0], old[0], of_field))
    for one in [case] if case else _best(case_scores(sample, free))[:2]:
        if one is not None and (pair := _changes(sample, one, times, fields[:1], [n for n in free if n != one])):
            return _of_state(sample, pair)
    if of_field is not None and names_role(of_field, "field") and _states(sample.columns[of_field]):
        likely = [n for n in free if n != of_field and names_amount(n) and _are_of_one_field(sample, of_field, n)]
        if len(likely) == 1:
            return _of_state(sample, ChangedFields(likely[0], None, of_field))
    return None


def _states(column: Column) -> list[str]:
    """Returns the values of a column of fields that are called a state of the case, the plainest ones alone."""
    if len(column.counts) > MOST_FIELDS:
        return []
    named = [value for value in column.counts if names_role(value, "state")]
    return [value for value in named if len(words_of(value)) == 1] or named


def _of_state(sample: TableSample, change: ChangedFields) -> ChangedFields:
    field = sample.columns[change.field] if change.field else None
    if change.field is None or field is None or (len(field.counts) == 1 and len(field.filled) >= FILLED * sample.rows):
        return replace(change, field=None)
    states = _states(sample.columns[change.field])
    if len(states) == 1:
        return replace(change, state=states[0])
    fields = ", ".join(f"{value!r}" for value, _ in sample.columns[change.field].counts.most_common(MANY_FIELDS))
    raise InputError(
        f"the table is a log of changed fields, and it cannot be told which field is the state of the case; "
        f"{change.field!r} has {fields}; say it with --rows '{change.field}=FIELD'"
    )


def _are_of_one_field(sample: TableSample, of_field: str, name: str) -> bool:
    """Tells whether nearly all values of a column stand with one field each."""
    pairs = Counter(zip(sample.columns[name].values, sample.columns[of_field].values, strict=True))
    most: dict[str, int] = {}
    for (value, _), count in pairs.items():
        most[value] = max(most.get(value, 0), count)
    return sum(most.values()) >= (1 - _RARELY) * sample.rows


def _changes(
    sample: TableSample, case: str, times: Mapping[str, TimeValues], fields: Sequence[str], free: Sequence[str]
) -> ChangedFields | None:
    """Returns the two columns of which one is what the other was at the change before, in the order of the times."""
    moments = next((moments_of(sample.columns[name], seen) for name, seen in times.items()), None)
    cases = [rows if moments is None else sorted(rows, key=lambda row: moments[row] or 0)
             for rows in sample.cases(case)[:_LOOKED_AT]]  # fmt: skip
    names = [n for n in free if n not in fields and 1 < len(sample.columns[n].counts) <= sample.rows / 2]
    for of_field in (*fields, None):
        states = _states(sample.columns[of_field]) if of_field else []
        kept = {row for row in range(sample.rows) if not states or sample.columns[str(of_field)].values[row] in states}
        steps = [[row for row in rows if row in kept] for rows in cases]
        for new in names:
            told = sample.columns[new].values
            pairs = [p for rows in steps for p in pairwise(rows) if told[p[0]].strip() and told[p[0]] != told[p[1]]]
            for old in names if len(pairs) >= LEAST_CHANGES else ():
                was = sample.columns[old].values
                if old != new and sum(was[b] == told[a] for a, b in pairs) >= MOSTLY * len(pairs):
                    return ChangedFields(new, old, of_field)
    return None


def _only(sample: TableSample, only: Mapping[str, list[str]]) -> tuple[TableSample, str]:
    """Returns the rows with these values alone, and what the others are."""
    kept = [
        row
        for row in range(sample.rows)
        if all(sample.columns[name].values[row].strip() in values for name, values in only.items())
    ]
    name = next(iter(only))
    others = Counter(value for value in sample.columns[name].filled if value not in only[name])
    shown = ", ".join(f"{value} ({count:,})" for value, count in others.most_common(MANY_FIELDS))
    if not kept:
        raise InputError(f"no row has {' or '.join(only[name])} in {name!r}; it has {shown}")
    more = ", ..." if len(others) > MANY_FIELDS else ""
    text = f"rows whose {name!r} is not {' or '.join(only[name])}: {shown}{more}" if others else ""
    return sample.some(kept), text


MANY_FIELDS = 8  # in a message


def _without_footers(sample: TableSample, times: Mapping[str, TimeValues]) -> tuple[TableSample, list[int]]:
    """Returns the sample without rows of sums and remarks, and the numbers of these rows.

    Such a row has no time, while nearly all others have one. It stands at the end and is filled less than the others,
    or has a word for a sum.
    """
    timed = [
        any(sample.columns[name].values[row].strip() not in ("", name) for name in times) for row in range(sample.rows)
    ]
    columns = list(sample.columns.values())
    last = max((row for row, has_time in enumerate(timed) if has_time), default=0)
    usual = _usually_filled(columns, sample.rows)
    found = []
    for row in (row for row, has_time in enumerate(timed) if not has_time) if times else ():
        filled = [column.values[row].strip() for column in columns if column.values[row].strip()]
        has_sum = 0 < len(filled) < usual and any(word in SUMS for word in words_of(filled[0]))
        is_head = filled == [name for name in sample.header if name in filled] and len(filled) > 1
        if not filled or has_sum or is_head or (row > last and len(filled) <= usual / 2):
            found.append(row)
    if not found or 2 * len(found) >= sample.rows:
        return sample, []
    return sample.some(sorted({*range(sample.rows)} - {*found})), found


def _usually_filled(columns: Sequence[Column], rows: int) -> float:
    looked_at = min(rows, 50)
    return sum(bool(column.values[row].strip()) for column in columns for row in range(looked_at)) / max(1, looked_at)


def _footers(sample: TableSample, case: str, footers: Sequence[int]) -> tuple[dict[str, list[str]], str]:
    """Returns which values tell the footers from other rows, and what they are. Rows without a case are rejected."""
    without: dict[str, list[str]] = {}
    shown = []
    for row in footers:
        for name in (case, *sample.header):
            value = sample.columns[name].values[row].strip()
            if value and all(
                other in footers for other, v in enumerate(sample.columns[name].values) if v.strip() == value
            ):
                without.setdefault(name, [])
                without[name] += [value] * (value not in without[name])
                shown.append(repr(value))
                break
    return without, f"rows of sums or remarks: {', '.join(dict.fromkeys(shown))}" if shown else ""


def _unclear(sample: TableSample, role: str) -> str:
    return (
        f"it cannot be told which column is the {role}; the columns are {_listed(sample.header)}; say it with "
        f"--{role} COLUMN"
    )


def _listed(names: Iterable[str]) -> str:
    names = list(names)
    return ", ".join(map(repr, names[:40])) + (", ..." if len(names) > 40 else "")
