from collections.abc import Callable
from typing import Any

from opus_pipelines.intakes.requirements.intention import MOST_SENTENCES, StatedText, decode_intention


def test_goal_inputs_outputs_and_rules_with_their_places(text_elements: Callable[..., Any]) -> None:
    made = decode_intention(
        text_elements(
            {
                "input": "# Notice\n\nA pipe burst. Please dry the floor.",
                "output": "- drying order\n- report",
                "contract": "We insure homes. Coverage must be verified.",
            }
        ),
        None,
    )
    assert made.goal == "Please dry the floor."
    assert made.inputs == (
        StatedText("A pipe burst.", "einput", "line 3"),
        StatedText("Please dry the floor.", "einput", "line 3"),
    )
    assert [(s.text, s.place) for s in made.outputs] == [("drying order", "line 1"), ("report", "line 2")]
    assert [(r.sentence.text, r.sentence.place) for r in made.rules] == [("Coverage must be verified.", "line 1")]


def test_a_title_is_the_goal_and_a_tables_head_speaks_for_it(text_elements: Callable[..., Any]) -> None:
    (table,) = text_elements({"input": "item; usd\n\nitem: ring; usd: 900\nitem: watch; usd: 620"})
    made = decode_intention([type(table)(**{**vars(table), "media_type": "text/csv"})], "  A\nburglary ")
    assert (made.goal, made.inputs) == ("A burglary", (StatedText("item; usd", "einput", "head of the table"),))


def test_what_one_document_says_is_bounded(text_elements: Callable[..., Any]) -> None:
    assert (
        len(
            decode_intention(
                text_elements({"input": "Rain falls. " * 3 + "".join(f"Drop {n} fell. " for n in range(500))}), None
            ).inputs
        )
        == MOST_SENTENCES
    )
