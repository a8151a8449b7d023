from typing import Any

import pytest

from opus_pipelines.core.errors import InputError, LakeError
from opus_pipelines.core.formatting import deadline, lead_time
from opus_pipelines.core.schemas import EDGES, INTAKES, INTENTIONS, NEIGHBOURS, OPTIMIZED, TASKS, WORKFLOW_TASKS
from opus_pipelines.lake.layout import Lake
from opus_pipelines.reporting.best import by_contract, ranked
from opus_pipelines.reporting.explain import explanation, find_workflow
from opus_pipelines.reporting.pages.contract import contract_pages
from opus_pipelines.reporting.pages.render import render
from opus_pipelines.reporting.status import report
from opus_pipelines.reporting.views import connect, run
from opus_pipelines.reporting.workflows import evidence_of
from tests.reporting.conftest import CLIENT, CONTRACT, HEAD, put, step, workflow


def test_explanation_says_why_it_ranks_first(lake: Lake) -> None:
    text = explanation(connect(lake), "fa1")
    for line in (
        "rank 1 of 2 for intake claim-1 of ../Nord/wind 50% / 007",
        "ahead of rank 2 (fa2): feasible goes first, and that one violates max_cost_usd: 8.00 exceeds 7.00 by 1.00",
        "only here: Pay",
        "success: 2 of 2 steps prior",
        "cost: 2 of 2 steps rate",
        "the 1 nearest cases of claims log, similarity 0.750 to 0.750",
        "success     90.0 %, estimated for this workflow; of similar cases 1 of 1 with a known outcome succeeded",
        "$9.00 (nothing known); 25.0 % assumed, 1 step unknown; a whole similar case: $14.00 (median)",
        "saving      $3.00: the nearest cases paid $12.00 for the same steps (2 of 2 compared).",
        "Fewer repetitions save $1.50. Steps left out, less those added, save -$0.5000. In all it is $4.00\n",
        "touch time  1.0 h of work; 0.0 % assumed; no case of history tells",
        "snapshot w1, model m1, result r2",
    ):
        assert line in text


@pytest.mark.parametrize(
    ("figures", "shown", "explained"),
    [
        (
            {"success_probability": None, "success_unknown_steps": 2},
            "assumed",
            "unknown: of none of its steps was an outcome ever observed",
        ),
        (
            {"success_probability": 0.9, "success_unknown_steps": 1},
            "90.0 % (1 step assumed)",
            "90.0 % (1 step assumed), estimated for this",
        ),
        ({"success_probability": 0.9, "success_unknown_steps": 0}, "90.0 %", "90.0 %, estimated for this workflow"),
    ],
)
def test_a_success_is_shown_with_what_it_rests_on(
    lake: Lake, figures: dict[str, float | None], shown: str, explained: str
) -> None:
    where = {"client_key": CLIENT, "contract_key": CONTRACT, "result": "r2"}
    put(lake, OPTIMIZED, lake.folder(OPTIMIZED, **where), workflow("fa1", 1, 8.0, **figures))
    connection = connect(lake)
    ((_, columns, (line, *_)),) = by_contract(ranked(connection, CLIENT, CONTRACT, None, 1))
    assert line[columns.index("success")] == shown
    assert f"success     {explained}" in explanation(connection, "fa1")


def test_explanation_of_an_infeasible_one_names_the_violation(lake: Lake) -> None:
    assert "violated: max_cost_usd: 8.00 exceeds 7.00 by 1.00" in explanation(connect(lake), "fa2")


@pytest.mark.long
def test_of_equal_rewards_the_least_penalty_is_named(lake: Lake) -> None:
    where = {"client_key": CLIENT, "contract_key": CONTRACT, "result": "r2"}
    put(
        lake,
        OPTIMIZED,
        lake.folder(OPTIMIZED, **where),
        workflow("fa1", 1, 8.0, penalty=0.25, cip=0.3, sip=0.125),
        workflow("fa2", 2, 8.0, penalty=0.5),
    )
    scores = {"cohesion": 0.625, "coupling": 0.5, "observability": 0.25, "hygiene": 0.0}
    put(lake, WORKFLOW_TASKS, lake.folder(WORKFLOW_TASKS, **where), step("fa1", "n1", 1, "Check", **scores))
    text = explanation(connect(lake), "fa1")
    for line in (
        "ahead of rank 2 (fa2): the Rewards tie, and its Penalty is lower",
        "Penalty 0.2500 against 0.5000",
        "0.2500 (CIP 0.3000, SIP 0.1250): decides where Rewards tie",
    ):
        assert line in text
    assert "1  Check  0.62      0.50      0.25           0.00" in text
    assert "its Penalty is higher" in explanation(connect(lake), "fa2")
    assert "none are known" in explanation(connect(lake), "fa2")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("fa1", "fa1"),
        ("fa", "begins several workflows: fa1, fa2"),
        ("zz", "no current workflow is called 'zz'"),
    ],
)
def test_a_workflow_is_found_by_the_beginning_of_its_id(lake: Lake, text: str, expected: str) -> None:
    connection = connect(lake)
    if text == expected:
        assert find_workflow(connection, text) == expected
    else:
        with pytest.raises(InputError, match=expected):
            find_workflow(connection, text)


def test_evidence_lists_the_nearest_cases_first(lake: Lake) -> None:
    text = evidence_of(connect(lake), "fa1", "check", 5)
    head, counted, *_ = text.splitlines()
    assert (head.startswith("Check (tc), "), head.endswith(" claims log/check it")) == (True, True)
    assert (counted.startswith("carried out 2 times, 1 "), counted.endswith(" claim-1")) == (True, True)
    assert text.index("M1") < text.index("M2")


@pytest.mark.long
def test_evidence_of_a_task_that_history_lacks(lake: Lake) -> None:
    assert "its figures are priors" in evidence_of(connect(lake), "fa1", "Pay", 5)
    with pytest.raises(InputError, match="no task 'Sing'; it has: Check, Pay"):
        evidence_of(connect(lake), "fa1", "Sing", 5)


def test_best_tells_how_the_alternatives_differ(lake: Lake) -> None:
    where = {"client_key": CLIENT, "contract_key": CONTRACT, "result": "r2"}
    rows_of = [workflow("fa1", 1, 8.0), workflow("fa2", 2, 7.5)]
    put(lake, OPTIMIZED, lake.folder(OPTIMIZED, **where), *rows_of)
    [(title, columns, rows)] = by_contract(ranked(connect(lake), None, None, None, None))
    assert title == "../Nord/wind 50% / 007"
    assert [dict(zip(columns, row, strict=True))["steps"] for row in rows] == ["2", "2: without Pay"]


@pytest.mark.parametrize(("assumed", "cost"), [(0.0, None), (0.25, "25.0 % assumed")])
def test_the_short_table_has_what_decides_and_names_what_is_assumed(
    lake: Lake, assumed: float, cost: str | None
) -> None:
    where = {"client_key": CLIENT, "contract_key": CONTRACT, "result": "r2"}
    figures = {"cost_assumed_share": assumed, "cost_unknown_steps": 0}
    put(lake, OPTIMIZED, lake.folder(OPTIMIZED, **where), workflow("fa1234567890abc", 1, 8.0, **figures))
    [(_, columns, rows)] = by_contract(ranked(connect(lake), None, None, None, None), short=True)
    first = dict(zip(columns, rows[0], strict=True))
    assert (first["workflow"], first["reward $"], first.get("cost rests on")) == ("fa12345678", 8.0, cost)
    assert "constraints" not in columns


def test_infeasible_workflows_stand_in_a_table_of_their_own(lake: Lake) -> None:
    (_, _, kept), (title, columns, rows) = by_contract(ranked(connect(lake), None, None, None, None))
    assert [row[2] for row in kept] == ["fa1"]
    assert title == "../Nord/wind 50% / 007: infeasible, outside the ranking"
    first = dict(zip(columns, rows[0], strict=True))
    assert (first["workflow"], first["breaks"]) == ("fa2", "max_cost_usd: 8.00 exceeds 7.00 by 1.00")


def test_where_no_workflow_is_feasible_best_says_so_and_why(lake: Lake) -> None:
    where = {"client_key": CLIENT, "contract_key": CONTRACT, "result": "r2"}
    broken = workflow("fa1", 1, 8.0, feasible=False, violations=["max_cost_usd: 9.00 exceeds 7.00 by 2.00"])
    put(lake, OPTIMIZED, lake.folder(OPTIMIZED, **where), broken)
    [(title, _, rows)] = by_contract(ranked(connect(lake), None, None, None, None))
    assert title == "../Nord/wind 50% / 007: no feasible workflow"
    assert rows[0][:3] == ("claim-1", "fa1", "max_cost_usd: 9.00 exceeds 7.00 by 2.00")


def test_best_of_nothing_names_what_there_is(lake: Lake) -> None:
    with pytest.raises(LakeError, match=r"there are results of: \.\./Nord/wind 50% / 007"):
        ranked(connect(lake), "Nobody", None, None, None)


def test_status_names_what_failed(lake: Lake) -> None:
    blocks = {title: rows for title, _, rows in report(connect(lake), lake)}
    assert blocks["What could not be used"] == [
        ("file", "broken/b.csv", "not a CSV"),
        ("intake refused", "../Nord/wind 50% / 007 / claim-2", "no input: ask the client"),
    ]
    assert blocks["Last runs: none"] == []


@pytest.mark.long
def test_best_and_explain_say_how_sure_they_are(lake: Lake) -> None:
    (_, columns, rows), _ = by_contract(ranked(connect(lake), None, None, None, None))
    [first] = (dict(zip(columns, row, strict=True)) for row in rows)
    assert (first["90 % within"], first["holds"]) == ("$7.25 to $8.50", "undecided (70.0 %)")
    text = explanation(connect(lake), "fa1")
    assert "(90 % within $7.25 to $8.50)" in text
    assert "probability 0.75; it is" in text
    assert "verdict: undecided" in text


def test_explanation_tells_what_changed_what_is_worth_it_and_what_binds(lake: Lake) -> None:
    where = {"client_key": CLIENT, "contract_key": CONTRACT, "result": "r2"}
    edits = [{"kind": "review", "what": "review of 'Check' by human", "earned_usd": 1.5}]
    choices = [{"kind": "way", "what": "'Pay' by human instead of code", "earned_usd": 0.25}]
    put(
        lake,
        OPTIMIZED,
        lake.folder(OPTIMIZED, **where),
        workflow(
            "fa1",
            1,
            8.0,
            edits=edits,
            choices=choices,
            binding=["max_cost_usd 7: tight, it stands at 6.95"],
            gap_usd=0.5,
            exact=False,
        ),
    )
    text = explanation(connect(lake), "fa1")
    for line in (
        "changed: review of 'Check' by human: earned $1.50",
        "worth it: 'Pay' by human instead of code: earned $0.2500",
        "bound by max_cost_usd 7: tight, it stands at 6.95",
        "another path may earn up to $0.5000 more: the search was cut short",
        "no other ways and reviews of these steps earn more, as far as greedy changes tell: not all were tried",
    ):
        assert line in text


def test_an_edit_that_a_limit_forced_is_said_to_have_cost(lake: Lake) -> None:
    where = {"client_key": CLIENT, "contract_key": CONTRACT, "result": "r2"}
    edits = [{"kind": "parallel", "what": "'Pay' no longer waits for 'Check'", "earned_usd": -2.0}]
    put(lake, OPTIMIZED, lake.folder(OPTIMIZED, **where), workflow("fa1", 1, 8.0, edits=edits, gap_usd=0.0, exact=True))
    text = explanation(connect(lake), "fa1")
    assert "'Pay' no longer waits for 'Check': cost $2.00" in text
    assert "no other ways and reviews" in text


@pytest.mark.parametrize(("gamma", "p", "is_shown"), [(0.97, 0.96, True), (0.01, 0.96, False), (0.97, 0.81, False)])
def test_a_step_that_depends_on_the_one_before_it_is_named(lake: Lake, gamma: float, p: float, is_shown: bool) -> None:
    folder = lake.snapshot_folder("w1")
    edge = {"src": "tc", "dst": "tp", "dst_p": p, "dst_p_n": 57, "dst_p_gamma": gamma}
    put(lake, EDGES, folder / "edges", edge, edge | {"src": "tp", "dst": "tc"})
    put(
        lake, TASKS, folder / "tasks", {"task_id": "tc", "title": "Check"}, {"task_id": "tp", "title": "Pay", "p": 0.81}
    )
    text = explanation(connect(lake), "fa1")
    said = "Pay succeeds in 96.0 % of the cases directly behind Check, 81.0 % in all (γ 0.97, 57 outcomes)"
    assert (said in text, "Success by the step before" in text) == (is_shown, is_shown)


@pytest.mark.long
def test_a_time_behind_the_step_before_stands_beside_that_of_all_times(lake: Lake) -> None:
    folder = lake.snapshot_folder("w1")
    times = {"dst_duration_ms_observed": 120_000.0, "dst_duration_n": 57, "dst_duration_gamma": 0.97}
    costs = {"dst_cost_usd_observed": 3.0, "dst_cost_n": 5, "dst_cost_gamma": 0.01}
    put(lake, EDGES, folder / "edges", {"src": "tc", "dst": "tp"} | times | costs)
    pay = {"task_id": "tp", "title": "Pay", "duration_ms_mean": 60_000.0, "cost_usd_mean": 2.0}
    put(lake, TASKS, folder / "tasks", {"task_id": "tc", "title": "Check"}, pay)
    assert "takes 2.0 min (57 times), 1.0 min" in explanation(connect(lake), "fa1")


@pytest.mark.long
@pytest.mark.parametrize(("kind", "is_said"), [(None, True), ("human", False)])
def test_a_cost_that_an_unknown_kind_of_actor_leaves_open_names_the_setting(
    lake: Lake, kind: str | None, is_said: bool
) -> None:
    where = {"client_key": CLIENT, "contract_key": CONTRACT, "result": "r2"}
    unpriced = step("fa1", "n1", 1, "Check", cost_usd=None, cost_basis="unknown", actor_kind=kind)
    ends = step("fa1", "n0", 0, "Open"), step("fa1", "n2", 2, "Pay")
    put(lake, WORKFLOW_TASKS, lake.folder(WORKFLOW_TASKS, **where), ends[0], unpriced, ends[1])
    assert ("[cost.usd_per_hour]" in explanation(connect(lake), "fa1")) == is_said
    (page,) = contract_pages(connect(lake), CLIENT, CONTRACT)
    assert ("actor_kind in source.toml" in render(page)) == is_said


@pytest.mark.long
def test_the_cases_that_history_is_measured_on_are_counted(lake: Lake) -> None:
    where = {"client_key": CLIENT, "contract_key": CONTRACT, "result": "r2"}
    near = {"implementation_id": "m1", "similarity": 0.9, "is_compared": True}
    put(lake, NEIGHBOURS, lake.folder(NEIGHBOURS, **where), HEAD | near)
    assert "the nearest 1\n" in explanation(connect(lake), "fa1")


@pytest.mark.long
def test_an_intake_that_history_knows_nothing_like_says_so(lake: Lake) -> None:
    said = "no case of history is really like this intake"
    assert said not in explanation(connect(lake), "fa1")
    where = {"client_key": CLIENT, "contract_key": CONTRACT, "result": "r2"}
    put(lake, NEIGHBOURS, lake.folder(NEIGHBOURS, **where), HEAD | {"implementation_id": "m1", "similarity": 0.15})
    assert said in explanation(connect(lake), "fa1")


@pytest.mark.long
def test_what_of_the_documents_was_not_read_is_told(lake: Lake) -> None:
    assert "not read" not in explanation(connect(lake), "fa1")
    where = {"client_key": CLIENT, "contract_key": CONTRACT, "result": "r2"}
    elements = [
        {"element_id": "e1", "role": "input", "name": "rows.csv", "left_out": "9 of 10 rows"},
        {"element_id": "e2", "role": "input", "name": "n.txt"},
        {"element_id": "e3", "role": "contract", "name": "scan.pdf", "left_out": "no text layer"},
    ]
    intake = {k: v for k, v in HEAD.items() if k != "intention_id"} | {
        "folder": "claim-1",
        "status": "generated",
        "elements": elements,
    }
    put(lake, INTAKES, lake.folder(INTAKES, **where), intake)
    text = explanation(connect(lake), "fa1")
    assert [line.strip() for line in text.splitlines() if "not read" in line] == [
        "not read: input/rows.csv: 9 of 10 rows",
        "not read: contract/scan.pdf: no text layer",
    ]
    found = run(connect(lake), "left_out")
    assert found is not None
    assert [row[2:5] for row in found.fetchall()] == [("claim-1", "input", "rows.csv"), (None, "contract", "scan.pdf")]


@pytest.mark.long
def test_what_differs_is_told_step_by_step_and_who_does_it(lake: Lake) -> None:
    """Check is done by someone else, Pay in the place of Refund: two swaps; a workflow that was set apart says at what
    cost.
    """
    where = {"client_key": CLIENT, "contract_key": CONTRACT, "result": "r2"}
    edits = [{"kind": "swap", "what": "'Check': model m instead of human", "earned_usd": -0.5}]
    fewer = "no other was found that keeps what these keep and differs from each of them in 2 steps"
    put(
        lake,
        OPTIMIZED,
        lake.folder(OPTIMIZED, **where),
        workflow("fa1", 1, 8.0, exact=True, fewer=fewer),
        workflow("fa2", 2, 7.5, edits=edits, exact=False, differs_by=2, fewer=fewer),
    )
    put(
        lake,
        WORKFLOW_TASKS,
        lake.folder(WORKFLOW_TASKS, **where),
        step("fa1", "n1", 1, "Check"),
        step("fa1", "n2", 2, "Pay"),
        step("fa2", "n1", 1, "Check", actor_kind="model", model="m"),
        step("fa2", "n3", 2, "Refund"),
    )
    text = explanation(connect(lake), "fa1")
    assert (
        "\n".join(
            (
                "    they differ in 2 steps:",
                "      only here: Pay",
                "      only there: Refund",
                "      Check: by human here, by model m there",
            )
        )
        in text
    )
    assert f"fewer are ranked than asked for: {fewer}" in text
    other = explanation(connect(lake), "fa2")
    assert "'Check': model m instead of human: cost $0.5000" in other
    assert "no other ways and reviews" not in other
    ((_, _, rows),) = by_contract(ranked(connect(lake), None, None, None, None))
    assert [row[-1] for row in rows] == ["2", "2: with Refund, without Pay, Check by model m"]


@pytest.mark.long
def test_evidence_of_a_review_that_was_placed_tells_what_its_figures_rest_on(lake: Lake) -> None:
    where = {"client_key": CLIENT, "contract_key": CONTRACT, "result": "r2"}
    review = step(
        "fa1",
        "n9",
        3,
        "Review: Pay",
        kind="review",
        task_id=None,
        p=0.99,
        q=0.9,
        q_basis="prior",
        cost_usd=0.5,
        cost_basis="rate",
    )
    put(lake, WORKFLOW_TASKS, lake.folder(WORKFLOW_TASKS, **where), step("fa1", "n1", 1, "Check"), review)
    head, *figures = evidence_of(connect(lake), "fa1", "Review: Pay", 5).splitlines()
    assert "Review: Pay (n9)" in head
    assert [line.split()[-1] for line in figures] == ["rate", "observed", "prior", "prior"]
    assert ["$0.5000" in figures[0], "0.990" in figures[2], "0.900" in figures[3]] == [True, True, True]
    assert "[review] Pay" in explanation(connect(lake), "fa1")


@pytest.mark.long
def test_a_step_that_history_lacks_names_the_nearest_that_it_has(lake: Lake) -> None:
    where = {"client_key": CLIENT, "contract_key": CONTRACT, "result": "r2"}
    new = step(
        "fa1", "n9", 2, "Weigh", task_id="x1", origin="new", nearest_task_id="tc", cost_basis="estimated", evidence=0
    )
    put(lake, WORKFLOW_TASKS, lake.folder(WORKFLOW_TASKS, **where), step("fa1", "n1", 1, "Check"), new)
    assert "Weigh [new; nearest known: Check]" in explanation(connect(lake), "fa1")
    told = evidence_of(connect(lake), "fa1", "weigh", 5)
    assert told.endswith("estimates, those of 'Check'")


@pytest.mark.long
def test_rules_that_were_not_applied_are_counted_beside_the_workflow_and_asked_about(lake: Lake) -> None:
    where = {"client_key": CLIENT, "contract_key": CONTRACT, "result": "r2"}
    rule = {
        "kind": "must_contain",
        "sentence": "A final sign-off must be given.",
        "place": "process/sop.md, line 4",
        "element_id": "e1",
    }
    asked = rule | {
        "value": "a final sign-off given",
        "effect": "no step of the catalogue is surely meant by 'a final sign-off given'",
        "status": "not applied",
        "asks": "a final sign-off given",
        "nearest": ["Check", "Pay"],
    }
    other = rule | {
        "value": "x",
        "effect": "it is about 'theft', which this intake does not mention",
        "status": "other cases",
    }
    put(
        lake,
        INTENTIONS,
        lake.folder(INTENTIONS, **where),
        HEAD | {"constraints": [asked, other], "rules_not_applied": 1},
    )
    (_, columns, rows), (_, _, infeasible) = by_contract(ranked(connect(lake), None, None, None, None))
    shown = [dict(zip(columns, row, strict=True)) for row in rows]
    assert [(row["constraints"], row["not read or applied"]) for row in shown] == [("met", "1 rule not applied")]
    assert infeasible[0][2] == "max_cost_usd: 8.00 exceeds 7.00 by 1.00; 1 rule not applied"
    text = explanation(connect(lake), "fa1")
    assert "the nearest: Check; Pay" in text
    found = run(connect(lake), "rules_not_applied")
    assert found is not None
    assert [row[2:] for row in found.fetchall()] == [
        ("process/sop.md, line 4", rule["sentence"], asked["effect"], "a final sign-off given", ["Check", "Pay"], 1),
    ]
    [page] = contract_pages(connect(lake), None, None)
    assert [(row["asks"], row["nearest"], row["intakes"]) for row in page.rules] == [
        ("a final sign-off given", ["Check", "Pay"], 1)
    ]


@pytest.mark.long
def test_what_a_workflow_lacks_of_the_procedure_is_counted_beside_it(lake: Lake) -> None:
    rows = ranked(connect(lake), None, None, None, None)
    lacking = rows.query("ranked_rows", "SELECT * REPLACE (['File it', 'Tell the press'] AS lacks) FROM ranked_rows")
    unstated = rows.query("ranked_rows", "SELECT * REPLACE (['Pay: if it is late'] AS conditional) FROM ranked_rows")
    (_, columns, found), *_ = by_contract(unstated)
    told = [dict(zip(columns, row, strict=True))["constraints"] for row in found]
    assert {line.rpartition("; ")[2].partition(" under a condition")[0] for line in told} == {"1 step"}
    (_, columns, found), *_ = by_contract(lacking)
    told = [dict(zip(columns, row, strict=True))["constraints"] for row in found]
    assert {line.rpartition("; ")[2] for line in told} == {"2 statements of the procedure without a step"}
    title, *_ = next(by_contract(lacking, short=True))
    assert title.endswith("(statements of the procedure without a step: 2)")


def test_ranks_that_unknown_costs_decided_say_so(lake: Lake) -> None:
    where = {"client_key": CLIENT, "contract_key": CONTRACT, "result": "r2"}
    put(
        lake,
        OPTIMIZED,
        lake.folder(OPTIMIZED, **where),
        workflow("fa1", 1, 8.0, cost_unknown_steps=0),
        workflow("fa2", 2, 9.0, cost_unknown_steps=2),
    )
    said = (
        "ahead of rank 2 (fa2): the costs of 0 steps here and 2 there are unknown: each was "
        "compared as if it cost what other steps cost"
    )
    assert said in explanation(connect(lake), "fa1")


@pytest.mark.long
def test_best_and_explain_show_touch_time_and_lead_time(lake: Lake) -> None:
    (_, columns, rows), _ = by_contract(ranked(connect(lake), None, None, None, None))
    first = dict(zip(columns, rows[0], strict=True))
    assert (first["touch time"], first["lead time"]) == ("1.0 h", "3.0 d, p90 5.0 d; 4.0 d kept: 75.0 %")
    assert (first["history touch time"], first["history lead time"]) == ("-", "3.1 d")
    text = explanation(connect(lake), "fa1")
    for line in (
        "touch time  1.0 h of work",
        "lead time   3.0 d, p90 5.0 d, waiting included (measured: waiting and work); a whole "
        "similar case: 3.1 d (median)",
        "deadline    a lead time of at most 96.00 hours is kept with probability 0.750",
    ):
        assert line in text
    pay = next(line for line in text.splitlines() if " Pay " in line and "human" in line)
    assert pay.split()[pay.split().index("human") + 3 :][:4] == ["3.0", "d", "1.0", "min"]


def test_a_lead_time_that_is_unknown_is_a_dash_and_its_deadline_is_unknown() -> None:
    assert lead_time(None, None) == "-"
    assert deadline(96.0, None) == "4.0 d kept: unknown"
    assert deadline(None, None) == ""


NO_GAIN: dict[str, Any] = {
    "reward_usd": None,
    "reward_usd_p05": None,
    "reward_usd_p95": None,
    "gain_usd": None,
    "gap_usd": None,
    "ranked_by": ["success", "conformity", "lead time", "Penalty"],
}


@pytest.mark.long
def test_without_a_stated_gain_no_reward_is_shown_and_the_criterion_is_named(lake: Lake) -> None:
    where = {"client_key": CLIENT, "contract_key": CONTRACT, "result": "r2"}
    edits = [{"kind": "way", "what": "'Pay' by human instead of code", "earned_usd": None, "earned_success": 0.031}]
    put(
        lake,
        OPTIMIZED,
        lake.folder(OPTIMIZED, **where),
        workflow(
            "fa1", 1, 0.0, **NO_GAIN, ahead_by="conformity", conformity=0.75, edits=edits, gap_success=0.02, exact=True
        ),
        workflow("fa2", 2, 0.0, **NO_GAIN, conformity=0.5),
    )
    [(_, columns, rows)] = by_contract(ranked(connect(lake), None, None, None, None))
    first, second = (dict(zip(columns, row, strict=True)) for row in rows)
    assert (first["reward $"], first["90 % within"]) == ("no gain stated", "-")
    criteria = "success, conformity, lead time, Penalty"
    assert (first["ranked by"], second["ranked by"]) == (f"{criteria} (ahead by conformity)", criteria)
    text = explanation(connect(lake), "fa1")
    for line in (
        f"Reward      no gain stated: what a right output is worth is not known; ranked by {criteria}",
        "ahead of rank 2 (fa2): similar cases agree to 0.750 with this one and to 0.500 with that one",
        "changed: 'Pay' by human instead of code: success +3.1 %",
        "another path may succeed up to 2.0 % more: the search was cut short",
        "no other ways and reviews of these steps succeed more",
    ):
        assert line in text
    assert "earn" not in text
    assert "Reward - against -" in text


def test_a_stated_gain_needs_no_column_that_names_the_criteria(lake: Lake) -> None:
    (_, columns, _), _ = by_contract(ranked(connect(lake), None, None, None, None))
    assert "ranked by" not in columns


@pytest.mark.parametrize("name", ["audit", "best_workflows", "ranking", "undecided", "changes"])
def test_shipped_queries_say_where_no_gain_is_stated(lake: Lake, name: str) -> None:
    where = {"client_key": CLIENT, "contract_key": CONTRACT, "result": "r2"}
    put(lake, OPTIMIZED, lake.folder(OPTIMIZED, **where), workflow("fa1", 1, 0.0, **NO_GAIN))
    found = run(connect(lake), name, {"workflow": "fa1"} if name == "audit" else {})
    rows = [dict(zip(found.columns, row, strict=True)) for row in found.fetchall()]
    if name == "audit":
        assert [r["detail"] for r in rows if r["link"] == "workflow"] == ["rank 1, no gain stated"]
    for row in rows:
        assert {value for column, value in row.items() if "reward" in column or column == "behind_best_usd"} <= {None}
