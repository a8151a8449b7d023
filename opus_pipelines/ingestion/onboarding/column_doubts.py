"""Says what the first rows of a table show that the proposed columns leave out: clocks, lines of orders."""

import re
from collections.abc import Mapping

from opus_pipelines.event_logs.activity_words import words_of
from opus_pipelines.ingestion.onboarding.column_values import MOSTLY
from opus_pipelines.ingestion.onboarding.table_sample import TableSample

LEAST_REPEATED = 0.1  # share of the cases with an activity that repeats, from which parts of cases are looked for
_CLOCK = re.compile(r"\d{1,2}:\d{2}(?::\d{2}(?:[.,]\d+)?)?(?:\s?[AaPp][Mm])?|\d{2}\.\d{2}(?:\.\d{2})?\s?(?:Uhr|h)")
_HAS_CLOCK = re.compile(r"\d:\d{2}|T\d{2}|\d{9,}")
_PARTS = ("item", "items", "line", "lines", "position", "pos", "posten", "positie", "ligne", "riga", "part", "zeile")


def column_doubts(sample: TableSample, roles: Mapping[str, object]) -> list[tuple[str, str]]:
    """Returns rows (what, how) for the table of what was understood; `roles` are columns by role."""
    used = {name for name in roles.values() if isinstance(name, str)}
    rest = [name for name in sample.header if name not in used]
    return [("doubt", text) for text in (*_clocks(sample, roles, rest), *_parts(sample, roles, rest)) if text]


def _clocks(sample: TableSample, roles: Mapping[str, object], rest: list[str]) -> list[str]:
    times = [name for role in ("time", "start", "end") if isinstance(name := roles.get(role), str)]
    if not times or any(_HAS_CLOCK.search(value) for name in times for value in sample.columns[name].counts):
        return []
    found = next((name for name in rest if _share_of(_CLOCK, sample, name) >= MOSTLY), None)
    if found is None:
        return []
    return [f"{times[0]!r} has days alone, and {found!r} the time of day, which is not read; join both into one column"]


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
    for name in (name for name in rest if not set(words_of(name)).isdisjoint(_PARTS)):
        values = sample.columns[name].values
        each = [{(values[row], names[row]) for row in rows} for rows in cases]
        if sum(map(len, each)) >= MOSTLY * sum(map(len, cases)):
            return [
                f"activities repeat in {repeated:,} of {len(cases):,} cases, and seldom for one {name!r} of a case; is "
                f"a case a {name!r} of a {case!r}? join both into one column"
            ]
    return []
