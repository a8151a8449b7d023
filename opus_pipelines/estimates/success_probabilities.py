"""p and q of tasks and of their ways: from steps of known outcome, else from how cases ended, else the prior.

Both are drawn towards what other tasks, and other ways, are like (`pools`), as far as those are like one another. A
step counts towards q when a direct predecessor is known to have failed, else towards p (sql/wkg/ways.sql): a
predecessor of unknown outcome is taken as right, which can only make p smaller.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from opus_pipelines.core.settings import Priors
from opus_pipelines.core.statistics import Estimate, smoothed
from opus_pipelines.estimates.beta_pooling import BetaPool, by_group, expected
from opus_pipelines.estimates.case_sequences import Sequences
from opus_pipelines.estimates.outcome_attribution import Judged, Prior, attribute_outcomes

Row = Mapping[str, Any]
COUNTS = ("p_successes", "p_n", "q_successes", "q_n")


class SuccessModel:
    """Estimates from counts. `tasks` are rows with task_id, industry and COUNTS, `ways` have actor_kind, model and
    actor_group beside, in the order of their keys.

    The prior of a task is the pool of its industry's tasks, that of an industry the pool of all others, and theirs the
    settings'; the prior of a way comes from those of its kind of actor and from the other ways of its task.
    `from_cases`: p and q of tasks, as `from_cases` below makes them.
    """

    def __init__(
        self,
        priors: Priors,
        tasks: Iterable[Row],
        ways: Iterable[Row],
        from_cases: Mapping[str, tuple[Estimate, Estimate]],
    ) -> None:
        self.from_cases = from_cases
        tasks, ways = list(tasks), list(ways)
        self.of_industry, self.before = {}, {}
        for figure, mean in (("p", priors.p), ("q", priors.q)):
            settings = BetaPool(_inside(mean), priors.strength)
            self.of_industry[figure] = by_group(_column(tasks, "industry"), *_counts(tasks, figure), settings)
            of_ways = expected(_column(ways, "task_id"), _column(ways, "actor_kind"), *_counts(ways, figure), settings)
            self.before[figure] = dict(zip(map(_way, ways), of_ways, strict=True))

    def of_task(self, row: Row) -> tuple[Estimate, Estimate]:
        """P(it succeeds | all its direct predecessors did), P(it succeeds | at least one did not)."""
        p, q = (_drawn_to(self.of_industry[figure][row["industry"]], row, figure) for figure in ("p", "q"))
        if row["p_n"] == 0 and row["task_id"] in self.from_cases:
            p, unseen = self.from_cases[row["task_id"]]
            q = q if row["q_n"] else unseen
        return p, q

    def of_way(self, row: Row, task: tuple[Estimate, Estimate]) -> tuple[Estimate, Estimate]:
        """The same of one way. Without evidence of its own it is as its kind of actor and the other ways of its task
        let expect, or has its task's where how cases ended tells it.
        """
        return self._of_way(row, "p", task[0]), self._of_way(row, "q", task[1])

    def _of_way(self, row: Row, figure: str, task: Estimate) -> Estimate:
        if task.basis == "estimated":
            return task
        own = _drawn_to(self.before[figure][_way(row)], row, figure)
        return own if own.n or task.basis == "prior" else replace(own, basis="estimated")


def _column(rows: Sequence[Row], name: str) -> list[Any]:
    return [row[name] for row in rows]


def _counts(rows: Sequence[Row], figure: str) -> tuple[list[int], list[int]]:
    return _column(rows, f"{figure}_successes"), _column(rows, f"{figure}_n")


def _drawn_to(pool: BetaPool, row: Row, figure: str) -> Estimate:
    return smoothed(row[f"{figure}_successes"], row[f"{figure}_n"], pool.mean, pool.strength)


def _way(row: Row) -> tuple[str | None, ...]:
    return row["task_id"], row["actor_kind"], row["model"], row["actor_group"]


def from_cases(
    sequences: Sequences, lacking: np.ndarray, tasks: Iterable[Row], priors: Priors
) -> dict[str, tuple[Estimate, Estimate]]:
    """p and q of the tasks that no step judged, from the sequences that hold such a task: basis `estimated`, n the
    cases with it.

    `lacking`: rows of `sequences` without a needed task, which are left out. The value of q is 0, for p was chosen so
    (see `blame`).
    """
    known = {row["task_id"]: row for row in tasks}
    unjudged = {task for task, row in known.items() if row["p_n"] == 0}
    names, numbers = sequences.tasks
    open_ = np.array([name in unjudged for name in names], bool)
    tells = (sequences.known > 0) & ~lacking & (np.bincount(sequences.row_of_step, open_[numbers], len(lacking)) > 0)
    if not tells.any():
        return {}
    paths = sequences.paths(tells)
    counts = np.array([[known[name][c] if name in known else 0 for c in COUNTS] for name in names], float).T
    of = {name: known[name]["industry"] if name in known else None for name in names}
    industries = {
        industry: i for i, industry in enumerate(sorted(set(of.values()), key=lambda x: (x is not None, x or "")))
    }
    judged = Judged((counts[0], counts[1] - counts[0]), (counts[2], counts[3] - counts[2]))
    industry = np.array([industries[of[name]] for name in names])
    found = attribute_outcomes(paths, judged, industry, Prior(_inside(priors.p), _inside(priors.q), priors.strength))
    cells = np.unique(paths.row * paths.size + paths.tasks)
    cases = np.bincount(cells % paths.size, paths.cases[cells // paths.size], paths.size)
    return {
        name: (_covering(found.p[i], found.p_range, i, int(cases[i])), _covering(0.0, found.q_range, i, int(cases[i])))
        for i, name in enumerate(names)
        if open_[i] and cases[i]
    }


def _inside(chance: float) -> float:
    """Off 0 and 1, which no evidence would move."""
    return min(max(chance, 0.001), 0.999)


def _covering(value: float, ends: tuple[np.ndarray, np.ndarray], i: int, n: int) -> Estimate:
    """The interval, drawn out to hold the value where that was chosen by another rule."""
    return Estimate(float(value), float(min(ends[0][i], value)), float(max(ends[1][i], value)), "estimated", n)
