"""Classifies the activities of a log as work steps, events or outcomes, from the evidence of one source.

A *step* is work that somebody plans and carries out. An *event* happens by itself or outside the office ("End trip",
"Wait"). An *outcome* tells how a case, or an attempt in it, ended ("Permit REJECTED by SUPERVISOR").

An activity is called an event or an outcome only if its name says so and no observation contradicts the name. The
observations are who did it, how long it took, what followed, and how the cases ended. A name that is ambiguous also
needs observations that support it. An activity that remains uncertain is a step.
"""

import difflib
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from opus_pipelines.core.formatting import share
from opus_pipelines.history.records.activity_words import NameMeaning, read_name

ActivityKind = Literal["step", "event", "outcome"]
KINDS: tuple[ActivityKind, ...] = ("step", "event", "outcome")
SURE = 0.75  # confidence from which an activity is called an event or an outcome
CLEAR_NAME = 0.8  # confidence of a name that is clear by itself
VAGUE_NAME = 0.6  # of a name that needs support
SUPPORT = 0.1  # that one supporting observation adds
MOST = 0.5  # a share from which something holds "mostly"
CLEARLY = 0.9
_RARELY = 0.2
FEW_CASES = 20  # fewer cases with a known outcome say nothing about success
UNSURE = 0.5  # confidence of a step whose name suggests another kind, but not clearly enough
STATED = "stated in source.toml"
_CLEAR_WITHOUT_TIMES = (NameMeaning.REFUSED, NameMeaning.PASSED, NameMeaning.OUTSIDE)
_VAGUE = (NameMeaning.REFUSAL, NameMeaning.BEGINS)
# The number of observations that must support each meaning of a name.
_REQUIRED_SUPPORT = {
    NameMeaning.REFUSED: 0,
    NameMeaning.PASSED: 0,
    NameMeaning.OUTSIDE: 0,
    NameMeaning.WAITING: 0,
    NameMeaning.MARKER: 1,
    NameMeaning.REFUSAL: 2,
    NameMeaning.BEGINS: 2,
}


@dataclass(frozen=True)
class Evidence:
    """Counts of one activity in one source. `activity_evidence.COUNTS` explains each count."""

    occurrences: int = 0
    executed: int = 0
    first: int = 0
    last: int = 0
    followed: int = 0
    repeat_follows: int = 0
    named: int = 0
    automatic: int = 0
    timed: int = 0
    instant: int = 0
    waited: int = 0
    no_wait: int = 0
    dated: int = 0
    whole_hour: int = 0
    cases: int = 0
    cases_known: int = 0
    cases_succeeded: int = 0

    def __add__(self, other: "Evidence") -> "Evidence":
        return Evidence(*(getattr(self, name) + getattr(other, name) for name in self.__dataclass_fields__))


@dataclass(frozen=True)
class Classified:
    """The kind of one activity.

    `confidence` in [0, 1] is the confidence in this kind. `reasons` has the most important reason first.
    """

    kind: ActivityKind
    confidence: float
    reasons: tuple[str, ...]

    @property
    def reason(self) -> str:
        """Joins all reasons into one text."""
        return "; ".join(self.reasons)

    @property
    def is_stated(self) -> bool:
        """Tells whether a person stated the kind in source.toml."""
        return self.reasons == (STATED,)


def classify_source(
    evidence: Mapping[str, Evidence], whole: Evidence, stated: Mapping[str, ActivityKind] | None = None
) -> dict[str, Classified]:
    """Classifies every activity of a source.

    `evidence` has the counts by activity name. `whole` has the counts of all cases of the source (`cases`,
    `cases_known`, `cases_succeeded`). `stated` has the kinds that a person stated; they take precedence.
    """
    total = sum(evidence.values(), Evidence())
    stated_kinds = stated or {}
    return {
        name: Classified(stated_kinds[name], 1.0, (STATED,))
        if name in stated_kinds
        else classify(name, counts, total, whole)
        for name, counts in evidence.items()
    }


def classify(name: str, counts: Evidence, total: Evidence, whole: Evidence) -> Classified:
    """Classifies one activity.

    `total` is the sum of the counts over all activities of its source, and `whole` has the counts of all cases.
    """
    reading = read_name(name)
    if reading is None:
        return Classified(
            "step", CLEARLY, ("its name says neither that something was refused nor that something happened by itself",)
        )
    meaning, word = reading
    reason = f"its name says {meaning.value} ({word!r})"
    kind: ActivityKind = "outcome" if meaning in (NameMeaning.REFUSED, NameMeaning.REFUSAL) else "event"
    if against := _contradiction(meaning, counts, total, whole):
        return Classified("step", CLEARLY, (against, f"although {reason}"))
    support = _support(meaning, counts, total, whole)
    is_clear = meaning not in _VAGUE
    confidence = min(0.99, (CLEAR_NAME if is_clear else VAGUE_NAME) + SUPPORT * len(support))
    if len(support) < _REQUIRED_SUPPORT[meaning] or confidence < SURE:
        why = f"all that supports it is that {support[0]}" if support else "no observation supports it"
        return Classified("step", UNSURE, (f"{reason}, but that is not clear enough: {why}",))
    return Classified(kind, round(confidence, 2), (reason, *support))


def unknown_names(stated: Mapping[str, ActivityKind], known: Iterable[str]) -> list[str]:
    """Returns a message for every stated name that is no activity of the source, with the nearest known names."""
    names = sorted(set(known))
    lower = {name.lower(): name for name in names}
    lines = []
    for name in sorted(set(stated) - set(names)):
        near = [lower[match] for match in difflib.get_close_matches(name.lower(), lower, n=3, cutoff=0.5)]
        there = f"the nearest are {', '.join(map(repr, near))}" if near else f"its activities are {_listed(names)}"
        lines.append(f"[activities] {stated[name]}: {name!r} is no activity of this source; {there}")
    return lines


def merge_kinds(kinds: Sequence[tuple[str, str, int, Classified]]) -> Classified:
    """Combines the kinds that one task has under its names in several sources.

    Each row is (source, name, occurrences, kind), in any order. Kinds that a person stated take precedence over
    classified ones. A kind needs more than half of the occurrences, else the task is a step.
    """
    if not kinds:
        return Classified("step", 0.0, ("it does not occur",))
    stated = [row for row in kinds if row[3].is_stated]
    rows = sorted(stated or kinds, key=lambda row: (-row[2], row[0], row[1]))
    votes: Counter[ActivityKind] = Counter()
    for _, _, occurrences, classified in rows:
        votes[classified.kind] += occurrences
    winner = max(KINDS, key=lambda kind: votes[kind])
    if 2 * votes[winner] <= votes.total() and len(votes) > 1:
        counts = ", ".join(f"{kind} {votes[kind]:,} times" for kind in KINDS if votes[kind])
        return Classified("step", UNSURE, (f"its sources disagree: {counts}",))
    best = next(row[3] for row in rows if row[3].kind == winner)
    rest = [kind for kind in KINDS if kind != winner and votes[kind]]
    others = tuple(f"{kind} by other evidence ({votes[kind]:,} of {votes.total():,} occurrences)" for kind in rest)
    return Classified(winner, best.confidence, (*best.reasons, *others))


def _contradiction(meaning: NameMeaning, counts: Evidence, total: Evidence, whole: Evidence) -> str | None:
    """Returns an observation that contradicts the name, or None if there is none."""
    working = counts.timed - counts.instant
    if not counts.executed:
        return "it stands in process models only, whose elements are work"
    if meaning not in _CLEAR_WITHOUT_TIMES and not counts.dated:
        return "its cases have no times, as lists of tools have none, where such names are work"
    if meaning is not NameMeaning.REFUSED and 2 * working > counts.executed > 0:
        return f"somebody works on it: {share(working / counts.executed)} of its occurrences have a working time"
    if (
        counts.cases_known >= FEW_CASES
        and whole.cases_succeeded
        and meaning in (NameMeaning.REFUSED, NameMeaning.REFUSAL)
    ):
        held = counts.cases_succeeded / whole.cases_succeeded
        if held >= MOST and counts.cases_succeeded * whole.cases_known >= whole.cases_succeeded * counts.cases_known:
            return (
                f"{share(held)} of the successful cases contain it, and cases with it succeed at least as often as "
                "all cases"
            )
    return None


def _support(meaning: NameMeaning, counts: Evidence, total: Evidence, whole: Evidence) -> tuple[str, ...]:
    """Returns the observations that support the name."""
    if meaning in (NameMeaning.REFUSED, NameMeaning.REFUSAL):
        return _support_of_refusal(counts, whole)
    if meaning is NameMeaning.MARKER:
        edge = max(counts.first, counts.last)
        is_edge = edge >= CLEARLY * counts.executed > 0
        return (
            (f"{share(edge / counts.executed)} of its occurrences are at the start or end of the case",)
            if is_edge
            else ()
        )
    observations = []
    rest = total.executed - counts.executed
    if counts.executed and rest and not counts.named and total.named >= MOST * rest:
        observations.append(
            f"nobody is named as the one who did it, where {share(total.named / rest)} of the other occurrences name "
            "somebody"
        )
    others_have_times = total.whole_hour - counts.whole_hour <= _RARELY * (total.dated - counts.dated)
    if counts.whole_hour >= CLEARLY * counts.dated > 0 and others_have_times:
        observations.append("its times are dates without a time of day, the others are not")
    if counts.instant >= CLEARLY * counts.timed > 0:
        observations.append("it takes no time")
    return tuple(observations)


def _support_of_refusal(counts: Evidence, whole: Evidence) -> tuple[str, ...]:
    """Returns the supporting observations for a refusal: how the case continues, how rare it is, how its cases end."""
    observations = []
    ends = counts.last + counts.repeat_follows
    if counts.executed and ends >= MOST * counts.executed:
        observations.append(
            f"after {share(ends / counts.executed)} of its occurrences the case ends or goes back to an activity that "
            "it had done"
        )
    if whole.cases and 0 < counts.cases <= _RARELY * whole.cases:
        observations.append(f"only {share(counts.cases / whole.cases)} of the cases contain it")
    if counts.cases_known >= FEW_CASES and whole.cases_succeeded:
        rate, of_all = counts.cases_succeeded / counts.cases_known, whole.cases_succeeded / whole.cases_known
        if rate <= MOST * of_all:
            observations.append(f"cases with it succeed in {share(rate)}, all cases in {share(of_all)}")
    return tuple(observations)


def _listed(names: Sequence[str], most: int = 12) -> str:
    return ", ".join(map(repr, names[:most])) + (f" and {len(names) - most} more" if len(names) > most else "")
