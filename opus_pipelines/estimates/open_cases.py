"""Which cases of an export were still running when it was taken, and how each of them is expected to go on.

An export holds cases that have not ended. Taken as they stand they would teach that the work ends in the middle. A case
that is silent since its last event either has ended there or will go on: `estimates.next_activity` tells how likely, by
the activity, the silence and the attributes of the case. The continuation of a running case is drawn step by step,
weighed by what followed the same two activities elsewhere in the log; the draws are seeded.

Some exports hold the cases that ended in one period. Long before that period such a log holds nothing but cases that
went on, so their hazards are too high: nothing is extrapolated there, and the horizon is nearer (`is_held_by_end`).
Horizon, extrapolation and that rule are this project's own choices, made on the first 70 % of nine public logs, cut
again at 70 % of these.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from opus_pipelines.estimates.next_activity import Horizon, NextActivity, Silences, Spells, groups_of

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
class Continuation:
    """The expected continuation of one case.

    `p_ended` is the probability that it has ended, `rest` the activities that are expected to follow (none if it
    ended).
    """

    p_ended: float
    rest: tuple[int, ...]


def continuations(
    activities: Sequence[np.ndarray],
    times: Sequence[np.ndarray],
    attributes: Sequence[dict[str, str]] | None = None,
    seed: int = 0,
) -> list[Continuation]:
    """Of every case its `Continuation`. `activities` [n of int] and `times` [n of seconds] run in step, a case an
    entry, in order of time.

    `attributes` of every case; None: nothing is known of them. The end of observation is the log's last event. A case
    without an event has ended.
    """
    lengths = np.array([len(case) for case in activities], np.int64)
    found = [Continuation(1.0, ())] * len(lengths)
    if not lengths.any():
        return found
    groups = groups_of(attributes or [{}] * len(lengths))
    code, when = np.concatenate(list(activities)).astype(np.int64), np.concatenate(list(times)).astype(float)
    case = np.repeat(np.arange(len(lengths)), lengths)
    last = np.flatnonzero(np.append(case[1:] != case[:-1], True))
    first = np.flatnonzero(np.append(True, case[1:] != case[:-1]))
    goes_on = np.flatnonzero(np.append(case[1:] == case[:-1], False))
    waits = np.maximum(0.0, when[goes_on + 1] - when[goes_on])
    silent = np.maximum(0.0, when.max() - when[last])
    is_held = is_held_by_end(when[first], when[last])
    horizon = Horizon(NEAR_HORIZON_SHARE, 0.0) if is_held else Horizon(HORIZON_SHARE, FOLDS_BEYOND)
    after: dict[int, NextActivity] = {}
    names = np.unique(code)
    for activity, steps, ended in zip(
        names.tolist(), _rows_by(code[goes_on], names), _rows_by(code[last], names), strict=True
    ):
        mine = goes_on[steps]
        spells = Spells(code[mine + 1], waits[steps], groups[case[mine]])
        after[activity] = NextActivity(spells, Silences(silent[ended], groups[case[last[ended]]]), horizon)
    successors = _Successors(after, _contexts(code, case))
    draw = np.random.default_rng(seed)
    for end, silence in zip(last.tolist(), silent.tolist(), strict=True):
        activity, mine = int(code[end]), groups[case[end]]
        given = after[activity].given(mine, silence)
        p_ended = float(np.clip(1.0 - given.sum(), 0.0, 1.0))
        rest: tuple[int, ...] = ()
        if p_ended < SURELY_ENDED:
            before = int(code[end - 1]) if end and case[end - 1] == case[end] else _START
            rest = successors.drawn((before, activity), given, mine, draw)
        found[int(case[end])] = Continuation(p_ended, rest)
    return found


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
    triples, counts = np.unique(np.stack([before, code[here], code[here + 1]]), axis=1, return_counts=True)
    for (b, a, n), count in zip(triples.T.tolist(), counts.tolist(), strict=True):
        found.setdefault((b, a), {})[n] = count
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
