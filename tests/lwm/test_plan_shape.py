"""Which steps wait for which: literal shapes, and the laws of a partial order on random ones."""

from itertools import combinations

from hypothesis import given
from hypothesis import strategies as st

from opus_pipelines.lwm.precedence import OrderFacts, plan_shape
from opus_pipelines.workflow.model import TaskOrder

INDEPENDENT = OrderFacts(lambda pair: (5.0, 5.0))
TASKS = tuple("abcdefg")


@st.composite
def orders(draw: st.DrawFn) -> TaskOrder:
    tasks = TASKS[: draw(st.integers(1, len(TASKS)))]
    pairs = [pair for pair in combinations(tasks, 2) if draw(st.booleans())]
    return TaskOrder.of(tasks, pairs)


def test_tasks_seen_in_both_orders_stand_side_by_side() -> None:
    order = plan_shape(["a", "b", "c"], INDEPENDENT)
    assert order.pairs() == []
    assert order.edges() == [
        ("input", "a"),
        ("input", "b"),
        ("input", "c"),
        ("a", "output"),
        ("b", "output"),
        ("c", "output"),
    ]


def test_a_task_waits_for_what_makes_its_data() -> None:
    facts = OrderFacts(
        INDEPENDENT.counts,
        {"c": frozenset({"report", "offer"})},
        {"a": frozenset({"report"}), "b": frozenset({"offer", "note"})},
    )
    order = plan_shape(["a", "b", "c"], facts)
    assert order.edges() == [("input", "a"), ("input", "b"), ("a", "c"), ("b", "c"), ("c", "output")]
    assert facts.flows("b", "c") == {"offer"}


def test_a_settled_order_is_kept_and_what_nobody_knows_waits() -> None:
    ordered = OrderFacts(INDEPENDENT.counts, precedence=frozenset({("a", "b")}))
    assert plan_shape(["a", "b"], ordered).pairs() == [("a", "b")]
    assert plan_shape(["b", "a"], ordered).pairs() == [("b", "a")]  # proposed against it: still one after the other
    assert plan_shape(["a", "b"], OrderFacts(lambda pair: (0.0, 0.0))).is_chain


def test_what_waits_by_another_way_has_no_edge_of_its_own() -> None:
    order = TaskOrder.of("abcd", [("a", "b"), ("b", "d"), ("a", "d"), ("a", "c")])
    assert order.covers() == [("a", "b"), ("a", "c"), ("b", "d")]
    assert order.unordered_pairs() == [("b", "c"), ("c", "d")]
    assert TaskOrder.chain("abcd").covers() == [("a", "b"), ("b", "c"), ("c", "d")]


@given(orders())
def test_the_reduction_closes_to_the_order_again(order: TaskOrder) -> None:
    assert TaskOrder.of(order.tasks, order.covers()) == order
    place = {t: i for i, t in enumerate(order.tasks)}
    assert all(place[a] < place[b] for a, b in order.pairs())


@given(orders())
def test_every_task_lies_between_input_and_output(order: TaskOrder) -> None:
    edges = order.edges()
    for task in order.tasks:
        assert any(b == task for _, b in edges)
        assert any(a == task for a, _ in edges)


@given(orders())
def test_freeing_a_direct_wait_takes_that_pair_alone(order: TaskOrder) -> None:
    for pair in order.covers():
        freed = order.without_wait(*pair)
        assert set(order.pairs()) - set(freed.pairs()) == {pair}
        assert TaskOrder.of(freed.tasks, freed.pairs()) == freed


@given(orders())
def test_binding_closes_the_order(order: TaskOrder) -> None:
    for pair in order.unordered_pairs():
        bound = order.with_wait(*pair)
        assert bound == TaskOrder.of(order.tasks, [*order.pairs(), pair])


def test_a_chain_is_the_order_in_which_all_wait() -> None:
    assert TaskOrder.chain("abc").is_chain
    assert TaskOrder.chain("abc") == TaskOrder.of("abc", combinations("abc", 2))
    assert not TaskOrder.of("abc", [("a", "b")]).is_chain
    assert TaskOrder.chain(()).edges() == []
