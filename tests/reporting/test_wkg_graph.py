"""Which part of the WKG a picture shows, what it says of it, and how a task is found by name."""

import math
from pathlib import Path
from typing import Any

import duckdb
import pytest

from opus_pipelines.core.errors import InputError
from opus_pipelines.core.schemas import EDGES, TASKS
from opus_pipelines.lake.layout import table_of, write_table
from opus_pipelines.reporting.graphs.model import Change, Picture
from opus_pipelines.reporting.tasks import find_industry, find_task
from opus_pipelines.reporting.wkg_graph import (
    MOST_BYTES,
    GraphPart,
    GraphScale,
    bounded,
    changes,
    data_uri,
    opened,
    strongest,
)
from opus_pipelines.wkg.drift import compare

COUNTS = {("a", "b"): 8, ("b", "c"): 4, ("c", "d"): 2, ("b", "a"): 1, ("x", "y"): 16}
TITLES = {"a": "Register", "b": "Check invoice", "c": "Approve", "d": "Pay", "x": "Register", "y": "Check order"}
SCALE = GraphScale(math.log(2) / 4, "transitions")


def snapshot(folder: Path, counts: dict[tuple[str, str], int], **columns: Any) -> Path:
    tasks = sorted({task for pair in counts for task in pair})
    rows = [
        {
            "task_id": t,
            "title": TITLES.get(t, t),
            "industries": ["trade" if t in "xy" else "claims"],
            "sources": ["s"],
            "p": 0.9973,
            "p_basis": "prior",
            "implementations": sum(n for pair, n in counts.items() if t in pair),
        }
        | columns
        for t in tasks
    ]
    out = {src: sum(n for (s, _), n in counts.items() if s == src) for src, _ in counts}
    edges = [
        {"src": s, "dst": d, "transitions": n, "variants": 1, "gamma": 1 - 2 ** (-n / 4), "probability": n / out[s]}
        for (s, d), n in counts.items()
    ]
    write_table(TASKS, table_of(TASKS, rows), folder / "tasks")
    write_table(EDGES, table_of(EDGES, edges), folder / "edges")
    return folder


@pytest.fixture
def wkg(tmp_path: Path) -> duckdb.DuckDBPyConnection:
    return opened(snapshot(tmp_path / "w1", COUNTS))


def pairs(picture: Picture) -> list[str]:
    return ["".join(edge.pair) for edge in picture.edges]


@pytest.mark.parametrize(
    ("arguments", "edges", "says"),
    [
        ({"edges": 9}, ["xy", "ab", "bc", "cd", "ba"], "all 5 edges, 6 of 6 tasks"),
        ({"edges": 2}, ["xy", "ab"], "the 2 strongest of 5 edges, with 77.4 % of their transitions; 4 of 6 tasks"),
        ({"edges": 9, "industry": "claims"}, ["ab", "bc", "cd", "ba"], "all 4 edges, 4 of 4 tasks"),
        ({"edges": 9, "around": "d"}, ["cd"], "all 1 edge within 1 step, 2 of 6 tasks"),
        ({"edges": 9, "around": "d", "hops": 2}, ["cd", "bc"], "all 2 edges within 2 steps, 3 of 6 tasks"),
        ({"edges": 1, "around": "d", "hops": 3}, ["cd"], "the 1 nearest and strongest of 4 edges within 3 steps"),
    ],
)
def test_the_strongest_edges(
    wkg: duckdb.DuckDBPyConnection, arguments: dict[str, Any], edges: list[str], says: str
) -> None:
    picture = strongest(wkg, "w1", SCALE, GraphPart(**arguments))
    assert pairs(picture) == edges
    assert picture.subtitle.startswith(says)
    assert picture.subtitle.endswith("\nsnapshot w1")


def test_what_a_node_and_an_edge_say(wkg: duckdb.DuckDBPyConnection) -> None:
    picture = strongest(wkg, "w1", SCALE, GraphPart(9, around="b"))
    node = next(node for node in picture.nodes if node.key == "b")
    assert (node.title, node.figures, node.focus) == ("Check invoice", "13 · p 0.997 prior", True)
    assert "p 0.997 (- to -), prior, n 0" in node.tooltip.splitlines()
    edge = picture.edges[0]
    assert (edge.label, edge.one_minus_gamma) == ("8", pytest.approx(0.25))
    assert edge.tooltip.splitlines()[:2] == ["Register → Check invoice", "8 transitions in 1 variant"]
    assert picture.title == "Work Knowledge Graph · around Check invoice"


@pytest.mark.parametrize(
    ("columns", "groups"),
    [
        ({}, (("claims", "claims (4)"), ("trade", "trade (2)"))),
        ({"community": "k7"}, (("k7", "community of Register (6)"),)),
        ({"industries": [], "component": "k1"}, (("k1", "component of Register (6)"),)),
        ({"industries": []}, ()),
    ],
)
def test_colour_is_by_community_else_industry_else_component(
    tmp_path: Path, columns: dict[str, Any], groups: Any
) -> None:
    assert strongest(opened(snapshot(tmp_path / "w1", COUNTS, **columns)), "w1", SCALE, GraphPart(9)).groups == groups


def test_a_wkg_without_edges_shows_its_tasks(tmp_path: Path) -> None:
    write_table(
        TASKS,
        table_of(TASKS, [{"task_id": f"t{i}", "implementations": i} for i in range(5)]),
        tmp_path / "w1" / "tasks",
    )
    write_table(EDGES, table_of(EDGES, []), tmp_path / "w1" / "edges")
    picture = strongest(opened(tmp_path / "w1"), "w1", SCALE, GraphPart(3))
    assert [node.key for node in picture.nodes] == ["t4", "t3", "t2"]
    assert picture.subtitle == "no edges here; 3 of 5 tasks\nsnapshot w1"


@pytest.mark.parametrize(
    ("text", "industry", "expected"),
    [
        ("a", None, "a"),
        ("check  INVOICE", None, "b"),
        ("Register", "trade", "x"),
        ("Register", None, "2 tasks are called 'Register': x (trade), a (claims); name one by its id"),
        ("chekc", None, "no task is called 'chekc'; the nearest: Check order, Check invoice"),
        ("order", None, "no task is called 'order'; the nearest: Check order"),
        ("zzzz", "trade", "no task of trade is called 'zzzz'; the most frequent: Register, Check order"),
    ],
)
def test_a_task_by_its_name(wkg: duckdb.DuckDBPyConnection, text: str, industry: str | None, expected: str) -> None:
    if len(expected) == 1:
        assert find_task(wkg, text, industry) == expected
    else:
        with pytest.raises(InputError) as error:
            find_task(wkg, text, industry)
        assert str(error.value).startswith(expected)


def test_an_industry_by_its_name(wkg: duckdb.DuckDBPyConnection, tmp_path: Path) -> None:
    assert find_industry(wkg, "TRADE") == "trade"
    with pytest.raises(InputError, match="'tarde'; there are: trade"):
        find_industry(wkg, "tarde")
    with pytest.raises(InputError, match="there are: none"):
        find_industry(opened(snapshot(tmp_path / "w2", COUNTS, industries=[])), "trade")


def test_what_changed_is_a_picture(tmp_path: Path) -> None:
    before = snapshot(tmp_path / "w1", COUNTS)
    after = snapshot(tmp_path / "w2", {("a", "b"): 8, ("b", "c"): 4, ("b", "d"): 4, ("d", "n"): 1, ("b", "a"): 1})
    picture = changes(opened(after, before), "w1", "w2", compare(before, after), 9)
    assert {"".join(e.pair): (e.change, e.label) for e in picture.edges} == {
        "xy": (Change.REMOVED, "−16"),
        "cd": (Change.REMOVED, "−2"),
        "bd": (Change.ADDED, "+4"),
        "dn": (Change.ADDED, "+1"),
        "bc": (Change.MOVED, "80% → 44%"),
        "ba": (Change.MOVED, "20% → 11%"),
    }
    assert pairs(picture)[0] == "xy"  # over which most transitions go another way
    assert {n.key: n.change for n in picture.nodes if n.change is not Change.SAME} == {
        "x": Change.REMOVED,
        "y": Change.REMOVED,
        "n": Change.ADDED,
    }
    assert picture.subtitle.startswith("1 task came, 2 went; 2 edges came, 2 went;")
    assert picture.subtitle.endswith("\nfrom snapshot w1 to w2")


def test_only_the_largest_changes_are_drawn(tmp_path: Path) -> None:
    before, after = snapshot(tmp_path / "w1", {("a", "b"): 1}), snapshot(tmp_path / "w2", COUNTS)
    picture = changes(opened(after, before), "w1", "w2", compare(before, after), 2)
    assert len(picture.edges) == 2
    assert "the 2 largest of 4 changed edges are shown" in picture.subtitle


@pytest.mark.long
def test_a_picture_is_bounded_in_bytes(tmp_path: Path) -> None:
    many = {(f"t{i}", f"t{j}"): 100 * i + j + 1 for i in range(30) for j in range(14)}
    connection = opened(snapshot(tmp_path / "w1", many, title="請求書を確認してください" * 50))
    text = bounded(lambda n: strongest(connection, "w1", SCALE, GraphPart(n)), 400)
    assert len(text.encode()) <= MOST_BYTES
    assert text.count('class="edge"') in (50, 100, 200)
    assert data_uri(text).startswith("data:image/svg+xml;base64,PHN2Zy")
    assert len(data_uri(text)) < 200_000
