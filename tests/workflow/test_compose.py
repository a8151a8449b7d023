"""Parallel and sequential composition, EVAL A5: results by hand, laws on random workflows, interfaces that do not fit."""

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from opus_pipelines.errors import WorkflowError
from opus_pipelines.workflow.compose import matching, parallel, sequential
from opus_pipelines.workflow.model import InputNode, OutputNode, TaskNode, Workflow


def line(name: str, takes: str | None = "text", gives: str | None = "text") -> Workflow:
    """in -> a -> out; the ids are the same in every one, the titles are not."""
    nodes = [InputNode("in", f"{name} in", 0.5, takes), TaskNode("a", name, f"{name} a"), OutputNode("out", f"{name} out", 3.0, gives)]
    return Workflow.of(nodes, [("in", "a"), ("a", "out")])


@st.composite
def lines(draw, name: str) -> Workflow:
    """Two typed lanes in and out, with tasks between them; titles tell the nodes of different names apart, ids do not."""
    tasks = [TaskNode(f"t{i}", f"{name}{i}", f"{name} t{i}", p=0.9) for i in range(draw(st.integers(1, 4)))]
    inputs = [InputNode(f"i{k}", f"{name} i{k}", 0.5, f"lane {k}") for k in range(2)]
    outputs = [OutputNode(f"o{k}", f"{name} o{k}", 1.0, f"lane {k}") for k in range(2)]
    above = [n.id for n in inputs]
    edges = []
    for node in (*tasks, *outputs):
        edges += [(u, node.id) for u in draw(st.lists(st.sampled_from(above), min_size=1, max_size=3, unique=True))]
        above += [node.id] if node.kind == "task" else []
    return Workflow.of([*inputs, *tasks, *outputs], edges)


def by_title(workflow: Workflow) -> tuple[frozenset, frozenset]:
    """The workflow with titles for ids: equal for two that differ in ids and order alone."""
    title = {n.id: n.title for n in workflow.nodes}
    return frozenset(replace(n, id=n.title) for n in workflow.nodes), frozenset((title[u], title[v]) for u, v in workflow.edges)


def test_side_by_side_nothing_is_added():
    both = parallel(line("x"), line("y"))
    assert [n.id for n in both.nodes] == ["in", "a", "out", "in~2", "a~2", "out~2"]
    assert [n.title for n in both.nodes] == ["x in", "x a", "x out", "y in", "y a", "y out"]
    assert set(both.edges) == {("in", "a"), ("a", "out"), ("in~2", "a~2"), ("a~2", "out~2")}


def test_one_after_the_other_the_interface_vanishes():
    both = sequential(line("x"), line("y"))
    assert [(n.id, n.title) for n in both.nodes] == [("in", "x in"), ("a", "x a"), ("a~2", "y a"), ("out~2", "y out")]
    assert set(both.edges) == {("in", "a"), ("a", "a~2"), ("a~2", "out~2")}
    assert (both.inputs, both.outputs[0].gain_usd) == (line("x").inputs, 3.0)


def test_a_new_name_is_free_in_both():
    crowded = Workflow.of([InputNode("in", "I"), InputNode("in~2", "J"), OutputNode("out", "O", 1.0)], [("in", "out"), ("in~2", "out")])
    assert [n.id for n in parallel(crowded, line("y")).nodes] == ["in", "in~2", "out", "in~3", "a", "out~2"]


def test_a_parent_reached_by_two_lanes_is_counted_once():
    first = Workflow.of(
        [InputNode("i", "I"), TaskNode("a", "a", "A"), OutputNode("x", "X", 1.0, "x"), OutputNode("y", "Y", 1.0, "y")],
        [("i", "a"), ("a", "x"), ("a", "y")])
    second = Workflow.of(
        [InputNode("u", "U", 1.0, "y"), InputNode("v", "V", 1.0, "x"), TaskNode("b", "b", "B"), OutputNode("o", "O", 1.0)],
        [("u", "b"), ("v", "b"), ("b", "o")])
    assert matching(first, second) == {"x": "v", "y": "u"}
    assert set(sequential(first, second).edges) == {("i", "a"), ("a", "b"), ("b", "o")}


@settings(max_examples=60, deadline=None)
@given(lines("x"), lines("y"), lines("z"))
def test_laws(x, y, z):
    assert by_title(parallel(x, y)) == by_title(parallel(y, x))
    assert by_title(parallel(parallel(x, y), z)) == by_title(parallel(x, parallel(y, z)))
    assert by_title(sequential(sequential(x, y), z)) == by_title(sequential(x, sequential(y, z)))
    assert by_title(sequential(x, y)) != by_title(sequential(y, x))
    interface = {"o0": "i0", "o1": "i1"}
    assert sequential(x, y, interface) == sequential(x, y)
    assert len(sequential(x, y).nodes) == len(x.nodes) + len(y.nodes) - 4


@settings(max_examples=30, deadline=None)
@given(lines("x"), lines("y"))
def test_without_a_clash_side_by_side_is_commutative_to_the_letter(x, y):
    names = {n.id: f"other {n.id}" for n in y.nodes}
    other = Workflow.of([replace(n, id=names[n.id]) for n in y.nodes], [(names[u], names[v]) for u, v in y.edges])
    one, two = parallel(x, other), parallel(other, x)
    assert (set(one.nodes), one.edges) == (set(two.nodes), two.edges)


def ends(outputs: list[tuple[str, str | None]], inputs: list[tuple[str, str | None]]) -> tuple[Workflow, Workflow]:
    """A first with these outputs and a second with these inputs, as (title, data type); ids are `o0`, `i0`, ..."""
    given = [OutputNode(f"o{k}", title, 1.0, data_type) for k, (title, data_type) in enumerate(outputs)]
    taken = [InputNode(f"i{k}", title, 1.0, data_type) for k, (title, data_type) in enumerate(inputs)]
    first = Workflow.of([InputNode("start", "Start"), *given], [("start", n.id) for n in given])
    return first, Workflow.of([*taken, OutputNode("end", "End", 1.0)], [(n.id, "end") for n in taken])


def test_several_of_one_type_are_told_apart_by_title():
    assert matching(*ends([("Name", "text"), ("Mail", "text")], [("mail.", "text"), ("NAME", "text")])) == {"o0": "i1", "o1": "i0"}
    assert matching(*ends([("Name", "text")], [("Customer", "text")])) == {"o0": "i0"}
    assert matching(*ends([("Name", None)], [("Customer", None)])) == {"o0": "i0"}


@pytest.mark.parametrize(("outputs", "inputs", "complaint"), [
    ([("A", "text")], [("A", "image")], "data type 'text': the first gives 'o0', the second takes nothing; data type 'image': the first"),
    ([("A", "text"), ("B", "text")], [("A", "text")], "data type 'text': the first gives 'o0', 'o1', the second takes 'i0'"),
    ([("A", "text"), ("B", "text")], [("A", "text"), ("C", "text")], "which of 'o0', 'o1' becomes which of 'i0', 'i1'"),
    ([("A", None)], [("A", "text")], "no stated data type: the first gives 'o0', the second takes nothing"),
])
def test_no_interface_is_guessed(outputs, inputs, complaint):
    with pytest.raises(WorkflowError, match=complaint):
        sequential(*ends(outputs, inputs))


@pytest.mark.parametrize(("interface", "complaints"), [
    ({"o0": "i0"}, ["output 'o1' of the first goes nowhere", "input 'i1' of the second comes from nowhere"]),
    ({"o0": "i0", "o1": "i0"}, ["input 'i1' of the second comes from nowhere", "input 'i0' of the second comes from 2 outputs"]),
    ({"o0": "i1", "o1": "i0"}, ["output 'o0' is of data type 'text', input 'i1' of no stated data type"]),
    ({"o0": "i0", "o1": "i1", "o2": "end"}, ["'o2' is no output of the first", "'end' is no input of the second"]),
])
def test_every_misfit_of_a_given_interface_is_named(interface, complaints):
    first, second = ends([("A", "text"), ("B", None)], [("A", "text"), ("B", None)])
    with pytest.raises(WorkflowError, match="do not fit") as caught:
        sequential(first, second, interface)
    assert all(complaint in str(caught.value) for complaint in complaints)
