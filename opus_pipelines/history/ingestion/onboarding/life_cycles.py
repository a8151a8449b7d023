"""Finds the column that says whether a row begins or ends a step, and says which of its words have no known meaning."""

import re
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from opus_pipelines.core.errors import InputError
from opus_pipelines.core.formatting import share
from opus_pipelines.history.formats.table_log import tell_columns
from opus_pipelines.history.ingestion.onboarding.table_sample import (
    MOSTLY,
    TableSample,
    TimeValues,
    names_role,
    read_sample,
)
from opus_pipelines.history.records.assembler import CLOSES, OPENS, WORK, WorkEvidence
from opus_pipelines.history.records.files import open_data
from opus_pipelines.history.records.formats import TABLES
from opus_pipelines.history.records.source_settings import SourceSettings
from opus_pipelines.history.records.values import BadValueError, TimeParser, TransitionMeanings

MOST_TRANSITIONS = 30  # of a life cycle
PAIRED = 0.8  # least share of the steps, in a column of activities, that a life cycle begins and ends
SURE_PAIRS = 0.95  # the same for words that nobody knows: one follows the other
LEAST_PAIRS = 4
_BEGINS, _ENDS = frozenset({"start", "open"}), frozenset({"complete", "close", "fail", "ate_abort"})
_IN_XES = re.compile(rb'key="lifecycle:transition"\s+value="([^"]*)"')
_SCANNED = 1 << 26  # bytes of a log that are searched for words
OPTION = "--transition WORD=MEANING (start, complete, suspend, resume, abort, other, or step)"


@dataclass(frozen=True)
class LifeCycle:
    """A column of transitions. `meanings` has the words that only the data explain, by key of `[transitions]`."""

    column: str
    meanings: dict[str, list[str]] = field(default_factory=dict)


def find_life_cycle(sample: TableSample, roles: Mapping[str, str], times: Mapping[str, TimeValues]) -> LifeCycle | None:
    """Returns the column whose words begin and end the steps of another column; None where there is none.

    `roles` are the columns that are known by now. Where no word is known, two words are a life cycle if one follows the
    other for each step of a case.
    """
    case, taken = roles["case"], roles.values()
    free = [name for name in sample.header if name not in times and name not in taken]
    told = {name: _known(sample, name) for name in free if 1 < len(sample.columns[name].counts) <= MOST_TRANSITIONS}
    activities = [name for name in free if _may_be_activity(sample, name) and not told.get(name)]
    activities = [roles["activity"]] if "activity" in roles else activities
    for name, meanings in told.items():
        if {*meanings.values()} & _BEGINS and {*meanings.values()} & _ENDS:
            others = [other for other in activities if other != name]
            if any(_paired(sample, case, other, name, meanings) >= PAIRED for other in others):
                return LifeCycle(name)
    for name in told:
        for activity in activities:
            is_named = names_role(activity, "activity") and not names_role(name, "activity")
            pair = _following(sample, case, (activity, name), times) if is_named and name != activity else None
            if pair is not None:
                return LifeCycle(name, {"start": [pair[0]], "complete": [pair[1]]})
    return None


def _known(sample: TableSample, name: str) -> dict[str, str]:
    """Returns the meaning of each value of a column; empty if many rows have a value without one."""
    counts = sample.columns[name].counts
    meaning = TransitionMeanings()
    found = {word: meaning(word) for word in counts}
    known = sum(count for word, count in counts.items() if found[word] not in ("", "unknown"))
    return found if known >= MOSTLY * counts.total() else {}


def _may_be_activity(sample: TableSample, name: str) -> bool:
    column = sample.columns[name]
    has_letters = sum(any(c.isalpha() for c in value) for value in column.counts) >= MOSTLY * len(column.counts)
    is_person = names_role(name, "actor") or names_role(name, "actor_group")
    return 1 < len(column.counts) <= max(2, sample.rows / 4) and has_letters and not is_person


def _groups(sample: TableSample, case: str, activity: str) -> list[list[int]]:
    """Returns the rows of each activity in each case."""
    groups: defaultdict[tuple[int, str], list[int]] = defaultdict(list)
    values = sample.columns[activity].values
    for number, rows in enumerate(sample.cases(case)):
        for row in rows:
            groups[number, values[row]].append(row)
    return list(groups.values())


def _paired(sample: TableSample, case: str, activity: str, name: str, meanings: Mapping[str, str]) -> float:
    """Returns the share of the activities of cases that begin as often as they end."""
    words, groups = sample.columns[name].values, _groups(sample, case, activity)
    paired = 0
    for rows in groups:
        found = [meanings.get(words[row].strip(), "") for row in rows]
        begins, ends = (sum(meaning in kind for meaning in found) for kind in (_BEGINS, _ENDS))
        goes_on = sum(meaning == "suspend" for meaning in found)  # a tool without a word for going on begins again
        paired += 0 < ends <= begins <= ends + goes_on
    return paired / max(1, len(groups))


def _following(
    sample: TableSample, case: str, columns: tuple[str, str], times: Mapping[str, TimeValues]
) -> tuple[str, str] | None:
    """Returns the two words of a column of which one follows the other for each activity, else None."""
    activity, name = columns
    words, moment = sample.columns[name].values, _moments(sample, times)
    if len(sample.columns[name].counts) != 2 or moment is None:
        return None
    pairs: Counter[tuple[str, ...]] = Counter()
    lasted = 0  # rows of one moment are no begin and end, but what a join of two tables makes of one event
    for rows in _groups(sample, case, activity):
        ordered = sorted(rows, key=lambda row: (moment[row], row))
        lasted += sum(moment[a] < moment[b] for a, b in zip(ordered[::2], ordered[1::2], strict=False))
        found = [words[row].strip() for row in ordered]
        pairs.update(tuple(found[place : place + 2]) for place in range(0, len(found), 2))
    if not pairs:
        return None
    (pair, count), total = pairs.most_common(1)[0], pairs.total()
    is_sure = lasted > total / 10 and total >= LEAST_PAIRS and count >= SURE_PAIRS * total and len(set(pair)) == 2
    return (pair[0], pair[1]) if is_sure else None


def _moments(sample: TableSample, times: Mapping[str, TimeValues]) -> list[int] | None:
    """Returns the time of each row by the first column of times; None if there is no column, or it cannot be read."""
    for name, seen in times.items():
        parse = TimeParser("UTC", seen.formats)
        try:
            return [parse(value.strip()) if value.strip() else 0 for value in sample.columns[name].values]
        except BadValueError:
            return None
    return None


@dataclass(frozen=True)
class Words:
    """The words for transitions in a log. `has_work`: some say when work begins and ends.

    `is_doubled`: each activity of a case has several rows, of which each has another word.
    """

    counts: Counter[str]
    has_work: bool
    is_doubled: bool = False

    def unknown(self, meanings: Mapping[str, Sequence[str]]) -> str | None:
        """Returns a sentence on the words of which nobody knows what they mean; None if there are none.

        `meanings` is what a person says of some words.
        """
        meaning = TransitionMeanings(meanings)
        unknown = [word for word, _ in self.counts.most_common() if meaning(word) == "unknown"]
        if not unknown:
            return None
        rows = sum(self.counts[word] for word in unknown)
        some = ", ".join(map(repr, unknown[:5])) + (", ..." if len(unknown) > 5 else "")
        return (
            f"the meaning of the transitions {some} is not known ({share(rows / self.counts.total())} of the records)"
        )


def transitions_in(file: Path, kind: str, sample: TableSample | None, roles: Mapping[str, object]) -> Words:
    """Returns the words for transitions in a log: XES, or a table whose columns have these roles."""
    if kind == "xes":
        with open_data(file) as log:
            head = log.read(_SCANNED)
        written: list[bytes] = _IN_XES.findall(head, max(0, head.find(b"<trace")))  # before it stand words of no event
        found = Counter(word.decode("utf-8", "replace") for word in written if word)
        return Words(found, not WORK.isdisjoint(map(TransitionMeanings(), found)))
    named = [roles.get(role) for role in ("transition", "case", "activity")]
    if sample is None or not all(isinstance(name, str) and name in sample.columns for name in named):
        return Words(Counter(), False)
    name, case, activity = map(str, named)
    values, meaning, evidence = sample.columns[name].values, TransitionMeanings(), WorkEvidence()
    kinds = {word: meaning(word) for word in sample.columns[name].counts}
    pairs = {
        (key, kinds.get(word.strip(), "")) for key, word in zip(sample.columns[activity].values, values, strict=True)
    }
    opened, closed = ({key for key, kind in pairs if kind in kinds_of} for kinds_of in (OPENS, CLOSES))
    has_work = evidence.shows(opened, closed) or not WORK.isdisjoint(kinds.values())
    groups = _groups(sample, case, activity)
    doubled = sum(len(rows) > 1 and len({values[row] for row in rows}) == len(rows) for rows in groups)
    return Words(sample.columns[name].counts, has_work, doubled >= PAIRED * len(groups))


def refuse_unknown_words(words: Words, meanings: Mapping[str, Sequence[str]]) -> None:
    """Raises InputError if words of unknown meaning would make several steps of one, or lose some."""
    unknown = words.unknown(meanings)
    if unknown and (words.has_work or words.is_doubled):
        raise InputError(f"{unknown}; say what they mean with {OPTION}")


def transition_doubts_of(
    files: Sequence[Path], kinds: Sequence[str], settings: SourceSettings
) -> list[tuple[str, str]]:
    """Returns rows (what, how) on words of unknown meaning in the first log among the files that has transitions."""
    for file, kind in zip(files, kinds, strict=True):
        sample = read_sample(file, kind) if kind in TABLES else None
        roles = tell_columns(sample.header, settings.columns) if sample else {}
        words = transitions_in(file, kind, sample, roles)
        if unknown := words.unknown(settings.transitions.meanings):
            result = "they make no step" if words.has_work else "each record is a step of its own"
            return [("doubt", f"{unknown}, so {result}; [transitions] in source.toml says what they mean")]
        if words.counts:
            break
    return []
