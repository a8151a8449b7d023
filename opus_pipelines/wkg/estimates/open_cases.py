"""Which cases of an export were still running when it was taken, and how each of them is expected to go on.

An export holds cases that have not ended. Taken as they stand they would teach that the work ends in the middle. A case
that is silent since its last event either has ended there or will go on: `wkg.estimates.next_activity` tells how
likely, by the activity, the silence and the attributes of the case. The continuation of a running case is drawn step by
step, weighed by what followed the same two activities elsewhere in the log; the draws are seeded.

Some exports hold the cases that ended in one period. Long before that period such a log holds nothing but cases that
went on, so their hazards are too high: nothing is extrapolated there, and the horizon is nearer (`is_held_by_end`).
Horizon, extrapolation and that rule are this project's own choices, made on the first 70 % of nine public logs, cut
again at 70 % of these.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from opus_pipelines.history.records.arrow_arrays import distinct, distinct_counts
from opus_pipelines.wkg.estimates.next_activity import Horizon, NextActivity, Silences, Spells, groups_of

HORIZON_SHARE = 0.03  # the horizon is the time that at least this share of the silent cases has been followed
NEAR_HORIZON_SHARE = 0.1  # the same for a log that holds cases by their end
FOLDS_BEYOND = 8.0  # how much a hazard at the horizon tells of the time beyond it
LATE_START = 0.95  # share of the log's time behind which half of the cases begin in a log that holds cases by their end
SURELY_ENDED = 0.99  # chance of having ended from which no continuation is drawn
LONGEST_REST = 60  # activities that are drawn for one case at most
CONTEXT_STRENGTH = 5.0  # spells that the incidences count as beside what followed the same two activities
_START = -1

Floats = np.ndarray


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
    times: Floats


@dataclass(frozen=True)
class Continuations:
    """The expected continuation of every case.

    `p_ended` [cases] is the probability that it has ended, `rest` the activities that are expected to follow, for each
    case that has some.
    """

    p_ended: Floats
    rest: Mapping[int, tuple[int, ...]]


def continuations(events: Events, attributes: Sequence[dict[str, str]] | None = None, seed: int = 0) -> Continuations:
    """Returns the `Continuations` of all cases.

    `attributes` of every case; None: nothing is known of them. The end of observation is the log's last event. A case
    without an event has ended.
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
    horizon = Horizon(NEAR_HORIZON_SHARE, 0.0) if is_held else Horizon(HORIZON_SHARE, FOLDS_BEYOND)
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
    successors = _Successors(after, _contexts(code, case))
    draw = np.random.default_rng(seed)
    for place in np.flatnonzero(p_ended[case[last]] < SURELY_ENDED).tolist():
        end = int(last[place])
        activity, mine = int(code[end]), groups[case[end]]
        before = int(code[end - 1]) if end and case[end - 1] == case[end] else _START
        given = after[activity].given(mine, float(silent[place]))
        rest[int(case[end])] = successors.drawn((before, activity), given, mine, draw)
    return Continuations(p_ended, rest)


def _rows_by(code: np.ndarray, names: np.ndarray) -> list[np.ndarray]:
    """Returns for each name (sorted) the rows of `code` [n of int] that have it, in their order."""
    order = np.argsort(code, kind="stable")
    bounds = np.searchsorted(code[order], np.append(names, names[-1] + 1))
    return [order[first:end] for first, end in pairwise(bounds.tolist())]


def is_held_by_end(began: Floats, ended: Floats) -> bool:
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
    triples, counts = distinct_counts(((before - _START) * size + code[here]) * size + code[here + 1])
    b, a, n = np.unravel_index(triples, (size + 1, size, size))
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
