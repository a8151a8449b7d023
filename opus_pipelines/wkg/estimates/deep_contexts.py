"""How often each task, or the end of the case, followed each context: the last one to ten steps before it.

The counts come from the task sequences of every source, which are exact, so that those of several sources are those of
mining them as one. Only what is left after adding up is pruned: a context of two or more steps is kept where it was
seen at least `LEAST_SEEN` times, and that number is doubled until the contexts fit into `MOST_ROWS` rows.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from opus_pipelines.core.ids import canonical, make_ids
from opus_pipelines.core.schemas import CONTEXTS
from opus_pipelines.history.records.arrow_arrays import numbered
from opus_pipelines.wkg.estimates.case_sequences import Sequences
from opus_pipelines.wkg.estimates.task_lists import json_lists, text_lists

DEEPEST = 10  # steps of a context, the beginning of the case counted as one
LEAST_SEEN = 3  # times that a context of two or more steps was seen
MOST_ROWS = 200_000  # of wkg/contexts: some 10 MB
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


def context_table(sequences: Sequences, most_rows: int = MOST_ROWS) -> pa.Table:
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
