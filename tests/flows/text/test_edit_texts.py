"""What an utterance asks to change."""

import pytest

from opus_pipelines.flows.text.edit_texts import ADD, ALWAYS, GUARD, NEGATE, REMOVE, REPLACE, EditText, edits_in


@pytest.mark.parametrize(
    ("utterance", "kind", "old", "new"),
    [
        ("We no longer want to create the list", REMOVE, "create the list", None),
        ("The board should not be created anymore", REMOVE, "create The board", None),
        ("Do not use Zendesk, use ServiceNow", REPLACE, "Zendesk", "ServiceNow"),
        (
            "Rather than creating a lead in Marketo, create it in Salesforce",
            REPLACE,
            None,
            "create the lead in Salesforce",
        ),
        ('The priority should be "low"', REPLACE, "The priority", '"low"'),
        ("The mail should only be sent if the score is 5", GUARD, "send The mail", "if the score is 5"),
        ("Always send the message, regardless of the status", ALWAYS, "send the message", None),
        ("Do the opposite check", NEGATE, "", ""),
        ("Do this only if the score is 5", GUARD, "this", "if the score is 5"),
        ("Instead of Gmail use Outlook to send the mail", REPLACE, "Gmail", "send the mail with Outlook"),
        ("In addition, create a task", ADD, "", "create a task"),
        ("Delete the card for each of the boards", ADD, "", None),
    ],
)
def test_the_kind_and_the_parts_of_a_wish(utterance: str, kind: str, old: str | None, new: str | None) -> None:
    (wish,) = edits_in(utterance)
    assert wish.kind == kind
    assert old is None or wish.old == old
    assert new is None or wish.new == new


def test_places() -> None:
    (between,) = edits_in("Create a task between getting the lead and sending the mail")
    assert (between.where, between.anchor) == ("after", "getting the lead")
    assert edits_in("Get the leads first") == [EditText(ADD, "Get the leads", where="begin")]
    assert edits_in("Before anything else, get the leads") == [EditText(ADD, "get the leads", where="begin")]


def test_two_replacements_in_one_sentence() -> None:
    found = edits_in("Replace the retrieve with a create and the message with a mail")
    assert [(wish.old, wish.new) for wish in found] == [("the retrieve", "a create"), ("the message", "a mail")]
