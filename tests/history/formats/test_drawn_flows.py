"""Folding, unrolling and ordering of drawn flows."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from opus_pipelines.history.formats.drawn_flows import LINKS, TooManyLinksError, unroll


@pytest.mark.parametrize(
    ("is_work", "links", "before", "loops"),
    [
        ("www", [(0, 1), (1, 2)], {0: [], 1: [0], 2: [1]}, {}),
        ("www", [], {0: [], 1: [], 2: []}, {}),
        ("www", [(2, 1), (1, 0)], {0: [1], 1: [2], 2: []}, {}),
        ("wgwwgw", [(0, 1), (1, 2), (1, 3), (2, 4), (3, 4), (4, 5)], {0: [], 2: [0], 3: [0], 5: [2, 3]}, {}),
        ("ggwgg", [(0, 1), (1, 2), (2, 3), (3, 4), (3, 1)], {2: []}, {2: [2]}),
        ("wwww", [(0, 1), (1, 2), (2, 1), (2, 3)], {0: [], 1: [0], 2: [1], 3: [2]}, {2: [1]}),
        ("ww", [(0, 0), (0, 1), (0, 1)], {0: [], 1: [0]}, {0: [0]}),
        ("www", [(0, 1), (1, 2), (2, 0)], {0: [], 1: [0], 2: [1]}, {2: [0]}),
        ("gg", [(0, 1), (1, 0)], {}, {}),
    ],
    ids=["chain", "apart", "reversed", "split and join", "loop of gateways", "rework", "itself", "ring", "no work"],
)
def test_what_follows_what(is_work: Any, links: Any, before: Any, loops: Any) -> None:
    flow = unroll([c == "w" for c in is_work], links)
    assert (flow.before, flow.loops) == (before, loops)


@given(
    st.lists(st.booleans(), max_size=12).flatmap(
        lambda w: st.tuples(
            st.just(w),
            st.lists(
                st.tuples(st.integers(0, max(len(w) - 1, 0)), st.integers(0, max(len(w) - 1, 0))),
                max_size=30 if w else 0,
            ),
        )
    )
)
def test_the_order_is_complete_and_nothing_comes_before_what_it_follows(graph: Any) -> None:
    is_work, links = graph
    flow = unroll(is_work, links)
    assert sorted(flow.order) == [n for n, work in enumerate(is_work) if work]
    place = {n: i for i, n in enumerate(flow.order)}
    assert all(place[b] < place[n] for n, behind in flow.before.items() for b in behind)
    assert {n for ends in (*flow.loops.values(), flow.loops) for n in ends} <= set(flow.order)
    direct = {(s, d) for s, d in links if is_work[s] and is_work[d]}
    kept = {(b, n) for n, behind in flow.before.items() for b in behind} | {
        (n, d) for n, to in flow.loops.items() for d in to
    }
    assert direct <= kept


@pytest.mark.long
def test_long_chains_need_no_stack_and_dense_joins_are_refused() -> None:
    assert len(unroll([True] * 50_000, [(n, n + 1) for n in range(49_999)]).order) == 50_000
    side = int(LINKS**0.5) + 1
    with pytest.raises(TooManyLinksError):
        unroll(
            [True] * side + [False] + [True] * side,
            [(n, side) for n in range(side)] + [(side, side + 1 + n) for n in range(side)],
        )
