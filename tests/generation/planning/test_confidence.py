"""What is believed of nodes, and how sure rankings made of them are."""

import math
from dataclasses import replace
from itertools import pairwise
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from opus_pipelines.core.settings import Priors, Settings
from opus_pipelines.generation.planning.confidence import of_mean, posterior_of, posteriors_of, with_confidence
from opus_pipelines.generation.planning.context import Candidate, Confidence, Evidence, Plan
from opus_pipelines.generation.planning.prices import Prices
from opus_pipelines.generation.planning.ranking import Ranking
from opus_pipelines.wkg.graph import ExecutionMode, PairShift, Task, WorkGraph
from opus_pipelines.workflow.evaluation.reward import evaluate
from opus_pipelines.workflow.evaluation.uncertainty import BetaDistribution
from opus_pipelines.workflow.model import InputNode, OutputNode, TaskNode, Workflow

PRIORS = Priors()
PERSON = ExecutionMode(
    "human",
    p=0.9,
    p_n=95,
    q=0.2,
    q_n=15,
    basis="observed",
    cost_usd_mean=8.0,
    cost_usd_deviation=2.0,
    cost_n=100,
    duration_ms_mean=600_000.0,
    duration_ms_deviation=60_000.0,
    duration_n=100,
    implementations=100,
)
PROGRAM = ExecutionMode(
    "code",
    p=0.6,
    p_n=45,
    q=0.1,
    q_n=5,
    basis="observed",
    cost_usd_mean=0.5,
    cost_usd_deviation=0.1,
    cost_n=50,
    duration_ms_mean=1_000.0,
    duration_n=50,
    implementations=50,
)
GRAPH = WorkGraph.of([Task(t, t.upper(), execution_modes=(PERSON, PROGRAM)) for t in ("a", "b", "c")], [])
SETTINGS = Settings()
PRICES = Prices.of(GRAPH, ["a", "b", "c"], SETTINGS.cost, SETTINGS)


def situation(**reward: Any) -> Any:
    has_gain = reward.pop("has_gain", True)
    settings = Settings(reward=reward)
    ranking = Ranking(settings.reward.quantum_usd, settings.reward.success_step, has_gain)
    return SimpleNamespace(
        settings=settings,
        cost=SETTINGS.cost,
        draft=SimpleNamespace(prices=PRICES, graph=GRAPH),
        evidence=Evidence([]),
        ranking=ranking,
    )


def chain(*tasks: TaskNode, gain: float | None = 100.0) -> Workflow:
    return Workflow.of(
        [InputNode("in", "In"), *tasks, OutputNode("out", "Out", gain)], pairwise(["in", *(t.id for t in tasks), "out"])
    )


def candidate(
    *tasks: TaskNode,
    violations: tuple[str, ...] = (),
    penalty: float | None = None,
    gain: float | None = 100.0,
    **more: Any,
) -> Candidate:
    workflow = chain(*tasks, gain=gain)
    penalties: Any = None if penalty is None else SimpleNamespace(penalty=penalty)
    return Candidate(
        "".join(t.id for t in tasks),
        Plan(workflow, tuple(t.id for t in tasks)),
        evaluate(workflow, SETTINGS.cost, SETTINGS.reward),
        0.0,
        0,
        violations,
        (),
        penalties=penalties,
        **more,
    )


def sure(ranked: list[Candidate], **reward: Any) -> list[Confidence]:
    return [c.confidence for c in with_confidence(situation(**reward), ranked) if c.confidence is not None]


A, B, C = (PRICES.nodes[t][0] for t in "abc")
CHEAP = PRICES.nodes["a"][1]


def test_the_interval_of_a_reward_has_no_spread_of_costs_that_are_unknown() -> None:
    unknown = replace(A, cost_usd=0.0, cost_basis="unknown", imputed_usd=40.0)
    (found,) = sure([candidate(unknown)])
    (without,) = sure([candidate(replace(unknown, imputed_usd=0.0))])
    assert (found.reward_usd_p05, found.reward_usd_p95) == (without.reward_usd_p05, without.reward_usd_p95)
    assert found.reward_usd_p95 is not None
    assert found.reward_usd_p95 <= 100.0  # what a right output is worth


def test_counts_stand_on_the_prior_and_means_are_as_sure_as_they_are_many() -> None:
    found = posterior_of(A, PERSON, PRIORS)  # of a snapshot that has no intervals
    assert (found.p, found.q) == (BetaDistribution(0.9, 100.0), BetaDistribution(0.2, 20.0))
    assert found.cost_deviation_usd == pytest.approx(math.sqrt((99 * 4 + 2 * 64) / 101 / 100))
    assert found.duration_deviation_ms == pytest.approx(math.sqrt((99 * 3.6e9 + 2 * 3.6e11) / 101 / 100))
    assert not found.paid_by_time


def test_an_estimate_has_the_estimators_interval_and_a_guess_the_priors_strength() -> None:
    judged = ExecutionMode(
        "human", p=0.9, p_n=95, p_lower=0.8, p_upper=0.95, q=0.0, q_lower=0.0, q_upper=0.6, basis="estimated"
    )
    found = posterior_of(replace(A, q=0.0), judged, PRIORS)
    assert (found.p, found.q) == (BetaDistribution.within(0.9, 0.8, 0.95, 1.717), BetaDistribution(0.0, 2.0))
    assert (
        found.p.strength < BetaDistribution.within(0.9, 0.8, 0.95).strength
    )  # a pool learned from the same counts looks surer than it is
    assert posterior_of(A, ExecutionMode("human"), PRIORS).p == BetaDistribution(0.9, 5.0)


@pytest.mark.parametrize(
    ("mean", "deviation", "n", "expected"),
    [
        (8.0, None, 0, 8.0),
        (8.0, None, 1, 8.0),
        (8.0, 0.0, 2, math.sqrt(2 * 64 / 3 / 2)),
        (0.0, 1.0, 101, math.sqrt(100 / 102 / 101)),
    ],
)
def test_few_doings_tell_little_of_their_spread(mean: float, deviation: float | None, n: int, expected: float) -> None:
    assert of_mean(mean, deviation, n) == pytest.approx(expected)


def test_what_has_a_price_by_time_only_costs_as_it_takes() -> None:
    assert posterior_of(replace(A, cost_basis="rate"), replace(PERSON, cost_n=0), PRIORS).paid_by_time
    assert not posterior_of(replace(A, cost_basis="rate"), PERSON, PRIORS).paid_by_time


def test_a_stated_review_is_sure_and_one_of_history_is_not() -> None:
    stated = TaskNode("r", "review", "Review", p=0.98, q=0.6, cost_usd=5.0, actor_kind="human", kind="review")
    known = replace(B, id="r", kind="review")
    new = TaskNode("n", "n", "New", p=0.95, q=0.2, actor_kind="human")
    other_way = replace(C, model="large")
    assert set(posteriors_of(chain(A, stated), PRICES, PRIORS)) == {"a"}
    assert posteriors_of(chain(A, known), PRICES, PRIORS)["r"].p == BetaDistribution(0.9, 100.0)
    found = posteriors_of(chain(new, other_way), PRICES, PRIORS)
    assert (found["n"].p, found["c"].p) == (BetaDistribution(0.95, 5.0), BetaDistribution(0.9, 5.0))


def test_the_outcomes_of_a_pair_bring_their_own_error() -> None:
    shifts = {("a", "b"): PairShift(1.0, p_error=0.03), ("a", "c"): PairShift(1.0)}
    alone = posteriors_of(chain(A, B, C), PRICES, PRIORS)
    behind = posteriors_of(chain(A, B, C), PRICES, PRIORS, shifts)
    of = lambda d: math.sqrt(d.mean * (1 - d.mean) / (d.strength + 1))
    assert of(behind["b"].p) == pytest.approx(math.hypot(of(alone["b"].p), 0.03))
    assert (behind["b"].q, behind["a"], behind["c"]) == (alone["b"].q, alone["a"], alone["c"])


def test_every_rank_but_the_last_is_held_against_the_next() -> None:
    ranked = [candidate(A), candidate(A, B), candidate(A, B, C)]
    one, two, three = sure(ranked)
    assert (one.beats_next, one.best_share) == (1.0, 1.0)
    assert two.beats_next == 1.0
    assert (three.beats_next, three.best_share) == (None, 0.0)
    assert one.reward_usd_p05 < ranked[0].worth < one.reward_usd_p95


def test_an_only_candidate_has_nothing_beside_it_and_none_is_nothing() -> None:
    (only,) = sure([candidate(A)])
    assert (only.beats_next, only.best_share) == (None, 1.0)
    assert with_confidence(situation(), []) == []


def test_the_shares_of_a_ranking_that_flips_within_its_evidence_add_up() -> None:
    pair = [candidate(replace(A, p=0.9)), candidate(replace(B, p=0.895))]
    first, second = sure(pair)
    assert 0.5 <= (first.beats_next or 0) < 0.7
    assert first.best_share + second.best_share == pytest.approx(1)


def test_a_rank_may_hold_against_the_next_and_not_against_all() -> None:
    better = candidate(replace(A, p=0.93))
    first, _, _ = sure([better, candidate(A, B), replace(better, id="z")])
    assert (first.beats_next, first.best_share) == (1.0, 0.5)


def test_feasible_goes_first_whatever_it_earns() -> None:
    poor, rich = candidate(A, B, C), candidate(A, violations=("max_cost_usd",))
    first, second = sure([poor, rich])
    assert (first.beats_next, first.best_share, second.best_share) == (1.0, 1.0, 0.0)
    assert sure([rich, replace(poor, violations=("min_success",))])[0].best_share == 1.0


@pytest.mark.parametrize(
    ("penalties", "expected"), [((0.1, 0.2), 1.0), ((0.1, None), 1.0), ((None, None), 0.5), ((0.2, 0.2), 0.5)]
)
def test_rewards_that_are_the_same_in_every_draw_are_ranked_by_penalty(
    penalties: tuple[Any, Any], expected: float
) -> None:
    assert sure([candidate(A, penalty=penalties[0]), candidate(A, penalty=penalties[1])])[0].beats_next == expected


def test_without_a_gain_success_is_drawn_and_no_dollar_is_said() -> None:
    surest, cheap = candidate(A, gain=None), candidate(CHEAP, gain=None)  # p .9 against .6, $8 against $0.5
    first, last = sure([surest, cheap], has_gain=False)
    assert (first.reward_usd_p05, first.reward_usd_p95, last.reward_usd_p05) == (None, None, None)
    assert first.beats_next is not None
    assert first.beats_next > 0.99
    assert first.best_share > 0.99


def test_draws_of_the_same_success_are_told_apart_by_what_ranks_next() -> None:
    found = sure([candidate(A, gain=None, conformity=0.9), candidate(A, gain=None, conformity=0.5)], has_gain=False)
    assert [(s.beats_next, s.best_share) for s in found] == [(1.0, 1.0), (None, 0.0)]


def test_where_success_is_inferred_exactly_the_interval_is_about_the_exact_reward() -> None:
    fork = [("in", "a"), ("a", "b"), ("a", "c"), ("b", "out"), ("c", "out")]
    workflow = Workflow.of([InputNode("in", "In"), A, B, C, OutputNode("out", "Out", 100.0)], fork)
    plan = Plan(workflow, ("a", "b", "c"))
    worth = {
        rule: evaluate(workflow, SETTINGS.cost, situation(inference=rule).settings.reward)
        for rule in ("product", "exact")
    }
    product, exact = (sure([Candidate("x", plan, w, 0.0, 0, (), ())], inference=rule)[0] for rule, w in worth.items())
    assert worth["exact"].reward_usd - worth["product"].reward_usd > 1
    for found, rule in ((product, "product"), (exact, "exact")):
        assert found.reward_usd_p05 < worth[rule].reward_usd < found.reward_usd_p95
    assert exact.reward_usd_p05 > product.reward_usd_p05


@settings(max_examples=25, deadline=None)
@given(
    st.lists(st.tuples(st.sampled_from("abc"), st.booleans()), min_size=1, max_size=3, unique_by=lambda x: x[0]),
    st.integers(0, 9),
)
def test_intervals_are_in_order_and_shares_add_up(picks: list[tuple[str, bool]], seed: int) -> None:
    made = situation()
    made.settings = Settings(generation={"seed": seed})
    ranked = [candidate(*(PRICES.nodes[t][way] for t, way in picks)), candidate(CHEAP), candidate(C)]
    found = with_confidence(made, ranked)
    assert found == with_confidence(made, ranked)
    assert all(c.confidence and c.confidence.reward_usd_p05 <= c.confidence.reward_usd_p95 for c in found)
    assert sum(c.confidence.best_share for c in found if c.confidence) == pytest.approx(1)
