import pytest

from opus_pipelines.lwm.precedence import dependency, independent, order_counts, precedence_counts


@pytest.mark.parametrize(
    ("forward", "backward", "expected"),
    [
        (0, 0, 0.0),
        (1, 0, 0.5),
        (9, 0, 0.9),
        (0, 9, -0.9),
        (5, 5, 0.0),
        (10, 1, 0.75),
    ],
)
def test_the_measure_is_that_of_the_heuristics_miner(forward: int, backward: int, expected: float) -> None:
    assert dependency(forward, backward) == pytest.approx(expected)


@pytest.mark.parametrize(
    ("forward", "backward", "expected"),
    [
        (5, 5, True),
        (10, 1, True),
        (1, 1, True),
        (40, 1, False),
        (1, 40, False),
        (1, 0, False),
        (0, 3, False),
        (0, 0, False),
    ],
)
def test_tasks_are_independent_only_where_both_orders_were_seen(forward: int, backward: int, expected: bool) -> None:
    assert independent(forward, backward) is expected


def test_orders_count_a_task_once_a_case_where_it_first_came() -> None:
    assert precedence_counts([("a", "b", "a", "c"), ("b", "a")]) == {
        ("a", "b"): 1,
        ("a", "c"): 1,
        ("b", "c"): 1,
        ("b", "a"): 1,
    }


@pytest.mark.parametrize(("seen", "expected"), [({("a", "b"): 3}, (3, 0)), ({("b", "a"): 2}, (0, 2)), ({}, (7, 4))])
def test_the_wkg_tells_only_where_the_cases_do_not(
    seen: dict[tuple[str, str], float], expected: tuple[float, float]
) -> None:
    assert order_counts(("a", "b"), seen, {("a", "b"): 7.0, ("b", "a"): 4.0}.__getitem__) == expected
