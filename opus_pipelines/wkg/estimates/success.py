"""Estimates p and q of tasks and of their execution modes.

The evidence is the outcomes of steps, else the outcomes of cases, else the prior. Both estimates are drawn towards
those of other tasks and other execution modes by beta pooling, as far as these resemble each other. A step counts for
q when a direct predecessor is known to have failed, else for p (sql/wkg/ways.sql). A predecessor of unknown outcome
counts as right, which can only lower p.

Fits a beta distribution to the success rates of many tasks, or of many execution modes (beta pooling). Each task, and
each execution mode, is one draw, however often it was done. A rate pooled over steps would be that of the most
frequent task: if that is a review after failures, which repairs, every other step would be taken for a repair. The fit
is this project's own rule: the mode of the beta-binomial likelihood of all counts times a prior of the mean and the
strength of the Beta. That prior comes from the settings, or from a wider pool. Execution modes are pooled by kind of
actor, within the pool of all other kinds. The modes of one task also resemble each other. How much is estimated too:
the estimate of a mode is the best linear prediction from the other modes of its task (credibility, Bühlmann and Straub
1970).
"""

from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from opus_pipelines.core.settings import Priors
from opus_pipelines.core.statistics import Estimate, smoothed
from opus_pipelines.history.records.arrow_arrays import distinct
from opus_pipelines.wkg.estimates.outcome_attribution import Judged, Prior, attribute_outcomes
from opus_pipelines.wkg.estimates.sequences import Sequences

_Floats = np.ndarray
LOG_STRENGTH_DEVIATION = 1.0  # of a pool's strength round the wider pool's: e times as much or as little is no surprise
ALIKE, ALIKE_PAIRS = (
    0.3,
    4.0,
)  # correlation of execution modes of one task before any two were judged, and the pairs that it counts as
MOST_ALIKE = 0.5  # rates are skewed: a few odd tasks must not make every mode the image of its neighbour
LEAST_STRENGTH = 1.0  # of what is expected of a mode; less would have two peaks, at 0 and 1
FARTHEST = 4.0  # times nearer to 0 or to 1 than its pool's mean is what is expected of a mode, at most
LEAST_WEIGHT = 1e-9
LEAST_CHANCE, MOST_STRENGTH = 1e-4, 1e4


@dataclass(frozen=True)
class BetaPool:
    """The distribution Beta(mean · strength, (1 - mean) · strength)."""

    mean: float
    strength: float

    @property
    def deviation(self) -> float:
        """The standard deviation of a draw."""
        return float(np.sqrt(self.mean * (1 - self.mean) / (self.strength + 1)))


def fit_beta(successes: Sequence[int], n: Sequence[int], prior: BetaPool, behind: float | None = None) -> BetaPool:
    """Returns the beta distribution that these counts were drawn from; draws without counts are ignored.

    `prior.mean` counts as `behind` pseudo-counts of one more draw (default: the strength of the prior). The strength is
    log-normal around that of the prior.
    """
    from scipy.optimize import minimize
    from scipy.special import betaln, digamma

    counts = np.array([(s, of) for s, of in zip(successes, n, strict=True) if of], float).reshape(-1, 2)
    if not len(counts):
        return prior
    alike, times = np.unique(counts, axis=0, return_counts=True)
    right, total = alike.T
    behind = prior.strength if behind is None else behind
    wrong, first = total - right, np.array([np.log(prior.mean / (1 - prior.mean)), np.log(prior.strength)])

    def target(at: _Floats) -> tuple[float, _Floats]:
        mean, strength = 1 / (1 + np.exp(-at[0])), np.exp(at[1])
        a, b, off = mean * strength, (1 - mean) * strength, (at[1] - first[1]) / LOG_STRENGTH_DEVIATION
        both = digamma(strength) - digamma(strength + total)
        by_a = times @ (digamma(a + right) - digamma(a) + both)
        by_b = times @ (digamma(b + wrong) - digamma(b) + both)
        known = behind * (prior.mean * np.log(mean) + (1 - prior.mean) * np.log(1 - mean)) - off**2 / 2
        slope = np.array(
            [
                (by_a - by_b) * strength * mean * (1 - mean) + behind * (prior.mean - mean),
                by_a * a + by_b * b - off / LOG_STRENGTH_DEVIATION,
            ]
        )
        return -float(times @ (betaln(a + right, b + wrong) - betaln(a, b)) + known), -slope

    farthest = np.log(1 / LEAST_CHANCE - 1)
    bounds = [(-farthest, farthest), (-np.log(MOST_STRENGTH), np.log(MOST_STRENGTH))]
    log_odds, log_strength = minimize(target, first, jac=True, method="L-BFGS-B", bounds=bounds).x
    return BetaPool(float(1 / (1 + np.exp(-log_odds))), float(np.exp(log_strength)))


def by_group(
    groups: Sequence[str | None], successes: Sequence[int], n: Sequence[int], prior: BetaPool
) -> dict[str | None, BetaPool]:
    """Returns the pool of each group. Its prior is the pool of all other groups, so that no count is used twice.

    The mean of that prior has the pseudo-counts of the settings, because groups may differ more than their members do.
    """
    counts = list(zip(groups, successes, n, strict=True))

    def of(group: str | None, inside: bool, wider: BetaPool) -> BetaPool:
        chosen = [(s, total) for name, s, total in counts if (name == group) == inside]
        return fit_beta([s for s, _ in chosen], [total for _, total in chosen], wider, prior.strength)

    return {group: of(group, True, of(group, False, prior)) for group in dict.fromkeys(groups)}


def expected(
    tasks: Sequence[Hashable], kinds: Sequence[str | None], successes: Sequence[int], n: Sequence[int], prior: BetaPool
) -> list[BetaPool]:
    """Returns the prior of each execution mode: what is expected before its own counts are seen.

    It comes from the modes with the same kind of actor and from the other modes of its task. All arguments but `prior`
    have one element for each mode. The rate of another mode enters as its distance from the mean of its own kind of
    actor, in standard deviations.
    """
    pools = by_group(kinds, successes, n, prior)
    mean, deviation, strength = (
        np.array([(pools[k].mean, pools[k].deviation, pools[k].strength) for k in kinds]).reshape(-1, 3).T
    )
    of = np.asarray(n, float)
    judged = of > 0
    rate = np.where(judged, np.asarray(successes, float), 0.0) / np.maximum(of, 1)
    deviations, noise = (
        np.where(judged, (rate - mean) / deviation, 0.0),
        strength / np.maximum(of, 1),
    )  # chance's share, as a variance
    numbers: dict[Hashable, int] = {}
    task = np.array([numbers.setdefault(t, len(numbers)) for t in tasks], int)
    alike = _correlation(task, deviations, noise, judged)
    weight = np.where(judged, 1 / (1 - alike + noise), 0.0)
    others, told = (np.bincount(task, x)[task] - x for x in (weight, weight * deviations))
    shared = alike / (1 + alike * others)
    lowest, highest = mean / FARTHEST, 1 - (1 - mean) / FARTHEST
    middle = np.clip(mean + deviation * shared * told, lowest, highest)
    variance = deviation**2 * (shared + 1 - alike)
    found = np.maximum(middle * (1 - middle) / variance - 1, LEAST_STRENGTH)
    return [BetaPool(float(m), float(s)) for m, s in zip(middle, found, strict=True)]


def _correlation(task: _Floats, deviations: _Floats, noise: _Floats, judged: _Floats) -> float:
    """Returns the correlation of the execution modes of one task.

    It is the mean product of pairs, divided by the mean square without chance; a pair with little chance in it has a
    higher weight.
    """
    weight = np.where(judged, 1 / (1 + noise), 0.0)
    squares = np.sum(weight**2 * (deviations**2 - noise)) / max(np.sum(weight**2), LEAST_WEIGHT)
    pairs = (np.sum(np.bincount(task, weight) ** 2) - np.sum(weight**2)) / 2
    products = (np.sum(np.bincount(task, weight * deviations) ** 2) - np.sum((weight * deviations) ** 2)) / 2
    return float(np.clip((products / max(squares, 1.0) + ALIKE_PAIRS * ALIKE) / (pairs + ALIKE_PAIRS), 0.0, MOST_ALIKE))


_Row = Mapping[str, Any]
COUNTS = ("p_successes", "p_n", "q_successes", "q_n")


class SuccessModel:
    """Estimates success probabilities from counts.

    `tasks` are rows with task_id, industry and COUNTS. `modes` also have actor_kind, model and actor_group, in the
    order of their keys. The prior of a task is the pool of the tasks of its industry; the prior of an industry is
    the pool of all other industries, whose prior is in the settings. The prior of an execution mode comes from the
    modes with the same kind of actor and from the other modes of its task. `from_cases` holds the p and q of tasks
    that the function `from_cases` returns.
    """

    def __init__(
        self,
        priors: Priors,
        tasks: Iterable[_Row],
        modes: Iterable[_Row],
        from_cases: Mapping[str, tuple[Estimate, Estimate]],
    ) -> None:
        self.from_cases = from_cases
        tasks, modes = list(tasks), list(modes)
        self.of_industry, self.before = {}, {}
        for figure, mean in (("p", priors.p), ("q", priors.q)):
            settings = BetaPool(_inside(mean), priors.strength)
            self.of_industry[figure] = by_group(_column(tasks, "industry"), *_counts(tasks, figure), settings)
            of_modes = expected(
                _column(modes, "task_id"), _column(modes, "actor_kind"), *_counts(modes, figure), settings
            )
            self.before[figure] = dict(zip(map(_mode_key, modes), of_modes, strict=True))

    def of_task(self, row: _Row) -> tuple[Estimate, Estimate]:
        """Returns p (all direct predecessors succeeded) and q (at least one of them failed) of a task."""
        p, q = (_drawn_to(self.of_industry[figure][row["industry"]], row, figure) for figure in ("p", "q"))
        if row["p_n"] == 0 and row["task_id"] in self.from_cases:
            p, unseen = self.from_cases[row["task_id"]]
            q = q if row["q_n"] else unseen
        return p, q

    def of_mode(self, row: _Row, task: tuple[Estimate, Estimate]) -> tuple[Estimate, Estimate]:
        """Returns p and q of one execution mode.

        A mode without evidence of its own gets its prior, or the estimate of its task where that comes from the
        outcomes of cases.
        """
        return self._of_mode(row, "p", task[0]), self._of_mode(row, "q", task[1])

    def _of_mode(self, row: _Row, figure: str, task: Estimate) -> Estimate:
        if task.basis == "estimated":
            return task
        own = _drawn_to(self.before[figure][_mode_key(row)], row, figure)
        return own if own.n or task.basis == "prior" else replace(own, basis="estimated")


def _column(rows: Sequence[_Row], name: str) -> list[Any]:
    return [row[name] for row in rows]


def _counts(rows: Sequence[_Row], figure: str) -> tuple[list[int], list[int]]:
    return _column(rows, f"{figure}_successes"), _column(rows, f"{figure}_n")


def _drawn_to(pool: BetaPool, row: _Row, figure: str) -> Estimate:
    return smoothed(row[f"{figure}_successes"], row[f"{figure}_n"], pool.mean, pool.strength)


def _mode_key(row: _Row) -> tuple[str | None, ...]:
    return row["task_id"], row["actor_kind"], row["model"], row["actor_group"]


def from_cases(
    sequences: Sequences, lacking: np.ndarray, tasks: Iterable[_Row], priors: Priors
) -> dict[str, tuple[Estimate, Estimate]]:
    """Estimates p and q of tasks from case outcomes when no step was judged.

    The result has, for each such task that occurs in a usable case, two estimates of basis `estimated` whose n counts
    the cases with it. `lacking` is a mask of the rows of `sequences` without a critical task, which are left out. The
    value of q is 0, because p is chosen for q = 0 (see `outcome_attribution`).
    """
    known = {row["task_id"]: row for row in tasks}
    unjudged = {task for task, row in known.items() if row["p_n"] == 0}
    names, numbers = sequences.tasks
    is_unjudged = np.array([name in unjudged for name in names], bool)
    usable = (
        (sequences.known > 0) & ~lacking & (np.bincount(sequences.row_of_step, is_unjudged[numbers], len(lacking)) > 0)
    )
    if not usable.any():
        return {}
    paths = sequences.paths(usable)
    counts = np.array([[known[name][c] if name in known else 0 for c in COUNTS] for name in names], float).T
    industry_of = {name: known[name]["industry"] if name in known else None for name in names}
    industries = {
        industry: i
        for i, industry in enumerate(sorted(set(industry_of.values()), key=lambda x: (x is not None, x or "")))
    }
    judged = Judged((counts[0], counts[1] - counts[0]), (counts[2], counts[3] - counts[2]))
    industry = np.array([industries[industry_of[name]] for name in names])
    found = attribute_outcomes(paths, judged, industry, Prior(_inside(priors.p), _inside(priors.q), priors.strength))
    cells = distinct(paths.row * paths.size + paths.tasks)
    cases = np.bincount(cells % paths.size, paths.cases[cells // paths.size], paths.size)
    return {
        name: (_covering(found.p[i], found.p_range, i, int(cases[i])), _covering(0.0, found.q_range, i, int(cases[i])))
        for i, name in enumerate(names)
        if is_unjudged[i] and cases[i]
    }


def _inside(chance: float) -> float:
    """Moves a probability off 0 and 1, which no evidence could change."""
    return min(max(chance, 0.001), 0.999)


def _covering(value: float, ends: tuple[np.ndarray, np.ndarray], i: int, n: int) -> Estimate:
    """Returns an estimate whose interval is widened to hold a value that another rule chose."""
    return Estimate(float(value), float(min(ends[0][i], value)), float(max(ends[1][i], value)), "estimated", n)
