"""Finds where the reading of an export does not agree with itself, whatever the reason is.

A wrong reading leaves traces: steps that stand twice, people who work on one case each, times of the future, ids of two
kinds, columns that nobody used and that could mean the same. `opus init --yes` stops at each, and says it.
"""

import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from opus_pipelines.core.formatting import share
from opus_pipelines.history.ingestion.onboarding.columns import FILLED, column_doubts, is_time
from opus_pipelines.history.ingestion.onboarding.report import hard_doubts
from opus_pipelines.history.ingestion.onboarding.table_sample import (
    MOSTLY,
    PLANNED,
    YES_OR_NO,
    TableSample,
    moments_of,
    names_role,
    time_values,
    with_joined_times,
)
from opus_pipelines.history.ingestion.onboarding.trial import Findings, Trial
from opus_pipelines.history.records.activity_kinds import words_of
from opus_pipelines.history.records.values import TransitionMeanings

LEAST = 20  # cases, or steps, from which a share tells anything
REJECTED = 0.02  # share of the records that may be rejected
SHORTER = 2  # times that cases last longer where day and month are exchanged
REPEATED = 0.3  # share of the steps that may equal another one of their case
ALONE = 0.6  # share of the cases that may have one step
TWICE = 0.8  # share of the activities of cases that stand an even number of times, from which rows are halves of steps
RARE = 0.1  # share of the steps whose activity no other case has
OUTLIERS = 5  # times the span of nearly all times, beyond which a time is far from the others
FEW_CASES, MANY_STEPS = 12, 50  # cases, and steps of each, that are rather people or places
FEW_KINDS = 12  # values of a column that tells kinds of rows
USED_AGAIN = 0.05  # share of the cases that end and begin again after a long time
_BROKEN = re.compile("\N{REPLACEMENT CHARACTER}|[ÃÂ][\x80-\xbf€‚„…†‡ˆ‰‹‘’“”•–—˜™›]")
_ACCOUNT = re.compile(r"[A-Z]{2,5}\d{0,5}|[a-z]{1,12}[._]?[a-z]*\d{0,4}|[A-Z]{1,3}[-_]?\d{2,6}|\S+@\S+\.\w+|"
                      r"[^\W\d_][\w'-]+,? [^\W\d_][\w'.-]*")  # fmt: skip


@dataclass(frozen=True)
class StepsRead:
    """The steps that were read, in the order of their cases: the number of the case, and what is known of each."""

    ids: list[str]
    case: np.ndarray
    names: pa.Array
    started: pa.Array
    ended: pa.Array
    actors: pa.Array

    @property
    def moments(self) -> pa.Array:
        """Returns the end of each step, else its start."""
        return pc.coalesce(self.ended, self.started)


def steps_of(trial: Trial) -> StepsRead | None:
    """Returns the steps that a trial read, without those of process models; None where there are none."""
    names = ["case_id", "kind", *(f"tasks.list.element.{n}" for n in ("task_key", "started_at", "ended_at", "actor"))]
    files = sorted(trial.folder.glob("*.parquet")) if trial.folder else []
    if not files:
        return None
    table = pa.concat_tables([pq.ParquetFile(file).read(columns=names) for file in files])
    table = table.filter(pc.not_equal(table["kind"], "model")).combine_chunks()
    if not table.num_rows:
        return None
    tasks = pa.concat_arrays(table["tasks"].chunks)
    flat = pc.list_flatten(tasks)
    if not len(flat):
        return None
    case = pc.list_parent_indices(tasks).to_numpy().astype(np.int64)
    told = (pc.struct_field(flat, name) for name in ("task_key", "started_at", "ended_at", "actor"))
    return StepsRead(table["case_id"].to_pylist(), case, *told)


def disagreements(
    sample: TableSample | None, columns: Mapping[str, Any], trial: Trial, findings: Findings
) -> list[str]:
    """Returns a sentence for each thing in which the reading does not agree with itself.

    `columns` are those of each role, as source.toml names them, and `sample` is the table, where the source has one.
    """
    told = [*hard_doubts(trial, findings), *_of_records(trial, findings)]
    if (steps := steps_of(trial)) is not None:
        told += [*_of_times(steps, trial), *_of_cases(steps), *_of_names(steps), *_of_people(steps)]
    if sample is not None:
        told += _of_columns(sample, columns, trial)
    return told


def _of_records(trial: Trial, findings: Findings) -> Iterator[str]:
    records, rejected = trial.total("records"), trial.total("records_rejected")
    if rejected > REJECTED * records:
        cause = trial.rejects.most_common(1)[0][0][1] if trial.rejects else "of unknown cause"
        yield f"{rejected:,} of {records:,} records ({share(rejected / records)}) are rejected, most because {cause}"
    if findings.repeated > REPEATED * findings.tasks:
        yield (
            f"{findings.repeated:,} of {findings.tasks:,} steps equal another one of their case; does the export, or a "
            "join in it, double rows?"
        )


def _of_times(steps: StepsRead, trial: Trial) -> Iterator[str]:
    moments = steps.moments.drop_null()
    if not len(moments):
        return
    micros = np.sort(moments.cast(pa.timestamp("us", "UTC")).cast(pa.int64()).to_numpy())
    late = int(np.count_nonzero(micros > (datetime.now(UTC) + timedelta(days=1)).timestamp() * 1e6))
    if late:
        last = datetime.fromtimestamp(micros[-1] / 1e6, UTC)
        yield f"{late:,} steps end in the future, the last one on {last:%Y-%m-%d}; are these plans, or misread dates?"
    low, high = np.quantile(micros, (0.01, 0.99)) if len(micros) >= 5 * LEAST else (micros[0], micros[-1])
    reach = OUTLIERS * max(high - low, 30 * 86_400e6)
    far = int(np.count_nonzero((micros < low - reach) | (micros > high + reach)))
    if far:
        reached = " to ".join(f"{datetime.fromtimestamp(m / 1e6, UTC):%Y-%m-%d}" for m in (micros[0], micros[-1]))
        yield f"{far:,} steps lie far from all others: times reach from {reached}; are some dates misread?"
    zone = trial.settings.timezone or "UTC"
    local = moments.cast(pa.timestamp("us", zone))
    is_clock = pc.or_(pc.not_equal(pc.hour(local), 0), pc.not_equal(pc.minute(local), 0))
    hours = Counter(pc.hour(local.filter(is_clock)).to_pylist())
    if hours.total() >= 2 * LEAST and set(hours) <= set(range(1, 13)) and {*hours} & {1, 2, 3, 4, 5}:
        yield (
            "no step ends between 13 and 24 o'clock, and some do from 1 to 5: the hours seem to be those of a clock of "
            "twelve hours without AM and PM; export times of 24 hours"
        )


def _of_cases(steps: StepsRead) -> Iterator[str]:
    sizes = np.bincount(steps.case, minlength=len(steps.ids))
    cases = int(np.count_nonzero(sizes))
    single = int(np.count_nonzero(sizes == 1))
    if cases >= LEAST and single > ALONE * cases:
        yield f"{single:,} of {cases:,} cases have one step alone; is the case another column?"
    if 1 < cases <= FEW_CASES and len(steps.case) > MANY_STEPS * cases:
        yield (
            f"{cases:,} cases have {len(steps.case) / cases:,.0f} steps each, as {steps.ids[0]!r}; is this a person, a "
            "place or a group of cases?"
        )
    known = set(steps.ids)
    inner = [(a, b) for a in known if (b := re.sub(r"[-/._ :#]\w{1,4}$", "", a)) != a and b in known]
    if inner:
        some = " and ".join(map(repr, min(inner)))
        yield f"{len(inner):,} ids of cases begin with another one, as {some}; are these parts of one case?"
    events = len(set(zip(steps.names.to_pylist(), steps.moments.cast(pa.int64()).to_pylist(), strict=True)))
    if cases >= FEW_KINDS and len(steps.case) > events * cases / 2 and not steps.moments.null_count:
        yield (
            f"{events:,} events stand in {len(steps.case) / events:,.0f} of {cases:,} cases, as a join without "
            "a key makes them"
        )
        return
    codes = steps.names.dictionary_encode().indices.to_numpy(zero_copy_only=False).astype(np.int64)
    _, counts = np.unique(steps.case * (codes.max() + 1) + codes, return_counts=True)
    if len(steps.case) >= 2 * LEAST and np.count_nonzero(counts % 2 == 0) >= TWICE * len(counts):
        yield (
            "nearly every activity stands twice, or an even number of times, in its case, as if a row were the half of "
            "a step; does a column tell begin from end, or is each row written twice?"
        )
    if again := _used_again(steps, codes, sizes):
        yield (
            f"{again:,} cases begin again a long time after they seemed to end; are ids used again, as in each year or "
            "by each client?"
        )


def _used_again(steps: StepsRead, codes: np.ndarray, sizes: np.ndarray) -> int:
    """Counts the cases whose usual first activity follows once more, after a gap longer than ten usual cases."""
    if steps.moments.null_count or np.count_nonzero(sizes) < LEAST:
        return 0
    micros = steps.moments.cast(pa.timestamp("us", "UTC")).cast(pa.int64()).to_numpy()
    is_first = np.ones(len(steps.case), bool)
    is_first[1:] = steps.case[1:] != steps.case[:-1]
    first, counts = np.unique(codes[is_first], return_counts=True)
    usual = first[counts.argmax()]
    if counts.max() < MOSTLY * counts.sum():
        return 0
    gap = np.zeros(len(micros), np.int64)
    gap[1:] = micros[1:] - micros[:-1]
    begins = (codes == usual) & ~is_first & (gap > 86_400e6)
    starts = np.flatnonzero(is_first)
    ends = np.append(starts[1:], len(micros)) - 1
    again = begins & (gap > 10 * np.median(micros[ends] - micros[starts]))
    found = len(np.unique(steps.case[again]))
    return found if found > USED_AGAIN * len(starts) else 0


def _of_names(steps: StepsRead) -> Iterator[str]:
    counts = Counter(steps.names.to_pylist())
    plain: dict[str, str] = {}
    for name in counts:
        other = plain.setdefault(" ".join(re.findall(r"\w+", name.casefold())) or name, name)
        if other != name:
            yield f"{other!r} and {name!r} are two activities and look like one; write them alike"
            break
    if broken := next((n for n in counts if _BROKEN.search(n)), None):
        yield f"the activity {broken!r} seems to be written in another encoding than it is read"
    once = sum(count for count in counts.values() if count == 1)
    if len(steps.case) >= 5 * LEAST and once > RARE * len(steps.case):
        which = f"{once:,} of {len(steps.case):,} steps"
        yield f"{which} have a name that no other step has; is the activity another column?"
    shapes = {re.sub(r"\d+", "#", name) for name in counts}
    if len(counts) >= LEAST and 2 * len(shapes) <= len(counts) and not all(len(s) <= 4 for s in shapes):
        yield f"names of activities differ by numbers alone, as that of {min(counts)!r}; is a part of them an id?"


def _of_people(steps: StepsRead) -> Iterator[str]:
    told = zip(steps.case.tolist(), steps.actors.to_pylist(), strict=True)
    pairs = {(case, actor) for case, actor in told if actor is not None}
    worked = Counter(actor for _, actor in pairs)
    cases = len({case for case, _ in pairs})
    alone = sum(count == 1 for count in worked.values())
    if cases >= LEAST and len(pairs) < 1.2 * cases and 2 * len(worked) > cases and alone > ALONE * len(worked):
        yield (
            f"{alone:,} of the {len(worked):,} people who did steps worked on one case each, as {min(worked)!r}; is "
            "this the customer, and not the worker?"
        )


def _of_columns(sample: TableSample, columns: Mapping[str, Any], trial: Trial) -> list[str]:
    """Returns what the columns that have no role say against the reading."""
    told_roles = {role: name for role, name in columns.items() if role != "attributes"}
    joined, _ = with_joined_times(sample, [name for name in told_roles.values() if isinstance(name, str)])
    roles = {
        role: name if isinstance(name, str) else " ".join(name)
        for role, name in told_roles.items()
        if isinstance(name, str | list)
    }
    case, activity = roles.get("case"), roles.get("activity")
    moment = next((roles[role] for role in ("time", "end", "start") if role in roles), None)
    if not {case, activity, moment} <= set(joined.header) or case is None or activity is None or moment is None:
        return []
    only = {name: set(values) for name, values in trial.settings.rows.only.items()}
    kept = [
        row
        for row in range(joined.rows)
        if all(joined.columns[name].values[row].strip() for name in (case, activity, moment))
        and all(joined.columns[name].values[row].strip() in values for name, values in only.items())
    ]
    if len(kept) < LEAST:
        return []
    log = joined.some(kept)
    told = [
        f"{name!r} is named as the case, and has {next(iter(joined.columns[name].counts))!r} alone in all rows"
        for name in joined.header
        if names_role(name, "case") and len(joined.columns[name].counts) == 1 and not names_role(case, "case")
    ]
    told += _day_or_month(log, case, roles)
    attributes = columns.get("attributes", [])
    free = [name for name in log.header if name not in roles.values() and name not in only and log.columns[name].filled]
    rest = [name for name in free if name not in attributes and log.changes_within(case, name) > 0]
    named = {role: name for role, name in roles.items() if name in log.columns}
    told += [text for _, text in column_doubts(log, named, of_one_field=bool(only))]
    told += [*_other_times(log, roles, moment, rest), *_costs(log, roles), *_kinds_of_rows(log, (case, activity), rest)]
    if "actor" not in roles and "actor_group" not in roles:
        told += _people(log, case, activity, free)
    if "transition" not in roles:
        told += _doubled(log, (case, activity, moment), rest)
    return told


def _day_or_month(log: TableSample, case: str, roles: Mapping[str, str]) -> Iterator[str]:
    """Tells of dates such as 04/07/2023 whose other reading is as good, by the dates and by the cases."""
    for name in (roles[role] for role in ("time", "start", "end") if role in roles):
        column = log.columns[name]
        day_first, month_first = (time_values(column, is_usual) for is_usual in (True, False))
        if not day_first.guessed or day_first.formats == month_first.formats:
            continue
        spans = []
        for seen in (day_first, month_first):
            moments = moments_of(column, seen)
            known = [[t for row in rows if (t := moments[row]) is not None] for rows in log.cases(case)]
            spans.append(sum(max(some) - min(some) for some in known if some))
        if spans[1] < SHORTER * spans[0]:
            value = next(iter(column.counts))
            yield (
                f"in {name!r} the day may come first or the month, as in {value}, and nothing tells it: no number is "
                "above 12, and cases do not last much longer in the other reading; export dates as 2023-12-31"
            )
            return


def _other_times(log: TableSample, roles: Mapping[str, str], moment: str, rest: Sequence[str]) -> Iterator[str]:
    """Tells of a column of times of the events that is read as nothing, where it says another day."""
    if {"start", "end"} <= roles.keys():
        return
    mine = moments_of(log.columns[moment], time_values(log.columns[moment]))
    for name in rest:
        column = log.columns[name]
        if not PLANNED.isdisjoint(words_of(name)) or len(column.filled) < MOSTLY * log.rows or not is_time(column):
            continue
        theirs = moments_of(column, time_values(column))
        apart = sum(
            a is not None and b is not None and abs(a - b) >= 86_400e6 for a, b in zip(mine, theirs, strict=True)
        )
        if apart > log.rows / 10:
            yield (
                f"{moment!r} is read as the time of a step, and {name!r} is a time of it, too, which is another day in "
                f"{share(apart / log.rows)} of the rows; say it with --time COLUMN"
            )


def _costs(log: TableSample, roles: Mapping[str, str]) -> Iterator[str]:
    """Tells of costs that grow from step to step, as sums do, and of costs below zero."""
    if "cost" not in roles or roles["cost"] not in log.columns:
        return
    amounts = [_number(value) for value in log.columns[roles["cost"]].values]
    known = [amount for amount in amounts if amount]
    if len({*known}) < LEAST // 4:
        return
    names, again, grown = log.columns[roles["activity"]].values, list[bool](), list[bool]()
    for rows in log.cases(roles["case"]):
        told = [(names[row], amount) for row in rows if (amount := amounts[row]) is not None]
        if len(told) > 2:  # a sum begins with one amount, and ends with as many as there are steps
            is_sum = all(one[1] <= other[1] for one, other in pairwise(told))
            grown.append(is_sum and told[-1][1] > told[0][1] * len(told) / 2)
        last: dict[str, float] = {}
        for name, amount in told:
            again += [amount > last[name]] if name in last else []
            last[name] = amount
    # the price of an activity is alike where a case does it again, and what was spent until then has grown
    if len(again) >= LEAST // 4 and all(again) and sum(grown) > len(grown) / 2:
        yield f"{roles['cost']!r} never falls within a case: is it the sum of the costs so far, and no cost of a step?"
    below = sum(amount < 0 for amount in known)
    if below and 2 * below < len(known):
        yield f"{below:,} amounts in {roles['cost']!r} are below zero: do these rows take earlier ones back?"


def _number(value: str) -> float | None:
    digits = re.sub(r"[^\d,.-]", "", value)
    digits = digits.replace(".", "").replace(",", ".") if re.search(r",\d{1,2}$", digits) else digits.replace(",", "")
    try:
        return float(digits)
    except ValueError:
        return None


def _kinds_of_rows(log: TableSample, keys: tuple[str, str], rest: Sequence[str]) -> Iterator[str]:
    """Tells of a column whose few values seem to say which rows are no work: planned, cancelled, taken back."""
    case, activity = (log.columns[name].values for name in keys)
    meaning = TransitionMeanings()
    for name in rest:
        column = log.columns[name]
        if not 1 <= len(column.counts) <= FEW_KINDS or names_role(name, "actor") or names_role(name, "actor_group"):
            continue
        meanings = {value: meaning(value) for value in column.counts if value.casefold() not in YES_OR_NO}
        ended = {"complete", "close"} & {*meanings.values()}
        other = [value for value, meant in meanings.items() if meant not in ("unknown", "", "complete", "close")]
        if ended and other and "unknown" not in meanings.values():
            rows = sum(column.counts[value] for value in other)
            some = ", ".join(map(repr, other[:3]))
            yield (
                f"{rows:,} rows have {some} in {name!r}; are these steps that were done? Say which rows count with "
                f"--rows '{name}=VALUE'"
            )
            continue
        values = [value.strip() for value in column.values]
        common = Counter(values).most_common(1)[0][0]
        stands: defaultdict[tuple[str, str], set[bool]] = defaultdict(set)
        for row, value in enumerate(values):
            stands[case[row], activity[row]].add(value == common)
        marked = [row for row, value in enumerate(values) if value != common]
        twins = sum(len(stands[case[row], activity[row]]) > 1 for row in marked)
        others = Counter(zip(case, activity, strict=True))
        usual = sum(count > 1 for count in others.values()) / len(others)
        if LEAST // 4 <= len(marked) < 0.3 * log.rows and twins >= MOSTLY * len(marked) and usual < 0.3:
            some = ", ".join(map(repr, dict.fromkeys(values[row] for row in marked[:50])))
            yield (
                f"{len(marked):,} rows with {some[:60]} in {name!r} each repeat an activity of their case; do they "
                "correct or take back the other row?"
            )


def _people(log: TableSample, case: str, activity: str, free: Sequence[str]) -> Iterator[str]:
    """Tells of columns that may say who did it, where none is read so: short signs that many cases share."""
    cases = log.cases(case)
    for name in free:
        column = log.columns[name]
        if not 1 < len(column.counts) <= len(cases) / 2 or len(column.filled) < MOSTLY * log.rows or is_time(column):
            continue
        alike = sum(count for value, count in column.counts.items() if _ACCOUNT.fullmatch(value))
        tells = {(a, b) for a, b in zip(log.columns[activity].values, column.values, strict=True)}
        is_of_activity = len(tells) < 1.5 * len(log.columns[activity].counts)
        if (
            alike >= MOSTLY * len(column.filled)
            and len(column.counts) > 3
            and not is_of_activity
            and log.changes_within(case, name) > 0.3
        ):
            some = ", ".join(value for value, _ in column.counts.most_common(3))
            yield f"nothing is read as who did it, and {name!r} ({some}) may tell it; say it with --actor COLUMN"


def _doubled(log: TableSample, keys: tuple[str, str, str], rest: Sequence[str]) -> Iterator[str]:
    """Tells of steps that stand in several rows which one column tells apart, as a join with another table does."""
    rows = [*zip(*(log.columns[name].values for name in keys), strict=True)]
    events = Counter(rows)
    several = [row for row, key in enumerate(rows) if events[key] > 1]
    if len(several) < REPEATED * log.rows:
        return
    for name in rest:
        values = log.columns[name].values
        if len({(rows[row], values[row]) for row in several}) >= FILLED * len(several):
            which = f"{len(several):,} rows have the case, the activity and the time of another one"
            yield f"{which}, and differ in {name!r}; is each a step of its own?"
            return
