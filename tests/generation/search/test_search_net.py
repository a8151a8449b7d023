"""Nets that mean the same are equal, so that one search serves them all; those that differ in anything that a search
sees are not.
"""

import random
from dataclasses import replace

import pytest

from opus_pipelines.core.settings import Cost
from opus_pipelines.generation.search.labels import best_paths, solve
from opus_pipelines.generation.search.net import SearchNet
from opus_pipelines.generation.search.problem import Avoids, Before, Contains, Limit, Problem, ProblemKey
from opus_pipelines.workflow.model import INPUT, OUTPUT, TaskNode
from tests.generation.search.test_label_search import random_problem, wfg_of


def way(name: str, **figures: float) -> TaskNode:
    return TaskNode(name, name, name, **{"p": 0.9, "q": 0.1, "cost_usd": 1.0, "duration_ms": 5.0} | figures)  # type: ignore[arg-type]


EDGES = {
    (INPUT, "a"): (0.5, 3),
    ("a", "b"): (0.5, 3),
    ("a", "c"): (0.5, 1),
    ("b", OUTPUT): (0.5, 3),
    ("c", OUTPUT): (0.5, 1),
}
WAYS = {"a": [way("a"), way("a", p=0.8, cost_usd=0.5)], "b": [way("b")], "c": [way("c")]}
PLAIN = Problem(wfg_of(EDGES), WAYS, Cost(kappa_usd=0.01), 20.0)


def test_equal_problems_have_equal_nets() -> None:
    again = replace(
        PLAIN, wfg=wfg_of(dict(reversed(EDGES.items()))), options={name: list(WAYS[name]) for name in reversed(WAYS)}
    )
    assert SearchNet(again) == SearchNet(PLAIN)
    assert hash(SearchNet(again)) == hash(SearchNet(PLAIN))


@pytest.mark.parametrize(
    "other",
    [
        replace(PLAIN, gain_usd=20.5),
        replace(PLAIN, prior=0.9),
        replace(PLAIN, objective="success"),
        replace(PLAIN, cost=Cost(kappa_usd=0.02)),
        replace(PLAIN, options=WAYS | {"b": [way("b", p=0.91)]}),
        replace(PLAIN, options=WAYS | {"b": [way("b", duration_ms=6.0)]}),
        replace(PLAIN, wfg=wfg_of(EDGES | {("a", "b"): (0.4, 3)})),
        replace(PLAIN, wfg=wfg_of(EDGES | {("a", "b"): (0.5, 4)})),
        replace(PLAIN, demands=(Contains("b", frozenset("b")),)),
        replace(PLAIN, demands=(Avoids("b", frozenset("b")),)),
        replace(PLAIN, demands=(Limit("cost", "cost_usd", 2.0),)),
        replace(PLAIN, demands=(Before("order", ((frozenset("bc"), frozenset("a")),)),)),
    ],
    ids=[
        "gain",
        "prior",
        "objective",
        "cost",
        "chance",
        "time",
        "gamma",
        "transitions",
        "contains",
        "avoids",
        "limit",
        "before",
    ],
)
def test_whatever_a_search_sees_makes_another_net(other: Problem) -> None:
    assert SearchNet(other) != SearchNet(PLAIN)
    assert ProblemKey.of(other) != ProblemKey.of(PLAIN)


def test_a_problem_with_the_same_options_has_the_same_key() -> None:
    again = replace(PLAIN, wfg=wfg_of(dict(reversed(EDGES.items()))), cost=Cost(kappa_usd=0.01))
    assert ProblemKey.of(again) == ProblemKey.of(PLAIN)
    assert hash(ProblemKey.of(again)) == hash(ProblemKey.of(PLAIN))


@pytest.mark.parametrize("seed", range(20))
def test_what_is_remembered_is_what_a_search_finds(seed: int) -> None:
    problems = [random_problem(random.Random(seed)) for _ in range(2)]
    solve.cache_clear()
    found = [best_paths(problem, 3) for problem in problems]
    assert solve.cache_info().hits == 1
    assert found[0] == found[1]
    assert [path.nodes for path in found[1].paths] == [path.nodes for path in found[0].paths]
