"""The contexts of a snapshot (`wkg/contexts`) as context counts over the activities of one source.

The contexts are of tasks, over all sources; an activity stands for the task that it became. Where several activities of
the source became one task, the probability of the task is shared out by how often each of them was done.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from opus_pipelines.core.ids import digest
from opus_pipelines.core.schemas import ALIASES, CONTEXTS
from opus_pipelines.forecasts.context_counts import START, ContextCounts, CountedContexts
from opus_pipelines.forecasts.traces import Trace, TraceTable, Vocabulary
from opus_pipelines.lake.layout import Lake, dataset_folder, read_table


class NextCounts(Protocol):
    """What the last activities of a case say of the next one."""

    def probabilities(self, table: TraceTable) -> np.ndarray:
        """[events, activities] of what comes next after each event; each row sums to 1."""

    def without(self, table: TraceTable, following: np.ndarray) -> "NextCounts":
        """The same counts less those of the events of `table`; `following` [events], -1 for an event to keep."""


@dataclass(frozen=True)
class LakeContexts:
    """Contexts of a snapshot, and the task that each activity of one source became.

    `not_learnt` are ended cases of the source that must teach nothing: those that are to be forecast.
    """

    rows: pa.Table
    task_of: dict[str, str]
    not_learnt: tuple[Trace, ...] = ()

    @classmethod
    def of(cls, lake: Lake, source: str) -> "LakeContexts | None":
        """Those of the current snapshot; None where an earlier version made it, which kept no contexts."""
        folder = lake.snapshot_folder(lake.required_snapshot())
        rows = read_table(CONTEXTS, dataset_folder(folder, CONTEXTS))
        aliases = read_table(ALIASES, dataset_folder(folder, ALIASES), columns=["source", "task_key", "task_id"])
        own = aliases.filter(pc.equal(aliases["source"], source))
        task_of = dict(zip(own["task_key"].to_pylist(), own["task_id"].to_pylist(), strict=True))
        return cls(rows, task_of) if rows.num_rows and task_of else None

    @property
    def content_hash(self) -> str:
        """A hash of what forecasts of the source use: the task of each activity, and the contexts of these tasks alone.

        So a snapshot with other contexts of other tasks changes no forecast of this source.
        """
        known = pa.array(sorted(set(self.task_of.values())), pa.string())
        lists = self.rows["tasks"].combine_chunks()
        foreign = np.bincount(
            pc.list_parent_indices(lists).to_numpy(),
            pc.invert(pc.is_in(pc.list_flatten(lists), known)).to_numpy(zero_copy_only=False),
            minlength=len(lists),
        )
        following = self.rows["next_task"]
        own = pc.or_(pc.is_null(following), pc.is_in(following, known)).to_numpy() & (foreign == 0)
        rows = self.rows.filter(pa.array(own)).select(["context_id", "next_task", "transitions"])
        deepest = pc.max(self.rows["depth"]).as_py()
        return digest(deepest, sorted(self.task_of.items()), [rows[name].to_pylist() for name in rows.schema.names])

    def counts(self, vocabulary: Vocabulary, table: TraceTable) -> "TaskCounts | None":
        """The counts of the tasks that the activities of `vocabulary` became.

        The table holds the cases of the source that are learnt from: an activity is done as often as in it, and its
        open cases have not ended. None where the snapshot does not know one of the activities.
        """
        tasks = [self.task_of.get(name) for name in vocabulary.activities[1:]]
        if None in tasks:
            return None
        names = sorted({task for task in tasks if task is not None})
        number = {task: n for n, task in enumerate(names, start=1)}
        of_activity = np.array([0, *(number[task] for task in tasks if task is not None), len(names) + 1])
        done = np.bincount(table.code, minlength=len(of_activity))[: len(of_activity) - 1].astype(float)
        done[0] = 1.0
        of_task = np.bincount(of_activity[:-1], done)
        share = done / np.maximum(1.0, of_task[of_activity[:-1]])
        counts = ContextCounts.of_counted(self._levels(names), len(names) + 1, len(names) + 1)
        found = TaskCounts(counts, of_activity, share)
        # The lake counts the end of an open case, and all events before the history shows the ends of cases.
        counted = np.where(table.following < 0, 0, table.following)
        found = found.without(table, np.where(table.taught < 0, counted, -1))
        if not self.not_learnt:
            return found
        unlearnt = vocabulary.table(self.not_learnt)
        return found.without(unlearnt, unlearnt.following)

    def _levels(self, names: Sequence[str]) -> list[CountedContexts]:
        """The contexts of these tasks alone."""
        known = pa.array(names, pa.string())
        found = []
        for depth in range(1, (pc.max(self.rows["depth"]).as_py() or 0) + 1):
            rows = self.rows.filter(pc.equal(self.rows["depth"], depth))
            begins = rows["at_start"].to_numpy()
            length = depth - begins.astype(np.int64)
            steps = pc.index_in(pc.list_flatten(rows["tasks"]).combine_chunks(), known).fill_null(-2).to_numpy()
            symbols = np.full((len(rows), depth), START, np.int64)
            row = np.repeat(np.arange(len(rows)), length)
            place = np.arange(len(steps)) - np.repeat(np.cumsum(length) - length, length)
            symbols[row, length[row] - 1 - place] = steps + 1
            ended = rows["next_task"].is_null().to_numpy()
            following = np.where(ended, 0, pc.index_in(rows["next_task"], known).fill_null(-2).to_numpy() + 1)
            own = (symbols >= 0).all(axis=1) & (following >= 0)
            found.append(CountedContexts(symbols[own], following[own], rows["transitions"].to_numpy()[own]))
        return found


@dataclass(frozen=True)
class TaskCounts:
    """Context counts of tasks, asked by activities. `of_activity` [activities + 1]: the task of each, the last one of
    those unknown; `share` [activities]: of its task's probability.
    """

    tasks: ContextCounts
    of_activity: np.ndarray
    share: np.ndarray

    def probabilities(self, table: TraceTable) -> np.ndarray:
        """[events, activities] of what comes next after each event; each row sums to 1."""
        found = self.tasks.probabilities(self.of_activity[table.code], table.position)
        return found[:, self.of_activity[:-1]] * self.share

    def without(self, table: TraceTable, following: np.ndarray) -> "TaskCounts":
        """The same counts less those of the events of `table`; `following` [events], -1 for an event to keep."""
        after = np.where(following < 0, -1, self.of_activity[following])
        return TaskCounts(
            self.tasks.without(self.of_activity[table.code], table.position, after), self.of_activity, self.share
        )
