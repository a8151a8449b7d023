"""Classifies the activities of a log as work steps, events or outcomes, from the evidence of one source.

A *step* is work that somebody plans and carries out. An *event* happens by itself or outside the office ("End trip",
"Wait"). An *outcome* tells how a case, or an attempt in it, ended ("Permit REJECTED by SUPERVISOR").

An activity is called an event or an outcome only if its name says so and no observation contradicts the name. Names
are read with word lists in English, German, Dutch, French, Spanish and Italian, of words whose meaning is clear without
the rest of the name. The observations are who did it, how long it took, what followed, and how the cases ended. A name
that is ambiguous also needs observations that support it. An activity that remains uncertain is a step.

All counts of the evidence are exact integers, so counts of several files or parts of a source can be added. The
implementations are streamed through Arrow, one batch of cases at a time; Spark is not used.
"""

import difflib
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from enum import Enum
from pathlib import Path
from typing import Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from opus_pipelines.core.formatting import share
from opus_pipelines.history.records.arrow_arrays import distinct, packed

_REFUSED = """
    rejected declined denied refused cancelled canceled withdrawn revoked aborted abandoned disapproved discarded nok
    abgelehnt storniert zurückgewiesen abgebrochen widerrufen verworfen annulliert
    afgewezen geweigerd geannuleerd ingetrokken afgekeurd
    rejeté rejetée refusé refusée annulé annulée
    rechazado rechazada cancelado cancelada denegado denegada anulado anulada
    rifiutato rifiutata respinto respinta annullato annullata
"""
_REFUSAL = """
    reject rejection refusal denial cancellation storno ablehnung stornierung abbruch
    afwijzing weigering annulering refus rejet annulation rechazo rifiuto annullamento
"""
_BY = "by from via von durch door van par por da due because wegen after nach"
# Verbs that begin the name of a work step and are not also the name of a thing: "Notify claim rejected" is work, "Claim
# rejected" is not.
_VERBS = """
    add analyse analyze archive assess assign attach calculate check clear close collect communicate compare compile
    complete confirm contact correct create decide delete determine distribute draft email enter evaluate examine
    extract fetch forward generate get handle identify inform insert inspect investigate list look mark notify obtain
    prepare print proceed publish read reassign receive reconcile record register remove reopen resend resolve respond
    retrieve save schedule search send set sort store submit tell update upload validate verify view write anlegen
    benachrichtigen bearbeiten informieren prüfen senden erfassen informer envoyer vérifier informeren controleren
    verzenden
"""
_PASSED = "expired elapsed lapsed abgelaufen verfallen verlopen expiré expirée vencido vencida scaduto scaduta"
_WAITING = (
    "wait waiting waits awaiting queued queueing queuing idle paused parked warten wartend wartet wachten "
    "attente espera attesa"
)
_BEGINS = "start begin beginning end finish beginn anfang start ende einde aanvang début fin inicio inizio fine"
_HAS_BEGUN = "started begun begins ended ends begonnen beendet endet gestartet geëindigd"
# What happens outside the office: nobody of the organisation works on it when it starts or ends.
_OUTSIDE = """
    trip journey travel stay vacation holiday holidays leave absence flight ride tour rental tenancy warranty validity
    period season semester term pregnancy illness sickness hospitalisation hospitalization reise dienstreise
    aufenthalt urlaub frist laufzeit gültigkeit krankheit miete zeitraum reis verblijf vakantie ziekte looptijd voyage
    séjour congé vacances viaje estancia viaggio soggiorno
"""
_MARKER = "start end begin finish ende stop anfang einde fin artificial"
_ARTICLES = "the of a an der die das der den de het van du la le el di il und and"


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


REFUSED, REFUSAL, BY, VERBS, PASSED = _words(_REFUSED), _words(_REFUSAL), _words(_BY), _words(_VERBS), _words(_PASSED)
ARTICLES, EVERY_CASE = _words(_ARTICLES), frozenset({"event", "node", "process", "case"})
WAITING, BEGINS, HAS_BEGUN = _words(_WAITING), _words(_BEGINS), _words(_HAS_BEGUN)
OUTSIDE, MARKER = _words(_OUTSIDE), _words(_MARKER)
_NEGATED = "not ok, not okay, not approved, not accepted, not granted, nicht genehmigt, niet akkoord, nicht ok".split(
    ", "
)


class NameMeaning(Enum):
    """The meaning that a name has by itself."""

    REFUSED = "that something was refused, cancelled or withdrawn"
    REFUSAL = "that something is refused or cancelled, but not whether this is work or its result"
    PASSED = "that a time ran out"
    OUTSIDE = "that something starts or ends which is not office work"
    WAITING = "that the case waits"
    BEGINS = "that something starts or ends"
    MARKER = "only that the case starts or ends"


def words_of(name: str) -> list[str]:
    """Splits the name of an activity or of a column into words in lower case.

    It separates `camelCase`, `snake_case` and `A_DECLINED`, and omits numbers.
    """
    spaced = re.sub(r"(?<=[a-zà-ÿ])(?=[A-ZÀ-Þ])", " ", name)
    return re.findall(r"[^\W\d_]+", spaced.lower())


def read_name(name: str) -> tuple[NameMeaning, str] | None:
    """Returns the meaning of a name and the word that shows it, or None if no rule applies."""
    words = words_of(name)
    if not words:
        return None
    return _refused(words) or _passed(words) or _limits(words) or _waiting(words) or _refusal(words)


def _refused(words: list[str]) -> tuple[NameMeaning, str] | None:
    """Matches a participle of refusal at the end of the name or before the one who refused.

    A name that begins with a verb of work does not match.
    """
    if words[0] in VERBS:
        return None
    text = " ".join(words)
    if negated := next((phrase for phrase in _NEGATED if text.endswith(phrase)), None):
        return NameMeaning.REFUSED, negated
    for place, word in enumerate(words):
        if word in REFUSED and (place == len(words) - 1 or words[place + 1] in BY):
            return NameMeaning.REFUSED, word
    return None


def _passed(words: list[str]) -> tuple[NameMeaning, str] | None:
    return (NameMeaning.PASSED, words[-1]) if words[-1] in PASSED and words[0] not in VERBS else None


def _limits(words: list[str]) -> tuple[NameMeaning, str] | None:
    """Matches names such as "Start trip", "Trip ended", or "Start" alone."""
    named = [word for word in words if word not in ARTICLES]
    rest = [word for word in named if word not in EVERY_CASE]
    if rest and all(word in MARKER for word in rest):
        return NameMeaning.MARKER, rest[0]
    if len(named) not in (2, 3):
        return None
    limit, thing = (named[0], named[-1]) if named[0] in BEGINS else (named[-1], named[-2])
    if limit not in (BEGINS if limit == named[0] else HAS_BEGUN):
        return None
    return (NameMeaning.OUTSIDE, thing) if thing in OUTSIDE else (NameMeaning.BEGINS, limit)


def _waiting(words: list[str]) -> tuple[NameMeaning, str] | None:
    return (NameMeaning.WAITING, words[0]) if words[0] in WAITING else None


def _refusal(words: list[str]) -> tuple[NameMeaning, str] | None:
    """Matches a noun of refusal, or its verb without an object."""
    return (NameMeaning.REFUSAL, words[-1]) if words[-1] in REFUSAL and words[0] not in VERBS else None


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
    """Counts of one activity in one source."""

    occurrences: int = 0  # events of this activity
    executed: int = 0  # of these, in cases that were carried out (not in a process model)
    first: int = 0  # of the executed, at the start of their case
    last: int = 0  # of the executed, at the end of their case
    followed: int = 0  # of the executed, with another activity after them in the same case
    repeat_follows: int = 0  # of the followed, where the next activity had already been done in this case
    named: int = 0  # of the executed, with a resource that names a person, team or role
    automatic: int = 0  # of the executed, done by a resource that names a system, or by a program
    timed: int = 0  # of the executed, with a known working time
    instant: int = 0  # of the timed, with a working time of zero
    waited: int = 0  # of the executed, with a known waiting time before them
    no_wait: int = 0  # of the waited, with a waiting time of zero
    dated: int = 0  # of the executed, with a known time
    whole_hour: int = 0  # of the dated, at a whole hour: typical for a date that was written without a time of day
    cases: int = 0  # executed cases that hold the activity
    cases_known: int = 0  # of these, with a known outcome
    cases_succeeded: int = 0  # of the cases_known, that succeeded

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


_TEXT, _COUNT = pa.string(), pa.int64()
KEY = ("industry", "task_key")
COUNTS = tuple(one.name for one in fields(Evidence))
EVIDENCE = pa.schema([(name, _TEXT) for name in KEY] + [(name, _COUNT) for name in COUNTS])

_STEP = ("task_key", "actor", "actor_kind", "started_at", "ended_at", "duration_ms", "wait_ms")
COLUMNS = ["industry", "kind", "success", "weight", *(f"tasks.list.element.{name}" for name in _STEP)]
NOBODY = frozenset(
    {"", "-", "n/a", "na", "nan", "none", "null", "missing", "undefined", "unknown", "unbekannt", "not set", "(null)"}
)
SYSTEMS = frozenset(
    (
        "system, sys, auto, automatic, automated, batch, batch job, bot, robot, cron, scheduler, workflow engine, job, "
        "program, application, automatisch, automat, systeem, stapelverarbeitung"
    ).split(", ")
)
_HOUR = 3_600_000_000  # microseconds


def evidence_of(folder: Path) -> pa.Table:
    """Counts the evidence of all activities in the Parquet files of `folder`.

    The rows are sorted by key. One row per industry has no task_key: it counts all cases.
    """
    files = sorted(folder.glob("*.parquet"))
    return add_up(
        evidence_of_batch(batch) for file in files for batch in pq.ParquetFile(file).iter_batches(columns=COLUMNS)
    )


def activity_names(folder: Path) -> list[str]:
    """Returns the names of all activities in the Parquet files of `folder`, sorted."""
    names: set[str] = set()
    for file in sorted(folder.glob("*.parquet")):
        for batch in pq.ParquetFile(file).iter_batches(columns=["tasks.list.element.task_key"]):
            names.update(pc.unique(pc.struct_field(pc.list_flatten(batch["tasks"]), "task_key")).to_pylist())
    return sorted(names - {None})


def by_activity(table: pa.Table) -> tuple[dict[str, Evidence], Evidence]:
    """Returns the evidence of a source by activity name, and the counts of all its cases.

    The counts are summed over the industries of the source.
    """
    per_activity: dict[str, Evidence] = {}
    whole = Evidence()
    for row in table.to_pylist():
        counts = Evidence(**{name: row[name] for name in COUNTS})
        if row["task_key"] is None:
            whole += counts
        else:
            per_activity[row["task_key"]] = per_activity.get(row["task_key"], Evidence()) + counts
    return per_activity, whole


def add_up(parts: Iterable[pa.Table]) -> pa.Table:
    """Adds the evidence of several parts and sorts the result by key. The order of the parts does not matter."""
    table = pa.concat_tables([EVIDENCE.empty_table(), *parts])
    summed = table.group_by(list(KEY)).aggregate([(name, "sum") for name in COUNTS]).rename_columns([*KEY, *COUNTS])
    return (
        summed.take(pc.sort_indices(summed, sort_keys=[(name, "ascending", "at_start") for name in KEY]))
        .cast(EVIDENCE)
        .combine_chunks()
    )


def evidence_of_batch(batch: pa.RecordBatch) -> pa.Table:
    """Counts the evidence of one batch of implementations."""
    steps, lists = pc.list_flatten(batch["tasks"]), batch["tasks"]
    case = pc.list_parent_indices(lists).to_numpy().astype(np.int64)
    encoded = pc.struct_field(steps, "task_key").dictionary_encode()
    key, names = encoded.indices.to_numpy(zero_copy_only=False).astype(np.int64), encoded.dictionary
    weight = pc.fill_null(batch["weight"], 1).to_numpy()
    executed = pc.fill_null(pc.not_equal(batch["kind"], "model"), True).to_numpy(zero_copy_only=False)
    industry = batch["industry"].dictionary_encode("encode")
    of_industry = industry.indices.to_numpy().astype(np.int64)
    facts = _facts(steps, case, key, executed[case])
    rows = _per_key(
        of_industry[case] * max(len(names), 1) + key, {name: fact * weight[case] for name, fact in facts.items()}
    )
    code = rows.pop("code")
    keys = {
        "industry": industry.dictionary.take(pa.array(code // max(len(names), 1))),
        "task_key": names.take(pa.array(code % max(len(names), 1))),
    }
    every_case = {"industry": batch["industry"], "task_key": pa.nulls(len(batch), _TEXT)}
    cases = _cases(batch, executed, weight)
    return add_up(
        [
            _table(keys, rows),
            _table(every_case, cases),
            _case_counts(batch["industry"], case, key, names, cases),
        ]
    )


def _facts(steps: pa.StructArray, case: np.ndarray, key: np.ndarray, executed: np.ndarray) -> dict[str, np.ndarray]:
    """Computes, for every step of a case that was carried out, which of the counted facts hold.

    Each array has one element per step.
    """
    n = len(case)
    first = np.ones(n, bool)
    first[1:] = case[1:] != case[:-1]
    last = np.ones(n, bool)
    last[:-1] = first[1:]
    again = np.ones(n, bool)
    again[np.unique(case * (key.max(initial=0) + 1) + key, return_index=True)[1]] = False
    next_again = np.zeros(n, bool)
    next_again[:-1] = again[1:] & ~first[1:]
    named, automatic = _who(steps)
    time = pc.coalesce(pc.struct_field(steps, "started_at"), pc.struct_field(steps, "ended_at")).cast(_COUNT)
    dated = _known(time)
    facts = {
        "executed": executed,
        "first": first,
        "last": last,
        "followed": ~last,
        "repeat_follows": next_again,
        "named": named,
        "automatic": automatic,
        "dated": dated,
        "whole_hour": dated & (pc.fill_null(time, 1).to_numpy(zero_copy_only=False) % _HOUR == 0),
    }
    for known, zero, column in (("timed", "instant", "duration_ms"), ("waited", "no_wait", "wait_ms")):
        values = pc.struct_field(steps, column)
        facts[known] = _known(values)
        facts[zero] = pc.fill_null(pc.equal(values, 0.0), False).to_numpy(zero_copy_only=False)
    return {"occurrences": np.ones(n, bool)} | {name: fact & executed for name, fact in facts.items()}


def _who(steps: pa.StructArray) -> tuple[np.ndarray, np.ndarray]:
    """Computes two flags for every step: a person, team or role is named; a system or program did it."""
    actor = pc.utf8_lower(
        pc.utf8_trim_whitespace(pc.fill_null(pc.struct_field(steps, "actor"), ""))
    ).dictionary_encode()
    names = actor.dictionary.to_pylist()
    nobody = np.array([name in NOBODY for name in names], bool)
    system = np.array([name in SYSTEMS for name in names], bool)
    index = actor.indices.to_numpy(zero_copy_only=False)
    kind = pc.fill_null(pc.struct_field(steps, "actor_kind"), "")
    program = pc.is_in(kind, pa.array(["code", "model"])).to_numpy(zero_copy_only=False)
    human = pc.equal(kind, "human").to_numpy(zero_copy_only=False)
    if not len(index):
        return human, program
    automatic = program | system[index]
    return (human & ~nobody[index] | ~nobody[index]) & ~automatic, automatic


def _case_counts(
    industry: pa.Array, case: np.ndarray, key: np.ndarray, names: pa.Array, counts: dict[str, np.ndarray]
) -> pa.Table:
    """Counts the executed cases that contain each activity, and how many succeeded, from the counts per case."""
    size = max(len(names), 1)
    pairs = distinct(packed((case, int(case.max(initial=0)) + 1), (key, size)))
    of_case, of_key = pairs // size, pairs % size
    columns = {"industry": industry.take(pa.array(of_case)), "task_key": names.take(pa.array(of_key))}
    return _table(columns, {name: values[of_case] for name, values in counts.items()})


def _cases(batch: pa.RecordBatch, executed: np.ndarray, weight: np.ndarray) -> dict[str, np.ndarray]:
    known = pc.is_valid(batch["success"]).to_numpy(zero_copy_only=False) & executed
    right = pc.fill_null(batch["success"], False).to_numpy(zero_copy_only=False) & executed
    return {"cases": executed * weight, "cases_known": known * weight, "cases_succeeded": right * weight}


def _per_key(code: np.ndarray, values: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    codes, place = np.unique(code, return_inverse=True)
    sums = {}
    for name, value in values.items():
        sums[name] = np.zeros(len(codes), np.int64)
        np.add.at(sums[name], place, value)
    return {"code": codes} | sums


def _table(columns: dict[str, pa.Array], counts: dict[str, np.ndarray]) -> pa.Table:
    """Builds rows of evidence. Counts that are not given are 0."""
    size = len(next(iter(columns.values())))
    zero = np.zeros(size, np.int64)
    return pa.table(
        [*(columns[name] for name in KEY), *(pa.array(counts.get(name, zero), _COUNT) for name in COUNTS)],
        schema=EVIDENCE,
    )


def _known(values: pa.Array) -> np.ndarray:
    known: np.ndarray = pc.is_valid(values).to_numpy(zero_copy_only=False)
    return known
