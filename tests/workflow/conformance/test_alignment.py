"""Alignments and measures: literal values on small models, and every optimum counted again from all runs."""

from itertools import pairwise, product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from opus_pipelines.core.errors import InputError
from opus_pipelines.workflow.conformance.alignment import Measures, Trace, align, measures, shortest_run
from opus_pipelines.workflow.conformance.net import SINK, SOURCE, Net

Block = str | tuple[str, tuple["Block", ...]]  # a label, or the kind of a block and its parts


def net_of(block: Block) -> Net:
    net = Net()

    def add(part: Block, before: int, after: int) -> None:
        if isinstance(part, str):
            net.add(part or None, (before,), (after,))
            return
        kind, parts = part
        if kind == "sequence":
            places = [before, *(net.place() for _ in parts[1:]), after]
            for each, (first, last) in zip(parts, pairwise(places), strict=True):
                add(each, first, last)
        elif kind == "choice":
            for each in parts:
                add(each, before, after)
        elif kind == "parallel":
            starts, ends = [net.place() for _ in parts], [net.place() for _ in parts]
            net.add(None, (before,), starts)
            for each, first, last in zip(parts, starts, ends, strict=True):
                add(each, first, last)
            net.add(None, ends, (after,))
        else:  # a loop: one part, again and again
            first, last = net.place(), net.place()
            net.add(None, (before,), (first,))
            add(parts[0], first, last)
            net.add(None, (last,), (first,))
            net.add(None, (last,), (after,))

    add(block, SOURCE, SINK)
    return net


def runs_of(block: Block, longest: int) -> set[str]:
    """Every run of a block of at most `longest` steps, by what its kind means."""
    if isinstance(block, str):
        return {block} if len(block) <= longest else set()
    kind, parts = block
    inner = [runs_of(part, longest) for part in parts]
    if kind == "choice":
        return set().union(*inner)
    found = {""} if kind != "loop" else inner[0]
    for runs in inner if kind != "loop" else inner * longest:
        mixed = {m for a, b in product(found, runs) for m in (shuffles(a, b) if kind == "parallel" else {a + b})}
        found = {run for run in mixed if len(run) <= longest} | (found if kind == "loop" else set())
    return found


def shuffles(one: str, other: str) -> set[str]:
    if not one or not other:
        return {one + other}
    return {one[0] + rest for rest in shuffles(one[1:], other)} | {other[0] + rest for rest in shuffles(one, other[1:])}


def common(one: str, other: str) -> int:
    """The length of the longest common subsequence."""
    row = [0] * (len(other) + 1)
    for a in one:
        new = [0]
        for place, b in enumerate(other):
            new.append(row[place] + 1 if a == b else max(row[place + 1], new[place]))
        row = new
    return row[-1]


SEQUENCE: Block = ("sequence", ("a", "b", "c"))
CHOICE: Block = ("sequence", ("a", ("choice", ("b", "c", ""))))
PARALLEL: Block = ("parallel", ("a", "b"))
LOOP: Block = ("sequence", (("loop", ("a",)), "b"))


@pytest.mark.parametrize(
    ("block", "case", "deviations", "fitness"),
    [
        (SEQUENCE, "abc", [], 1.0),
        (SEQUENCE, "ac", ["left out b"], 1 - 1 / 5),
        (SEQUENCE, "axbc", ["added x"], 1 - 1 / 7),
        (SEQUENCE, "", ["left out a", "left out b", "left out c"], 0.0),
        (SEQUENCE, "xyz", ["left out a", "left out b", "left out c", *(f"added {x}" for x in "xyz")], 0.0),
        (CHOICE, "a", [], 1.0),
        (CHOICE, "ac", [], 1.0),
        (CHOICE, "abc", ["added c"], 1 - 1 / 4),
        (PARALLEL, "ba", [], 1.0),
        (PARALLEL, "bb", ["left out a", "added b"], 1 - 2 / 4),
        (LOOP, "aaab", [], 1.0),
        (LOOP, "aba", ["added a"], 1 - 1 / 5),
    ],
)
def test_deviations_and_fitness_of_a_case(block: Block, case: str, deviations: list[str], fitness: float) -> None:
    net = net_of(block)
    found = align(net, tuple(case), shortest_run(net))
    assert found is not None
    assert sorted(f"{kind} {label}" for kind, label in found.deviations) == sorted(deviations)
    assert found.cost == len(deviations)
    assert found.fitness == pytest.approx(fitness)


def measured(block: Block, **cases: int) -> Measures:
    net = net_of(block)
    traces: dict[Trace, int] = {tuple(case): number for case, number in cases.items()}
    return measures(net, traces, {trace: align(net, trace, shortest_run(net)) for trace in traces})


def test_measures_of_a_sequence() -> None:
    """`ac` lacks the token of c, and leaves the one of b: 1 of 3, as against 0 of 4 in each case that fits."""
    assert measured(SEQUENCE, abc=4) == Measures(4, 4, 0, 1.0, 1.0, 1.0, 0.5)
    found = measured(SEQUENCE, abc=3, ac=1)
    assert (found.cases, found.conforming, found.not_aligned) == (4, 3, 0)
    assert found.fitness == pytest.approx((3 + 0.8) / 4)
    assert found.replay_fitness == pytest.approx(1 - 1 / 15)
    assert found.precision == 1.0  # behind a, the model allows b alone; behind ac nothing, for it is no beginning


def test_precision_counts_what_the_model_allows_and_no_case_does() -> None:
    assert measured(CHOICE, ab=3).precision == pytest.approx(1 - 3 / 9)  # a; then b, and never c
    assert measured(PARALLEL, ab=1).precision == pytest.approx(1 - 1 / 3)
    assert measured(PARALLEL, ab=1, ba=1).precision == 1.0


def test_replay_ends_with_a_token_in_the_sink_beside_others_where_it_cannot_end() -> None:
    """a alone: the token of b remains and the end is missing. Again a: its token is missing, and one more is left."""
    assert measured(PARALLEL, a=1).replay_fitness == pytest.approx((1 - 1 / 3) / 2 + (1 - 2 / 4) / 2)
    found = measured(PARALLEL, aab=1)
    assert found.replay_fitness == pytest.approx((1 - 1 / 7) / 2 + (1 - 1 / 7) / 2)
    assert found.generalisation == pytest.approx(1 - (3 + 1 / 2**0.5) / 4)


def test_steps_that_the_model_does_not_know_are_not_replayed_and_cost_one_each() -> None:
    found = measured(SEQUENCE, axbyc=2)
    assert found.replay_fitness == 1.0
    assert found.fitness == pytest.approx(1 - 2 / 8)


LABELS = st.sampled_from("abc")
SIMPLE: st.SearchStrategy[Block] = st.one_of(
    LABELS,
    st.lists(LABELS, min_size=1, max_size=2).map(lambda parts: ("loop", (("sequence", tuple(parts)),))),
    st.lists(st.sampled_from(["a", "b", "c", ""]), min_size=2, max_size=3).map(lambda parts: ("choice", tuple(parts))),
)
BLOCKS: st.SearchStrategy[Block] = st.one_of(
    SIMPLE,
    st.tuples(st.sampled_from(["sequence", "choice", "parallel"]), st.tuples(SIMPLE, SIMPLE)),
)


@given(BLOCKS, st.text("abcx", max_size=2))
def test_an_alignment_is_the_nearest_of_all_runs(block: Block, case: str) -> None:
    net = net_of(block)
    shortest = shortest_run(net)
    runs = runs_of(block, 2 * len(case) + 4)  # 4 steps without a loop, and 2 more for each step that a loop fits to
    found = align(net, tuple(case), shortest)
    assert found is not None
    assert shortest == min(map(len, runs))
    assert found.cost == min(len(case) + len(run) - 2 * common(case, run) for run in runs) <= len(case) + shortest
    assert (found.cost == 0) == (case in runs)
    own = [move.label for move in found.moves if move.label is not None and move.deviation != "left out"]
    model = [move.label for move in found.moves if move.label is not None and move.deviation != "added"]
    assert "".join(own) == case
    assert "".join(model) in runs
    of = measures(net, {tuple(case): 2}, {tuple(case): found})
    assert all(0 <= share <= 1 for share in (of.fitness, of.replay_fitness, of.precision, of.generalisation) if share)
    allowed = [{run[at] for run in runs if run[:at] == case[:at] and len(run) > at} for at in range(len(case))]
    escaping = [steps - {done} for steps, done in zip(allowed, case, strict=True)]
    total = sum(map(len, allowed))
    assert of.precision == pytest.approx(1 - sum(map(len, escaping)) / total if total else 1)


def test_too_many_states_give_no_figure_instead_of_a_wrong_one() -> None:
    optional: Block = ("choice", ("a", ""))
    net, case = net_of(("parallel", (optional,) * 8)), ("b", "a", "a")  # 2 ** 8 markings of silent steps
    assert align(net, case, 0, states=4) is None
    few = measures(net, {case: 1}, {case: None}, states=100)
    assert few == Measures(1, 0, 1, None, None, None, None)
    assert measures(net, {case: 1}, {case: align(net, case, 0)}).precision is not None


def test_a_model_that_cannot_end_is_refused() -> None:
    net = Net()
    place, never = net.place(), net.place()
    net.add("a", (SOURCE,), (place,))
    net.add("b", (place, never), (SINK,))
    with pytest.raises(InputError, match="50,000"):
        shortest_run(net)
