"""Lanes: every vertex in its own lane and place, no edge over a vertex, everything inside."""

from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from opus_pipelines.workflow.formats.swimlane_layout import Size, geometry, grid


@st.composite
def drawn(draw: Any) -> tuple[list[str], list[tuple[str, str]], dict[str, int]]:
    order = [f"v{i}" for i in range(draw(st.integers(1, 12)))]
    pairs = [(a, b) for i, a in enumerate(order) for b in order[i + 1 :]]
    edges = draw(st.lists(st.sampled_from(pairs), unique=True, max_size=25)) if pairs else []
    return order, edges, {v: draw(st.integers(0, 3)) for v in order}


@pytest.mark.long
@settings(max_examples=150, deadline=None)
@given(drawn())
def test_nothing_covers_anything(graph: tuple[list[str], list[tuple[str, str]], dict[str, int]]) -> None:
    order, edges, lane = graph
    size = {v: Size(100, 40, behind=10 if i % 3 else 0) for i, v in enumerate(order)}
    found = grid(order, edges, lane.__getitem__, 4)
    made = geometry(found, edges, size)
    assert all(found.rank[a] < found.rank[b] for a, b in edges)
    assert len({(found.rank[v], found.track[v]) for v in order}) == len(order)
    boxes = {v: (a - 50, c - 20, a + 50, c + 20) for v, (a, c) in made.middle.items()}
    for v, (a0, c0, a1, c1) in boxes.items():
        begins, ends = made.lanes[lane[v]]
        assert begins <= c0 < c1 <= ends
        assert 0 <= a0 < a1 <= made.length
    assert all(a[1] <= b[0] for a, b in pairwise(made.lanes))
    for (src, dst), way in made.routes.items():
        assert way[0] == (boxes[src][2], made.middle[src][1])
        assert way[-1] == (boxes[dst][0], made.middle[dst][1])
        for (x0, y0), (x1, y1) in pairwise(way):
            assert x0 == x1 or y0 == y1
            for v, (a0, c0, a1, c1) in boxes.items():
                crossed = min(x0, x1) < a1 and a0 < max(x0, x1) and min(y0, y1) < c1 and c0 < max(y0, y1)
                assert not crossed or v in (src, dst)


def test_a_chain_stays_on_one_line() -> None:
    made = geometry(
        grid(["a", "b", "c"], [("a", "b"), ("b", "c")], {"a": 0, "b": 0, "c": 0}.__getitem__, 1),
        [("a", "b"), ("b", "c")],
        dict.fromkeys("abc", Size(100, 40)),
    )
    assert made.routes == {("a", "b"): [(100, 34), (136, 34)], ("b", "c"): [(236, 34), (272, 34)]}
    assert (made.length, made.lanes) == (372, [(0.0, 68.0)])


def test_words_at_the_end_of_an_edge_have_room_behind_its_last_bend() -> None:
    edges = [("a", "b"), ("b", "c")]
    made = geometry(
        grid(["a", "b", "c"], edges, {"a": 0, "b": 1, "c": 1}.__getitem__, 2),
        edges,
        dict.fromkeys("abc", Size(100, 40)),
        {"b": 46, "c": 18},
    )
    assert made.routes == {
        ("a", "b"): [(100, 34), (118, 34), (118, 102), (164, 102)],
        ("b", "c"): [(264, 102), (300, 102)],
    }


def test_an_edge_that_skips_a_step_passes_beside_it() -> None:
    edges = [("a", "b"), ("b", "c"), ("a", "c")]
    found = grid(["a", "b", "c"], edges, dict.fromkeys("abc", 0).__getitem__, 1)
    assert (found.passing, found.tracks) == ({("a", "c"): (0, 1)}, {0: 2})
