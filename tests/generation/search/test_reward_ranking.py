"""EVAL (13), and the order where no gain is stated: order and its laws."""

import itertools
from dataclasses import dataclass
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from opus_pipelines.core.errors import WorkflowError
from opus_pipelines.generation.planning.ranking import Ranking
from opus_pipelines.workflow.evaluation.reward import quantised

BY_REWARD = Ranking(0.0001, 0.01)
BY_SUPPORT = Ranking(0.0001, 0.01, by_support=True)
NO_GAIN = Ranking(0.0001, 0.01, has_gain=False)


@dataclass(frozen=True)
class Candidate:
    id: str
    worth: float = 1.0
    broken: int = 0
    transitions: int = 0
    penalty: float | None = None
    conformity: float | None = None
    order_conformity: float | None = None
    has_optional: bool = False
    compared_lead_ms: float = 0.0


candidates = st.builds(
    Candidate,
    id=st.sampled_from("abcd"),
    worth=st.floats(-2, 2),
    broken=st.integers(0, 2),
    transitions=st.integers(0, 2),
    penalty=st.sampled_from([None, 0.1, 0.2]),
)


def test_feasible_then_reward_then_penalty_then_transitions_then_id() -> None:
    best_first = [
        Candidate("z", 2.0),
        Candidate("y", 1.00004, penalty=0.1),
        Candidate("x", 1.00002, penalty=0.2),
        Candidate("w", 1.00001, transitions=9),
        Candidate("a", 1.00003, transitions=8),
        Candidate("b", 1.00001, transitions=8),
        Candidate("0", 99.0, broken=2),
    ]
    for shuffled in itertools.islice(itertools.permutations(best_first), 0, 5040, 97):
        assert BY_REWARD.rank(shuffled) == list(enumerate(best_first, start=1))
    assert BY_REWARD.rank([]) == []


def test_where_outcomes_do_not_decide_conformity_goes_before_reward() -> None:
    found = [
        Candidate("a", 9.0, conformity=0.5),
        Candidate("b", 1.0, conformity=0.9),
        Candidate("c", 99.0, 2, conformity=1.0),
    ]
    assert [c.id for _, c in BY_SUPPORT.rank(found)] == ["b", "a", "c"]
    orders = [
        Candidate("a", 9.0, conformity=0.5, order_conformity=0.1),
        Candidate("b", 1.0, conformity=0.5, order_conformity=0.7),
    ]
    assert [c.id for _, c in BY_SUPPORT.rank(orders)] == ["b", "a"]


def test_what_overrides_the_criteria_is_stated_where_candidates_differ_in_it() -> None:
    plain, survey, broken = Candidate("a"), Candidate("b", has_optional=True), Candidate("c", broken=2)
    assert BY_REWARD.applied([plain, plain]) == ("Reward", "Penalty")
    assert BY_REWARD.applied([plain, survey]) == ("steps that nothing asks for", "Reward", "Penalty")
    assert BY_REWARD.applied([plain, broken]) == ("constraints", "Reward", "Penalty")


def test_a_missed_deadline_comes_before_anything_else_that_is_broken() -> None:
    found = [Candidate("without the step", 9.0, broken=2), Candidate("late", 1.0, broken=1), Candidate("kept", 0.5)]
    assert [c.id for _, c in BY_REWARD.rank(found)] == ["kept", "late", "without the step"]


def test_a_step_that_nothing_asks_for_does_not_lift_a_workflow() -> None:
    found = [
        Candidate("survey", 9.0, has_optional=True),
        Candidate("plain", 1.0),
        Candidate("broken", 99.0, broken=2),
    ]
    assert [c.id for _, c in BY_REWARD.rank(found)] == ["plain", "survey", "broken"]


@pytest.mark.parametrize(("reward", "steps"), [(0.00016, 2), (0.5, 5000), (-0.00004, 0), (0.84952, 8495)])
def test_steps_of_the_quantum(reward: float, steps: int) -> None:
    assert quantised(reward, 0.0001) == steps
    assert (quantised(1.25, 0.5), quantised(0.75, 0.5)) == (2, 2)


def test_a_reward_that_is_no_number_cannot_be_ranked() -> None:
    with pytest.raises(WorkflowError, match="nan"):
        BY_REWARD.rank([Candidate("a", float("nan"))])


@settings(max_examples=100, deadline=None)
@given(candidates, candidates, candidates, st.sampled_from([Ranking(0.5, 0.5), Ranking(0.5, 0.5, has_gain=False)]))
def test_a_total_preorder(a: Candidate, b: Candidate, c: Candidate, ranking: Ranking) -> None:
    before = lambda x, y: ranking.order(x) <= ranking.order(y)
    assert before(a, b) or before(b, a)
    assert before(a, a)
    assert not (before(a, b) and before(b, c)) or before(a, c)


def test_without_a_gain_success_then_conformity_then_lead_time_then_penalty_decide() -> None:
    best_first = [
        Candidate("success", 0.95, conformity=0.1, compared_lead_ms=9e6),
        Candidate("conformity", 0.921, conformity=0.8, compared_lead_ms=9e6),
        Candidate("order", 0.924, conformity=0.7, order_conformity=0.3, compared_lead_ms=9e6),
        Candidate("lead time", 0.917, conformity=0.7, order_conformity=0.2, compared_lead_ms=3_000.0, penalty=0.4),
        Candidate("penalty", 0.92, conformity=0.7, order_conformity=0.2, compared_lead_ms=9e6, penalty=0.1),
        Candidate("last", 0.92, conformity=0.7, order_conformity=0.2, compared_lead_ms=9e6, penalty=0.2),
    ]
    for shuffled in itertools.islice(itertools.permutations(best_first), 0, 720, 7):
        assert NO_GAIN.rank(shuffled) == list(enumerate(best_first, start=1))
    told = [NO_GAIN.deciding_criterion(one, two) for one, two in itertools.pairwise(best_first)]
    assert told == ["success", "conformity", "conformity", "lead time", "Penalty"]
    assert NO_GAIN.criteria == ("success", "conformity", "lead time", "Penalty")


def test_without_a_gain_and_outcomes_success_is_a_prior_and_ranks_nothing() -> None:
    ranking = Ranking(0.0001, 0.01, has_gain=False, by_support=True)
    slow = Candidate("slow", 0.5, conformity=0.9, compared_lead_ms=2e6)
    found = [Candidate("stub", 0.99, conformity=0.4), slow, Candidate("all", 0.4, conformity=0.9)]
    assert [c.id for _, c in ranking.rank(found)] == ["all", "slow", "stub"]
    assert ranking.criteria == ("conformity", "lead time", "Penalty")


def test_better_is_more_than_a_penalty_or_a_trodden_way() -> None:
    one, other = Candidate("a", 1.0, penalty=0.1, transitions=9), Candidate("b", 1.0, penalty=0.2)
    assert BY_REWARD.order(one) < BY_REWARD.order(other)
    assert not BY_REWARD.is_better(one, other)
    assert BY_REWARD.is_better(Candidate("b", 2.0), one)
    assert NO_GAIN.is_better(Candidate("b", 1.0, conformity=0.5), one)


@pytest.mark.parametrize(
    ("ranking", "one", "other", "chance"),
    [
        (BY_REWARD, {"penalty": 0.1}, {"penalty": 0.2}, 1.0),
        (BY_REWARD, {"penalty": None}, {"penalty": 0.2}, 0.0),
        (BY_REWARD, {}, {}, 0.5),
        (NO_GAIN, {"conformity": 0.6}, {"conformity": 0.5, "penalty": 0.1}, 1.0),
        (NO_GAIN, {"compared_lead_ms": 5e6}, {}, 0.0),
    ],
)
def test_equal_worth_is_told_apart_by_what_ranks_next(
    ranking: Ranking, one: dict[str, Any], other: dict[str, Any], chance: float
) -> None:
    assert ranking.p_first_in_tie(Candidate("a", **one), Candidate("b", **other)) == chance
