from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from opus_pipelines.intakes.elements import Element
from opus_pipelines.intakes.requirements.rules import rules_of
from opus_pipelines.lwm.interface import ProcessDemand, SimilarCase
from opus_pipelines.lwm.retrieval.rule_constraints import (
    IN_FORCE,
    IntakeStatements,
    ProcessHistory,
    ResolutionContext,
    RuleConstraints,
    rule_constraints,
)
from opus_pipelines.lwm.retrieval.task_names import TaskMatcher, TaskNames
from opus_pipelines.lwm.workflow_graph import chain, workflow_graph
from opus_pipelines.wkg.graph import Edge, Task, WorkGraph
from opus_pipelines.workflow.constraints import Constraints, StepDeadline

TITLES = {
    "r": "Register Claim",
    "v": "Verify Coverage",
    "f": "Check Fraud Indicators",
    "e": "Estimate Repair Cost",
    "a": "Approve Settlement",
    "p": "Issue Payment",
    "s": "Send Satisfaction Survey",
    "x": "Obtain Police Report",
}
ALIASES = [
    {"task_id": "p", "title": None, "task_key": "pay_claim"},
    {"task_id": "v", "title": "cover check", "task_key": "cover_check"},
]
GRAPH = WorkGraph.of(
    [Task(i, title) for i, title in TITLES.items()],
    [Edge(a, b, 9, 3, 0.9, 0.1, 0.5) for a, b in ("rv", "vf", "fe", "ea", "ap", "ps")],
)
WAYS = ("rvfeap", "rveap", "rvfeaps")


def case(tasks: str, success: bool = True, weight: float = 1.0) -> Any:
    empty = (None,) * len(tasks)
    return SimilarCase(tasks, 0.9, weight, success, None, None, None, tuple(tasks), tuple(tasks), empty, empty, empty)


def settled(
    text: str,
    stated: Constraints | None = None,
    said: str = "A glass claim of 1,200 USD",
    needed: list[str] | tuple[Any, ...] = (),
    order: list[Any] | tuple[Any, ...] = (),
    role: str = "process",
    vectors: dict[str, Any] | None = None,
    clauses: dict[str, Any] | None = None,
    answers: dict[str, Any] | None = None,
    timed: tuple[str, ...] = tuple(TITLES),
    ways: tuple[str, ...] = WAYS,
) -> Any:
    element = Element("e1", role, "text", "rules.md", "text/markdown", text, len(text), "", None)
    wfg = workflow_graph({f"q{n}": chain(tuple(way)) for n, way in enumerate(WAYS)}, GRAPH)
    tasks = sorted(n.task_id for n in wfg.nodes.values() if n.task_id)
    meaning = TaskMatcher(TaskNames(GRAPH, ALIASES), GRAPH, tasks, vectors or {}, clauses or {})
    demands = [ProcessDemand([case(w) for w in ways], [frozenset(g) for g in needed])]
    ground = ResolutionContext(
        IntakeStatements(said, stated or Constraints(), {"e1": f"{role}/rules.md"}, answers or {}),
        meaning,
        wfg,
        ProcessHistory(demands, frozenset(order), lambda task: task in timed),
    )
    return rule_constraints(rules_of([element]), ground)


def test_without_similar_cases_the_documents_alone_say_what_belongs_to_the_work() -> None:
    rule = "The satisfaction survey must be sent."
    assert in_force(settled(rule)) == [("must_contain", "Send Satisfaction Survey")]
    assert in_force(settled(rule, ways=())) == [("must_contain", "Send Satisfaction Survey")]
    hardly = settled(rule, role="contract", ways=("rvfeap",) * 30)
    assert ["hardly ever" in d.effect for d in hardly.rules] == [True]


def in_force(found: RuleConstraints) -> Any:
    return [(d.kind, d.value) for d in found.rules if d.effect == IN_FORCE and d.sentence]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Fraud indicators must be checked.", [("must_contain", "Check Fraud Indicators")]),
        ("The satisfaction survey must not be sent.", [("must_not_contain", "Send Satisfaction Survey")]),
        (
            "Coverage must be verified before the payment is issued.",
            [("before", "Verify Coverage before Issue Payment"), ("must_contain", "Verify Coverage")],
        ),
        (
            "No claim is paid before the cover check.",
            [("before", "Verify Coverage before Issue Payment"), ("must_contain", "Verify Coverage")],
        ),
        ("Claims are settled within 3 days.", [("max_lead_time_hours", "72")]),
        ("Claims must be registered within 3 days.", [("deadlines", "'Register Claim' within 3 days of the start")]),
        ("The claim must be closed within 3 days.", [("max_lead_time_hours", "72")]),  # no step of history
        ("At most $40 per case.", [("max_cost_usd", "40")]),
        (
            "Amounts above $1,000 must have fraud indicators checked. Settlements must be approved.",
            [("must_contain", "Check Fraud Indicators"), ("must_contain", "Approve Settlement")],
        ),
        ("Above $1,000 fraud indicators must be checked.", [("must_contain", "Check Fraud Indicators")]),
    ],
)
def test_a_rule_becomes_a_constraint(text: str, expected: list[Any]) -> None:
    assert in_force(settled(text)) == expected


@pytest.mark.parametrize(
    ("text", "why"),
    [
        (
            "Refunds must be approved by a manager.",
            "no step of the catalogue is surely meant by 'refunds approved by a manager'",
        ),
        ("The police report must be obtained.", "no way in which history did this work has 'Obtain Police Report'"),
        (
            "Above $5,000 fraud indicators must be checked.",
            "it holds for amounts above 5,000.00 USD; the largest of the client input is 1,200.00 USD",
        ),
        (
            "For theft claims, fraud indicators must be checked.",
            "it is about 'theft claims', which this intake does not mention",
        ),
        ("Collision claims are settled within 2 hours.", "it is about 'collision', which this intake does not mention"),
        (
            "If in doubt, fraud indicators must be checked.",
            "not understood for sure (the condition 'in doubt' does not say when it is met); say it in "
            "a plain sentence of its own, or state it in"
            " contract.toml",
        ),
        (
            "Payment must be issued before coverage is verified.",
            "no way in which history did this work goes in this order",
        ),
        ("The planner must not verify coverage.", "it addresses the program, not the work"),
        ("Fraud indicators may be checked.", None),
    ],
)
def test_what_is_unsure_stays_without_effect_and_says_why(text: str, why: str | None) -> None:
    found = settled(text)
    assert found.constraints == Constraints()
    assert why is None or why in {d.effect for d in found.rules}


def test_an_amount_that_nobody_states_has_no_effect() -> None:
    (found,) = settled("Above $5,000 fraud indicators must be checked.", said="A glass claim").rules
    assert found.status == "not applied"
    assert "5,000.00 USD" in (found.effect or "")


def test_a_stated_constraint_on_a_task_that_nobody_knows_is_shown_as_not_applied() -> None:
    found = settled("Hello.", Constraints(must_not_contain=("Weld",), before=(("Issue Payment", "Weld"),)))

    assert [(r.kind, r.status) for r in found.rules] == [("must_not_contain", "not applied"), ("before", "not applied")]
    assert found.rules[1].effect == "no task of history is called 'Weld'"
    assert found.not_applied == 2


def test_stated_constraints_win_over_read_ones() -> None:
    before = (("Verify Coverage", "Register Claim"),)
    stated = Constraints(max_cost_usd=90, must_not_contain=("Check Fraud Indicators",), before=before)
    text = (
        "At most $40 per case. Fraud indicators must be checked. The claim is registered before coverage is verified."
    )
    found = settled(text, stated)
    assert found.constraints == stated
    assert [d.effect.rpartition(" ")[2] for d in found.rules if d.sentence and d.effect] == [
        "90",
        "contrary",
        "contrary",
    ]
    assert [d.place for d in found.rules if not d.sentence] == ["contract.toml or intake.toml"] * 3


def test_rules_that_contradict_each_other_do_not_both_hold() -> None:
    text = (
        "Fraud indicators must be checked. Fraud indicators must not be checked. Coverage is "
        "verified before repair costs are estimated."
    )
    first = ("must_contain", "Check Fraud Indicators")
    assert in_force(settled(text)) == [first, ("before", "Verify Coverage before Estimate Repair Cost")]


def test_what_history_needs_is_not_forbidden_by_a_sentence() -> None:
    text = "Coverage must never be verified."
    assert in_force(settled(text)) == [("must_not_contain", "Verify Coverage")]
    assert in_force(settled(text, needed=["v"])) == []


def test_what_is_merely_described_does_not_overrule_history() -> None:
    text = "Coverage is verified before the repair cost is estimated."
    assert in_force(settled(text, order=[("e", "v")])) == []
    assert settled(text).precedence(frozenset({("e", "v"), ("r", "v")})) == {("v", "e"), ("r", "v")}


def test_a_contracts_demand_on_other_work_is_left_alone() -> None:
    assert in_force(settled("The satisfaction survey must be sent.", needed=["s"], role="contract")) == [
        ("must_contain", "Send Satisfaction Survey"),
    ]
    assert in_force(settled("The satisfaction survey must be sent.", needed=["x"], role="contract")) == []


def test_a_rule_under_the_name_of_a_step_is_about_that_step_only() -> None:
    text = (
        "* Obtain Police Report:\nFraud indicators must be checked.\n\n* Approve Settlement:\nThe "
        "settlement must be approved."
    )
    assert in_force(settled(text)) == [("must_contain", "Approve Settlement")]


def test_violations_name_the_place_of_the_sentence() -> None:
    found = settled("# Rules\n\nFraud indicators must be checked. At most $40 per case.")
    assert found.with_source("must_contain: 'Check Fraud Indicators' is missing") == (
        "must_contain: 'Check Fraud Indicators' is missing (process/rules.md, line 3)"
    )
    assert found.with_source("max_cost_usd: 50.00 exceeds 40.00 by 10.00").endswith("(process/rules.md, line 3)")
    assert found.with_source("needed: 'Verify Coverage' is left out") == "needed: 'Verify Coverage' is left out"


def test_meaning_in_embedding_space_must_be_near_lead_and_share_a_word() -> None:
    axes = np.eye(4, dtype=np.float32)
    vectors = {"f": axes[0], "v": axes[1], "e": axes[2]}
    text = "The fraud desk must be asked and its fraud check noted before the repair cost is estimated."
    near = dict.fromkeys(("its fraud check noted",), axes[0])
    assert ("before", "Check Fraud Indicators before Estimate Repair Cost") in in_force(
        settled(text, vectors=vectors, clauses=near)
    )
    torn = {"its fraud check noted": (axes[0] + axes[1]) / np.sqrt(2)}
    assert in_force(settled(text, vectors=vectors, clauses=torn)) == []


@settings(deadline=None)  # the first sentence loads the dictionary of verbs
@given(
    st.lists(
        st.sampled_from(
            [
                "Coverage must be verified before repair costs are estimated.",
                "Repair costs are estimated before the settlement is approved.",
                "The settlement must be approved before coverage is verified.",
                "Fraud indicators must be checked before repair costs are estimated.",
                "Nothing is paid until the settlement is approved.",
            ]
        ),
        max_size=5,
    )
)
def test_the_order_in_force_never_runs_in_a_circle(sentences: list[Any]) -> None:
    pairs = settled("\n\n".join(sentences)).constraints.before
    order = {a: {b for x, b in pairs if x == a} for a, _ in pairs}
    seen = lambda start: set(order.get(start, ())) | {m for n in order.get(start, ()) for m in seen(n)}
    assert all(a not in seen(a) for a in order)


@pytest.mark.parametrize(
    ("said", "holds"),
    [
        ("Claim of a client. Total: EUR 6.200,00", True),
        ("Total: 6,200 EUR", True),
        ("Total: EUR 4,999.99", False),
        ("Total: 9000 USD", False),
        ("", False),
    ],
)
def test_an_exception_above_an_amount_is_decided_by_the_amount_in_the_e_mail(said: str, holds: bool) -> None:
    found = settled("Claims exceeding EUR 5,000 require that fraud indicators are checked.", said=said)
    assert (in_force(found) == [("must_contain", "Check Fraud Indicators")]) is holds


def test_amounts_in_another_currency_decide_nothing_and_the_rule_counts_as_not_applied() -> None:
    found = settled("Where the amount exceeds EUR 5,000, fraud indicators must be checked.", said="Total: 9,000 USD")
    (rule,) = found.rules
    assert rule.status == "not applied"
    assert (rule.effect or "").endswith(" no amount in EUR, only in USD")
    assert found.not_applied == 1


def test_a_case_that_the_rule_is_not_about_is_no_rule_that_was_not_applied() -> None:
    found = settled(
        "Above $5,000 fraud indicators must be checked. For theft claims, fraud indicators must be checked."
    )
    assert ([d.status for d in found.rules], found.not_applied) == (["other cases", "other cases"], 0)


@pytest.mark.parametrize(
    ("said", "expected"),
    [
        ("The customer is abroad.", ["Check Fraud Indicators"]),
        ("The customer is not abroad.", []),
        ("The customer is at home.", []),
    ],
)
def test_a_condition_in_words_holds_where_the_intake_says_so(said: str, expected: list[Any]) -> None:
    found = settled("If the customer is abroad, fraud indicators must be checked.", said=said)
    assert [value for _, value in in_force(found)] == expected


@pytest.mark.parametrize(("said", "holds"), [("A claim of a minor.", False), ("A claim of a baker.", True)])
def test_an_exception_is_claimed_by_the_intake_or_does_not_hold(said: str, holds: bool) -> None:
    found = settled("Fraud indicators must be checked unless the claim is of a minor.", said=said)
    assert bool(in_force(found)) is holds


def test_an_order_between_clauses_with_their_own_subjects_is_read() -> None:
    found = settled(
        "The fraud desk must check the fraud indicators before the manager gives the approval of the settlement."
    )
    assert in_force(found)[0] == ("before", "Check Fraud Indicators before Approve Settlement")


def test_a_deadline_of_a_step_is_no_step_and_asks_for_none() -> None:
    found = settled("The settlement must be approved within 10 working days.")
    (rule,) = found.rules
    assert (rule.kind, rule.status) == ("deadlines", "in force")
    assert rule.value.startswith("'Approve Settlement' within 10 working days ")


def test_a_response_binds_where_its_first_step_is_sure() -> None:
    text = "After the coverage is verified, fraud indicators must be checked."
    both = [("before", "Verify Coverage before Check Fraud Indicators"), ("must_contain", "Check Fraud Indicators")]
    assert in_force(settled(text, needed=["v", "f"])) == both
    assert in_force(settled(text)) == both[:1]


def test_a_phrase_that_nobody_can_match_is_a_question_with_the_three_nearest_activities() -> None:
    axes = np.eye(4, dtype=np.float32)
    vectors = {"a": axes[0], "p": (axes[0] + axes[1]) / np.sqrt(2), "f": axes[1], "v": axes[2]}
    found = settled("The final sign-off must be given.", vectors=vectors, clauses={"the final sign-off given": axes[0]})
    (asked,) = found.rules
    assert (asked.unclear_phrase, asked.nearest) == (
        "the final sign-off given",
        ("Approve Settlement", "Issue Payment", "Check Fraud Indicators"),
    )


def test_a_person_answers_which_activity_a_phrase_means() -> None:
    text = "The final sign-off must be given before the payment is issued."
    assert in_force(settled(text, answers={"The final sign-off given": "approve settlement"})) == [
        ("before", "Approve Settlement before Issue Payment"),
        ("must_contain", "Approve Settlement"),
    ]


@pytest.mark.parametrize(
    ("answer", "effect"),
    [
        ("none", "a person answered that no activity is meant by 'the final sign-off given'"),
        (
            "Sign Off",
            "a person answered that 'the final sign-off given' means 'Sign Off', and no activity has that name",
        ),
        (
            "Obtain Police Report",
            "a person answered that 'the final sign-off given' means 'Obtain Police Report', and no way "
            "in which history did this work has it",
        ),
    ],
)
def test_an_answer_that_no_activity_follows_from_is_said_and_not_asked_again(answer: str, effect: str) -> None:
    (found,) = settled("The final sign-off must be given.", answers={"the final sign-off given": answer}).rules
    assert (found.effect, found.unclear_phrase, found.nearest) == (effect, None, ())
    assert found.status == ("other cases" if answer == "none" else "not applied")


def test_who_does_it_tells_activities_apart_that_are_called_by_it() -> None:
    titles = {
        "a": "Declaration APPROVED by ADMINISTRATION",
        "s": "Declaration APPROVED by SUPERVISOR",
        "p": "Payment Handled",
    }
    edges = [Edge(a, b, 9, 3, 0.9, 0.1, 0.5) for a, b in ("as", "sp")]
    graph = WorkGraph.of([Task(i, title) for i, title in titles.items()], edges)
    text = (
        "Declarations must be approved by the supervisor. The administration must approve the "
        "declaration before the payment is handled."
    )
    element = Element("e1", "process", "text", "sop.md", "text/markdown", text, len(text), "", None)
    wfg = workflow_graph({"q0": chain(tuple("asp"))}, graph)
    meaning = TaskMatcher(TaskNames(graph, []), graph, sorted(titles), {}, {})
    statements = IntakeStatements("A trip", Constraints(), {"e1": "process/sop.md"})
    ground = ResolutionContext(statements, meaning, wfg, ProcessHistory([ProcessDemand([case("asp")], [])]))
    assert in_force(rule_constraints(rules_of([element]), ground)) == [
        ("must_contain", "Declaration APPROVED by SUPERVISOR"),
        ("before", "Declaration APPROVED by ADMINISTRATION before Payment Handled"),
        ("must_contain", "Declaration APPROVED by ADMINISTRATION"),
    ]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            "Either check the fraud indicators or send the satisfaction survey.",
            [("exactly_one_of", "Check Fraud Indicators or Send Satisfaction Survey")],
        ),
        (
            "Check the fraud indicators or send the satisfaction survey.",
            [("one_of", "Check Fraud Indicators or Send Satisfaction Survey")],
        ),
        (
            "The payment must be issued within 10 working days of receipt.",
            [("deadlines", "'Issue Payment' within 10 working days of the start")],
        ),
        (
            "The payment must be issued within 48 hours after the settlement is approved.",
            [("deadlines", "'Issue Payment' within 48 hours of 'Approve Settlement'")],
        ),
        (
            "After the settlement is approved, the payment must be issued within two weeks.",
            [("deadlines", "'Issue Payment' within 336 hours of 'Approve Settlement'")],
        ),
        (
            "If the claim exceeds $1,000, either check the fraud indicators or send the satisfaction survey.",
            [("exactly_one_of", "Check Fraud Indicators or Send Satisfaction Survey")],
        ),
        ("For theft claims, the payment must be issued within 2 days.", []),
    ],
)
def test_choices_and_deadlines_of_steps_are_applied(text: str, expected: list[Any]) -> None:
    assert in_force(settled(text)) == expected


def test_choices_and_deadlines_are_constraints_of_the_search() -> None:
    found = settled(
        "Either check the fraud indicators or send the satisfaction survey. The payment must be "
        "issued within 5 business hours of receipt."
    ).constraints
    assert found.exactly_one_of == (("Check Fraud Indicators", "Send Satisfaction Survey"),)
    assert found.deadlines == (StepDeadline(step="Issue Payment", within=5, unit="working_hours"),)


@pytest.mark.parametrize(
    ("text", "more", "why"),
    [
        (
            "Either check the fraud indicators or verify the coverage.",
            {"needed": ["f", "v"]},
            "history or another rule needs both 'Check Fraud Indicators' and 'Verify Coverage'; state "
            "exactly_one_of if only one may be",
        ),
        (
            "Either check the fraud indicators or call the broker.",
            {},
            "no step of the catalogue is surely meant by 'call the broker'",
        ),
        ("Either verify the coverage or perform the cover check.", {}, "two of its options name the same step"),
        (
            "Above $5,000, either check the fraud indicators or verify the coverage.",
            {},
            "it holds for amounts above 5,000.00 USD; the largest of the client input is 1,200.00 USD",
        ),
        (
            "The payment must be issued within 2 days.",
            {"timed": ("r", "v")},
            "history tells no waiting and no working time of 'Issue Payment'",
        ),
        (
            "The payment must be issued within 2 days after the full moon.",
            {},
            "no step of the catalogue is surely meant by 'the full moon'",
        ),
    ],
)
def test_a_choice_or_a_deadline_that_cannot_be_held_says_why(text: str, more: dict[str, Any], why: str) -> None:
    found = settled(text, **more)
    assert found.constraints == Constraints()
    assert why in {d.effect for d in found.rules}
    assert found.not_applied == (0 if "5,000" in text else 1)


def test_what_a_clause_means_is_kept_for_the_same_tasks_and_for_known_vectors_alone() -> None:
    names, vectors = TaskNames(GRAPH, []), {"e": np.array([1.0, 0.0]), "p": np.array([0.0, 1.0])}
    clause = "estimate what it will take to mend"
    without = TaskMatcher(names, GRAPH, ["e", "p"], vectors, {})
    known = TaskMatcher(names, GRAPH, ["e", "p"], vectors, {clause: np.array([1.0, 0.0])})
    others = TaskMatcher(names, GRAPH, ["a", "p"], vectors, {clause: np.array([1.0, 0.0])})
    for _ in range(2):
        assert [matcher.match(clause) for matcher in (without, known, others)] == [None, "e", None]
        assert [matcher.nearest(clause)[0] for matcher in (known, others)] == [
            "Estimate Repair Cost",
            "Approve Settlement",
        ]


def test_a_deadline_demands_its_step_where_such_cases_did_it() -> None:
    late = settled("The payment must be issued within 5 working hours.").constraints
    assert (late.must_contain, len(late.deadlines)) == (("Issue Payment",), 1)
    never_done = settled("The satisfaction survey must be sent within 3 days.", ways=("rvfeap",)).constraints
    assert (never_done.must_contain, len(never_done.deadlines)) == ((), 1)
    unmet = settled("If the police report is missing, the payment must be issued within 3 days.").constraints
    assert (unmet.must_contain, unmet.deadlines) == ((), ())
