from opus_pipelines.generation.order import breaks, settled_order
from opus_pipelines.lwm.interface import NearCase


def case(tasks, success=True, weight=1.0):
    nothing = (None,) * len(tasks)
    return NearCase("i" + tasks, 0.9, weight, success, None, None, None, tuple(tasks), tuple(tasks), nothing, nothing, nothing)


def test_what_cases_agree_on_is_settled_and_what_they_do_either_way_is_not():
    order = settled_order([case("abcd"), case("acbd"), case("dcba", success=False)], 0.9)
    assert order == {("a", "b"), ("a", "c"), ("a", "d"), ("b", "d"), ("c", "d")}


def test_a_loop_counts_by_its_first_round():
    assert settled_order([case("abab")], 0.9) == {("a", "b")}


def test_far_cases_settle_nothing():
    assert settled_order([case("ab", weight=0.1)], 0.9) == frozenset()


def test_a_sequence_against_the_order_breaks_it_wherever_it_does():
    order = settled_order([case("abc")], 0.9)
    assert breaks("cab", order)
    assert breaks("bca", order)
    assert not breaks("ac", order)
