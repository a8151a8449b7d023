"""Contexts deeper than one step: counts of what followed, added up over sources, and pruned only then."""

import random
from collections import Counter

import numpy as np
import pyarrow as pa
import pytest

from opus_pipelines.core.schemas import CONTEXTS
from opus_pipelines.wkg.estimates.aggregate_columns import VARIANTS
from opus_pipelines.wkg.estimates.sequences import Sequences, context_table

Counted = dict[tuple[bool, tuple[str, ...], str | None], int]


def sequences(*rows: tuple[str, int]) -> Sequences:
    """Task sequences, a letter a task, each with how often it was carried out."""
    return Sequences(
        pa.Table.from_pylist([{"tasks": list(tasks), "implementations": n} for tasks, n in rows], schema=VARIANTS)
    )


def counted(found: pa.Table) -> Counted:
    return {(r["at_start"], tuple(r["tasks"]), r["next_task"]): r["transitions"] for r in found.to_pylist()}


def by_hand(*rows: tuple[str, int]) -> Counted:
    """The same by the definition, for depths of ten at most."""
    found: Counter[tuple[bool, tuple[str, ...], str | None]] = Counter()
    for tasks, n in rows:
        for i in range(len(tasks) + 1):
            for depth in range(1, min(10, i + 1) + 1):
                begins = depth > i
                found[begins, tuple(tasks[0 if begins else i - depth : i]), tasks[i] if i < len(tasks) else None] += n
    seen: Counter[tuple[bool, tuple[str, ...]]] = Counter()
    for (begins, context, _), n in found.items():
        seen[begins, context] += n
    return {key: n for key, n in found.items() if len(key[1]) + key[0] == 1 or seen[key[:2]] >= 3}


def test_what_followed_is_counted_by_context() -> None:
    found = counted(context_table(sequences(("ab", 3), ("ac", 1))))

    assert found == {
        (True, (), "a"): 4,
        (False, ("a",), "b"): 3,
        (False, ("a",), "c"): 1,
        (False, ("b",), None): 3,
        (False, ("c",), None): 1,
        (True, ("a",), "b"): 3,
        (True, ("a",), "c"): 1,
        (False, ("a", "b"), None): 3,
        (True, ("a", "b"), None): 3,
    }


@pytest.mark.parametrize("seed", range(3))
def test_the_sum_over_sources_is_counting_everything_at_once(seed: int) -> None:
    draw = random.Random(seed)
    rows = [("".join(draw.choices("abc", k=draw.randint(1, 14))), draw.randint(1, 3)) for _ in range(60)]
    split = [(tasks, 1) for tasks, n in rows for _ in range(n)]
    draw.shuffle(split)

    assert counted(context_table(sequences(*split))) == counted(context_table(sequences(*rows))) == by_hand(*rows)


def test_a_context_has_one_id_however_history_grows() -> None:
    small, large = (context_table(sequences(*rows)).to_pylist() for rows in ([("ab", 3)], [("xab", 3), ("ab", 3)]))

    ids = {(r["at_start"], *r["tasks"]): r["context_id"] for r in small}
    assert ids.items() <= {(r["at_start"], *r["tasks"]): r["context_id"] for r in large}.items()


def test_the_size_is_bounded_by_leaving_out_what_is_rare() -> None:
    found = counted(context_table(sequences(("ab", 30), ("cd", 5)), most_rows=9))

    assert len(found) == 9
    assert {tasks for _, tasks, _ in found if len(tasks) == 2} == {("a", "b")}


def test_a_history_without_cases_has_no_contexts() -> None:
    assert context_table(sequences()).equals(CONTEXTS.schema.empty_table())


def test_counts_are_whole_numbers_beyond_what_a_loop_would_take() -> None:
    found = context_table(sequences(("ab", 2**40)))

    assert np.all(np.array(found["transitions"]) == 2**40)
