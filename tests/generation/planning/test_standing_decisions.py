"""What a decision does to a ranking: the chosen workflow is rank 1, a rejected one is not offered, and merged or
missing tasks are told.
"""

from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest

from opus_pipelines.generation.decisions import StandingDecisions, standing_decisions
from opus_pipelines.generation.planning.candidates import ranked_candidates, signature_of
from opus_pipelines.generation.planning.context import Candidate, RankingContext
from opus_pipelines.generation.search.problem import swaps
from opus_pipelines.intakes.decisions.record import Decision, Decisions, WorkflowContent, content_of, steps_of
from opus_pipelines.workflow.model import Actor
from tests.generation.planning.test_proposals import TASKS, situation

TITLES = {task.task_id: task.title for task in TASKS}
KNOWN = set(TITLES)


def content(candidate: Candidate) -> WorkflowContent:
    nodes = {n.id: n for n in candidate.workflow.tasks if not n.is_review}
    pairs = {(a, b) for a, b in candidate.workflow.edges if a in nodes and b in nodes}
    return WorkflowContent(candidate.tasks, frozenset(pairs), {t: nodes[t].actor for t in candidate.tasks})


def decision(
    kind: str,
    decided: WorkflowContent,
    number: int = 1,
    intention: str = "n",
    titles: dict[str, str] = TITLES,
    **more: Any,
) -> Decision:
    return Decision(
        "Acme",
        "Claims",
        kind,
        "k1",
        "one",
        intention,
        more.pop("workflow", "f0"),
        "r1",
        1,
        steps_of(decided, titles),  # type: ignore[arg-type]
        datetime(2026, 1, 31, tzinfo=UTC),
        number=number,
        **more,
    )


def close(**asked: Any) -> RankingContext:
    """The situation of `test_proposals`, where ranked workflows may lie one swap from each other: there are more of
    them.
    """
    made = situation(**asked)
    knobs = made.settings.generation.model_copy(update={"least_swaps": 1})
    return replace(made, settings=made.settings.model_copy(update={"generation": knobs}))


def with_decided(context: RankingContext, decided: StandingDecisions) -> RankingContext:
    return replace(context, evidence=replace(context.evidence, decided=decided))


def decided(
    made: list[Decision], known: set[str] = KNOWN, followers: dict[str, tuple[str, ...]] | None = None, **asked: Any
) -> RankingContext:
    found = standing_decisions(Decisions(tuple(made), followers or {}), "n", known)
    return with_decided(close(**asked), found)


def ranked(made: list[Decision], **asked: Any) -> list[Candidate]:
    return [c for _, c in ranked_candidates(decided(made, **asked))]


@pytest.fixture(scope="module")
def before() -> list[Candidate]:
    return [c for _, c in ranked_candidates(close())]


def test_rows_of_a_decision_give_the_workflow_back(before: Any) -> None:
    for candidate in before:
        again = content_of(steps_of(content(candidate), TITLES))
        assert again.signature == content(candidate).signature == signature_of(candidate)


def test_an_accepted_workflow_is_rank_1_and_the_better_one_stands_beside_it(before: Any) -> None:
    third = before[2]
    found = ranked([decision("accept", content(third), why="known to the team", decided_by="Ines")])
    assert found[0].id == third.id
    assert found[0].evaluation == third.evaluation
    assert [c.id for c in found].count(third.id) == 1
    told = found[0].decision
    assert (told.kind, told.why, told.decided_by, told.note) == ("accepted", "known to the team", "Ines", None)
    assert told.better_id == before[0].id
    assert told.better_usd == pytest.approx(before[0].worth - third.worth)
    assert all(c.decision is None for c in found[1:])


def test_an_accepted_best_workflow_has_no_better_one_beside_it(before: Any) -> None:
    found = ranked([decision("accept", content(before[0]))])
    assert [c.id for c in found] == [c.id for c in before]
    assert (found[0].decision.kind, found[0].decision.better_id) == ("accepted", None)


def test_a_rejected_workflow_is_not_offered_and_what_is_differs_from_it_enough(before: Any) -> None:
    found = ranked([decision("reject", content(before[0]))])
    assert before[0].id not in [c.id for c in found]
    assert all(swaps(c.steps, before[0].steps) >= 1 for c in found)
    apart = with_decided(
        situation(), standing_decisions(Decisions((decision("reject", content(before[0])),)), "n", KNOWN)
    )
    assert all(swaps(c.steps, before[0].steps) >= 2 for _, c in ranked_candidates(apart))
    assert found[0].id == before[1].id
    assert found[0].decision is None


def test_a_rejection_for_another_intake_of_the_contract_counts_and_an_own_acceptance_overrules_it(before: Any) -> None:
    elsewhere = decision("reject", content(before[0]), 1, intention="other")
    assert before[0].id not in [c.id for c in ranked([elsewhere])]
    assert ranked([elsewhere, decision("accept", content(before[0]), 2)])[0].id == before[0].id
    assert ranked([decision("accept", content(before[0]), 1), replace(elsewhere, number=2)])[0].id == before[0].id


def test_the_last_decision_wins(before: Any) -> None:
    one, two = content(before[1]), content(before[2])
    assert ranked([decision("accept", one, 1), decision("accept", two, 2)])[0].id == before[2].id
    assert ranked([decision("accept", two, 1), decision("accept", one, 2)])[0].id == before[1].id
    taken_back = ranked([decision("accept", one, 1), decision("reject", one, 2)])
    assert before[1].id not in [c.id for c in taken_back]
    assert ranked([decision("reject", one, 1), decision("accept", one, 2)])[0].id == before[1].id
    assert ranked([decision("accept", one, 1), decision("reject", two, 2)])[0].id == before[1].id


def test_an_edited_workflow_that_history_never_had_is_rank_1_by_the_same_figures(before: Any) -> None:
    own = WorkflowContent(
        ("ask", "call", "check", "pay"),
        frozenset({("ask", "call"), ("ask", "check"), ("call", "pay"), ("check", "pay")}),
        {
            "ask": Actor("code"),
            "call": Actor("human"),
            "check": Actor("human"),
            "pay": Actor("code"),
        },
    )
    made = decided([decision("edit", own)], sequences={**SEQUENCES_WITH_CALL})
    found = [c for _, c in ranked_candidates(made)]
    assert found[0].decision.kind == "edited"
    assert sorted(e for e in found[0].workflow.edges if "input" not in e and "output" not in e) == sorted(own.waits)
    nodes = {n.id: n for n in found[0].workflow.tasks}
    assert (nodes["ask"].actor_kind, nodes["ask"].cost_usd, nodes["check"].p) == ("code", 1.0, pytest.approx(0.95))
    assert found[0].violations == ()


SEQUENCES_WITH_CALL = {"q1": ("ask", "check", "pay"), "q2": ("ask", "call", "check", "pay")}


def test_an_accepted_workflow_that_leaves_out_what_is_needed_stays_rank_1_and_says_so() -> None:
    own = WorkflowContent(("ask", "pay"), frozenset({("ask", "pay")}), {"ask": Actor("human"), "pay": Actor("code")})
    first = ranked([decision("accept", own)])[0]
    assert first.tasks == ("ask", "pay")
    assert any("'Check Policy' is left out" in violation for violation in first.violations)
    assert first.decision.better_id is not None


def test_an_actor_whom_history_no_longer_knows_is_told(before: Any) -> None:
    own = content(before[0])
    changed = WorkflowContent(own.tasks, own.waits, {**own.actors, "check": Actor("model", "gpt-9")})
    note = ranked([decision("accept", changed)])[0].decision.note
    assert note is not None
    assert note.startswith("'Check Policy' is done by human: ")
    assert "model gpt-9" in note


def test_a_workflow_one_of_whose_tasks_is_gone_is_not_ranked_and_rank_1_says_so(before: Any) -> None:
    own = WorkflowContent(("ask", "old"), frozenset({("ask", "old")}), {"ask": Actor("human"), "old": Actor("human")})
    found = ranked([decision("accept", own, titles={**TITLES, "old": "Fax the form"})])
    assert [c.id for c in found] == [c.id for c in before]
    assert found[0].decision.kind is None
    assert "(f0, decision 1) can no longer be built" in (found[0].decision.note or "")
    assert "'Fax the form'" in (found[0].decision.note or "")


def test_merged_tasks_are_followed_through_the_ledger(before: Any) -> None:
    first = before[0]
    own = content(first)
    old = {"check": "check_before"}
    renamed = WorkflowContent(
        tuple(old.get(t, t) for t in own.tasks),
        frozenset((old.get(a, a), old.get(b, b)) for a, b in own.waits),
        {old.get(t, t): actor for t, actor in own.actors.items()},
    )
    made = [decision("accept", renamed, titles={**TITLES, "check_before": "Check"})]
    assert ranked(made, followers={"check_before": ("check",)})[0].decision.kind == "accepted"
    assert ranked(made, followers={"check_before": ("check",)})[0].id == first.id
    assert "several tasks (check, note)" in ranked(made, followers={"check_before": ("check", "note")})[0].decision.note
    chain = frozenset({("ask", "x"), ("x", "check"), ("check", "pay")})
    two = WorkflowContent(("ask", "x", "check", "pay"), chain, {**own.actors, "x": Actor("human")})
    merged = ranked([decision("accept", two, titles={**TITLES, "x": "X"})], followers={"x": ("check",)})[0]
    assert merged.tasks == ("ask", "check", "pay")


def test_where_everything_is_rejected_nothing_is_ranked() -> None:
    only = {"q1": ("check", "pay")}
    found = [c for _, c in ranked_candidates(close(sequences=only))]
    made = [decision("reject", content(c), n) for n, c in enumerate(found, start=1)]
    assert ranked(made, sequences=only) == []
