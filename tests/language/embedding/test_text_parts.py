"""A procedure cut into parts by its layout."""

from typing import Any

import numpy as np
import pytest

from opus_pipelines.language.embedding.texts import Part, Sentence, part_similarity, parts, plain

TEXT = """\
Work through the list below.

### Steps with conditions:

* release_payment:
ALL of these must hold:
• The invoice is approved by the controller.
• ANY ONE of these must hold:
  • The supplier is known to the ledger.
  • The supplier was checked by a person.
• The amount is below 500 dollars.

* close_file:
None

### Other steps:

* look_up_supplier
"""


def test_headings_items_and_groups() -> None:
    assert parts(TEXT) == [
        Part(None, (Sentence("Work through the list below."),)),
        Part("Steps with conditions", (), True),
        Part(
            "release_payment",
            (
                Sentence("The invoice is approved by the controller."),
                Sentence("The supplier is known to the ledger.", 0),
                Sentence("The supplier was checked by a person.", 0, 1),
                Sentence("The amount is below 500 dollars."),
            ),
        ),
        Part("close_file", ()),
        Part("Other steps", (), True),
        Part("look_up_supplier", ()),
    ]


def test_prose_is_cut_into_sentences_and_a_short_line_is_not() -> None:
    long = "The file is read by a clerk who knows the matter. " * 8
    assert [s.text for s in parts(long)[0].sentences] == ["The file is read by a clerk who knows the matter."] * 8
    assert (
        len(parts("The file is read first. It is then closed by whoever read it, at the end of the day.")[0].sentences)
        == 1
    )


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", []),
        ("   \n\n  ", []),
        ("None", [Part("None", ())]),
        ("# Title", [Part("Title", (), True)]),
        ("One two three.", [Part(None, (Sentence("One two three."),))]),
    ],
)
def test_small_texts(text: str, expected: list[Any]) -> None:
    assert parts(text) == expected


@pytest.mark.parametrize("name", ["registerVehicle", "register_vehicle", "Register vehicle", " register-vehicle "])
def test_names_in_plain_words(name: str) -> None:
    assert plain(name) == "register vehicle"


def test_a_heading_counts_twice_what_the_text_under_it_does() -> None:
    east, north = np.array([1.0, 0.0]), np.array([0.0, 1.0])
    assert part_similarity(east, np.stack([east, north]), np.stack([north, east])).tolist() == [1.0, 0.5]
