from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from opus_pipelines.intakes.requirements.intention import encode_intention, goals_of, passages_of

WORDS = {"dry": 0, "pay": 1, "book": 2}
LETTER = "We came home to two things:\n\n1. The floor is wet. Please dry it.\n2. A ring is gone. Please pay it."


class Topics:
    """A text's vector: what is done in it, and a little of everything."""

    name, dimension, max_tokens = "topics", 4, 256

    def __init__(self) -> None:
        self.calls = 0

    def encode(self, texts: list[str], progress: Any = None) -> Any:
        self.calls += 1
        rows = np.array([[t.lower().count(w) for w in WORDS] + [0.1] for t in texts], np.float32)
        return rows / np.linalg.norm(rows, axis=1, keepdims=True)


def kind_of(vector: np.ndarray) -> Any:
    return ["water", "theft", "glass", None][int(np.argmax(vector))]


def goals(text_elements: Callable[..., Any], letter: str, kind_of: Callable[..., Any] = kind_of, **more: Any) -> Any:
    elements = text_elements({"input": letter, "process": "dry it\n\npay it", **more})
    return goals_of(encode_intention(elements, "A letter", Topics()), kind_of)


def test_two_requests_that_history_answers_with_different_kinds_are_two_goals(
    text_elements: Callable[..., Any],
) -> None:
    first, second = goals(text_elements, LETTER, output="a drying order")
    assert (first.goal, second.goal) == ("The floor is wet. Please dry it.", "A ring is gone. Please pay it.")
    assert [s.place for s in second.decoded.inputs] == ["line 4", "line 4"]
    assert np.argmax(first.vector) == 0
    assert np.argmax(second.vector) == 1
    assert np.linalg.norm(second.vector) == pytest.approx(1)
    assert first.decoded.rules == second.decoded.rules


@pytest.mark.parametrize(
    ("letter", "kind_of"),
    [
        ("1. The floor is wet. Please dry it.\n2. Please dry the hall too.", kind_of),
        ("1. The floor is wet.\n2. A ring is gone. Please pay it.", kind_of),
        ("Please dry the floor and please pay for the ring.", kind_of),
        (LETTER, lambda vector: "household"),
        (LETTER, lambda vector: None),
    ],
)
def test_anything_less_is_one_goal(letter: str, kind_of: Callable[..., Any], text_elements: Callable[..., Any]) -> None:
    (only,) = goals(text_elements, letter, kind_of)
    assert only.goal == "A letter"


def test_two_letters_are_two_goals_though_neither_asks_for_anything(text_elements: Callable[..., Any]) -> None:
    water, theft = "The floor is wet. We must dry it.", "A ring is gone. You pay such things."
    found = goals_of(encode_intention(letters(text_elements, water, theft), None, Topics()), kind_of)
    assert [goal.goal for goal in found] == [water, theft]


@pytest.mark.parametrize("other", ["Wet as well. The hall must dry.", "Pay it."])
def test_a_second_letter_on_the_same_work_or_of_one_sentence_is_no_goal(
    other: str, text_elements: Callable[..., Any]
) -> None:
    elements = letters(text_elements, "The floor is wet. We must dry it.", other)
    assert len(goals_of(encode_intention(elements, None, Topics()), kind_of)) == 1


def letters(text_elements: Callable[..., Any], *texts: str) -> list[Any]:
    """Client input of several documents."""
    return [
        replace(element, element_id=f"letter{n}")
        for n, text in enumerate(texts)
        for element in text_elements({"input": text})
    ]


def test_every_text_of_an_intake_is_encoded_in_one_call(text_elements: Callable[..., Any]) -> None:
    encoder = Topics()
    elements = text_elements({"input": LETTER, "process": "The claim must be closed."})
    encode_intention(elements, None, encoder)
    assert encoder.calls == 1
    assert [p.part for p in passages_of(elements, 100)] == ["input", "context", "request", "request", "clause"]
