"""Questions with their answers, as the statements that both make together."""

import pytest

from opus_pipelines.intakes.catalogues.statements import prose_sentences, statements_of


@pytest.mark.parametrize(
    ("text", "sentences"),
    [
        ("Q: Bees. What if one stings?\nA: Then the doctor is called.", ["If one stings, the doctor is called."]),
        ("Q: Who calls the farmer?\nA: The keeper does so.", ["Who calls the farmer.", "The keeper does so."]),
        ("Question 2: Do we tell the mayor?\nAnswer: Yes.", ["we tell the mayor"]),
        ("Q: Do we tell the mayor?\nA: Yes, a letter is sent to her.", ["a letter is sent to her."]),
        ("Q: May we sell the honey?\nA: No. The honey is thrown away.", ["The honey is thrown away."]),
        ("Q: How do we close?\nA: The hive is sealed.", ["The hive is sealed."]),
        ("Q: What is sealed?", ["Q: What is sealed?"]),  # without answers nothing is changed
    ],
)  # fmt: skip
def test_a_question_and_its_answer_are_read_together(text: str, sentences: list[str]) -> None:
    assert prose_sentences(text) == sentences


def test_who_does_a_thing_asks_for_it() -> None:
    assert [s.full for s in statements_of("Who calls the farmer.") if s.asks] == ["Who calls the farmer"]
