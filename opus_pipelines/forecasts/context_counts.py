"""How often each activity followed each context: the last d events, d up to ten, backed off with a discount.

The counts of a context are interpolated with those of the next shorter one by absolute discounting: Ney, Essen and
Kneser (1994), "On structuring probabilistic dependences in stochastic language modelling", equation 12. A context
begins at the start of its case at the earliest, and the start is part of it. Counts are made from events, or taken
from contexts that were counted before; events can be taken out of either.

The contexts of a snapshot (`wkg/contexts`) as context counts over the activities of one source. The contexts are of
tasks, over all sources; an activity stands for the task that it became. Where several activities of the source became
one task, the probability of the task is shared out by how often each of them was done.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from opus_pipelines.core.ids import digest
from opus_pipelines.core.schemas import ALIASES, CONTEXTS
from opus_pipelines.forecasts.traces import Trace, TraceTable, Vocabulary
from opus_pipelines.lake.layout import Lake, dataset_folder, read_table

MAX_DEPTH = 10
START = 0  # the symbol in front of the first event of a case


@dataclass(frozen=True)
class _Depth:
    """Counts of the contexts of one depth.

    `keys` [contexts]: sorted, (number of the shorter context) · `base` + the symbol before it; a context's number is
    its place here. `pair_next`, `pair_count` [pairs]: the sorted table of counts; `begin` [contexts + 1]: where the
    pairs of a context begin.
    """

    keys: np.ndarray
    base: int
    pair_next: np.ndarray
    pair_count: np.ndarray
    begin: np.ndarray
    discount: float

    @property
    def total(self) -> np.ndarray:
        """How often each context was seen [contexts]."""
        upto = np.append(0, self.pair_count.cumsum())
        return np.asarray(upto[self.begin[1:]] - upto[self.begin[:-1]])

    def without(self, number: np.ndarray, following: np.ndarray, kinds: int) -> "_Depth":
        """The counts less one for each event; `number` [events] is its context, `following` [events] what came next."""
        of_pair = np.repeat(np.arange(len(self.keys)), np.diff(self.begin))
        pairs, pair = of_pair * kinds + self.pair_next, number * kinds + following
        place = np.minimum(np.searchsorted(pairs, pair), len(pairs) - 1)
        count = self.pair_count - np.bincount(place[pairs[place] == pair], minlength=len(pairs))
        kept = count > 0
        begin = np.append(0, np.bincount(of_pair[kept], minlength=len(self.keys)).cumsum())
        return replace(self, pair_next=self.pair_next[kept], pair_count=count[kept], begin=begin)


@dataclass(frozen=True)
class CountedContexts:
    """Contexts of one depth that were counted before.

    `symbols` [pairs, depth]: the newest first, `START` where the case began; `following`, `count` [pairs]: what came
    next, and how often. Each context comes with all its shorter ones.
    """

    symbols: np.ndarray
    following: np.ndarray
    count: np.ndarray


class ContextCounts:
    """Counts of what followed each context, and the probabilities that they give.

    `symbol` [events] is what a context is made of, at least 1 (an activity, or an activity and who did it); `position`
    [events] the place of each event in its case, from 0; `following` [events] what came next, from 0 to `kinds` - 1, or
    -1 where nobody saw it: such an event counts in no context.
    """

    def __init__(
        self, symbol: np.ndarray, position: np.ndarray, following: np.ndarray, kinds: int, max_depth: int = MAX_DEPTH
    ) -> None:
        self.kinds = kinds
        base = int(symbol.max(initial=0)) + 2
        seen = following >= 0
        self._after = np.bincount(following[seen], minlength=kinds)
        self._depths: list[_Depth] = []
        context = np.zeros(len(symbol), np.int64)
        for depth in range(1, max_depth + 1):
            known = seen & (context >= 0) & (position + 2 >= depth)
            key = np.where(known, context * base + _before(symbol, position, depth), -1)
            keys, number = np.unique(key[known], return_inverse=True)
            if not len(keys):
                break
            context = np.full(len(symbol), -1, np.int64)
            context[known] = number
            self._depths.append(_counted(keys, base, number * kinds + following[known], np.ones(len(number)), kinds))

    @classmethod
    def of_counted(cls, levels: Sequence[CountedContexts], symbols: int, kinds: int) -> "ContextCounts":
        """The counts of contexts that were counted before, the shallowest level first; symbols are below `symbols`."""
        none = np.zeros(0, np.int64)
        found, base = cls(none, none, none, kinds), symbols + 1
        for level in levels:
            number = np.zeros(len(level.count), np.int64)
            for depth, known in enumerate(found._depths):
                number = np.searchsorted(known.keys, number * base + level.symbols[:, depth])
            keys, number = np.unique(number * base + level.symbols[:, -1], return_inverse=True)
            if not len(keys):
                break
            if not found._depths:
                inside = level.symbols[:, 0] != START
                found._after = np.bincount(level.following[inside], level.count[inside], kinds).astype(np.int64)
            found._depths.append(_counted(keys, base, number * kinds + level.following, level.count, kinds))
        return found

    def without(self, symbol: np.ndarray, position: np.ndarray, following: np.ndarray) -> "ContextCounts":
        """The same counts less those of these events; the columns are those that counted them."""
        none = np.zeros(0, np.int64)
        left = ContextCounts(none, none, none, self.kinds)
        seen = following >= 0
        left._after = np.maximum(0, self._after - np.bincount(following[seen], minlength=self.kinds))
        for depth, number in self._known(symbol, position):
            rows = seen & (number >= 0)
            left._depths.append(depth.without(number[rows], following[rows], self.kinds))
        return left

    def probabilities(self, symbol: np.ndarray, position: np.ndarray) -> np.ndarray:
        """[events, kinds] of what comes next after each event; each row sums to 1."""
        found = np.tile((self._after + 0.5) / (self._after + 0.5).sum(), (len(symbol), 1))
        for depth, number in self._known(symbol, position):
            rows = np.flatnonzero((number >= 0) & (depth.total[number] > 0))
            here = number[rows]
            sizes = depth.begin[here + 1] - depth.begin[here]
            total = depth.total[here].astype(float)
            found[rows] *= (depth.discount * sizes / total)[:, None]
            pairs = np.repeat(depth.begin[here] - np.append(0, sizes.cumsum()[:-1]), sizes) + np.arange(sizes.sum())
            found[np.repeat(rows, sizes), depth.pair_next[pairs]] += (
                depth.pair_count[pairs] - depth.discount
            ) / np.repeat(total, sizes)
        return found

    def evidence(self, symbol: np.ndarray, position: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """[events] the depth of the longest known context of each event, and how often that context was seen."""
        longest, seen = np.zeros(len(symbol)), np.zeros(len(symbol))
        for n, (depth, number) in enumerate(self._known(symbol, position), start=1):
            rows = (number >= 0) & (depth.total[number] > 0)
            longest[rows] = n
            seen[rows] = depth.total[number[rows]]
        return longest, seen

    def _known(self, symbol: np.ndarray, position: np.ndarray) -> Iterator[tuple[_Depth, np.ndarray]]:
        """By depth, the number of each event's context [events]; -1 where it was never seen."""
        context = np.zeros(len(symbol), np.int64)
        for n, depth in enumerate(self._depths, start=1):
            before = _before(symbol, position, n)
            possible = (context >= 0) & (position + 2 >= n) & (before < depth.base)
            key = np.where(possible, context * depth.base + before, -1)
            place = np.minimum(np.searchsorted(depth.keys, key), len(depth.keys) - 1)
            context = np.where(possible & (depth.keys[place] == key), place, -1)
            yield depth, context


def _before(symbol: np.ndarray, position: np.ndarray, depth: int) -> np.ndarray:
    """[events] the symbol `depth` - 1 events before each; `START` where the case began there."""
    shifted = np.concatenate([np.zeros(depth - 1, np.int64), symbol])[: len(symbol)]
    return np.where(position + 1 >= depth, shifted, START)


def _counted(keys: np.ndarray, base: int, pair: np.ndarray, count: np.ndarray, kinds: int) -> _Depth:
    pairs, place = np.unique(pair, return_inverse=True)
    counts = np.bincount(place, count, len(pairs)).astype(np.int64)
    once, twice = int((counts == 1).sum()), int((counts == 2).sum())
    begin = np.searchsorted(pairs // kinds, np.arange(len(keys) + 1))
    # Ney's estimate of the discount; one that would leave a pair nothing, or take nothing, serves no back-off.
    discount = float(np.clip(once / max(1.0, once + 2.0 * twice), 0.1, 0.95))
    return _Depth(keys, base, pairs % kinds, counts, begin, discount)


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
