"""The conditions under which a procedure asks for a step."""

import pytest

from opus_pipelines.intakes.catalogues.facts import without_joint
from opus_pipelines.intakes.catalogues.statements import statements_of


@pytest.mark.parametrize(
    ("sentence", "expected"),
    [
        ("If the user had a licence, transfer it.", [("transfer it", "If the user had a licence")]),
        ("The locks are only changed where a key is lost.", [("The locks are only changed", "where a key is lost")]),
        ("De-icing, if the temperature is below 3 °C", [("De-icing", "if the temperature is below 3 °C")]),
        ("Filter the solution, unless it is clear", [("Filter the solution", "unless it is clear")]),
        (
            "Should the room not be ready, the luggage is stored.",
            [("the luggage is stored", "Should the room not be ready")],
        ),
        ("When a key is lost, change the locks.", [("change the locks", "When a key is lost")]),
        ("Only for foreign markets: adding subtitles", [("adding subtitles", "Only for foreign markets")]),
        ("Claims above CHF 5,000 need a surveyor.", [("Claims above CHF 5,000 need a surveyor", "above CHF 5,000")]),
        ("Fridge too warm? Call the technician!", [("Call the technician", "Fridge too warm?")]),
        ("A visit takes place in case of doubt.", [("A visit takes place in case of doubt", "in case of doubt")]),
        ("Add salt if necessary.", [("Add salt if necessary", "if necessary")]),
        ("Who does what? The clerk opens the file.", [("The clerk opens the file", "")]),
        ("Guests may ask for a taxi.", [("Guests may ask for a taxi", "Guests may ask for a taxi")]),
        ("Rude letters may be ignored.", [("Rude letters may be ignored", "Rude letters may be ignored")]),
        (
            "Ask the client, except where the contract waives it.",
            [("Ask the client", "except where the contract waives it")],
        ),
        (
            "Pump sent (rescue boats) / sail sent (harbour boats)",
            [("Pump sent", "only for rescue boats"), ("sail sent", "only for harbour boats")],
        ),
        ("Pump sent (Danish boats: by rail)", [("Pump sent", ""), ("Danish boats", ""), ("by rail", "")]),
        ("Pump sent (remove covers)", [("Pump sent", ""), ("remove covers", "")]),
        ("Pump sent (two copies)", [("Pump sent", ""), ("two copies", "")]),
        (
            "For those who have left, the fee is claimed.",
            [("the fee is claimed", "For those who have left")],
        ),
        ("For this purpose, open the file.", [("For this purpose", ""), ("open the file", "")]),
        (
            "For old lifts a plan is written, and it is filed.",
            [("For old lifts a plan is written", ""), ("For old lifts a plan is filed", "")],
        ),
        # these say when something is done, or what is to be found out
        ("When the car arrives, open the gate.", [("open the gate", "")]),
        ("Finally you may close the ticket.", [("Finally you may close the ticket", "")]),
        ("Check if the form is complete.", [("Check if the form is complete", "")]),
        (
            "The clerk asks the client where the goods are stored.",
            [("The clerk asks the client where the goods are stored", "")],
        ),
    ],
)
def test_a_clause_has_the_condition_that_governs_it(sentence: str, expected: list[tuple[str, str]]) -> None:
    assert [(s.full, s.only_if) for s in statements_of(sentence) if s.asks] == expected


def test_a_condition_governs_the_clauses_behind_it_and_not_those_before() -> None:
    found = statements_of("Open the file, and if a key is lost, change the locks and tell the owner.")
    assert [(s.text, s.only_if) for s in found if s.asks] == [
        ("Open the file", ""),
        ("change the locks", "if a key is lost"),
        ("tell the owner", "if a key is lost"),
    ]


def test_the_words_that_join_a_condition_are_taken_off() -> None:
    assert without_joint("only where a key is lost") == "a key is lost"
    assert without_joint("Should the room not be ready") == "room not be ready"
    assert without_joint("above CHF 5,000") == "above CHF 5,000"
