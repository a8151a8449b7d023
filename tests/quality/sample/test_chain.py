"""The exact expectations of a chain, against figures worked out by hand and laws that any flow obeys."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from opus_pipelines.quality.sample.model import (
    Check,
    Do,
    Kind,
    Maybe,
    Needed,
    Task,
    Together,
    code,
    compile_chain,
    expected,
    mixed,
    variants,
)


def task(name: str, p: float, q: float) -> Any:
    return Task(name, "", (), (), {"code": ""}, (code(1.0, p, q, 1),))


def kind(*flow: Any) -> Any:
    return Kind("k", "", {}, "", flow, 1)


TASKS = {t.name: t for t in (task("a", 0.8, 0.0), task("b", 1.0, 0.5), task("c", 0.9, 0.1), task("d", 1.0, 0.0))}


def test_rework_by_hand() -> None:
    """a right .8; b mends half; what is still wrong goes back to a, whose q = 0, until b has mended it: always right
    in the end.
    """
    e = expected(compile_chain(kind(Do("a"), Check("b", "a", 1.0))), TASKS)
    assert e.right == pytest.approx(1.0)
    assert e.visits == pytest.approx(
        {"a": 1.2, "b": 1.2}
    )  # .1 go back, then half of them each time: .1 + .05 + ... = .2
    assert e.after_wrong == pytest.approx({"a": 0.2, "b": 0.4})
    assert e.transitions == pytest.approx({("a", "b"): 1.2, ("b", "a"): 0.2})
    assert (e.starts, e.ends) == ({"a": pytest.approx(1.0)}, {"b": pytest.approx(1.0)})


def test_parallel_tasks_in_either_order() -> None:
    e = expected(compile_chain(kind(Do("d"), Together({"a": 3, "c": 1}), Do("b"))), TASKS)
    assert e.transitions == pytest.approx(
        {
            ("d", "a"): 0.75,
            ("d", "c"): 0.25,
            ("a", "c"): 0.75,
            ("c", "a"): 0.25,
            ("a", "b"): 0.25,
            ("c", "b"): 0.75,
        }
    )


def test_three_parallel_tasks_have_each_place() -> None:
    e = expected(compile_chain(kind(Together({"a": 1, "b": 1, "c": 1}))), TASKS)
    assert e.visits == pytest.approx(dict.fromkeys("abc", 1.0))
    assert e.transitions == pytest.approx({(x, y): 1 / 3 for x in "abc" for y in "abc" if x != y})


def test_optional_and_needed() -> None:
    k = kind(Do("d"), Maybe("c", 0.3), Needed("b", 0.2, 0.8), Do("a"))
    (share, full, _), (skipped, short, is_short) = variants(k)
    assert (share, skipped, is_short) == (0.8, 0.2, True)
    e = mixed([(share, expected(full, TASKS)), (skipped, expected(short, TASKS))])
    assert e.visits == pytest.approx({"d": 1, "c": 0.3, "b": 0.8, "a": 1})
    assert e.transitions == pytest.approx(
        {
            ("d", "c"): 0.3,
            ("d", "b"): 0.56,
            ("c", "b"): 0.24,
            ("b", "a"): 0.8,
            ("d", "a"): 0.14,
            ("c", "a"): 0.06,
        }
    )


probability = st.floats(0.05, 0.95)


@settings(max_examples=40, deadline=None)
@given(st.lists(st.tuples(probability, probability), min_size=2, max_size=6), probability, st.data())
def test_flow_in_equals_flow_out(figures: list[Any], share: float, data: Any) -> None:
    names = [f"t{i}" for i in range(len(figures))]
    tasks = {n: task(n, *f) for n, f in zip(names, figures, strict=True)}
    flow = [
        Do(names[0]),
        *(data.draw(st.sampled_from([Do(n), Maybe(n, share), Check(n, names[0], share)])) for n in names[1:]),
    ]
    e = expected(compile_chain(kind(*flow)), tasks)
    assert sum(e.starts.values()) == pytest.approx(1)
    assert sum(e.ends.values()) == pytest.approx(1)
    for name in names:
        into = e.starts.get(name, 0) + sum(n for (_, dst), n in e.transitions.items() if dst == name)
        out = e.ends.get(name, 0) + sum(n for (src, _), n in e.transitions.items() if src == name)
        assert into == pytest.approx(e.visits[name])
        assert out == pytest.approx(e.visits[name])
    if all(isinstance(element, Do) for element in flow):
        right = 1.0
        for p, q in figures:
            right = p * right + q * (1 - right)
        assert e.right == pytest.approx(right)
