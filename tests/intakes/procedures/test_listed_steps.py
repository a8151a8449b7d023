"""Steps of one kind or about one thing: what a sentence asks for beside the step whose name fits it best."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pytest

from opus_pipelines.intakes.procedures.listed_steps import (
    ListedSteps,
    are_of_one_record,
    counterparts,
    is_stated,
    records_of,
    states_existence,
    states_output,
)
from opus_pipelines.intakes.procedures.models import SentenceTaskModel, StepScorer, TaskCatalogue, units_of
from opus_pipelines.intakes.procedures.names import words
from opus_pipelines.intakes.procedures.reading import parse_procedure
from opus_pipelines.intakes.procedures.relevant_parts import RequestText
from opus_pipelines.language.embedding.texts import parts, plain

HAS_PASSPORT = "The guest has a passport that is not null."
CAR_SEASON = "The entry date falls within the car season of the guest."
IN_REGISTER = "The key owner exists within the register of the house."
LISTED = "\n\n* has_passport\n\n* get_passport_details\n\n* get_entry_date\n\n* get_car_details\n\n* get_boat_details\n"
NAMES = ("has_passport", "get_passport_details", "get_entry_date", "get_car_details", "get_boat_details")
SENTENCES = (
    "The passport of the guest must name another office.",
    "The entry date falls within the boat season of the guest.",
    "The room balance must exceed the bar bill of the guest.",
    "The key buyer exists as a section within the register of the house.",
)
# of other work: a word of the sentences above is rare
OTHERS = "* other_work:\n" + "".join(f"- Sentence number {n} is about other work.\n" for n in range(20))
VOCABULARY = sorted({w for t in (HAS_PASSPORT, CAR_SEASON, IN_REGISTER, LISTED, *SENTENCES) for w in words(t)})


def vector(text: str) -> np.ndarray:
    """A bag of words."""
    found = np.array([float(w in words(text)) for w in VOCABULARY])
    return found / max(np.linalg.norm(found), 1e-9)


class Vectors(dict[str, np.ndarray]):
    def __missing__(self, text: str) -> np.ndarray:
        return vector(text)


def encode(texts: Sequence[str]) -> np.ndarray:
    return np.stack([vector(text) for text in texts])


def model(
    history: dict[str, tuple[str, ...]], abroad: Any = None, outputs: Mapping[str, Sequence[str]] | None = None
) -> SentenceTaskModel:
    """The model of cases in which a sentence asked for tasks; the procedure's part is `open_tab`."""
    followed = {sentence: parts(f"* open_tab:\n- {sentence}\n")[0] for sentence in history}
    titles = {plain(task): task for tasks in history.values() for task in (*tasks, "open_tab")}
    return SentenceTaskModel(
        units_of((followed[s], False, (*tasks, "open_tab")) for s, tasks in history.items() for _ in range(8)),
        [*followed.values(), *parts(OTHERS)],
        {},
        Vectors(),
        TaskCatalogue(
            {task: task for task in titles.values()},
            lambda head: titles.get(plain(head)),
            lambda: Silent({}),
            lambda: abroad,
            outputs or {},
        ),
    )


class Silent(StepScorer):
    """No sentence asks for anything."""

    def probabilities(self, steps: Any, head: str, sentences: Sequence[str]) -> np.ndarray:
        return np.zeros((len(sentences), len(steps.names)))


def asked(sentences: Sequence[str], own: SentenceTaskModel, listed: str = LISTED) -> set[str]:
    """The steps of the part `check_in`, without itself."""
    text = "* check_in:\n" + "".join(f"- {s}\n" for s in sentences) + listed
    found = parse_procedure(RequestText("check in", vector("check in")), parts(text), "hotel", own, encode)
    assert found is not None
    assert found.steps[-1].name == "check_in"
    return {step.name for step in found.steps[:-1]}


HOTEL = {HAS_PASSPORT: ("has_passport",), CAR_SEASON: ("get_entry_date", "get_car_details")}


def test_a_second_sentence_about_a_tested_record_asks_for_what_is_in_it() -> None:
    assert asked([HAS_PASSPORT], model(HOTEL)) == {"has_passport"}
    assert asked([HAS_PASSPORT, SENTENCES[0]], model(HOTEL)) == {"has_passport", "get_passport_details"}


def test_a_sentence_that_asks_for_the_same_test_of_another_record_reads_nothing() -> None:
    other = "The other guest has a passport that is not null."
    assert asked([HAS_PASSPORT, other], model(HOTEL)) == {"has_passport"}


def test_a_similar_sentence_about_another_thing_asks_for_the_step_of_that_thing() -> None:
    assert asked([SENTENCES[1]], model(HOTEL)) == {"get_entry_date", "get_boat_details"}


def test_a_sentence_asks_for_every_step_whose_object_it_states() -> None:
    listed = LISTED + "\n* get_room_balance\n\n* get_bar_bill\n\n* get_room_bill\n"
    assert asked([SENTENCES[2]], model(HOTEL), listed) == {"get_room_balance", "get_bar_bill"}


@pytest.mark.parametrize(
    ("outputs", "expected"),
    [
        ({}, {"get_entry_date"}),
        ({"get_car_details": ("colour", "next_inspection")}, {"get_entry_date", "get_car_details"}),
        ({"get_car_details": ("colour", "last_inspection")}, {"get_entry_date"}),
    ],
)
def test_a_new_sentence_asks_for_the_step_that_returns_what_it_speaks_of(
    outputs: Mapping[str, Sequence[str]], expected: set[str]
) -> None:
    sentence = "The next inspection of the car must lie ahead of the entry date."
    assert asked([sentence], model(HOTEL, outputs=outputs)) == expected


def test_of_two_steps_of_one_record_that_cases_did_the_likelier_counts() -> None:
    did_both = model({HAS_PASSPORT: ("has_passport", "get_passport_details", "get_entry_date")})
    assert asked([HAS_PASSPORT], did_both) == {"has_passport", "get_entry_date"}


@pytest.mark.parametrize(
    ("listed", "abroad", "expected"),
    [
        ("\n* look_up_person\n", True, {"look_up_person"}),
        ("\n* look_up_person\n", False, set()),
        ("", True, set()),  # the procedure does not list the step
    ],
)
def test_a_sentence_that_nothing_explains_is_read_as_in_another_industry(
    listed: str, abroad: bool, expected: set[str]
) -> None:
    bank = model({IN_REGISTER: ("look_up_person",)}) if abroad else None
    assert asked([SENTENCES[3]], model(HOTEL, bank), LISTED + listed) == expected


@pytest.mark.parametrize(
    ("name", "sentence", "expected"),
    [
        ("get_room_balance", 'The guest has a room balance "balance" above 0.', True),
        ("get_room_balance", "The balance of the room is above 0.", False),
        ("internal_get_room_balance", "The room_balance is above 0.", True),
        ("get_balance", "The balance is above 0.", False),  # one word is too common
        ("pay_room_balance", "The room balance is above 0.", False),  # it reads nothing
        ("", "The room balance is above 0.", False),
    ],
)
def test_an_object_is_stated_word_for_word(name: str, sentence: str, expected: bool) -> None:
    assert is_stated(name, sentence) == expected


@pytest.mark.parametrize(
    ("name", "other", "expected"),
    [
        ("has_passport", "get_passport_details", True),
        ("internal_has_passport", "show_passport", True),
        ("get_balance", "get_bar_balance", True),
        ("get_bar_balance", "get_room_balance", False),
        ("has_passport", "renew_passport", False),  # it changes something
        ("get_details", "get_passport_details", False),  # of no record
    ],
)
def test_steps_of_one_record(name: str, other: str, expected: bool) -> None:
    assert are_of_one_record(name, other) == expected
    assert are_of_one_record(other, name) == expected


@pytest.mark.parametrize(
    ("sentence", "expected"),
    [
        ("The guest has a passport that is not null.", True),
        ("The guest owns the car.", True),
        ("The booking must not exist in the register.", True),
        ("The passport must name another office.", False),
        ("The owner of the car is a guest.", False),
    ],
)
def test_a_sentence_that_says_that_there_is_a_thing(sentence: str, expected: bool) -> None:
    assert states_existence(sentence) == expected


def test_of_a_listed_test_and_reading_of_a_record_its_existence_asks_for_the_test() -> None:
    steps = ListedSteps(parts("* check_in:\n- A guest checks in.\n" + LISTED), encode)
    assert steps.names[1:3] == ["has passport", "get passport details"]
    probabilities = np.array([[0.0, 0.25, 0.75, 0.5, 0.0, 0.0]] * 2 + [[0.0, 0.75, 0.25, 0.5, 0.0, 0.0]])
    found = steps.with_tests_of_existence([HAS_PASSPORT, SENTENCES[0], HAS_PASSPORT], probabilities)
    assert found.tolist() == [
        [0.0, 0.75, 0.25, 0.5, 0.0, 0.0],
        [0.0, 0.25, 0.75, 0.5, 0.0, 0.0],
        [0.0, 0.75, 0.25, 0.5, 0.0, 0.0],
    ]


@pytest.mark.parametrize(
    ("outputs", "sentence", "expected"),
    [
        (("colour", "entry_date"), "The entry_date lies ahead.", True),
        (("colour", "entry date"), "The date of the entry lies ahead.", True),
        (("entry_date",), "The entry lies ahead.", False),
        (("the",), "The entry lies ahead.", False),  # no word with a meaning
        ((), "The entry lies ahead.", False),
    ],
)
def test_an_output_is_stated_by_all_its_words(outputs: Sequence[str], sentence: str, expected: bool) -> None:
    assert states_output(outputs, sentence) == expected


@pytest.mark.parametrize(
    ("check", "expected"),
    [
        ("has_passport", ["get_passport_details"]),
        ("check_car_exists", ["get_car_details"]),
        ("get_passport_details", []),  # it tests nothing
        ("has_cabin", []),
        ("check_details", []),  # of nothing
    ],
)
def test_the_record_of_a_test_is_read_by_a_step_about_the_same_thing(check: str, expected: list[str]) -> None:
    assert records_of(check, NAMES) == expected


def test_a_counterpart_does_the_same_with_the_thing_of_the_other_sentence() -> None:
    car, boat = "The car must have an owner.", "The boat must have an owner."
    assert counterparts("get_car_details", car, boat, NAMES) == ["get_boat_details"]
    assert counterparts("get_car_details", car, "The car and the boat must have an owner.", NAMES) == []
    assert counterparts("get_car_details", "It must have an owner.", boat, NAMES) == []  # it does not speak of a car
    assert counterparts("get_entry_date", "The entry date is past.", boat, NAMES) == []  # another kind of step
    assert counterparts("get_details", car, boat, NAMES) == []  # about nothing
