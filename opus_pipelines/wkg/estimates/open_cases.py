"""Which cases of an export were still running when it was taken, and how each of them is expected to go on.

An export holds cases that have not ended. Taken as they stand they would teach that the work ends in the middle. For every activity the
time until the next activity is a duration with right censoring: a case that is silent since its last event either has ended there or will
go on. The cumulative incidence of every next activity is estimated by Aalen and Johansen (1978) as far as the log observes
(`HORIZON_SHARE`); beyond that horizon the hazard of the last e-fold of time is taken to last for `FOLDS_BEYOND` further e-folds. What
then has not gone on has ended. The continuation of a running case is drawn step by step from these incidences, weighed by what followed
the same two activities elsewhere in the log; the draws are seeded. The estimator, its horizon and its extrapolation are this project's
own choices: they are measured by `benchmarks/open_cases.py` against the log's own later part.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

HORIZON_SHARE = 0.1    # the horizon is the time that at least this share of the silent cases has been followed
FEWEST_AT_RISK = 10    # cases still observed below which no incidence is estimated
FOLDS_BEYOND = 3.0     # e-folds of time beyond the horizon for which the last hazard is taken to last
SURELY_ENDED = 0.99    # chance of having ended from which no continuation is drawn
MOST_SPELLS = 20_000   # spells of one activity that are looked at, evenly spread over their lengths
LONGEST_REST = 60      # activities that are drawn for one case at most
CONTEXT_STRENGTH = 5.0  # spells that the incidences count as beside what followed the same two activities
_START = -1

Floats = np.ndarray


@dataclass(frozen=True)
class Continuation:
    """Of one case: the chance that it has ended, and the activities that are expected to follow; none where it has ended."""

    p_ended: float
    rest: tuple[int, ...]


@dataclass(frozen=True)
class _After:
    """What comes after one activity: the next ones, the incidence of each, and of each silent case the same, given its silence.

    incidence [n], given [silent, n]; what is missing to 1 is the chance that the case has ended.
    """

    following: np.ndarray
    incidence: Floats
    given: Floats


def continuations(activities: Sequence[np.ndarray], times: Sequence[np.ndarray], seed: int = 0) -> list[Continuation]:
    """Of every case its `Continuation`. `activities` [n of int] and `times` [n of seconds] run in step, a case an entry, in order of time.

    The end of observation is the log's last event. A case without an event has ended.
    """
    lengths = np.array([len(case) for case in activities], np.int64)
    found = [Continuation(1.0, ())] * len(lengths)
    if not lengths.any():
        return found
    code, when = np.concatenate(list(activities)).astype(np.int64), np.concatenate(list(times)).astype(float)
    case = np.repeat(np.arange(len(lengths)), lengths)
    last = np.flatnonzero(np.append(case[1:] != case[:-1], True))
    goes_on = np.flatnonzero(np.append(case[1:] == case[:-1], False))
    waits = np.maximum(0.0, when[goes_on + 1] - when[goes_on])
    silent = np.maximum(0.0, when.max() - when[last])
    after: dict[int, _After] = {}
    for activity in np.unique(code).tolist():
        mine, ended = code[goes_on] == activity, code[last] == activity
        after[activity] = _after(code[goes_on + 1][mine], waits[mine], silent[ended])
    context = _contexts(code, case)
    draw = np.random.default_rng(seed)
    place = dict.fromkeys(after, 0)  # of the next silent case of each activity
    for end in last.tolist():
        activity = int(code[end])
        known, row = after[activity], place[activity]
        place[activity] += 1
        p_ended = float(np.clip(1.0 - known.given[row].sum(), 0.0, 1.0))
        rest: tuple[int, ...] = ()
        if p_ended < SURELY_ENDED:
            before = int(code[end - 1]) if end and case[end - 1] == case[end] else _START
            rest = _drawn(activity, before, known.given[row], after, context, draw)
        found[int(case[end])] = Continuation(p_ended, rest)
    return found


def _after(following: np.ndarray, waits: Floats, silent: Floats) -> _After:
    kinds, which = np.unique(following, return_inverse=True)
    if not len(kinds):
        return _After(kinds, np.zeros(0), np.zeros((len(silent), 0)))
    time, kind, weight = _spells(waits, which, silent)
    horizon = float(np.quantile(silent, 1 - HORIZON_SHARE)) if len(silent) >= FEWEST_AT_RISK else np.inf
    steps, at = np.unique(time, return_inverse=True)
    events = np.zeros((len(steps), len(kinds)))
    happened = kind >= 0
    np.add.at(events, (at[happened], kind[happened]), weight[happened])
    leaving = np.bincount(at, weight, len(steps))
    risk = leaving[::-1].cumsum()[::-1]
    hazard = events / risk[:, None]
    hazard[(steps > horizon) & (risk < max(FEWEST_AT_RISK, HORIZON_SHARE * len(silent)))] = 0.0
    survival = np.cumprod(np.maximum(0.0, 1.0 - hazard.sum(1)))
    incidence = np.cumsum(hazard * np.append(1.0, survival[:-1])[:, None], axis=0)
    whole = incidence[-1] + survival[-1] * _beyond(hazard, steps, horizon)
    seen = np.searchsorted(steps, silent, side="right") - 1
    so_far = np.where((seen >= 0)[:, None], incidence[seen], 0.0)
    left = np.where(seen >= 0, survival[seen], 1.0)
    given = np.clip(whole - so_far, 0.0, None) / np.maximum(left, 1e-9)[:, None]
    given /= np.maximum(1.0, given.sum(1))[:, None]
    return _After(kinds, whole / max(1.0, whole.sum()), given)


def _spells(waits: Floats, which: np.ndarray, silent: Floats) -> tuple[Floats, np.ndarray, Floats]:
    """Every spell's length, next activity (-1: silent) and weight; of very many an even choice over their lengths."""
    time = np.concatenate([waits, silent])
    kind = np.concatenate([which, np.full(len(silent), -1)]).astype(np.int64)
    if len(time) <= MOST_SPELLS:
        return time, kind, np.ones(len(time))
    order = np.lexsort((kind, time))[np.linspace(0, len(time) - 1, MOST_SPELLS).round().astype(np.int64)]
    return time[order], kind[order], np.full(MOST_SPELLS, len(time) / MOST_SPELLS)


def _beyond(hazard: Floats, steps: Floats, horizon: float) -> Floats:
    """[next activities]: the chance that a case which is still silent at the horizon goes on to each of them later."""
    if not np.isfinite(horizon):
        return np.zeros(hazard.shape[1])
    late = hazard[(steps > horizon / np.e) & (steps <= horizon)].sum(0)
    return np.asarray((1.0 - np.exp(-late.sum() * FOLDS_BEYOND)) * late / max(float(late.sum()), 1e-12))


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


def _drawn(
    activity: int, before: int, chances: Floats, after: Mapping[int, _After], context: Mapping[tuple[int, int], Mapping[int, int]],
    draw: np.random.Generator,
) -> tuple[int, ...]:
    rest: list[int] = []
    while len(rest) < LONGEST_REST:
        known = after[activity]
        weighed = _in_context(known, chances, context.get((before, activity), {}))
        place = int(np.searchsorted(np.cumsum(weighed), draw.random(), side="right"))
        if place >= len(weighed):
            break
        before, activity = activity, int(known.following[place])
        rest.append(activity)
        chances = after[activity].incidence
    return tuple(rest)


def _in_context(known: _After, chances: Floats, counts: Mapping[int, int]) -> Floats:
    """The chances, their sum kept, weighed by how much more often each next activity followed the same two."""
    whole = float(chances.sum())
    if not counts or whole <= 0 or not len(chances):
        return chances
    usual = known.incidence / max(float(known.incidence.sum()), 1e-12)
    seen = np.array([counts.get(a, 0) for a in known.following.tolist()], float)
    here = (seen + CONTEXT_STRENGTH * usual) / (seen.sum() + CONTEXT_STRENGTH)
    weighed = chances * np.divide(here, usual, out=np.ones_like(usual), where=usual > 0)
    return np.asarray(weighed * (whole / weighed.sum())) if weighed.sum() > 0 else chances
