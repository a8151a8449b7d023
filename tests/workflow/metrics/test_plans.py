"""Scores of plans by name, and graph edit distance."""

import pytest

from opus_pipelines.workflow.metrics.plan_scores import EditDistance, Plan, PlanScores, graph_edit_distance, plan_scores


def test_a_plan_with_a_wrong_and_a_missing_step() -> None:
    scores = plan_scores(Plan(("a", "x", "c")), Plan(("a", "b", "c", "d")))
    assert scores == PlanScores(
        precision=pytest.approx(2 / 3),
        recall=0.5,
        node_f1=pytest.approx(4 / 7),
        link_f1=0.0,
        exact=0.0,
        first=1.0,
        order=1.0,
    )


def test_stated_links_count_and_not_the_order() -> None:
    gold = Plan(("a", "b", "c"), frozenset({("a", "b"), ("a", "c")}))
    assert plan_scores(gold, gold).link_f1 == 1.0
    assert plan_scores(Plan(("a", "b", "c")), gold).link_f1 == 0.5
    assert plan_scores(Plan(("c", "b", "a")), gold).order == -1.0


def test_a_plan_without_steps_is_zero_but_where_nothing_was_to_do() -> None:
    assert plan_scores(Plan(()), Plan(("a",))).node_f1 == 0.0
    assert plan_scores(Plan(()), Plan(())).node_f1 == 1.0
    assert plan_scores(Plan(("a",)), Plan(())) == PlanScores(0.0, 0.0, 0.0, 1.0, 0.0, 0.0, None)


@pytest.mark.parametrize(
    ("own", "gold", "distance"),
    [
        ("abc", "abc", EditDistance(0.0, 1.0, True)),
        ("abc", "abd", EditDistance(1.0, 0.9, True)),  # c is renamed to d
        ("abc", "ac", EditDistance(3.0, 0.625, True)),  # b renamed to c; c and its link removed
        ("", "ac", EditDistance(3.0, 0.0, True)),
        ("", "", EditDistance(0.0, 1.0, True)),
        ("abcdefghij", "bcdefghija", EditDistance(2.0, pytest.approx(1 - 2 / 38), False)),  # one link less, one more
    ],
)
def test_graph_edit_distance(own: str, gold: str, distance: EditDistance) -> None:
    assert graph_edit_distance(Plan(tuple(own)), Plan(tuple(gold))) == distance
