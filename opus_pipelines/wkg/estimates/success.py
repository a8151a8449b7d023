"""p and q of tasks and of their ways: from steps of known outcome, else from how cases ended, else the prior.

A step counts towards q when a direct predecessor is known to have failed, else towards p (sql/wkg/ways.sql): a
predecessor of unknown outcome is taken as right, which can only make p smaller.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from opus_pipelines.settings import Priors
from opus_pipelines.wkg.estimates.blame import Judged, Prior, blame
from opus_pipelines.wkg.estimates.statistics import Estimate, smoothed
from opus_pipelines.wkg.sequences import Sequences

Row = Mapping[str, Any]
COUNTS = ("p_successes", "p_n", "q_successes", "q_n")


class SuccessModel:
    """Estimates from counts. `tasks` are rows with task_id, industry and COUNTS; the pooled rate of an industry, itself smoothed
    towards the settings' prior, is the prior of its tasks. `from_cases`: p and q of tasks, as `from_cases` below makes them."""

    def __init__(self, priors: Priors, tasks: Iterable[Row], from_cases: Mapping[str, tuple[Estimate, Estimate]]) -> None:
        self.priors = priors
        self.from_cases = from_cases
        sums: dict[str | None, list[int]] = defaultdict(lambda: [0] * len(COUNTS))
        for row in tasks:
            for place, name in enumerate(COUNTS):
                sums[row["industry"]][place] += row[name]
        self.p_prior = {industry: smoothed(s[0], s[1], priors.p, priors.strength).value for industry, s in sums.items()}
        self.q_prior = {industry: smoothed(s[2], s[3], priors.q, priors.strength).value for industry, s in sums.items()}

    def of_task(self, row: Row) -> tuple[Estimate, Estimate]:
        """P(it succeeds | all its direct predecessors did), P(it succeeds | at least one did not)."""
        p = smoothed(row["p_successes"], row["p_n"], self.p_prior[row["industry"]], self.priors.strength)
        q = smoothed(row["q_successes"], row["q_n"], self.q_prior[row["industry"]], self.priors.strength)
        if row["p_n"] == 0 and row["task_id"] in self.from_cases:
            p, unseen = self.from_cases[row["task_id"]]
            q = q if row["q_n"] else unseen
        return p, q

    def of_way(self, row: Row, task: tuple[Estimate, Estimate]) -> tuple[Estimate, Estimate]:
        """The same of one way, smoothed towards its task's."""
        return self._of_way(task[0], row["p_successes"], row["p_n"]), self._of_way(task[1], row["q_successes"], row["q_n"])

    def _of_way(self, task: Estimate, successes: int, n: int) -> Estimate:
        """Without evidence of its own it has the task's value; where other ways were judged, it may be as unlike them as a prior allows."""
        own = smoothed(successes, n, task.value, self.priors.strength)
        if n or task.basis == "prior":
            return own if n else task
        lower, upper = (own.lower, own.upper) if task.basis == "observed" else (task.lower, task.upper)
        return Estimate(task.value, min(lower, task.lower), max(upper, task.upper), "estimated", 0)


def from_cases(
    sequences: Sequences, lacking: np.ndarray, tasks: Iterable[Row], priors: Priors
) -> dict[str, tuple[Estimate, Estimate]]:
    """p and q of the tasks that no step judged, from the sequences that hold such a task: basis `estimated`, n the cases with it.

    `lacking`: rows of `sequences` without a needed task, which are left out. The value of q is 0, for p was chosen so (see `blame`).
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
    industries = {industry: i for i, industry in enumerate(sorted(set(of.values()), key=lambda x: (x is not None, x or "")))}
    judged = Judged((counts[0], counts[1] - counts[0]), (counts[2], counts[3] - counts[2]))
    industry = np.array([industries[of[name]] for name in names])
    found = blame(paths, judged, industry, Prior(_inside(priors.p), _inside(priors.q), priors.strength))
    cells = np.unique(paths.row * paths.size + paths.tasks)
    cases = np.bincount(cells % paths.size, paths.cases[cells // paths.size], paths.size)
    return {
        name: (_covering(found.p[i], found.p_range, i, int(cases[i])), _covering(0.0, found.q_range, i, int(cases[i])))
        for i, name in enumerate(names) if open_[i] and cases[i]
    }


def _inside(chance: float) -> float:
    """Off 0 and 1, which no evidence would move."""
    return min(max(chance, 0.001), 0.999)


def _covering(value: float, ends: tuple[np.ndarray, np.ndarray], i: int, n: int) -> Estimate:
    """The interval, drawn out to hold the value where that was chosen by another rule."""
    return Estimate(float(value), float(min(ends[0][i], value)), float(max(ends[1][i], value)), "estimated", n)
