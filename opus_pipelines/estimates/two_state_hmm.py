"""A case as a chain of two hidden states, and how its ending depends on each of its steps.

EVAL (4) along a sequence: a case starts right; step t leaves it right with p_t if it was right, with q_t if it was not;
how it ends is its last state. What a case does next may tell of its state too: a task after which cases return to
earlier work does so with one chance where it left the case right, with another where it did not. Steps in parallel are
taken in the order in which they were started.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

Pair = tuple[np.ndarray, np.ndarray]
TINY = 1e-300


@dataclass(frozen=True)
class Paths:
    """Distinct sequences, one after the other in `tasks` (numbers below `size`), longest first, with their cases and
    successes.
    """

    tasks: np.ndarray
    lengths: np.ndarray
    cases: np.ndarray
    successes: np.ndarray
    size: int

    @classmethod
    def of(cls, tasks: np.ndarray, lengths: np.ndarray, cases: np.ndarray, successes: np.ndarray, size: int) -> "Paths":
        """In any order."""
        paths = cls(tasks, lengths, cases, successes, size)
        order = np.argsort(-lengths, kind="stable")
        return paths.rows(order, cases[order], successes[order])

    def rows(self, keep: np.ndarray, cases: np.ndarray, successes: np.ndarray) -> "Paths":
        """Only the sequences `keep`, in this order, with these counts."""
        lengths = self.lengths[keep]
        at = np.repeat(self.starts[keep] - (np.cumsum(lengths) - lengths), lengths) + np.arange(lengths.sum())
        return Paths(self.tasks[at], lengths, cases, successes, self.size)

    @cached_property
    def starts(self) -> np.ndarray:
        """Where each sequence begins."""
        return np.cumsum(self.lengths) - self.lengths

    @cached_property
    def row(self) -> np.ndarray:
        """The sequence of each step."""
        return np.repeat(np.arange(len(self.lengths)), self.lengths)

    @cached_property
    def ends(self) -> np.ndarray:
        """The last step of each sequence."""
        return self.starts + self.lengths - 1

    @cached_property
    def places(self) -> list[np.ndarray]:
        """For each place in a sequence, the steps that stand there; sequences keep their order."""
        longest = int(self.lengths.max(initial=0))
        active = np.searchsorted(-self.lengths, -np.arange(longest), "left")
        return [self.starts[:n] + j for j, n in enumerate(active)]

    @cached_property
    def returns(self) -> np.ndarray:
        """Of each step: is what follows a return, to a task that this case first did no later than this one."""
        _, first, inverse = np.unique(self.row * self.size + self.tasks, return_index=True, return_inverse=True)
        first_done = first[inverse]
        back = np.append(first_done[1:] <= first_done[:-1], False)
        back[self.ends] = False
        return back

    @cached_property
    def telling(self) -> np.ndarray:
        """Of each step: may what follows tell of its state. Not after a task from which no case ever returns; not at
        the end.
        """
        telling = self.by_task(self.returns)[self.tasks] > 0
        telling[self.ends] = False
        return telling

    def by_task(self, values: np.ndarray) -> np.ndarray:
        """The sum of steps' values, a task each."""
        return np.bincount(self.tasks, values, self.size)


@dataclass(frozen=True)
class HmmScores:
    """What a sequence's two endings, right and wrong, say of its steps' p and q: derivatives of their log-likelihood,
    a step each.
    """

    log_likelihood: float
    right: np.ndarray  # P(ends right | what it did next), a sequence each
    p: Pair  # of cases that end right, of cases that end wrong
    q: Pair
    state: Pair  # P(right after the step), likewise


def hmm_scores(paths: Paths, p: np.ndarray, q: np.ndarray, returning: Pair) -> HmmScores:
    """Forward filtering, then backward for both endings. `p`, `q`, and the chances of a return where right and where
    wrong: a task each.
    """
    p, q = p[paths.tasks], q[paths.tasks]
    seen = [
        np.where(paths.telling, np.where(paths.returns, c[paths.tasks], 1 - c[paths.tasks]), 1.0) for c in returning
    ]
    before, right, log_seen = _forward(paths, p, q, seen)
    n, k = paths.cases, paths.successes
    likelihood = n * log_seen + k * np.log(np.maximum(right, TINY)) + (n - k) * np.log(np.maximum(1 - right, TINY))
    both = [_backward(paths, p, q, seen, before, ending) for ending in (1.0, 0.0)]
    by_p, by_q, state = zip(*both, strict=True)
    return HmmScores(float(likelihood.sum()), right, by_p, by_q, state)


def _forward(
    paths: Paths, p: np.ndarray, q: np.ndarray, seen: list[np.ndarray]
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """P(right before each step | what was seen), P(right at the end | ..), and the log of the chance of what was seen."""
    before, log_seen, state = np.empty(len(p)), np.zeros(len(paths.lengths)), np.ones(len(paths.lengths))
    for at in paths.places:
        n = len(at)
        before[at] = state[:n]
        right = q[at] + (p[at] - q[at]) * state[:n]
        weight, other = right * seen[0][at], (1 - right) * seen[1][at]
        log_seen[:n] += np.log(np.maximum(weight + other, TINY))
        state[:n] = weight / np.maximum(weight + other, TINY)
    return before, state, log_seen


def _backward(
    paths: Paths, p: np.ndarray, q: np.ndarray, seen: list[np.ndarray], before: np.ndarray, ending: float
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Derivatives by p and by q of the log-likelihood of an ending (1 right, 0 wrong), and P(right after the step |
    it), a step each.
    """
    by_p, by_q, state = np.empty(len(p)), np.empty(len(p)), np.empty(len(p))
    ahead = (
        np.full(len(paths.lengths), ending),
        np.full(len(paths.lengths), 1 - ending),
    )  # of what is ahead, if right, if wrong
    for at in reversed(paths.places):
        n = len(at)
        good, bad = seen[0][at] * ahead[0][:n], seen[1][at] * ahead[1][:n]
        if_right, if_wrong = p[at] * good + (1 - p[at]) * bad, q[at] * good + (1 - q[at]) * bad
        total = np.maximum(before[at] * if_right + (1 - before[at]) * if_wrong, TINY)
        by_p[at], by_q[at] = before[at] * (good - bad) / total, (1 - before[at]) * (good - bad) / total
        state[at] = (q[at] + (p[at] - q[at]) * before[at]) * good / total
        ahead[0][:n], ahead[1][:n] = if_right / total, if_wrong / total
    return by_p, by_q, state
