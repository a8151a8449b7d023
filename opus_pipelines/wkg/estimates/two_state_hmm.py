"""A two-state hidden Markov model of a case: how its outcome depends on each of its steps.

EVAL (4) along a sequence: a case starts in the state right. After step t it is right with probability p_t if it was
right before, and with q_t if it was wrong. Its last state is its outcome. The next step of a case may tell of its state
too: after a task, cases return to earlier work with one probability when the state is right and with another when it is
wrong. Parallel steps are taken in the order of their starts.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

Pair = tuple[np.ndarray, np.ndarray]
TINY = 1e-300


@dataclass(frozen=True)
class Paths:
    """Distinct sequences with their cases and successes, the longest first.

    `tasks` has the task numbers (below `size`) of all sequences, one sequence after the other.
    """

    tasks: np.ndarray
    lengths: np.ndarray
    cases: np.ndarray
    successes: np.ndarray
    size: int

    @classmethod
    def of(cls, tasks: np.ndarray, lengths: np.ndarray, cases: np.ndarray, successes: np.ndarray, size: int) -> "Paths":
        """Makes `Paths` of sequences in any order."""
        paths = cls(tasks, lengths, cases, successes, size)
        order = np.argsort(-lengths, kind="stable")
        return paths.rows(order, cases[order], successes[order])

    def rows(self, keep: np.ndarray, cases: np.ndarray, successes: np.ndarray) -> "Paths":
        """Returns the sequences `keep`, in this order, with these counts."""
        lengths = self.lengths[keep]
        at = np.repeat(self.starts[keep] - (np.cumsum(lengths) - lengths), lengths) + np.arange(lengths.sum())
        return Paths(self.tasks[at], lengths, cases, successes, self.size)

    @cached_property
    def starts(self) -> np.ndarray:
        """The index of the first step of each sequence."""
        return np.cumsum(self.lengths) - self.lengths

    @cached_property
    def row(self) -> np.ndarray:
        """The sequence number of each step."""
        return np.repeat(np.arange(len(self.lengths)), self.lengths)

    @cached_property
    def ends(self) -> np.ndarray:
        """The index of the last step of each sequence."""
        return self.starts + self.lengths - 1

    @cached_property
    def places(self) -> list[np.ndarray]:
        """For each position in a sequence, the indices of the steps there; sequences keep their order."""
        longest = int(self.lengths.max(initial=0))
        active = np.searchsorted(-self.lengths, -np.arange(longest), "left")
        return [self.starts[:n] + j for j, n in enumerate(active)]

    @cached_property
    def returns(self) -> np.ndarray:
        """A mask of the steps after which the case returns.

        A return is a next step whose task this case first did no later than the task of the step.
        """
        _, first, inverse = np.unique(self.row * self.size + self.tasks, return_index=True, return_inverse=True)
        first_done = first[inverse]
        back = np.append(first_done[1:] <= first_done[:-1], False)
        back[self.ends] = False
        return back

    @cached_property
    def telling(self) -> np.ndarray:
        """A mask of the steps whose next step may tell of their state.

        The last step of a sequence is not among them, nor is a task from which no case ever returns.
        """
        telling = self.by_task(self.returns)[self.tasks] > 0
        telling[self.ends] = False
        return telling

    def by_task(self, values: np.ndarray) -> np.ndarray:
        """Sums the values of steps by task."""
        return np.bincount(self.tasks, values, self.size)


@dataclass(frozen=True)
class HmmScores:
    """Derivatives of the log-likelihood of both outcomes of each sequence, one element for each step."""

    log_likelihood: float
    right: np.ndarray  # P(ends right | what it did next), a sequence each
    p: Pair  # of cases that end right, of cases that end wrong
    q: Pair
    state: Pair  # P(right after the step), likewise


def hmm_scores(paths: Paths, p: np.ndarray, q: np.ndarray, returning: Pair) -> HmmScores:
    """Runs the forward filter once, and the backward pass for each outcome.

    `p`, `q` and both arrays of `returning` (probability of a return when right, when wrong) have one element per task.
    """
    if_right, if_wrong = (
        np.where(paths.telling, np.where(paths.returns, c[paths.tasks], 1 - c[paths.tasks]), 1.0) for c in returning
    )
    steps = _Steps(paths, p[paths.tasks], q[paths.tasks], (if_right, if_wrong))
    before, right, log_seen = _forward(steps)
    n, k = paths.cases, paths.successes
    likelihood = n * log_seen + k * np.log(np.maximum(right, TINY)) + (n - k) * np.log(np.maximum(1 - right, TINY))
    both = [_backward(steps, before, ending) for ending in (1.0, 0.0)]
    by_p, by_q, state = zip(*both, strict=True)
    return HmmScores(float(likelihood.sum()), right, by_p, by_q, state)


@dataclass(frozen=True)
class _Steps:
    """The model of every step: its p and q, and the probability of what the case did next when right, when wrong."""

    paths: Paths
    p: np.ndarray
    q: np.ndarray
    seen: Pair


def _forward(steps: _Steps) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Returns P(right before each step | observations), P(right at the end | ...), and the log-likelihood."""
    paths, p, q, seen = steps.paths, steps.p, steps.q, steps.seen
    before, log_seen, state = np.empty(len(p)), np.zeros(len(paths.lengths)), np.ones(len(paths.lengths))
    for at in paths.places:
        n = len(at)
        before[at] = state[:n]
        right = q[at] + (p[at] - q[at]) * state[:n]
        weight, other = right * seen[0][at], (1 - right) * seen[1][at]
        log_seen[:n] += np.log(np.maximum(weight + other, TINY))
        state[:n] = weight / np.maximum(weight + other, TINY)
    return before, state, log_seen


def _backward(steps: _Steps, before: np.ndarray, ending: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Returns the derivatives by p and by q of the log-likelihood of an outcome (1 right, 0 wrong).

    The third array is P(right after the step | outcome). All have one element for each step.
    """
    paths, p, q, seen = steps.paths, steps.p, steps.q, steps.seen
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
