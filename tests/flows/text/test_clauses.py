"""Clauses of utterances: steps, shared verbs, loops, conditions and else."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from opus_pipelines.flows.text.clauses import (
    CONDITION,
    ELSE,
    LOOP,
    MAX_UTTERANCE,
    STEP,
    UtteranceError,
    clauses_of,
)


def read(utterance: str) -> list[tuple[str, str]]:
    return [(clause.kind, clause.text) for clause in clauses_of(utterance)]


@pytest.mark.parametrize(
    ("utterance", "expected"),
    [
        (
            "Open an account and then archive the old file.",
            [(STEP, "Open an account"), (STEP, "archive the old file")],
        ),
        ("Create a ticket and a task", [(STEP, "Create a ticket"), (STEP, "Create a task")]),
        ("Get and delete the folder", [(STEP, "Get the folder"), (STEP, "delete the folder")]),
        (
            "For every lead, if its stage is won, send a mail, otherwise delete the lead",
            [
                (LOOP, "lead"),
                (CONDITION, "its stage is won"),
                (STEP, "send a mail"),
                (ELSE, ""),
                (STEP, "delete the lead"),
            ],
        ),
        (
            "Get all tickets and for each ticket create an issue",
            [(STEP, "Get all tickets"), (LOOP, "ticket"), (STEP, "create an issue")],
        ),
        (
            "Create an issue for each ticket",
            [(STEP, "Create an issue for ticket"), (LOOP, "ticket")],
        ),
        (
            "Send a mail if the ticket is urgent and create a task",
            [(STEP, "Send a mail"), (CONDITION, "the ticket is urgent"), (STEP, "create a task")],
        ),
        ("In Slack, send a message", [(STEP, "send a message In Slack")]),
        ("um, so basically create a card", [(STEP, "create a card")]),
        ("Every Monday at 9 create a card", [("start", "Every Monday at 9"), (STEP, "create a card")]),
        ("New hire: create a card", [("start", "New hire"), (STEP, "create a card")]),
        (
            "Above 50k also create a card",
            [(CONDITION, "its amount is Above 50k"), (STEP, "create a card")],
        ),
        ("Please create a board", [(STEP, "create a board")]),
        (
            "Find all old cards and for each one archive the card",
            [(STEP, "Find all old cards"), (LOOP, ""), (STEP, "archive the card")],
        ),
        (
            "Send a mail. Should the mail bounce twice, create a task",
            [(STEP, "Send a mail"), (CONDITION, "the mail bounce twice"), (STEP, "create a task")],
        ),
        (
            "Create a task. If it fails wait for a day",
            [(STEP, "Create a task"), (CONDITION, "it fails"), (STEP, "wait for a day")],
        ),
        (
            "Get the cards, then, one by one, delete the card",
            [(STEP, "Get the cards"), (LOOP, "them"), (STEP, "delete the card")],
        ),
    ],
)
def test_an_utterance_is_split_into_its_clauses(utterance: str, expected: list[tuple[str, str]]) -> None:
    assert read(utterance) == expected


def test_a_condition_behind_its_step_is_marked() -> None:
    step, condition = clauses_of("Create an issue if the board is empty")
    assert (step.kind, condition.kind, condition.postfix) == (STEP, CONDITION, True)


def test_what_is_tried_and_what_is_done_together_is_marked() -> None:
    close, mail, ping = clauses_of("Try to close the ticket, then in parallel mail the owner and ping the team")
    assert (close.text, "try" in close.adverbs, close.together) == ("close the ticket", True, False)
    assert [(clause.text, clause.together) for clause in (mail, ping)] == [
        ("mail the owner", True),
        ("ping the team", True),
    ]


@pytest.mark.parametrize("utterance", ["", "  \n ", "...", "123 456", "a" * (MAX_UTTERANCE + 1), "x " * 50_000])
def test_an_utterance_without_words_or_too_long_is_refused(utterance: str) -> None:
    with pytest.raises(UtteranceError):
        clauses_of(utterance)


@given(st.text(alphabet=st.sampled_from(list("if elsdo,.andthr\"'\n ")), min_size=1, max_size=120))
def test_any_text_gives_clauses_or_a_clear_error(text: str) -> None:
    try:
        clauses = clauses_of(text)
    except UtteranceError:
        return
    assert {clause.kind for clause in clauses} <= {STEP, LOOP, CONDITION, ELSE, "while"}
