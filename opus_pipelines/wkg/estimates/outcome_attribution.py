"""Estimates p and q of tasks from case outcomes when no step was judged (outcome attribution).

Two signals tell which step failed: cases with and without a step end differently, and work that is done again was
rarely right (how rarely is learned for each task). The caller leaves out cases that lack a critical task: these show
the cost of omitting it, and not how well steps are done. Outcomes cannot separate steps that occur together in every
case. There the prior decides, and the interval is as wide as the share of the failures that each step may have caused.

The prior: the failure rates -log p of the tasks of an industry are distributed exponentially. Their mean is that of
the one p which, equal for all these tasks, would make as many cases succeed. The tail is heavier than an exponential's
(that of a Pareto distribution beyond TAIL means), so that the model accepts a task after which nearly every case fails
(a rejection): with an exponential tail 56 % of the 95 % intervals of such tasks held the truth, with this one 89 %,
and the intervals of the other tasks kept their width (tests/wkg/estimates/test_outcome_attribution.py draws such
histories). q has a beta prior with the mean and the strength of the settings. The intervals are those of the normal
approximation of the posterior in the cube roots of -log p and of -log(1 - q), where an exponential distribution is
almost normal (Wilson and Hilferty 1931).

The value follows another rule: it is the pair (p, 0) that reproduces the outcomes of cases if nothing is ever
repaired. A q that is only not known to be small would make every further step look like a repair to the search.

A two-state hidden Markov model of a case: how its outcome depends on each of its steps. EVAL (4) along a sequence: a
case starts in the state right. After step t it is right with probability p_t if it was right before, and with q_t if
it was wrong. Its last state is its outcome. The next step of a case may tell of its state too: after a task, cases
return to earlier work with one probability when the state is right and with another when it is wrong. Parallel steps
are taken in the order of their starts.
"""

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from opus_pipelines.core.statistics import Z

_Pair = tuple[np.ndarray, np.ndarray]
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
    p: _Pair  # of cases that end right, of cases that end wrong
    q: _Pair
    state: _Pair  # P(right after the step), likewise


def hmm_scores(paths: Paths, p: np.ndarray, q: np.ndarray, returning: _Pair) -> HmmScores:
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
    seen: _Pair


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


_LONGEST = 400  # steps; longer sequences are no evidence here
# Steps of distinct sequences that values, and that intervals are made from; beyond, the sequences of most cases.
VALUE_STEPS, INTERVAL_STEPS = 200_000, 20_000
MOST_UNKNOWNS = 1_000  # of the dense system behind the intervals
_MOST_ROWS = 1_000  # sequences behind them where there are more unknowns than that
ROUNDS, ITERATIONS = 4, 80  # of chances given returns, and returns given chances
# of a variance that is left whatever is told: a difference of two nearly equal numbers may be negative
LEAST_SHARE = 1e-9
# of a task's failure rate, in means of its industry: from there on the prior falls like a power, not exponentially
TAIL = 1.0
EM_ROUNDS, EM_ENOUGH = 150, 1e-6
RETURN_IF_RIGHT, RETURN_IF_WRONG = (1.0, 19.0), (1.0, 3.0)  # Beta priors: what follows is a return to earlier work


@dataclass(frozen=True)
class Judged:
    """Successes and failures of judged steps, one element for each task."""

    p: _Pair
    q: _Pair


@dataclass(frozen=True)
class Prior:
    """The settings' p of the tasks of an industry and q of every task.

    `strength` is the number of pseudo-counts behind each: cases for p, steps for q.
    """

    p: float
    q: float
    strength: float


@dataclass(frozen=True)
class OutcomeAttribution:
    """Per task, the p that reproduces the outcomes without repairs, and 95 % intervals of p and q."""

    p: np.ndarray
    p_range: _Pair
    q_range: _Pair


def attribute_outcomes(paths: Paths, judged: Judged, industry: np.ndarray, prior: Prior) -> OutcomeAttribution:
    """Returns the estimates of all tasks. `industry` has the number of each task's industry."""
    paths = _heaviest(paths, VALUE_STEPS)
    value = without_repair(paths, judged, industry, prior)
    paths = _heaviest(paths, INTERVAL_STEPS)
    right, wrong = prior.strength * prior.q + judged.q[0], prior.strength * (1 - prior.q) + judged.q[1]
    a, b = np.concatenate([1 + judged.p[1], right]), np.concatenate([judged.p[0], wrong])
    lower, upper = _Posterior(paths, a, b, industry, _mean_odds(paths, industry, prior)).ranges()
    size = paths.size
    return OutcomeAttribution(value, (1 - upper[:size], 1 - lower[:size]), (lower[size:], upper[size:]))


def _heaviest(paths: Paths, steps: int) -> Paths:
    """Returns the sequences with the most cases, as many as together have at most `steps` steps."""
    usable = np.flatnonzero((paths.lengths > 0) & (paths.lengths <= _LONGEST) & (paths.cases > 0))
    heaviest = usable[np.argsort(-paths.cases[usable], kind="stable")]
    kept = np.sort(heaviest[np.cumsum(paths.lengths[heaviest]) <= steps])
    return paths.rows(kept, paths.cases[kept], paths.successes[kept])


def without_repair(paths: Paths, judged: Judged, industry: np.ndarray, prior: Prior) -> np.ndarray:
    """Returns the p of each task by expectation maximisation with q = 0.

    A failed case then failed at the first of its steps that went wrong.
    """
    odds = _mean_odds(paths, industry, replace(prior, q=0.0))
    failed, cases, p = (paths.cases - paths.successes)[paths.row], paths.cases[paths.row], odds / (1 + odds)
    for _ in range(EM_ROUNDS):
        first = np.exp(_before(paths, np.log(p[paths.tasks]))) * (1 - p[paths.tasks])  # P(the first failure is here)
        here = failed * first / np.maximum(np.bincount(paths.row, first, len(paths.lengths))[paths.row], TINY)
        wrong = paths.by_task(here)
        right = np.maximum(paths.by_task(cases - _before(paths, here)) - wrong, 0.0) + judged.p[0]
        new = (odds + right) / (odds + 1 + right + wrong + judged.p[1])
        moved, p = float(np.max(np.abs(new - p), initial=0.0)), new
        if moved < EM_ENOUGH:
            break
    return p


def _before(paths: Paths, values: np.ndarray) -> np.ndarray:
    """The sum of a sequence's values before each of its steps."""
    total = np.cumsum(values) - values
    return total - total[paths.starts][paths.row]


def _mean_odds(paths: Paths, industry: np.ndarray, prior: Prior) -> np.ndarray:
    """Returns p / (1 - p) of the industry of each task.

    p is the one value for all tasks of the industry that makes as many cases succeed; bisection finds it. `strength`
    pseudo-cases that end as the p and q of the settings predict are added to the observed ones.
    """
    of_row = industry[paths.tasks[paths.starts]] if len(paths.lengths) else np.zeros(0, int)
    count = int(industry.max(initial=-1)) + 1
    cases, ended = (np.bincount(of_row, x, count) for x in (paths.cases, paths.successes))

    def rate(log_odds: np.ndarray) -> np.ndarray:
        right = _ends_right(paths, (1 / (1 + np.exp(-log_odds)))[industry], prior.q)
        return np.bincount(of_row, paths.cases * right, count) / np.maximum(cases, 1)

    expected = rate(np.full(count, np.log(prior.p / (1 - prior.p))))
    target = (ended + prior.strength * expected) / (cases + prior.strength)
    low, high = np.full(count, -2.0), np.full(count, 12.0)
    for _ in range(30):
        middle = (low + high) / 2
        enough = rate(middle) >= target
        low, high = np.where(enough, low, middle), np.where(enough, middle, high)
    return np.where(cases > 0, np.exp(high), prior.p / (1 - prior.p))[industry]


def _ends_right(paths: Paths, p: np.ndarray, q: float) -> np.ndarray:
    state = np.ones(len(paths.lengths))
    for at in paths.places:
        state[: len(at)] = q + (p[paths.tasks[at]] - q) * state[: len(at)]
    return state


class _Posterior:
    """The posterior of u = (1 - p, q) of all tasks, with u ~ Beta(a, b), in the scale x = (-log(1 - u))^(1/3)."""

    def __init__(self, paths: Paths, a: np.ndarray, b: np.ndarray, industry: np.ndarray, odds: np.ndarray) -> None:
        self.paths, self.a, self.counted, self.industry, self.odds, self.rate = paths, a, b, industry, odds, odds
        at_first = [np.full(paths.size, yes / (yes + no)) for yes, no in (RETURN_IF_RIGHT, RETURN_IF_WRONG)]
        self.returning: _Pair = at_first[0], at_first[1]

    def ranges(self) -> _Pair:
        """Returns the lower and upper ends of the central 95 % of every u."""
        x = np.cbrt(-np.log1p(-self.a / (self.a + self.b)))
        for _ in range(ROUNDS):
            x = self._mode(x)
            variance = self._variances(x)
            self.odds = self._mean(x, variance)
            self.rate = self._tail(x)
            self.returning = self._returning(self._scores(x))
        deviation = np.sqrt(variance)
        return _u(np.maximum(x - Z * deviation, 0.0)), _u(x + Z * deviation)

    @property
    def b(self) -> np.ndarray:
        """The failures that were counted, plus for every p the rate of its exponential prior."""
        return self.counted + np.concatenate([self.rate, np.zeros(self.paths.size)])

    def _tail(self, x: np.ndarray) -> np.ndarray:
        """Returns the rate of each task's exponential prior.

        It is the odds of the industry, lowered for a task that fails far more often than its industry.
        """
        return self.odds * np.minimum(1.0, (TAIL + 1) / (TAIL + self.odds * x[: self.paths.size] ** 3))

    def _mean(self, x: np.ndarray, variance: np.ndarray) -> np.ndarray:
        """Returns p / (1 - p) of each industry, updated from the expected -log p of its tasks.

        The first estimate of the mean counts as one more task.
        """
        x, variance = x[: self.paths.size], variance[: self.paths.size]
        harm = np.bincount(self.industry, x**3 + 3 * x * variance)
        first = np.bincount(self.industry, 1 / self.odds) / np.bincount(self.industry)
        return ((np.bincount(self.industry) + 1) / (harm + first))[self.industry]

    def _scores(self, x: np.ndarray) -> HmmScores:
        u = _u(x)
        return hmm_scores(self.paths, 1 - u[: self.paths.size], u[self.paths.size :], self.returning)

    def _mode(self, x: np.ndarray) -> np.ndarray:
        from scipy.optimize import minimize

        def target(x: np.ndarray) -> tuple[float, np.ndarray]:
            found = self._scores(x)
            k, n = self.paths.successes[self.paths.row], self.paths.cases[self.paths.row]
            by_p, by_q = (self.paths.by_task(k * s[0] + (n - k) * s[1]) for s in (found.p, found.q))
            slope = np.concatenate([-by_p, by_q]) * _slope(x) + self._prior_slope(x)
            return -found.log_likelihood - self._prior(x), -slope

        bounds = [(1e-3, 3.0)] * len(x)
        return np.asarray(
            minimize(target, x, jac=True, method="L-BFGS-B", bounds=bounds, options={"maxiter": ITERATIONS}).x
        )

    def _prior(self, x: np.ndarray) -> float:
        return float(np.sum((self.a - 1) * np.log(_u(x)) - self.b * x**3 + 2 * np.log(x)))

    def _prior_slope(self, x: np.ndarray) -> np.ndarray:
        return (self.a - 1) * _slope(x) / _u(x) - 3 * self.b * x**2 + 2 / x

    def _returning(self, found: HmmScores) -> _Pair:
        """Returns the probabilities of a return after a right and after a wrong step (EM update)."""
        paths, chances = self.paths, []
        k, n = paths.successes[paths.row], paths.cases[paths.row]
        right = k * found.state[0] + (n - k) * found.state[1]
        for count, (yes, no) in zip((right, n - right), (RETURN_IF_RIGHT, RETURN_IF_WRONG), strict=True):
            again, on = paths.by_task(count * paths.returns), paths.by_task(count * (paths.telling & ~paths.returns))
            chances.append((yes + again) / (yes + no + again + on))
        return chances[0], chances[1]

    def _variances(self, x: np.ndarray) -> np.ndarray:
        """Returns the diagonal of the inverse of prior curvature plus Fisher information.

        The information is the expectation over both endings of each sequence.
        """
        from scipy.sparse import csr_array, vstack

        paths, size, step = self.paths, self.paths.size, 1e-4
        found = self._scores(x)
        curvature = np.maximum(
            (self._prior_slope(x * (1 - step)) - self._prior_slope(x * (1 + step))) / (2 * step * x), 1e-9
        )
        rows, columns = np.tile(paths.row, 2), np.concatenate([paths.tasks, paths.tasks + size])
        slope, shape = _slope(x)[columns], (len(paths.lengths), 2 * size)
        sides = []
        for ending, chance in enumerate((found.right, 1 - found.right)):
            values = np.concatenate([-found.p[ending], found.q[ending]]) * slope * np.sqrt(paths.cases * chance)[rows]
            sides.append(csr_array((values, (rows, columns)), shape))
        information = vstack(sides).tocsr()
        if 2 * size <= MOST_UNKNOWNS:
            return self._with_means((information.T @ information).toarray() + np.diag(curvature), x[:size])
        return _by_rows(information, 1 / curvature)

    def _with_means(self, information: np.ndarray, x: np.ndarray) -> np.ndarray:
        """Returns the variances when the means of the industries are unknown too.

        The logarithm of the odds of each industry is then one more unknown. The inverse is taken by blocks: the
        variances with known means, plus what the unknown means add. Where one task carries nearly all failures of an
        industry (cases fail exactly where a rejection happens), the joint curvature has no maximum and its inverse has
        negative variances. The prior gives each mean a curvature of at least 1, and that bound keeps every variance
        positive.
        """
        of = np.eye(int(self.industry.max()) + 1)[self.industry]
        harm = self.rate * x**3
        means = np.diag(1 + of.T @ harm)
        across = np.concatenate([of * (3 * harm / x)[:, None], np.zeros((len(x), len(means)))])
        inverse = np.linalg.inv(information)
        shift = inverse @ across  # how far the mode of each unknown moves with each mean
        left = means - across.T @ shift
        curvature, axes = np.linalg.eigh((left + left.T) / 2)
        turned = shift @ axes
        return np.asarray(np.diag(inverse) + np.sum(turned**2 / np.maximum(curvature, 1.0), axis=1))


def _by_rows(information: Any, variance: np.ndarray) -> np.ndarray:
    """Returns the same variances for many tasks, from the sequences with the most information (Woodbury identity).

    The information of the other sequences is left out, which makes the intervals wider.
    """
    weight = np.asarray((information**2) @ variance).ravel()
    best = np.sort(np.argsort(-weight, kind="stable")[:_MOST_ROWS])
    seen = information[best]
    spread = (seen * variance).toarray()
    inner = np.eye(len(best)) + seen @ spread.T
    told = np.einsum("ij,ij->j", spread, np.linalg.solve(inner, spread))
    return np.asarray(np.maximum(variance - told, variance * LEAST_SHARE))


def _u(x: np.ndarray) -> np.ndarray:
    return -np.expm1(-(x**3))


def _slope(x: np.ndarray) -> np.ndarray:
    """Returns du/dx."""
    return 3 * x**2 * np.exp(-(x**3))
