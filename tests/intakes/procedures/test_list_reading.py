"""A list of steps of an industry that history does not know: which steps are asked for, by what others did."""

from collections.abc import Sequence

import numpy as np
import pytest

from opus_pipelines.intakes.procedures.list_reading import read_listed_steps
from opus_pipelines.intakes.procedures.listed_steps import FEATURES, ListedSteps, lists_steps
from opus_pipelines.intakes.procedures.models import (
    FollowedPart,
    SentenceTaskModel,
    StepKnowledge,
    StepScorer,
    TaskCatalogue,
    units_of,
)
from opus_pipelines.intakes.procedures.names import words
from opus_pipelines.intakes.procedures.reading import parse_procedure
from opus_pipelines.intakes.procedures.relevant_parts import RequestText
from opus_pipelines.language.embedding.texts import Part, object_of, parts, plain, verb_of

LOGGED_IN = "The person with this name has logged in before."
BANK = f"""\
* close_account:
- {LOGGED_IN}
- The balance of the account must be zero.

* raise_limit:
- {LOGGED_IN}
- The score of the customer must be high enough.

* get_account_balance:
- {LOGGED_IN}

* get_customer_score

* log_in
"""
CLINIC = f"""\
* move_appointment:
- The slot of the doctor must be free.
- {LOGGED_IN}

* refill_prescription:
- The prescription of the patient must be recent.

* check_doctor_slot

* get_patient_prescription

* log_in
"""
ON_SHELF = "The shelf of the title must not be empty."
LIBRARY = f"""\
* lend_book:
- {LOGGED_IN}
- {ON_SHELF}

* return_book:
- The loan of the reader must be open.

* check_title_shelf

* get_reader_loan

* log_in
"""
DID = {
    "bank": (
        BANK,
        {
            "close account": ["log in", "get account balance", "close account"],
            "raise limit": ["log in", "get customer score", "raise limit"],
            "get account balance": ["log in", "get account balance"],
        },
    ),
    "clinic": (
        CLINIC,
        {
            "move appointment": ["check doctor slot", "log in", "move appointment"],
            "refill prescription": ["get patient prescription", "refill prescription"],
        },
    ),
}
SIZE = 512


def vector(text: str) -> np.ndarray:
    """A bag of words, each in the place that its letters give; its length is 1."""
    found = np.zeros(SIZE)
    for word in words(text):
        found[sum(ord(letter) * 31**n for n, letter in enumerate(word)) % SIZE] += 1
    return found / max(np.linalg.norm(found), 1e-9)


def encode(texts: Sequence[str]) -> np.ndarray:
    return np.stack([vector(text) for text in texts])


class Vectors(dict[str, np.ndarray]):
    def __missing__(self, text: str) -> np.ndarray:
        return vector(text)


def followed(industry: str) -> list[FollowedPart]:
    text, did = DID[industry]
    steps = ListedSteps(parts(text), encode)
    return [
        FollowedPart(
            steps,
            head,
            tuple(s.text for s in steps.parts[head].sentences),
            np.array([name in done for name in steps.names], dtype=float),
            np.full(len(steps.names), 2.8),
        )
        for head, done in did.items()
    ]


@pytest.fixture(scope="module")
def knowledge() -> StepKnowledge:
    cases = []
    for text, did in DID.values():
        listed = {part.name: part for part in parts(text)}
        cases += [(listed[head], False, tuple(done)) for head, done in did.items() for _ in range(8)]
    titles = {task: task for _, did in DID.values() for done in did.values() for task in done}
    sentences = SentenceTaskModel(
        units_of(cases),
        [part for text, _ in DID.values() for part in parts(text)],
        {},
        Vectors(),
        TaskCatalogue(titles, lambda head: titles.get(plain(head))),
    )
    return StepKnowledge(StepScorer({i: followed(i) for i in DID}), sentences, frozenset({"close", "log", "lend"}))


def read(request: str, text: str, knowledge: StepKnowledge) -> tuple[str, ...] | None:
    asked = RequestText(request, vector(request))
    found = read_listed_steps(asked, parts(text), "library", knowledge, encode)
    return tuple(step.name for step in found.steps) if found else None


def test_steps_of_an_unknown_industry_are_found_by_their_names_and_by_sentences_of_others(
    knowledge: StepKnowledge,
) -> None:
    assert read("please lend me a book", LIBRARY, knowledge) == ("log_in", "check_title_shelf", "lend_book")
    assert read("I want to return a book", LIBRARY, knowledge) == ("get_reader_loan", "return_book")


def test_every_step_is_new_and_says_which_sentence_asks_for_it(knowledge: StepKnowledge) -> None:
    found = read_listed_steps(
        RequestText("lend a book", vector("lend a book")), parts(LIBRARY), "library", knowledge, encode
    )
    assert found is not None
    assert found.has_goal
    assert [step.is_new for step in found.steps] == [True, True, True]
    assert [step.sentence for step in found.steps] == [LOGGED_IN, ON_SHELF, None]
    assert found.similar_share == 0.5  # one of the two sentences is the same as one of history


def test_steps_of_a_step_come_before_it(knowledge: StepKnowledge) -> None:
    nested = LIBRARY.replace("* check_title_shelf\n", "* check_title_shelf:\n- The loan of the reader must be open.\n")
    assert read("please lend me a book", nested, knowledge) == (
        "log_in",
        "get_reader_loan",
        "check_title_shelf",
        "lend_book",
    )


def test_steps_that_ask_for_each_other_end(knowledge: StepKnowledge) -> None:
    circle = LIBRARY.replace("* check_title_shelf\n", "* check_title_shelf:\n- The book must be lent: lend book.\n")
    found = read("please lend me a book", circle, knowledge)
    assert found is not None
    assert len(found) == len(set(found))
    assert found[-1] == "lend_book"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (LIBRARY, True),
        ("* lendBook:\n- x\n\n* returnBook\n\n* findReader\n", True),
        ("Lend a book:\n- A reader asks.\n\nClose the file\n\nLog the loan\n", True),
        ("* lend_book:\n- Only one step is listed.\n", False),
        ("# Introduction\n\nA reader asks for a book.\n\n# Scope\n\nAll readers of the house.\n", False),
        ("Terms:\n- a b c\n\nPersons:\n- a b c\n\nOffices:\n- a b c\n\nlend_book\n", False),
        ("", False),
    ],
)
def test_headings_are_a_list_of_steps_by_their_form(text: str, expected: bool) -> None:
    assert lists_steps(parts(text), frozenset({"lend", "close", "log"})) == expected


def test_a_text_without_a_list_gives_nothing(knowledge: StepKnowledge) -> None:
    assert read("lend a book", "Somebody lends the book and signs the card.", knowledge) is None


def test_names_alone_decide_where_history_has_no_list(knowledge: StepKnowledge) -> None:
    alone = StepKnowledge(StepScorer({}), None, knowledge.verbs)
    assert (alone.scorer.is_fitted, knowledge.scorer.is_fitted) == (False, True)
    # no name says that somebody has logged in; history of other industries does
    assert read("please lend me a book", LIBRARY, alone) == ("check_title_shelf", "lend_book")


def test_the_model_is_the_same_for_the_same_history() -> None:
    steps = ListedSteps(parts(LIBRARY), encode)
    first, second = (
        StepScorer({i: followed(i) for i in order}).probabilities(steps, "lend book", ["The shelf must not be empty."])
        for order in (("bank", "clinic"), ("clinic", "bank"))
    )
    assert np.array_equal(first, second)
    assert first[0, steps.names.index("lend book")] == 0.0
    assert first[0].argmax() == steps.names.index("check title shelf")


def test_figures_are_finite_for_odd_lists() -> None:
    for text in ("* a_b:\n- One two three.\n", "* get_all\n\n* get_details\n\n* x_y:\n- Nothing is said here.\n"):
        steps = ListedSteps(parts(text), encode)
        figures = steps.features(steps.names[0], ["Nothing is said here.", "?! ..."], np.full(len(steps.names), 0.5))
        assert figures.shape == (2, len(steps.names), len(FEATURES))
        assert np.isfinite(figures).all()


@pytest.mark.parametrize(
    ("name", "verb", "of"),
    [
        ("get account balance", "get", "account balance"),
        ("internal get vehicle details", "get", "vehicle details"),
        ("login", "login", "login"),
        ("internal", "internal", "internal"),
        ("", "", ""),
    ],
)
def test_verb_and_object_of_a_name(name: str, verb: str, of: str) -> None:
    assert (verb_of(name), object_of(name)) == (verb, of)


def test_a_known_industry_asks_the_model_where_no_name_fits(knowledge: StepKnowledge) -> None:
    book = "The volume must stand on the right rack."  # its words fit no name well
    text = LIBRARY.replace(ON_SHELF, book)
    follows = next(part for part in parts(LIBRARY) if part.head == "return_book")
    titles = {task: task for task in ("get reader loan", "return book")}
    for scorer, expected in ((None, ("lend_book",)), (lambda: Sure(), ("check_title_shelf", "lend_book"))):
        own = SentenceTaskModel(
            units_of([(follows, False, ("get reader loan", "return book"))] * 8),
            parts(text),
            {},
            Vectors(),
            TaskCatalogue(titles, lambda head: titles.get(plain(head)), scorer),
        )
        found = parse_procedure(RequestText("lend", vector("lend")), parts(text), "library", own, encode)
        assert found is not None
        assert tuple(step.name for step in found.steps) == expected


class Sure(StepScorer):
    """Every sentence asks for looking at the shelf."""

    def __init__(self) -> None:
        super().__init__({})

    def probabilities(self, steps: ListedSteps, head: str, sentences: Sequence[str]) -> np.ndarray:
        return np.tile([float(name == "check title shelf") for name in steps.names], (len(sentences), 1))


def test_a_part_without_sentences_asks_for_its_goal_alone(knowledge: StepKnowledge) -> None:
    assert read("log in", "* log_in\n\n* lend_book\n\n* return_book\n", knowledge) == ("log_in",)
    assert Part("log_in", ()).name == "log in"
