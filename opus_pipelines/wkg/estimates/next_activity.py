"""What follows an activity, and how likely: the cumulative incidence of the next activities, where some cases are
still silent.

A spell is the time from one activity to the next one of its case, or to the end of the log where the case is silent
since (right censoring). The incidence of every next activity is estimated by Aalen and Johansen (1978), as far as the
log observes. Beyond that horizon no spell tells anything. A hazard that is still high there goes on, one that has
nearly died out does not, since work either ends with an activity or does not: the chance to go on is 1 − exp(−(f·h)²),
h the hazard of the last e-fold of time, f `folds`. One batch of cases that go on together is no hazard of its own: h is
at most `PARTS` times the median of the hazards of its `PARTS` parts, equal in log time.

Some cases always end with an activity at which others go on: one department never sends an invoice. Cases with the same
value of an attribute are told apart where next to none of them went on, and the other cases' hazards say that many
would have (`SELDOM`).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

FEWEST_AT_RISK = 10  # cases still observed below which no incidence is estimated
MOST_SPELLS = 20_000  # spells of one activity that are looked at, evenly spread over their lengths
SELDOM = 0.1  # share of the spells due to go on, up to which a group of cases is taken to end with the activity
LEAST_DUE = 10.0  # spells of a group due to go on, from which that is told
PARTS = 4  # of the last e-fold of time before the horizon; a hazard must be seen in most of them to go on beyond it
LEAST_GROUP = 20  # cases with the same value of an attribute, from which they are a group
MOST_GROUPS = 40  # of an attribute, the most frequent values
BINS = 8  # of a number
CASES_AT_ONCE = 16_384  # for which the chances of all next activities are computed together

Floats = np.ndarray
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
    waits: Floats
    groups: Codes


@dataclass(frozen=True)
class Silences:
    """The cases whose last activity it is: the seconds since [cases], and their groups [cases, attributes]."""

    seconds: Floats
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

    def incidence(self, groups: np.ndarray) -> Floats:
        """[n] of a case of these groups; what is missing to 1 is the chance that it ends with the activity."""
        return self._of(groups).whole

    def given(self, groups: np.ndarray, silent: float) -> Floats:
        """[n] the same of a case that has been silent for so many seconds."""
        return self._of(groups).given(silent)

    def ended(self, silences: Silences) -> Floats:
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

    def __init__(self, waits: Floats, which: np.ndarray, silent: Floats, kinds: int, rule: Horizon) -> None:
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
            whole = min(seen, PARTS * float(np.median(parts)))
            beyond = (1.0 - np.exp(-((whole * folds) ** 2))) * late / max(seen, 1e-12)
            found = self._incidence[-1] + self._survival[-1] * beyond
            self.whole = found / max(1.0, float(found.sum()))

    def given(self, silent: float) -> Floats:
        """[n] of a case that has been silent for so many seconds."""
        seen = int(np.searchsorted(self._steps, silent, side="right")) - 1
        found = (
            self.whole
            if seen < 0
            else np.clip(self.whole - self._incidence[seen], 0.0, None) / max(float(self._survival[seen]), 1e-9)
        )
        return np.asarray(found / max(1.0, float(found.sum())))

    def ended(self, silent: Floats) -> Floats:
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
        return chances

    def due(self, times: Floats) -> Floats:
        """Returns the cumulative hazard of all next activities together at these times."""
        return np.append(0.0, self._hazard)[np.searchsorted(self._steps, times, side="right")]


def _ending(went: Codes, stayed: Codes, due_went: Floats, due_stayed: Floats) -> list[tuple[int, int]]:
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


def _spells(waits: Floats, which: np.ndarray, silent: Floats) -> tuple[Floats, np.ndarray, Floats]:
    """Every spell's length, next activity (-1: silent) and weight; of very many an even choice over their lengths."""
    time = np.concatenate([waits, silent])
    kind = np.concatenate([which, np.full(len(silent), -1)]).astype(np.int64)
    if len(time) <= MOST_SPELLS:
        return time, kind, np.ones(len(time))
    order = np.lexsort((kind, time))[np.linspace(0, len(time) - 1, MOST_SPELLS).round().astype(np.int64)]
    return time[order], kind[order], np.full(MOST_SPELLS, len(time) / MOST_SPELLS)


def groups_of(cases: Sequence[dict[str, str]]) -> Codes:
    """[cases, attributes] the group of each case for each attribute: its value where that is frequent, the eighth that
    a number is in.

    An attribute that is the same for all cases, or different for each, has no column.
    """
    columns = [_groups([one.get(key) or "" for one in cases]) for key in sorted({key for one in cases for key in one})]
    informative = [column for column in columns if (np.bincount(column)[1:] >= LEAST_GROUP).sum() > 1]
    return np.stack(informative, axis=1) if informative else np.zeros((len(cases), 0), np.int64)


def _groups(values: Sequence[str]) -> np.ndarray:
    numbers = np.array([_number(v) for v in values])
    known = np.isfinite(numbers)
    if known.sum() >= 0.95 * sum(v != "" for v in values) and len(np.unique(numbers[known])) > BINS:
        edges = np.unique(np.quantile(numbers[known], np.linspace(0, 1, BINS + 1)[1:-1]))
        return np.where(known, np.searchsorted(edges, np.where(known, numbers, 0.0), side="right") + 1, 0)
    names, which, counts = np.unique(np.array(values, dtype=object), return_inverse=True, return_counts=True)
    frequent = sorted(np.flatnonzero(counts >= LEAST_GROUP).tolist(), key=lambda n: (-counts[n], names[n]))[
        :MOST_GROUPS
    ]
    place = np.zeros(len(names), np.int64)
    place[frequent] = np.arange(1, len(frequent) + 1)
    return place[which]


def _number(value: str) -> float:
    try:
        return float(value)
    except ValueError:
        return float("nan")
