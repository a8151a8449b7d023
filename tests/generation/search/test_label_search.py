"""Paths with the way of every task, within limits, against brute force: every loopless path of small random graphs in
all its ways.
"""

import random
from collections.abc import Iterator
from dataclasses import replace
from itertools import pairwise, product
from typing import Any

import pytest

from opus_pipelines.core.errors import WorkflowError
from opus_pipelines.core.settings import Cost
from opus_pipelines.generation.search.costs import behind
from opus_pipelines.generation.search.labels import best_paths
from opus_pipelines.generation.search.problem import Avoids, Before, Contains, Demand, Differs, Limit, Problem, keeps
from opus_pipelines.lwm.workflow_graph import WFG, WfgEdge, WfgNode
from opus_pipelines.wkg.graph import PairShift
from opus_pipelines.workflow.model import INPUT, OUTPUT, TaskNode
from tests.campaigns import examples

PRICES = [
    Cost(kappa_usd=0.01),
    Cost(kappa_usd=0.0, usd_per_hour_of_duration=1.0),
    Cost(kappa_usd=0.01, usd_per_gb_held=0.5),
]


def wfg_of(edges: dict[tuple[str, str], tuple[float, int]]) -> WFG:
    names = sorted({n for pair in edges for n in pair} | {INPUT, OUTPUT})
    return WFG(
        {n: WfgNode(n, n, "history", ()) for n in names},
        {(a, b): WfgEdge(a, b, "history", None, rest, count, ()) for (a, b), (rest, count) in sorted(edges.items())},
    )


def random_problem(rng: random.Random, demanding: float = 1.0) -> Problem:
    """Up to ten nodes, with cycles; one or two ways a task, of a third of the problems some with p < q; often with
    demands.
    """
    inner = [*"abcdefgh"[: rng.randint(1, 8)]]
    names, density = [INPUT, *inner, OUTPUT], rng.choice([0.25, 0.35, 0.5])
    pairs = [
        (a, b) for a, b in product(names, names) if a != OUTPUT and b != INPUT and a != b and rng.random() < density
    ]
    wfg = wfg_of(
        {pair: (rng.choice([0, 0.5, 1.0]), rng.randint(0, 3)) for pair in pairs} | {(INPUT, inner[0]): (1.0, 0)}
    )
    signed = rng.random() < 0.3

    def way(name: str) -> TaskNode:
        p, q = rng.choice([0.5, 0.9, 1.0, rng.random()]), rng.choice([0, 0.2, rng.random()])
        p, q = (p, q) if signed else (max(p, q), min(p, q))
        return TaskNode(
            name,
            name,
            name,
            p=p,
            q=q,
            cost_usd=rng.choice([0, 0.5, 1, 2 * rng.random()]),
            duration_ms=rng.choice([0, 1, 2, 3]) * 1e6,
            memory_gb=rng.choice([0, 0, 1, 2]),
        )

    def some(most: int) -> frozenset[str]:
        return frozenset(rng.sample(inner, min(len(inner), rng.randint(1, most))))

    options = {name: [way(name) for _ in range(rng.randint(1, 2))] for name in inner}
    demands: list[Demand] = [
        Contains("contains", some(3)) for _ in range(rng.choice([0, 0, 1, 2])) if rng.random() < demanding
    ]
    demands += [Avoids("avoids", some(1))] if rng.random() < 0.15 * demanding else []
    demands += [Before("before", ((some(2), some(2)), (some(1), some(1))))] if rng.random() < 0.3 * demanding else []
    demands += [Limit("cost", "cost_usd", rng.choice([1, 2, 3, 4]))] if rng.random() < 0.3 else []
    demands += [Limit("time", "duration_ms", rng.choice([2, 4, 6, 8]) * 1e6)] if rng.random() < 0.3 else []
    demands += [Limit("success", "success", rng.choice([0.3, 0.6, 0.8]))] if rng.random() < 0.3 else []
    objective = rng.choice(["reward", "reward", "reward", "cost_usd", "duration_ms", "success"])
    gain, prior = rng.choice([0, 1, 5, 20.0]), rng.choice([1.0, 0.7])
    cost = rng.choice(PRICES)
    shifts = (
        {pair: shift(rng) for pair in pairs if not {INPUT, OUTPUT} & {*pair} and rng.random() < 0.3}
        if rng.random() < 0.5
        else {}
    )
    shifts = {pair: s for pair, s in shifts.items() if signed or s.p_log_odds >= s.q_log_odds}
    return Problem(wfg, options, cost, gain, prior, tuple(demands), objective, shifts)  # type: ignore[arg-type]


def shift(rng: random.Random) -> PairShift:
    p, q = (rng.choice([-3.0, -0.5, 0.0, 2.0]) for _ in range(2))
    return PairShift(p, q, rng.choice([0.5, 1.0, 3.0]), rng.choice([None, 0.2, 2.0]))


def loopless(wfg: WFG) -> Iterator[tuple[str, ...]]:
    after: dict[str, list[str]] = {n: [] for n in wfg.nodes}
    for a, b in wfg.edges:
        after[a].append(b)
    paths: list[tuple[str, ...]] = [(INPUT,)]
    while paths:
        path = paths.pop()
        if path[-1] == OUTPUT:
            yield path
            continue
        paths += [(*path, b) for b in after[path[-1]] if b not in path]


def in_demand(path: tuple[str, ...], demands: tuple[Demand, ...]) -> bool:
    """As `keeps`, written apart from it."""
    at = {n: i for i, n in enumerate(path)}
    for d in demands:
        if (isinstance(d, Contains) and not d.nodes & set(path)) or (isinstance(d, Avoids) and d.nodes & set(path)):
            return False
        if (
            isinstance(d, Differs)
            and len(d.nodes - set(path)) < d.least
            and len(set(path) - d.nodes - {INPUT, OUTPUT}) < d.least
        ):
            return False
        if isinstance(d, Before):
            places = [
                ([at[n] for n in first if n in at], [at[n] for n in second if n in at]) for first, second in d.pairs
            ]
            if any(a and b and min(a) >= min(b) for a, b in places):
                return False
    return True


def brute(problem: Problem) -> list[float]:
    """What every fitting path is worth with its best ways, best first."""
    limits = {d.figure: d.value for d in problem.demands if isinstance(d, Limit)}
    prices, found = problem.cost, []
    for path in loopless(problem.wfg):
        fits = in_demand(path, problem.demands)
        assert fits == keeps(path[1:-1], problem.demands)
        if not fits:
            continue
        kappa = prices.kappa_usd * sum(problem.wfg.edges[pair].one_minus_gamma for pair in pairwise(path))
        worths = []
        for chosen in product(*(problem.options[n] for n in path[1:-1])):
            ways = [behind(way, [before], problem.shifts) for before, way in zip(path, chosen, strict=False)]
            success, duration = problem.prior, sum(w.duration_ms for w in ways)
            for w in ways:
                success = w.p * success + w.q * (1 - success)
            held = prices.usd_per_gb_held * max((w.memory_gb for w in ways), default=0.0)
            cost = sum(w.cost_usd for w in ways) + prices.usd_per_hour_of_duration * duration / 3.6e6 + held
            if (
                cost <= limits.get("cost_usd", 1e9) + 1e-9
                and duration <= limits.get("duration_ms", 1e18)
                and success >= limits.get("success", 0) - 1e-12
            ):
                worths.append(
                    {
                        "reward": problem.gain_usd * success - cost - kappa,
                        "cost_usd": -cost - kappa,
                        "duration_ms": -duration,
                        "success": success,
                    }[problem.objective]
                )
        found += [max(worths)] if worths else []
    return sorted(found, reverse=True)


@pytest.mark.long
@pytest.mark.parametrize("hundred", range(4))
def test_paths_unlike_others_against_brute_force(hundred: int) -> None:
    """The best ones that lie so many swaps at least from one or two paths, some of whose nodes the graph may lack."""
    found_some = 0
    for seed in range(hundred * 100, hundred * 100 + 100):
        rng = random.Random(seed)
        problem, k = random_problem(rng, 0.5), rng.choice([1, 2, 4])
        others = [
            frozenset(rng.sample([*problem.options, "elsewhere"], rng.randint(1, len(problem.options))))
            for _ in range(2)
        ]
        diversity = [Differs("diversity", nodes, rng.choice([1, 2, 2, 3])) for nodes in others[: rng.choice([1, 1, 2])]]
        problem = replace(problem, demands=(*problem.demands, *diversity))
        found = best_paths(problem, k)
        assert [path.worth for path in found.paths] == pytest.approx(brute(problem)[:k], abs=1e-8), seed
        assert (found.exact, found.gap) == (True, 0.0)
        assert all(in_demand(path.tasks, problem.demands) for path in found.paths)
        found_some += bool(found.paths)
    assert found_some >= 20


@pytest.mark.long
@pytest.mark.parametrize("hundred", [0, 1, *(pytest.param(n, marks=pytest.mark.nightly) for n in range(2, 10))])
def test_a_thousand_random_graphs_against_brute_force(hundred: int) -> None:
    for seed in range(hundred * 100, hundred * 100 + 100):
        rng = random.Random(seed)
        problem, k = random_problem(rng, 0.6), rng.choice([1, 2, 4, 8])
        patience = rng.choice([0, 200])  # limits priced from the first label on, or never
        found = best_paths(problem, k, patience=patience)
        assert [path.worth for path in found.paths] == pytest.approx(brute(problem)[:k], abs=1e-8), seed
        assert (found.exact, found.gap) == (True, 0.0)
        assert all(
            in_demand(path.tasks, problem.demands) and keeps(path.tasks, problem.demands) for path in found.paths
        )
        assert len({path.tasks for path in found.paths}) == len(found.paths)


@pytest.mark.long
def test_cheapest_paths_of_a_thousand_random_graphs() -> None:
    for seed in range(examples(300)):
        rng = random.Random(seed)
        problem = random_problem(rng)
        options = {n: ways[:1] for n, ways in problem.options.items()}
        plain = replace(problem, options=options, cost=PRICES[0], objective="cost_usd", demands=())
        assert [path.worth for path in best_paths(plain, 4).paths] == pytest.approx(brute(plain)[:4], abs=1e-8)


@pytest.mark.long
def test_where_the_search_ends_early_its_gap_holds() -> None:
    early = 0
    for seed in range(examples(300)):
        rng = random.Random(seed)
        problem, k = random_problem(rng, 0.6), rng.choice([1, 4])
        patience, effort, front = rng.choice([0, 1, 3]), rng.choice([0, 1, 3, 5, 10]), rng.choice([1, 2, 1000])
        found, best = best_paths(problem, k, effort, front, patience), brute(problem)[:k]
        if found.exact:
            assert [path.worth for path in found.paths] == pytest.approx(best, abs=1e-8)
        elif found.gap is None:
            assert not found.paths
        else:
            early += 1
            assert best[0] <= found.paths[0].worth + found.gap + 1e-8
    assert early > 4


A, B = (TaskNode(n, n, n, p=0.9, cost_usd=1.0, duration_ms=1e6) for n in "ab")
CHAIN = wfg_of({(INPUT, "a"): (0, 0), ("a", "b"): (0, 0), ("b", OUTPUT): (0, 0)})
SURE_A, SLOW_A = replace(A, p=1.0, cost_usd=3.0), replace(A, p=0.95, cost_usd=0.5, duration_ms=9e6)
TWO = Problem(CHAIN, {"a": [A, SURE_A, SLOW_A], "b": [B]}, Cost(kappa_usd=0.0), 100.0)


@pytest.mark.parametrize(
    ("problem", "way", "worth"),
    [
        (TWO, SURE_A, 100 * 0.9 - 4),
        (replace(TWO, gain_usd=10.0), SLOW_A, 10 * 0.95 * 0.9 - 1.5),
        (replace(TWO, demands=(Limit("budget", "cost_usd", 3.0),)), SLOW_A, 100 * 0.95 * 0.9 - 1.5),
        (
            replace(TWO, demands=(Limit("budget", "cost_usd", 3.0), Limit("time", "duration_ms", 5e6))),
            A,
            100 * 0.81 - 2,
        ),
        (replace(TWO, gain_usd=0.0, demands=(Limit("success", "success", 0.85),)), SLOW_A, -1.5),
        (replace(TWO, gain_usd=0.0, demands=(Limit("success", "success", 0.9),)), SURE_A, -4.0),
        (replace(TWO, objective="cost_usd"), SLOW_A, -1.5),
        (replace(TWO, objective="success"), SURE_A, 0.9),
    ],
)
def test_limits_and_gain_decide_the_way(problem: Problem, way: TaskNode, worth: float) -> None:
    (path,) = best_paths(problem).paths
    assert path.nodes == (way, B)
    assert path.worth == pytest.approx(worth)


def test_where_a_task_thrives_on_failure_the_worse_beginning_wins() -> None:
    turned = replace(B, p=0.1, q=1.0)
    (path,) = best_paths(replace(TWO, options={"a": [SURE_A, replace(A, p=0.2, cost_usd=3.0)], "b": [turned]})).paths
    assert path.success == pytest.approx(0.1 * 0.2 + 0.8)


def test_no_path_within_the_limits_is_no_path() -> None:
    found = best_paths(replace(TWO, demands=(Limit("budget", "cost_usd", 1.0),)), 3)
    assert (found.paths, found.exact, found.gap) == ([], True, 0.0)


def test_what_nothing_was_found_for_is_not_called_infeasible() -> None:
    found = best_paths(TWO, effort=0)
    assert (found.paths, found.exact, found.gap) == ([], False, None)


@pytest.mark.parametrize(
    "figures",
    [
        {"p": 1.2},
        {"q": -0.1},
        {"cost_usd": float("nan")},
        {"cost_usd": -1.0},
        {"duration_ms": float("inf")},
    ],
)
def test_figures_that_are_none_are_refused(figures: dict[str, Any]) -> None:
    with pytest.raises(WorkflowError, match="the search needs probabilities"):
        best_paths(replace(TWO, options={"a": [A, replace(A, **figures)], "b": [B]}))


@pytest.mark.long
def test_a_large_graph_with_cycles_and_limits_is_solved_or_states_its_gap() -> None:
    rng = random.Random(5)
    names = [f"n{i:02}" for i in range(60)]
    edges = {(a, b): (1.0, 0) for a in names for b in rng.sample(names, 4) if a != b}
    edges |= {(INPUT, n): (1.0, 0) for n in names[:5]} | {(n, OUTPUT): (1.0, 0) for n in names[-5:]}
    ways = {
        n: [
            TaskNode(
                n,
                n,
                n,
                p=rng.uniform(0.8, 1),
                q=rng.uniform(0, 0.3),
                cost_usd=c * rng.random(),
                duration_ms=1e6 * rng.random(),
            )
            for c in (1, 3)
        ]
        for n in names
    }
    groups = tuple(Contains(f"one of {i}", frozenset(rng.sample(names, 4))) for i in range(5))
    limits = Limit("budget", "cost_usd", 3.0), Limit("time", "duration_ms", 4e6)
    problem = Problem(wfg_of(edges), ways, Cost(), 20.0, demands=(*groups, *limits))
    found = best_paths(problem, effort=300, front=50)
    assert found.paths
    assert found.paths[0].cost_usd <= 3.0
    assert found.gap is not None
    assert found.exact == (found.gap == 0.0)
