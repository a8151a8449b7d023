"""p and q of tasks and of their ways: from steps of known outcome, else estimated from cases, else the prior.

A step counts towards q when a direct predecessor is known to have failed, else towards p (sql/wkg/ways.sql): a
predecessor of unknown outcome is taken as right, which can only make p smaller.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from opus_pipelines.settings import Priors
from opus_pipelines.wkg.sequences import Sequences
from opus_pipelines.wkg.statistics import Estimate, smoothed


@dataclass(frozen=True)
class CaseRecord:
    """How the cases with a task ended: known outcomes, successes, and their mean number of steps."""

    n: int
    successes: int
    mean_length: float
    prior: float


class SuccessModel:
    """Estimates from counts. `steps` are rows with industry, p_n, p_successes, q_n, q_successes; the pooled rate of an industry, itself
    smoothed towards the settings' prior, is the prior of its tasks."""

    def __init__(self, priors: Priors, steps: Iterable[Mapping[str, Any]], cases: Mapping[str, CaseRecord]) -> None:
        self.priors = priors
        self.cases = cases
        sums: dict[str | None, list[int]] = defaultdict(lambda: [0, 0, 0, 0])
        for row in steps:
            for place, name in enumerate(("p_successes", "p_n", "q_successes", "q_n")):
                sums[row["industry"]][place] += row[name]
        self.p_prior = {industry: smoothed(s[0], s[1], priors.p, priors.strength).value for industry, s in sums.items()}
        self.q_prior = {industry: smoothed(s[2], s[3], priors.q, priors.strength).value for industry, s in sums.items()}

    def p(self, task: str, industry: str | None, row: Mapping[str, Any]) -> Estimate:
        """P(task succeeds | all its direct predecessors did)."""
        if row["p_n"] == 0 and task in self.cases:
            record = self.cases[task]
            rate = smoothed(record.successes, record.n, record.prior, self.priors.strength, "estimated")
            return rate.power(1 / record.mean_length)
        return smoothed(row["p_successes"], row["p_n"], self.p_prior.get(industry, self.priors.p), self.priors.strength)

    def q(self, task: str, industry: str | None, row: Mapping[str, Any]) -> Estimate:
        """P(task succeeds | at least one direct predecessor did not).

        Where p was estimated from whole cases q is 0 by the same estimate: the cases' rate is the product of their steps' p only
        if no step mends what another broke.
        """
        if row["p_n"] == 0 and task in self.cases and row["q_n"] == 0:
            return Estimate(0.0, 0.0, 1.0, "estimated", 0)
        return smoothed(row["q_successes"], row["q_n"], self.q_prior.get(industry, self.priors.q), self.priors.strength)

    def of_way(self, task: Estimate, successes: int, n: int) -> Estimate:
        """The same of one way, smoothed towards its task's; without evidence of its own it is the task's."""
        if n == 0:
            return Estimate(task.value, task.lower, task.upper, "prior" if task.basis == "prior" else "estimated", 0)
        return smoothed(successes, n, task.value, self.priors.strength)


def case_records(sequences: Sequences, priors: Priors) -> dict[str, CaseRecord]:
    """For every task the cases of known outcome that hold it; their prior is their industry's rate, smoothed towards `priors.p`."""
    names, _ = sequences.tasks
    rows, tasks = sequences.presence
    weights = (sequences.known[rows], sequences.successes[rows], sequences.known[rows] * sequences.lengths[rows])
    known, successes, lengths = (np.bincount(tasks, w, len(names)) for w in weights)
    industry_of = dict(zip(tasks.tolist(), (sequences.industry[r] for r in rows.tolist()), strict=True))
    rates = _industry_rates(sequences, priors)
    return {
        name: CaseRecord(int(known[i]), int(successes[i]), float(lengths[i] / known[i]), rates[industry_of[i]])
        for i, name in enumerate(names) if known[i]
    }


def _industry_rates(sequences: Sequences, priors: Priors) -> dict[str | None, float]:
    sums: dict[str | None, list[int]] = defaultdict(lambda: [0, 0])
    for industry, known, successes in zip(sequences.industry, sequences.known.tolist(), sequences.successes.tolist(), strict=True):
        sums[industry][0] += successes
        sums[industry][1] += known
    return {industry: smoothed(s, n, priors.p, priors.strength).value for industry, (s, n) in sums.items()}
