"""Counts over all cases of one industry that did not fail: who did which task, what came first, begins and ends."""

from collections import Counter
from dataclasses import dataclass
from itertools import combinations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from opus_pipelines.lwm.dependency import Pair
from opus_pipelines.lwm.history_backend import first_occurrences
from opus_pipelines.lwm.retrieval.similar_cases import latest
from opus_pipelines.lwm.retrieval.snapshot_index import SnapshotIndex

_MOST_CASES = 5_000  # the latest ones


@dataclass(frozen=True)
class IndustryCounts:
    """The cases of an industry, by the tasks that they did.

    `rows` are those of the cases in `CaseRetriever.table`, `did` [cases, tasks] is boolean. `before` counts the cases
    that did the first task of a pair anywhere before the second, each at its first occurrence. `begun` and `ended`
    count the cases that began and ended with a task.
    """

    tasks: tuple[str, ...]
    rows: np.ndarray
    did: np.ndarray
    before: Counter[Pair]
    begun: Counter[str]
    ended: Counter[str]

    def share(self, goals: frozenset[str]) -> np.ndarray:
        """Return the share [tasks] of the cases with all goals that did a task, drawn to that of all by one case."""
        of_all = self.of_all
        with_goals = self.did[self.with_all(goals)]
        return np.asarray((with_goals.sum(0) + of_all) / (len(with_goals) + 1))

    @property
    def of_all(self) -> np.ndarray:
        """Return the share [tasks] of all cases that did a task, smoothed so that none is 0 or 1."""
        return np.asarray((self.did.sum(0) + 0.5) / (len(self.did) + 1))

    def with_all(self, goals: frozenset[str]) -> np.ndarray:
        """Return, for each case [cases], whether it did all goals."""
        if not goals <= set(self.tasks):
            return np.zeros(len(self.did), bool)
        return np.asarray(self.did[:, [n for n, task in enumerate(self.tasks) if task in goals]].all(1))


def counts_of(index: SnapshotIndex, industry: str | None) -> IndustryCounts:
    """Return the counts of an industry (None: of all history), made once for each index."""
    found = index.counts.get(industry)
    if not isinstance(found, IndustryCounts):
        found = index.counts[industry] = _counted(index, industry)
    return found


def _counted(index: SnapshotIndex, industry: str | None) -> IndustryCounts:
    table = index.cases.table
    rows = latest(table, index.cases.rows_of(industry), _MOST_CASES)
    failed = pc.equal(table["success"], False).fill_null(False).to_numpy()
    rows = rows[~failed[rows]]
    sequences = [tuple(tasks or ()) for tasks in table["tasks"].take(pa.array(rows)).to_pylist()]
    tasks = tuple(sorted({task for sequence in sequences for task in sequence} & index.graph.tasks.keys()))
    place = {task: n for n, task in enumerate(tasks)}
    did = np.zeros((len(rows), len(tasks)), bool)
    for row, sequence in enumerate(sequences):
        did[row, [place[task] for task in sequence if task in place]] = True
    before: Counter[Pair] = Counter()
    for first, n in Counter(map(first_occurrences, sequences)).items():
        for pair in combinations(first, 2):
            before[pair] += n
    filled = [sequence for sequence in sequences if sequence]
    return IndustryCounts(tasks, rows, did, before, Counter(s[0] for s in filled), Counter(s[-1] for s in filled))
