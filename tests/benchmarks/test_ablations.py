"""Each ablation changes one thing: the figures of edges, the edges, an Intention, or a process context."""

from dataclasses import replace

import pytest

from benchmarks.ablations import ABLATIONS, applies, flat, other_context, shuffled, without_shifts
from opus_pipelines.core.ids import digest
from opus_pipelines.intakes.elements import Element
from opus_pipelines.intakes.intake import Intake
from opus_pipelines.lwm.history_backend import HistoryBackend
from opus_pipelines.lwm.pointer_backend import PointerBackend
from opus_pipelines.wkg.graph import Edge, PairShift, Task, WorkGraph
from opus_pipelines.workflow.metrics.plan_scores import interval

TASKS = [Task(name, name, industries=("loans" if name in "abc" else "claims",)) for name in "abcxyz"]
EDGES = [
    Edge("a", "b", 90, 9, 0.9, 0.1, 0.9),
    Edge("a", "c", 10, 1, 0.1, 0.9, 0.1),
    Edge("b", "c", 50, 5, 0.5, 0.5, 1.0),
    Edge("x", "y", 30, 3, 0.3, 0.7, 0.75),
    Edge("x", "z", 10, 1, 0.1, 0.9, 0.25),
]
GRAPH = WorkGraph.of(TASKS, EDGES)


def test_flat_edges_have_the_mean_figures_and_equal_chances() -> None:
    edges = {(e.src, e.dst): e for e in flat(EDGES, GRAPH)}
    assert edges.keys() == GRAPH.edges.keys()
    assert {(e.transitions, e.variants) for e in edges.values()} == {(38, 4)}
    assert {round(e.gamma, 3) for e in edges.values()} == {0.38}
    assert [edges["a", "b"].probability, edges["b", "c"].probability] == [0.5, 1.0]


def test_edges_without_shifts_keep_every_other_figure() -> None:
    shifted = [replace(EDGES[0], shift=PairShift(2.0)), *EDGES[1:]]
    assert without_shifts(shifted, GRAPH) == EDGES


def test_shuffled_edges_exchange_figures_within_industry_and_out_degree_only() -> None:
    edges = shuffled(EDGES, GRAPH)
    assert {(e.src, e.dst) for e in edges} == set(GRAPH.edges)
    strata = {"a": 2, "b": 1, "x": 2}
    for src in strata:
        before = sorted(e.gamma for e in EDGES if e.src == src)
        assert sorted(e.gamma for e in edges if e.src == src) == before
        assert sum(e.probability for e in edges if e.src == src) == pytest.approx(1.0)
    assert shuffled(EDGES, GRAPH) == edges, "seeded"


def intake(name: str, context: str | None, industry: str = "loans") -> Intake:
    elements = [
        Element(f"{name} {role}", role, "text", f"{role}.txt", "text/plain", text, len(text), digest(text), None)
        for role, text in (("input", f"request {name}"), ("process", context))
        if text
    ]
    return Intake(name, name, None, elements, industry=industry)


def test_another_context_is_of_the_same_industry_and_has_another_text() -> None:
    intakes = [
        intake("a", "one"),
        intake("b", "one"),
        intake("c", "two"),
        intake("d", "x", "claims"),
        intake("e", None),
    ]
    changed = other_context(intakes)
    texts = [[e.text for e in i.elements] for i in changed]
    assert texts[0] == ["request a", "two"]
    assert texts[1] == ["request b", "two"]
    assert texts[2][1] == "one"
    assert changed[3] is intakes[3], "alone in its industry"
    assert changed[4] is intakes[4], "without a context"


def test_the_ablations_of_the_issue_are_there() -> None:
    assert list(ABLATIONS) == [
        "gamma flat",
        "gamma shuffled",
        "no pairs",
        "no edges",
        "no similar cases",
        "no procedure",
        "no trained model",
        "untrained Intention",
        "no routing",
        "constant Intention",
        "other context",
        "no critical tasks",
        "no unknown steps",
        "no SWKG",
        "no Algorithm 1",
        "no reviews",
        "no composition",
    ]
    assert not applies("no trained model", PointerBackend()), "no model was trained"
    assert not applies("no trained model", HistoryBackend())
    assert not applies("untrained Intention", PointerBackend()), "no encoder was trained"
    assert applies("no edges", PointerBackend())


def test_the_bootstrap_draws_groups() -> None:
    assert interval([1.0, 1.0, 1.0], "abc") == (1.0, 1.0)
    assert interval([0.0, 1.0] * 50, ["one"] * 100) == (0.5, 0.5), "one group has no spread"
    low, high = interval([0.0, 1.0] * 50, list(range(100)))
    assert 0.39 < low < 0.42
    assert 0.58 < high < 0.61
