"""How people talk, as plain sentences: each wording, and what must stay as it is."""

import pytest

from opus_pipelines.flows.text.clauses import clauses_of
from opus_pipelines.flows.text.edit_texts import ADD, REMOVE, REPLACE, edits_in
from opus_pipelines.flows.text.rewriting import rephrased


@pytest.mark.parametrize(
    ("said", "plain"),
    [
        ("When hiring people, I need an account in X", "create an account in X"),
        ("We want a board with an item and a label on it", "create a board and an item and a label"),
        ("spin up a Trello.com board with a card in it", "create a Trello.com board and a card"),
        ("get rid of the old file", "delete the old file"),
        ("let the channel know with a message", "send a message to the channel"),
        ("Let the owner know", "notify the owner"),
        ("drop it into the bucket", "put it into the bucket"),
        ('If the state is "on", do nothing; otherwise send a mail', 'unless the state is "on", send a mail'),
        ("Is the status solved? Then close it", "if the status is solved, close it"),
        ("Status new? Then open an issue", "if the Status is new, open an issue"),
        ("Those whose kind is a get a comment", "if its kind is a, create a comment"),
        ("the others receive a label", "otherwise create a label"),
        ("for the rest of them, add a card", "otherwise add a card"),
    ],
)
def test_a_wording_becomes_a_plain_sentence(said: str, plain: str) -> None:
    assert rephrased(said) == plain


@pytest.mark.parametrize(
    "said",
    [
        "I want the file to be stored in Box",
        "We need a list of the leads",
        "When the status changes, send a mail",
        'Post "let us know" in slack',
        "Is the file there? Create an issue",
        "If the total is 0, send a mail, otherwise do nothing",
    ],
)
def test_another_sentence_stays(said: str) -> None:
    assert rephrased(said) == said


def test_what_somebody_has_done_before_is_a_step_before() -> None:
    found = [clause.text for clause in clauses_of("Create a supplier after the legal team has signed the contract")]
    assert found == ["have the legal team sign the contract", "Create a supplier"]
    assert [c.text for c in clauses_of("List the leads. Otherwise an issue is created")][-1] == "create an issue"


@pytest.mark.parametrize(
    ("said", "kind", "new", "old"),
    [
        ("We don't use Dropbox any more, put it on SharePoint instead", REPLACE, "SharePoint", "Dropbox"),
        ("We no longer need the mail, send a slack message", REPLACE, "send a slack message", "the mail"),
        ("Urgent is too broad, make it blocker", REPLACE, "blocker", "Urgent"),
        (
            "The slack notice isn't needed any more",
            REMOVE,
            "The slack notice isn't needed any more",
            "The slack notice",
        ),
        (
            "Drop the check on the amount, a ticket is always made",
            REMOVE,
            "Drop the check on the amount, a ticket is always made",
            "the check on the amount",
        ),
        ("and add a card as well", ADD, "add a card", ""),
    ],
)
def test_wordings_of_edits(said: str, kind: str, new: str, old: str) -> None:
    (wish,) = edits_in(said)
    assert (wish.kind, wish.new, wish.old) == (kind, new, old)


def test_a_place_in_ing_needs_no_comma() -> None:
    (wish,) = edits_in("After going through the tickets send a mail with outlook")
    assert (wish.where, wish.anchor, wish.new) == ("after", "going through the tickets", "send a mail with outlook")


@pytest.mark.long
def test_a_long_text_of_the_beginnings_of_wordings_is_read_in_time() -> None:
    for part in ("if a ", "let a ", "create a b with a c ", "those whose a is ", 'if "a', "I want a "):
        assert rephrased(part * (8_000 // len(part)))
