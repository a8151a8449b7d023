from typing import Any

from opus_pipelines.core.settings import Generation
from opus_pipelines.lwm.interface import SimilarCase
from opus_pipelines.lwm.retrieval.completeness import critical_tasks as needed_by


def cases(
    count: int, tasks: str, success: bool | None, weight: float = 1.0, expected: bool | None = None, kind: str = "Claim"
) -> Any:
    n = len(tasks)
    return [
        SimilarCase(
            f"i{tasks}{success}{k}",
            0.9,
            weight,
            success,
            expected,
            "acme",
            kind,
            tuple(tasks),
            tuple(tasks),
            (None,) * n,
            (None,) * n,
            (None,) * n,
        )
        for k in range(count)
    ]


def needed_tasks(near: list[Any], needs: list[Any], client: str | None) -> Any:
    return needed_by(near, needs, client, Generation())


def names(groups: list[Any]) -> Any:
    return ["".join(sorted(g)) for g in groups]


def test_what_cases_failed_without_is_needed_and_what_made_no_difference_is_not() -> None:
    near = cases(20, "abc", True) + cases(20, "abcd", True) + cases(9, "ac", False) + cases(1, "ac", True)
    assert names(needed_tasks(near, [], "acme")) == ["a", "b", "c"]


def test_either_of_two_that_replace_each_other_is_not_needed() -> None:
    near = cases(20, "ab", True) + cases(20, "ac", True)
    assert names(needed_tasks(near, [], "acme")) == ["a"]


def test_where_one_of_two_must_be_done_they_are_alternatives() -> None:
    near = cases(20, "ab", True) + cases(20, "ac", True) + cases(10, "a", False)
    assert names(needed_tasks(near, [], "acme")) == ["a", "bc"]


def test_a_right_refusal_teaches_nothing() -> None:
    near = cases(5, "ab", True) + cases(50, "a", True, expected=False)
    assert names(needed_tasks(near, [], "acme")) == ["a", "b"]


def test_far_cases_count_by_their_weight() -> None:
    near = cases(5, "ab", True) + cases(100, "ac", True, weight=1e-4)
    assert names(needed_tasks(near, [], "acme")) == ["a", "b"]


ROWS = [
    {"client": None, "kind_of_case": "Claim", "task_id": "x", "alternatives": ["x", "y"], "needed": True},
    {"client": None, "kind_of_case": "Claim", "task_id": "z", "alternatives": ["z"], "needed": True},
    {"client": "acme", "kind_of_case": "Claim", "task_id": "z", "alternatives": ["z"], "needed": False},
    {"client": "other", "kind_of_case": "Claim", "task_id": "w", "alternatives": ["w"], "needed": True},
    {"client": None, "kind_of_case": "Invoice", "task_id": "v", "alternatives": ["v"], "needed": True},
]


def test_without_near_successes_the_rows_of_the_kind_decide_the_clients_own_first() -> None:
    assert names(needed_tasks(cases(3, "a", None), ROWS, "acme")) == ["xy"]
    assert names(needed_tasks(cases(3, "a", None), ROWS, None)) == ["xy", "z"]
    assert needed_tasks([], ROWS, "acme") == []
