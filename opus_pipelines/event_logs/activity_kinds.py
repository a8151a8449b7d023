"""Which activities of a log are work steps, which are events, and which are outcomes: a pure rule over the evidence of
one source.

A *step* is work that somebody plans and carries out. An *event* happens by itself or outside the office ("End trip",
"Wait"). An *outcome* tells how a case, or an attempt in it, ended ("Permit REJECTED by SUPERVISOR"). The name is needed
to call an activity anything but a step, and what was observed must not contradict it: who did it, how long it took,
what followed, how the cases ended. A name whose meaning is not clear by itself needs support by such observations. What
is not sure is a step.
"""

import difflib
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from opus_pipelines.core.formatting import share
from opus_pipelines.event_logs.activity_words import Says, read_name

ActivityKind = Literal["step", "event", "outcome"]
KINDS: tuple[ActivityKind, ...] = ("step", "event", "outcome")
SURE = 0.75  # confidence from which an activity is called an event or an outcome
CLEAR_NAME = 0.8  # confidence of a name that is clear by itself
VAGUE_NAME = 0.6  # of a name that needs support
SUPPORT = 0.1  # that one supporting observation adds
MOST = 0.5  # a share from which something holds "mostly"
CLEARLY = 0.9
RARELY = 0.2
FEW_CASES = 20  # fewer cases with a known outcome say nothing about success
UNSURE = 0.5  # confidence of a step whose name says something else, but not clearly enough
STATED = "stated in source.toml"
_CLEAR_WITHOUT_TIMES = (Says.REFUSED, Says.PASSED, Says.OUTSIDE)
_VAGUE = (Says.REFUSAL, Says.BEGINS)
# How many observations must support what the name says; a name that is clear by itself needs none.
_NEEDED = {
    Says.REFUSED: 0,
    Says.PASSED: 0,
    Says.OUTSIDE: 0,
    Says.WAITING: 0,
    Says.MARKER: 1,
    Says.REFUSAL: 2,
    Says.BEGINS: 2,
}


@dataclass(frozen=True)
class Evidence:
    """Counts of one activity in one source, as `activity_evidence.COUNTS` explains them."""

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
    """The kind of one activity: `confidence` in [0, 1] that it is this kind, and the reasons, most important first."""

    kind: ActivityKind
    confidence: float
    reasons: tuple[str, ...]

    @property
    def reason(self) -> str:
        """All reasons as one sentence part."""
        return "; ".join(self.reasons)

    @property
    def is_stated(self) -> bool:
        """Did a person state it?"""
        return self.reasons == (STATED,)


def classify_source(
    evidence: Mapping[str, Evidence], whole: Evidence, stated: Mapping[str, ActivityKind] | None = None
) -> dict[str, Classified]:
    """The kind of every activity of a source.

    `evidence`: counts by activity name. `whole`: the counts of all cases of the source (`cases`, `cases_known`,
    `cases_succeeded`).
    `stated`: kinds that a person stated; they win.
    """
    total = sum(evidence.values(), Evidence())
    said = stated or {}
    return {
        name: Classified(said[name], 1.0, (STATED,)) if name in said else classify(name, counts, total, whole)
        for name, counts in evidence.items()
    }


def classify(name: str, counts: Evidence, total: Evidence, whole: Evidence) -> Classified:
    """The kind of one activity. `total`: the sum over all activities of its source; `whole`: the counts of all cases."""
    found = read_name(name)
    if found is None:
        return Classified(
            "step", CLEARLY, ("its name says neither that something was refused nor that something happened by itself",)
        )
    says, word = found
    reason = f"its name says {says.value} ({word!r})"
    kind: ActivityKind = "outcome" if says in (Says.REFUSED, Says.REFUSAL) else "event"
    if against := _against(says, counts, total, whole):
        return Classified("step", CLEARLY, (against, f"although {reason}"))
    support = _support(says, counts, total, whole)
    is_clear = says not in _VAGUE
    confidence = min(0.99, (CLEAR_NAME if is_clear else VAGUE_NAME) + SUPPORT * len(support))
    if len(support) < _NEEDED[says] or confidence < SURE:
        why = f"all that supports it is that {support[0]}" if support else "no observation supports it"
        return Classified("step", UNSURE, (f"{reason}, but that is not clear enough: {why}",))
    return Classified(kind, round(confidence, 2), (reason, *support))


def unknown_names(stated: Mapping[str, ActivityKind], known: Iterable[str]) -> list[str]:
    """A sentence for every stated name that no activity of the source has, with the nearest names that there are."""
    names = sorted(set(known))
    lower = {name.lower(): name for name in names}
    lines = []
    for name in sorted(set(stated) - set(names)):
        near = [lower[match] for match in difflib.get_close_matches(name.lower(), lower, n=3, cutoff=0.5)]
        there = f"the nearest are {', '.join(map(repr, near))}" if near else f"its activities are {_listed(names)}"
        lines.append(f"[activities] {stated[name]}: {name!r} is no activity of this source; {there}")
    return lines


def merged(found: Sequence[tuple[str, str, int, Classified]]) -> Classified:
    """One task's kind out of those of its names in several sources: (source, name, occurrences, kind) each, in any
    order.

    What a person stated counts before what was classified. A kind needs more than half of the occurrences, else the
    task is a step.
    """
    if not found:
        return Classified("step", 0.0, ("it does not occur",))
    stated = [row for row in found if row[3].is_stated]
    rows = sorted(stated or found, key=lambda row: (-row[2], row[0], row[1]))
    votes: Counter[ActivityKind] = Counter()
    for _, _, occurrences, classified in rows:
        votes[classified.kind] += occurrences
    winner = max(KINDS, key=lambda kind: votes[kind])
    if 2 * votes[winner] <= votes.total() and len(votes) > 1:
        said = ", ".join(f"{kind} {votes[kind]:,} times" for kind in KINDS if votes[kind])
        return Classified("step", UNSURE, (f"its sources disagree: {said}",))
    best = next(row[3] for row in rows if row[3].kind == winner)
    rest = [kind for kind in KINDS if kind != winner and votes[kind]]
    others = tuple(f"{kind} by other evidence ({votes[kind]:,} of {votes.total():,} occurrences)" for kind in rest)
    return Classified(winner, best.confidence, (*best.reasons, *others))


def _against(says: Says, counts: Evidence, total: Evidence, whole: Evidence) -> str | None:
    """An observation that contradicts what the name says."""
    working = counts.timed - counts.instant
    if not counts.executed:
        return "it stands in process models only, whose elements are work"
    if says not in _CLEAR_WITHOUT_TIMES and not counts.dated:
        return "its cases have no times, as lists of tools have none, where such names are work"
    if says is not Says.REFUSED and 2 * working > counts.executed > 0:
        return f"somebody works on it: {share(working / counts.executed)} of its occurrences have a working time"
    if counts.cases_known >= FEW_CASES and whole.cases_succeeded and says in (Says.REFUSED, Says.REFUSAL):
        held = counts.cases_succeeded / whole.cases_succeeded
        if held >= MOST and counts.cases_succeeded * whole.cases_known >= whole.cases_succeeded * counts.cases_known:
            return f"{share(held)} of the successful cases contain it, and cases with it succeed at least as often as all cases"
    return None


def _support(says: Says, counts: Evidence, total: Evidence, whole: Evidence) -> tuple[str, ...]:
    """Observations that speak for what the name says."""
    if says in (Says.REFUSED, Says.REFUSAL):
        return _support_of_refusal(counts, whole)
    if says is Says.MARKER:
        edge = max(counts.first, counts.last)
        is_edge = edge >= CLEARLY * counts.executed > 0
        return (
            (f"{share(edge / counts.executed)} of its occurrences are at the start or end of the case",)
            if is_edge
            else ()
        )
    found = []
    rest = total.executed - counts.executed
    if counts.executed and rest and not counts.named and total.named >= MOST * rest:
        found.append(
            f"nobody is named as the one who did it, where {share(total.named / rest)} of the other occurrences name somebody"
        )
    others_have_times = total.whole_hour - counts.whole_hour <= RARELY * (total.dated - counts.dated)
    if counts.whole_hour >= CLEARLY * counts.dated > 0 and others_have_times:
        found.append("its times are dates without a time of day, the others are not")
    if counts.instant >= CLEARLY * counts.timed > 0:
        found.append("it takes no time")
    return tuple(found)


def _support_of_refusal(counts: Evidence, whole: Evidence) -> tuple[str, ...]:
    """How the case goes on after it, how rare it is, and how its cases end."""
    found = []
    ends = counts.last + counts.repeat_follows
    if counts.executed and ends >= MOST * counts.executed:
        found.append(
            f"after {share(ends / counts.executed)} of its occurrences the case ends or goes back to an activity that it had done"
        )
    if whole.cases and 0 < counts.cases <= RARELY * whole.cases:
        found.append(f"only {share(counts.cases / whole.cases)} of the cases contain it")
    if counts.cases_known >= FEW_CASES and whole.cases_succeeded:
        rate, of_all = counts.cases_succeeded / counts.cases_known, whole.cases_succeeded / whole.cases_known
        if rate <= MOST * of_all:
            found.append(f"cases with it succeed in {share(rate)}, all cases in {share(of_all)}")
    return tuple(found)


def _listed(names: Sequence[str], most: int = 12) -> str:
    return ", ".join(map(repr, names[:most])) + (f" and {len(names) - most} more" if len(names) > most else "")
