"""Pictures of graphs with hostile titles, cycles, loops and several parts."""

from itertools import pairwise
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import strategies as st

from opus_pipelines.reporting.graphs.model import Change, Picture, PictureEdge, PictureNode

TITLES = (
    "Pay",
    "Check receipts against the policy of the client",
    "internal_check_username_exist_in_the_database",
    "請求書を確認してください",
    "تسجيل المطالبة",
    "</text><script>alert('x')</script>",
    'a "quoted" & <b>bold</b> ]]> title',
    "W" * 60,
    "\x00\u202e",
    "😀 Notify",
)

FIGURES = ("", "9 · p 1", "1,234,567 · p 0.95 prior")


def node(key: str, title: str = "Pay", **more: Any) -> PictureNode:
    return PictureNode(key, title, **{"figures": "1,234 · p 0.95", "tooltip": f"{title}\nn 1,234", **more})


def edge(src: str, dst: str, rest: float = 0.1, **more: Any) -> PictureEdge:
    return PictureEdge(src, dst, rest, **{"label": "1,520", "tooltip": f"{src} → {dst}", **more})


def chain(*keys: str) -> Picture:
    """a → b → c …"""
    return Picture(
        "Chain",
        "of some",
        tuple(node(key, f"Task {key}") for key in keys),
        tuple(edge(a, b) for a, b in pairwise(keys)),
    )


@st.composite
def pictures(draw: Any) -> Picture:
    """Any picture of at most 12 nodes and 30 edges."""
    keys = [f"t{i}" for i in range(draw(st.integers(1, 12)))]
    pairs = draw(st.lists(st.tuples(st.sampled_from(keys), st.sampled_from(keys)), unique=True, max_size=30))
    nodes = tuple(
        node(
            key,
            draw(st.sampled_from(TITLES)),
            group=draw(st.sampled_from(["a", "b", None])),
            figures=draw(st.sampled_from(FIGURES)),
        )
        for key in keys
    )
    edges = tuple(
        edge(
            src,
            dst,
            draw(st.sampled_from([0.9, 0.5, 1e-3, 0.0])),
            label=draw(st.sampled_from(["", "7", "13,087", "41 % → 12 %"])),
            change=draw(st.sampled_from(list(Change))),
        )
        for src, dst in pairs
    )
    return Picture(draw(st.sampled_from(TITLES)), "the 3 strongest", nodes, edges, (("a", "A (1)"), ("b", TITLES[5])))


@pytest.fixture(scope="session")
def draws() -> SimpleNamespace:
    """The functions above."""
    return SimpleNamespace(node=node, edge=edge, chain=chain, pictures=pictures, titles=TITLES)


@pytest.fixture(scope="session")
def hostile() -> Picture:
    """One of everything."""
    keys = [f"t{i}" for i in range(len(TITLES))]
    nodes = tuple(node(key, title, group=title) for key, title in zip(keys, TITLES, strict=True))
    pairs = [(0, 1), (1, 2), (2, 3), (3, 1), (1, 1), (0, 3), (4, 5), (5, 4), (6, 7), (8, 8)]
    edges = tuple(
        edge(f"t{a}", f"t{b}", 10.0**-i, label=TITLES[5] if i == 1 else "1") for i, (a, b) in enumerate(pairs)
    )
    return Picture(TITLES[5], TITLES[6], nodes, edges, tuple((title, title) for title in TITLES))
