"""Rules that name their steps, held against a request."""

import pytest

from opus_pipelines.intakes.elements import Element
from opus_pipelines.lwm.retrieval.named_rules import NamedTasks, RequestText, named_rules, requested_steps_of

TITLES = {
    "o": "Open package",
    "f": "Finish package",
    "b": "Bill package",
    "d": "Delete package",
    "r": "Reverse invoice",
    "c": "Chase missing documents",
    "a": "Approval by budget owner",
    "k": "Check by administration",
    "s": "Final approval by supervisor",
    "e": "Final approval by director",
    "w": "Wait",
    "x": "Send satisfaction survey",
    "t": "Take in charge ticket",
    "v": "Resolve ticket",
}


def element(text: str, role: str = "contract") -> Element:
    return Element("e1", role, "document", "manual.md", "text/markdown", text, 1, "", None)


def found(text: str, request: str) -> list[tuple[str, str, bool]]:
    rules = named_rules([element(text)], TITLES, request)
    return [(rule.kind, "".join(rule.tasks), rule.is_usual_only) for rule in rules]


MISSING = "If documents are missing, they are chased (Chase missing documents) before the assessment is concluded."


@pytest.mark.parametrize(
    ("text", "request_text", "expected"),
    [
        (MISSING, "Two documents are missing, as the branch says.", [("must_contain", "c", False)]),
        (MISSING, "Nothing is missing.", [("must_not_contain", "c", False)]),
        (MISSING, "The file is complete.", [("must_not_contain", "c", False)]),
        (MISSING, "A loan for a boat.", [("must_not_contain", "c", True)]),
        (
            "From EUR 400 on, the approval by the budget owner is obtained.",
            "EUR 780.00",
            [("must_contain", "a", False)],
        ),
        (
            "From EUR 400 on, the approval by the budget owner is obtained.",
            "EUR 95",
            [("must_not_contain", "a", False)],
        ),
        (
            "From EUR 400 on, the approval by the budget owner is obtained.",
            "EUR 95 for the society, EUR 318 for the train",  # both are below
            [("must_not_contain", "a", False)],
        ),
        (
            "From EUR 400 on, the approval by the budget owner is obtained.",
            "EUR 95 and EUR 900",
            [("must_not_contain", "a", True)],
        ),
        (
            "The customer is told. The ticket is set to Wait where the customer tests.",
            "A bug.",
            [("must_not_contain", "w", True)],
        ),
        ("When the treatment is over, the package is finished (Finish package).", "A knee.", []),  # a moment
        (
            "Where the driver does not pay, the invoice is reversed (Reverse invoice).",
            "A fine.",
            [],
        ),  # it may well hold
        ("Finish package comes before Bill package.", "A knee.", [("before", "fb", False)]),
        ("A ticket is never resolved before an agent has taken it in charge.", "A bug.", [("before", "tv", False)]),
    ],
)
def test_a_condition_is_stated_denied_or_neither(
    text: str, request_text: str, expected: list[tuple[str, str, bool]]
) -> None:
    assert found(text, request_text) == expected


def test_a_paragraph_goes_on_under_the_condition_of_its_sentence() -> None:
    text = (
        "A package that was opened in error (patient did not come, opened twice) is deleted (Delete package). "
        "It is never finished or billed."
    )
    assert found(text, "Package opened on Tuesday, but she did not come.") == [
        ("must_contain", "d", False),
        ("must_not_contain", "f", False),
        ("must_not_contain", "b", False),
    ]
    assert found(text, "The knee visits are over.") == [("must_not_contain", "d", True)]


def test_one_step_takes_the_place_of_another() -> None:
    text = (
        "4. The supervisor gives the final approval. Requests above EUR 2,000 are passed on and then need the final "
        "approval by the director instead."
    )
    assert found(text, "EUR 2,640.00") == [("must_contain", "e", False), ("must_not_contain", "s", False)]
    assert found(text, "EUR 640.00") == [("must_not_contain", "e", False)]


def test_a_new_step_has_its_place_by_words() -> None:
    text = (
        "For customers with a premium contract, a survey is sent (Send satisfaction survey) after the ticket was "
        "resolved."
    )
    assert found(text, "We have a premium contract.") == [("must_contain", "x", False), ("before", "vx", False)]
    assert found(text, "We have a standard contract.") == [("must_not_contain", "x", True)]


def test_a_step_that_is_asked_for_in_any_case_is_left_out_by_no_unstated_condition() -> None:
    always = f"Missing documents are chased in any case (Chase missing documents).\n\n{MISSING}"
    assert found(always, "A loan for a boat.") == []
    assert found(always, "Nothing is missing.") == [("must_not_contain", "c", False)]


def test_a_request_lists_its_steps() -> None:
    listed = requested_steps_of([element("1. Open package\n2. Bill package\n3. Finish package\n", "input")], TITLES)
    assert [(rule.kind, "".join(rule.tasks)) for rule in listed] == [
        ("must_contain", "o"),
        ("must_contain", "b"),
        ("must_contain", "f"),
        ("before", "ob"),
        ("before", "bf"),
    ]
    assert (
        requested_steps_of(
            [element("Do not open. The package was billed in May. No Reverse invoice.", "input")], TITLES
        )
        == []
    )


def test_a_name_of_one_word_must_be_written_as_a_name() -> None:
    tasks = NamedTasks(TITLES)
    assert tasks.named("The ticket is set to Wait.") == ["w"]
    assert tasks.named("Wait for the customer, who may wait, too.") == []
    assert tasks.meant("the ticket was resolved") == "v"
    assert tasks.meant("final approval") is None


def test_what_a_request_states_is_told_by_its_sentences() -> None:
    rarity = {"comparison": 2.0, "site": 2.0, "applic": 1.0, "begin": 2.0}
    asked = RequestText("Channel: comparison site. Please plan the work for this application.")
    assert asked.holds("applications that were begun on a comparison site", rarity) is True
    assert RequestText("By telephone.").holds("applications that were begun on a comparison site", rarity) is None
