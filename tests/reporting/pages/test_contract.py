from dataclasses import replace

import pytest

from opus_pipelines.reporting.pages.contract import ContractPage, Scale, largest_intentions, mean, paired, total


def test_what_is_best_undecided_and_infeasible(page: ContractPage) -> None:
    assert [r["workflow_id"] for r in page.best] == ["f1", "f3"]
    assert [(a["workflow_id"], b and b["workflow_id"]) for a, b in page.undecided] == [("f1", "f2")]
    clear = [row | {"verdict": "clear"} for row in page.workflows]
    assert replace(page, workflows=clear).undecided == []
    usual = replace(page, workflows=[row | {"verdict": "not answered"} for row in clear])
    assert [a["workflow_id"] for a, _ in usual.undecided] == ["f1", "f3"]
    alone = replace(page, workflows=[row for row in page.workflows if row["workflow_id"] != "f2"])
    assert [(a["workflow_id"], b) for a, b in alone.undecided] == [("f1", None)]
    assert [r["workflow_id"] for r in page.infeasible] == ["f3"]
    late = replace(page, workflows=[row | {"risks": row["violations"]} for row in page.workflows])
    assert [r["workflow_id"] for r in late.to_run] == ["f1", "f3"]  # a missed deadline is shown with its step
    assert [r["workflow_id"] for r in late.outside] == ["f2"]  # behind a workflow that breaks nothing
    assert page.judged
    assert largest_intentions(page.workflows) == ["f1", "f3"]


@pytest.mark.parametrize(
    ("values", "at", "expected"),
    [
        ((5.0, 10.0), 5.0, 50.0),
        ((-5.0, 15.0), 0.0, 25.0),
        ((None, None), 0.0, 0.0),
        ((-4.0, -2.0), -2.0, 50.0),
    ],
)
def test_a_scale_holds_zero(values: tuple, at: float, expected: float) -> None:
    assert Scale.of(*values).at(at) == expected


def test_sums_are_unknown_as_soon_as_one_part_is() -> None:
    rows = [{"a": 1.0, "b": 2.0}, {"a": 3.0, "b": None}]
    assert (total(rows, "a"), total(rows, "b"), total([], "a")) == (4.0, None, None)
    assert (paired(rows, "a", "b"), paired(rows[1:], "a", "b")) == ((1.0, 2.0, 1), None)
    assert (mean(rows, "b"), mean(rows[1:], "b")) == (2.0, None)
