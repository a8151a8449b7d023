"""Coupling, Observability and Hygiene of tasks in small workflows by hand, and what a change does to them."""

from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from opus_pipelines.core.settings import ScoreRules
from opus_pipelines.workflow.evaluation.penalty import Scores, TaskFacts, measure
from opus_pipelines.workflow.model import InputNode, OutputNode, TaskNode, Workflow

RULES_IN_FORCE = ScoreRules()
READ = TaskFacts(
    ("read the invoice",), ("invoice",), ("fields", "scan"), community="desk", leaving=0.25, outcomes=0.5, figures=1.0
)
MATCH = TaskFacts(
    ("match the order",),
    ("fields", "order"),
    ("match",),
    community="desk",
    leaving=0.0,
    outcomes=1.0,
    figures=1.0,
    q=0.5,
)
PAY = TaskFacts(("pay it",), ("match",), ("payment",), community="bank", leaving=1.0, outcomes=1.0, figures=0.5, q=0.2)
REVIEW = TaskFacts(("look again",), is_review=True)


def chain(**facts: TaskFacts) -> tuple[Workflow, dict[str, TaskFacts]]:
    ids = ["in", *facts, "out"]
    nodes = [InputNode("in", "In"), *(TaskNode(i, i, i.title()) for i in facts), OutputNode("out", "Out", 1.0)]
    return Workflow.of(nodes, pairwise(ids)), facts


def scores(**facts: TaskFacts) -> dict[str, Scores]:
    return measure(*chain(**facts), RULES_IN_FORCE)


def column(found: dict[str, Scores], name: str) -> dict[str, float]:
    return {node: pytest.approx(getattr(s, name)) for node, s in found.items()}


def test_coupling_is_the_mean_of_the_shares_that_cross() -> None:
    """read: history 1/4, no neighbour, no flow crosses; match: one of two neighbours, `order` from nobody and `match`
    to pay, of three.
    """
    expected = {"read": (0.25 + 0 + 0) / 3, "match": (0 + 1 / 2 + 2 / 3) / 3, "pay": (1 + 1 + 1) / 3}
    assert column(scores(read=READ, match=MATCH, pay=PAY), "coupling") == expected


def test_where_no_community_is_known_coupling_is_what_cohesion_leaves() -> None:
    lost = replace(READ, community=None, leaving=None, statements=("read invoices", "read orders"))
    found = scores(read=lost)["read"]
    assert found.coupling == 1 - found.cohesion
    assert found.cohesion == pytest.approx(1 - 0.5**0.5)
    assert (
        scores(read=replace(lost, statements=()))["read"].cohesion
        == scores(read=replace(lost, statements=()))["read"].coupling
        == 0.5
    )


def test_observability_is_what_leaves_no_trace() -> None:
    """read is looked at by match (it q half), pay by nobody; match by pay, which q a fifth."""
    expected = {
        "read": 1 - (1 + 0.5 + 1 + 0.5) / 4,
        "match": 1 - (1 + 1 + 1 + 0.2) / 4,
        "pay": 1 - (1 + 1 + 0.5 + 0) / 4,
    }
    assert column(scores(read=READ, match=MATCH, pay=PAY), "observability") == expected


def test_a_review_after_a_task_lowers_its_observability_score() -> None:
    plain, reviewed = scores(read=READ, match=MATCH, pay=PAY), scores(read=READ, again=REVIEW, match=MATCH, pay=PAY)
    assert reviewed["read"].observability == pytest.approx(1 - (1 + 0.5 + 1 + 1) / 4)
    assert reviewed["read"].observability < plain["read"].observability
    assert {n: reviewed[n].observability for n in ("match", "pay")} == {
        n: plain[n].observability for n in ("match", "pay")
    }


def test_a_review_belongs_to_what_it_reviews_and_what_it_reviews_still_goes_to_the_client() -> None:
    found = scores(read=READ, pay=PAY, again=REVIEW)
    assert found["pay"].hygiene == 0
    assert found["again"].coupling == 0
    assert scores(read=READ, again=REVIEW, pay=PAY)["pay"].coupling == pytest.approx((1 + 1 + 1) / 3)


def test_hygiene_is_the_share_of_what_should_not_be_emitted() -> None:
    """read leaves `scan` to nobody; what pay leaves goes to the client."""
    assert column(scores(read=READ, match=MATCH, pay=PAY), "hygiene") == {"read": 0.5, "match": 0, "pay": 0}


def test_a_task_that_emits_the_document_is_worse_than_one_that_emits_the_field() -> None:
    takes = TaskFacts(inputs=("invoice total",))
    field = scores(read=replace(READ, outputs=("invoice total",)), pay=takes)["read"].hygiene
    whole = scores(read=replace(READ, outputs=("invoice",)), pay=takes)["read"].hygiene
    listed = scores(
        read=replace(READ, outputs=("invoice total", "invoice lines", "invoice date", "supplier")), pay=takes
    )["read"].hygiene
    assert (field, whole, listed) == (0, 0.5, 0.75)
    two_parts = TaskFacts(inputs=("invoice total", "invoice lines"))
    assert scores(read=replace(READ, outputs=("invoice",)), pay=two_parts)["read"].hygiene == pytest.approx(1 / 3)
    assert scores(read=replace(READ, outputs=("invo",)), pay=takes)["read"].hygiene == 1


def test_what_others_emit_again_and_what_is_private_is_counted() -> None:
    twice = scores(
        read=READ, match=replace(MATCH, outputs=("match", "fields")), pay=replace(PAY, inputs=("match", "fields"))
    )
    assert twice["read"].hygiene == pytest.approx((0.5 + 1) / 2)
    assert twice["match"].hygiene == pytest.approx((0 + 0.5) / 2)
    private = replace(PAY, outputs=("payment", "account number"), private=frozenset({"account number"}))
    assert scores(pay=private)["pay"].hygiene == 0.5


def test_where_no_data_is_named_hygiene_is_what_observability_leaves() -> None:
    mute = TaskFacts(("read the invoice",), outcomes=1.0, figures=1.0)
    found = scores(read=mute, pay=mute)["read"]
    assert (found.observability, found.hygiene) == (0.5, 0.5)
    half = scores(read=replace(mute, outputs=("fields",)), pay=mute)["read"]
    assert half.hygiene == 1 - half.observability == 0.75


few = settings(max_examples=50, deadline=None)
names = st.sampled_from(["a", "b", "c", "a b"])
share = st.floats(0, 1)
some_facts = st.builds(
    TaskFacts,
    st.lists(st.sampled_from(["read the invoice", "match orders", "pay invoices"]), unique=True).map(tuple),
    st.lists(names, unique=True).map(tuple),
    st.lists(names, unique=True).map(tuple),
    st.just(frozenset({"c"})),
    st.sampled_from([None, "x", "y"]),
    st.one_of(st.none(), share),
    share,
    share,
    share,
    st.booleans(),
)


@st.composite
def worlds(draw: Callable[..., Any]) -> tuple[Workflow, dict[str, TaskFacts]]:
    n = draw(st.integers(1, 6))
    ids = [f"t{k}" for k in range(n)]
    edges = [(u, v) for k, v in enumerate(ids) for u in ids[:k] if draw(st.booleans())]
    edges += (
        [("in", v) for v in ids if draw(st.booleans())]
        + [(u, "out") for u in ids if draw(st.booleans())]
        + [(ids[-1], "out")]
    )
    nodes = [InputNode("in", "In"), *(TaskNode(i, i, i) for i in ids), OutputNode("out", "Out", 1.0)]
    return Workflow.of(nodes, edges), {i: draw(some_facts) for i in ids}


@few
@given(worlds(), st.randoms(use_true_random=False))
def test_scores_are_bounded_and_free_of_the_order_of_nodes_and_of_names(world: tuple[Any, ...], rng: Any) -> None:
    workflow, facts = world
    found = measure(workflow, facts, RULES_IN_FORCE)
    assert found.keys() == facts.keys()
    assert all(0 <= x <= 1 for s in found.values() for x in vars(s).values())
    others = [f"other {k}" for k in range(len(facts))]
    rng.shuffle(others)
    new = dict(zip(facts, others, strict=True))
    name = lambda node: new.get(node, node)
    nodes = [replace(n, id=name(n.id)) for n in workflow.nodes]
    rng.shuffle(nodes)
    other = Workflow.of(nodes, [(name(u), name(v)) for u, v in workflow.edges])
    again = measure(other, {new[n]: f for n, f in facts.items()}, RULES_IN_FORCE)
    for old, score in found.items():
        assert vars(again[new[old]]) == pytest.approx(vars(score), abs=1e-12)


@few
@given(worlds(), st.data())
def test_a_better_trace_and_less_that_leaves_never_make_a_score_worse(world: tuple[Any, ...], data: Any) -> None:
    workflow, facts = world
    node = data.draw(st.sampled_from(sorted(facts)))
    own = facts[node]
    better = replace(
        own, leaving=None if own.leaving is None else own.leaving / 2, outcomes=(1 + own.outcomes) / 2, figures=1.0
    )
    before, after = (
        measure(workflow, facts | {node: f}, ScoreRules(cohesion=0.5, hygiene=0.5))[node] for f in (own, better)
    )
    assert after.coupling <= before.coupling + 1e-12
    assert after.observability <= before.observability + 1e-12


@few
@given(worlds(), st.data())
def test_emitting_something_private_never_makes_hygiene_better(world: tuple[Any, ...], data: Any) -> None:
    workflow, facts = world
    own = facts[data.draw(st.sampled_from(sorted(facts)))]
    node = next(n for n, f in facts.items() if f is own)
    more = replace(own, outputs=(*own.outputs, "junk"), private=own.private | {"junk"})
    before, after = (
        measure(workflow, facts | {node: f}, ScoreRules(observability=0.0))[node].hygiene for f in (own, more)
    )
    assert not own.outputs or after >= before - 1e-12
