import pytest

from opus_pipelines.errors import InputError, LakeError
from opus_pipelines.lake import Lake
from opus_pipelines.query.best import by_contract, ranked
from opus_pipelines.query.evidence import evidence_of
from opus_pipelines.query.explain import explanation, find_workflow
from opus_pipelines.query.status import report
from opus_pipelines.query.views import connect


def test_explanation_says_why_it_ranks_first(lake: Lake) -> None:
    text = explanation(connect(lake), "fa1")
    for line in (
        "rank 1 of 2 for intake claim-1 of ../Nord/wind 50% / 007",
        "ahead of rank 2 (fa2): feasible goes first, and that one violates max_cost_usd: 8.00 exceeds 7.00 by 1.00",
        "only here: Pay",
        "success: 2 of 2 steps prior",
        "cost: 2 of 2 steps rate",
        "the 1 nearest cases of claims log, similarity 0.750 to 0.750; 1 of 1 with a known outcome succeeded",
        "snapshot w1, model m1, result r2",
    ):
        assert line in text


def test_explanation_of_an_infeasible_one_names_the_violation(lake: Lake) -> None:
    assert "violated: max_cost_usd: 8.00 exceeds 7.00 by 1.00" in explanation(connect(lake), "fa2")


@pytest.mark.parametrize(("text", "expected"), [
    ("fa1", "fa1"),
    ("fa", "begins several workflows: fa1, fa2"),
    ("zz", "no current workflow is called 'zz'"),
])
def test_a_workflow_is_found_by_the_beginning_of_its_id(lake: Lake, text: str, expected: str) -> None:
    connection = connect(lake)
    if text == expected:
        assert find_workflow(connection, text) == expected
    else:
        with pytest.raises(InputError, match=expected):
            find_workflow(connection, text)


def test_evidence_lists_the_nearest_cases_first(lake: Lake) -> None:
    text = evidence_of(connect(lake), "fa1", "check", 5)
    assert "Check (tc), known in history as claims log/check it" in text
    assert "carried out 2 times, 1 of them in the cases nearest to intake claim-1" in text
    assert text.index("M1") < text.index("M2")


def test_evidence_of_a_task_that_history_lacks(lake: Lake) -> None:
    assert "its figures are priors" in evidence_of(connect(lake), "fa1", "Pay", 5)
    with pytest.raises(InputError, match="fa1 has no task 'Sing'; it has: Check, Pay"):
        evidence_of(connect(lake), "fa1", "Sing", 5)


def test_best_tells_how_the_alternatives_differ(lake: Lake) -> None:
    [(title, columns, rows)] = by_contract(ranked(connect(lake), None, None, None, None))
    assert title == "../Nord/wind 50% / 007"
    assert [dict(zip(columns, row, strict=True))["steps"] for row in rows] == ["2", "2: without Pay"]


def test_best_of_nothing_names_what_there_is(lake: Lake) -> None:
    with pytest.raises(LakeError, match=r"there are results of: \.\./Nord/wind 50% / 007"):
        ranked(connect(lake), "Nobody", None, None, None)


def test_status_names_what_failed(lake: Lake) -> None:
    blocks = {title: rows for title, _, rows in report(connect(lake), lake)}
    assert blocks["What could not be used"] == [
        ("file", "broken/b.csv", "not a CSV"),
        ("intake refused", "../Nord/wind 50% / 007 / claim-2", "no input: ask the client"),
    ]
    assert blocks["Last runs: none"] == []
