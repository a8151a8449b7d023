"""The clauses of procedures as people write them: which may ask for a step, and which say when, or forbid, or else."""

import pytest

from opus_pipelines.catalogues.statements import sentences_of, statements_of


@pytest.mark.parametrize(
    ("sentence", "asks", "others"),
    [
        ("Write the invoice and collect the payment.", ["Write the invoice", "collect the payment"], []),
        ("The letter is written and stamped.", ["The letter is written", "The letter stamped"], []),
        (
            "A letter is issued, a visit is scheduled, and the bill is written.",
            ["A letter is issued", "a visit is scheduled", "the bill is written"],
            [],
        ),
        ("When the owner arrives, we register him.", ["we register him"], ["When the owner arrives"]),
        (
            "Once the result is back we phone the owner and file it.",
            ["we phone the owner", "file it"],
            ["Once the result is back"],
        ),
        (
            "If the form is complete and the fee is paid, issue the card.",
            ["issue the card"],
            ["If the form is complete", "the fee is paid"],
        ),
        ("If the form is not complete, call the client.", ["call the client"], ["If the form is not complete"]),
        (
            "Notify the office at once and do not hand it out.",
            ["Notify the office at once"],
            ["do not hand it out"],
        ),
        (
            "Do not copy the letter and send it, but file it.",
            ["file it"],
            ["Do not copy the letter", "send it"],
        ),
        (
            "If it is free, a contract is signed; otherwise the loan is refused.",
            ["a contract is signed"],
            ["If it is free", "otherwise the loan is refused"],
        ),
        ("Please don't forget the test ride!", ["Please don't forget the test ride"], []),
        ("Otherwise, prescribe a drug.", [], ["otherwise prescribe a drug"]),
        ("After this the doctor examines the animal.", ["After this the doctor examines the animal"], []),
    ],
)
def test_a_clause_asks_or_says_when_or_forbids_or_holds_otherwise(
    sentence: str, asks: list[str], others: list[str]
) -> None:
    found = statements_of(sentence)
    assert [s.full for s in found if s.asks] == asks
    assert [s.text for s in found if not s.asks] == others


@pytest.mark.parametrize(
    ("text", "sentences"),
    [
        ("# Payment\n\n1. Weigh it.\n2. Pay the bill.", ["Weigh it.", "Pay the bill."]),  # items may be short
        ("# Register the owner", ["# Register the owner"]),  # a heading alone is all that there is
        ("[ ] Remove staples\n- [x] Scan all pages\n☐ Close box", ["Remove staples", "Scan all pages", "Close box"]),
        ("Check list of the day\n\nScan the pages.\nReturn the box.", ["Scan the pages.", "Return the box."]),
        ("Scan the pages\n\nReturn the box", ["Scan the pages", "Return the box"]),
        (
            "A loss adjuster visits the home: only readings of moisture show how far it went, and\nestimates differ.",
            ["A loss adjuster visits the home: only readings of moisture show how far it went, and estimates differ."],
        ),
        ("scan the pages\nreturn the box", ["scan the pages", "return the box"]),  # short lines are a list
        ("None. The bill is paid.", ["The bill is paid."]),
        ("How we work:\nCount the words.", ["Count the words."]),
        ("| Step | Who |\n| --- | --- |\n| Insert ticket | desk |\n| Close it | desk |", ["Insert ticket", "Close it"]),
        ("No | Step\n1 | Insert ticket\n2 | Call back\n\nAll is said.", ["Insert ticket", "Call back", "All is said."]),
        ("It is either on | or off for now.", ["It is either on or off for now."]),
    ],
)  # fmt: skip
def test_headings_and_frames_are_no_sentences_and_a_row_says_what_is_done(text: str, sentences: list[str]) -> None:
    assert sentences_of(text) == sentences
