"""EVAL (13), (14): order and its laws."""

import itertools
from dataclasses import dataclass

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from opus_pipelines.errors import WorkflowError
from opus_pipelines.evaluation.ranking import quantised
from opus_pipelines.optimization.ranking import distance, order, rank


@dataclass(frozen=True)
class Candidate:
    id: str
    reward_usd: float = 1.0
    feasible: bool = True
    transitions: int = 0
    penalty: float | None = None
    conformity: float | None = None
    order_conformity: float | None = None
    has_optional: bool = False
    tasks: tuple[str, ...] = ()


candidates = st.builds(Candidate, id=st.sampled_from("abcd"), reward_usd=st.floats(-2, 2), feasible=st.booleans(),
                       transitions=st.integers(0, 2), penalty=st.sampled_from([None, 0.1, 0.2]))


def test_feasible_then_reward_then_penalty_then_transitions_then_id():
    best_first = [
        Candidate("z", 2.0), Candidate("y", 1.00004, penalty=0.1), Candidate("x", 1.00002, penalty=0.2),
        Candidate("w", 1.00001, transitions=9), Candidate("a", 1.00003, transitions=8), Candidate("b", 1.00001, transitions=8),
        Candidate("0", 99.0, feasible=False),
    ]
    for shuffled in itertools.islice(itertools.permutations(best_first), 0, 5040, 97):
        assert rank(shuffled, 0.0001) == list(enumerate(best_first, start=1))
    assert rank([], 0.0001) == []


def test_where_outcomes_do_not_decide_conformity_goes_before_reward():
    found = [Candidate("a", 9.0, conformity=0.5), Candidate("b", 1.0, conformity=0.9), Candidate("c", 99.0, False, conformity=1.0)]
    assert [c.id for _, c in rank(found, 0.0001)] == ["b", "a", "c"]
    orders = [Candidate("a", 9.0, conformity=0.5, order_conformity=0.1), Candidate("b", 1.0, conformity=0.5, order_conformity=0.7)]
    assert [c.id for _, c in rank(orders, 0.0001)] == ["b", "a"]


def test_a_step_that_nothing_asks_for_does_not_lift_a_workflow():
    found = [Candidate("survey", 9.0, has_optional=True), Candidate("plain", 1.0), Candidate("broken", 99.0, feasible=False)]
    assert [c.id for _, c in rank(found, 0.0001)] == ["plain", "survey", "broken"]


@pytest.mark.parametrize(("reward", "steps"), [(0.00016, 2), (0.5, 5000), (-0.00004, 0), (0.84952, 8495)])
def test_steps_of_the_quantum(reward, steps):
    assert quantised(reward, 0.0001) == steps
    assert (quantised(1.25, 0.5), quantised(0.75, 0.5)) == (2, 2)


def test_a_reward_that_is_no_number_cannot_be_ranked():
    with pytest.raises(WorkflowError, match="nan"):
        rank([Candidate("a", float("nan"))], 0.0001)


@settings(max_examples=100, deadline=None)
@given(candidates, candidates, candidates)
def test_a_total_preorder(a, b, c):
    before = lambda x, y: order(x, 0.5) <= order(y, 0.5)
    assert before(a, b) or before(b, a)
    assert before(a, a)
    assert not (before(a, b) and before(b, c)) or before(a, c)


def test_distance_is_the_difference_in_reward():
    assert distance(Candidate("a", 0.25), Candidate("b", 1.0)) == 0.75
