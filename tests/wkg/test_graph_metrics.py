"""Graph metrics: the same laws and figures for both engines, and the choice between them."""

import itertools
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
import rustworkx as rx
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from opus_pipelines.core.errors import LakeError
from opus_pipelines.core.schemas import TASKS
from opus_pipelines.core.settings import Graph as Rules
from opus_pipelines.core.settings import Settings
from opus_pipelines.lake.layout import read_table
from opus_pipelines.wkg import graph_metrics
from opus_pipelines.wkg.rebuild.manifest import settings_that_matter

WITHOUT_JVM_HALF = (
    "GraphFrames' JVM half (graph.graphframes_package) is not among the session's jars: set OPUS_GRAPHFRAMES_JARS"
)
RULES = Rules(pagerank_rounds=12)
BOTH = ["local", pytest.param("graphframes", marks=[pytest.mark.graphframes, pytest.mark.spark])]
Edges = dict[tuple[int, int], int]


@pytest.fixture(params=BOTH)
def engine(request: pytest.FixtureRequest) -> graph_metrics.Engine:
    if request.param == "local":
        return graph_metrics.Local()
    spark = request.getfixturevalue("spark")
    if not graph_metrics.has_jvm_half(spark):
        pytest.skip(WITHOUT_JVM_HALF)
    return graph_metrics.GraphFrames(spark)


def table(edges: Edges) -> pa.Table:
    src, dst = zip(*edges, strict=True) if edges else ((), ())
    names = [pa.array([f"t{v:04}" for v in ends], pa.string()) for ends in (src, dst)]
    return pa.table({"src": names[0], "dst": names[1], "transitions": pa.array(edges.values(), pa.int64())})


def measured(engine: graph_metrics.Engine, size: int, edges: Edges, rules: Rules = RULES) -> dict[str, list[Any]]:
    """The metrics' columns; tasks and edges are handed over in descending order."""
    tasks = pa.array([f"t{v:04}" for v in range(size)][::-1], pa.string())
    rows = table(dict(sorted(edges.items(), reverse=True)))
    found = graph_metrics.task_metrics(tasks, rows, rules, engine).to_pydict()
    assert found.pop("task_id") == sorted(tasks.to_pylist())
    return {
        name: [int(v[1:]) for v in values] if name in ("component", "community") else values
        for name, values in found.items()
    }


def joined(*parts: tuple[int, Edges]) -> tuple[int, Edges]:
    """The graphs side by side, one numbered after the other."""
    whole: Edges = {}
    size = 0
    for number, edges in parts:
        whole |= {(src + size, dst + size): weight for (src, dst), weight in edges.items()}
        size += number
    return size, whole


def random_graph(seed: int, size: int, count: int) -> tuple[int, Edges]:
    rng = np.random.default_rng(seed)
    return size, {
        (int(a), int(b)): int(w)
        for a, b, w in zip(*rng.integers(0, size, (2, count)), rng.integers(1, 4, count), strict=True)
    }


def chain(*vertices: int) -> Edges:
    return dict.fromkeys(itertools.pairwise(vertices), 1)


CLIQUES = {pair: 9 for group in ((0, 1, 2), (3, 4, 5)) for pair in itertools.permutations(group, 2)} | {(2, 3): 1}


def test_two_cliques_a_pair_and_a_task_alone(engine: graph_metrics.Engine) -> None:
    found = measured(engine, 9, CLIQUES | {(6, 7): 2})
    assert found["in_degree"] == [2, 2, 2, 3, 2, 2, 0, 1, 0]
    assert found["out_degree"] == [2, 2, 3, 2, 2, 2, 1, 0, 0]
    assert found["component"] == [0, 0, 0, 0, 0, 0, 6, 6, 8]
    assert found["community"] == [0, 0, 0, 3, 3, 3, 6, 6, 8]
    rank = found["pagerank"]
    assert sum(rank) == pytest.approx(1, abs=1e-9)
    assert rank[7] / rank[6] == pytest.approx(1.85, rel=1e-6)  # (.15 + .85 · .15) / .15
    assert (rank[0], rank[4], rank[6]) == (rank[1], rank[5], rank[8])


def test_both_engines_agree_to_the_last_task(engine: graph_metrics.Engine) -> None:
    two_colours = 7, dict.fromkeys(itertools.product(range(3), range(3, 7)), 1)
    circle, line = (8, chain(0, 1, 2, 3, 4, 5, 6, 7, 0)), (5, chain(4, 3, 2, 1, 0))
    size, edges = joined(*(random_graph(seed, 12, 6 + 3 * seed) for seed in range(10)), two_colours, circle, line)
    expected = measured(graph_metrics.Local(), size, edges)
    found = measured(engine, size, edges)
    assert {name: found[name] for name in found if name != "pagerank"} == {
        name: expected[name] for name in found if name != "pagerank"
    }
    assert found["pagerank"] == pytest.approx(expected["pagerank"], rel=1e-6)


def lawful(size: int, edges: Edges, found: dict[str, list[Any]]) -> None:
    """What holds of every graph."""
    oracle = rx.PyDiGraph()
    oracle.add_nodes_from(range(size))
    oracle.add_edges_from_no_data(list(edges))
    assert found["in_degree"] == [oracle.in_degree(v) for v in range(size)]
    assert found["out_degree"] == [oracle.out_degree(v) for v in range(size)]
    assert found["component"] == [
        min(part) for v in range(size) for part in rx.weakly_connected_components(oracle) if v in part
    ]
    assert sum(found["pagerank"]) == pytest.approx(1, abs=1e-9)
    for community, members in groups(found["community"]).items():
        assert community == min(members)
        assert rx.is_weakly_connected(oracle.subgraph(members))
        assert len({found["component"][v] for v in members}) == 1


def groups(values: list[int]) -> dict[int, list[int]]:
    return {value: [v for v, of in enumerate(values) if of == value] for value in values}


graphs = st.integers(1, 9).flatmap(
    lambda size: st.dictionaries(
        st.tuples(st.integers(0, size - 1), st.integers(0, size - 1)), st.integers(1, 3), max_size=25
    ).map(lambda edges: (size, edges))
)


@settings(max_examples=2, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
@given(parts=st.lists(graphs, min_size=8, max_size=12))
def test_laws_of_every_graph(engine: graph_metrics.Engine, parts: list[tuple[int, Edges]]) -> None:
    size, edges = joined(*parts)
    lawful(size, edges, measured(engine, size, edges))


@pytest.mark.long
@settings(max_examples=150, deadline=None)
@given(graph=graphs, rules=st.builds(Rules, pagerank_damping=st.floats(0.1, 0.9)))
def test_laws_of_every_small_graph(graph: tuple[int, Edges], rules: Rules) -> None:
    lawful(*graph, measured(graph_metrics.Local(), *graph, rules))


@settings(max_examples=50, deadline=None)
@given(graph=graphs)
def test_pagerank_is_the_one_of_rustworkx(graph: tuple[int, Edges]) -> None:
    size, edges = graph
    oracle = rx.PyDiGraph()
    oracle.add_nodes_from(range(size))
    oracle.add_edges_from_no_data(list(edges))
    expected = dict(rx.pagerank(oracle, alpha=0.85, tol=1e-13, max_iter=10_000))
    found = measured(graph_metrics.Local(), size, edges, Rules(pagerank_rounds=200))["pagerank"]
    assert found == pytest.approx([expected[v] for v in range(size)], rel=1e-6)


@pytest.mark.long
@settings(max_examples=150, deadline=None)
@given(graph=graphs)
def test_labels_are_settled(graph: tuple[int, Edges]) -> None:
    size, edges = graph
    labels = graph_metrics.propagated(
        graph_metrics.Graph.of(pa.array([f"t{v:04}" for v in range(size)]), table(edges)), 200
    )
    heard = np.zeros((size, size), int)
    for (src, dst), weight in edges.items():
        if src != dst:
            heard[src, labels[dst]] += weight
            heard[dst, labels[src]] += weight
    assert all(heard[v, labels[v]] == heard[v].max() for v in range(size))


@pytest.mark.parametrize(
    ("size", "edges"),
    [
        (2, {(0, 1): 1}),
        (2, {(0, 1): 1, (1, 0): 1}),
        (8, chain(0, 1, 2, 3, 4, 5, 6, 7, 0)),
        (12, dict.fromkeys(itertools.product(range(6), range(6, 12)), 1)),
        (30, {(0, leaf): 1 for leaf in range(1, 30)}),
    ],
    ids=["pair", "both ways", "circle", "two colours", "star"],
)
def test_two_colours_do_not_swap_for_ever(size: int, edges: Edges) -> None:
    graph = graph_metrics.Graph.of(pa.array([f"t{v:04}" for v in range(size)]), table(edges))
    assert graph_metrics.propagated(graph, 50).tolist() == graph_metrics.propagated(graph, 51).tolist()
    assert len(set(graph_metrics.propagated(graph, 50).tolist())) < size / 2 + 1


@pytest.mark.spark
def test_label_propagation_on_spark_needs_no_graphframes(spark: Any) -> None:
    size, edges = joined(random_graph(1, 20, 30), (6, CLIQUES), (3, {}))
    graph = graph_metrics.Graph.of(pa.array([f"t{v:04}" for v in range(size)]), table(edges))
    rows = graph_metrics.propagated_by_spark(*graph_metrics.frames(spark, graph), rounds=4).toArrow().sort_by("id")
    assert rows["label"].to_pylist() == graph_metrics.propagated(graph, 4).tolist()


def test_no_edge_and_no_task() -> None:
    assert measured(graph_metrics.Local(), 0, {}) == {
        name: [] for name in ("in_degree", "out_degree", "pagerank", "component", "community")
    }
    assert measured(graph_metrics.Local(), 2, {})["pagerank"] == [0.5, 0.5]
    assert measured(graph_metrics.Local(), 2, {})["community"] == [0, 1]


@pytest.mark.parametrize(
    ("src", "dst", "complaint"),
    [
        (["t0000"], ["t0009"], "ends outside the tasks"),
        (["t0000", "t0000"], ["t0001", "t0001"], "a pair of tasks has two edges"),
    ],
)
def test_edges_that_are_no_graph(src: list[str], dst: list[str], complaint: str) -> None:
    edges = pa.table({"src": src, "dst": dst, "transitions": [1] * len(src)})
    with pytest.raises(LakeError, match=complaint):
        graph_metrics.task_metrics(pa.array(["t0000", "t0001"]), edges, RULES, graph_metrics.Local())


@pytest.mark.parametrize(
    ("edges", "rules", "expected"),
    [
        (5, Rules(), "local"),
        (5, Rules(local_max_edges=5), "local"),
        (6, Rules(local_max_edges=5), "graphframes"),
        (0, Rules(engine="graphframes"), "graphframes"),
        (6, Rules(engine="local", local_max_edges=5), "local"),
    ],
)
def test_auto_goes_by_the_number_of_edges(edges: int, rules: Rules, expected: str) -> None:
    asked: list[str] = []
    session: Callable[[], Any] = lambda: asked.append("session")
    assert graph_metrics.choose(edges, rules, session).name == expected
    assert asked == (["session"] if expected == "graphframes" else [])


def test_a_snapshot_is_the_same_by_either_engine() -> None:
    usual = settings_that_matter(Settings())
    assert (
        settings_that_matter(
            Settings(graph=Rules(engine="graphframes", local_max_edges=1, graphframes_package="a:b:c"))
        )
        == usual
    )
    assert settings_that_matter(Settings(graph=Rules(community_rounds=3))) != usual


@pytest.mark.spark
def test_a_snapshot_holds_the_metrics_and_names_the_engine(rebuild: Any, lake: Any, history: SimpleNamespace) -> None:
    build = rebuild(lake, history.write(lake, "claims", history.claims()))
    assert lake.manifest(build.snapshot_id)["engines"] == {"mining": "duckdb", "graph": "local", "search": "faiss"}
    rows = {
        row["title"]: row for row in read_table(TASKS, lake.snapshot_folder(build.snapshot_id) / "tasks").to_pylist()
    }
    smallest = min(row["task_id"] for row in rows.values())
    degrees = {title: (row["in_degree"], row["out_degree"]) for title, row in rows.items()}
    assert degrees == {"Check": (2, 2), "Pay": (2, 0), "Register": (0, 2)}
    assert {(row["component"], row["community"]) for row in rows.values()} == {(smallest, smallest)}
    ranks = {
        title: row["pagerank"] for title, row in rows.items()
    }  # Check follows itself once: .21375 / .575, which is Pay's too
    assert ranks == pytest.approx({"Register": 0.167883, "Check": 0.416058, "Pay": 0.416058}, abs=1e-6)
