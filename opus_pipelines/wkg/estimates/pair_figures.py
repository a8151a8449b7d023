"""How the success, time and cost of a task depend on the task directly before it: the dst_* columns of wkg/edges.

With u directly before v, the figure of v is γ·x̂ + (1 − γ)·x. x is the figure of v, and x̂ that of the pair alone. γ is
equation (2) of LWM over the occurrences of the pair whose figure is known, so a pair that was never executed has γ = 0
and the figure of v. This mixture is the project's own rule.

A pair may be done mostly in one execution mode. x̂ is therefore standardised (indirect standardisation): of p and q it
is x plus the mean difference between what was observed and what the execution modes behind it make expected; of times
and costs it is x times their ratio. One more occurrence at the expected figure is counted, so that x̂ is never 0 or 1.

λ is fitted for each task, industry and figure by cross-validation over five folds of the cases: the likelihood of the
held-out cases is binomial for p and q, and that of an exponential distribution for times and costs, which needs their
sum alone. Some tasks depend on the task before them and others do not, so each task has a λ of its own, 0 among them;
γ is averaged over what the held-out cases and the other tasks of the industry say of it (empirical Bayes). Where that
is no better than the figures of tasks by more than one standard error over the folds, every γ is 0.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from opus_pipelines.wkg.estimates.aggregate_columns import FOLDS, KEYS, MODE_COLUMNS, summed

ROUNDS = 50  # of expectation maximisation
LAMBDAS = (0.0, *(2.0**-k for k in range(14, -1, -1)))
_LEAST = 1e-4  # of a probability and of a ratio, so that no likelihood is infinite
_Floats = np.ndarray
_Row = dict[str, Any]
_ByMode = Mapping[tuple[str | None, ...], float | None]


@dataclass(frozen=True)
class _Figure:
    """A figure of tasks: its name on edges, its column of tasks, and its sum with the integers in one unit of it."""

    name: str
    column: str
    total: str
    unit: float = 1.0

    @property
    def is_rate(self) -> bool:
        return self.total.endswith("_successes")


FIGURES = (
    _Figure("p", "p", "p_successes"),
    _Figure("q", "q", "q_successes"),
    _Figure("duration", "duration_ms_mean", "duration_sum", 1_000.0),
    _Figure("cost", "cost_usd_mean", "cost_sum", 1_000_000.0),
)


@dataclass(frozen=True)
class Cells:
    """Occurrences `n`, their total and what was expected of it, each (edges, folds), in the unit of the figure."""

    n: _Floats
    total: _Floats
    expected: _Floats

    def without(self, fold: int) -> "Cells":
        """Returns the occurrences of all other folds, (edges,)."""
        return Cells(*(part.sum(1) - part[:, fold] for part in (self.n, self.total, self.expected)))

    def only(self, fold: int) -> "Cells":
        """Returns the occurrences of one fold, (edges,)."""
        return Cells(*(part[:, fold] for part in (self.n, self.total, self.expected)))

    @property
    def whole(self) -> "Cells":
        """The occurrences of all folds, (edges,)."""
        return Cells(*(part.sum(1) for part in (self.n, self.total, self.expected)))


def effects(cells: Cells, is_rate: bool) -> _Floats:
    """Returns x̂ − x of each edge for a rate, x̂ / x − 1 for a time or a cost; 0 where nothing is known."""
    if is_rate:
        return (cells.total - cells.expected) / (cells.n + 1)
    ratio = np.divide(cells.total, cells.expected, out=np.ones_like(cells.total), where=cells.expected > 0)
    return cells.n * (ratio - 1) / (cells.n + 1)


def log_likelihood(cells: Cells, effect: _Floats, is_rate: bool) -> _Floats:
    """Returns the log-likelihood of the occurrences of each edge under this effect, up to a constant."""
    n, known = cells.n, cells.n > 0
    if is_rate:
        share = np.divide(cells.expected, n, out=np.full_like(n, 0.5), where=known)
        chance = np.clip(share + effect, _LEAST, 1 - _LEAST)
        return np.where(known, cells.total * np.log(chance) + (n - cells.total) * np.log1p(-chance), 0.0)
    known = known & (cells.expected > 0)
    ratio = np.divide(cells.total, cells.expected, out=np.zeros_like(n), where=known)
    factor = np.maximum(1 + effect, _LEAST)
    return np.where(known, -n * (np.log(factor) + ratio / factor), 0.0)


def fitted_gammas(cells: Cells, task_of: np.ndarray, is_rate: bool) -> _Floats:
    """Returns γ of each edge of one industry, (edges,): equation (2) of LWM, averaged over the λ of its later task.

    `task_of` numbers the later tasks, (edges,). All γ are 0 where they gain less than one standard error on the
    held-out folds.
    """
    parts = [(cells.without(fold), cells.only(fold)) for fold in range(FOLDS)]
    gains = np.stack([_gains(seen, asked, [_gamma(x, seen.n) for x in LAMBDAS], is_rate) for seen, asked in parts])
    by_task = np.stack([[np.bincount(task_of, row) for row in fold] for fold in gains])

    def mixed(n: _Floats, of_task: _Floats) -> _Floats:
        weights = lambda_weights(of_task)[:, task_of]
        return np.sum([weight * _gamma(x, n) for weight, x in zip(weights, LAMBDAS, strict=True)], axis=0)

    whole = by_task.sum(0)
    # The folds that choose the λ of a task do not judge it.
    by_fold = [
        _gains(seen, asked, [mixed(seen.n, whole - own)], is_rate).sum()
        for (seen, asked), own in zip(parts, by_task, strict=True)
    ]
    is_better = np.mean(by_fold) > np.std(by_fold, ddof=1) / np.sqrt(FOLDS)
    return mixed(cells.whole.n, whole) if is_better else np.zeros(len(task_of))


def _gains(seen: Cells, asked: Cells, gammas: Sequence[_Floats], is_rate: bool) -> _Floats:
    """Returns by how much the log-likelihood of what is asked grows with each γ, (gammas, edges)."""
    effect, none = effects(seen, is_rate), log_likelihood(asked, np.zeros_like(seen.n), is_rate)
    return np.stack([log_likelihood(asked, gamma * effect, is_rate) - none for gamma in gammas])


def lambda_weights(gains: _Floats) -> _Floats:
    """Returns the probability of each λ for each task, (lambdas, tasks), from the gains on held-out cases.

    How frequent each λ is among the tasks is fitted to all of them (expectation maximisation): a task with few
    outcomes has the λ of the others.
    """
    likelihood = np.exp(gains - gains.max(0))
    shares = np.full((len(gains), 1), 1 / len(gains))
    for _ in range(ROUNDS):
        weights = shares * likelihood
        weights /= weights.sum(0)
        shares = weights.mean(1, keepdims=True)
    return np.asarray(weights)


def _gamma(lambda_: float, n: _Floats) -> _Floats:
    return np.asarray(-np.expm1(-lambda_ * n))


def pair_figures(pairs: pa.Table, tasks: Sequence[_Row], modes: Sequence[_Row]) -> dict[tuple[str, str], _Row]:
    """Returns the dst_* columns of wkg/edges by (src, dst).

    `pairs`: the aggregate of all sources, not added up yet. `tasks` and `modes`: rows of wkg/tasks and of
    wkg/task_implementations. An edge is of the first of its later task's industries.
    """
    rows = summed(pairs, KEYS["pairs"])
    if not rows.num_rows:
        return {}
    keys = list(zip(rows["src"].to_pylist(), rows["dst"].to_pylist(), strict=True))
    edges = {key: i for i, key in enumerate(dict.fromkeys(keys))}
    place = np.array([edges[key] for key in keys]) * FOLDS + rows["fold"].to_numpy()
    of_task = {row["task_id"]: row for row in tasks}
    industries = [(of_task[dst]["industries"] or [""])[0] for _, dst in edges]
    found: dict[tuple[str, str], _Row] = {key: {} for key in edges}
    for figure in FIGURES:
        cells = _cells(rows, figure, place, len(edges), _by_mode(modes, figure.column))
        gammas = _gammas(cells, figure, list(edges), industries)
        effect, whole = effects(cells.whole, figure.is_rate), cells.whole
        for i, key in enumerate(edges):
            found[key] |= _columns(figure, whole, i, (gammas[i], effect[i]), of_task[key[1]][figure.column])
    return found


def _by_mode(modes: Sequence[_Row], column: str) -> _ByMode:
    return {(row["task_id"], *(row[c] for c in MODE_COLUMNS)): row[column] for row in modes}


def _cells(rows: pa.Table, figure: _Figure, place: np.ndarray, edges: int, of_mode: _ByMode) -> Cells:
    """Adds up the rows by edge and fold; rows of a mode whose figure is unknown are left out."""
    names = zip(*(rows[c].to_pylist() for c in ("dst", *MODE_COLUMNS)), strict=True)
    figures = [of_mode.get(name) for name in names]
    known = np.array([x is not None for x in figures])
    mean = np.array([x or 0.0 for x in figures])
    n = np.where(known, rows[f"{figure.name}_n"].to_numpy().astype(float), 0.0)
    total = np.array([float(x) for x in rows[figure.total].to_pylist()]) / figure.unit

    def added(values: _Floats) -> _Floats:
        return np.bincount(place, values, edges * FOLDS).reshape(edges, FOLDS)

    return Cells(added(n), added(np.where(known, total, 0.0)), added(n * mean))


def _gammas(cells: Cells, figure: _Figure, edges: Sequence[tuple[str, str]], industries: Sequence[str]) -> _Floats:
    """Returns γ of each edge, (edges,), fitted for each industry by itself."""
    names, numbers = np.array(industries), {dst: n for n, dst in enumerate(dict.fromkeys(dst for _, dst in edges))}
    tasks, found = np.array([numbers[dst] for _, dst in edges]), np.zeros(len(names))
    for name in sorted(set(industries)):
        of = names == name
        own = Cells(cells.n[of], cells.total[of], cells.expected[of])
        found[of] = fitted_gammas(own, np.unique(tasks[of], return_inverse=True)[1], figure.is_rate)
    return found


def _columns(figure: _Figure, whole: Cells, i: int, shift: tuple[float, float], of_task: float | None) -> _Row:
    """Returns the columns of one figure of one edge; `shift` is its γ and its effect."""
    n, total, (gamma, effect), name = int(whole.n[i]), float(whole.total[i]), map(float, shift), f"dst_{figure.name}"
    counted: _Row = {f"{name}_n": n, f"{name}_gamma": gamma}
    if figure.is_rate:
        counted |= {f"{name}_successes": round(total)}
        drawn = None if of_task is None else min(1.0, max(0.0, of_task + gamma * effect))
        return counted | {name: drawn if n else None}
    shown = f"dst_{figure.column}"
    observed = shown.removesuffix("_mean") + "_observed"
    drawn = None if of_task is None else of_task * (1 + gamma * effect)
    return counted | {shown: drawn if n else None, observed: total / n if n else None}
