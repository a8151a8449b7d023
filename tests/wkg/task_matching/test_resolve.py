"""Names, tasks and ids without Spark and without an encoder."""

import random
from collections import defaultdict
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from opus_pipelines.wkg.task_matching.id_ledger import Entry, Ledger, added, ledger_table
from opus_pipelines.wkg.task_matching.names import SourceNames, normalise
from opus_pipelines.wkg.task_matching.pins import Pins
from opus_pipelines.wkg.task_matching.resolve import Resolution
from tests.campaigns import examples
from tests.wkg.task_matching.resolved import resolve


@pytest.mark.parametrize(
    ("title", "expected"),
    [
        ("RegisterClaim", "register claim"),
        ("register_claim", "register claim"),
        ("  Register -- CLAIM. ", "register claim"),
        ("Évaluer le dégât", "evaluer le degat"),
        ("XMLFile2Parse", "xml file2 parse"),
        ("Straße", "strasse"),
        ("登録", "登録"),
        ("***", "***"),
    ],
)
def test_normalise(title: str, expected: str) -> None:
    assert normalise(title) == expected


@given(st.text(min_size=1))
@settings(max_examples=200)
def test_normalising_folds_case_free_titles_once(title: str) -> None:
    once = normalise(title)
    assert once
    assert normalise(once) == once or not any(c.isalnum() for c in title)


def names(source: str, *keys: str, industry: str | None = "claims", merge: bool = True, count: int = 1) -> SourceNames:
    return SourceNames(source, merge, {(industry, key, key): count for key in keys})


def tasks_of(resolution: Resolution) -> dict[str, str]:
    """source/key → task id."""
    return {f"{row['source']}/{row['task_key']}": row["task_id"] for row in resolution.aliases.to_pylist()}


def pinned(same: tuple[tuple[str, ...], ...] = (), apart: tuple[tuple[str, ...], ...] = ()) -> Pins:
    return Pins.model_validate({"same": [{"tasks": t} for t in same], "apart": [{"tasks": t} for t in apart]})


def test_merging_is_within_an_industry_and_only_where_it_is_wanted() -> None:
    alike = [names("a", "PayOut", "pay out"), names("b", "Pay_out")]
    assert len(set(tasks_of(resolve(alike, {}, "normalised")).values())) == 1
    assert len(set(tasks_of(resolve(alike, {}, "off")).values())) == 3
    apart = [
        names("a", "Pay"),
        names("b", "Pay", industry="loans"),
        names("c", "Pay", industry=None),
        names("d", "Pay", industry=None),
    ]
    apart.append(names("e", "Pay", merge=False))
    assert len(set(tasks_of(resolve(apart, {}, "normalised")).values())) == 5
    across = tasks_of(resolve(apart, {}, "normalised", across=True))
    assert len(set(across.values())) == 2
    assert list(across.values()).count(across["e/Pay"]) == 1


def test_an_identity_keeps_the_id_of_the_ledger() -> None:
    resolution = resolve([names("a", "Pay", "Check")], {("claims", "pay"): Entry("tkept")}, "normalised")
    assert tasks_of(resolution)["a/Pay"] == "tkept"
    assert ledger_table(resolution.ids)["identity"].to_pylist() == ["a//Check", "a//Pay", "check", "pay"]


def test_the_most_frequent_title_names_the_task() -> None:
    counts = {("i", "k1", "Pay out"): 2, ("i", "k2", "pay-out"): 3, ("i", "k2", "Pay-Out"): 3}
    resolution = resolve([SourceNames("a", True, counts)], {}, "normalised")
    assert list(resolution.titles.values()) == ["Pay-Out"]
    assert [(a["task_key"], a["title"], a["method"]) for a in resolution.aliases.to_pylist()] == [
        ("k1", "Pay out", "normalised"),
        ("k2", "Pay-Out", "exact"),
    ]


def test_pins_force_and_forbid_and_leave_a_trace() -> None:
    sources = [names("a", "Check", count=5), names("b", "check", "Verify", count=2), names("c", "CHECK")]
    night_1 = resolve(sources, {}, "normalised")
    before = tasks_of(night_1)
    assert before["a/Check"] == before["b/check"] == before["c/CHECK"] != before["b/Verify"]

    split = resolve(sources, night_1.ids, "normalised", pinned(apart=(("a/Check", "b/check"),)))
    ids = tasks_of(split)
    assert ids["a/Check"] == before["a/Check"]  # the heavier part keeps the id
    assert len({ids["a/Check"], ids["b/check"], ids["b/Verify"]}) == 3
    assert ids["c/CHECK"] in (ids["a/Check"], ids["b/check"])
    former = {f"{r['source']}/{r['task_key']}": r["former_task_ids"] for r in split.aliases.to_pylist()}
    assert former["a/Check"] == []
    assert former["b/check"] == [before["b/check"]]

    joined = resolve(sources, added(night_1.ids, split.ids), "normalised", pinned(same=(("a/Check", "b/Verify"),)))
    rows = {f"{r['source']}/{r['task_key']}": r for r in joined.aliases.to_pylist()}
    assert {r["task_id"] for r in rows.values()} == {before["a/Check"]}
    assert (rows["b/Verify"]["method"], rows["b/Verify"]["similarity"]) == ("pinned", None)
    assert rows["b/Verify"]["former_task_ids"] == [before["b/Verify"]]
    assert rows["b/check"]["former_task_ids"] == [ids["b/check"]]


def test_a_pin_joins_industries_only_where_it_must() -> None:
    sources = [
        SourceNames("a", True, {("x", "Pay", "Pay"): 1, ("y", "Pay", "Pay"): 1}),
        SourceNames("b", True, {("x", "Give", "Give"): 1}),
    ]
    within = resolve(sources, {}, "normalised", pinned(same=(("a/Pay", "b/Give"),))).aliases.to_pylist()
    assert len({r["task_id"] for r in within}) == 2
    sources[1] = SourceNames("b", True, {("z", "Give", "Give"): 1})
    assert (
        len(
            {r["task_id"] for r in resolve(sources, {}, "off", pinned(same=(("a/Pay", "b/Give"),))).aliases.to_pylist()}
        )
        == 1
    )


KEYS = ("Check", "check", "Pay", "pay out", "PayOut", "Close")
TASKS = [f"{source}/{key}" for source in "abc" for key in KEYS]


@st.composite
def nights(draw: st.DrawFn) -> list[tuple[list[SourceNames], Pins]]:
    """What history and pins are, night after night: sources come, go and change, pins are set and taken away."""
    found = []
    for _ in range(draw(st.integers(2, 6))):
        keys = draw(st.dictionaries(st.sampled_from("abc"), st.sets(st.sampled_from(KEYS), min_size=1), min_size=1))
        title = {"Close": "Renamed"} if draw(st.booleans()) else {}
        counts = {s: {("i", k, title.get(k, k)): draw(st.integers(1, 9)) for k in sorted(ks)} for s, ks in keys.items()}
        pair = draw(st.lists(st.sampled_from(TASKS), min_size=2, max_size=2, unique=True))
        pins = draw(st.sampled_from([pinned(), pinned(same=(tuple(pair),)), pinned(apart=(tuple(pair),))]))
        found.append(([SourceNames(s, True, c) for s, c in sorted(counts.items())], pins))
    return found


@pytest.mark.long
@given(nights(), st.randoms(use_true_random=False))
@settings(max_examples=examples(50), deadline=None)
def test_ids_stay_with_their_tasks_whatever_comes_and_goes(
    sequence: list[tuple[list[SourceNames], Pins]], draw: random.Random
) -> None:
    ledger: Ledger = {}
    last: dict[str, str] = {}
    for sources, pins in sequence:
        night = resolve(sources, ledger, "normalised", pins)
        shuffled = draw.sample(sources, len(sources))
        ledger = added(ledger, night.ids)
        again = resolve(shuffled, ledger, "normalised", pins)
        assert again.aliases == night.aliases  # from nothing, with the same kept files
        assert added(ledger, again.ids) == ledger
        now = tasks_of(night)
        assert len(set(now.values())) == len(night.titles)
        groups: dict[str, set[str]] = defaultdict(set)
        for task, task_id in now.items():
            groups[task_id].add(task)
        for task_id in set(last.values()):
            holders = {now[t] for t, held in last.items() if held == task_id and t in now}
            if len(holders) == 1 and all(last.get(t, task_id) == task_id for t in groups[next(iter(holders))]):
                assert holders == {task_id}  # neither merged nor split: the id stays
        for row in night.aliases.to_pylist():
            task = f"{row['source']}/{row['task_key']}"
            if task in last and last[task] != row["task_id"]:
                assert last[task] in row["former_task_ids"]
            assert row["task_id"] not in row["former_task_ids"]
        last = now


def test_what_is_merged_does_not_depend_on_the_ledger() -> None:
    sources = [names("a", "Check", "Pay"), names("b", "check", "Give")]
    pins = pinned(same=(("a/Pay", "b/Give"),))
    old = {("claims", n): Entry("tsame") for n in ("check", "pay", "give")}
    partitions = []
    for ledger in ({}, old):
        groups: dict[str, set[str]] = defaultdict(set)
        for task, task_id in tasks_of(resolve(sources, ledger, "normalised", pins)).items():
            groups[task_id].add(task)
        partitions.append(sorted(map(sorted, groups.values())))
    assert partitions[0] == partitions[1] == [["a/Check", "b/check"], ["a/Pay", "b/Give"]]


def test_a_new_id_never_is_one_that_was_given_before() -> None:
    first = resolve([names("a", "Pay")], {}, "normalised")
    task = tasks_of(first)["a/Pay"]
    moved: dict[Any, Entry] = {("claims", "check"): Entry(task), ("claims", "a//Check"): Entry(task)}
    both = tasks_of(resolve([names("a", "Check", "Pay")], moved, "normalised"))
    assert both["a/Check"] == task
    assert both["a/Pay"] != task
