"""The invariants of the gallery: each holds on a sound plan and fails on one made wrong."""

import sys
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "benchmarks"))
from gallery_checks import Plan, checks, node_f1

TITLES = {"ta": "Submit request", "tb": "Approve request", "tc": "Pay", "tx": "Request rejected", "te": "End trip", "ti": "Survey"}
KINDS = dict.fromkeys(("ta", "tb", "tc", "ti"), "step") | {"tx": "outcome", "te": "event"}
HISTORY = [["ta", "tb", "te", "tc"]] * 49 + [["ta", "tx"]]
NEAR = [{"tasks": ["ta", "tb", "te", "tc"], "success": None, "similarity": 0.8}] * 12


def plan(*tasks: str, verdict: str = "clear", origin: str = "history", **more: Any) -> Plan:
    steps = [{"node": t, "task_id": t, "title": TITLES[t], "kind": "task", "origin": "history"} for t in tasks]
    ends = ["input", *tasks, "output"]
    links = [{"src": a, "dst": b, "gamma": 0.5, "origin": origin} for a, b in pairwise(ends)]
    return Plan({"verdict": verdict, "observed_share": 0.75}, steps, links, KINDS, HISTORY, more.pop("near", NEAR), True, **more)


def failing(made: Plan) -> dict[str, str]:
    return {check.name: check.said for check in checks(made) if check.holds is False}


def test_a_sound_plan_keeps_every_invariant() -> None:
    assert failing(plan("ta", "tb", "tc")) == {}  # "Approve → Pay" is seen where the event between them is left out


@pytest.mark.parametrize(("made", "name", "said"), [
    (plan("tb", "tc"), "starts where history does", "Approve request (0% of cases)"),
    (plan("ta", "tb"), "ends where history does", "Approve request (0% of cases)"),
    (plan("ta", "tc", "tb", "tc"), "consecutive pairs seen or explained", "Submit request → Pay (history)"),
    (plan("ta", "tb", "te", "tc"), "no rejection, outcome or event among the steps", "End trip (event)"),
    (plan("ta", "tx"), "no rejection, outcome or event among the steps", "Request rejected (outcome)"),
    (plan("ta", "tb", "ti", "tc"), "no idle step", "no near case did: Survey"),
    (plan("ta", "tb", "tc", near=NEAR[:9]), 'no "clear" on thin evidence', "clear, 9 similar cases that did not fail"),
    (replace(plan("ta", "tb", "tc"), is_share_printed=False), "assumed share shown", "`opus best` does not say so"),
])
def test_each_invariant_fails_where_it_is_broken(made: Plan, name: str, said: str) -> None:
    assert said in failing(made)[name]


def test_an_explained_pair_and_an_undecided_verdict_are_fine() -> None:
    assert "consecutive pairs seen or explained" not in failing(plan("ta", "tc", origin="dependency"))
    assert 'no "clear" on thin evidence' not in failing(plan("ta", "tb", "tc", verdict="undecided", near=NEAR[:1]))


def test_node_f1_compares_with_what_was_done() -> None:
    names = lambda task: [TITLES[task], task]
    assert node_f1(plan("ta", "tb", "tc"), ["Submit request", "Pay"], names) == pytest.approx(0.8)
    assert node_f1(plan("ta"), [], names) is None
