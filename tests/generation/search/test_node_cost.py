"""LWM (12): a node's cost from history, else from the settings, and its basis."""

from typing import Any

import pytest

from opus_pipelines.core.settings import Cost, Priors
from opus_pipelines.generation.planning.prices import execution_modes_of
from opus_pipelines.generation.search.costs import node_cost, price_of
from opus_pipelines.wkg.graph import ExecutionMode, Task
from opus_pipelines.workflow.model import Actor

COST = Cost(
    usd_per_hour={"human": 36, "code": 1.8, "model": 7.2, "big-llm": 72},
    default_duration_ms={"human": 1000, "code": 500},
    default_cost_usd={"model": 0.25},
    usd_per_hour_of_duration=3.6,
)
PRIORS = Priors(p=0.9, q=0.1)


@pytest.mark.parametrize(
    ("kind", "model", "cost", "ms", "expected"),
    [
        ("human", None, 3.0, 100.0, (3.0, "observed", 100.0, "observed")),
        ("human", None, 0.0, None, (0.0, "observed", 1000.0, "prior")),
        ("human", None, None, 2000.0, (0.02, "rate", 2000.0, "observed")),
        ("human", None, None, None, (0.01, "prior", 1000.0, "prior")),
        ("model", "big-llm", None, 1000.0, (0.02, "rate", 1000.0, "observed")),
        ("model", "other", None, 1000.0, (0.002, "rate", 1000.0, "observed")),
        ("model", "big-llm", None, None, (0.25, "prior", None, "unknown")),
        (
            None,
            None,
            None,
            2000.0,
            (0.02, "prior", 2000.0, "observed"),
        ),  # a person's price, though nobody says that a person does it
        ("robot", None, None, None, (None, "unknown", None, "unknown")),
        ("robot", None, None, 2000.0, (None, "unknown", 2000.0, "observed")),
    ],
)
def test_prices(
    kind: str | None, model: str | None, cost: float | None, ms: float | None, expected: tuple[Any, ...]
) -> None:
    found = price_of(Actor(kind, model), cost, ms, COST)
    assert found == (pytest.approx(expected[0]), expected[1], expected[2], expected[3])


def test_no_price_ships_with_the_program() -> None:
    assert (Cost().usd_per_hour, Cost().default_cost_usd, Cost().default_duration_ms) == ({}, {}, {})
    for kind in ("human", "model", "code", None):
        assert price_of(Actor(kind), None, None, Cost()) == (None, "unknown", None, "unknown")
        assert price_of(Actor(kind), None, 3_600_000.0, Cost()) == (None, "unknown", 3_600_000.0, "observed")
    assert price_of(Actor("human"), None, 3_600_000.0, Cost(usd_per_hour={"Ann": 50})).cost_usd is None


@pytest.mark.parametrize(
    ("who", "expected"),
    [
        (("human", None, "SUPERVISOR"), (60.0, "rate")),
        (("human", None, "clerk"), (36.0, "rate")),
        ((None, None, "Supervisor"), (60.0, "rate")),
        (("model", "big-llm", None), (72.0, "rate")),
        ((None, None, "clerk"), (36.0, "prior")),
        (("model", "small", None), (None, "unknown")),
    ],
)
def test_a_model_goes_before_a_role_and_a_role_before_a_kind(who: tuple[Any, ...], expected: tuple[Any, ...]) -> None:
    settings = Cost(usd_per_hour={"human": 36, "SUPERVISOR": 60, "big-llm": 72})
    kind, model, group = who
    assert price_of(Actor(kind, model, group), None, 3_600_000.0, settings)[:2] == expected
    way = ExecutionMode(kind, model, actor_group=group, implementations=1, duration_ms_mean=3_600_000.0)
    assert node_cost(Task("t", "T"), way, settings, PRIORS).cost_usd == expected[0]


@pytest.mark.parametrize(
    ("kind", "cost", "ms", "expected"),
    [("human", None, 60.0, True), (None, None, 60.0, True), ("human", 3.0, 60.0, False), ("human", None, None, False)],
    ids=["a price", "a person's price", "an observed cost", "a default time"],
)
def test_a_cost_that_is_an_observed_time_at_a_price_is_marked(
    kind: str | None, cost: float | None, ms: float | None, expected: bool
) -> None:
    way = ExecutionMode(kind, implementations=1, duration_ms_mean=ms, cost_usd_mean=cost)
    assert node_cost(Task("t", "T"), way, COST, PRIORS).paid_by_time == expected
    flat = Cost(default_cost_usd={"human": 2.0})
    assert not node_cost(Task("t", "T"), way, flat, PRIORS).paid_by_time


def test_observed_figures_keep_their_basis() -> None:
    way = ExecutionMode(
        "human",
        implementations=9,
        p=0.8,
        p_n=9,
        q=0.3,
        q_n=2,
        basis="estimated",
        duration_ms_mean=3_600_000.0,
        duration_basis="observed",
        cost_usd_mean=10.0,
        cost_human_usd=7.0,
        cost_compute_usd=1.0,
        cost_basis="rate",
    )
    found = node_cost(Task("t", "T", p=0.5, p_n=50), way, COST, PRIORS)
    assert (found.cost_usd, found.cost_compute_usd, found.cost_model_usd, found.cost_human_usd) == (10.0, 1.0, 0.0, 9.0)
    assert (found.cost_basis, found.duration_basis) == ("rate", "observed")
    assert (found.time_usd, found.cost_usd) == (3.6, 10.0)
    assert (found.p, found.p_basis, found.q, found.q_basis) == (0.8, "estimated", 0.3, "estimated")


def test_p_and_q_fall_back_to_the_task_then_to_the_prior() -> None:
    found = node_cost(
        Task("t", "T", p=0.5, p_basis="observed", p_n=50), ExecutionMode("code", p=0.99, p_n=0), COST, PRIORS
    )
    assert (found.p, found.p_basis, found.q, found.q_basis) == (0.5, "observed", 0.1, "prior")


def test_nothing_known_is_a_persons_work() -> None:
    task = Task("t", "T")
    found = node_cost(task, execution_modes_of(task)[0], COST, PRIORS)
    assert (found.cost_usd, found.cost_human_usd, found.cost_basis) == pytest.approx((0.01, 0.01, "prior"))
    assert (found.duration_ms, found.duration_basis, found.p, found.p_basis) == (1000, "prior", 0.9, "prior")


def test_only_parts_known() -> None:
    way = ExecutionMode("model", cost_model_usd=2.0, cost_human_usd=1.0, duration_ms_mean=10.0)
    assert node_cost(Task("t", "T"), way, COST, PRIORS).cost_usd == 3.0


def test_the_most_frequent_way_and_its_ties() -> None:
    small, large = (
        ExecutionMode("model", "small", implementations=5),
        ExecutionMode("model", "large", implementations=5),
    )
    person = ExecutionMode("human", implementations=4)
    assert execution_modes_of(Task("t", "T", execution_modes=(small, large, person)))[0] is large
    assert execution_modes_of(Task("t", "T", execution_modes=(person, large, small)))[0] is large
    assert (
        execution_modes_of(Task("t", "T", execution_modes=(small, ExecutionMode("human", implementations=6))))[
            0
        ].actor_kind
        == "human"
    )
