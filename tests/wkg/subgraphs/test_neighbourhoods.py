"""Routed tasks grouped into neighbourhoods."""

import pytest

from opus_pipelines.core.errors import LakeError
from opus_pipelines.wkg.graph import Edge, Task, WorkGraph
from opus_pipelines.wkg.subgraphs import neighbourhoods


def graph(*links: tuple[str, str, int], alone: tuple[str, ...] = ()) -> WorkGraph:
    names = sorted({n for a, b, _ in links for n in (a, b)} | set(alone))
    return WorkGraph.of([Task(n, n) for n in names], [Edge(a, b, t, 1, 1 - 0.5**t, 0.5**t, 1.0) for a, b, t in links])


WKG = graph(("a", "b", 3), ("b", "c", 1), ("c", "d", 2), ("x", "y", 5), ("y", "z", 1), alone=("lone",))


def test_seeds_that_hang_together_belong_together() -> None:
    found = neighbourhoods(WKG, [("c", 0.7), ("y", 0.8), ("a", 0.9), ("lone", 0.1)])
    assert [n.terminals for n in found] == [["a", "c"], ["y"], ["lone"]]
    assert [sorted(n.tasks) for n in found] == [["a", "b", "c", "d"], ["x", "y", "z"], ["lone"]]


def test_seeds_further_apart_than_the_local_graph_stay_apart() -> None:
    far = graph(*((f"n{i}", f"n{i + 1}", 1) for i in range(5)))
    assert len(neighbourhoods(far, [("n0", 0.9), ("n5", 0.8)], hops=2)) == 1
    assert len(neighbourhoods(far, [("n0", 0.9), ("n5", 0.8)], hops=1)) == 2
    assert [sorted(n.tasks) for n in neighbourhoods(far, [("n0", 0.9), ("n5", 0.8)], hops=0)] == [["n0"], ["n5"]]


def test_it_is_bounded_and_takes_the_strongest_neighbours_first() -> None:
    hub = graph(*(("hub", f"n{i:02}", i + 1) for i in range(20)))
    (found,) = neighbourhoods(hub, [("hub", 1.0)], max_tasks=2)
    assert sorted(found.tasks) == ["hub", "n18", "n19"]
    assert len(neighbourhoods(hub, [(f"n{i:02}", i / 20) for i in range(20)], hops=0, limit=3)) == 3


def test_where_gamma_saturates_the_larger_count_is_nearer() -> None:
    edges = [Edge("hub", n, t, 1, 1.0, 0.0, 0.5) for n, t in [("few", 1000), ("many", 9000)]]
    wkg = WorkGraph.of([Task(n, n) for n in ("few", "hub", "many")], edges)
    (found,) = neighbourhoods(wkg, [("hub", 1.0)], max_tasks=1)
    assert sorted(found.tasks) == ["hub", "many"]


def test_order_of_seeds_means_nothing() -> None:
    seeds = [("a", 0.5), ("c", 0.5), ("y", 0.5), ("a", 0.2)]
    assert neighbourhoods(WKG, seeds) == neighbourhoods(WKG, seeds[::-1])
    assert neighbourhoods(WKG, seeds)[0].seeds == (("a", 0.5), ("c", 0.5))
    assert neighbourhoods(WKG, []) == []


def test_a_seed_of_another_snapshot_is_refused() -> None:
    with pytest.raises(LakeError, match="ghost"):
        neighbourhoods(WKG, [("ghost", 0.9)])
