"""Geometry: nothing that is read overlaps anything else, whatever the graph."""

from itertools import combinations, pairwise
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from opus_pipelines.reporting.graphs import model
from opus_pipelines.reporting.graphs.layout import MOST_WIDTH, NODE_WIDTH, PADDING, TITLE_SIZE, lay_out, line_width
from opus_pipelines.reporting.graphs.model import Layout, Picture


@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_nothing_overlaps(draws: Any, data: st.DataObject) -> None:
    picture = data.draw(draws.pictures())
    layout = lay_out(picture)
    boxes = [shape.box for shape in layout.nodes]
    labels = [shape.label for shape in layout.edges if shape.label]
    assert len(boxes) == len(picture.nodes)
    assert len(layout.edges) == len(picture.edges)
    assert not any(a.touches(b, 9.0) for a, b in combinations(boxes, 2))
    assert not any(a.touches(b) for a, b in combinations(labels, 2))
    assert not any(label.touches(box) for label in labels for box in boxes)
    assert not any(box.holds(point, -0.5) for shape in layout.edges for point in shape.samples() for box in boxes)
    for shape in layout.edges:
        others = [point for other in layout.edges if other is not shape for point in other.samples()]
        assert not any(shape.label.holds(point) for point in others if shape.label)
    inside(layout)


def inside(layout: Layout) -> None:
    corners = [
        (s.box.x + dx, s.box.y + dy) for s in layout.nodes for dx in (0, s.box.width) for dy in (0, s.box.height)
    ]
    for x, y in (*corners, *(point for shape in layout.edges for point in shape.samples())):
        assert -0.01 <= x <= layout.width + 0.01
        assert -0.01 <= y <= layout.height + 0.01


@settings(max_examples=30, deadline=None)
@given(data=st.data())
def test_titles_fit_their_boxes_and_arrows_point_at_their_nodes(draws: Any, data: st.DataObject) -> None:
    layout = lay_out(data.draw(draws.pictures()))
    boxes = {shape.node.key: shape.box for shape in layout.nodes}
    for shape in layout.nodes:
        assert all(model.width(line, TITLE_SIZE) <= NODE_WIDTH - 2 * PADDING for line in shape.lines)
    for arrow in layout.edges:
        src, dst = boxes[arrow.edge.src], boxes[arrow.edge.dst]
        assert src.holds(arrow.points[0], 0.1)
        x, y = arrow.points[-1]
        reach = 5.1 + 1.5 * arrow.width
        assert dst.holds((x + arrow.ahead[0] * reach, y + arrow.ahead[1] * reach), 0.2)
        if src is not dst:
            assert arrow.is_back == (src.x > dst.x)


def test_a_chain_runs_straight_from_left_to_right(draws: Any) -> None:
    layout = lay_out(draws.chain("a", "b", "c", "d"))
    boxes = {shape.node.key: shape.box for shape in layout.nodes}
    assert all(boxes[a].x + NODE_WIDTH < boxes[b].x for a, b in pairwise("abcd"))
    assert len({round(box.y + box.height / 2, 3) for box in boxes.values()}) == 1
    assert all(shape.label for shape in layout.edges)


def test_the_strongest_edge_of_a_cycle_runs_forward(draws: Any) -> None:
    nodes = (draws.node("a"), draws.node("b"))
    layout = lay_out(Picture("", "", nodes, (draws.edge("b", "a", 0.01), draws.edge("a", "b", 0.5))))
    assert [(shape.edge.pair, shape.is_back) for shape in layout.edges] == [(("b", "a"), False), (("a", "b"), True)]


@pytest.mark.parametrize(("rest", "expected"), [(1.0, 1.0), (0.5, 1.57), (0.01, 2.87), (1e-9, 4.33), (0.0, MOST_WIDTH)])
def test_width_grows_with_gamma(rest: float, expected: float) -> None:
    assert line_width(rest) == expected


def test_a_picture_refuses_edges_without_nodes_and_doubles(draws: Any) -> None:
    a = draws.node("a")
    with pytest.raises(ValueError, match="end outside the picture"):
        Picture("", "", (a,), (draws.edge("a", "b"),))
    with pytest.raises(ValueError, match="stands twice"):
        Picture("", "", (a, a), ())
