"""Distinct task sequences as index arrays: the variants of all sources, and figures of edges and cases from them."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from opus_pipelines.core.ids import make_id
from opus_pipelines.core.schemas import VARIANTS
from opus_pipelines.estimates.aggregate_columns import summed
from opus_pipelines.estimates.two_state_hmm import Paths


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
        """The sorted task ids, and the task numbers of all sequences, one sequence after the other."""
        flat = pc.list_flatten(self.rows["tasks"]).combine_chunks()
        names = sorted(pc.unique(flat).to_pylist())
        return names, pc.index_in(flat, pa.array(names, pa.string())).to_numpy()

    @cached_property
    def row_of_step(self) -> np.ndarray:
        """The row of each of those task numbers."""
        return np.repeat(np.arange(len(self.lengths)), self.lengths)

    @cached_property
    def variant_ids(self) -> list[str]:
        """Hash of each row's sequence."""
        return [make_id("v", tasks) for tasks in self.rows["tasks"].to_pylist()]

    @cached_property
    def presence(self) -> tuple[np.ndarray, np.ndarray]:
        """(row, task number) of every task that a row's sequence holds, once each, in order."""
        names, numbers = self.tasks
        cells = np.unique(np.repeat(np.arange(len(self.lengths)), self.lengths) * max(1, len(names)) + numbers)
        return np.divmod(cells, max(1, len(names)))

    @cached_property
    def held(self) -> list[frozenset[str]]:
        """The tasks of each row."""
        return [frozenset(tasks) for tasks in self.rows["tasks"].to_pylist()]

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
        """Returns for every edge the number of distinct task sequences with it."""
        found: set[tuple[str, str, str]] = set()
        seen: set[tuple[str, str]] = set()
        columns = (self.rows["tasks"].to_pylist(), self.rows["predecessors"].to_pylist(), self.variant_ids)
        for tasks, before, variant in zip(*columns, strict=True):
            if (shape := (variant, repr(before))) not in seen:
                seen.add(shape)
                found.update((variant, src, dst) for src, dst in pairs(tasks, before))
        counts: dict[tuple[str, str], int] = {}
        for _, src, dst in found:
            counts[src, dst] = counts.get((src, dst), 0) + 1
        return counts

    def table(self) -> pa.Table:
        """wkg/variants."""
        keys = ("industry", "client", "variant_id")
        rows = self.rows.append_column("variant_id", pa.array(self.variant_ids, pa.string()))
        counted = summed(rows.select([*keys, "implementations", "success_known", "successes"]), keys)
        sequences = dict(zip(self.variant_ids, self.rows["tasks"].to_pylist(), strict=True))
        tasks = pa.array([sequences[v] for v in counted["variant_id"].to_pylist()], pa.list_(pa.string()))
        return counted.append_column("tasks", tasks).select(VARIANTS.schema.names)


def pairs(tasks: list[str], predecessors: list[list[int] | None] | None) -> Iterator[tuple[str, str]]:
    """The consecutive pairs of one sequence: by position, or by `predecessors` where a step states them."""
    for i, task in enumerate(tasks):
        stated = predecessors[i] if predecessors else None
        before = ([i - 1] if i else []) if stated is None else dict.fromkeys(stated)
        yield from ((tasks[j], task) for j in before if 0 <= j < len(tasks))
