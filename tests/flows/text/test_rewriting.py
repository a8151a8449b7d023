"""Sentences as imperatives in the order of their steps."""

import pytest

from opus_pipelines.flows.text.clauses import CONDITION, ELSE, LOOP, STEP, clauses_of


@pytest.mark.parametrize(
    ("utterance", "expected"),
    [
        ("Send a mail after creating the issue", [(STEP, "create the issue"), (STEP, "Send a mail")]),
        ("Before sending a mail, get the contacts", [(STEP, "get the contacts"), (STEP, "send a mail")]),
        ("Create an issue. Once it is created, send a mail", [(STEP, "Create an issue"), (STEP, "send a mail")]),
        ("The file should be stored in a folder", [(STEP, "store The file in a folder")]),
        ("Finish by updating the topic", [(STEP, "update the topic")]),
        (
            "Onboard a person by adding them and mailing them",
            [(STEP, "add them"), (STEP, "mail them")],
        ),
        ("Send each member a mail", [(LOOP, "member"), (STEP, "Send a mail")]),
        ("Get users and send each of them a mail", [(STEP, "Get users"), (LOOP, "them"), (STEP, "send a mail")]),
        ("Get all files and delete each file", [(STEP, "Get all files"), (LOOP, "file"), (STEP, "delete the file")]),
        ("Close the issue. First get the issue", [(STEP, "get the issue"), (STEP, "Close the issue")]),
        (
            "Check if its amount is above 5. If so, create a task, if not, delete the lead",
            [
                (CONDITION, "its amount is above 5"),
                (STEP, "create a task"),
                (ELSE, ""),
                (STEP, "delete the lead"),
            ],
        ),
        ("If the lead is created, send a mail", [(CONDITION, "the lead is created"), (STEP, "send a mail")]),
        ("If it is old, send a mail", [(CONDITION, "it is old"), (STEP, "send a mail")]),
    ],
)
def test_a_sentence_becomes_imperatives_in_the_order_of_its_steps(
    utterance: str, expected: list[tuple[str, str]]
) -> None:
    assert [(clause.kind, clause.text) for clause in clauses_of(utterance)] == expected


def test_a_name_with_and_is_not_split() -> None:
    text = "Remove a user from Finance and Operations"
    assert len(clauses_of(text, frozenset(["financeandoperations"]))) == 1
    assert len(clauses_of(text)) == 2


def test_two_applications_are_two_steps() -> None:
    names = frozenset(["slack", "teams"])
    found = clauses_of("Post a notice in Slack and on Teams", names)
    assert [clause.text for clause in found] == ["Post a notice in Slack", "Post a notice on Teams"]
