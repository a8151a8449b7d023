"""Estimates p and q of tasks and of their execution modes.

The evidence is the outcomes of steps, else the outcomes of cases, else the prior. Both estimates are drawn towards
those of other tasks and other execution modes by beta pooling, as far as these resemble each other. A step counts for q
when a direct predecessor is known to have failed, else for p (sql/wkg/ways.sql). A predecessor of unknown outcome
counts as right, which can only lower p.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from opus_pipelines.core.settings import Priors
from opus_pipelines.core.statistics import Estimate, smoothed
from opus_pipelines.history.records.arrow_arrays import distinct
from opus_pipelines.wkg.estimates.beta_pooling import BetaPool, by_group, expected
from opus_pipelines.wkg.estimates.case_sequences import Sequences
from opus_pipelines.wkg.estimates.outcome_attribution import Judged, Prior, attribute_outcomes

Row = Mapping[str, Any]
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
        tasks: Iterable[Row],
        modes: Iterable[Row],
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

    def of_task(self, row: Row) -> tuple[Estimate, Estimate]:
        """Returns p (all direct predecessors succeeded) and q (at least one of them failed) of a task."""
        p, q = (_drawn_to(self.of_industry[figure][row["industry"]], row, figure) for figure in ("p", "q"))
        if row["p_n"] == 0 and row["task_id"] in self.from_cases:
            p, unseen = self.from_cases[row["task_id"]]
            q = q if row["q_n"] else unseen
        return p, q

    def of_mode(self, row: Row, task: tuple[Estimate, Estimate]) -> tuple[Estimate, Estimate]:
        """Returns p and q of one execution mode.

        A mode without evidence of its own gets its prior, or the estimate of its task where that comes from the
        outcomes of cases.
        """
        return self._of_mode(row, "p", task[0]), self._of_mode(row, "q", task[1])

    def _of_mode(self, row: Row, figure: str, task: Estimate) -> Estimate:
        if task.basis == "estimated":
            return task
        own = _drawn_to(self.before[figure][_mode_key(row)], row, figure)
        return own if own.n or task.basis == "prior" else replace(own, basis="estimated")


def _column(rows: Sequence[Row], name: str) -> list[Any]:
    return [row[name] for row in rows]


def _counts(rows: Sequence[Row], figure: str) -> tuple[list[int], list[int]]:
    return _column(rows, f"{figure}_successes"), _column(rows, f"{figure}_n")


def _drawn_to(pool: BetaPool, row: Row, figure: str) -> Estimate:
    return smoothed(row[f"{figure}_successes"], row[f"{figure}_n"], pool.mean, pool.strength)


def _mode_key(row: Row) -> tuple[str | None, ...]:
    return row["task_id"], row["actor_kind"], row["model"], row["actor_group"]


def from_cases(
    sequences: Sequences, lacking: np.ndarray, tasks: Iterable[Row], priors: Priors
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
