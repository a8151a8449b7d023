"""Needed tasks of histories made by hand."""

from typing import Any

import pyarrow as pa
import pytest

from opus_pipelines.wkg.estimates.aggregate_columns import VARIANTS
from opus_pipelines.wkg.estimates.critical_tasks import critical_task_rows, lacking
from opus_pipelines.wkg.estimates.sequences import Sequences


def sequences(*rows: tuple[str, int, int], **more: Any) -> Sequences:
    """(tasks, a letter each; cases; successes)."""
    columns = {"industry": "i", "client": None, "kind_of_case": None, "predecessors": None} | more
    variants = [
        columns | {"tasks": list(tasks), "implementations": n, "success_known": n, "successes": s}
        for tasks, n, s in rows
    ]
    return Sequences(pa.Table.from_pylist(variants, schema=VARIANTS))


def needed(*rows: tuple[str, int, int]) -> dict[str, str]:
    """Task → its alternatives, of those that are needed."""
    return {
        row["task_id"]: "".join(row["alternatives"]) for row in critical_task_rows(sequences(*rows)) if row["needed"]
    }


@pytest.mark.parametrize(
    ("rows", "expected"),
    [
        ([("ab", 100, 90), ("a", 40, 10)], {"a": "a", "b": "b"}),
        ([("ab", 100, 90), ("a", 40, 36)], {"a": "a"}),
        ([("a", 10, 9)], {"a": "a"}),
        ([("a", 10, 4)], {}),
        ([("ab", 10, 9), ("a", 2, 0)], {"a": "a", "b": "b"}),
        ([("ab", 10, 9), ("a", 2, 1)], {"a": "a"}),
        # the cases that skip the check b often lack the optional c, too
        ([("abc", 80, 76), ("ab", 80, 76), ("a", 40, 4), ("ac", 4, 0)], {"a": "a", "b": "b"}),
        # either b or c; without both it fails
        ([("ab", 20, 20), ("ac", 20, 20), ("a", 10, 0)], {"a": "a", "b": "bc", "c": "bc"}),
        # b or c in the same place in every case: one of them must be
        ([("abd", 20, 19), ("acd", 20, 19)], {"a": "a", "b": "bc", "c": "bc", "d": "d"}),
        # in different places, b and e are no alternatives
        ([("abcd", 20, 19), ("acde", 20, 19)], {"a": "a", "c": "c", "d": "d"}),
    ],
)
def test_what_is_needed(rows: list[tuple[str, int, int]], expected: dict[str, str]) -> None:
    assert needed(*rows) == expected


def test_tasks_of_which_one_is_needed_though_none_is_missed() -> None:
    """Five ways of checking, each rare: no single one is missed, but without any cases fail."""
    rows = [(f"a{x}z", 40, 38) for x in "bcde"] + [("az", 40, 33)]
    assert needed(*rows) == {"a": "a", "z": "z", **dict.fromkeys("bcde", "bcde")}


def test_counts_are_of_all_cases_and_the_adjusted_lift_of_those_that_did_what_was_needed_before() -> None:
    rows = {
        r["task_id"]: r
        for r in critical_task_rows(sequences(("abc", 80, 76), ("ab", 80, 76), ("a", 40, 4), ("ac", 4, 0)))
    }
    c = rows["c"]
    assert (c["cases_with"], c["success_with"], c["cases_without"], c["success_without"]) == (84, 76, 120, 80)
    assert (c["lift"], c["adjusted_lift"]) == (pytest.approx(76 / 84 - 80 / 120), 0.0)
    assert c["lift_lower"] > 0 > c["adjusted_lower"]
    assert rows["b"]["adjusted_lift"] == rows["b"]["lift"] == pytest.approx(152 / 160 - 4 / 44)
    assert (rows["a"]["lift"], rows["a"]["adjusted_lift"]) == (None, None)


def test_cases_without_a_needed_task_are_told_by_the_narrowest_group() -> None:
    one, other = sequences(("ab", 20, 20), ("a", 9, 0), kind_of_case="x"), sequences(("a", 20, 19), kind_of_case="y")
    both = Sequences(pa.concat_tables([one.rows, other.rows]))
    assert lacking(both, critical_task_rows(both)).tolist() == [False, True, False]
