"""Tables of procedures: the column of actions, that of situations, tabs, and heads."""

import pytest

from opus_pipelines.intakes.catalogues.statements import prose_sentences, statements_of

ALARM = """\
| Situation | Action |
| --- | --- |
| Always | Pump started |
| Water in the deep cellar | Divers called; gas off |
"""


def test_a_row_says_what_is_done_in_its_situation() -> None:
    first, second = prose_sentences(ALARM)
    assert [s.text for s in statements_of(first)] == ["Pump started"]
    found = statements_of(second)
    assert [(s.text, s.only_if) for s in found if s.asks] == [
        ("Divers called", "If Water in the deep cellar"),
        ("gas off", "If Water in the deep cellar"),
    ]


@pytest.mark.parametrize(
    ("text", "sentences"),
    [
        ("No\tOffice\tTask\n1\tHead of the office\tWeigh it\n2\tDesk\tSend it", ["Weigh it", "Send it"]),
        ("1.\tWeigh the parcel\n2.\tSend the parcel", ["Weigh the parcel", "Send the parcel"]),
        ("Weigh the parcel | desk\nSend the parcel | van", ["Weigh the parcel", "Send the parcel"]),
        ("Red | Blue\n--- | ---\nWeigh the parcel | x", ["Weigh the parcel"]),
        ("When | To do\nWhen it rings | Open the door\n- | Wash it", ["When it rings: Open the door", "Wash it"]),
    ],
    ids=["tabs", "numbers before tabs", "no head", "frame", "subordinate"],
)
def test_no_row_is_lost(text: str, sentences: list[str]) -> None:
    assert prose_sentences(text) == sentences
