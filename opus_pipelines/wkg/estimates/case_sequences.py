"""Distinct task sequences as index arrays: the variants of all sources, and figures of edges and cases from them."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from opus_pipelines.core.ids import make_ids
from opus_pipelines.core.schemas import VARIANTS
from opus_pipelines.history.records.arrow_arrays import consecutive, distinct, distinct_counts
from opus_pipelines.wkg.estimates.aggregate_columns import summed
from opus_pipelines.wkg.estimates.task_lists import json_lists
from opus_pipelines.wkg.estimates.two_state_hmm import Paths


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
