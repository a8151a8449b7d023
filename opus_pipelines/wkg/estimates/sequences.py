"""Distinct task sequences as index arrays: the variants of all sources, figures of edges and cases, and deep contexts.

How often each task, or the end of the case, followed each context: the last one to ten steps before it. The counts
come from the task sequences of every source, which are exact, so that those of several sources are those of mining
them as one. Only what is left after adding up is pruned: a context of two or more steps is kept where it was seen at
least `LEAST_SEEN` times, and that number is doubled until the contexts fit into `MOST_ROWS` rows.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from opus_pipelines.core.ids import canonical, make_ids
from opus_pipelines.core.schemas import CONTEXTS, VARIANTS
from opus_pipelines.history.records.arrow_arrays import consecutive, distinct, distinct_counts, numbered
from opus_pipelines.wkg.estimates.aggregate_columns import summed
from opus_pipelines.wkg.estimates.outcome_attribution import Paths


def text_lists(names: Sequence[str], numbers: np.ndarray, lengths: np.ndarray) -> pa.ListArray:
    """Returns lists of these lengths with the names of the numbers, which stand one list after the other."""
    ends = pa.array(np.append(0, np.cumsum(lengths)), pa.int32())
    return pa.ListArray.from_arrays(ends, pa.array(names, pa.string()).take(pa.array(numbers)))


def json_lists(names: Sequence[str], numbers: np.ndarray, lengths: np.ndarray) -> list[str]:
    """Returns `core.ids.canonical` of each of the lists that `text_lists` returns."""
    joined = pc.binary_join(text_lists([canonical(name) for name in names], numbers, lengths), ",")
    return [f"[{text}]" for text in joined.to_pylist()]


@dataclass(frozen=True)
class Sequences:
    """The rows of the `variants` aggregate as arrays.

    `rows` may hold the same sequence several times, for several sources, clients or kinds of case.
    """

    rows: pa.Table

    @cached_property
    def industry(self) -> list[str | None]:
        """The industry of each row."""
        return self.rows["industry"].to_pylist()

    @cached_property
    def client(self) -> list[str | None]:
        """The client of each row."""
        return self.rows["client"].to_pylist()

    @cached_property
    def kind(self) -> list[str | None]:
        """The kind of case of each row."""
        return self.rows["kind_of_case"].to_pylist()

    @cached_property
    def known(self) -> np.ndarray:
        """The implementations of each row with a known outcome whose expected outcome was success."""
        return self.rows["success_known"].to_numpy()

    @cached_property
    def successes(self) -> np.ndarray:
        """The number of successes among `known`."""
        return self.rows["successes"].to_numpy()

    @cached_property
    def lengths(self) -> np.ndarray:
        """The number of steps in the sequence of each row."""
        return pc.list_value_length(self.rows["tasks"]).to_numpy().astype(np.int64)

    @cached_property
    def tasks(self) -> tuple[list[str], np.ndarray]:
        """The sorted task ids, and the task numbers (int64) of all sequences, one sequence after the other."""
        flat = pc.list_flatten(self.rows["tasks"]).combine_chunks()
        names = sorted(pc.unique(flat).to_pylist())
        return names, pc.index_in(flat, pa.array(names, pa.string())).to_numpy().astype(np.int64)

    @cached_property
    def row_of_step(self) -> np.ndarray:
        """The row of each of those task numbers."""
        return np.repeat(np.arange(len(self.lengths)), self.lengths)

    @cached_property
    def variant_ids(self) -> list[str]:
        """Hash of each row's sequence."""
        return make_ids("v", json_lists(self.tasks[0], self.tasks[1], self.lengths))

    @cached_property
    def variants(self) -> np.ndarray:
        """The number of each row's sequence: the same for rows with the same sequence."""
        numbers: np.ndarray = pa.array(self.variant_ids, pa.string()).dictionary_encode().indices.to_numpy()
        return numbers.astype(np.int64)

    @cached_property
    def presence(self) -> tuple[np.ndarray, np.ndarray]:
        """(row, task number) of every task that a row's sequence holds, once each, in order."""
        names, numbers = self.tasks
        cells = distinct(self.row_of_step * max(1, len(names)) + numbers)
        return np.divmod(cells, max(1, len(names)))

    @cached_property
    def rows_with(self) -> list[np.ndarray]:
        """The rows whose sequence holds a task, for each task number."""
        row, task = self.presence
        order = np.argsort(task, kind="stable")
        return np.split(row[order], np.searchsorted(task[order], np.arange(1, len(self.tasks[0]))))

    def paths(self, rows: np.ndarray) -> Paths:
        """Returns the distinct sequences of the masked rows in order of their ids.

        Each has its known cases and their successes.
        """
        chosen = np.flatnonzero(rows)
        ids, first, place = np.unique(np.array(self.variant_ids)[chosen], return_index=True, return_inverse=True)
        known, successes = (
            np.bincount(place, values[chosen], len(ids)).astype(np.int64) for values in (self.known, self.successes)
        )
        lengths, starts = self.lengths[chosen[first]], (np.cumsum(self.lengths) - self.lengths)[chosen[first]]
        at = np.repeat(starts - (np.cumsum(lengths) - lengths), lengths) + np.arange(lengths.sum())
        return Paths.of(self.tasks[1][at], lengths, known, successes, len(self.tasks[0]))

    def edge_variants(self) -> dict[tuple[str, str], int]:
        """Returns for every edge the number of distinct task sequences with it.

        Steps follow each other by position, or by `predecessors` where a row states them.
        """
        names, numbers = self.tasks
        before, after = consecutive(self.lengths, self._predecessors)
        variant, size = self.variants[self.row_of_step[after]], max(1, len(names))
        edges, counts = distinct_counts(
            distinct((variant * size + numbers[before]) * size + numbers[after]) % (size * size)
        )
        sources, targets = (part.tolist() for part in np.divmod(edges, size))
        return {
            (names[src], names[dst]): count for src, dst, count in zip(sources, targets, counts.tolist(), strict=True)
        }

    @property
    def _predecessors(self) -> pa.ListArray:
        """What each step states of its predecessors; NULL for each step of a row that states none."""
        column = self.rows["predecessors"].combine_chunks()
        stated = np.asarray(pc.is_valid(column))
        if not stated.any():
            return pa.nulls(len(self.row_of_step), column.type.value_type)
        of_step = np.flatnonzero(stated[self.row_of_step])
        place = np.full(len(self.row_of_step), -1)
        place[of_step] = np.arange(len(of_step))
        return pc.list_flatten(column).take(pa.array(place, mask=place < 0))

    def table(self) -> pa.Table:
        """wkg/variants."""
        keys = ("industry", "client", "variant_id")
        rows = self.rows.append_column("variant_id", pa.array(self.variant_ids, pa.string()))
        counted = summed(rows.select([*keys, "implementations", "success_known", "successes"]), keys)
        first = pc.index_in(counted["variant_id"], rows["variant_id"])
        return counted.append_column("tasks", rows["tasks"].take(first)).select(VARIANTS.schema.names)


DEEPEST = 10  # steps of a context, the beginning of the case counted as one
LEAST_SEEN = 3  # times that a context of two or more steps was seen
MOST_CONTEXTS = 200_000  # of wkg/contexts: some 10 MB
_BEGINNING = 0  # the symbol in front of a case, and as what follows the end


@dataclass(frozen=True)
class _Level:
    """The contexts of one depth. `last` [contexts]: place of a step that ends each; `context`, `following`, `count`
    [pairs]; `seen` [pairs]: how often the context of each pair was seen.
    """

    last: np.ndarray
    context: np.ndarray
    following: np.ndarray
    count: np.ndarray
    seen: np.ndarray


def context_table(sequences: Sequences, most_rows: int = MOST_CONTEXTS) -> pa.Table:
    """wkg/contexts of these sequences."""
    names, numbers = sequences.tasks
    symbols, place, following, weight = _steps(sequences, numbers)
    levels = list(_levels(symbols, place, following, weight))
    least = LEAST_SEEN
    while sum(int(_kept(level, depth, least).sum()) for depth, level in enumerate(levels, 1)) > most_rows:
        least *= 2
    tables = [_rows(level, depth, least, symbols, names) for depth, level in enumerate(levels, 1)]
    return pa.concat_tables([CONTEXTS.schema.empty_table(), *tables])


def _steps(sequences: Sequences, numbers: np.ndarray) -> tuple[np.ndarray, ...]:
    """The beginning and the steps of every sequence, one after the other: their symbols, their places in the sequence,
    what follows each, and how often the sequence was carried out.
    """
    lengths = sequences.lengths + 1
    first = np.cumsum(lengths) - lengths
    symbols = np.zeros(int(lengths.sum()), np.int64)
    inner = np.ones(len(symbols), bool)
    inner[first] = False
    symbols[inner] = numbers + 1
    following = np.append(symbols[1:], _BEGINNING)
    place = np.arange(len(symbols)) - np.repeat(first, lengths)
    weight = np.repeat(sequences.rows["implementations"].to_numpy(), lengths)
    return symbols, place, following, weight


def _levels(symbols: np.ndarray, place: np.ndarray, following: np.ndarray, weight: np.ndarray) -> Iterator[_Level]:
    """The contexts of each depth that were seen often enough, with the beginning in front of the first step."""
    base = int(symbols.max(initial=0)) + 1
    context = np.zeros(len(symbols), np.int64)
    for depth in range(1, DEEPEST + 1):
        rows = np.flatnonzero((context >= 0) & (place + 1 >= depth))
        number, last = numbered(context[rows] * base + symbols[rows - depth + 1])
        seen = np.bincount(number, weight[rows], len(last)).astype(np.int64)
        pair_keys = number * base + following[rows]
        pair, example = numbered(pair_keys)
        pairs = pair_keys[example]
        count = np.bincount(pair, weight[rows], len(pairs)).astype(np.int64)
        yield _Level(rows[last], pairs // base, pairs % base, count, seen[pairs // base])
        context = np.full(len(symbols), -1, np.int64)
        context[rows] = np.where(seen[number] >= LEAST_SEEN, number, -1)


def _kept(level: _Level, depth: int, least: int) -> np.ndarray:
    return np.asarray((level.seen >= least) | (depth == 1))


def _rows(level: _Level, depth: int, least: int, symbols: np.ndarray, names: list[str]) -> pa.Table:
    kept = _kept(level, depth, least)
    numbers, place = np.unique(level.context[kept], return_inverse=True)
    steps = symbols[level.last[numbers][:, None] + np.arange(1 - depth, 1)]  # [contexts, depth], the oldest first
    begins = steps[:, 0] == _BEGINNING if depth else np.zeros(0, bool)
    numbers_of_tasks, lengths = steps[steps != _BEGINNING] - 1, depth - begins.astype(np.int64)
    texts = json_lists(names, numbers_of_tasks, lengths)
    ids = np.empty(len(texts), object)
    for begin in (False, True):
        chosen = np.flatnonzero(begins == begin)
        ids[chosen] = make_ids("x", [texts[row] for row in chosen.tolist()], canonical(begin))
    after = level.following[kept]
    return pa.table(
        {
            "depth": pa.array(np.full(len(place), depth), pa.int64()),
            "context_id": pa.array(ids, pa.string()).take(pa.array(place)),
            "at_start": pa.array(begins).take(pa.array(place)),
            "tasks": text_lists(names, numbers_of_tasks, lengths).take(pa.array(place)),
            "next_task": pa.array(names, pa.string()).take(pa.array(after - 1, mask=after == _BEGINNING)),
            "transitions": pa.array(level.count[kept], pa.int64()),
        },
        schema=CONTEXTS.schema,
    )
