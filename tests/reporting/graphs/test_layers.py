from hypothesis import given
from hypothesis import strategies as st

from opus_pipelines.reporting.graphs.layout import components, crossings, forward, layered, ranks

PAIRS = st.lists(st.tuples(st.sampled_from("abcdefgh"), st.sampled_from("abcdefgh")), unique=True, max_size=24)


def test_the_weakest_edge_of_a_cycle_runs_back() -> None:
    assert forward([("a", "b"), ("b", "c"), ("c", "a"), ("b", "b")]) == [("a", "b"), ("b", "c")]


def test_ranks_keep_edges_short() -> None:
    # d is needed by c alone: it stands next to c, not at the far left.
    assert ranks("abcd", [("a", "b"), ("b", "c"), ("d", "c")]) == {"a": 0, "b": 1, "c": 2, "d": 1}


def test_a_chain_of_its_own_stands_next_to_what_it_leads_to() -> None:
    edges = [("a", "b"), ("b", "c"), ("c", "d"), ("x", "y"), ("y", "d"), ("a", "z"), ("z", "d")]
    assert ranks("abcdxyz", edges) == {"a": 0, "b": 1, "c": 2, "d": 3, "x": 1, "y": 2, "z": 1}


def test_components_largest_first() -> None:
    assert components("abcdef", [("e", "f"), ("b", "d"), ("d", "c")]) == [["b", "c", "d"], ["e", "f"], ["a"]]


def test_crossings_are_counted() -> None:
    assert crossings([["a", "b"], ["c", "d"]], {"a": ["d"], "b": ["c"]}) == 1
    assert crossings([["a", "b"], ["c", "d"]], {"a": ["c", "d"], "b": ["c", "d"]}) == 1


def test_crossings_that_need_not_be_are_not() -> None:
    edges = [("a", "d"), ("b", "c"), ("d", "f"), ("c", "e"), ("a", "f")]
    made = layered("abcdef", edges, ranks("abcdef", edges))
    assert crossings(made.layers, made.right) == 0


def test_a_long_edge_holds_a_dummy_in_each_layer_between() -> None:
    edges = [("a", "b"), ("b", "c"), ("c", "d"), ("d", "a")]
    made = layered("abcd", edges, ranks("abcd", forward(edges)))
    assert made.chains["a", "b"] == ["a", "b"]
    assert [len(layer) for layer in made.layers] == [1, 2, 2, 1]
    assert made.chains["d", "a"][0] == "d"
    assert set(made.chains["d", "a"][1:-1]) == made.dummies


@given(PAIRS)
def test_every_forward_edge_runs_to_the_right(pairs: list[tuple[str, str]]) -> None:
    kept = forward(pairs)
    rank = ranks("abcdefgh", kept)
    assert all(rank[src] < rank[dst] for src, dst in kept)
    assert min(rank.values()) == 0
    back = [pair for pair in pairs if pair not in kept and pair[0] != pair[1]]
    assert all(rank[src] > rank[dst] for src, dst in back)
