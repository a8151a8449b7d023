"""Facts in procedures, which ask for no step, and what looks like one and is an instruction."""

import pytest

from opus_pipelines.intakes.catalogues.facts import is_fact, is_label, is_role, subject_of


@pytest.mark.parametrize(
    "clause",
    [
        "One event is one claim",
        "A deposit is three net rents",
        "It earns interest at the rate of the bank",
        "Normal wear is no damage",
        "Tenants have a right to see the receipts",
        "The policy lists what is covered",
        "The free time in the terminal is seven days",
        "Demurrage costs 90 EUR per day",
        "Explaining takes about ten minutes",
        "Most patients are discharged before noon",
        "Old boxes are from the seventies mostly",
        "Every ticket has one owner",
        "An excess of CHF 200 applies to shops",
        "Housing benefit is a subsidy for people with a low income",
        "The applicant then has four weeks",
        "The port of Valencia is a EU port",
    ],
)
def test_a_verb_of_state_makes_a_fact(clause: str) -> None:
    assert is_fact(clause)


@pytest.mark.parametrize(
    "clause",
    [
        "Register the claim",
        "The cover is verified",
        "The invoice is to be checked",
        "A pilot has to be ordered",
        "Every student needs to sign the list",
        "Closing the claim is the last step",
        "The next step is the approval by the head",
        "First thing is to check documents",
        "The nurse is responsible for checking the cannula",
        "The laboratory is responsible for the analysis",
        "The clerk is in charge of checking the form",
        "The technician is switching off the supply",
        "Approval of the head is necessary",
        "Check the goods are complete",
        "Check whether the form is complete",
        "Grading takes place within six weeks",
        "Have the metadata approved by the archivist",
        "We have the contract signed",
        "The inspection of the flat is on the day of handover",
        "The nurse removes the cannula",
        "Is the form complete",
        "The nurse applies a bandage",
        "Closing tickets is a duty of the agent",
        "Then is the inspection of the flat",
        "The clerk lists the defects",
        "The nurse takes two samples",
        "The nurse takes 10 ml of blood",
        "The teacher has a talk with the parents",
        "It is the task of the clerk to check the form",
        "Both signatures are essential",
        "The customer is sent a letter",
        "The folders are bound",
        "Delivery is at the back door",
        "The delivery is on Monday",
    ],
)
def test_what_may_be_an_instruction_is_no_fact(clause: str) -> None:
    assert not is_fact(clause)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Owner: IT operations.", True),
        ("Last reviewed: May 2024.", True),
        ("Version 3, valid from 01.02.2025", True),
        ("Best regards", True),
        ("Who does what?", True),
        ("Date the letter.", False),
        ("Thank the customer for the order of goods.", False),
        ("Is the form complete?", False),
    ],
)
def test_labels_greetings_and_questions_are_about_the_document(text: str, expected: bool) -> None:
    assert is_label(text) is expected


def test_a_note_in_brackets_may_say_who_does_it() -> None:
    assert [is_role(text) for text in ("ramp agent", "sign it", "the manager of the other long team")] == [
        True,
        False,
        False,
    ]


def test_the_subject_of_a_fact_is_what_stands_before_its_verb() -> None:
    assert subject_of("An excess of CHF 200 applies to shops") == "An excess of CHF 200"
    assert subject_of("Register the claim") == ""
