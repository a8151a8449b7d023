"""The invariants of the gallery: each holds on a sound plan and fails on one made wrong."""

import sys
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "benchmarks"))
from gallery_checks import Case, Plan, checks, node_f1

TITLES = {
    "ta": "Submit request",
    "tb": "Approve request",
    "tc": "Pay",
    "tx": "Request rejected",
    "te": "End trip",
    "ti": "Survey",
}
KINDS = dict.fromkeys(("ta", "tb", "tc", "ti"), "step") | {"tx": "outcome", "te": "event"}
STARTS, ENDS, PAIRS = "starts where history does", "ends where history does", "consecutive pairs seen or explained"
OUTCOME, IDLE, EVIDENCE = (
    "no rejection, outcome or event among the steps",
    "no idle step",
    'no "clear" on thin evidence',
)
ASSUMED, UNFOUNDED = "assumed share shown", "no figure without evidence"


def case(*tasks: str, **more: Any) -> Case:
    return Case.of({"tasks": tasks, **more})


HISTORY = [case("ta", "tb", "te", "tc")] * 48 + [case("ta", "tb"), case("ta", "tx")]
NEAR = [case("ta", "tb", "te", "tc", success=True, similarity=0.8)] * 12
HEAD = {
    "verdict": "clear",
    "observed_share": 0.75,
    "cost_usd": 3.0,
    "cost_assumed_share": 0.25,
    "cost_unknown_steps": 1,
    "duration_ms": None,
    "duration_assumed_share": None,
    "duration_unknown_steps": 3,
    "success_probability": 0.9,
    "success_unknown_steps": 1,
    "reward_usd": None,
    "gain_basis": "prior",
}
SAID = "25.0 % assumed, 1 step unknown; 3 steps unknown; 90.0 % (1 step assumed)"


def plan(
    *tasks: str,
    head: dict[str, Any] | None = None,
    origin: str = "history",
    flow: tuple[str, ...] | None = None,
    **more: Any,
) -> Plan:
    figures = {
        "origin": "history",
        "p_basis": "observed",
        "cost_basis": "observed",
        "duration_basis": None,
        "start_ms": None,
    }
    steps = [figures | {"node": f"n{t}", "task_id": t, "title": TITLES[t], "kind": "task"} for t in tasks]
    ends = ["input", *(f"n{t}" for t in tasks), "output"]
    links = [{"src": a, "dst": b, "gamma": 0.5, "origin": origin} for a, b in pairwise(ends)]
    place = {task: n for n, task in enumerate(tasks if flow is None else flow)}
    expected = [
        {
            "src": a,
            "dst": b,
            "src_task_key": TITLES[a],
            "dst_task_key": TITLES[b],
            "src_place": place[a],
            "dst_place": place[b],
        }
        for a, b in pairwise(place)
    ]
    facts = {"history": HISTORY, "near": NEAR, "printed": {"`opus best`": SAID}} | more
    return Plan(HEAD | (head or {}), steps, links, expected, KINDS, **facts)


def with_steps(made: Plan, task: str, **more: Any) -> Plan:
    return replace(made, steps=[step | more if step["task_id"] == task else step for step in made.steps])


def failing(made: Plan) -> dict[str, str]:
    return {check.name: check.said for check in checks(made) if check.holds is False}


def test_a_sound_plan_keeps_every_invariant() -> None:
    # "Approve → Pay" is seen where the event between them is left out.
    assert failing(plan("ta", "tb", "tc")) == {}
    assert failing(plan("ta", "tb", "tc", flow=("ta", "tb", "te", "tc"))) == {}


@pytest.mark.parametrize(
    ("made", "name", "said"),
    [
        (plan("tb", "tc"), STARTS, "Approve request (0% of the cases with it do)"),
        (plan("ta", "tb", "tc", flow=("te", "ta", "tb", "tc")), STARTS, "End trip (0% of the cases with it do)"),
        (plan("ta", "tb"), ENDS, "Approve request (0% of the cases with it do)"),
        (
            plan("ta", "tb", near=[]),
            ENDS,
            "Approve request (2% of the cases with it do)",
        ),  # a share that is there, and too small
        (plan("ta", "tb", "tc", flow=("ta", "tb", "tc", "te")), ENDS, "End trip (0% of the cases with it do)"),
        (plan(), ENDS, "the plan has no step"),
        (plan("ta", "tc", "tb", "tc"), PAIRS, "Submit request → Pay (history, never seen)"),
        (plan("tb", "ta", "tc"), PAIRS, "Approve request → Submit request (0% of the cases with both have this order)"),
        (plan("ta", "tc", origin="algorithm1"), PAIRS, "Submit request → Pay (algorithm1, never seen)"),
        (
            plan("tc", "tb", origin="dependency"),
            PAIRS,
            "Pay → Approve request (0% of the cases with both have this order)",
        ),
        (
            plan("ta", "tb", "tc", flow=("ta", "te", "tb", "tc")),
            PAIRS,
            "expected Submit request → End trip (never seen)",
        ),
        (plan("ta", "tb", "te", "tc"), OUTCOME, "End trip (event)"),
        (plan("ta", "tx"), OUTCOME, "Request rejected (outcome)"),
        (plan("ta", "tb", flow=("ta", "tb", "tx")), OUTCOME, "Request rejected (expected, an outcome)"),
        (replace(plan("ta", "tx"), kinds={}), OUTCOME, "Request rejected (by its name)"),
        (plan("ta", "tb", "ti", "tc"), IDLE, "Survey (0%)"),
        (
            plan("ta", "ti", "tc", near=[*NEAR, case("ti", similarity=0.9)]),
            IDLE,
            "Survey (8%)",
        ),  # done once is not enough
        (plan("ta", "tb", "tb", "tc"), IDLE, "Approve request (twice)"),
        (
            plan("ta", "tb", "tc", near=NEAR[:9]),
            EVIDENCE,
            "clear; 9 similar cases, of which 9 are known to have succeeded",
        ),
        (
            plan("ta", "tb", "tc", near=[replace(c, success=None) for c in NEAR]),
            EVIDENCE,
            "12 similar cases, of which 0 are known",
        ),
        (plan("ta", "tb", "tc", near=[replace(c, similarity=0.4) for c in NEAR]), EVIDENCE, "clear; 0 similar cases"),
        (plan("ta", "tb", "tc", printed={}), ASSUMED, "nothing is printed of it"),
        (
            plan("ta", "tb", "tc", printed={"`opus best`": "25.0 % assumed; 3 steps unknown"}),
            ASSUMED,
            "`opus best` does not say '1 step unknown'",
        ),
        (plan("ta", "tb", "tc", head={"observed_share": None}), ASSUMED, "its share of observed figures is unknown"),
        (plan("ta", "tb", "tc", head={"reward_usd": 0.8356}), UNFOUNDED, "Reward 0.84 although no gain is stated"),
        (plan("ta", "tb", "tc", head={"duration_ms": 0.0}), UNFOUNDED, "duration_ms 0 of unknown steps"),
        (
            with_steps(plan("ta", head={"success_probability": 0.95}), "ta", p_basis="prior"),
            UNFOUNDED,
            "success 0.950 of priors alone",
        ),
        (with_steps(plan("ta", "tb"), "tb", start_ms=0.0), UNFOUNDED, "a start behind a step of unknown time"),
    ],
)
def test_each_invariant_fails_where_it_is_broken(made: Plan, name: str, said: str) -> None:
    assert said in failing(made)[name]


def test_open_cases_do_not_tell_what_they_will_not_do() -> None:
    open_cases = [case("ta", p_ended=0.1, similarity=0.8)] * 20
    ended = [case("ta", "tc", similarity=0.8)] * 10
    assert IDLE not in failing(plan("ta", "tb", "tc", near=open_cases))
    assert "Approve request (0%)" in failing(plan("ta", "tb", "tc", near=[*open_cases, *ended]))[IDLE]
    assert {c.name: c.holds for c in checks(plan("ta", "tb", "tc", near=open_cases))}[IDLE] is None


def test_the_end_of_few_cases_tells_nothing() -> None:
    found = {c.name: c for c in checks(plan("ta", "ti", history=[*HISTORY, *[case("ta", "ti", "tc")] * 9], near=[]))}[
        ENDS
    ]
    assert found.holds is None
    assert found.said.startswith("Survey (fewer than 10 cases")


def test_what_is_explained_or_undecided_is_fine() -> None:
    apart = [*HISTORY, case("ta", "tb", "ti", "tc")]  # nothing but "Survey" stands between them, always
    waits = plan("ti", "tc", origin="dependency", history=[case("ti", "ta", "tc")] * 9)
    assert PAIRS not in failing(waits)
    assert PAIRS not in failing(plan("ta", "tc", origin="decision", history=apart))
    assert PAIRS not in failing(
        with_steps(plan("ta", "ti", "tc"), "ti", origin="new")
    )  # the procedure's step, which nobody did
    assert IDLE not in failing(with_steps(plan("ta", "ti", "tc"), "ti", origin="new"))
    assert EVIDENCE not in failing(plan("ta", "tb", "tc", head={"verdict": "undecided"}, near=NEAR[:1]))
    assert UNFOUNDED not in failing(plan("ta", head={"reward_usd": 5.0, "gain_basis": "stated"}))


def test_a_return_that_is_expected_from_the_last_step_is_no_end() -> None:
    history = [case("ta", "tb", "ti", "tb")] * 20
    made = plan("ta", "tb", "ti", history=history, near=[])
    back = {
        "src": "ti",
        "dst": "tb",
        "src_task_key": "Survey",
        "dst_task_key": "Approve request",
        "src_place": 2,
        "dst_place": 1,
    }
    assert failing(made)[ENDS] == "Survey (0% of the cases with it do)"
    assert ENDS not in failing(replace(made, flow=[*made.flow, back]))


def test_cases_that_were_still_running_tell_no_end() -> None:
    running = [case("ta", "tb", p_ended=0.1)] * 20
    assert ENDS in failing(plan("ta", "tb", near=running, history=[*running, *HISTORY]))
    assert ENDS not in failing(plan("ta", "tb", near=[replace(c, has_ended=True) for c in running]))


def test_of_a_flow_its_links_tell_what_follows_what() -> None:
    flow = case("ta", "tb", "te", "tc", task_predecessors=[None, [0], [0], [1, 2]])
    assert (flow.pairs, flow.first, flow.last) == (
        {("ta", "tb"), ("ta", "te"), ("tb", "tc"), ("te", "tc")},
        {"ta"},
        {"tc"},
    )
    work = flow.only(lambda task: task != "te")
    assert (work.tasks, work.pairs) == (["ta", "tb", "tc"], {("ta", "tb"), ("tb", "tc"), ("ta", "tc")})
    assert (flow.has_in_order("ta", "tc"), flow.has_in_order("tc", "ta"), flow.has_in_order("ta", "ti")) == (
        True,
        False,
        None,
    )


def test_a_review_between_two_steps_is_passed_over() -> None:
    made = plan("ta", "tb", "tc")
    review = {
        "node": "r",
        "task_id": None,
        "title": "Review",
        "kind": "review",
        "origin": "review",
        "p_basis": "estimated",
        "cost_basis": None,
        "duration_basis": None,
        "start_ms": None,
    }
    links = [
        {"src": a, "dst": b, "origin": "review"} for a, b in pairwise(["input", "nta", "r", "ntb", "ntc", "output"])
    ]
    assert failing(replace(made, steps=[*made.steps, review], links=links)) == {}


def test_node_f1_compares_with_what_was_done() -> None:
    names = lambda task: [TITLES[task], task]
    assert node_f1(plan("ta", "tb", "tc"), ["Submit request", "Pay"], names) == pytest.approx(0.8)
    assert node_f1(plan("ta", "tc", flow=("ta", "te", "tc")), ["Submit request", "End trip", "Pay"], names) == 1.0
    assert node_f1(plan("ta"), [], names) is None
