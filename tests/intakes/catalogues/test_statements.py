"""The clauses of procedures as people write them: which may ask for a step, and which say when, or forbid, or else."""

import pytest

from opus_pipelines.intakes.catalogues.statements import prose_sentences, statements_of


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
        (
            "After it the fee must to be calculated, then filed.",
            ["After it the fee must to be calculated", "After it the fee filed"],
            [],
        ),
        ("Labelling and weighing the sample", ["Labelling the sample", "weighing the sample"], []),
        ("Open, read and file the letter.", ["Open the letter", "read the letter", "file the letter"], []),
        (
            "The sample must not be discarded but stored in the freezer.",
            ["The sample stored in the freezer"],
            ["The sample must not be discarded"],
        ),
        ("Bags unloaded / bags loaded", ["Bags unloaded", "bags loaded"], []),
        ("Aircraft refuelled - no passengers on board!", ["Aircraft refuelled"], ["no passengers on board"]),
        ("At 10:50 water the plants.", ["At 10:50 water the plants"], []),
        ("The new box gets mounted and sealed.", ["The new box gets mounted", "The new box sealed"], []),
        (
            "A box is weighed, labelled, and handed to us.",
            ["A box is weighed", "A box labelled", "A box handed to us"],
            [],
        ),
        ("Mount the box, sealed.", ["Mount the box", "sealed"], []),
        ("Mailbox: forward to the manager", ["Mailbox forward to the manager"], []),
        ("Chocks positioned (ramp agent)", ["Chocks positioned"], ["ramp agent"]),
        ("A fee of CHF 5,000 is charged.", ["A fee of CHF 5,000 is charged"], []),
        (
            "An excess applies to shops; it is to be checked.",
            ["An excess is to be checked"],
            ["An excess applies to shops"],
        ),
        ("The bed is not made until the guest has left.", ["The bed is not made"], ["until the guest has left"]),
        ("Never take the fee before the bill is sent.", [], ["Never take the fee", "before the bill is sent"]),
        ("In no case may the sample be thrown away.", [], ["In no case may the sample be thrown away"]),
        ("Opening the valve by hand is strictly forbidden.", [], ["Opening the valve by hand is strictly forbidden"]),
        ("Neither the key nor the card is handed out.", [], ["Neither the key nor the card is handed out"]),
        (
            "The copy is sent in a week, failing which the client is told.",
            ["The copy is sent in a week"],
            ["failing which the client is told"],
        ),
        (
            "A second audit was discussed and dropped, and the first one is booked.",
            ["the first one is booked"],
            ["A second audit was discussed", "dropped"],
        ),
        ("Mr Li asked whether a visit is needed.", [], ["Mr Li asked whether a visit is needed"]),
        ("The findings are discussed with the client.", ["The findings are discussed with the client"], []),
        ("Parcels that are not labelled are sent back.", ["Parcels that are not labelled are sent back"], []),
        ("Parcels not collected in a week are sent back.", ["Parcels not collected in a week are sent back"], []),
        ("The parcels are not labelled.", [], ["The parcels are not labelled"]),
        ("Please no more stamping by hand.", [], ["Please no more stamping by hand"]),
        ("Weigh the box + print the label & tell Mr Li.", ["Weigh the box", "print the label", "tell Mr Li"], []),
        ("Nor is the box opened.", [], ["Nor is the box opened"]),
        ("NOR tendered", ["NOR tendered"], []),
        ("Seal checked (see annex B)", ["Seal checked"], ["see annex B"]),
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
        ("Vessel is alongside; NOR tendered. Ok.", ["Vessel is alongside;", "NOR tendered."]),
        ("None. The bill is paid.", ["The bill is paid."]),
        ("SOP 12\nVersion 3\n\n1. Talking\n1.1 Tell the press\n1.2 Call him", ["Tell the press", "Call him"]),
        ("h2. Leaving\n\n* Close the account", ["Close the account"]),
        ("Step 1 - Import the film\nStep 2 - Cut it", ["Import the film", "Cut it"]),
        ("An excess applies here; it is checked.", ["An excess applies here; it is checked."]),
        ("How we work:\nCount the words.", ["Count the words."]),
        ("| Step | Who |\n| --- | --- |\n| Insert ticket | desk |\n| Close it | desk |", ["Insert ticket", "Close it"]),
        ("No | Step\n1 | Insert ticket\n2 | Call back\n\nAll is said.", ["Insert ticket", "Call back", "All is said."]),
        ("It is either on | or off for now.", ["It is either on or off for now."]),
    ],
)  # fmt: skip
def test_headings_and_frames_are_no_sentences_and_a_row_says_what_is_done(text: str, sentences: list[str]) -> None:
    assert prose_sentences(text) == sentences


@pytest.mark.parametrize(
    ("sentence", "in_time"),
    [
        ("The drug is checked before the letter is written.", ["The drug is checked", "before the letter is written"]),
        ("Before paying the claim, check the cover.", ["check the cover", "Before paying the claim"]),
        ("After the letter is signed, send it.", ["After the letter is signed", "send it"]),
        ("Close the file only after the bill has been paid.", ["after the bill has been paid", "Close the file only"]),
    ],
)
def test_what_a_step_waits_for_stands_before_it_and_may_name_a_step(sentence: str, in_time: list[str]) -> None:
    found = statements_of(sentence)
    assert [s.text for s in found] == in_time
    assert [s.is_awaited and s.may_name and s.is_named for s in found if not s.asks] == [True]


def test_what_happens_by_itself_before_a_step_is_no_step() -> None:
    assert [s.is_awaited for s in statements_of("Before the patient leaves, remove it.")] == [False, False]
    assert [s.is_named for s in statements_of("Call him as soon as the time is known.")] == [False, False]
    assert [s.may_name for s in statements_of("Never take the fee before the bill is sent.")] == [False, False]
