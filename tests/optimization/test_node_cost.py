"""LWM (12): a node's cost from history, else from the settings, and its basis."""

import pytest

from opus_pipelines.optimization.cost import node_cost, priced
from opus_pipelines.optimization.ways import ways_of
from opus_pipelines.settings import Cost, Priors
from opus_pipelines.wkg.graph import Task, Way

COST = Cost(usd_per_hour={"human": 36, "code": 1.8, "model": 7.2, "big-llm": 72}, default_duration_ms={"human": 1000, "code": 500},
            default_cost_usd={"model": 0.25}, usd_per_hour_of_duration=3.6)
PRIORS = Priors(p=0.9, q=0.1)


@pytest.mark.parametrize(("kind", "model", "cost", "ms", "expected"), [
    ("human", None, 3.0, 100.0, (3.0, "observed", 100.0, "observed")),
    ("human", None, 0.0, None, (0.0, "observed", 1000.0, "prior")),
    ("human", None, None, 2000.0, (0.02, "rate", 2000.0, "observed")),
    ("human", None, None, None, (0.01, "prior", 1000.0, "prior")),
    ("model", "big-llm", None, 1000.0, (0.02, "rate", 1000.0, "observed")),
    ("model", "other", None, 1000.0, (0.002, "rate", 1000.0, "observed")),
    ("model", "big-llm", None, None, (0.25, "prior", 5000.0, "prior")),
    (None, None, None, 2000.0, (0.02, "rate", 2000.0, "observed")),
    ("robot", None, None, None, (0.01, "prior", 1000.0, "prior")),
])
def test_prices(kind, model, cost, ms, expected):
    assert priced(kind, model, cost, ms, COST) == pytest.approx(expected)


def test_a_table_that_leaves_a_kind_out_leaves_the_built_in_price():
    assert priced("human", None, None, 3_600_000.0, Cost(usd_per_hour={"Ann": 50})).cost_usd == 30.0


def test_observed_figures_keep_their_basis():
    way = Way(
        "human", implementations=9, p=0.8, p_n=9, q=0.3, q_n=2, basis="estimated", duration_ms_mean=3_600_000.0,
        duration_basis="observed", cost_usd_mean=10.0, cost_human_usd=7.0, cost_compute_usd=1.0, cost_basis="rate",
    )
    found = node_cost(Task("t", "T", p=0.5, p_n=50), way, COST, PRIORS)
    assert (found.cost_usd, found.cost_compute_usd, found.cost_model_usd, found.cost_human_usd) == (10.0, 1.0, 0.0, 9.0)
    assert (found.cost_basis, found.duration_basis) == ("rate", "observed")
    assert (found.time_usd, found.path_cost_usd) == (3.6, 13.6)
    assert (found.p, found.p_basis, found.q, found.q_basis) == (0.8, "estimated", 0.3, "estimated")


def test_p_and_q_fall_back_to_the_task_then_to_the_prior():
    found = node_cost(Task("t", "T", p=0.5, p_basis="observed", p_n=50), Way("code", p=0.99, p_n=0), COST, PRIORS)
    assert (found.p, found.p_basis, found.q, found.q_basis) == (0.5, "observed", 0.1, "prior")


def test_nothing_known_is_a_persons_work():
    task = Task("t", "T")
    found = node_cost(task, ways_of(task)[0], COST, PRIORS)
    assert (found.cost_usd, found.cost_human_usd, found.cost_basis) == pytest.approx((0.01, 0.01, "prior"))
    assert (found.duration_ms, found.duration_basis, found.p, found.p_basis) == (1000, "prior", 0.9, "prior")


def test_only_parts_known():
    way = Way("model", cost_model_usd=2.0, cost_human_usd=1.0, duration_ms_mean=10.0)
    assert node_cost(Task("t", "T"), way, COST, PRIORS).cost_usd == 3.0


def test_the_most_frequent_way_and_its_ties():
    small, large = Way("model", "small", implementations=5), Way("model", "large", implementations=5)
    person = Way("human", implementations=4)
    assert ways_of(Task("t", "T", ways=(small, large, person)))[0] is large
    assert ways_of(Task("t", "T", ways=(person, large, small)))[0] is large
    assert ways_of(Task("t", "T", ways=(small, Way("human", implementations=6))))[0].actor_kind == "human"
