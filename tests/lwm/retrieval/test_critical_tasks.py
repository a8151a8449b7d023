from dataclasses import replace
from typing import Any

import numpy as np
import pytest

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


def treated(seed: int, effect: float, by_severity: bool = True, recorded: bool = True) -> list[Any]:
    """400 patients: severe ones succeed in half of the cases, others in nearly all; t adds `effect` to both.

    Where it follows severity, t is given to 95 % of the severe and to half of the other patients, else to 7 of ten.
    """
    rng = np.random.default_rng(seed)
    found = []
    for _ in range(400):
        severe = rng.random() < 0.5
        has = rng.random() < ((0.95 if severe else 0.5) if by_severity else 0.7)
        success = rng.random() < (0.5 if severe else 0.95) + effect * has
        (one,) = cases(1, "atb" if has else "ab", bool(success))
        known = (("severity", "high" if severe else "low"), ("ward", rng.choice(["east", "west"]).item()))
        found.append(replace(one, attributes=known if recorded else ()))
    return found


@pytest.mark.parametrize("seed", range(5))
def test_a_treatment_that_follows_severity_stays(seed: int) -> None:
    """Treated cases end worse, since they were worse: within the same severity the treatment does no harm."""
    assert "t" in names(needed_tasks(treated(seed, 0.0), [], "acme"))
    assert "t" in names(needed_tasks(treated(seed, 0.05), [], "acme"))
    assert "t" in names(needed_tasks(treated(seed, 0.0, recorded=False), [], "acme"))


@pytest.mark.parametrize("seed", range(5))
def test_a_step_whose_harm_holds_within_strata_may_be_left_out(seed: int) -> None:
    for by_severity in (True, False):
        assert "t" not in names(needed_tasks(treated(seed, -0.45, by_severity), [], "acme"))
