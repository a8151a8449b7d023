"""What follows an activity, how likely, and how the cases that were still running in an export are expected to go on.

What follows an activity, and how likely: the cumulative incidence of the next activities, where some cases are still
silent. A spell is the time from one activity to the next one of its case, or to the end of the log where the case is
silent since (right censoring). The incidence of every next activity is estimated by Aalen and Johansen (1978), as far
as the log observes. Beyond that horizon no spell tells anything. A hazard that is still high there goes on, one that
has nearly died out does not, since work either ends with an activity or does not: the chance to go on is 1 −
exp(−(f·h)²), h the hazard of the last e-fold of time, f `folds`. Many cases may go on at one moment, as in a batch;
that does not show that others will go on later. Therefore h is at most `PARTS` times the median of the hazards of its
`PARTS` parts, which are equal in log time.

Some cases always end with an activity at which others go on: one department never sends an invoice. Cases with the
same value of an attribute are told apart where next to none of them went on, and the other cases' hazards say that
many would have (`SELDOM`).

Which cases of an export were still running when it was taken, and how each of them is expected to go on. An export
holds cases that have not ended. Taken as they stand they would teach that the work ends in the middle. A case that is
silent since its last event either has ended there or will go on: `wkg.estimates.next_activity` tells how likely, by
the activity, the silence and the attributes of the case. The continuation of a running case is drawn step by step,
weighed by what followed the same two activities elsewhere in the log; the draws are seeded.

Some exports hold the cases that ended in one period. Long before that period such a log holds nothing but cases that
went on, so their hazards are too high: nothing is extrapolated there, and the horizon is nearer (`is_held_by_end`).
Horizon, extrapolation and that rule are this project's own choices, made on the first 70 % of nine public logs, cut
again at 70 % of these.

What says more than hazards comes first. An export may state which cases are open (`OpenRule`). Where activities after
which nearly all cases go on have many waiting cases at every time but the last, the export holds finished cases only
(`only_finished`). A case that has been silent for longer than any case before it went on has ended, and a hazard is
carried beyond the horizon only where at least `SEEN_GOING_ON` of the cases were seen to go on.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from opus_pipelines.core.statistics import groups_of
from opus_pipelines.history.records.arrow_arrays import distinct, distinct_counts, packed
from opus_pipelines.history.records.source_settings import END_OF_CASE

FEWEST_AT_RISK = 10  # cases still observed below which no incidence is estimated
MOST_SPELLS = 20_000  # spells of one activity that are looked at, evenly spread over their lengths
SELDOM = 0.1  # share of the spells due to go on, up to which a group of cases is taken to end with the activity
LEAST_DUE = 10.0  # spells of a group due to go on, from which that is told
PARTS = 4  # of the last e-fold of time before the horizon; a hazard must be seen in most of them to go on beyond it
CASES_AT_ONCE = 16_384  # for which the chances of all next activities are computed together
PROBABLY_ENDED = 0.5  # chance of having ended from which a case of history is taken to have ended
SEEN_GOING_ON = 0.25  # share of the cases that must be seen to go on before more are expected beyond the horizon
GOES_ON = 0.9  # share of the occurrences of an activity that something follows, where a case does not end with it
LEAST_WAITING = 10.0  # cases that usually wait at such activities, from which their absence at the end tells something
USUAL_WAIT = 0.95  # quantile of the waits after an activity; a longer silence is no usual waiting
MOMENTS = (0.4, 0.5, 0.6, 0.7, 0.8)  # quantiles of the events' times at which waiting cases are counted
YES = frozenset({"1", "true", "yes", "y", "open", "running"})
NONE = "none"
STATED, FINISHED_ONLY, BY_SILENCE = (
    "stated by the settings",
    "no case waits at the end of the log where cases always go on, so that the export holds finished cases only",
    "by the silence since the last event, as long as other cases were silent before they went on",
)


@dataclass(frozen=True)
class OpenRule:
    """What the settings of an export state about the cases that still run.

    Attributes:
        attribute: of a case, that says that it still runs; None: nothing is stated by an attribute.
        value: the value of the attribute by which a case is open; None: any word for yes.
        is_closed: no case of the export still runs.
        ends: a case in which one of these activities was done has ended; nothing is stated of the others.
    """

    attribute: str | None = None
    value: str | None = None
    is_closed: bool = False
    ends: tuple[str, ...] = ()

    @classmethod
    def of(cls, *texts: str) -> "OpenRule":
        """Reads `none`, `ATTRIBUTE`, `ATTRIBUTE=VALUE` or `end: ACTIVITY`, or several of these."""
        ends = tuple(text.removeprefix(END_OF_CASE).strip() for text in texts if text.startswith(END_OF_CASE))
        others = [text.strip() for text in texts if not text.startswith(END_OF_CASE)]
        if any(text.lower() == NONE for text in others) or not others:
            return cls(is_closed=bool(others), ends=ends)
        attribute, equals, value = others[0].partition("=")
        return cls(attribute.strip(), value.strip() if equals else None, ends=ends)

    def p_ended(self, attributes: Mapping[str, str], activities: Collection[str]) -> float:
        """1 where the case is stated to have ended, 0 where it is stated to run, NaN where nothing is stated of it."""
        if self.is_closed or any(end in activities for end in self.ends):
            return 1.0
        if self.attribute is None or self.attribute not in attributes:
            return float("nan")
        found = attributes[self.attribute].strip()
        return float(not (found == self.value if self.value is not None else found.lower() in YES))


NOTHING_STATED = OpenRule()


_Floats = np.ndarray
Codes = np.ndarray  # [cases, attributes] group of each case for each attribute; 0: of none


@dataclass(frozen=True)
class Spells:
    """The spells after one activity that went on: the next activity, the seconds to it, and the groups of the case.

    Attributes:
        following: int [spells].
        waits: seconds [spells].
        groups: as `groups_of` returns them [spells, attributes].
    """

    following: np.ndarray
    waits: _Floats
    groups: Codes


@dataclass(frozen=True)
class Silences:
    """The cases whose last activity it is: the seconds since [cases], and their groups [cases, attributes]."""

    seconds: _Floats
    groups: Codes


@dataclass(frozen=True)
class Horizon:
    """How far hazards are estimated: up to where `share` of the silent cases was followed, and beyond by `folds`."""

    share: float
    folds: float


class NextActivity:
    """The chances behind one activity. `following` [n]: the activities that follow it."""

    def __init__(self, spells: Spells, silences: Silences, horizon: Horizon) -> None:
        self.following, which = np.unique(spells.following, return_inverse=True)
        waits, went, silent, stayed = spells.waits, spells.groups, silences.seconds, silences.groups
        all_cases = _Incidence(waits, which, silent, len(self.following), horizon)
        self._ending = _ending(went, stayed, all_cases.due(waits), all_cases.due(silent))
        self._usual = self._seldom = all_cases
        if self._ending:
            goes, stays = self._is_seldom(went), self._is_seldom(stayed)
            near = Horizon(horizon.share, 0.0)
            self._usual = _Incidence(waits[~goes], which[~goes], silent[~stays], len(self.following), horizon)
            self._seldom = _Incidence(waits[goes], which[goes], silent[stays], len(self.following), near)

    def incidence(self, groups: np.ndarray) -> _Floats:
        """[n] of a case of these groups; what is missing to 1 is the chance that it ends with the activity."""
        return self._of(groups).whole

    def given(self, groups: np.ndarray, silent: float) -> _Floats:
        """[n] the same of a case that has been silent for so many seconds."""
        return self._of(groups).given(silent)

    def ended(self, silences: Silences) -> _Floats:
        """Returns [cases] the chance that each case of which it is the last activity has ended."""
        seldom = self._is_seldom(silences.groups) if self._ending else np.zeros(len(silences.seconds), bool)
        chances = np.empty(len(seldom))
        for cases, of in ((~seldom, self._usual), (seldom, self._seldom)):
            chances[cases] = of.ended(silences.seconds[cases])
        return chances

    def _of(self, groups: np.ndarray) -> "_Incidence":
        return self._seldom if self._ending and self._is_seldom(groups[None])[0] else self._usual

    def _is_seldom(self, codes: Codes) -> np.ndarray:
        return np.asarray(np.any([codes[:, attribute] == group for attribute, group in self._ending], axis=0))


class _Incidence:
    """Incidence [steps, n] of the next activities at the moments [steps], and `whole` [n] of them in the end."""

    def __init__(self, waits: _Floats, which: np.ndarray, silent: _Floats, kinds: int, rule: Horizon) -> None:
        share, folds = rule.share, rule.folds
        time, kind, weight = _spells(waits, which, silent)
        horizon = float(np.quantile(silent, 1 - share)) if len(silent) >= FEWEST_AT_RISK else np.inf
        self._steps, at = np.unique(time, return_inverse=True)
        events, happened = np.zeros((len(self._steps), kinds)), kind >= 0
        np.add.at(events, (at[happened], kind[happened]), weight[happened])
        risk = np.bincount(at, weight, len(self._steps))[::-1].cumsum()[::-1]
        hazard = events / np.maximum(risk, 1e-9)[:, None]
        hazard[(self._steps > horizon) & (risk < max(FEWEST_AT_RISK, share * len(silent)))] = 0.0
        self._hazard = hazard.sum(1).cumsum()
        self._longest = float(waits.max(initial=-1.0))  # wait before a case went on
        self._survival = np.cumprod(np.maximum(0.0, 1.0 - hazard.sum(1)))
        self._incidence = np.cumsum(hazard * np.append(1.0, self._survival)[:-1, None], axis=0)
        self.whole = np.zeros(kinds)
        if len(self._steps):
            late = hazard[(self._steps > horizon / np.e) & (self._steps <= horizon)].sum(0)
            edges = horizon * np.exp(-np.arange(PARTS + 1) / PARTS)
            parts = [
                float(hazard[(self._steps > begin) & (self._steps <= end)].sum()) for end, begin in pairwise(edges)
            ]
            seen = float(late.sum())
            whole = min(seen, PARTS * float(np.median(parts))) if self._incidence[-1].sum() >= SEEN_GOING_ON else 0.0
            beyond = (1.0 - np.exp(-((whole * folds) ** 2))) * late / max(seen, 1e-12)
            found = self._incidence[-1] + self._survival[-1] * beyond
            self.whole = found / max(1.0, float(found.sum()))

    def given(self, silent: float) -> _Floats:
        """[n] of a case that has been silent for so many seconds."""
        if silent > self._longest:
            return np.zeros(len(self.whole))
        seen = int(np.searchsorted(self._steps, silent, side="right")) - 1
        found = (
            self.whole
            if seen < 0
            else np.clip(self.whole - self._incidence[seen], 0.0, None) / max(float(self._survival[seen]), 1e-9)
        )
        return np.asarray(found / max(1.0, float(found.sum())))

    def ended(self, silent: _Floats) -> _Floats:
        """Returns what is missing to 1 in `given`, for cases that have been silent for so many seconds [cases]."""
        chances = np.empty(len(silent))
        for begin in range(0, len(silent), CASES_AT_ONCE):
            part = slice(begin, begin + CASES_AT_ONCE)
            seen = np.searchsorted(self._steps, silent[part], side="right") - 1
            left = np.broadcast_to(self.whole, (len(seen), len(self.whole))).copy()
            known = seen >= 0
            left[known] = np.clip(left[known] - self._incidence[seen[known]], 0.0, None)
            left[known] /= np.maximum(self._survival[seen[known]], 1e-9)[:, None]
            whole = np.maximum(1.0, left.sum(1))
            chances[part] = np.clip(1.0 - (left / whole[:, None]).sum(1), 0.0, 1.0)
        chances[silent > self._longest] = 1.0
        return chances

    def due(self, times: _Floats) -> _Floats:
        """Returns the cumulative hazard of all next activities together at these times."""
        return np.append(0.0, self._hazard)[np.searchsorted(self._steps, times, side="right")]


def _ending(went: Codes, stayed: Codes, due_went: _Floats, due_stayed: _Floats) -> list[tuple[int, int]]:
    """Returns the groups (attribute, group) of cases of which almost none goes on."""
    found = []
    for attribute in range(went.shape[1]):
        seen = np.bincount(went[:, attribute], minlength=1)
        due = np.bincount(
            np.append(went[:, attribute], stayed[:, attribute]), np.append(due_went, due_stayed), len(seen)
        )
        seen = np.append(seen, np.zeros(len(due) - len(seen)))
        found += [(attribute, int(g)) for g in np.flatnonzero((due >= LEAST_DUE) & (seen <= SELDOM * due)) if g]
    return found


def _spells(waits: _Floats, which: np.ndarray, silent: _Floats) -> tuple[_Floats, np.ndarray, _Floats]:
    """Every spell's length, next activity (-1: silent) and weight; of very many an even choice over their lengths."""
    time = np.concatenate([waits, silent])
    kind = np.concatenate([which, np.full(len(silent), -1)]).astype(np.int64)
    if len(time) <= MOST_SPELLS:
        return time, kind, np.ones(len(time))
    order = np.lexsort((kind, time))[np.linspace(0, len(time) - 1, MOST_SPELLS).round().astype(np.int64)]
    return time[order], kind[order], np.full(MOST_SPELLS, len(time) / MOST_SPELLS)


HORIZON_SHARE = 0.03  # the horizon is the time that at least this share of the silent cases has been followed
NEAR_HORIZON_SHARE = 0.1  # the same for a log that holds cases by their end
FOLDS_BEYOND = 8.0  # how much a hazard at the horizon tells of the time beyond it
LATE_START = 0.95  # share of the log's time behind which half of the cases begin in a log that holds cases by their end
SURELY_ENDED = 0.99  # chance of having ended from which no continuation is drawn
LONGEST_REST = 60  # activities that are drawn for one case at most
CONTEXT_STRENGTH = 5.0  # spells that the incidences count as beside what followed the same two activities
_START = -1


@dataclass(frozen=True)
class Events:
    """The events of cases, one case after the other, each in order of time.

    Attributes:
        lengths: the number of events of each case [cases].
        activities: int [events].
        times: seconds [events].
    """

    lengths: np.ndarray
    activities: np.ndarray
    times: _Floats


@dataclass(frozen=True)
class Continuations:
    """The expected continuation of every case.

    `p_ended` [cases] is the probability that it has ended, `rest` the activities that are expected to follow, for each
    case that has some, and `basis` says how the open cases were told.
    """

    p_ended: _Floats
    rest: Mapping[int, tuple[int, ...]]
    basis: str = BY_SILENCE


def continuations(
    events: Events,
    attributes: Sequence[dict[str, str]] | None = None,
    stated: _Floats | None = None,
    seed: int = 0,
    with_rest: bool = True,
) -> Continuations:
    """Returns the `Continuations` of all cases.

    `attributes` of every case; None: nothing is known of them. `stated` [cases] as `OpenRule.p_ended` returns it. The
    end of observation is the log's last event. A case without an event has ended.
    """
    lengths, code, when = events.lengths, events.activities, events.times
    p_ended, rest = np.ones(len(lengths)), dict[int, tuple[int, ...]]()
    if not lengths.any():
        return Continuations(p_ended, rest)
    groups = groups_of(attributes or [{}] * len(lengths))
    case = np.repeat(np.arange(len(lengths)), lengths)
    last = np.flatnonzero(np.append(case[1:] != case[:-1], True))
    first = np.flatnonzero(np.append(True, case[1:] != case[:-1]))
    goes_on = np.flatnonzero(np.append(case[1:] == case[:-1], False))
    waits = np.maximum(0.0, when[goes_on + 1] - when[goes_on])
    silent = np.maximum(0.0, when.max() - when[last])
    is_held = is_held_by_end(when[first], when[last])
    usual = only_finished(events)
    folds = 0.0 if is_held or usual is not None else FOLDS_BEYOND
    horizon = Horizon(NEAR_HORIZON_SHARE if is_held else HORIZON_SHARE, folds)
    after: dict[int, NextActivity] = {}
    names = distinct(code)
    for activity, steps, ended in zip(
        names.tolist(), _rows_by(code[goes_on], names), _rows_by(code[last], names), strict=True
    ):
        mine = goes_on[steps]
        spells = Spells(code[mine + 1], waits[steps], groups[case[mine]])
        silences = Silences(silent[ended], groups[case[last[ended]]])
        after[activity] = NextActivity(spells, silences, horizon)
        p_ended[case[last[ended]]] = after[activity].ended(silences)
    basis = BY_SILENCE if usual is None else FINISHED_ONLY
    if usual is not None:
        p_ended[case[last[np.isin(code[last], usual, invert=True)]]] = 1.0
    if stated is not None and (told := np.isfinite(stated)).any():
        p_ended[told] = stated[told]
        basis = STATED
    if not with_rest:
        return Continuations(p_ended, rest, basis)
    successors = _Successors(after, _contexts(code, case))
    draw = np.random.default_rng(seed)
    for place in np.flatnonzero(p_ended[case[last]] < SURELY_ENDED).tolist():
        end = int(last[place])
        activity, mine = int(code[end]), groups[case[end]]
        before = int(code[end - 1]) if end and case[end - 1] == case[end] else _START
        given = after[activity].given(mine, float(silent[place]))
        rest[int(case[end])] = successors.drawn((before, activity), given, mine, draw)
    return Continuations(p_ended, rest, basis)


def only_finished(events: Events) -> np.ndarray | None:
    """The activities after which nearly all cases go on [n], where a log holds finished cases only; else None.

    In a log that was taken while work went on, as many cases wait after these activities at its end as at any time
    before it. Here next to none does.
    """
    case, code, when = np.repeat(np.arange(len(events.lengths)), events.lengths), events.activities, events.times
    is_last = np.append(case[1:] != case[:-1], True)
    here, last = np.flatnonzero(~is_last), np.flatnonzero(is_last)
    names, place = np.unique(code, return_inverse=True)
    followed = np.bincount(place[here], minlength=len(names))
    goes_on = followed >= GOES_ON * np.bincount(place, minlength=len(names))
    waits, longest = when[here + 1] - when[here], np.full(len(names), -1.0)
    for activity in np.flatnonzero(goes_on).tolist():
        longest[activity] = np.quantile(waits[place[here] == activity], USUAL_WAIT)
    usual = goes_on[place[here]] & (waits <= longest[place[here]])
    begun, over = when[here][usual], when[here + 1][usual]
    waiting = [np.count_nonzero((begun <= at) & (over > at)) for at in np.quantile(when, MOMENTS)]
    silent = when.max() - when[last]
    left = np.count_nonzero(goes_on[place[last]] & (silent <= longest[place[last]]))
    many = float(np.median(waiting))
    return names[goes_on] if many >= LEAST_WAITING and left <= SELDOM * many else None


def _rows_by(code: np.ndarray, names: np.ndarray) -> list[np.ndarray]:
    """Returns for each name (sorted) the rows of `code` [n of int] that have it, in their order."""
    order = np.argsort(code, kind="stable")
    bounds = np.searchsorted(code[order], np.append(names, names[-1] + 1))
    return [order[first:end] for first, end in pairwise(bounds.tolist())]


def is_held_by_end(began: _Floats, ended: _Floats) -> bool:
    """Whether a log seems to hold the cases that ended in one period: its time reaches far back, and most cases began
    at its very end.

    `began`, `ended`: first and last event of every case [cases], in seconds.
    """
    span = float(ended.max() - began.min())
    return bool(span > 0 and np.median(began) - began.min() > LATE_START * span)


def _contexts(code: np.ndarray, case: np.ndarray) -> Mapping[tuple[int, int], Mapping[int, int]]:
    """How often each activity followed each two: (before, activity) → next → count."""
    found: dict[tuple[int, int], dict[int, int]] = {}
    here = np.flatnonzero(np.append(case[1:] == case[:-1], False))
    first = np.append(True, case[1:] != case[:-1])[here]
    before = np.where(first, _START, code[here - 1])
    size = int(code.max(initial=0)) + 1
    sizes = (size + 1, size, size)
    triples, counts = distinct_counts(packed(*zip((before - _START, code[here], code[here + 1]), sizes, strict=True)))
    b, a, n = np.unravel_index(triples, sizes)
    for earlier, activity, following, count in zip(
        (b + _START).tolist(), a.tolist(), n.tolist(), counts.tolist(), strict=True
    ):
        found.setdefault((earlier, activity), {})[following] = count
    return found


@dataclass(frozen=True)
class _Successors:
    """What follows each activity (`after`), and how often each activity followed two (`context`, as `_contexts`)."""

    after: Mapping[int, NextActivity]
    context: Mapping[tuple[int, int], Mapping[int, int]]

    def drawn(
        self, last: tuple[int, int], chances: np.ndarray, groups: np.ndarray, draw: np.random.Generator
    ) -> tuple[int, ...]:
        """Returns activities drawn one by one after the `last` two, until the case ends.

        `chances` [n] are those of the first drawn activity, `groups` [attributes] those of the case.
        """
        before, activity = last
        rest: list[int] = []
        while len(rest) < LONGEST_REST:
            known = self.after[activity]
            weighed = _in_context(known, known.incidence(groups), chances, self.context.get((before, activity), {}))
            place = int(np.searchsorted(np.cumsum(weighed), draw.random(), side="right"))
            if place >= len(weighed):
                break
            before, activity = activity, int(known.following[place])
            rest.append(activity)
            chances = self.after[activity].incidence(groups)
        return tuple(rest)


def _in_context(
    known: NextActivity, incidence: np.ndarray, chances: np.ndarray, counts: Mapping[int, int]
) -> np.ndarray:
    """The chances, their sum kept, weighed by how much more often each next activity followed the same two."""
    whole = float(chances.sum())
    if not counts or whole <= 0 or not len(chances):
        return chances
    usual = incidence / max(float(incidence.sum()), 1e-12)
    seen = np.array([counts.get(a, 0) for a in known.following.tolist()], float)
    here = (seen + CONTEXT_STRENGTH * usual) / (seen.sum() + CONTEXT_STRENGTH)
    weighed = chances * np.divide(here, usual, out=np.ones_like(usual), where=usual > 0)
    return np.asarray(weighed * (whole / weighed.sum())) if weighed.sum() > 0 else chances
