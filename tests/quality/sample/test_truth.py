"""The written files agree with truth.json within statistical bounds (5 standard errors, at one fixed seed)."""

import math
from collections import Counter, defaultdict
from itertools import pairwise
from typing import Any

import pytest

from opus_pipelines.quality.sample.model import normalise

SIGMAS = 5.0

pytestmark = pytest.mark.long


@pytest.fixture(scope="module")
def tasks(written: Any) -> Any:
    """(source, raw key) → (industry, task of the truth)."""
    return {
        (source, key): (industry, task)
        for industry, truth in written.truth["industries"].items()
        for task in truth["tasks"]
        for source, key in task["keys"].items()
    }


@pytest.fixture(scope="module")
def ways(written: Any, tasks: Any) -> Any:
    """(industry, task, kind, model) → rows with whether the task before was right."""
    found = defaultdict(list)
    for case in written.cases:
        for before, row in pairwise([None, *case.rows]):
            industry, task = tasks[case.source, row.key]
            found[industry, task["task"], row.kind, row.model].append((before is None or before.right, row))
    return found


def told_ways(written: Any) -> Any:
    return {
        (industry, task["task"], way["actor_kind"], way["model"]): way
        for industry, truth in written.truth["industries"].items()
        for task in truth["tasks"]
        for way in task["ways"]
    }


def near(found: Any, n: Any, truth: Any) -> Any:
    """A share of n trials against its probability."""
    return abs(found - truth * n) <= SIGMAS * math.sqrt(n * truth * (1 - truth)) + 1e-9


def test_every_way_is_used_and_no_other(written: Any, ways: Any) -> None:
    assert ways.keys() == told_ways(written).keys()


def test_p_and_q(written: Any, ways: Any) -> None:
    for key, way in told_ways(written).items():
        for after_right, name in ((True, "p"), (False, "q")):
            rows = [row for before, row in ways[key] if before == after_right]
            assert near(sum(row.right for row in rows), len(rows), way[name]), (key, name)


def test_shares_of_ways(written: Any, ways: Any) -> None:
    for key, way in told_ways(written).items():
        n = sum(len(rows) for other, rows in ways.items() if other[:2] == key[:2])
        assert near(len(ways[key]), n, way["share"]), key


def test_costs_and_durations(written: Any, ways: Any) -> None:
    variation = written.truth["variation"]
    for key, way in told_ways(written).items():
        rows = [row for _, row in ways[key]]
        durations = [(row.end - row.start).total_seconds() * 1000 for row in rows]
        bound = SIGMAS * variation / math.sqrt(len(rows))
        assert sum(durations) / len(rows) == pytest.approx(way["duration_ms_mean"], rel=bound)
        costs = [row.cost for row in rows if row.cost is not None]
        if costs:
            bound = SIGMAS * variation / math.sqrt(len(costs))
            assert sum(costs) / len(costs) == pytest.approx(way["cost_usd_mean"], rel=bound, abs=1e-6)


def test_costs_follow_from_time_and_tokens(written: Any, tasks: Any) -> None:
    prices = written.truth["usd_per_million_tokens"]
    for case in written.cases:
        for row in case.rows:
            industry, _ = tasks[case.source, row.key]
            if row.cost is not None and row.kind != "code":
                rate = written.truth["industries"][industry]["usd_per_hour"]
                hours = (row.end - row.start).total_seconds() / 3600
                expected = row.tokens * prices[row.model] / 1e6 if row.kind == "model" else hours * rate
                assert row.cost == pytest.approx(expected, abs=1e-5)


@pytest.mark.parametrize("merged", ["edges", "normalised_edges"])
def test_transitions(written: Any, tasks: Any, merged: Any) -> None:
    found, out = Counter(), Counter()
    for case in written.cases:
        industry = tasks[case.source, case.rows[0].key][0]
        names = [tasks[case.source, r.key][1]["task"] if merged == "edges" else normalise(r.key) for r in case.rows]
        for src, dst in pairwise(names):
            found[industry, src, dst] += 1
            out[industry, src] += 1
    told = {(i, e["src"], e["dst"]): e for i, truth in written.truth["industries"].items() for e in truth[merged]}
    assert found.keys() <= told.keys()
    for key, edge in told.items():
        assert near(found[key], out[key[:2]], edge["probability"]), key
        assert abs(found[key] - edge["expected_transitions"]) <= SIGMAS * math.sqrt(edge["expected_transitions"]) + 1, (
            key
        )


def test_transition_probabilities_add_up(written: Any) -> None:
    for truth in written.truth["industries"].values():
        for edges in (truth["edges"], truth["normalised_edges"], *(k["edges"] for k in truth["kinds"])):
            total = Counter()
            for edge in edges:
                total[edge["src"]] += edge["probability"]
            assert all(t == pytest.approx(1) for t in total.values())


def kinds_of(written: Any) -> Any:
    return [
        (industry, kind)
        for industry, truth in written.truth["industries"].items()
        for kind in truth["kinds"]
        if kind["cases"]
    ]


def outcomes(cases: Any) -> Any:
    """(known outcomes, successes)."""
    good = {"settled", "accepted", "paid right first time", "accepted by payer"}
    known = [c.outcome in good for c in cases if c.outcome is not None]
    return len(known), sum(known)


def test_success_of_cases_and_the_shortcut(written: Any, tasks: Any) -> None:
    for _, kind in kinds_of(written):
        cases = [c for c in written.cases if c.title == kind["kind"]]
        n, good = outcomes(cases)
        assert near(good, n, kind["success"])
        for needed in kind["needed"]:
            short = [c for c in cases if needed["task"] not in {tasks[c.source, r.key][1]["task"] for r in c.rows}]
            n, good = outcomes(short)
            assert near(len(short), len(cases), kind["shortcut"]["share"])
            assert near(good, n, kind["shortcut"]["success"])
            assert good / n < 0.45


def test_shortcuts_are_cheaper_and_usually_fail(written: Any) -> None:
    with_shortcut = [k for _, k in kinds_of(written) if k["shortcut"]]
    assert len(with_shortcut) == 11
    for kind in with_shortcut:
        assert kind["shortcut"]["cost_usd_mean"] < 0.5 * kind["regular"]["cost_usd_mean"]
        assert kind["shortcut"]["success"] < 0.2 < 0.9 < kind["regular"]["success"]
        assert kind["shortcut"]["edges"]


def test_few_outcomes_are_unknown(written: Any) -> None:
    unknown = sum(c.outcome is None for c in written.cases)
    assert near(unknown, len(written.cases), written.truth["unknown_outcomes"])


def test_rework_loops(written: Any) -> None:
    insurance = {(e["src"], e["dst"]) for e in written.truth["industries"]["insurance claims"]["edges"]}
    assert {("Review Settlement", "Estimate Repair Cost"), ("Estimate Repair Cost", "Review Settlement")} <= insurance
    looped = sum(len({r.key for r in c.rows}) < len(c.rows) for c in written.cases)
    assert 100 < looped < 600


def test_synonyms(written: Any) -> None:
    rows = {(s["task"], i): s for i, truth in written.truth["industries"].items() for s in truth["synonyms"]}
    trivial = rows["Verify Coverage", "insurance claims"]
    assert trivial["difference"] == "trivial"
    assert trivial["keys"] == ["castellan_household/verify_coverage", "harbourline_claims/Verify Coverage"]
    true = rows["Inspect Property", "insurance claims"]
    assert true["difference"] == "true"
    assert true["keys"] == ["castellan_household/survey_damage_at_home", "harbourline_claims/Inspect Property"]
    for row in rows.values():
        names = {normalise(key.split("/", 1)[1]) for key in row["keys"]}
        assert (len(names) == 1) == (row["difference"] == "trivial")
    assert {"trivial", "true"} == {r["difference"] for r in rows.values()}
